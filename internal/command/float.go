package command

import (
	"bytes"
	"math/big"
	"strconv"
)

// longDouble is a number as the C compilers of Redis's platforms compute with long double: a
// 64-bit mantissa, rounded to nearest even. Its exponents are not bounded as tightly, which only
// shows at the far ends of the range.
type longDouble struct {
	f   big.Float
	inf bool
}

const (
	// maxFloatText is one more than the longest text Redis reads as a number.
	maxFloatText = 5 * 1024
	// maxExp2 is the exponent at which a long double overflows.
	maxExp2 = 16384
	// maxExp10 bounds decimal exponents well beyond what a long double can hold.
	maxExp10 = 1 << 20
)

func newLongDouble() *longDouble {
	d := &longDouble{}
	d.f.SetPrec(64)
	return d
}

// parse reads what strtold reads, all of it: decimal or hexadecimal, or inf. Overflow, underflow to
// zero and nan are refused.
func (d *longDouble) parse(b []byte) bool {
	if n, ok := parseInt(b); ok {
		d.f.SetInt64(n)
		return true
	}
	if len(b) == 0 || len(b) >= maxFloatText {
		return false
	}
	body := b
	neg := b[0] == '-'
	if neg || b[0] == '+' {
		body = b[1:]
	}
	if isWord(body, "inf") || isWord(body, "infinity") {
		d.inf = true
		return true
	}
	digits, exp, base, ok := scanFloat(body)
	if !ok || !d.assemble(digits, exp, base) {
		return false
	}
	if neg {
		d.f.Neg(&d.f)
	}
	return true
}

// assemble sets d to digits (with an optional point) times base-specific exponent.
func (d *longDouble) assemble(digits []byte, exp int64, base int) bool {
	if len(bytes.Trim(digits, "0.")) == 0 {
		d.f.SetInt64(0)
		return true
	}
	if exp > maxExp10 || exp < -maxExp10 {
		return false
	}
	text := strconv.AppendInt(append(bytes.Clone(digits), expMark(base)), exp, 10)
	f, _, err := big.ParseFloat(string(text), base, 64, big.ToNearestEven)
	if err != nil {
		return false
	}
	d.f.Set(f)
	e := d.f.MantExp(nil)
	return e <= maxExp2 && e > -maxExp2-64
}

func expMark(base int) byte {
	if base == 16 {
		return 'p'
	}
	return 'e'
}

// scanFloat splits a number without its sign into digits (with a point or not) and exponent. ok is
// false if b is not a number as a whole.
func scanFloat(b []byte) (digits []byte, exp int64, base int, ok bool) {
	base = 10
	if len(b) > 2 && b[0] == '0' && b[1]|0x20 == 'x' {
		b, base = b[2:], 16
	}
	end, found, point := 0, false, false
	for ; end < len(b); end++ {
		if b[end] == '.' && !point {
			point = true
			continue
		}
		if !isDigit(b[end], base) {
			break
		}
		found = true
	}
	if !found {
		return nil, 0, 0, false
	}
	digits, rest := b[:end], b[end:]
	if len(rest) == 0 {
		return digits, 0, base, true
	}
	if rest[0]|0x20 != expMark(base) {
		return nil, 0, 0, false
	}
	exp, ok = scanExponent(rest[1:])
	return digits, exp, base, ok
}

// scanExponent reads an exponent, clamped to what is certainly out of range.
func scanExponent(b []byte) (int64, bool) {
	neg := len(b) > 0 && b[0] == '-'
	if neg || (len(b) > 0 && b[0] == '+') {
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	var n int64
	for _, d := range b {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = min(n*10+int64(d-'0'), maxExp10+1)
	}
	if neg {
		n = -n
	}
	return n, true
}

func isDigit(b byte, base int) bool {
	if b >= '0' && b <= '9' {
		return true
	}
	return base == 16 && b|0x20 >= 'a' && b|0x20 <= 'f'
}

// add adds other to d; it reports false when the sum is not a finite number.
func (d *longDouble) add(other *longDouble) bool {
	if d.inf || other.inf {
		return false
	}
	d.f.Add(&d.f, &other.f)
	return d.f.MantExp(nil) <= maxExp2
}

// format returns the number with 17 decimals, trailing zeros removed.
func (d *longDouble) format() []byte {
	text := d.f.Append(nil, 'f', 17)
	text = bytes.TrimRight(text, "0")
	text = bytes.TrimSuffix(text, []byte("."))
	if string(text) == "-0" {
		return []byte("0")
	}
	return text
}
