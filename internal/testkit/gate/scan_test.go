package gate

import (
	"bytes"
	"context"
	"strconv"
	"testing"

	"github.com/kevydb/kevy/internal/feed"
	"github.com/kevydb/kevy/internal/testkit/wire"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/resp"
	"github.com/kevydb/kevy/state"
)

// scanner copies a store as the contract tells consumers to: a cursor, all chunks of FEED.SCAN, while commands run between
// them, and then the feed from that cursor, without the frames of a key that are older than its chunk.
type scanner struct {
	t      *testing.T
	s      *Store
	feed   *feed.Feed
	shards []shardScan
}

// shardScan is the copy of one shard.
type shardScan struct {
	ks     *state.Keyspace
	from   log.Cursor
	next   string
	done   bool
	chunks []scanned
}

// scanned is a chunk: keys from the previous one's end to its own are as they were at offset.
type scanned struct {
	end    string // empty: no end
	offset uint64
}

func newScanner(t *testing.T, s *Store) *scanner {
	sc := &scanner{t: t, s: s, shards: make([]shardScan, s.E.Shards())}
	sc.feed = feed.New(s.E.DirAfter, true, func(shard int) { _ = s.E.Flush(shard) })
	for i := range sc.shards {
		sc.begin(i)
	}
	return sc
}

// begin starts a shard's copy, again if it had begun.
func (sc *scanner) begin(i int) {
	sc.release(i)
	sc.shards[i] = shardScan{ks: state.New(sc.s.E.Seed()), from: sc.s.E.Dir().Log(i).Tail()}
}

func (sc *scanner) release(i int) {
	if ks := sc.shards[i].ks; ks != nil {
		ks.Release()
	}
}

// step takes one more key of each shard.
func (sc *scanner) step() {
	sc.t.Helper()
	for i := range sc.shards {
		if !sc.shards[i].done {
			sc.chunk(i)
		}
	}
}

// ask returns the reply of a command of the feed.
func (sc *scanner) ask(run func(args [][]byte, w *resp.Writer), args ...string) wire.Reply {
	sc.t.Helper()
	var w resp.Writer
	run(wire.Bytes(args...), &w)
	replies, err := wire.Parse(w.Buf)
	if err != nil || len(replies) != 1 || replies[0].IsError() {
		sc.t.Fatalf("%q: %q, %v", args, w.Buf, err)
	}
	return replies[0]
}

func (sc *scanner) number(r *wire.Reply) uint64 {
	sc.t.Helper()
	n, err := strconv.ParseUint(string(r.Str), 10, 64)
	if err != nil {
		sc.t.Fatal(err)
	}
	return n
}

func (sc *scanner) chunk(i int) {
	sc.t.Helper()
	sh := &sc.shards[i]
	r := sc.ask(func(args [][]byte, w *resp.Writer) {
		sc.feed.Scan(args, w, func(shard int) (feed.Frozen, error) { return sc.s.E.Freeze(nil, shard) })
	}, "FEED.SCAN", strconv.Itoa(i), sh.next, "COUNT", "1")
	if gen := sc.number(&r.Elems[0]); gen != sh.from.Generation {
		sc.begin(i) // a FLUSHALL between the chunks
		return
	}
	for j := range r.Elems[3].Elems {
		sc.fold(sh.ks, effectOf(sc.t, &r.Elems[3].Elems[j]))
	}
	sh.next = string(r.Elems[2].Str)
	sh.done = sh.next == ""
	sh.chunks = append(sh.chunks, scanned{end: sh.next, offset: sc.number(&r.Elems[1])})
}

func (sc *scanner) fold(ks *state.Keyspace, e effect.Effect) {
	sc.t.Helper()
	if _, err := ks.Fold(&e); err != nil {
		sc.t.Error(err)
	}
}

func effectOf(t *testing.T, argv *wire.Reply) effect.Effect {
	t.Helper()
	var words [][]byte
	for i := range argv.Elems {
		words = append(words, argv.Elems[i].Str)
	}
	e, err := effect.FromArgv(words)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// finish scans what is left, folds the feed and compares.
func (sc *scanner) finish(live point) {
	sc.t.Helper()
	var sum total
	for i := range sc.shards {
		sh := &sc.shards[i]
		if sh.from.Generation != live.cursors[i].Generation {
			sc.begin(i) // FEEDRESYNC
		}
		for !sh.done {
			sc.chunk(i)
		}
		sc.follow(i)
		sum.add(sh.ks.Digest(nil, live.ms))
		sum.libraries += librariesOf(sh.ks.Libraries())
		if err := sh.ks.Check(); err != nil {
			sc.t.Error(err)
		}
		sc.release(i)
	}
	if got := sum.String(); got != live.digest || sum.libraries != live.libraries {
		sc.t.Errorf("scanned, and the feed folded: %q, %q; live %q, %q", got, sum.libraries, live.digest, live.libraries)
	}
}

// follow folds the feed of a shard from the cursor that was taken first.
func (sc *scanner) follow(i int) {
	sc.t.Helper()
	sh := &sc.shards[i]
	for at := sh.from; ; {
		r := sc.ask(func(args [][]byte, w *resp.Writer) { sc.feed.Read(context.Background(), args, w, false) },
			"FEED.READ", strconv.Itoa(i), strconv.FormatUint(at.Generation, 10), strconv.FormatUint(at.Offset, 10))
		at = log.Cursor{Generation: sc.number(&r.Elems[0]), Offset: sc.number(&r.Elems[1])}
		for j := range r.Elems[2].Elems {
			f := &r.Elems[2].Elems[j]
			sh.frame(sc, sc.number(&f.Elems[0]), effectOf(sc.t, &f.Elems[1]))
		}
		if len(r.Elems[2].Elems) == 0 {
			return
		}
	}
}

// frame folds a frame for the keys whose chunks are not newer.
func (sh *shardScan) frame(sc *scanner, offset uint64, e effect.Effect) {
	sc.t.Helper()
	one := func(key []byte, e effect.Effect) {
		if sh.chunkOf(key) <= offset {
			sc.fold(sh.ks, e)
		}
	}
	key, single := e.SingleKey()
	switch layout := e.Op.Keys(); {
	case single:
		one(key, e)
	case layout == effect.Keyless:
		one(nil, e) // the libraries came with the first chunk
	case layout == effect.AllKeys:
		for _, k := range e.Args {
			one(k, effect.Effect{Op: e.Op, Args: [][]byte{k}})
		}
	case layout == effect.PairKeys:
		for i := 0; i < len(e.Args); i += 2 {
			one(e.Args[i], effect.Effect{Op: e.Op, Args: e.Args[i : i+2]})
		}
	default:
		sc.t.Errorf("%s in a generation that goes on", e.Op)
	}
}

// chunkOf returns the offset of the chunk that a key belongs to.
func (sh *shardScan) chunkOf(key []byte) uint64 {
	for _, c := range sh.chunks {
		if c.end == "" || bytes.Compare(key, []byte(c.end)) < 0 {
			return c.offset
		}
	}
	return 0
}
