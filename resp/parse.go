package resp

import (
	"bytes"
	"errors"
)

// Kinds of requests.
const (
	kindNone = iota // nothing of the next request was examined
	kindArray
	kindInline
)

// Limits of the fast path. They are within every limit a Reader can have, even before authentication, but
// for the number of arguments.
const (
	fastArgs = 1 << 10
	fastBulk = maxUnauthBulk
)

// request is the state of the request that begins at Reader.pos and whose end was not seen yet.
// Offsets are relative to its begin, so that the bytes may move.
type request struct {
	kind int
	line int // begin of the line being received
	scan int // everything before it was examined
	left int // elements not yet complete; 0 before the header is known
	bulk int // length of the element being received; -1 before its header is known
	args []span
	few  [8]span // memory of args while they are few
}

// span is the place of an argument. 32 bits suffice: see maxHeld.
type span struct{ off, len uint32 }

// end returns the offset behind the element being received, 0 if that is not known.
func (q *request) end() int {
	if q.kind != kindArray || q.left == 0 || q.bulk < 0 {
		return 0
	}
	return q.scan + q.bulk + 2
}

// Next returns the next complete request, ErrIncomplete if there is none, a *ProtocolError or
// ErrQueryBuffer. Errors other than ErrIncomplete are final. Empty requests are skipped.
func (r *Reader) Next() ([][]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	for {
		if r.req.kind == kindNone {
			if r.sc.next < len(r.sc.ahead) {
				return r.pop(), nil
			}
			if r.pos == len(r.buf) {
				return nil, ErrIncomplete
			}
			if r.split(1); len(r.sc.ahead) > 0 {
				return r.pop(), nil
			}
			r.begin()
		}
		done, err := r.step()
		if err != nil {
			if !errors.Is(err, ErrIncomplete) {
				r.err = err
			}
			return nil, err
		}
		if done {
			return r.sc.args, nil
		}
	}
}

// parseFast appends the arguments of the request that b begins with to args, and returns its length: 0 if it is
// not there as a whole in its usual form.
func parseFast(b []byte, args [][]byte, unauth bool) ([][]byte, int) {
	if len(b) < 4 || b[0] != '*' {
		return args, 0
	}
	count := int(b[1] - '0')
	if count-1 > 8 || count == 0 {
		return args, 0
	}
	i := 2
	for b[i] != '\r' {
		d := int(b[i] - '0')
		count = count*10 + d
		if i++; d < 0 || d > 9 || count > fastArgs || i >= len(b) {
			return args, 0
		}
	}
	if count > maxUnauthArgs && unauth {
		return args, 0
	}
	i += 2
	for ; count > 0; count-- {
		if i+4 > len(b) || b[i] != '$' || b[i+1] < '0' || b[i+1] > '9' {
			return args, 0
		}
		n := int(b[i+1] - '0')
		i += 2
		for b[i] != '\r' {
			d := int(b[i]) - '0'
			n, i = n*10+d, i+1
			if d < 0 || d > 9 || n < 10 || n > fastBulk || i >= len(b) {
				return args, 0
			}
		}
		i += 2
		end := i + n
		if end+2 > len(b) {
			return args, 0
		}
		args = append(args, b[i:end:end])
		i = end + 2
	}
	return args, i
}

// parsed is a request that was split before its turn came.
type parsed struct {
	args int // its arguments end there in scratch.args
	end  int // it ends there in Reader.buf
}

// split takes up to n whole requests in their usual form off the input, for Next to return one by one. Everything else,
// errors and limits included, is left to step, which decides alone. REQUIRES: Next has returned those split before.
func (r *Reader) split(n int) {
	sc := r.sc
	sc.forget()
	if r.err != nil || r.req.kind != kindNone {
		return
	}
	args, at := sc.args[:0], r.pos
	for len(sc.ahead) < n && len(args) < fastArgs {
		more, size := parseFast(r.buf[at:], args, r.unauth)
		if size == 0 {
			break
		}
		args, at = more, at+size
		sc.ahead = append(sc.ahead, parsed{len(args), at})
	}
	sc.args = args
}

// coming appends the requests that were split just now.
func (r *Reader) coming(dst [][][]byte) [][][]byte {
	from := 0
	for _, q := range r.sc.ahead {
		dst = append(dst, r.sc.args[from:q.args:q.args])
		from = q.args
	}
	return dst
}

// pop returns the next of the requests split ahead.
func (r *Reader) pop() [][]byte {
	sc, from := r.sc, 0
	if sc.next > 0 {
		from = sc.ahead[sc.next-1].args
	}
	q := sc.ahead[sc.next]
	sc.next++
	r.pos = q.end
	return sc.args[from:q.args:q.args]
}

func (r *Reader) begin() {
	q := &r.req
	q.line, q.scan, q.left, q.bulk = 0, 0, 0, -1
	q.args = q.few[:0]
	q.kind = kindInline
	if r.buf[r.pos] == '*' {
		q.kind = kindArray
	}
}

// step goes on with the request at pos. It returns true with the request in sc.args, false after an empty one.
func (r *Reader) step() (bool, error) {
	b := r.buf[r.pos:]
	if r.req.kind == kindInline {
		return r.inline(b)
	}
	if r.req.left == 0 {
		empty, err := r.header(b)
		if err != nil {
			return false, err
		}
		if empty {
			r.finish(r.req.scan)
			return false, nil
		}
	}
	if err := r.elements(b); err != nil {
		return false, err
	}
	args := r.sc.args[:0]
	for _, s := range r.req.args {
		end := s.off + s.len
		args = append(args, b[s.off:end:end])
	}
	r.sc.args = args
	r.finish(r.req.scan)
	return true, nil
}

// finish ends the request, which took n bytes.
func (r *Reader) finish(n int) {
	r.pos += n
	r.req.kind = kindNone
	r.req.args = nil
}

// length looks for the end of the current line, a length in decimal after one byte of type. Its end is a
// CR and any byte, as in Redis. tooBig is the error for a line without an end.
func (r *Reader) length(b []byte, tooBig error) ([]byte, error) {
	q := &r.req
	i := bytes.IndexByte(b[q.scan:], '\r')
	if i < 0 {
		q.scan = len(b)
		if len(b)-q.line > maxLine {
			return nil, tooBig
		}
		return nil, ErrIncomplete
	}
	end := q.scan + i
	if end-q.line > maxLine {
		return nil, tooBig
	}
	if end+1 >= len(b) {
		q.scan = end
		return nil, ErrIncomplete
	}
	s := b[q.line:end]
	q.scan = end + 2
	return s, nil
}

// header reads "*<count>CRLF" and reports whether the request is empty.
func (r *Reader) header(b []byte) (bool, error) {
	s, err := r.length(b, errBigCount)
	if err != nil {
		return false, err
	}
	n, ok := parseInt(s[1:])
	switch {
	case !ok || n > maxArguments:
		return false, errCount
	case n > maxUnauthArgs && r.unauth:
		return false, errUnauthCount
	case n <= 0:
		return true, nil
	}
	r.req.left = int(n)
	r.req.line = r.req.scan
	return false, nil
}

// elements receives the elements of an array.
func (r *Reader) elements(b []byte) error {
	q := &r.req
	for q.left > 0 {
		if q.bulk < 0 {
			s, err := r.length(b, errBigBulkCount)
			if err != nil {
				return err
			}
			if q.bulk, err = r.bulkLength(s, b[q.line]); err != nil {
				return err
			}
		}
		end := q.end()
		if end > len(b) {
			return ErrIncomplete
		}
		q.args = append(q.args, span{uint32(q.scan), uint32(q.bulk)})
		q.line, q.scan, q.bulk = end, end, -1
		q.left--
	}
	return nil
}

// bulkLength reads "$<length>"; first is the line's first byte (which is the CR if the line is empty).
func (r *Reader) bulkLength(s []byte, first byte) (int, error) {
	if first != '$' {
		return -1, errExpectedBulk(first)
	}
	n, ok := parseInt(s[1:])
	switch {
	case !ok || n < 0 || n > r.lim.maxBulk():
		return -1, errBulk
	case n > maxUnauthBulk && r.unauth:
		return -1, errUnauthBulk
	}
	return int(n), nil
}

// parseInt reads a decimal as strictly as Redis: no plus sign, no leading zeros, no "-0".
func parseInt(s []byte) (int64, bool) {
	if len(s) == 1 && s[0] == '0' {
		return 0, true
	}
	neg := len(s) > 0 && s[0] == '-'
	if neg {
		s = s[1:]
	}
	if len(s) == 0 || len(s) > 18 || s[0] == '0' {
		// 19 digits are beyond every limit here, whether they fit 64 bits or not.
		return 0, false
	}
	var n int64
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if neg {
		n = -n
	}
	return n, true
}
