package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// Feed serves the logs of a directory. All methods are safe for concurrent use; none takes a
// shard lock.
type Feed struct {
	dirNow  func(after *log.Dir) *log.Dir
	enabled bool
	flush   func(shard int)

	consumers atomic.Int64
	blocked   atomic.Int64
	frames    atomic.Uint64
	resyncs   atomic.Uint64
}

// New returns the feed of the directory that dir returns; given a closed one, it returns the one in its place, if there is one. flush is called before a read, so that what has been appended
// becomes visible as far as the policy allows; it must not need a shard lock.
func New(dir func(after *log.Dir) *log.Dir, enabled bool, flush func(shard int)) *Feed {
	return &Feed{dirNow: dir, enabled: enabled, flush: flush}
}

func (f *Feed) dir() *log.Dir { return f.dirNow(nil) }

// Enabled reports whether the feed may be read.
func (f *Feed) Enabled() bool { return f.enabled }

// Counters tells the reads under way, those waiting, and the frames and resyncs served so far.
func (f *Feed) Counters() (reading, blocked int64, frames, resyncs uint64) {
	return f.consumers.Load(), f.blocked.Load(), f.frames.Load(), f.resyncs.Load()
}

// Shards answers FEED.SHARDS.
func (f *Feed) Shards(w *resp.Writer) { w.Int(int64(f.dir().Shards())) }

// Tail answers FEED.TAIL; pending (may be nil) counts frames that the transaction it runs in
// has planned for the shard. REQUIRES: len(args) == 2.
func (f *Feed) Tail(args [][]byte, w *resp.Writer, pending func(shard int) uint64) {
	l, shard, err := f.shard(args[1])
	if err != nil {
		w.Error(err.Error())
		return
	}
	c := l.Tail()
	if pending != nil {
		c.Offset += pending(shard)
	}
	w.Array(2)
	w.Uint(c.Generation)
	w.Uint(c.Offset)
}

func (f *Feed) shard(arg []byte) (*log.Log, int, error) {
	n, err := unsigned(arg, errShard)
	if err != nil {
		return nil, 0, err
	}
	if err := f.check(n); err != nil {
		return nil, 0, err
	}
	return f.dir().Log(int(n)), int(n), nil
}

func (f *Feed) check(shard uint64) error {
	if shard >= uint64(f.dir().Shards()) {
		return errShardRange
	}
	if !f.enabled {
		return ErrDisabled
	}
	return nil
}

// ErrTimeUp is the cause of a context whose end ends a wait as if its time had run out.
var ErrTimeUp = errors.New("feed: the time is up")

// Read answers FEED.READ. With BLOCK it waits until ctx ends; mayBlock false (inside MULTI and
// scripts) answers at once. REQUIRES: len(args) >= 4.
func (f *Feed) Read(ctx context.Context, args [][]byte, w *resp.Writer, mayBlock bool) {
	start := len(w.Buf)
	if err := f.read(ctx, args, w, mayBlock); err != nil {
		w.Buf = w.Buf[:start]
		w.Error(f.reply(err))
	}
}

// reply words an error of the reader for the wire.
func (f *Feed) reply(err error) string {
	var resync *log.ResyncError
	var own Error
	switch {
	case errors.As(err, &resync):
		f.resyncs.Add(1)
		return fmt.Sprintf("FEEDRESYNC %d %d", resync.Generation, resync.Tail)
	case errors.Is(err, log.ErrAhead):
		return errAhead.Error()
	case errors.As(err, &own):
		return own.Error()
	case errors.Is(err, log.ErrClosed):
		return errStoreClosed.Error()
	}
	return "ERR reading the log: " + err.Error()
}

func (f *Feed) read(ctx context.Context, args [][]byte, w *resp.Writer, mayBlock bool) error {
	req, err := ParseRead(args)
	if err != nil {
		return err
	}
	if !mayBlock {
		req.Block = -1
	}
	b := newBatch(w, &req)
	next, err := f.Since(ctx, &req, b)
	if err != nil {
		return err
	}
	b.finish(next)
	return nil
}

// Sink takes the frames of one read.
type Sink interface {
	// Add is called with frames from the cursor on: with all that pass the filter, and maybe with others;
	// with WithMeta, with all of a group from its first that passes. f is valid until Add returns. It returns
	// whether it wants no more.
	Add(f *log.Frame) (full bool)
	// Frames returns how many frames have been taken for delivery.
	Frames() int
}

// Since feeds sink from req.Cursor on, until it is full or the reader is caught up; then, if
// nothing was taken and req.Block allows it, it waits. It returns the cursor to resume from.
func (f *Feed) Since(ctx context.Context, req *Request, sink Sink) (next log.Cursor, err error) {
	if err := f.check(req.Shard); err != nil {
		return next, err
	}
	f.consumers.Add(1)
	defer f.consumers.Add(-1)
	for dir := f.dir(); ; {
		next, err = f.since(ctx, dir.Log(int(req.Shard)), req, sink)
		if errors.Is(err, log.ErrClosed) && sink.Frames() == 0 {
			if now := f.dirNow(dir); now != dir {
				dir = now // a full copy has come from the store that is followed
				continue
			}
		}
		if err == nil {
			f.frames.Add(uint64(sink.Frames()))
		}
		return next, err
	}
}

// since is Since for the log of one directory.
func (f *Feed) since(ctx context.Context, l *log.Log, req *Request, sink Sink) (next log.Cursor, err error) {
	if req.Block < 0 {
		// Who can wait is woken by the writer, at the end of its turn.
		f.flush(int(req.Shard))
	}
	r, err := l.NewReader(req.Cursor, log.ReaderOptions{
		Feed: true, Follow: req.Lineage, Prefixes: req.Prefixes, Groups: req.WithMeta,
	})
	if err != nil {
		return next, err
	}
	defer r.Close()
	return f.collect(ctx, l, r, req.Block, sink)
}

func (f *Feed) collect(ctx context.Context, l *log.Log, r *log.Reader, block time.Duration, sink Sink) (next log.Cursor, err error) {
	var timeout <-chan time.Time
	if block > 0 {
		t := time.NewTimer(block)
		defer t.Stop()
		timeout = t.C
	}
	for {
		next, err := fill(r, sink)
		if !errors.Is(err, io.EOF) {
			return next, err
		}
		if sink.Frames() > 0 || block < 0 {
			return next, nil
		}
		if more, err := f.wait(ctx, l, r.Cursor(), timeout); err != nil || !more {
			return r.Cursor(), err
		}
	}
}

// fill moves frames until the sink is full (nil) or the reader has no more (io.EOF). It ends before a generation other than that of
// the frames taken: all frames of a reply are of the generation of its cursor.
func fill(r *log.Reader, sink Sink) (next log.Cursor, err error) {
	var end log.Cursor // behind the last frame
	for {
		f, err := r.Next()
		switch {
		case err != nil:
			if next = r.Cursor(); sink.Frames() > 0 && next.Generation != end.Generation {
				next = end
			}
			return next, err
		case sink.Frames() > 0 && f.Cursor.Generation != end.Generation:
			return end, nil
		}
		end = log.Cursor{Generation: f.Cursor.Generation, Offset: f.Cursor.Offset + 1}
		if sink.Add(f) {
			return r.Cursor(), nil
		}
	}
}

// wait waits until something after c may be visible. more is false when the time is over.
func (f *Feed) wait(ctx context.Context, l *log.Log, c log.Cursor, timeout <-chan time.Time) (more bool, err error) {
	f.blocked.Add(1)
	defer f.blocked.Add(-1)
	ready := make(chan struct{})
	cancel := l.OnAdvanceFrom(c, func() { close(ready) })
	defer cancel()
	select {
	case <-ready:
		if err := l.Err(); err != nil {
			return false, err
		}
		return true, nil
	case <-timeout:
		return false, nil
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), ErrTimeUp) {
			return false, nil
		}
		return false, errStoreClosed
	}
}

// Info answers FEED.INFO [shard]: one map, or an array of the maps of all shards.
// REQUIRES: len(args) >= 1.
func (f *Feed) Info(args [][]byte, w *resp.Writer) {
	if len(args) > 2 {
		w.Error(errInfoArity.Error())
		return
	}
	if len(args) == 2 {
		n, err := unsigned(args[1], errShard)
		if err == nil && n >= uint64(f.dir().Shards()) {
			err = errShardRange
		}
		if err != nil {
			w.Error(err.Error())
			return
		}
		f.info(int(n), w)
		return
	}
	w.Array(f.dir().Shards())
	for i := range f.dir().Shards() {
		f.info(i, w)
	}
}

func (f *Feed) info(shard int, w *resp.Writer) {
	l := f.dir().Log(shard)
	tail := l.Tail()
	st := l.Stats()
	w.Map(10)
	w.BulkString("shard")
	w.Int(int64(shard))
	for _, x := range []struct {
		name string
		n    uint64
	}{
		{"generation", tail.Generation},
		{"base", l.Base()},
		{"tail", tail.Offset},
		{"durable", l.Durable()},
		{"bytes", uint64(st.Bytes)},
		{"oldest_time", uint64(st.OldestMS)},
		{"segments", uint64(st.Segments)},
		{"sealed_segments", uint64(st.Sealed)},
	} {
		w.BulkString(x.name)
		w.Uint(x.n)
	}
	w.BulkString("lineage")
	lineage := f.dir().Lineage(shard)
	w.Array(len(lineage))
	for _, g := range lineage {
		w.Map(5)
		w.BulkString("generation")
		w.Uint(g.Generation)
		w.BulkString("cause")
		w.BulkString(g.Cause.String())
		w.BulkString("parent_generation")
		w.Uint(g.Parent)
		w.BulkString("parent_offset")
		w.Uint(g.ParentOffset)
		w.BulkString("time")
		w.Int(g.TimeMS)
	}
}
