package command

import (
	"bytes"

	"github.com/kevydb/kevy/resp"
)

const (
	msgInvalidCommand = "ERR Invalid command specified"
	msgNoKeyArguments = "ERR The command has no key arguments"
	msgKeysArguments  = "ERR Invalid arguments specified for command"
	msgKeysArity      = "ERR Invalid number of arguments specified for command"
)

var commandHelp = []string{
	"(no subcommand)",
	"    Return details about all Redis commands.",
	"COUNT",
	"    Return the total number of commands in this Redis server.",
	"LIST",
	"    Return a list of all commands in this Redis server.",
	"INFO [<command-name> ...]",
	"    Return details about multiple Redis commands.",
	"    If no command names are given, documentation details for all",
	"    commands are returned.",
	"DOCS [<command-name> ...]",
	"    Return documentation details about multiple Redis commands.",
	"    If no command names are given, documentation details for all",
	"    commands are returned.",
	"GETKEYS <full-command>",
	"    Return the keys from a full Redis command.",
	"GETKEYSANDFLAGS <full-command>",
	"    Return the keys and the access flags from a full Redis command.",
}

// Introspect replies COMMAND and its subcommands, which need nothing but the table.
// REQUIRES: Resolve(args) found c.
func Introspect(w *resp.Writer, c *Command, args [][]byte) {
	switch c.Name {
	case "command":
		infoAll(w)
	case "command|count":
		w.Int(int64(len(TopLevel())))
	case "command|docs":
		docs(w, args[2:])
	case "command|info":
		info(w, args[2:])
	case "command|list":
		list(w, args[2:])
	case "command|getkeys":
		getKeys(w, args[2:], false)
	case "command|getkeysandflags":
		getKeys(w, args[2:], true)
	default:
		ReplyHelp(w, args[0], commandHelp)
	}
}

// named returns the row called name, a subcommand as "container|sub", or nil.
func named(name []byte) *Command {
	container, sub, has := bytes.Cut(name, []byte{'|'})
	c := Lookup(container)
	if c == nil || !has {
		return c
	}
	return c.Subcommand(sub)
}

func infoAll(w *resp.Writer) {
	w.Array(len(TopLevel()))
	for _, c := range TopLevel() {
		WriteInfo(w, c)
	}
}

func info(w *resp.Writer, names [][]byte) {
	if len(names) == 0 {
		infoAll(w)
		return
	}
	w.Array(len(names))
	for _, name := range names {
		WriteInfo(w, named(name))
	}
}

func docs(w *resp.Writer, names [][]byte) {
	rows := TopLevel()
	if len(names) > 0 {
		rows = nil
		for _, name := range names {
			if c := named(name); c != nil {
				rows = append(rows, c)
			}
		}
	}
	w.Map(len(rows))
	for _, c := range rows {
		w.BulkString(c.Name)
		WriteDocs(w, c)
	}
}

// list replies COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern].
func list(w *resp.Writer, args [][]byte) {
	keep := func(*Command) bool { return true }
	if len(args) > 0 {
		if len(args) != 3 || !isWord(args[0], "filterby") {
			w.Error(msgSyntax)
			return
		}
		switch {
		case isWord(args[1], "module"): // there are no modules
			keep = func(*Command) bool { return false }
		case isWord(args[1], "aclcat"):
			category := string(bytes.ToLower(args[2]))
			keep = func(c *Command) bool { return c.HasCategory(category) }
		case isWord(args[1], "pattern"):
			pattern := bytes.ToLower(args[2])
			keep = func(c *Command) bool { return glob(pattern, []byte(c.Name)) }
		default:
			w.Error(msgSyntax)
			return
		}
	}
	var names []string
	for _, c := range All() {
		if keep(c) {
			names = append(names, c.Name)
		}
	}
	w.Array(len(names))
	for _, name := range names {
		w.BulkString(name)
	}
}

// getKeys replies COMMAND GETKEYS and GETKEYSANDFLAGS.
func getKeys(w *resp.Writer, args [][]byte, flags bool) {
	c := Lookup(args[0])
	if c != nil && len(c.Sub) > 0 && len(args) > 1 {
		c = c.Subcommand(args[1])
	}
	switch {
	case c == nil:
		w.Error(msgInvalidCommand)
		return
	case !c.HasKeys():
		w.Error(msgNoKeyArguments)
		return
	case !c.ArityOK(len(args)):
		w.Error(msgKeysArity)
		return
	}
	positions := KeyPositions(c, args, nil)
	if len(positions) == 0 && c.Flags&NoMandatoryKeys == 0 {
		w.Error(msgKeysArguments)
		return
	}
	w.Array(len(positions))
	for _, pos := range positions {
		if !flags {
			w.Bulk(args[pos])
			continue
		}
		w.Array(2)
		w.Bulk(args[pos])
		writeSet(w, "", c.keyFlags(args, pos))
	}
}
