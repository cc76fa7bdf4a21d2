package server

import (
	"bytes"
	"strconv"
)

// eachReply calls fn with each element of an array reply, as it stands on the wire.
// REQUIRES: reply begins with a whole, valid array.
func eachReply(reply []byte, fn func(i int, one []byte)) {
	n, at := header(reply)
	for i := 0; i < n && at < len(reply); i++ {
		end := at + skipReply(reply[at:])
		fn(i, reply[at:end])
		at = end
	}
}

// header reads "<type><number>\r\n": the number, and where what follows begins.
func header(b []byte) (n, next int) {
	end := bytes.IndexByte(b, '\n')
	if end < 2 {
		return 0, len(b)
	}
	n, err := strconv.Atoi(string(b[1 : end-1]))
	if err != nil {
		n = 0
	}
	return n, end + 1
}

// skipReply returns the length of the first reply in b.
func skipReply(b []byte) int {
	n, at := header(b)
	elements := 0
	switch b[0] {
	case '$', '=', '!':
		if n >= 0 {
			at += n + 2
		}
		return min(at, len(b))
	case '*', '~', '>':
		elements = n
	case '%':
		elements = 2 * n
	case '|':
		elements = 2*n + 1
	}
	for ; elements > 0 && at < len(b); elements-- {
		at += skipReply(b[at:])
	}
	return min(at, len(b))
}
