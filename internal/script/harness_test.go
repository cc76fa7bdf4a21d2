package script

import (
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// store is an engine with a runtime, over files in memory.
type store struct {
	t   testing.TB
	e   *engine.Engine
	rt  *Runtime
	ctx *command.Ctx
	w   resp.Writer
	h   Host
}

func open(t testing.TB, fs vfs.FS) *store {
	t.Helper()
	e, _, err := engine.Open(engine.Options{Log: log.Options{FS: fs, Dir: "data", Shards: 3, Policy: log.EverySec}})
	if err != nil {
		t.Fatal(err)
	}
	s := &store{t: t, e: e, rt: New(e), ctx: e.NewCtx()}
	s.h.Local = func(c *command.Ctx) error {
		c.W.Simple("LOCAL " + c.Cmd.Name)
		return nil
	}
	return s
}

func (s *store) close() {
	s.t.Helper()
	if err := s.e.Close(true); err != nil {
		s.t.Error(err)
	}
}

// do runs one request and returns the reply on one line.
func (s *store) do(args ...string) string {
	s.t.Helper()
	s.w.Buf = s.w.Buf[:0]
	s.run(args...)
	return strings.TrimSuffix(strings.ReplaceAll(string(s.w.Buf), "\r\n", " "), " ")
}

func (s *store) run(args ...string) {
	c := s.ctx
	c.Args = nil
	for _, a := range args {
		c.Args = append(c.Args, []byte(a))
	}
	cmd, bad := command.Resolve(c.Args)
	if cmd == nil {
		s.t.Fatal(bad)
	}
	c.Cmd, c.W = cmd, &s.w
	var t engine.Ticket
	if cmd.Plan != nil {
		s.e.Run(c, &t)
	} else if err := s.e.Script(c, &t, func() error { return s.rt.Run(c, &s.h) }); err != nil {
		s.w.Error(err.Error())
	}
	if _, err := s.e.Settle(&t); err != nil {
		s.t.Fatal(err)
	}
}

// eval runs a script without keys.
func (s *store) eval(code string, argv ...string) string {
	s.t.Helper()
	return s.do(append([]string{"EVAL", code, "0"}, argv...)...)
}

// want compares the result of scripts; a want that ends in * is a prefix.
func (s *store) want(cases [][2]string) {
	s.t.Helper()
	for _, c := range cases {
		got := s.eval(c[0])
		if prefix, ok := strings.CutSuffix(c[1], "*"); ok && strings.HasPrefix(got, prefix) {
			continue
		}
		if got != c[1] {
			s.t.Errorf("%s\n  got  %q\n  want %q", c[0], got, c[1])
		}
	}
}

func BenchmarkEval(b *testing.B) {
	for _, x := range []struct{ name, code string }{
		{"return", `return 1`},
		{"get", `return redis.call("get",KEYS[1])`},
		{"set", `return redis.call("set",KEYS[1],ARGV[1])`},
		{"loop", `local n = 0 for i = 1, 1000 do n = n + i end return n`},
	} {
		b.Run(x.name, func(b *testing.B) {
			s := open(b, vfs.NewMem())
			defer s.close()
			s.do("SET", "key", "value")
			b.ReportAllocs()
			for b.Loop() {
				s.w.Buf = s.w.Buf[:0]
				s.run("EVAL", x.code, "1", "key", "value")
			}
		})
	}
}
