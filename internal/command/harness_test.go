package command

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/resp"
	"github.com/kevydb/kevy/state"
)

const testSeed = 7

// harness is the smallest engine: it plans, folds what was planned, and returns the reply.
type harness struct {
	t   testing.TB
	ctx Ctx
	w   resp.Writer
	did string // the effects of the last request
}

func newHarness(t testing.TB, shards int) *harness {
	h := &harness{t: t}
	h.ctx = Ctx{Now: 1_700_000_000_000, Seed: testSeed, W: &h.w}
	for range shards {
		h.ctx.Shards = append(h.ctx.Shards, state.New(testSeed))
	}
	t.Cleanup(func() {
		for _, ks := range h.ctx.Shards {
			if err := ks.Check(); err != nil {
				t.Errorf("keyspace after the test: %v", err)
			}
			ks.Release()
		}
	})
	return h
}

func words(s ...string) [][]byte {
	args := make([][]byte, len(s))
	for i := range s {
		args[i] = []byte(s[i])
	}
	return args
}

// run executes one request and returns its reply.
func (h *harness) run(args ...string) string { return h.exec(words(args...)) }

// plan plans one request, without folding.
func (h *harness) plan(args [][]byte) {
	h.w.Buf = h.w.Buf[:0]
	h.ctx.Reset()
	h.ctx.Args = args
	c, bad := Resolve(args)
	h.ctx.Cmd = c
	switch {
	case bad != "":
		h.w.Error(bad)
	case c.Plan == nil:
		h.w.Error("ERR no planner")
	default:
		c.Plan(&h.ctx)
	}
}

func (h *harness) exec(args [][]byte) string {
	h.plan(args)
	reply := string(h.w.Buf)
	planned := h.ctx.Planned()
	h.did = showEffects(planned) // before folding frees the bytes that effects alias
	if strings.HasPrefix(reply, "-") && len(planned) > 0 {
		h.t.Fatalf("%q: an error with effects: %s %s", args, reply, h.did)
	}
	if len(planned) > 0 && h.ctx.Cmd.Flags&Write == 0 {
		h.t.Fatalf("%q: not a write command, but effects: %s", args, h.did)
	}
	payloads := h.log(args)
	for i := range planned {
		h.fold(args, &planned[i], payloads[i])
	}
	return reply
}

// log encodes what was planned, as the engine does before it folds anything.
func (h *harness) log(args [][]byte) [][]byte {
	var out [][]byte
	for i := range h.ctx.Planned() {
		p := &h.ctx.Planned()[i]
		if err := p.Effect.Validate(); err != nil {
			h.t.Fatalf("%q: %v", args, err)
		}
		p.Effect.EachKey(func(key []byte) {
			if p.Shard != h.ctx.ShardOf(key) {
				h.t.Fatalf("%q: key %q planned on shard %d", args, key, p.Shard)
			}
		})
		payload, _ := effect.AppendPayload(nil, &p.Effect)
		out = append(out, payload)
	}
	return out
}

// fold folds one planned effect, after checking that its bytes are still those that were logged.
func (h *harness) fold(args [][]byte, p *Planned, logged []byte) {
	if now, _ := effect.AppendPayload(nil, &p.Effect); !bytes.Equal(now, logged) {
		h.t.Fatalf("%q: an earlier effect's fold changed %q into %q", args, logged, now)
	}
	for i, ks := range h.ctx.Shards {
		if p.Shard != i && p.Shard != AllShards {
			continue
		}
		change, err := ks.Fold(&p.Effect)
		p.Effect.EachKey(func(key []byte) {
			if e, ok := ks.Lookup(key); ok {
				ks.Touch(e, uint32(h.ctx.Now/1000))
			}
		})
		if err != nil {
			h.t.Fatalf("%q: fold: %v", args, err)
		}
		for _, m := range p.Marks {
			m.Set(ks, &p.Effect)
		}
		if p.Effect.Op == effect.Del && change.Removed != len(p.Effect.Args) {
			h.t.Fatalf("%q: %q names %d keys, %d were there", args, logged, len(p.Effect.Args), change.Removed)
		}
	}
}

// showEffects shows what is planned: "SET a 1; DEL b".
func showEffects(planned []Planned) string {
	var all []string
	for _, p := range planned {
		line := p.Effect.Op.String()
		for _, a := range p.Effect.Args {
			line += " " + string(a)
		}
		if p.Expired {
			line += " (expired)"
		}
		all = append(all, line)
	}
	return strings.Join(all, "; ")
}

// digest is the state of all shards, whatever their deadlines.
func (h *harness) digest() string {
	var keys int
	var sum uint64
	for _, ks := range h.ctx.Shards {
		n, d := ks.Digest(nil, 0)
		keys, sum = keys+n, sum+d
	}
	return fmt.Sprint(keys, " ", sum)
}

// oneReply checks that b is exactly one well-formed RESP value.
func oneReply(b []byte) error {
	rest, err := skipReply(b)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes behind the reply", len(rest))
	}
	return err
}

func skipReply(b []byte) ([]byte, error) {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 1 {
		return nil, fmt.Errorf("no line in %.40q", b)
	}
	line, rest := b[1:end], b[end+2:]
	n, intErr := strconv.Atoi(string(line))
	switch b[0] {
	case '+', '-', ',':
		if bytes.ContainsAny(line, "\r\n") {
			return nil, fmt.Errorf("line break in %.40q", line)
		}
		return rest, nil
	case ':':
		return rest, intErr
	case '_', '#':
		return rest, nil
	case '$', '=':
		if intErr != nil || n < 0 {
			return rest, intErr
		}
		if len(rest) < n+2 || string(rest[n:n+2]) != "\r\n" {
			return nil, fmt.Errorf("short bulk %.40q", b)
		}
		return rest[n+2:], nil
	case '*', '~', '>', '%':
		if b[0] == '%' {
			n *= 2
		}
		for ; n > 0 && intErr == nil; n-- {
			rest, intErr = skipReply(rest)
		}
		return rest, intErr
	}
	return nil, fmt.Errorf("unknown reply %.40q", b)
}
