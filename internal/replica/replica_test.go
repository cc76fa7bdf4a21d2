package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

func TestCompare(t *testing.T) {
	create := log.Lineage{Generation: 10, Cause: log.CauseCreate}
	flush := log.Lineage{Generation: 20, Cause: log.CauseFlush, Parent: 10, ParentOffset: 100}
	promoted := log.Lineage{Generation: 30, Cause: log.CausePromotion, Parent: 20, ParentOffset: 50}
	crashed := log.Lineage{Generation: 25, Cause: log.CauseCrash, Parent: 20, ParentOffset: 40}
	other := log.Lineage{Generation: 20, Cause: log.CauseFlush, Parent: 10, ParentOffset: 99}
	at := func(g, o uint64) log.Cursor { return log.Cursor{Generation: g, Offset: o} }
	for _, c := range []struct {
		name   string
		own    []log.Lineage
		tail   log.Cursor
		theirs []log.Lineage
		end    log.Cursor
		want   log.Cursor
		ok     bool
	}{
		{"equal", []log.Lineage{create}, at(10, 7), []log.Lineage{create}, at(10, 7), at(10, 7), true},
		{"behind", []log.Lineage{create}, at(10, 6), []log.Lineage{create}, at(10, 7), at(10, 6), true},
		{"ahead", []log.Lineage{create}, at(10, 8), []log.Lineage{create}, at(10, 7), at(10, 7), true},
		{"at the fork", []log.Lineage{create}, at(10, 100), []log.Lineage{create, flush}, at(20, 3), at(10, 100), true},
		{"behind the fork", []log.Lineage{create}, at(10, 101), []log.Lineage{create, flush}, at(20, 3), at(10, 100), true},
		{"a generation ahead", []log.Lineage{create, flush}, at(20, 3), []log.Lineage{create}, at(10, 100), at(10, 100), true},
		{"both forked", []log.Lineage{create, flush, crashed}, at(25, 9), []log.Lineage{create, flush, promoted}, at(30, 9), at(20, 40), true},
		{"both forked, the other way", []log.Lineage{create, flush, promoted}, at(30, 9), []log.Lineage{create, flush, crashed}, at(25, 9), at(20, 40), true},
		{"same offsets, other history", []log.Lineage{create, flush}, at(20, 5), []log.Lineage{create, other}, at(20, 5), at(10, 99), true},
		{"nothing in common", []log.Lineage{{Generation: 9}}, at(9, 5), []log.Lineage{create}, at(10, 5), log.Cursor{}, false},
		{"trimmed", []log.Lineage{create, flush}, at(20, 5), []log.Lineage{flush, promoted}, at(30, 0), at(20, 5), true},
	} {
		got, ok := compare(c.own, c.tail, c.theirs, c.end)
		if got != c.want || ok != c.ok {
			t.Errorf("%s: %v %v, want %v %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

// source opens an engine with one shard that has a generation of 11 frames (10 SETs and a FLUSHALL) and one of 5.
func source(t *testing.T) (*engine.Engine, *Source) {
	t.Helper()
	e, s := sourceOf(t, 1)
	for i := range 15 {
		if i == 10 {
			run(t, e, "FLUSHALL")
		}
		run(t, e, "SET", fmt.Sprint("k", i), "v")
	}
	return e, s
}

// sourceOf opens an engine.
func sourceOf(t *testing.T, shards int) (*engine.Engine, *Source) {
	t.Helper()
	fs := vfs.NewMem()
	e, _, err := engine.Open(engine.Options{Log: log.Options{FS: fs, Dir: "data", Shards: shards}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(false) })
	return e, NewSource(e, fs, func() string { return strings.Repeat("a", 40) }, nil)
}

func run(t *testing.T, e *engine.Engine, args ...string) {
	t.Helper()
	if err := e.Await(begin(t, e, args...)); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// begin runs a command and returns what its reply has to wait for, as amid the turn of a loop.
func begin(t *testing.T, e *engine.Engine, args ...string) *engine.Ticket {
	t.Helper()
	c, w, ticket := e.NewCtx(), new(resp.Writer), new(engine.Ticket)
	for _, a := range args {
		c.Args = append(c.Args, []byte(a))
	}
	c.W = w
	c.Cmd, _ = command.Resolve(c.Args)
	e.Run(c, ticket)
	if w.Buf[0] == '-' {
		t.Fatalf("%v: %q", args, w.Buf)
	}
	return ticket
}

func (s *Source) link(t *testing.T) *Link {
	t.Helper()
	args := [][]byte{[]byte("REPL.HELLO"), fmt.Append(nil, Format), fmt.Append(nil, s.eng.Shards()), []byte(strings.Repeat("b", 40)), []byte("7000"), nil}
	k, _, err := s.Hello(args, "10.0.0.1", func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

func (k *Link) at(generation, offset uint64) string {
	args := [][]byte{[]byte("1000000"), []byte("0"), fmt.Append(nil, generation), fmt.Append(nil, offset)}
	var w resp.Writer
	k.Pull(context.Background(), args, &w)
	if len(w.Buf) > 0 && w.Buf[0] == '-' {
		return strings.Fields(string(w.Buf))[0]
	}
	var b strings.Builder
	for i := range k.parts {
		fmt.Fprintf(&b, "%d+%d..%d ", k.parts[i].gen.Generation, k.parts[i].offset, k.parts[i].next)
	}
	return strings.TrimSpace(b.String())
}

// TestPullBoundaries asks at every kind of cursor, each with a link of its own and with one that has been elsewhere.
func TestPullBoundaries(t *testing.T) {
	e, s := source(t)
	lin := e.Dir().Lineage(0)
	g1, g2 := lin[0].Generation, lin[1].Generation
	moved := s.link(t)
	for _, c := range []struct {
		gen, off uint64
		want     string
	}{
		{g1, 0, fmt.Sprintf("%d+0..11 %d+0..5", g1, g2)},
		{g1, 10, fmt.Sprintf("%d+10..11 %d+0..5", g1, g2)},
		{g1, 11, fmt.Sprintf("%d+0..5", g2)}, // the fork
		{g1, 12, "-NOFRAMES"},
		{g2, 0, fmt.Sprintf("%d+0..5", g2)},
		{g2, 4, fmt.Sprintf("%d+4..5", g2)},
		{g2, 5, ""},
		{g2, 6, "-NOFRAMES"},
		{g2, ^uint64(0), "-NOFRAMES"},
		{g1 - 1, 0, "-NOFRAMES"},
		{g2 + 1, 0, "-NOFRAMES"},
		{0, 0, ""}, // left out
		{^uint64(0), ^uint64(0), "-NOFRAMES"},
	} {
		if got := s.link(t).at(c.gen, c.off); got != c.want {
			t.Errorf("%d:%d: %s, want %s", c.gen, c.off, got, c.want)
		}
		if got := moved.at(c.gen, c.off); got != c.want {
			t.Errorf("%d:%d by a link that moves: %s, want %s", c.gen, c.off, got, c.want)
		}
	}
	run(t, e, "FLUSHALL")
	lin = e.Dir().Lineage(0)
	if got, want := s.link(t).at(g2, 5), fmt.Sprintf("%d+5..6 %d+0..0", g2, lin[2].Generation); got != want {
		t.Errorf("a generation without frames: %s, want %s", got, want)
	}
	if got, want := s.link(t).at(g2, 6), fmt.Sprintf("%d+0..0", lin[2].Generation); got != want {
		t.Errorf("a generation without frames, at its fork: %s, want %s", got, want)
	}
}

// TestReplacedSinceHello: a log that took the place of the one that HELLO told of has other frames, or fewer. A follower that asks it for
// frames is told to connect again, not that it needs a full copy.
func TestReplacedSinceHello(t *testing.T) {
	e, s := source(t)
	g2 := e.Dir().Lineage(0)[1].Generation
	asked, fresh := s.link(t), s.link(t)
	if got := asked.at(g2, 5); got != "" {
		t.Fatal(got)
	}
	if err := e.Follow(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Rewind([]log.Cursor{{Generation: g2, Offset: 3}}); err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]*Link{"a link that has asked": asked, "one that has not": fresh} {
		if got := k.at(g2, 5); got != "-ERR" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := s.link(t).at(g2, 3); got != "" {
		t.Errorf("after connecting again: %s", got)
	}
}

// TestEmptyGenerations: generations without frames are told one by one.
func TestEmptyGenerations(t *testing.T) {
	e, s := source(t)
	g2 := e.Dir().Lineage(0)[1].Generation
	for range 2 {
		if err := errors.Join(e.Follow(), e.Promote()); err != nil {
			t.Fatal(err)
		}
	}
	lin := e.Dir().Lineage(0)
	want := fmt.Sprintf("%d+0..0 %d+0..0", lin[2].Generation, lin[3].Generation)
	if got := s.link(t).at(g2, 5); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	run(t, e, "SET", "x", "1")
	want = fmt.Sprintf("%d+3..5 %d+0..0 %d+0..1", g2, lin[2].Generation, lin[3].Generation)
	if got := s.link(t).at(g2, 3); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestAcks: what is no part of the history counts for nothing, and what was applied before a new generation counts there.
func TestAcks(t *testing.T) {
	e, s := source(t)
	k := s.link(t)
	lin := e.Dir().Lineage(0)
	g1, g2 := lin[0].Generation, lin[1].Generation
	ack := func(gen, applied, durable uint64) error {
		return s.Ack([][]byte{nil, []byte(k.id), fmt.Append(nil, gen), fmt.Append(nil, applied), fmt.Append(nil, durable), fmt.Append(nil, gen), fmt.Append(nil, applied)})
	}
	to := s.Tails()
	reached := func(what string, applied, durable int) {
		t.Helper()
		if a, d := s.Reached(to, false), s.Reached(to, true); a != applied || d != durable {
			t.Errorf("%s: %d applied, %d durable, want %d and %d", what, a, d, applied, durable)
		}
	}
	reached("before any", 0, 0)
	for _, bad := range [][3]uint64{{g2, 6, 0}, {g1, 12, 0}, {g2 + 1, 0, 0}, {g2, 3, 4}, {0, 0, 0}} {
		if ack(bad[0], bad[1], bad[2]) == nil {
			t.Errorf("acknowledged %v", bad)
		}
	}
	reached("after bad ones", 0, 0)
	for _, c := range []struct {
		gen, applied, durable uint64
		n, d                  int
	}{{g1, 11, 11, 0, 0}, {g2, 4, 4, 0, 0}, {g2, 5, 4, 1, 0}, {g2, 5, 5, 1, 1}} {
		if err := ack(c.gen, c.applied, c.durable); err != nil {
			t.Fatal(err)
		}
		reached(fmt.Sprint(c), c.n, c.d)
	}
	run(t, e, "FLUSHALL")
	g3 := e.Dir().Lineage(0)[2].Generation
	if err := ack(g3, 0, 0); err != nil {
		t.Fatal(err)
	}
	reached("in the next generation", 1, 1)
	to = s.Tails()
	reached("at its beginning", 1, 1)
	run(t, e, "SET", "x", "1")
	to = s.Tails()
	reached("behind its first frame", 0, 0)
	k.Close()
	to = nil
	reached("when the replica has gone", 0, 0)
}

// TestAckAmidFlush: a generation that begins just then leaves an acknowledgement as good as it was.
func TestAckAmidFlush(t *testing.T) {
	e, s := sourceOf(t, 1)
	k := s.link(t)
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		for range 200 {
			run(t, e, "FLUSHALL")
		}
	}()
	for {
		select {
		case <-flushed:
			return
		default:
		}
		at := s.Tails()[0]
		gen, off := fmt.Append(nil, at.Generation), fmt.Append(nil, at.Offset)
		if err := s.Ack([][]byte{nil, []byte(k.id), gen, off, off, gen, off}); err != nil {
			t.Error(err)
			<-flushed
		}
	}
}
