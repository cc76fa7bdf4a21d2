package replica

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"time"

	"github.com/kevydb/kevy/log"
)

// What a stock replica counts is bytes of its stream, of which the logs know nothing: in what order the shards' groups came, only the stream knew. So that order is
// remembered, and where the logs were now and then: from there on the stream is rendered again, the same bytes, and goes on behind its end. No bytes are
// kept, and what has been written while the replica was away is in the logs.

const (
	// maxMarks is how many places of a stream are remembered; then each two neighbours become one.
	maxMarks = 1 << 12
	// maxParked is how many streams are remembered of replicas that are not connected.
	maxParked = 16
)

// stream is what is remembered of a stock replica's stream. It has one server at a time, so it is one line of bytes whoever asks for it.
type stream struct {
	id  string
	dir *log.Dir // whose frames it is made of

	// guarded by src.mu
	addr   string       // of the replica
	server *Stock       // nil: nobody
	left   time.Time    // since when
	marks  []streamMark // in order; none while the copy is being sent
	size   int64        // bytes that they take, about

	// recalled: it is of an earlier run. What follows its end has another id, so that a copy of the directory, which has the same streams, can't go
	// on in one under the same id.
	recalled bool
}

// streamMark says where the logs are at an offset of the stream.
type streamMark struct {
	offset int64
	at     []log.Cursor
	order  []byte // of what lies between the mark before and this one
}

func (m *streamMark) size() int64 { return int64(100 + 16*len(m.at) + len(m.order)) }

// end returns the offset behind everything that has been rendered.
func (st *stream) end() int64 { return st.marks[len(st.marks)-1].offset }

// before returns the index of the last mark that is not behind an offset, -1 if there is none.
func (st *stream) before(offset int64) int {
	return sort.Search(len(st.marks), func(i int) bool { return st.marks[i].offset > offset }) - 1
}

// add adds a mark, and forgets the oldest ones while all take more than most bytes.
func (st *stream) add(m streamMark, most int64) {
	st.marks = append(st.marks, m)
	st.size += m.size()
	if len(st.marks) > maxMarks {
		st.join()
	}
	n := 0
	for ; st.size > most && n < len(st.marks)-1; n++ {
		st.size -= st.marks[n].size()
	}
	clear(st.marks[:n])
	st.marks = st.marks[n:]
}

// join makes one mark of each two behind the first.
func (st *stream) join() {
	kept := st.marks[:1]
	st.size = kept[0].size()
	for i := 1; i < len(st.marks); i++ {
		m := st.marks[i]
		if i+1 < len(st.marks) {
			i++
			next := st.marks[i]
			next.order = slices.Concat(m.order, next.order)
			m = next
		}
		kept = append(kept, m)
		st.size += m.size()
	}
	clear(st.marks[len(kept):])
	st.marks = kept
}

// order says how a part of a stream was made: runs of groups that lie on the same shards, and words that are in no log.
type order struct {
	b    []byte // pairs of uvarints: the mask of shards and how many groups, or 0 and which word
	mask uint64
	n    uint64 // groups of the last run, which is not in b yet
}

// words are what is in a stream beside groups. Their numbers are in records.
var words = [...]string{
	"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n",
	"*1\r\n$4\r\nPING\r\n",
	"*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n",
}

const (
	saySelect = iota
	sayPing
	sayGetAck
)

func (o *order) add(mask uint64) {
	if mask != o.mask {
		o.endRun()
		o.mask = mask
	}
	o.n++
}

func (o *order) endRun() {
	if o.n > 0 {
		o.pair(o.mask, o.n)
		o.n = 0
	}
}

func (o *order) pair(mask, n uint64) {
	o.b = binary.AppendUvarint(binary.AppendUvarint(o.b, mask), n)
}

// done returns the order since the last call.
func (o *order) done() []byte {
	o.endRun()
	b := o.b
	o.b = nil
	return b
}

// aside adds a word to the stream.
func (s *Stock) aside(word uint64) {
	s.order.endRun()
	s.order.pair(0, word)
	s.buf = append(s.buf, words[word]...)
}

// startStream has a stream that begins with a copy. What its replica had before is forgotten.
func (s *Source) startStream(k *Stock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, st := range s.streams {
		if st.server == nil && st.addr == k.link.addr && k.o.Port != "0" { // those without a port may be several
			delete(s.streams, id)
		}
	}
	k.stream = &stream{id: k.o.ID, dir: s.eng.Dir(), addr: k.link.addr, server: k}
	s.streams[k.o.ID] = k.stream
}

// leaveStream ends what the server of a stream does. The stream stays, unless it never began, is broken or nobody can go on in it.
func (s *Source) leaveStream(k *Stock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := k.stream
	if st == nil {
		return
	}
	st.server, st.left = nil, time.Now()
	if k.broken || len(st.marks) == 0 || k.o.Sync || k.o.CopyOnly {
		delete(s.streams, st.id)
	}
	for len(s.streams) > maxParked {
		if !s.forgetOldest() {
			break
		}
	}
}

// forgetOldest forgets the stream whose replica has been away for the longest time. REQUIRES: s.mu.
func (s *Source) forgetOldest() bool {
	var oldest *stream
	for _, st := range s.streams {
		if st.server == nil && (oldest == nil || st.left.Before(oldest.left)) {
			oldest = st
		}
	}
	if oldest != nil {
		delete(s.streams, oldest.id)
	}
	return oldest != nil
}

// ForgetStreams forgets the streams of stock replicas that have been away for so long.
func (s *Source) ForgetStreams(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, st := range s.streams {
		if st.server == nil && time.Since(st.left) > after {
			delete(s.streams, id)
		}
	}
}

// note remembers a mark of the stream that k serves.
func (s *Source) note(k *Stock, m streamMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.stream.add(m, k.o.Backlog)
}

// claimStream makes k the server of a stream, if it is remembered and of the log that there is. One that serves the same replica, over a connection whose end nobody has
// noticed, is ended; of another one the stream can't be taken.
func (s *Source) claimStream(ctx context.Context, k *Stock) *stream {
	for {
		s.mu.Lock()
		st := s.streams[k.o.Replid]
		if st == nil || st.recalled && !k.o.PSync2 || st.dir != s.eng.Dir() || s.eng.Err() != nil || st.server != nil && st.addr != k.link.addr {
			s.mu.Unlock()
			return nil
		}
		other := st.server
		if other == nil {
			st.server, st.addr = k, k.link.addr
			s.mu.Unlock()
			return st
		}
		s.mu.Unlock()
		other.cancel()
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil
		}
	}
}

// resume brings the replica to the end of the stream that it had, and reports whether that is possible. After an error it has begun to.
func (s *Stock) resume(ctx context.Context) (ok bool, err error) {
	src := s.link.src
	st := src.claimStream(ctx, s)
	if st == nil {
		return false, ctx.Err()
	}
	i := st.before(s.o.Offset)
	if i < 0 || s.o.Offset > st.end() || s.place(st.dir, st.marks[i].at) != nil {
		s.closeReaders()
		src.mu.Lock()
		delete(src.streams, st.id)
		src.mu.Unlock()
		return false, nil
	}
	src.mu.Lock()
	s.stream = st
	if st.recalled {
		delete(src.streams, st.id)
		st.id, st.recalled = s.o.ID, false
		src.streams[st.id] = st
	}
	src.mu.Unlock()
	src.resumed.Add(1)
	s.Ack(s.o.Offset) // it has that
	answer := "+CONTINUE\r\n"
	if s.o.PSync2 {
		answer = "+CONTINUE " + st.id + "\r\n"
	}
	if err := s.o.Send([]byte(answer)); err != nil {
		return true, err
	}
	s.offset = st.marks[i].offset
	for _, m := range st.marks[i+1:] {
		if err := s.render(&m); err != nil {
			return true, err
		}
	}
	return true, nil
}

// render renders the stream up to a mark once more, and sends what the replica lacks of it.
func (s *Stock) render(m *streamMark) error {
	for rest := m.order; len(rest) > 0; {
		mask, k := binary.Uvarint(rest)
		n, l := binary.Uvarint(rest[max(k, 0):])
		if k <= 0 || l <= 0 || bits.Len64(mask) > len(s.shards) || mask == 0 && n >= uint64(len(words)) { // recorded by another version
			s.broken = true
			return fmt.Errorf("replica: the order of a stream is not understood: %x", rest)
		}
		rest = rest[k+l:]
		if mask == 0 {
			s.buf = append(s.buf, words[n]...)
			continue
		}
		for range n {
			if err := s.emitNext(mask); err != nil {
				s.broken = true
				return err
			}
			if len(s.buf) < streamBytes {
				continue
			}
			if err := s.sendLacking(); err != nil {
				return err
			}
		}
	}
	if at := s.offset + int64(len(s.buf)); at != m.offset {
		s.broken = true
		return fmt.Errorf("replica: the stream is at %d where it was at %d before", at, m.offset)
	}
	return s.sendLacking()
}

// emitNext renders the next groups of shards, which are there.
func (s *Stock) emitNext(mask uint64) error {
	for m := mask; m != 0; m &= m - 1 {
		o := &s.shards[bits.TrailingZeros64(m)]
		if err := o.load(); err != nil {
			return err
		}
		if !o.whole {
			return fmt.Errorf("replica: a group of the stream is not in the log any more before %s", o.r.Cursor())
		}
	}
	s.emit(mask)
	return nil
}

// sendLacking sends what has been rendered, but for what the replica has.
func (s *Stock) sendLacking() error {
	b, has := s.buf, s.o.Offset-s.offset
	s.offset += int64(len(b))
	s.buf = nil
	if b = b[min(max(has, 0), int64(len(b))):]; len(b) == 0 {
		return nil
	}
	return s.o.Send(b)
}
