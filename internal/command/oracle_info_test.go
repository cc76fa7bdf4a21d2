package command

import (
	"strconv"
	"testing"
)

// startOracle72 is startOracle for what the table says, which is that of Redis 7.2.
func startOracle72(t *testing.T) *oracle {
	o := startOracle(t)
	if o.older("7.2") || !o.older("7.3") {
		t.Skip("redis-server is", o.version)
	}
	return o
}

// TestOracleInfo compares the table with what a Redis of its version says about the same commands.
func TestOracleInfo(t *testing.T) {
	o := startOracle72(t)
	for _, proto := range []int{2, 3} {
		o.run(t, words("HELLO", strconv.Itoa(proto)))
		for _, c := range All() {
			if c.Group == "feed" || c.Group == "prefix" || len(c.Sub) > 0 {
				continue // ours, or with subcommands in another order
			}
			for _, what := range []string{"INFO", "DOCS"} {
				args := words("COMMAND", what, c.Name)
				want := o.run(t, args)
				if got := introspect(args, proto); got != want {
					t.Errorf("COMMAND %s %s\n got  %.800q\n want %.800q", what, c.Name, got, want)
				}
			}
		}
	}
}

// TestOracleContainers compares the rows of container commands by themselves.
func TestOracleContainers(t *testing.T) {
	o := startOracle72(t)
	for _, c := range TopLevel() {
		if len(c.Sub) == 0 {
			continue
		}
		bare := *c
		bare.Sub = nil
		h := newHarness(t, 1)
		WriteInfo(&h.w, &bare)
		got := string(h.w.Buf)
		got = got[:len(got)-len("*0\r\n")] // the subcommands
		want := o.run(t, words("COMMAND", "INFO", c.Name))[len("*1\r\n"):]
		if len(want) < len(got) || want[:len(got)] != got {
			t.Errorf("COMMAND INFO %s\n got  %.800q\n want %.800q", c.Name, got, want)
		}
	}
}

func TestOracleGetKeys(t *testing.T) {
	o := startOracle72(t)
	o.run(t, words("HELLO", "3"))
	for _, request := range [][]string{
		{"GET", "a"},
		{"SET", "a", "1"},
		{"SET", "a", "1", "GET"},
		{"SET", "a", "1", "EX", "10", "GET"},
		{"MSET", "a", "1", "b", "2"},
		{"MSETNX", "a", "1", "b"},
		{"DEL", "a", "b", "c"},
		{"MGET", "a"},
		{"RENAME", "a", "b"},
		{"COPY", "a", "b", "REPLACE"},
		{"LCS", "a", "b"},
		{"OBJECT", "ENCODING", "k"},
		{"MEMORY", "USAGE", "k"},
		{"WATCH", "a", "b"},
		{"GETEX", "a", "EX", "10"},
		{"TOUCH", "a", "b"},
		{"PING"},
		{"GET"},
		{"NOSUCH", "a"},
		{"CLIENT", "ID"},
		{"CLIENT", "NOSUCH"},
		{"CLIENT"},
		{"SCAN", "0"},
		{"KEYS", "*"},
		{"OBJECT", "HELP"},
		{"EXPIRE", "a", "10"},
		{"SETRANGE", "a", "0", "x"},
	} {
		for _, sub := range []string{"GETKEYS", "GETKEYSANDFLAGS"} {
			args := words(append([]string{"COMMAND", sub}, request...)...)
			got, want := introspect(args, 3), o.run(t, args)
			if got != want {
				t.Errorf("%q\n got  %.800q\n want %.800q", args, got, want)
			}
		}
	}
	for _, args := range [][][]byte{
		words("COMMAND", "LIST", "FILTERBY"), words("COMMAND", "LIST", "x"),
		words("COMMAND", "LIST", "FILTERBY", "PATTERN", "mse*"),
		words("COMMAND", "LIST", "FILTERBY", "PATTERN", "GE?"),
		words("COMMAND", "LIST", "FILTERBY", "PATTERN", "nosuch"),
		words("COMMAND", "LIST", "FILTERBY", "ACLCAT", "nosuch"),
		words("COMMAND", "LIST", "FILTERBY", "MODULE", "x"),
		words("COMMAND", "LIST", "FILTERBY", "X", "x"),
		words("COMMAND", "INFO", "nosuch"), words("COMMAND", "DOCS", "nosuch"),
		words("COMMAND", "INFO", "client|nosuch", "a|b|c"), words("COMMAND", "HELP"),
		words("COMMAND", "COUNT", "x"), words("COMMAND", "NOSUCH"), words("COMMAND", "GETKEYS"),
	} {
		got, want := sortReply(introspect(args, 3)), sortReply(o.run(t, args))
		if got != want {
			t.Errorf("%q\n got  %.800q\n want %.800q", args, got, want)
		}
	}
}

func introspect(args [][]byte, proto int) string {
	h := &harness{}
	h.w.Proto = proto
	c, bad := Resolve(args)
	if bad != "" {
		h.w.Error(bad)
	} else {
		Introspect(&h.w, c, args)
	}
	return string(h.w.Buf)
}
