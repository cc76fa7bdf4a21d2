package log

import "errors"

// Stats describes what a log has on disk.
type Stats struct {
	Bytes        int64 // of all segments on disk, sealed ones as they are
	RawBytes     int64 // of their frames before compression
	Segments     int
	Sealed       int    // of these
	OldestMS     int64  // time of the oldest frame, unix ms; 0: there is none or it isn't known
	Damaged      int    // segments in which damage has been found since the log was opened
	LastDamage   error  // in the newest of them; nil: none
	SealFailures uint64 // attempts to seal a segment that failed, but for a full disk
	DiskFull     bool   // writes have been refused for space, and there is none yet
}

// Stats returns the figures of the shard.
func (l *Log) Stats() Stats {
	st := Stats{SealFailures: l.sealFailures.Load(), DiskFull: l.short.Load()}
	segs := l.segments()
	for _, s := range segs {
		st.Segments++
		st.Bytes += s.diskBytes()
		st.RawBytes += s.end.Load()
		if s.sealed.Load() {
			st.Sealed++
		}
		if e := s.damage.Load(); e != nil {
			st.Damaged++
			st.LastDamage = *e
		}
		if st.OldestMS == 0 {
			st.OldestMS = s.oldest()
		}
	}
	return st
}

// Add adds the figures of another log.
func (s *Stats) Add(x Stats) {
	s.Bytes += x.Bytes
	s.RawBytes += x.RawBytes
	s.Segments += x.Segments
	s.Sealed += x.Sealed
	s.Damaged += x.Damaged
	s.SealFailures += x.SealFailures
	s.DiskFull = s.DiskFull || x.DiskFull
	if x.LastDamage != nil {
		s.LastDamage = x.LastDamage
	}
	if x.OldestMS != 0 && (s.OldestMS == 0 || x.OldestMS < s.OldestMS) {
		s.OldestMS = x.OldestMS
	}
}

// oldest returns the time of the segment's first frame, 0 when there is none or it can't be read.
func (s *segment) oldest() int64 {
	if ms := s.firstMS.Load(); ms != 0 || !s.sealed.Load() {
		return ms
	}
	if h, err := s.acquire(); err == nil { // the view has set it
		h.release()
	} else {
		_ = s.noteDamage(err) // shows in Damaged
	}
	return s.firstMS.Load()
}

// noteDamage takes note of err if it tells of damage in the segment, and returns it.
func (s *segment) noteDamage(err error) error {
	if errors.Is(err, ErrCorrupt) {
		s.damage.CompareAndSwap(nil, &err)
	}
	return err
}
