package command

import (
	"bytes"
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	for i, c := range All() {
		if c.ID != i {
			t.Errorf("%s has ID %d at %d", c.Name, c.ID, i)
		}
		if c.Container() != nil {
			name := c.Name[len(c.Container().Name)+1:]
			if got := c.Container().Subcommand([]byte(strings.ToUpper(name))); got != c {
				t.Errorf("subcommand %s not found", c.Name)
			}
			continue
		}
		for _, name := range []string{c.Name, strings.ToUpper(c.Name), strings.ToUpper(c.Name[:1]) + c.Name[1:]} {
			if Lookup([]byte(name)) != c {
				t.Errorf("%s not found as %s", c.Name, name)
			}
		}
		for _, name := range []string{c.Name + "x", c.Name[1:], c.Name + "\x00", "x" + c.Name, c.Name + " "} {
			if got := Lookup([]byte(name)); got != nil && got.Name != name {
				t.Errorf("%q finds %s", name, got.Name)
			}
		}
	}
	for _, name := range []string{"", "g\x05t", "ge\x14", "GET\n", "[et", strings.Repeat("a", 1000)} {
		if got := Lookup([]byte(name)); got != nil {
			t.Errorf("%q finds %s", name, got.Name)
		}
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	name, missing := []byte("GET"), []byte("nosuchcommand")
	if n := testing.AllocsPerRun(100, func() { Lookup(name); Lookup(missing) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// runByServer are the rows without a planner that run behind the shards' locks: scripts and libraries, and a read of the
// feed. What they say of their effects is true for what they run.
var runByServer = map[string]struct{ effects, writes bool }{
	"eval": {effects: true}, "evalsha": {effects: true}, "fcall": {effects: true},
	"eval_ro": {}, "evalsha_ro": {}, "fcall_ro": {},
	"function|load": {true, true}, "function|delete": {true, true}, "function|flush": {true, true}, "function|restore": {true, true},
	"function|dump": {}, "function|list": {},
	"feed.scan": {},
}

// TestTableOfScripts: the rows that the server runs say exactly what is expected of them, and no other row is like that.
func TestTableOfScripts(t *testing.T) {
	found := 0
	for _, c := range All() {
		want, listed := runByServer[c.Name]
		if locks := c.Plan == nil && c.Scope != ScopeNone && len(c.Sub) == 0; locks != listed {
			t.Errorf("%s locks shards without a planner: %v", c.Name, locks)
		}
		switch {
		case !listed && c.Group == "scripting" && (c.Effects != "" || c.Flags&(Write|ReadOnly) != 0):
			t.Errorf("%s: says that it touches keys", c.Name)
		case !listed:
			continue
		case (c.Effects != "") != want.effects, (c.Flags&Write != 0) != want.writes:
			t.Errorf("%s: effects %q, writes %v", c.Name, c.Effects, c.Flags&Write != 0)
		case strings.HasSuffix(c.Name, "_ro") != (c.Flags&ReadOnly != 0) && c.Name != "feed.scan":
			t.Errorf("%s: flag of reads", c.Name)
		case strings.HasSuffix(c.Name, "_ro") && c.Flags&MayReplicate != 0:
			t.Errorf("%s may replicate", c.Name)
		}
		found++
	}
	if found != len(runByServer) {
		t.Errorf("%d of %d rows", found, len(runByServer))
	}
}

// TestTable checks every row for what a row must say.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range All() {
		switch {
		case seen[c.Name]:
			t.Errorf("%s is there twice", c.Name)
		case c.Name != strings.ToLower(c.Name) || c.Name == "":
			t.Errorf("name %q", c.Name)
		case c.Summary == "" || c.Since == "" || c.Group == "" || c.Categories == "":
			t.Errorf("%s lacks documentation", c.Name)
		case c.Arity == 0:
			t.Errorf("%s has no arity", c.Name)
		case c.Flags&Write != 0 && c.Flags&ReadOnly != 0:
			t.Errorf("%s both writes and only reads", c.Name)
		case c.Group != "scripting" && (c.Effects != "" && c.Flags&Write == 0 || c.Effects == "" && c.Flags&Write != 0 && c.Plan != nil): // see TestTableOfScripts
			t.Errorf("%s: effects are named exactly for write commands", c.Name)
		case c.Scope == ScopeKeys && !c.HasKeys() && c.Plan != nil:
			t.Errorf("%s has no keys to lock by", c.Name)
		case c.HasKeys() != (len(c.KeySpecs) > 0):
			t.Errorf("%s: keys and key specifications differ", c.Name)
		case c.HasCategory("fast") == c.HasCategory("slow"):
			t.Errorf("%s must be either fast or slow", c.Name)
		case c.HasCategory("fast") != (c.Flags&Fast != 0):
			t.Errorf("%s: flag and category fast differ", c.Name)
		}
		seen[c.Name] = true
	}
}

func TestResolveErrors(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"GET", "a"}, ""},
		{[]string{"get"}, "ERR wrong number of arguments for 'get' command"},
		{[]string{"GET", "a", "b"}, "ERR wrong number of arguments for 'get' command"},
		{[]string{"client", "ID"}, ""},
		{[]string{"CLIENT", "ID", "x"}, "ERR wrong number of arguments for 'client|id' command"},
		{[]string{"CLIENT"}, "ERR wrong number of arguments for 'client' command"},
		{[]string{"Client", "x"}, "ERR unknown subcommand 'x'. Try CLIENT HELP."},
		{[]string{"foo"}, "ERR unknown command 'foo', with args beginning with: "},
		{[]string{"foo", "a", "b"}, "ERR unknown command 'foo', with args beginning with: 'a' 'b' "},
		{[]string{long, long}, "ERR unknown command '" + long[:128] + "', with args beginning with: '" +
			long[:128] + "' "},
		{[]string{"COMMAND"}, ""},
		{[]string{"FEED.READ", "0", "1"}, "ERR wrong number of arguments for 'feed.read' command"},
	} {
		if _, bad := Resolve(words(c.args...)); bad != c.want {
			t.Errorf("%q: %q, want %q", c.args, bad, c.want)
		}
	}
}

func TestKeyPositions(t *testing.T) {
	for _, c := range []struct {
		request string
		want    string
	}{
		{"GET a", "a"},
		{"SET a 1 EX 10", "a"},
		{"MSET a 1 b 2", "a b"},
		{"MSET a 1 b", "a b"},
		{"DEL a b c", "a b c"},
		{"RENAME a b", "a b"},
		{"COPY a b REPLACE", "a b"},
		{"OBJECT ENCODING k", "k"},
		{"OBJECT HELP", ""},
		{"MEMORY USAGE k SAMPLES 1", "k"},
		{"PING", ""},
		{"KEYS *", ""},
		{"LCS a b LEN", "a b"},
		{"WATCH a b", "a b"},
		{"CLIENT ID", ""},
	} {
		args := bytes.Fields([]byte(c.request))
		row, bad := Resolve(args)
		if bad != "" {
			t.Fatal(bad)
		}
		var keys []string
		for _, pos := range KeyPositions(row, args, nil) {
			keys = append(keys, string(args[pos]))
		}
		if got := strings.Join(keys, " "); got != c.want {
			t.Errorf("%s: keys %q, want %q", c.request, got, c.want)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	names := words("GET", "SET", "del", "EXPIRE", "incrbyfloat", "FEED.READ", "MSET", "nosuch")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		Lookup(names[i%len(names)])
	}
}
