package command

import (
	"strings"

	"github.com/kevydb/kevy/resp"
)

// flagNames are the flags COMMAND INFO shows, in its order. Redis hides the others.
var flagNames = []struct {
	flag Flags
	name string
}{
	{Write, "write"},
	{ReadOnly, "readonly"},
	{DenyOOM, "denyoom"},
	{Admin, "admin"},
	{PubSub, "pubsub"},
	{NoScript, "noscript"},
	{Blocking, "blocking"},
	{Loading, "loading"},
	{Stale, "stale"},
	{SkipMonitor, "skip_monitor"},
	{SkipSlowlog, "skip_slowlog"},
	{Asking, "asking"},
	{Fast, "fast"},
	{NoAuth, "no_auth"},
	{NoMandatoryKeys, "no_mandatory_keys"},
	{NoAsyncLoading, "no_async_loading"},
	{NoMulti, "no_multi"},
	{MovableKeys, "movablekeys"},
	{AllowBusy, "allow_busy"},
}

// Names returns the flags as COMMAND INFO shows them.
func (f Flags) Names() []string {
	var names []string
	for _, n := range flagNames {
		if f&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// WriteInfo replies a command's entry of COMMAND INFO, or null without a command.
func WriteInfo(w *resp.Writer, c *Command) {
	if c == nil {
		w.Null()
		return
	}
	w.Array(10)
	w.BulkString(c.Name)
	w.Int(int64(c.Arity))
	writeSet(w, "", c.Flags.Names())
	w.Int(int64(c.FirstKey))
	w.Int(int64(c.LastKey))
	w.Int(int64(c.Step))
	writeSet(w, "@", strings.Fields(c.Categories))
	w.Set(len(c.Tips))
	for _, tip := range c.Tips {
		w.BulkString(tip)
	}
	w.Set(len(c.KeySpecs))
	for i := range c.KeySpecs {
		writeKeySpec(w, &c.KeySpecs[i])
	}
	if len(c.Sub) == 0 {
		w.Set(0)
		return
	}
	w.Array(len(c.Sub))
	for _, sub := range c.Sub {
		WriteInfo(w, sub)
	}
}

// writeSet replies a set of words as simple strings.
func writeSet(w *resp.Writer, prefix string, words []string) {
	w.Set(len(words))
	for _, word := range words {
		w.Simple(prefix + word)
	}
}

func writeKeySpec(w *resp.Writer, s *KeySpec) {
	if s.Notes == "" {
		w.Map(3)
	} else {
		w.Map(4)
		w.BulkString("notes")
		w.BulkString(s.Notes)
	}
	w.BulkString("flags")
	writeSet(w, "", s.Flags)
	if s.Unknown {
		for _, part := range [2]string{"begin_search", "find_keys"} {
			w.BulkString(part)
			w.Map(2)
			w.BulkString("type")
			w.BulkString("unknown")
			w.BulkString("spec")
			w.Map(0)
		}
		return
	}
	w.BulkString("begin_search")
	w.Map(2)
	w.BulkString("type")
	if s.Keyword == "" {
		w.BulkString("index")
		w.BulkString("spec")
		w.Map(1)
		writePair(w, "index", s.BeginIndex)
	} else {
		w.BulkString("keyword")
		w.BulkString("spec")
		w.Map(2)
		w.BulkString("keyword")
		w.BulkString(s.Keyword)
		writePair(w, "startfrom", s.StartFrom)
	}
	w.BulkString("find_keys")
	w.Map(2)
	w.BulkString("type")
	if s.NumKeys {
		w.BulkString("keynum")
		w.BulkString("spec")
		w.Map(3)
		writePair(w, "keynumidx", 0)
		writePair(w, "firstkey", 1)
		writePair(w, "keystep", 1)
		return
	}
	w.BulkString("range")
	w.BulkString("spec")
	w.Map(3)
	writePair(w, "lastkey", s.LastKey)
	writePair(w, "keystep", s.Step)
	writePair(w, "limit", s.Limit)
}

func writePair(w *resp.Writer, name string, n int) {
	w.BulkString(name)
	w.Int(int64(n))
}
