package script

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// binaryMark begins precompiled code, which scripts may not load.
const binaryMark = "\x1bLua"

// stringMax is the longest string that string.rep makes.
const stringMax = 1 << 30

// appendG formats f as C's %.<prec>g.
func appendG(dst []byte, f float64, prec int) []byte {
	switch {
	case math.IsNaN(f) && math.Signbit(f):
		return append(dst, "-nan"...)
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, f, 'g', max(prec, 1), 64)
}

// openStrings replaces what differs from C Lua in the library string.
func (ip *interp) openStrings() {
	t := ip.globals.RawGetString("string").(*lua.LTable)
	t.RawSetString("dump", ip.L.NewFunction(func(L *lua.LState) int {
		L.CheckFunction(1)
		L.Push(lua.LString(binaryMark)) // what no function can be made of again
		return 1
	}))
	t.RawSetString("format", ip.L.NewFunction(stringFormat))
	t.RawSetString("upper", ip.L.NewFunction(mapBytes('a', 'z')))
	t.RawSetString("lower", ip.L.NewFunction(mapBytes('A', 'Z')))
	t.RawSetString("rep", ip.L.NewFunction(func(L *lua.LState) int {
		s, n := L.CheckString(1), L.CheckInt64(2)
		if n <= 0 || s == "" {
			L.Push(lua.LString(""))
			return 1
		}
		if n > stringMax/int64(len(s)) {
			L.RaiseError("resulting string too large")
		}
		L.Push(lua.LString(strings.Repeat(s, int(n))))
		return 1
	}))
}

// mapBytes returns a function that changes the case of ASCII letters.
func mapBytes(from, to byte) lua.LGFunction {
	return func(L *lua.LState) int {
		b := []byte(L.CheckString(1))
		for i, c := range b {
			if c >= from && c <= to {
				b[i] = c ^ 0x20
			}
		}
		L.Push(lua.LString(b))
		return 1
	}
}

// toNumber is tonumber(x [, base]).
func toNumber(L *lua.LState) int {
	base := L.OptInt(2, 10)
	if base < 2 || base > 36 {
		L.ArgError(2, "base out of range")
	}
	v := L.CheckAny(1)
	n, ok := v.(lua.LNumber)
	if s, isString := v.(lua.LString); isString {
		n, ok = parseNumber(strings.Trim(string(s), " \t\n\v\f\r"), base)
	}
	if !ok {
		L.Push(lua.LNil)
	} else {
		L.Push(n)
	}
	return 1
}

func parseNumber(s string, base int) (lua.LNumber, bool) {
	if base != 10 {
		if base == 16 && len(s) > 2 && strings.EqualFold(s[:2], "0x") {
			s = s[2:]
		}
		n, err := strconv.ParseUint(strings.ToLower(s), base, 64)
		return lua.LNumber(n), err == nil && !strings.Contains(s, "_")
	}
	if s == "" || numberPrefix(s) != len(s) {
		return 0, false
	}
	f, err := strconv.ParseFloat(hexFloat(s), 64)
	return lua.LNumber(f), err == nil || f != 0
}

// directive is one conversion of string.format: %<flags><width>.<prec><verb>.
type directive struct {
	flags string
	width int
	prec  int // -1: none
	verb  byte
}

// parseDirective reads what follows a %.
func parseDirective(L *lua.LState, s string) (d directive, n int) {
	for n < len(s) && strings.IndexByte("-+ #0", s[n]) >= 0 {
		n++
	}
	if n > 5 {
		L.RaiseError("invalid format (repeated flags)")
	}
	d.flags, d.prec = s[:n], -1
	number := func() int {
		from := n
		for n < len(s) && n-from < 2 && isDigit(s[n]) {
			n++
		}
		if n < len(s) && isDigit(s[n]) {
			L.RaiseError("invalid format (width or precision too long)")
		}
		v, _ := strconv.Atoi(s[from:n])
		return v
	}
	d.width = number()
	if n < len(s) && s[n] == '.' {
		n++
		d.prec = number()
	}
	if n < len(s) {
		d.verb = s[n]
		n++
	}
	return d, n
}

// spec spells the directive for package fmt.
func (d directive) spec(verb byte) string {
	s := "%" + d.flags
	if d.width > 0 {
		s += strconv.Itoa(d.width)
	}
	if d.prec >= 0 {
		s += "." + strconv.Itoa(d.prec)
	}
	return s + string(verb)
}

// pad fills up to the width; bytes count, not characters.
func (d directive) pad(s string) string {
	gap := d.width - len(s)
	switch {
	case gap <= 0:
		return s
	case strings.Contains(d.flags, "-"):
		return s + strings.Repeat(" ", gap)
	}
	return strings.Repeat(" ", gap) + s
}

func stringFormat(L *lua.LState) int {
	format, arg := L.CheckString(1), 1
	var out []byte
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			out = append(out, format[i])
			continue
		}
		if i+1 < len(format) && format[i+1] == '%' {
			out = append(out, '%')
			i++
			continue
		}
		d, n := parseDirective(L, format[i+1:])
		i += n
		arg++
		out = append(out, d.format(L, arg)...)
	}
	L.Push(lua.LString(out))
	return 1
}

func (d directive) format(L *lua.LState, arg int) string {
	if arg > L.GetTop() {
		L.ArgError(arg, "no value")
	}
	switch d.verb {
	case 'c':
		return d.pad(string([]byte{byte(int64(L.CheckNumber(arg)))}))
	case 'd', 'i':
		return fmt.Sprintf(d.spec('d'), int64(L.CheckNumber(arg)))
	case 'u':
		return fmt.Sprintf(d.spec('d'), toUint(float64(L.CheckNumber(arg))))
	case 'o', 'x', 'X':
		return fmt.Sprintf(d.spec(d.verb), toUint(float64(L.CheckNumber(arg))))
	case 'e', 'E', 'f', 'g', 'G':
		return d.float(float64(L.CheckNumber(arg)))
	case 'q':
		return quote(L.CheckString(arg))
	case 's':
		s := stringOf(L, arg)
		if d.prec >= 0 && d.prec < len(s) {
			s = s[:d.prec]
		}
		return d.pad(s)
	}
	L.RaiseError("invalid option '%%%s' to 'format'", string(d.verb))
	return ""
}

// stringOf is the text of an argument of %s.
func stringOf(L *lua.LState, arg int) string {
	switch v := L.CheckAny(arg).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return numberText(v)
	}
	return L.CheckString(arg)
}

func (d directive) float(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		s := string(appendG(nil, f, 6))
		if strings.Contains(d.flags, "+") && s[0] != '-' {
			s = "+" + s
		}
		if d.verb < 'a' {
			s = strings.ToUpper(s)
		}
		return d.pad(s)
	}
	if d.prec < 0 {
		d.prec = 6
	}
	if d.prec == 0 && d.verb|0x20 == 'g' {
		d.prec = 1
	}
	return fmt.Sprintf(d.spec(d.verb), f)
}

// quote writes a string as Lua reads it.
func quote(s string) string {
	b := []byte{'"'}
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			b = append(b, '\\', c)
		case '\r':
			b = append(b, `\r`...)
		case 0:
			b = append(b, `\000`...)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}
