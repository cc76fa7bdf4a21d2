package command

import "github.com/kevydb/kevy/resp"

// pair is one name and text of a map of COMMAND DOCS; an empty text is left out.
type pair struct{ name, text string }

// WriteDocs replies a command's documentation: the value of its entry in COMMAND DOCS.
func WriteDocs(w *resp.Writer, c *Command) {
	head := present(pair{"summary", c.Summary}, pair{"since", c.Since}, pair{"group", c.Group},
		pair{"complexity", c.Complexity})
	deprecated := present(pair{"deprecated_since", c.DeprecatedSince}, pair{"replaced_by", c.ReplacedBy})
	n := len(head) + len(deprecated)
	for _, has := range []bool{len(c.DocFlags) > 0, len(c.History) > 0, len(c.Doc) > 0, len(c.Sub) > 0} {
		if has {
			n++
		}
	}
	w.Map(n)
	writePairs(w, head)
	if len(c.DocFlags) > 0 {
		w.BulkString("doc_flags")
		writeSet(w, "", c.DocFlags)
	}
	writePairs(w, deprecated)
	if len(c.History) > 0 {
		w.BulkString("history")
		w.Set(len(c.History))
		for _, h := range c.History {
			w.Array(2)
			w.BulkString(h[0])
			w.BulkString(h[1])
		}
	}
	if len(c.Doc) > 0 {
		w.BulkString("arguments")
		writeArgs(w, c.Doc)
	}
	if len(c.Sub) > 0 {
		w.BulkString("subcommands")
		w.Map(len(c.Sub))
		for _, sub := range c.Sub {
			w.BulkString(sub.Name)
			WriteDocs(w, sub)
		}
	}
}

// present returns the pairs that have a text.
func present(pairs ...pair) []pair {
	kept := pairs[:0]
	for _, p := range pairs {
		if p.text != "" {
			kept = append(kept, p)
		}
	}
	return kept
}

func writePairs(w *resp.Writer, pairs []pair) {
	for _, p := range pairs {
		w.BulkString(p.name)
		w.BulkString(p.text)
	}
}

func writeArgs(w *resp.Writer, args []Arg) {
	w.Array(len(args))
	for i := range args {
		writeArg(w, &args[i])
	}
}

func writeArg(w *resp.Writer, a *Arg) {
	nested := a.Type == "oneof" || a.Type == "block"
	hasSpec := a.Type == "key" || a.KeySpecIndex > 0
	display := a.Display
	switch {
	case nested:
		display = ""
	case display == "":
		display = a.Name
	}
	head := present(pair{"name", a.Name}, pair{"type", a.Type}, pair{"display_text", display})
	tail := present(pair{"token", a.Token}, pair{"since", a.Since},
		pair{"deprecated_since", a.DeprecatedSince})
	if a.Type == "pure-token" && a.Token == "" { // the empty string is the token
		tail = append([]pair{{"token", ""}}, tail...)
	}
	n := len(head) + len(tail)
	for _, has := range []bool{hasSpec, len(a.Flags) > 0, nested} {
		if has {
			n++
		}
	}
	w.Map(n)
	writePairs(w, head)
	if hasSpec {
		writePair(w, "key_spec_index", a.KeySpecIndex)
	}
	writePairs(w, tail)
	if len(a.Flags) > 0 {
		w.BulkString("flags")
		writeSet(w, "", a.Flags)
	}
	if nested {
		w.BulkString("arguments")
		writeArgs(w, a.Args)
	}
}
