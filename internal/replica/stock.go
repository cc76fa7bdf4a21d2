package replica

import (
	"context"
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
)

// Stock serves a replica that is a stock Redis or Valkey: a copy of the state as an RDB file, then the frames behind it as the commands that they are, all
// shards in one stream. The frames of each shard keep their order, and a group is a transaction, over several shards as well: it comes when
// all its parts are there. What lies on different shards has no order otherwise, as ever. The stream is remembered, so a replica that
// connects again goes on in it (stockstream.go).
type Stock struct {
	o      StockOptions
	link   *Link
	stream *stream            // set before the first byte is sent
	cancel context.CancelFunc // ends Serve; any goroutine
	done   chan struct{}      // closed when Serve has returned

	shards []outbound
	first  int // shard to begin with the next time
	buf    []byte
	offset int64         // of the stream, behind what has been sent
	order  order         // of what is in buf
	broken bool          // what the stream has can't be had from the logs
	loaded chan struct{} // closed when the first acknowledgement has come

	asked []log.Cursor  // an acknowledgement of what is before them is wanted; guarded by src.mu
	kick  chan struct{} // has one when that is so since the last look
}

// StockOptions say who is served, and from where on.
type StockOptions struct {
	Host, Port string // where others reach the replica
	ID         string // of a stream that begins with a copy: 40 hex digits that nobody knew before
	Replid     string // of the stream that the replica had, "?" or any other word when it had none
	Offset     int64  // in it, behind what the replica has
	PSync2     bool   // it knows that a stream has an id when it goes on

	EOF                 bool // it takes a copy without a length
	Sync                bool // it has asked by SYNC: it knows of no stream to go on in, and acknowledges the copy at the most
	CopyOnly            bool // it wants nothing behind the copy
	NoKeys, NoFunctions bool // its copy is to have none

	Timeout time.Duration // after what silence the replica counts as gone
	Backlog int64         // bytes that remembering the stream may take
	// Send hands bytes to the replica, which must not change, and returns when there may be more.
	Send func(b []byte) error
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

// NewStock begins to serve a replica.
func (s *Source) NewStock(o StockOptions) *Stock {
	k := &Link{src: s, id: o.ID, addr: net.JoinHostPort(o.Host, o.Port), stock: true}
	s.mu.Lock()
	s.links[k.id] = k
	s.mu.Unlock()
	return &Stock{o: o, link: k, done: make(chan struct{}), shards: make([]outbound, s.eng.Shards()), loaded: make(chan struct{}), kick: make(chan struct{}, 1)}
}

// Link returns the link, which its connection closes.
func (s *Stock) Link() *Link { return s.link }

// Serve serves until ctx ends or something fails, and returns nil when the copy was all that was wanted.
func (s *Stock) Serve(ctx context.Context) error {
	defer close(s.done)
	ctx, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	defer s.close()
	if err := s.begin(ctx); err != nil || s.o.CopyOnly {
		return err
	}
	for ctx.Err() == nil {
		if err := s.gather(); err != nil {
			s.broken = true
			return err
		}
		if err := s.askAck(); err != nil {
			return err
		}
		if len(s.buf) == 0 {
			switch waited := s.wait(ctx); {
			case s.link.src.eng.Err() != nil: // nothing more comes, and nobody waits for it
				return s.link.src.eng.Err()
			case s.silent() > s.o.Timeout:
				return fmt.Errorf("no acknowledgement for %s", s.o.Timeout)
			case waited:
				continue
			}
			s.aside(sayPing)
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// begin brings the replica to a place in a stream.
func (s *Stock) begin(ctx context.Context) error {
	if ok, err := s.resume(ctx); ok || err != nil {
		return err
	}
	src := s.link.src
	if s.o.Replid != "?" {
		src.refused.Add(1)
	}
	src.fullCopies.Add(1)
	src.startStream(s)
	if err := s.copy(); err != nil || s.o.CopyOnly {
		return err
	}
	if s.o.EOF {
		select {
		case <-s.loaded: // it looks for the mark at the end of what it has read: nothing may follow at once
		case <-ctx.Done():
		}
	}
	src.mu.Lock()
	s.link.online = true
	src.mu.Unlock()
	s.aside(saySelect)
	return nil
}

func (s *Stock) close() {
	s.closeReaders()
	s.link.src.leaveStream(s)
}

func (s *Stock) closeReaders() {
	for i := range s.shards {
		if r := s.shards[i].r; r != nil {
			r.Close()
			s.shards[i].r = nil
		}
	}
}

// copy sends a copy of the state, and leaves the readers behind it.
func (s *Stock) copy() error {
	views, err := s.link.src.eng.FreezeAll()
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
	if err := s.place(s.stream.dir, views.Cursors()); err != nil {
		return err
	}
	return s.sendCopy(views)
}

// place has a reader at each cursor.
func (s *Stock) place(dir *log.Dir, at []log.Cursor) error {
	for i, c := range at {
		r, err := dir.Log(i).NewReader(c, log.ReaderOptions{Follow: true})
		if err != nil {
			return err
		}
		s.shards[i].at, s.shards[i].r = c, r
	}
	return nil
}

// sendCopy sends the state as an RDB file: between two marks, or behind its length.
func (s *Stock) sendCopy(views *engine.Views) error {
	now := strconv.FormatInt(s.link.src.eng.Now()/1000, 10)
	write := func(w io.Writer) error {
		f := rdb.NewFileWriter(w, "redis-ver", "7.2.0", "redis-bits", "64", "ctime", now, "repl-stream-db", "0", "repl-id", s.o.ID, "repl-offset", "0")
		for i := range s.shards {
			if err := s.writeView(f, views.View(i)); err != nil {
				return err
			}
		}
		return f.End()
	}
	var head []byte
	if !s.o.Sync {
		head = fmt.Appendf(head, "+FULLRESYNC %s 0\r\n", s.o.ID)
	}
	mark := s.o.ID // 40 characters that nobody knew before
	if s.o.EOF {
		head = fmt.Appendf(head, "$EOF:%s\r\n", mark)
	} else {
		var n counter
		if err := write(&n); err != nil {
			return err
		}
		mark, head = "", fmt.Appendf(head, "$%d\r\n", n)
	}
	if err := s.o.Send(head); err != nil {
		return err
	}
	if err := write(sender(s.o.Send)); err != nil {
		return err
	}
	s.link.src.note(s, streamMark{at: views.Cursors()})
	return s.o.Send([]byte(mark))
}

// counter is a writer that counts.
type counter int64

// Write implements io.Writer.
func (n *counter) Write(b []byte) (int, error) {
	*n += counter(len(b))
	return len(b), nil
}

// sender is a writer that hands on copies of what it gets.
type sender func(b []byte) error

// Write implements io.Writer.
func (s sender) Write(b []byte) (int, error) { return len(b), s(slices.Clone(b)) }

// writeView writes what a shard's view shows: the functions are the first of it.
func (s *Stock) writeView(f *rdb.FileWriter, v *state.View) (err error) {
	d := &command.Dump{}
	v.Rebuild(func(e *effect.Effect, last bool) bool {
		if e.Op == effect.Function { // LOAD REPLACE code
			if !s.o.NoFunctions {
				err = f.Function(e.Args[2])
			}
			return err == nil
		}
		if s.o.NoKeys {
			return false
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
	m := streamMark{offset: s.offset, order: s.order.done(), at: make([]log.Cursor, len(s.shards))}
	for i := range m.at {
		m.at[i] = s.shards[i].at
	}
	s.link.src.note(s, m)
	b := s.buf
	s.buf = nil
	return s.o.Send(b)
}

// Ack takes an acknowledgement of everything before an offset of the stream. Any goroutine.
func (s *Stock) Ack(offset int64) {
	src := s.link.src
	src.mu.Lock()
	if n := s.mark(offset); n >= 0 && !s.o.Sync {
		acks := make([]Ack, len(s.shards))
		for i, c := range s.stream.marks[n].at {
			acks[i] = Ack{Generation: c.Generation, Applied: c.Offset, Cut: c} // whether it is durable there, nobody says
		}
		s.link.acks = acks
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

// askAck asks the replica for an acknowledgement, if one is wanted and what it is to confirm has been gathered. It will be of what is sent before the question.
func (s *Stock) askAck() error {
	src, dir := s.link.src, s.stream.dir
	src.mu.Lock()
	asked := s.asked != nil
	for i, c := range s.asked {
		asked = asked && dir.Log(i).Before(c, s.shards[i].at)
	}
	if asked {
		s.asked = nil
	}
	src.mu.Unlock()
	if !asked {
		return nil
	}
	if len(s.buf) > 0 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.aside(sayGetAck)
	return nil
}

// mark returns the index of the mark that an acknowledgement confirms, -1 if it confirms none. REQUIRES: src.mu.
func (s *Stock) mark(offset int64) int {
	if s.stream == nil || len(s.stream.marks) == 0 || offset > s.stream.end() {
		return -1
	}
	return s.stream.before(offset)
}

// silent returns for how long the replica has said nothing, 0 as long as it has not begun to, or need not.
func (s *Stock) silent() time.Duration {
	s.link.src.mu.Lock()
	defer s.link.src.mu.Unlock()
	if s.link.acked.IsZero() || s.o.Sync {
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
	case <-s.kick:
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
		s.take(1 << i)
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
	s.take(next.mask)
	return true, nil
}

// take adds the groups at the heads of shards to the stream, as one, and to its order.
func (s *Stock) take(mask uint64) {
	s.order.add(mask)
	s.emit(mask)
}

// emit renders the groups at the heads of shards as one.
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
