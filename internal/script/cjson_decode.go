package script

import (
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// Tokens of JSON, by the names that error texts use.
const (
	tokObjBegin = "T_OBJ_BEGIN"
	tokObjEnd   = "T_OBJ_END"
	tokArrBegin = "T_ARR_BEGIN"
	tokArrEnd   = "T_ARR_END"
	tokString   = "T_STRING"
	tokNumber   = "T_NUMBER"
	tokBoolean  = "T_BOOLEAN"
	tokNull     = "T_NULL"
	tokColon    = "T_COLON"
	tokComma    = "T_COMMA"
	tokEnd      = "T_END"
)

// jsonDecoder reads one JSON text.
type jsonDecoder struct {
	ip    *interp
	L     *lua.LState
	c     *jsonConfig
	s     string
	pos   int
	depth int

	kind  string // of the current token; any other text than a token's name is an error
	at    int    // where the current token starts
	str   string
	num   float64
	truth bool
}

func decodeJSON(ip *interp, L *lua.LState, c *jsonConfig, s string) lua.LValue {
	if len(s) >= 2 && (s[0] == 0 || s[1] == 0) {
		L.RaiseError("JSON parser does not support UTF-16 or UTF-32")
	}
	d := &jsonDecoder{ip: ip, L: L, c: c, s: s}
	d.next()
	v := d.value()
	d.next()
	if d.kind != tokEnd {
		d.expected("the end")
	}
	return v
}

func (d *jsonDecoder) expected(what string) {
	d.L.RaiseError("Expected %s but found %s at character %d", what, d.kind, d.at+1)
}

// byte returns the byte at i, 0 behind the end: as in Redis, a NUL ends the text.
func (d *jsonDecoder) byte(i int) byte {
	if i < len(d.s) {
		return d.s[i]
	}
	return 0
}

// next reads a token.
func (d *jsonDecoder) next() {
	for strings.IndexByte(" \t\n\r", d.byte(d.pos)) >= 0 && d.pos < len(d.s) {
		d.pos++
	}
	d.at = d.pos
	c := d.byte(d.pos)
	if kind, ok := singles[c]; ok {
		d.kind = kind
		d.pos++
		return
	}
	switch {
	case c == 0:
		d.kind = tokEnd
	case c == '"':
		d.readString()
	case c == '-' || c >= '0' && c <= '9':
		d.readNumber()
	case d.word("true"), d.word("false"):
		d.kind, d.truth = tokBoolean, c == 't'
	case d.word("null"):
		d.kind = tokNull
	case d.c.decodeInvalid && d.invalidNumber():
		d.readNumber()
	default:
		d.kind = "invalid token"
	}
}

var singles = map[byte]string{
	'{': tokObjBegin, '}': tokObjEnd, '[': tokArrBegin, ']': tokArrEnd, ':': tokColon, ',': tokComma,
}

func (d *jsonDecoder) word(w string) bool {
	if !strings.HasPrefix(d.s[d.pos:], w) {
		return false
	}
	d.pos += len(w)
	return true
}

// invalidNumber reports whether a number that JSON does not know begins here: +1, 0x1, 01, inf, nan.
func (d *jsonDecoder) invalidNumber() bool {
	p := d.pos
	if d.byte(p) == '+' {
		return true
	}
	if d.byte(p) == '-' {
		p++
	}
	if d.byte(p) == '0' {
		c := d.byte(p + 1)
		return c|0x20 == 'x' || c >= '0' && c <= '9'
	}
	if d.byte(p) <= '9' {
		return false
	}
	rest := d.s[p:min(p+3, len(d.s))]
	return strings.EqualFold(rest, "inf") || strings.EqualFold(rest, "nan")
}

func (d *jsonDecoder) readNumber() {
	if !d.c.decodeInvalid && d.invalidNumber() {
		d.kind = "invalid number"
		return
	}
	n := numberPrefix(d.s[d.pos:])
	f, err := strconv.ParseFloat(hexFloat(d.s[d.pos:d.pos+n]), 64)
	if n == 0 || err != nil && f == 0 {
		d.kind = "invalid number"
		return
	}
	d.kind, d.num = tokNumber, f
	d.pos += n
}

// hexFloat spells a hexadecimal integer so that ParseFloat reads it.
func hexFloat(s string) string {
	if strings.ContainsAny(s, "xX") && !strings.ContainsAny(s, "pP") {
		return s + "p0"
	}
	return s
}

// numberPrefix is the length of the number that s begins with, as strtod sees it.
func numberPrefix(s string) int {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	for _, w := range []string{"infinity", "inf", "nan"} {
		if len(s)-i >= len(w) && strings.EqualFold(s[i:i+len(w)], w) {
			return i + len(w)
		}
	}
	if len(s)-i > 2 && s[i] == '0' && s[i+1]|0x20 == 'x' && isHexDigit(s[i+2]) {
		i += 2
		for i < len(s) && isHexDigit(s[i]) {
			i++
		}
		return i
	}
	start := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	digits := i - start
	if i < len(s) && s[i] == '.' {
		j := i + 1
		for j < len(s) && isDigit(s[j]) {
			j++
		}
		digits += j - i - 1
		i = j
	}
	if digits == 0 {
		return 0
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '-' || s[j] == '+') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			i = j
		}
	}
	return i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHexDigit(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func (d *jsonDecoder) readString() {
	d.pos++
	var b []byte
	from := d.pos
	for {
		switch c := d.byte(d.pos); {
		case c == '"':
			d.kind = tokString
			d.str = d.s[from:d.pos]
			if b != nil {
				d.str = string(append(b, d.str...))
			}
			d.pos++
			return
		case c == 0:
			d.at = d.pos
			d.kind = "unexpected end of string"
			return
		case c == '\\':
			b = append(b, d.s[from:d.pos]...)
			var ok bool
			if b, ok = d.escape(b); !ok {
				return
			}
			if b == nil {
				b = []byte{}
			}
			from = d.pos
		default:
			d.pos++
		}
	}
}

// escape reads an escape sequence and appends what it means.
func (d *jsonDecoder) escape(b []byte) ([]byte, bool) {
	c := d.byte(d.pos + 1)
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 't':
		c = '\t'
	case 'n':
		c = '\n'
	case 'f':
		c = '\f'
	case 'r':
		c = '\r'
	case 'u':
		return d.unicode(b)
	default:
		d.at, d.kind = d.pos, "invalid escape code"
		return b, false
	}
	d.pos += 2
	return append(b, c), true
}

func (d *jsonDecoder) hex4(i int) (r rune, ok bool) {
	if i+4 > len(d.s) {
		return 0, false
	}
	n, err := strconv.ParseUint(d.s[i:i+4], 16, 16)
	return rune(n), err == nil //nolint:gosec // 16 bits
}

func (d *jsonDecoder) unicode(b []byte) ([]byte, bool) {
	r, ok := d.hex4(d.pos + 2)
	n := 6
	if ok && r >= 0xd800 && r < 0xe000 {
		low, lowOK := rune(0), false
		if r < 0xdc00 && d.byte(d.pos+6) == '\\' && d.byte(d.pos+7) == 'u' {
			low, lowOK = d.hex4(d.pos + 8)
		}
		ok = lowOK && low >= 0xdc00 && low < 0xe000
		r = (r&0x3ff)<<10 + (low & 0x3ff) + 0x10000
		n = 12
	}
	if !ok {
		d.at, d.kind = d.pos, "invalid unicode escape code"
		return b, false
	}
	d.pos += n
	return utf8.AppendRune(b, r), true
}

// value makes the value that the current token begins.
func (d *jsonDecoder) value() lua.LValue {
	switch d.kind {
	case tokString:
		return lua.LString(d.str)
	case tokNumber:
		return lua.LNumber(d.num)
	case tokBoolean:
		return lua.LBool(d.truth)
	case tokNull:
		return d.ip.jsonNull
	case tokObjBegin:
		return d.object()
	case tokArrBegin:
		return d.array()
	}
	d.expected("value")
	return lua.LNil
}

func (d *jsonDecoder) descend() {
	d.depth++
	if d.depth > d.c.decodeDepth {
		d.L.RaiseError("Found too many nested data structures (%d) at character %d", d.depth, d.pos)
	}
}

// fewItems is the room that the tables of decoded values begin with; NewTable's is for 32 items and 32 fields.
const fewItems = 4

func (d *jsonDecoder) object() lua.LValue {
	d.descend()
	t := d.L.CreateTable(0, fewItems)
	d.next()
	for d.kind != tokObjEnd {
		if d.kind != tokString {
			d.expected("object key string")
		}
		key := d.str
		d.next()
		if d.kind != tokColon {
			d.expected("colon")
		}
		d.next()
		t.RawSetString(key, d.value())
		d.next()
		if d.kind == tokObjEnd {
			break
		}
		if d.kind != tokComma {
			d.expected("comma or object end")
		}
		d.next()
		if d.kind == tokObjEnd {
			d.expected("object key string")
		}
	}
	d.depth--
	return t
}

func (d *jsonDecoder) array() lua.LValue {
	d.descend()
	t := d.L.CreateTable(fewItems, 0)
	d.next()
	if d.kind == tokArrEnd {
		d.depth--
		return t
	}
	for i := 1; ; i++ {
		t.RawSetInt(i, d.value())
		d.next()
		if d.kind == tokArrEnd {
			d.depth--
			return t
		}
		if d.kind != tokComma {
			d.expected("comma or array end")
		}
		d.next()
	}
}
