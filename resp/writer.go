package resp

import (
	"strconv"

	"github.com/tidwall/redcon"
)

// Writer builds replies in RESP2 or RESP3 by appending to Buf. It is not safe for concurrent use.
// The zero value writes RESP2.
type Writer struct {
	// Buf holds the replies built so far. Whoever owns the Writer may take, truncate or replace it.
	Buf []byte
	// Proto is 3 after HELLO 3; anything else means RESP2.
	Proto int
}

// RESP3 reports whether replies are in RESP3.
func (w *Writer) RESP3() bool { return w.Proto == 3 }

// OK appends +OK.
func (w *Writer) OK() { w.Buf = append(w.Buf, "+OK\r\n"...) }

// Simple appends a simple string. REQUIRES: s has no CR or LF.
func (w *Writer) Simple(s string) { w.Buf = redcon.AppendString(w.Buf, s) }

// Error appends an error; msg begins with its code ("ERR ...", "WRONGTYPE ..."). Line breaks
// become spaces, as in Redis.
func (w *Writer) Error(msg string) {
	w.Buf = append(w.Buf, '-')
	for i := range len(msg) {
		c := msg[i]
		if c == '\r' || c == '\n' {
			c = ' '
		}
		w.Buf = append(w.Buf, c)
	}
	w.Buf = append(w.Buf, '\r', '\n')
}

// Int appends an integer.
func (w *Writer) Int(n int64) { w.Buf = appendInt(w.Buf, ':', n) }

// Uint appends an unsigned integer.
func (w *Writer) Uint(n uint64) {
	w.Buf = append(w.Buf, ':')
	w.Buf = strconv.AppendUint(w.Buf, n, 10)
	w.Buf = append(w.Buf, '\r', '\n')
}

// Bulk appends a bulk string.
func (w *Writer) Bulk(b []byte) {
	w.Buf = appendInt(w.Buf, '$', int64(len(b)))
	w.Buf = append(w.Buf, b...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// BulkString appends a bulk string.
func (w *Writer) BulkString(s string) {
	w.Buf = appendInt(w.Buf, '$', int64(len(s)))
	w.Buf = append(w.Buf, s...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// Null appends the null bulk string (RESP2) or null (RESP3).
func (w *Writer) Null() {
	if w.RESP3() {
		w.Buf = append(w.Buf, "_\r\n"...)
		return
	}
	w.Buf = redcon.AppendNull(w.Buf)
}

// NullArray appends the null array (RESP2) or null (RESP3).
func (w *Writer) NullArray() {
	if w.RESP3() {
		w.Buf = append(w.Buf, "_\r\n"...)
		return
	}
	w.Buf = append(w.Buf, "*-1\r\n"...)
}

// Array appends the header of an array of n elements.
func (w *Writer) Array(n int) { w.Buf = appendInt(w.Buf, '*', int64(n)) }

// Map appends the header of a map of n pairs: a flat array of 2n elements in RESP2.
func (w *Writer) Map(n int) {
	if w.RESP3() {
		w.Buf = appendInt(w.Buf, '%', int64(n))
		return
	}
	w.Array(2 * n)
}

// Set appends the header of a set of n elements: an array in RESP2.
func (w *Writer) Set(n int) {
	if w.RESP3() {
		w.Buf = appendInt(w.Buf, '~', int64(n))
		return
	}
	w.Array(n)
}

// Push appends the header of an out-of-band message of n elements: an array in RESP2.
func (w *Writer) Push(n int) {
	if w.RESP3() {
		w.Buf = appendInt(w.Buf, '>', int64(n))
		return
	}
	w.Array(n)
}

// Bool appends a boolean: 1 or 0 in RESP2.
func (w *Writer) Bool(v bool) {
	switch {
	case w.RESP3() && v:
		w.Buf = append(w.Buf, "#t\r\n"...)
	case w.RESP3():
		w.Buf = append(w.Buf, "#f\r\n"...)
	case v:
		w.Int(1)
	default:
		w.Int(0)
	}
}

// Double appends a double as Redis 7.2 formats it (AppendDouble): a bulk string in RESP2.
func (w *Writer) Double(f float64) {
	var tmp [32]byte
	s := AppendDouble(tmp[:0], f)
	if w.RESP3() {
		w.Buf = append(w.Buf, ',')
		w.Buf = append(w.Buf, s...)
		w.Buf = append(w.Buf, '\r', '\n')
		return
	}
	w.Bulk(s)
}

// Verbatim appends text with its format ("txt", "mkd"): a bulk string in RESP2.
func (w *Writer) Verbatim(format, text string) {
	if !w.RESP3() {
		w.BulkString(text)
		return
	}
	w.Buf = appendInt(w.Buf, '=', int64(len(text)+4))
	w.Buf = append(w.Buf, format...)
	w.Buf = append(w.Buf, ':')
	w.Buf = append(w.Buf, text...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// Raw appends bytes that are already encoded.
func (w *Writer) Raw(b []byte) { w.Buf = append(w.Buf, b...) }

func appendInt(dst []byte, kind byte, n int64) []byte {
	if n >= 0 && n < 10 {
		return append(dst, kind, byte('0'+n), '\r', '\n')
	}
	if n >= 10 && n < 100 {
		return append(dst, kind, byte('0'+n/10), byte('0'+n%10), '\r', '\n')
	}
	dst = append(dst, kind)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, '\r', '\n')
}
