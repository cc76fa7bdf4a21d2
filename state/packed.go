package state

import "encoding/binary"

// A packed collection is a run of strings, each with its length as uvarint before it. What a string
// means (member, field, value, score and member) is the type's business.

// appendString appends s with its length.
func appendString(dst, s []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// cutString returns the first string of a packed run and the rest. REQUIRES: b is not empty and was
// written by appendString.
func cutString(b []byte) (s, rest []byte) {
	if n := int(b[0]); n < 0x80 {
		return b[1 : 1+n : 1+n], b[1+n:]
	}
	n, w := binary.Uvarint(b)
	end := w + int(n)
	return b[w:end:end], b[end:]
}

// stringSize returns the bytes that appendString needs.
func stringSize(n int) int {
	size := 1 + n
	for n >= 0x80 {
		n >>= 7
		size++
	}
	return size
}

func uvarint(b []byte) (n, width int) {
	x, w := binary.Uvarint(b)
	return int(x), w
}
