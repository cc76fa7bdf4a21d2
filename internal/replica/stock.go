package replica

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/rdb"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

const (
	// streamBytes is how many bytes of commands are gathered before they are sent, but for a larger group.
	streamBytes = 256 << 10
	// pingEvery is after what silence a replica is pinged: it counts a silent primary as dead.
	pingEvery = 10 * time.Second
	// maxMarks bounds how many places in the stream are remembered that have not been acknowledged.
	maxMarks = 1 << 14
)

// Stock serves a replica that is a stock Redis or Valkey: a copy of the state as an RDB file, then the frames behind it as the commands that they are, all
// shards in one stream. The frames of each shard keep their order, and a group is a transaction, over several shards as well: it comes when
// all its parts are there. What lies on different shards has no order otherwise, as ever. There is no history in common, so a replica that
// connects again is copied again.
type Stock struct {
	link *Link
	id   string // of its stream
	send func(b []byte) error

	shards []outbound
	first  int // shard to begin with the next time
	buf    []byte
	offset int64
	marks  []streamMark  // guarded by link.src.mu
	loaded chan struct{} // closed when the first acknowledgement has come
}

// outbound is what comes from the log of a shard.
type outbound struct {
	r       *log.Reader
	at      log.Cursor // behind the groups sent
	payload []byte     // of the next group
	n       int        // commands in it
	flush   bool       // it ends with a FLUSHALL, which is not in payload
	txn     uint64
	mask    uint64
	whole   bool
}

// streamMark says where the logs are at an offset of the stream.
type streamMark struct {
	offset int64
	at     []log.Cursor
}

// NewStock begins to serve a replica that is reached at host and port. send hands bytes to it, which it takes over, and returns when there may be more.
func (s *Source) NewStock(host, port string, random []byte, send func(b []byte) error) *Stock {
	id := hex.EncodeToString(random)
	k := &Link{src: s, id: id, addr: net.JoinHostPort(host, port), stock: true}
	s.mu.Lock()
	s.links[id] = k
	s.mu.Unlock()
	return &Stock{link: k, id: id, send: send, shards: make([]outbound, s.eng.Shards()), loaded: make(chan struct{})}
}

// Link returns the link, which its connection closes.
func (s *Stock) Link() *Link { return s.link }

// Serve serves until ctx ends or something fails. timeout is after what silence the replica counts as gone.
func (s *Stock) Serve(ctx context.Context, timeout time.Duration) error {
	defer s.close()
	if err := s.copy(); err != nil {
		return err
	}
	select {
	case <-s.loaded: // it looks for the mark at the end of what it has read: nothing may follow at once
	case <-ctx.Done():
	}
	s.buf = append(s.buf, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"...)
	for ctx.Err() == nil {
		if err := s.gather(); err != nil {
			return err
		}
		if len(s.buf) == 0 {
			switch waited := s.wait(ctx); {
			case s.link.src.eng.Err() != nil: // nothing more comes, and nobody waits for it
				return s.link.src.eng.Err()
			case s.silent() > timeout:
				return fmt.Errorf("no acknowledgement for %s", timeout)
			case waited:
				continue
			}
			s.buf = append(s.buf, "*1\r\n$4\r\nPING\r\n"...)
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *Stock) close() {
	for i := range s.shards {
		if r := s.shards[i].r; r != nil {
			r.Close()
		}
	}
}

// copy sends a copy of the state, and leaves the readers behind it.
func (s *Stock) copy() error {
	src := s.link.src
	src.fullCopies.Add(1)
	views, err := src.eng.FreezeAll()
	if err != nil {
		return err
	}
	if err := s.copyViews(views); err != nil {
		return errors.Join(err, views.Close())
	}
	return views.Close()
}

// copyViews waits for what the views show: only then can a log be read from where they end.
func (s *Stock) copyViews(views *engine.Views) error {
	if err := views.Await(); err != nil {
		return err
	}
	dir := s.link.src.eng.Dir()
	for i, c := range views.Cursors() {
		r, err := dir.Log(i).NewReader(c, log.ReaderOptions{Follow: true})
		if err != nil {
			return err
		}
		s.shards[i].at, s.shards[i].r = c, r
	}
	return s.sendCopy(views)
}

// sendCopy sends the state as an RDB file without a length: between two marks.
func (s *Stock) sendCopy(views *engine.Views) error {
	mark := s.id // 40 characters that nobody knew before
	if err := s.send(fmt.Appendf(nil, "+FULLRESYNC %s 0\r\n$EOF:%s\r\n", s.id, mark)); err != nil {
		return err
	}
	f := rdb.NewFileWriter(sender(s.send), "redis-ver", "7.2.0", "redis-bits", "64", "ctime", strconv.FormatInt(s.link.src.eng.Now()/1000, 10),
		"repl-stream-db", "0", "repl-id", s.id, "repl-offset", "0")
	for i := range s.shards {
		if err := writeView(f, views.View(i)); err != nil {
			return err
		}
	}
	if err := f.End(); err != nil {
		return err
	}
	return s.send([]byte(mark))
}

// sender is a writer that hands on copies of what it gets.
type sender func(b []byte) error

// Write implements io.Writer.
func (s sender) Write(b []byte) (int, error) { return len(b), s(slices.Clone(b)) }

func writeView(f *rdb.FileWriter, v *state.View) (err error) {
	d := &command.Dump{}
	v.Rebuild(func(e *effect.Effect, last bool) bool {
		if e.Op == effect.Function { // LOAD REPLACE code
			err = f.Function(e.Args[2])
			return err == nil
		}
		if d.Add(e); last {
			err = f.Key(d.Key, d.Deadline, d.Value())
			d = &command.Dump{}
		}
		return err == nil
	})
	return err
}

// flush sends what has been gathered, and remembers where the logs are behind it.
func (s *Stock) flush() error {
	s.offset += int64(len(s.buf))
	m := streamMark{offset: s.offset, at: make([]log.Cursor, len(s.shards))}
	for i := range m.at {
		m.at[i] = s.shards[i].at
	}
	mu := &s.link.src.mu
	mu.Lock()
	if len(s.marks) == maxMarks {
		s.marks = slices.Delete(s.marks, 0, maxMarks/2)
	}
	s.marks = append(s.marks, m)
	mu.Unlock()
	b := s.buf
	s.buf = nil
	return s.send(b)
}

// Ack takes an acknowledgement of everything before an offset of the stream. Any goroutine.
func (s *Stock) Ack(offset int64) {
	src := s.link.src
	src.mu.Lock()
	n := 0
	for n < len(s.marks) && s.marks[n].offset <= offset {
		n++
	}
	if n > 0 {
		acks := make([]Ack, len(s.shards))
		for i, c := range s.marks[n-1].at {
			acks[i] = Ack{Generation: c.Generation, Applied: c.Offset} // whether it is durable there, nobody says
		}
		s.link.acks = acks
		s.marks = slices.Delete(s.marks, 0, n)
	}
	if s.link.acked.IsZero() {
		close(s.loaded)
	}
	s.link.acked = time.Now()
	src.wakeLocked()
	src.mu.Unlock()
	if src.onAck != nil {
		src.onAck()
	}
}

// silent returns for how long the replica has said nothing, 0 as long as it has not begun to.
func (s *Stock) silent() time.Duration {
	s.link.src.mu.Lock()
	defer s.link.src.mu.Unlock()
	if s.link.acked.IsZero() {
		return 0
	}
	return time.Since(s.link.acked)
}

// wait waits until a shard may have more, and reports false when there was nothing for long.
func (s *Stock) wait(ctx context.Context) bool {
	ready := make(chan struct{}, 1)
	for i := range s.shards {
		defer s.shards[i].r.OnAdvance(func() {
			select {
			case ready <- struct{}{}:
			default:
			}
		})()
	}
	limit := time.NewTimer(pingEvery)
	defer limit.Stop()
	select {
	case <-ready:
		return true
	case <-ctx.Done():
		return true
	case <-limit.C:
		return false
	}
}

// gather takes groups from the logs, until there are no more or enough.
func (s *Stock) gather() error {
	for more := true; more; {
		s.first = (s.first + 1) % len(s.shards)
		for k := range s.shards {
			i := (s.first + k) % len(s.shards)
			if err := s.plain(i); err != nil {
				return err
			}
			if len(s.buf) >= streamBytes {
				return nil
			}
		}
		var err error
		if more, err = s.together(); err != nil {
			return err
		}
	}
	return nil
}

// plain takes the next groups of a shard as long as they lie on it alone.
func (s *Stock) plain(i int) error {
	o := &s.shards[i]
	for len(s.buf) < streamBytes {
		if err := o.load(); err != nil {
			return err
		}
		if !o.whole || o.txn != 0 {
			return nil
		}
		s.emit(1 << i)
	}
	return nil
}

// together takes the next group over several shards, if all its parts are there.
func (s *Stock) together() (bool, error) {
	var next *outbound
	for i := range s.shards {
		if o := &s.shards[i]; o.whole && (next == nil || o.txn < next.txn) {
			next = o
		}
	}
	if next == nil {
		return false, nil
	}
	for m := next.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		if i >= len(s.shards) || s.shards[i].whole && s.shards[i].txn != next.txn {
			return false, fmt.Errorf("replica: group %d has no part on shard %d", next.txn, i)
		}
		if !s.shards[i].whole {
			return false, nil
		}
	}
	s.emit(next.mask)
	return true, nil
}

// emit adds the groups at the heads of shards to the stream, as one.
func (s *Stock) emit(mask uint64) {
	n, flush := 0, 0
	for m := mask; m != 0; m &= m - 1 {
		o := &s.shards[bits.TrailingZeros64(m)]
		n += o.n
		if o.flush {
			flush = 1
		}
	}
	if n+flush > 1 {
		s.buf = append(s.buf, "*1\r\n$5\r\nMULTI\r\n"...)
	}
	for m := mask; m != 0; m &= m - 1 {
		o := &s.shards[bits.TrailingZeros64(m)]
		s.buf = append(s.buf, o.payload...)
		o.at = o.r.Cursor()
		*o = outbound{r: o.r, at: o.at, payload: o.payload[:0]}
		if cap(o.payload) > streamBytes {
			o.payload = nil
		}
	}
	if flush > 0 {
		s.buf = append(s.buf, "*1\r\n$8\r\nFLUSHALL\r\n"...)
	}
	if n+flush > 1 {
		s.buf = append(s.buf, "*1\r\n$4\r\nEXEC\r\n"...)
	}
}

// load reads the next group, if it is there.
func (o *outbound) load() error {
	for !o.whole {
		f, err := o.r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("replica: frames for a stock replica: %w", err)
		}
		if f.GroupFirst {
			o.txn, o.mask = f.Txn, f.Mask
		}
		if f.Op == effect.FlushAll {
			o.flush = true
		} else {
			o.payload = append(o.payload, f.Payload...)
			o.n++
		}
		o.whole = f.GroupLast
	}
	return nil
}
