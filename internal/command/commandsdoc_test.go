package command

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// rewrite is the flag that writes docs/commands.md anew. REWRITE=1 does the same.
var rewrite = flag.Bool("rewrite", false, "write docs/commands.md anew from the command table")

const commandsFile = "../../docs/commands.md"

// commandsHead stands above the generated tables.
const commandsHead = `# Commands

Generated from the command table (%d commands, %d with subcommands); do not edit. After a change of the table:

    REWRITE=1 go test ./internal/command -run TestCommandsDoc

A request of the synopsis has *arity* words, the name included; a negative arity means at least so many. *Frames* are what the
command puts into the log, the change feed and scripts' groups of effects; a command that changes nothing writes none, and
one without frames here never writes. Flags and complexities are those that COMMAND INFO and COMMAND DOCS reply.
*Differences* are those from Redis 7.2 that concern one command; what concerns a whole type is in
[compatibility.md](compatibility.md).
`

// TestCommandsDoc compares docs/commands.md with what the table gives, or writes it.
func TestCommandsDoc(t *testing.T) {
	want := commandsDoc()
	if *rewrite || os.Getenv("REWRITE") == "1" {
		if err := os.WriteFile(commandsFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(commandsFile)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Errorf("line %d:\n  file:  %s\n  table: %s", i+1, g[i], w[i])
			break
		}
	}
	t.Error("docs/commands.md is stale: REWRITE=1 go test ./internal/command -run TestCommandsDoc")
}

// TestWritesNameFrames wants the frames of every command that may write. SWAPDB always fails: there is
// one database.
func TestWritesNameFrames(t *testing.T) {
	for _, c := range All() {
		if c.Flags&Write != 0 && c.Effects == "" && len(c.Sub) == 0 && c.Name != "swapdb" {
			t.Errorf("%s is flagged write and names no frames: set Effects in its row", title(c))
		}
		if c.Flags&ReadOnly != 0 && c.Effects != "" {
			t.Errorf("%s is flagged readonly and names frames", title(c))
		}
	}
}

// commandsDoc renders the whole table, a section a group.
func commandsDoc() []byte {
	groups := map[string][]*Command{}
	for _, c := range All() {
		groups[c.Group] = append(groups[c.Group], c)
	}
	names := make([]string, 0, len(groups))
	for g := range groups {
		names = append(names, g)
	}
	slices.Sort(names)
	var b bytes.Buffer
	fmt.Fprintf(&b, commandsHead, len(TopLevel()), len(All()))
	for _, g := range names {
		rows := groups[g]
		slices.SortFunc(rows, func(x, y *Command) int { return cmp.Compare(x.Name, y.Name) })
		fmt.Fprintf(&b, "\n## %s\n\n| command | arity | frames | complexity | flags | differences |\n|---|---|---|---|---|---|\n", g)
		for _, c := range rows {
			writeCommandRow(&b, c)
		}
	}
	return b.Bytes()
}

// writeCommandRow renders one command. Containers, which only name subcommands, have no synopsis.
func writeCommandRow(b *bytes.Buffer, c *Command) {
	usage := "`" + title(c) + synopsis(c.Doc) + "`"
	if c.DeprecatedSince != "" {
		usage += " (deprecated since " + c.DeprecatedSince + ")"
	}
	cells := []string{usage, fmt.Sprint(c.Arity), c.Effects, c.Complexity, strings.Join(c.Flags.Names(), " "), c.Differences}
	for i, cell := range cells {
		cell = strings.Join(strings.Fields(cell), " ")
		if i != 0 { // a synopsis is code: nothing in it is markup but the bar
			cell = markdown.Replace(cell)
		}
		fmt.Fprintf(b, "| %s ", strings.ReplaceAll(cell, "|", `\|`))
	}
	b.WriteString("|\n")
}

// markdown keeps the stars and angles of complexities from becoming markup.
var markdown = strings.NewReplacer("*", `\*`, "<", `\<`, ">", `\>`, "_", `\_`)

// title is a command's name as people write it: CLIENT ID for client|id.
func title(c *Command) string {
	return strings.ToUpper(strings.ReplaceAll(c.Name, "|", " "))
}

// synopsis renders arguments as Redis's pages do, each with a space before it.
func synopsis(args []Arg) string {
	var b strings.Builder
	for i := range args {
		b.WriteString(" " + argument(&args[i]))
	}
	return b.String()
}

func argument(a *Arg) string {
	var s string
	switch a.Type {
	case "pure-token":
		s = cmp.Or(a.Token, `""`)
	case "oneof":
		s = strings.ReplaceAll(strings.TrimSpace(alternatives(a.Args)), "\n", " | ")
		if !slices.Contains(a.Flags, "optional") || slices.Contains(a.Flags, "multiple") {
			s = "<" + s + ">"
		}
	case "block":
		s = strings.TrimSpace(synopsis(a.Args))
	default:
		s = cmp.Or(a.Display, a.Name)
	}
	token := a.Token
	if a.Type == "pure-token" {
		token = ""
	}
	return decorate(s, token, a)
}

// alternatives renders the arguments one a line.
func alternatives(args []Arg) string {
	var b strings.Builder
	for i := range args {
		b.WriteString(argument(&args[i]) + "\n")
	}
	return b.String()
}

// decorate adds the token, the repetition and the brackets of an option.
func decorate(s, token string, a *Arg) string {
	multiple := slices.Contains(a.Flags, "multiple")
	switch {
	case multiple && slices.Contains(a.Flags, "multiple_token"):
		s = strings.TrimSpace(token+" "+s) + " [" + strings.TrimSpace(token+" "+s) + " ...]"
	case multiple:
		s = strings.TrimSpace(token + " " + s + " [" + s + " ...]")
	default:
		s = strings.TrimSpace(token + " " + s)
	}
	if slices.Contains(a.Flags, "optional") {
		s = "[" + s + "]"
	}
	return s
}
