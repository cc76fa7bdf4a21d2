package resp

import (
	"math"
	"strconv"
)

// AppendDouble appends the text of a double as Redis 7.2 has it: integers as such, other numbers with the
// fewest digits that are read as the same number.
func AppendDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case f == 0 && math.Signbit(f):
		return append(dst, "-0"...)
	}
	if n := int64(f); math.Abs(f) <= 1<<62 && float64(n) == f {
		return strconv.AppendInt(dst, n, 10)
	}
	return appendShortest(dst, f)
}

// appendShortest writes the shortest digits of f in plain form where that is short, else with an exponent.
func appendShortest(dst []byte, f float64) []byte {
	if f < 0 {
		dst, f = append(dst, '-'), -f
	}
	var tmp [32]byte
	text := strconv.AppendFloat(tmp[:0], f, 'e', -1, 64) // d.ddde+xx
	mark := len(text) - 1
	for text[mark] != 'e' {
		mark--
	}
	exp, _ := strconv.Atoi(string(text[mark+1:]))
	digits := text[:1]
	if mark > 1 {
		digits = append(digits, text[2:mark]...) // over the point
	}
	n := len(digits)
	last := exp - (n - 1) // exponent of the last digit
	size := max(exp, -exp)
	switch {
	case last >= 0 && size < n+7:
		dst = append(dst, digits...)
		return appendZeros(dst, last)
	case last < 0 && (last > -7 || size < 4):
		if point := n + last; point > 0 {
			dst = append(append(dst, digits[:point]...), '.')
			return append(dst, digits[point:]...)
		}
		dst = appendZeros(append(dst, "0."...), -last-n)
		return append(dst, digits...)
	}
	dst = append(dst, digits[0])
	if n > 1 {
		dst = append(append(dst, '.'), digits[1:]...)
	}
	dst = append(dst, 'e')
	if exp >= 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(exp), 10)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}
