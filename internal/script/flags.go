package script

import (
	"strings"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/state"
)

// flags are what a script declares about itself.
type flags uint8

const (
	noWrites flags = 1 << iota
	allowOOM
	allowStale
	noCluster
	allowCrossSlot
	compat // a script without a header: it has declared nothing
)

// flagNames are in the order in which FUNCTION LIST shows them.
var flagNames = []struct {
	flag flags
	name string
}{
	{noWrites, "no-writes"},
	{allowOOM, "allow-oom"},
	{allowStale, "allow-stale"},
	{noCluster, "no-cluster"},
	{allowCrossSlot, "allow-cross-slot-keys"},
}

// header reads the first line of a script, "#!lua flags=no-writes,allow-oom", and returns where the code begins. bad is an
// error, or "".
func header(body string) (f flags, code string, bad string) {
	if !strings.HasPrefix(body, "#!") {
		return compat, body, ""
	}
	end := strings.IndexByte(body, '\n')
	if end < 0 {
		return 0, "", "ERR Invalid script shebang"
	}
	words, ok := state.SplitWords(body[:end])
	if !ok || len(words) == 0 {
		return 0, "", "ERR Invalid engine in script shebang"
	}
	if words[0] != "#!lua" {
		return 0, "", "ERR Unexpected engine in script shebang: " + words[0]
	}
	for _, w := range words[1:] {
		list, ok := strings.CutPrefix(w, "flags=")
		if !ok {
			return 0, "", "ERR Unknown lua shebang option: " + w
		}
		if list == "" {
			continue
		}
		for name := range strings.SplitSeq(list, ",") {
			x := flagOf(name)
			if x == 0 {
				return 0, "", "ERR Unexpected flag in script shebang: " + name
			}
			f |= x
		}
	}
	return f, body[end:], ""
}

func flagOf(name string) flags {
	for _, x := range flagNames {
		if x.name == name {
			return x.flag
		}
	}
	return 0
}

// command returns a row's flags as a script with flags f changes them.
func (f flags) command(c command.Flags) command.Flags {
	if f&compat != 0 {
		return c
	}
	c &^= command.Stale | command.DenyOOM | command.Write | command.MayReplicate
	if f&(allowOOM|noWrites) == 0 {
		c |= command.DenyOOM
	}
	if f&noWrites == 0 {
		c |= command.Write
	}
	if f&allowStale != 0 {
		c |= command.Stale
	}
	return c
}
