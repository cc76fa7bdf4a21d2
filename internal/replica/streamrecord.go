package replica

import (
	"path"
	"slices"
	"time"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

const (
	// streamsFile is the record of stock replicas' streams.
	streamsFile = "STREAMS"
	maxStreams  = 64 << 20
	// recordedMarks is how many marks of a stream are recorded, about: a replica that is there at a clean stop lacks little.
	recordedMarks = 256
)

// streamRecord is a stream as it is recorded.
type streamRecord struct {
	ID    string       `json:"id"`
	Addr  string       `json:"addr"`
	Marks []markRecord `json:"marks"`
	Sums  []int64      `json:"sums"` // by shard, of the frame before the last mark
}

type markRecord struct {
	Offset int64        `json:"offset"`
	At     []log.Cursor `json:"at"`
	Order  []byte       `json:"order"`
}

// Remember leaves the streams of stock replicas that are served no more in the data directory, for its next start.
func (s *Source) Remember() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := s.eng.Dir()
	var all []streamRecord
	for _, st := range s.streams {
		if st.dir != dir || st.server != nil {
			continue
		}
		for len(st.marks) > recordedMarks {
			st.join()
		}
		r := streamRecord{ID: st.id, Addr: st.addr}
		for _, m := range st.marks {
			r.Marks = append(r.Marks, markRecord{m.offset, m.at, m.order})
		}
		r.Sums = lastSums(dir, st.marks[len(st.marks)-1].at)
		all = append(all, r)
	}
	if all == nil {
		return nil
	}
	return vfs.WriteRecord(s.fs, path.Join(dir.Path(), streamsFile), all)
}

// Recall takes up what Remember has left, as far as the log still has it.
func (s *Source) Recall() error {
	dir := s.eng.Dir()
	all, err := vfs.TakeRecord[[]streamRecord](s.fs, path.Join(dir.Path(), streamsFile), maxStreams)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range all {
		n := len(r.Marks)
		if n == 0 || slices.ContainsFunc(r.Marks, func(m markRecord) bool { return len(m.At) != dir.Shards() }) ||
			!slices.Equal(r.Sums, lastSums(dir, r.Marks[n-1].At)) {
			continue
		}
		st := &stream{id: r.ID, dir: dir, addr: r.Addr, left: time.Now(), recalled: true}
		for _, m := range r.Marks {
			st.marks = append(st.marks, streamMark{m.Offset, m.At, m.Order})
			st.size += st.marks[len(st.marks)-1].size()
		}
		s.streams[st.id] = st
	}
	return nil
}
