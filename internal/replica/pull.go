package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// part is a run of raw frames of one generation.
type part struct {
	shard  int
	gen    log.Lineage
	offset uint64
	next   uint64
	raw    []byte
}

// Pull answers REPL.PULL: args are the most bytes, the most ms to wait, and a cursor for each shard. It waits until there is something to send, the time is
// over or ctx ends.
func (k *Link) Pull(ctx context.Context, args [][]byte, w *resp.Writer) {
	if err := k.pull(ctx, args, w); err != nil {
		k.closeReaders()
		w.Error(err.Error())
	}
}

func (k *Link) pull(ctx context.Context, args [][]byte, w *resp.Writer) error {
	n, err := uints(args)
	if err != nil {
		return err
	}
	eng := k.src.eng
	if len(n) != 2+2*eng.Shards() {
		return fmt.Errorf("ERR REPL.PULL with %d numbers for %d shards", len(n), eng.Shards())
	}
	at := make([]log.Cursor, eng.Shards())
	for i := range at {
		at[i] = log.Cursor{Generation: n[2+2*i], Offset: n[3+2*i]}
	}
	dir := eng.Dir()
	if err := k.place(dir, at); err != nil {
		return err
	}
	if !k.begun && !k.full {
		k.src.resumed.Add(1)
	}
	k.begun = true
	limit := time.NewTimer(time.Duration(min(n[1], 60_000)) * time.Millisecond) //nolint:gosec // bounded
	defer limit.Stop()
	for {
		cut, moved := k.src.cut() // before the frames are collected, so that it is in the reply, but for what is too much for one
		size, err := k.collect(int(min(n[0], maxReply)), at)
		if err != nil {
			return err
		}
		if size > 0 || len(k.parts) > 0 || k.news(cut, at) || !k.wait(ctx, limit.C, at, moved) {
			k.told = cut
			break
		}
	}
	k.write(w, dir)
	return nil
}

// cut takes a cut: a cursor for each shard, all that is before it visible. Of two cuts, whoever they were taken for, one is before the other on every shard. A
// store that follows another one takes none of its own and returns the newest that it holds; moved, if not nil, is closed when there is a newer one. Read-only.
func (s *Source) cut() (at []log.Cursor, moved <-chan struct{}) {
	if s.eng.Shards() > 1 {
		if at, moved = s.eng.HeldCut(); at != nil {
			return at, moved
		}
	}
	s.cutting.Lock()
	defer s.cutting.Unlock()
	dir := s.eng.Dir()
	at = make([]log.Cursor, dir.Shards())
	for i := range at {
		at[i] = dir.Log(i).VisibleTail()
	}
	return at, moved
}

// news reports whether a cut is worth a reply without frames: another one than the follower knows. While it leaves out shards it is far from any.
func (k *Link) news(cut, at []log.Cursor) bool {
	return !slices.Equal(cut, k.told) && !slices.ContainsFunc(at, func(c log.Cursor) bool { return c.Generation == 0 })
}

// errReplaced is the answer to who goes on with a log in whose place there is another one.
var errReplaced = errors.New("ERR the log of this server is another one now: connect again")

// errRenamed is the answer when the replication id has changed, with the role, since the replica was told.
var errRenamed = errors.New("ERR this server has another replication id now: connect again")

// place has a reader at each cursor, but for those of generation 0.
func (k *Link) place(dir *log.Dir, at []log.Cursor) error {
	if k.dir != dir { // what HELLO told is true no more
		return errReplaced
	}
	if k.src.id() != k.history {
		return errRenamed
	}
	if k.readers == nil {
		k.readers = make([]*log.Reader, len(at))
	}
	for i, c := range at {
		r := k.readers[i]
		if c.Generation == 0 || r != nil && r.Cursor() == c {
			continue
		}
		if r != nil {
			r.Close()
			k.readers[i] = nil
		}
		r, err := dir.Log(i).NewReader(c, log.ReaderOptions{Follow: true})
		if err != nil {
			return fmt.Errorf("%w: shard %d at %s: %w", errNoFrames, i, c, err)
		}
		k.readers[i] = r
	}
	return nil
}

// collect gathers the parts of a reply and returns how many bytes of frames they have.
func (k *Link) collect(most int, at []log.Cursor) (size int, err error) {
	k.parts = k.parts[:0]
	each := max(most/len(k.readers), 16<<10)
	for i := range k.readers {
		if at[i].Generation == 0 {
			continue
		}
		n, err := k.gather(i, at[i].Generation, each)
		if err != nil {
			return 0, err
		}
		size += n
	}
	return size, nil
}

// gather takes frames of a shard, whole groups until there are about most bytes. at is the generation that the follower is in.
func (k *Link) gather(i int, at uint64, most int) (size int, err error) {
	r, first := k.readers[i], len(k.parts)
	for {
		raw, c, whole, err := r.NextRaw(most - size)
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, log.ErrClosed) {
			return size, errReplaced
		}
		if err != nil {
			return size, fmt.Errorf("%w: shard %d at %s: %w", errNoFrames, i, r.Cursor(), err)
		}
		if len(k.parts) == first || at != c.Generation {
			k.begin(i, at, c)
			at = c.Generation
		}
		p := &k.parts[len(k.parts)-1]
		p.raw = append(p.raw, raw...)
		p.next = r.Cursor().Offset
		size += len(raw)
		if whole && size >= most || size >= maxReply {
			return size, nil
		}
	}
	if c := r.Cursor(); c.Generation != at && !k.begins(i, c) {
		k.begin(i, at, c) // nothing is in it yet
	}
	return size, nil
}

// begins reports whether there are frames at a cursor that are not visible yet. At the beginning of a generation they may be what a transaction has done
// behind the FLUSHALL that ended the one before: the follower must not hear of the generation without them. The shards' locks, which such a
// transaction holds, tell.
func (k *Link) begins(i int, c log.Cursor) bool {
	_, tails := k.src.eng.Tails()
	return tails[i].Generation == c.Generation && tails[i].Offset > c.Offset
}

// begin adds an empty part for a cursor, behind one for each generation between that and another one: those have no frames.
func (k *Link) begin(shard int, after uint64, c log.Cursor) {
	for _, g := range k.dir.Lineage(shard) {
		switch {
		case g.Generation == c.Generation:
			k.add(part{shard: shard, gen: g, offset: c.Offset, next: c.Offset})
		case after < g.Generation && g.Generation < c.Generation:
			k.add(part{shard: shard, gen: g})
		}
	}
}

func (k *Link) add(p part) {
	if n := len(k.parts); n < cap(k.parts) {
		p.raw = k.parts[:n+1][n].raw[:0] // of an earlier reply
	}
	k.parts = append(k.parts, p)
}

// wait waits until there may be more, and reports whether to look.
func (k *Link) wait(ctx context.Context, limit <-chan time.Time, at []log.Cursor, moved <-chan struct{}) bool {
	ready := make(chan struct{}, 1)
	for i, r := range k.readers {
		if at[i].Generation == 0 {
			continue
		}
		defer r.OnAdvance(func() {
			select {
			case ready <- struct{}{}:
			default:
			}
		})()
	}
	select {
	case <-ready:
		k.linger(ctx)
		return k.src.eng.Err() == nil
	case <-moved:
		return true
	case <-limit:
	case <-ctx.Done():
	}
	return false
}

// lingerTime is how long a reply that was waited for is put off, for more to be in it. A writer that is busy brings the first frames within
// microseconds, and as many replies as turns cost it a tenth more CPU (docs/benchmarks.md).
const lingerTime = time.Millisecond

// linger lets frames gather, but not while somebody waits for replicas to have them.
func (k *Link) linger(ctx context.Context) {
	k.src.mu.Lock()
	awaited, urged := k.src.awaited, k.src.urged
	k.src.mu.Unlock()
	if awaited > 0 {
		return
	}
	t := time.NewTimer(k.src.linger)
	defer t.Stop()
	select {
	case <-t.C:
	case <-urged:
	case <-ctx.Done():
	}
}

// partOverhead is more than what a part takes in a reply beyond its frames.
const partOverhead = 256

// write makes the reply, in a buffer of its size.
func (k *Link) write(w *resp.Writer, dir *log.Dir) {
	size := partOverhead * (1 + dir.Shards())
	for i := range k.parts {
		size += partOverhead + len(k.parts[i].raw)
	}
	w.Buf = append(resp.TakeBuffer(size), w.Buf...)
	w.Array(2)
	w.Array(1 + 4*dir.Shards())
	w.Int(k.src.eng.Now())
	for i := range dir.Shards() {
		l := dir.Log(i)
		c := l.Tail()
		w.Uint(c.Generation)
		w.Uint(c.Offset)
	}
	for _, c := range k.told {
		w.Uint(c.Generation)
		w.Uint(c.Offset)
	}
	w.Array(len(k.parts))
	for i := range k.parts {
		p := &k.parts[i]
		w.Array(9)
		w.Int(int64(p.shard))
		w.Uint(p.gen.Generation)
		w.Uint(uint64(p.gen.Cause))
		w.Uint(p.gen.Parent)
		w.Uint(p.gen.ParentOffset)
		w.Int(p.gen.TimeMS)
		w.Uint(p.offset)
		w.Uint(p.next)
		w.Bulk(p.raw)
		if cap(p.raw) > maxPiece {
			p.raw = nil
		}
	}
}
