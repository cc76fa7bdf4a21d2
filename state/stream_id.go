package state

import (
	"math"
	"strconv"
)

// StreamID names an entry of a stream: a time in ms and a number within it.
type StreamID struct{ Ms, Seq uint64 }

// MaxStreamID is the greatest ID there is.
var MaxStreamID = StreamID{math.MaxUint64, math.MaxUint64}

// Less reports whether x comes before y.
func (x StreamID) Less(y StreamID) bool { return x.Ms < y.Ms || x.Ms == y.Ms && x.Seq < y.Seq }

// IsZero reports whether x is 0-0, which names no entry.
func (x StreamID) IsZero() bool { return x == StreamID{} }

// Next returns the ID behind x; ok is false if there is none.
func (x StreamID) Next() (next StreamID, ok bool) {
	switch {
	case x.Seq < math.MaxUint64:
		return StreamID{x.Ms, x.Seq + 1}, true
	case x.Ms < math.MaxUint64:
		return StreamID{x.Ms + 1, 0}, true
	}
	return StreamID{}, false
}

// Prev returns the ID before x; ok is false if there is none.
func (x StreamID) Prev() (prev StreamID, ok bool) {
	switch {
	case x.Seq > 0:
		return StreamID{x.Ms, x.Seq - 1}, true
	case x.Ms > 0:
		return StreamID{x.Ms - 1, math.MaxUint64}, true
	}
	return MaxStreamID, false
}

// Append appends the ID's text.
func (x StreamID) Append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, x.Ms, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, x.Seq, 10)
}

// maxIDText is the length of the longest ID's text.
const maxIDText = 41

// ParseUint64 reads a canonical decimal number.
func ParseUint64(b []byte) (n uint64, ok bool) {
	if len(b) == 0 || len(b) > 20 || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// parseID reads a whole ID as effects have it.
func parseID(b []byte) (id StreamID, ok bool) {
	for i, c := range b {
		if c == '-' {
			var ok1, ok2 bool
			id.Ms, ok1 = ParseUint64(b[:i])
			id.Seq, ok2 = ParseUint64(b[i+1:])
			return id, ok1 && ok2
		}
	}
	return id, false
}
