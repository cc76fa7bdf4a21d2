package archive

import (
	"errors"
	"slices"

	"github.com/kevydb/kevy/log"
)

// Status is a picture of an Archiver for INFO.
type Status struct {
	Place    string       // where the archive is
	CutMS    int64        // unix ms: the archive has all frames up to then; 0: it has none
	LagMS    int64        // age of the oldest state that is missing, at most; 0: none is, -1: the archive has none
	LagBytes int64        // bytes of frames that are not in the archive, uncompressed
	Ends     []log.Cursor // up to where each shard is there
	Segments int          // in the archive
	Sets     int
	LastSet  string
	Bytes    int64  // of its objects, without retired ones
	Shipped  uint64 // bytes sent since the start
	Passes   uint64
	Failures uint64
	InRow    uint64 // failures since the last good pass
	LastOK   int64  // unix ms of the last good pass, 0: none
	Err      error  // of the last pass
}

// Status returns a picture. It may be called while the archiver works.
func (a *Archiver) Status() Status {
	a.mu.Lock()
	s := a.status
	s.Ends = slices.Clone(a.ends)
	a.mu.Unlock()
	if s.Ends == nil {
		s.LagMS = -1
	}
	for i, end := range s.Ends {
		l := a.src.Dir(nil).Log(i)
		if l.Tail() != end {
			s.LagMS = max(1, a.src.Now()-s.CutMS)
			s.LagBytes += behind(l, end)
		}
	}
	return s
}

// behind returns about how many raw bytes a log has behind a cursor.
func behind(l *log.Log, end log.Cursor) (n int64) {
	found := false
	for _, g := range l.SegmentList() {
		switch {
		case found:
			n += g.RawBytes - log.HeaderBytes
		case g.Start.Generation == end.Generation && end.Offset <= g.End:
			found = true
			if frames := int64(g.End - g.Start.Offset); frames > 0 {
				n += (g.RawBytes - log.HeaderBytes) * int64(g.End-end.Offset) / frames
			}
		}
	}
	return n
}

func (a *Archiver) noteShipped(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Shipped += uint64(n)
}

func (a *Archiver) noteResult(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.status
	s.Passes++
	s.Err = err
	if err == nil {
		s.LastOK, s.InRow = a.src.Now(), 0
	} else if !errors.Is(err, log.ErrClosed) {
		s.Failures++
		s.InRow++
	}
}

// noteManifest takes note of what a published manifest holds.
func (a *Archiver) noteManifest(m *manifest) {
	segments, bytes := 0, int64(0)
	var ends []log.Cursor
	for i := range m.Shards {
		ends = append(ends, m.Shards[i].End)
		segments += len(m.Shards[i].Segments)
		for _, s := range m.Shards[i].Segments {
			bytes += size(s.objects())
		}
	}
	last := ""
	for _, s := range m.Sets {
		bytes += size(s.Files)
		last = s.ID
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.status
	a.ends, s.CutMS, s.Segments, s.Bytes, s.Sets, s.LastSet = ends, max(s.CutMS, m.CutMS), segments, bytes, len(m.Sets), last
}

// noteCut takes note that the archive has all frames up to a time, although no manifest says so: there were none since.
func (a *Archiver) noteCut(ms int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.CutMS = ms
}

func size(objects []object) (n int64) {
	for _, o := range objects {
		n += o.Size
	}
	return n
}
