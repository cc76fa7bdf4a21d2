package script

import (
	"encoding/binary"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

const (
	maxIntSize      = 32
	structAlignment = 8
)

// layout reads a format of the library struct, one item at a time.
type layout struct {
	L     *lua.LState
	fmt   string
	big   bool
	align int
	pos   int
}

func newLayout(L *lua.LState) *layout { return &layout{L: L, fmt: L.CheckString(1), align: 1} }

func (f *layout) number(otherwise int) int {
	if f.fmt == "" || f.fmt[0] < '0' || f.fmt[0] > '9' {
		return otherwise
	}
	n := 0
	for f.fmt != "" && f.fmt[0] >= '0' && f.fmt[0] <= '9' {
		d := int(f.fmt[0] - '0')
		if n > (math.MaxInt32-d)/10 {
			f.L.RaiseError("integral size overflow")
		}
		n = n*10 + d
		f.fmt = f.fmt[1:]
	}
	return n
}

// next returns the next option, its size and how many bytes are left out before it. 0 is the end. It does what control
// options ask for and returns them as ' '.
func (f *layout) next() (opt byte, size, pad int) {
	if f.fmt == "" || f.fmt[0] == 0 {
		return 0, 0, 0
	}
	opt, f.fmt = f.fmt[0], f.fmt[1:]
	size = f.size(opt)
	if a := min(size, f.align); size > 0 && opt != 'c' {
		pad = (a - (f.pos & (a - 1))) & (a - 1)
	}
	if strings.IndexByte("BbHhLlTfdxciIs", opt) < 0 {
		f.control(opt)
		opt = ' '
	}
	return opt, size, pad
}

func (f *layout) size(opt byte) int {
	switch opt {
	case 'B', 'b', 'x':
		return 1
	case 'H', 'h':
		return 2
	case 'L', 'l', 'T', 'd':
		return 8
	case 'f':
		return 4
	case 'c':
		return f.number(1)
	case 'i', 'I':
		n := f.number(4)
		if n > maxIntSize {
			f.L.RaiseError("integral size %d is larger than limit of %d", n, maxIntSize)
		}
		return n
	}
	return 0
}

func (f *layout) control(opt byte) {
	switch opt {
	case ' ':
	case '>':
		f.big = true
	case '<':
		f.big = false
	case '!':
		n := f.number(structAlignment)
		if n <= 0 || n&(n-1) != 0 {
			f.L.RaiseError("alignment %d is not a power of 2", n)
		}
		f.align = n
	default:
		f.L.ArgError(1, "invalid format option '"+string(rune(opt))+"'")
	}
}

// openStruct makes the library struct.
func (ip *interp) openStruct() *lua.LTable {
	return ip.L.SetFuncs(ip.L.NewTable(), map[string]lua.LGFunction{
		"pack": structPack, "unpack": structUnpack, "size": structSize,
	})
}

func structPack(L *lua.LState) int {
	f := newLayout(L)
	var out []byte
	arg := 2
	for {
		opt, size, pad := f.next()
		if opt == 0 {
			break
		}
		out = append(out, make([]byte, pad)...)
		switch opt {
		case ' ':
			continue
		case 'x':
			out = append(out, 0)
		case 'f':
			out = f.bytes(out, uint64(math.Float32bits(float32(L.CheckNumber(arg)))), size)
			arg++
		case 'd':
			out = f.bytes(out, math.Float64bits(float64(L.CheckNumber(arg))), size)
			arg++
		case 'c', 's':
			s := L.CheckString(arg)
			arg++
			if size == 0 {
				size = len(s)
			}
			if len(s) < size {
				L.ArgError(arg, "string too short")
			}
			out = append(out, s[:size]...)
			if opt == 's' {
				out = append(out, 0)
			}
		default:
			out = f.bytes(out, toUint(float64(L.CheckNumber(arg))), size)
			arg++
		}
		f.pos = len(out)
	}
	L.Push(lua.LString(out))
	return 1
}

// toUint converts as C does on the machines of today: out of range is 1<<63.
func toUint(n float64) uint64 {
	switch {
	case n >= 1<<63 && n < 1<<64:
		return uint64(n)
	case n >= -(1<<63) && n < 1<<63:
		return uint64(int64(n)) //nolint:gosec // two's complement
	}
	return 1 << 63
}

// bytes appends the size low bytes of v.
func (f *layout) bytes(out []byte, v uint64, size int) []byte {
	at := len(out)
	out = append(out, make([]byte, size)...)
	for i := range min(size, 8) {
		if f.big {
			out[at+size-1-i] = byte(v >> (8 * i))
		} else {
			out[at+i] = byte(v >> (8 * i))
		}
	}
	return out
}

func structUnpack(L *lua.LState) int {
	f := newLayout(L)
	data := L.CheckString(2)
	start := L.OptInt(3, 1)
	if start <= 0 {
		L.ArgError(3, "offset must be 1 or greater")
	}
	f.pos = start - 1
	base := L.GetTop()
	for {
		opt, size, pad := f.next()
		if opt == 0 {
			break
		}
		f.pos += pad
		f.need(data, size)
		switch opt {
		case ' ', 'x':
		case 'f':
			L.Push(lua.LNumber(math.Float32frombits(uint32(f.value(data[f.pos : f.pos+size]))))) //nolint:gosec // four bytes
		case 'd':
			L.Push(lua.LNumber(math.Float64frombits(f.value(data[f.pos : f.pos+size]))))
		case 'c':
			if size == 0 {
				n, ok := L.Get(-1).(lua.LNumber)
				if !ok || L.GetTop() == base {
					L.RaiseError("format 'c0' needs a previous size")
				}
				size = int(n)
				L.Pop(1)
				f.need(data, size)
			}
			L.Push(lua.LString(data[f.pos : f.pos+size]))
		case 's':
			end := strings.IndexByte(data[f.pos:], 0)
			if end < 0 {
				L.RaiseError("unfinished string in data")
			}
			L.Push(lua.LString(data[f.pos : f.pos+end]))
			size = end + 1
		default:
			L.Push(f.integer(data[f.pos:f.pos+size], opt >= 'a'))
		}
		f.pos += size
	}
	L.Push(lua.LNumber(f.pos + 1))
	return L.GetTop() - base
}

func (f *layout) need(data string, size int) {
	if size < 0 || size > len(data) || f.pos > len(data)-size {
		f.L.ArgError(2, "data string too short")
	}
}

// value reads up to the eight low bytes.
func (f *layout) value(b string) uint64 {
	var v [8]byte
	for i := range min(len(b), 8) {
		if f.big {
			v[i] = b[len(b)-1-i]
		} else {
			v[i] = b[i]
		}
	}
	return binary.LittleEndian.Uint64(v[:])
}

func (f *layout) integer(b string, signed bool) lua.LNumber {
	v := f.value(b)
	if !signed {
		return lua.LNumber(v)
	}
	if n := len(b); n > 0 && n < 8 {
		v = uint64(int64(v<<(64-8*n)) >> (64 - 8*n)) //nolint:gosec // sign extension
	}
	return lua.LNumber(int64(v)) //nolint:gosec // two's complement
}

func structSize(L *lua.LState) int {
	f := newLayout(L)
	for {
		opt, size, pad := f.next()
		switch {
		case opt == 0:
			L.Push(lua.LNumber(f.pos))
			return 1
		case opt == 's':
			L.ArgError(1, "option 's' has no fixed size")
		case opt == 'c' && size == 0:
			L.ArgError(1, "option 'c0' has no fixed size")
		}
		f.pos += pad + size
	}
}
