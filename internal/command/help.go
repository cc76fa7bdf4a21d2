package command

import "github.com/kevydb/kevy/resp"

// ReplyHelp replies a container command's HELP: name is the command as the client spelled it, lines
// its subcommands. Header and footer are Redis's.
func ReplyHelp(w *resp.Writer, name []byte, lines []string) {
	w.Array(len(lines) + 3)
	w.Simple(upper(name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, line := range lines {
		w.Simple(line)
	}
	w.Simple("HELP")
	w.Simple("    Print this help.")
}
