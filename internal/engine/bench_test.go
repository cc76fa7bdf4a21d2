package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

const benchKeys = 1 << 20

func benchEngine(b *testing.B, shards int) (*engine.Engine, [][]byte) {
	b.Helper()
	e, _, err := engine.Open(engine.Options{
		Log: log.Options{FS: vfs.OS(), Dir: b.TempDir(), Shards: shards, Policy: log.EverySec},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(true); err != nil {
			b.Error(err)
		}
	})
	keys := make([][]byte, benchKeys)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key:%012d", i)
	}
	return e, keys
}

// client runs commands as a connection would, settling every 16.
type client struct {
	e *engine.Engine
	c *command.Ctx
	t engine.Ticket
	w resp.Writer
	n int
}

func newClient(e *engine.Engine) *client { return &client{e: e, c: e.NewCtx()} }

func (c *client) do(cmd *command.Command, args [][]byte) {
	c.c.Cmd, c.c.Args, c.c.W = cmd, args, &c.w
	c.e.Run(c.c, &c.t)
	if c.n++; c.n%16 == 0 {
		if _, err := c.e.Settle(&c.t); err != nil {
			panic(err)
		}
		c.t.Reset()
		c.w.Buf = c.w.Buf[:0]
	}
}

// BenchmarkCommand is the whole path of a command but the network: lock, plan, append, fold, reply,
// and a flush of the log every 16 commands, over 1M keys in random order.
func BenchmarkCommand(b *testing.B) {
	for _, shards := range []int{1, 2} {
		e, keys := benchEngine(b, shards)
		value := make([]byte, 64)
		c := newClient(e)
		set, get := command.Lookup([]byte("set")), command.Lookup([]byte("get"))
		for _, k := range keys {
			c.do(set, [][]byte{[]byte("SET"), k, value})
		}
		run := func(name string, cmd *command.Command, args [][]byte) {
			b.Run(fmt.Sprintf("%s/shards=%d", name, shards), func(b *testing.B) {
				b.ReportAllocs()
				rng := rand.New(rand.NewPCG(1, 2))
				for b.Loop() {
					args[1] = keys[rng.IntN(len(keys))]
					c.do(cmd, args)
				}
			})
		}
		run("GET", get, [][]byte{[]byte("GET"), nil})
		run("SET", set, [][]byte{[]byte("SET"), nil, value})
	}
}
