package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// stockSource is a source of three shards.
type stockSource struct {
	t  *testing.T
	fs vfs.FS
	e  *engine.Engine
	s  *Source
	n  int // markers written

	old bool // replicas don't know PSYNC2
}

func newStockSource(t *testing.T) *stockSource {
	t.Helper()
	x := &stockSource{t: t, fs: vfs.NewMem()}
	x.open()
	t.Cleanup(func() { _ = x.e.Close(false) })
	return x
}

func (x *stockSource) open() {
	x.t.Helper()
	var err error
	if x.e, _, err = engine.Open(engine.Options{Log: log.Options{FS: x.fs, Dir: "data", Shards: 3}}); err != nil {
		x.t.Fatal(err)
	}
	x.s = NewSource(x.e, x.fs, func() string { return strings.Repeat("a", 40) }, nil)
	if err := x.s.Recall(); err != nil {
		x.t.Error(err)
	}
}

// restart stops the source, cleanly or not, and starts it again.
func (x *stockSource) restart(clean bool) {
	x.t.Helper()
	if clean {
		if err := x.s.Remember(); err != nil {
			x.t.Error(err)
		}
	}
	if err := x.e.Close(clean); err != nil {
		x.t.Fatal(err)
	}
	x.open()
}

// write writes groups of all kinds, and a last one that lies on all shards.
func (x *stockSource) write(r *rand.Rand) {
	x.t.Helper()
	for range 60 {
		switch k := fmt.Sprint("k", r.IntN(20)); r.IntN(8) {
		case 0:
			run(x.t, x.e, "FLUSHALL")
		case 1, 2:
			run(x.t, x.e, "MSET", k, "1", k+"x", "2", k+"y", "3")
		default:
			run(x.t, x.e, "SET", k, strings.Repeat("v", r.IntN(200)))
		}
	}
	x.n++
	args := []string{"MSET"}
	for i := range 40 {
		args = append(args, fmt.Sprint("end", i), fmt.Sprint("marker", x.n))
	}
	run(x.t, x.e, args...)
}

// stockPeer takes what is sent to a stock replica.
type stockPeer struct {
	*Stock
	cancel context.CancelFunc
	err    chan error

	mu   sync.Mutex
	sent []byte
}

// serve begins to serve a replica that asks for a place in a stream. It acknowledges a copy once it has it.
func (x *stockSource) serve(id, port, replid string, offset int64) *stockPeer {
	ctx, cancel := context.WithCancel(x.t.Context())
	p := &stockPeer{cancel: cancel, err: make(chan error, 1)}
	p.Stock = x.s.NewStock(StockOptions{
		EOF: true, Host: "10.0.0.1", Port: port, ID: id, Replid: replid, Offset: offset, PSync2: !x.old, Timeout: time.Minute, Backlog: 1 << 20,
		Send: func(b []byte) error {
			p.mu.Lock()
			p.sent = append(p.sent, b...)
			p.mu.Unlock()
			if bytes.Equal(b, []byte(id)) {
				p.Ack(0)
			}
			return ctx.Err()
		},
	})
	x.t.Cleanup(p.end)
	go func() { p.err <- p.Serve(ctx) }()
	return p
}

// end ends the connection, and returns when nobody serves it.
func (p *stockPeer) end() {
	p.cancel()
	<-p.done
	p.Link().Close()
}

// until waits until what was sent is enough, and returns it.
func (p *stockPeer) until(t *testing.T, enough func(sent []byte) bool) []byte {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		sent := bytes.Clone(p.sent)
		p.mu.Unlock()
		if enough(sent) {
			return sent
		}
		if time.Now().After(end) {
			t.Fatalf("only %d bytes were sent: %.300q", len(sent), sent)
		}
	}
}

// marked reports whether all values of the last marker are there.
func (x *stockSource) marked(sent []byte) bool {
	want := fmt.Sprintf("marker%d\r\n", x.n)
	return bytes.Count(sent, []byte(want)) == 40 && bytes.HasSuffix(sent, []byte("EXEC\r\n"))
}

var stockID = strings.Repeat("1", 40)

// TestStockGoesOn: a stock replica gets the same stream from wherever it is in it, and what was written while it was away.
func TestStockGoesOn(t *testing.T) {
	x, r := newStockSource(t), rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	p := x.serve(stockID, "7000", "?", -2)
	p.until(t, func(sent []byte) bool { return bytes.HasSuffix(sent, []byte(words[saySelect])) })
	for range 5 { // over several turns
		x.write(r)
		p.until(t, x.marked)
	}
	p.end()
	_, line, _ := bytes.Cut(p.sent, []byte("$EOF:"+stockID)) // 40 characters, the copy, and they once more
	line = line[bytes.LastIndex(line, []byte(stockID))+len(stockID):]
	marks := len(x.s.streams[stockID].marks)
	for n := range 4 {
		for range 100 {
			at := r.IntN(len(line) + 1)
			want := append([]byte("+CONTINUE "+stockID+"\r\n"), line[at:]...)
			p := x.serve(id(n), "7000", stockID, int64(at))
			got := p.until(t, func(sent []byte) bool { return len(sent) >= len(want) })
			p.end()
			if !bytes.Equal(got, want) {
				t.Fatalf("from %d of %d on: %d bytes\n%.400q, want\n%.400q", at, len(line), len(got), got, want)
			}
		}
		x.write(r)
		p := x.serve(strings.Repeat("2", 40), "7000", stockID, int64(len(line)))
		got := p.until(t, x.marked)
		p.end()
		line = append(line, bytes.TrimPrefix(got, []byte("+CONTINUE "+stockID+"\r\n"))...)
		x.s.streams[stockID].join()
	}
	if n := len(x.s.streams[stockID].marks); n >= marks {
		t.Errorf("%d marks after they were joined, %d before", n, marks)
	}
	if full, resumed, refused := x.s.Counters(); full != 1 || resumed != 404 || refused != 0 {
		t.Errorf("%d copies, %d went on, %d could not", full, resumed, refused)
	}
	replay(t, line, x.e)
}

// replay has an empty store take a stream, which makes it equal to the source.
func replay(t *testing.T, line []byte, from *engine.Engine) {
	t.Helper()
	e, _, err := engine.Open(engine.Options{Log: log.Options{FS: vfs.NewMem(), Dir: "data", Shards: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(false) //nolint:errcheck // in memory
	for _, args := range requests(t, line) {
		switch args[0] {
		case "MULTI", "EXEC", "SELECT", "PING":
		default:
			run(t, e, args...)
		}
	}
	n, got := e.Digest()
	if m, want := from.Digest(); n != m || got != want {
		t.Errorf("the stream makes %d keys, %s; the source has %d, %s", n, got, m, want)
	}
}

// requests splits a stream.
func requests(t *testing.T, line []byte) (all [][]string) {
	t.Helper()
	in := resp.NewReader(new(resp.Limits))
	for len(line) > 0 || in.Buffered() > 0 {
		n := copy(in.Space(), line)
		in.Advance(n)
		line = line[n:]
		for {
			args, err := in.Next()
			if errors.Is(err, resp.ErrIncomplete) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			var own []string
			for _, a := range args {
				own = append(own, string(a))
			}
			all = append(all, own)
		}
		if n == 0 {
			break
		}
	}
	return all
}

func id(n int) string { return fmt.Sprintf("%040d", n) }

// copied waits until the replica has a copy.
func (p *stockPeer) copied(t *testing.T, what string) {
	t.Helper()
	sent := p.until(t, func(sent []byte) bool { return bytes.HasSuffix(sent, []byte(words[saySelect])) })
	if !bytes.HasPrefix(sent, []byte("+FULLRESYNC "+p.o.ID+" 0\r\n")) {
		t.Errorf("%s: %.100q", what, sent)
	}
}

// goesOn waits until the replica is told to go on in the stream it has asked for.
func (p *stockPeer) goesOn(t *testing.T, what string) {
	t.Helper()
	sent := p.until(t, func(sent []byte) bool { return len(sent) > 0 })
	if !bytes.HasPrefix(sent, []byte("+CONTINUE "+p.o.Replid+"\r\n")) {
		t.Errorf("%s: %.100q", what, sent)
	}
}

// TestStockStartsAnew: a replica that can't go on where it was is copied.
func TestStockStartsAnew(t *testing.T) {
	x, r := newStockSource(t), rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	p := x.serve(id(1), "7000", "?", -2)
	p.copied(t, "a new one")
	x.write(r)
	p.until(t, x.marked)
	end := x.s.streams[id(1)].end()
	other := x.serve(id(2), "7001", id(1), end)
	other.copied(t, "another one while the stream is served")
	other.end()
	again := x.serve(id(3), "7000", id(1), end)
	again.goesOn(t, "the same one, whose old connection nobody has seen end")
	if err := <-p.err; !errors.Is(err, context.Canceled) {
		t.Errorf("the old connection: %v", err)
	}
	again.end()
	p = x.serve(id(4), "7000", id(9), 0)
	p.copied(t, "an unknown stream")
	p.end()
	if x.s.streams[id(1)] != nil {
		t.Error("a copied replica's former stream is remembered")
	}
	for i, at := range []int64{-1, x.s.streams[id(4)].end() + 1} {
		p := x.serve(id(5+i), "7000", id(4+i), at)
		p.copied(t, fmt.Sprint("at ", at))
		p.end()
	}
	x.s.streams[id(6)].dir = nil
	p = x.serve(id(7), "7000", id(6), 0)
	p.copied(t, "when the log is another one")
}

// TestStockIsForgotten: the streams of replicas that are away are kept for a time, and not too many of them.
func TestStockIsForgotten(t *testing.T) {
	x := newStockSource(t)
	p := x.serve(id(1), "7000", "?", -2)
	p.copied(t, "a new one")
	p.end()
	x.s.ForgetStreams(time.Hour)
	p = x.serve(id(2), "7000", id(1), 0)
	p.goesOn(t, "away for less than an hour")
	x.s.ForgetStreams(0) // this one is there
	p.end()
	p = x.serve(id(3), "7000", id(1), 0)
	p.goesOn(t, "away once more")
	p.end()
	x.s.ForgetStreams(0)
	p = x.serve(id(4), "7000", id(1), 0)
	p.copied(t, "away for long")
	p.end()
	for i := range 2 * maxParked {
		p := x.serve(id(100+i), fmt.Sprint(8000+i), "?", -2)
		p.copied(t, "one of many")
		p.end()
	}
	if n := len(x.s.streams); n != maxParked {
		t.Errorf("%d streams are remembered of replicas that are away", n)
	}
}

// TestStockOverRestart: a replica goes on where it was when its source was restarted cleanly, in a stream that has another id from there on.
func TestStockOverRestart(t *testing.T) {
	x, r := newStockSource(t), rand.New(rand.NewPCG(5, 6)) //nolint:gosec // a test
	p := x.serve(id(1), "7000", "?", -2)
	p.copied(t, "a new one")
	for range 400 {
		run(t, x.e, "INCR", fmt.Sprint("n", r.IntN(9))) // many marks
	}
	x.write(r)
	p.until(t, x.marked)
	p.end()
	_, line, _ := bytes.Cut(p.sent, []byte(words[saySelect]))
	line = append([]byte(words[saySelect]), line...)
	for n := range 3 {
		x.restart(true)
		x.write(r)
		at := len(line) - r.IntN(2000)
		p = x.serve(id(2+n), "7000", id(1+n), int64(at))
		sent := p.until(t, x.marked)
		p.end()
		want := append([]byte("+CONTINUE "+id(2+n)+"\r\n"), line[at:]...)
		if !bytes.HasPrefix(sent, want) {
			t.Fatalf("%.300q, want %.300q", sent, want)
		}
		line = append(line, sent[len(want):]...)
	}
	replay(t, line, x.e)
	x.restart(true)
	x.restart(false)
	p = x.serve(id(6), "7000", id(4), int64(len(line)))
	p.copied(t, "after a stop that was not clean")
	p.end()
	x.restart(true)
	rec, err := vfs.ReadFile(x.fs, "data/"+streamsFile, maxStreams)
	if err == nil {
		t.Errorf("the record of the streams is left: %s", rec)
	}
	p = x.serve(id(7), "7000", id(4), 0)
	p.copied(t, "a stream that is not recorded")
}

// TestStockIsAsked: who waits for acknowledgements has a stock replica asked, behind what it is to confirm, once.
func TestStockIsAsked(t *testing.T) {
	x, r := newStockSource(t), rand.New(rand.NewPCG(7, 8)) //nolint:gosec // a test
	p := x.serve(id(1), "7000", "?", -2)
	p.copied(t, "a new one")
	for n := range 3 {
		x.write(r)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		reached := make(chan int, 1)
		go func() {
			n, _ := x.s.Await(ctx, x.s.Dismissed(), 1, x.s.Tails(), false)
			reached <- n
		}()
		count := func(sent []byte) int { return bytes.Count(sent, []byte(words[sayGetAck])) }
		sent := p.until(t, func(sent []byte) bool { return count(sent) == n+1 })
		before, _ := bytes.CutSuffix(sent, []byte(words[sayGetAck]))
		if !x.marked(before) {
			t.Errorf("it is asked before it has all: %.300q", before)
		}
		_, before, _ = bytes.Cut(before, []byte(words[saySelect]))
		end := int64(len(words[saySelect]) + len(before))
		p.Ack(end - 1) // not yet
		p.Ack(1 << 40) // it can't have that
		if n := x.s.Reached(x.s.Tails(), false); n != 0 {
			t.Errorf("%d replicas are said to have all", n)
		}
		run(t, x.e, "SET", "later", "1")
		p.until(t, func(sent []byte) bool { return bytes.HasSuffix(sent, []byte("later\r\n$1\r\n1\r\n")) })
		p.Ack(end)
		if got := <-reached; got != 1 {
			t.Errorf("%d replicas have all", got)
		}
		cancel()
		if p.mu.Lock(); count(p.sent) != n+1 {
			t.Errorf("asked %d times", count(p.sent)-n)
		}
		p.mu.Unlock()
	}
}

// TestStreamRecords: what is recorded of a stream is of no use to a replica that can't be told of another id, with another log, and when it was made by another version.
func TestStreamRecords(t *testing.T) {
	x := newStockSource(t)
	p := x.serve(id(6), "7000", "?", -2)
	p.copied(t, "a new one")
	run(t, x.e, "SET", "x", "1")
	p.until(t, func(sent []byte) bool { return bytes.Contains(sent, []byte("SET")) })
	p.end()
	x.restart(true)
	x.old = true
	p = x.serve(id(8), "7000", id(6), 0)
	p.copied(t, "that can't be told of another id")
	p.end()
	if err := x.s.Remember(); err != nil {
		t.Error(err)
	}
	all, err := vfs.TakeRecord[[]streamRecord](x.fs, "data/"+streamsFile, maxStreams)
	if err != nil || len(all) != 1 {
		t.Fatal(err, len(all))
	}
	strange := all[0]
	strange.ID, strange.Addr, strange.Marks = id(20), "10.0.0.1:7001", slices.Clone(strange.Marks)
	strange.Marks[len(strange.Marks)-1].Order = []byte{0, 99} // of another version
	all = append(all, strange)
	all[0].Sums = []int64{1, 2, 3} // the log has other frames
	if err := errors.Join(vfs.WriteRecord(x.fs, "data/"+streamsFile, all), x.e.Close(true)); err != nil {
		t.Error(err)
	}
	x.open()
	x.old = false
	p = x.serve(id(9), "7000", id(8), 0)
	p.copied(t, "whose frames are not those of the log")
	p.end()
	p = x.serve(id(21), "7001", id(20), 0)
	if err := <-p.err; err == nil || x.s.streams[id(21)] != nil {
		t.Errorf("a stream with words that are not known: %v", err)
	}
}

// TestStreamIsBounded: what is remembered of a stream is bounded, whatever its length.
func TestStreamIsBounded(t *testing.T) {
	const most = 64 << 10
	var st stream
	for i := range 3 * maxMarks {
		st.add(streamMark{offset: int64(i), at: make([]log.Cursor, 2), order: []byte{1, 1}}, most)
		if i := st.before(int64(i)); i != len(st.marks)-1 {
			t.Fatalf("before the end: mark %d of %d", i, len(st.marks))
		}
	}
	size := int64(0)
	for i := range st.marks {
		size += st.marks[i].size()
	}
	if size != st.size || size > most || len(st.marks) < 100 || st.end() != 3*maxMarks-1 || st.before(0) != -1 {
		t.Errorf("%d marks from %d to %d, %d bytes, which are %d", len(st.marks), st.marks[0].offset, st.end(), st.size, size)
	}
}

// TestStockCopyAmidATurn: a copy may begin when something is applied that is not in the file of the log yet.
func TestStockCopyAmidATurn(t *testing.T) {
	x := newStockSource(t)
	begin(t, x.e, "SET", "new", "value")
	p := x.serve(stockID, "7000", "?", -2)
	sent := p.until(t, func(sent []byte) bool { return bytes.HasSuffix(sent, []byte(words[saySelect])) })
	if !strings.Contains(string(sent), "new") {
		t.Errorf("%q", sent)
	}
}

// TestSyncNeedNotSpeak: a client of SYNC that says nothing more is not taken for gone.
func TestSyncNeedNotSpeak(t *testing.T) {
	long := &Link{src: newStockSource(t).s, acked: time.Now().Add(-time.Hour)}
	for sync, gone := range map[bool]bool{false: true, true: false} {
		k := &Stock{o: StockOptions{Sync: sync}, link: long}
		if got := k.silent() > time.Minute; got != gone {
			t.Errorf("sync %v: silent for %s", sync, k.silent())
		}
	}
}
