package script

import (
	"math"
	"math/bits"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// bitArg converts an argument to 32 bits as the bit library does: rounded to the nearest integer, modulo 2^32.
func bitArg(L *lua.LState, i int) uint32 {
	n := float64(L.CheckNumber(i))
	return uint32(int64(math.RoundToEven(math.Mod(n, 1<<32)))) //nolint:gosec // modulo 2^32
}

func pushBits(L *lua.LState, b uint32) int {
	L.Push(lua.LNumber(int32(b))) //nolint:gosec // results are signed
	return 1
}

// openBit makes the library bit.
func (ip *interp) openBit() *lua.LTable {
	fold := func(f func(a, b uint32) uint32) lua.LGFunction {
		return func(L *lua.LState) int {
			b := bitArg(L, 1)
			for i := L.GetTop(); i > 1; i-- {
				b = f(b, bitArg(L, i))
			}
			return pushBits(L, b)
		}
	}
	shift := func(f func(b uint32, n int) uint32) lua.LGFunction {
		return func(L *lua.LState) int { return pushBits(L, f(bitArg(L, 1), int(bitArg(L, 2)&31))) }
	}
	return ip.L.SetFuncs(ip.L.NewTable(), map[string]lua.LGFunction{
		"tobit":   func(L *lua.LState) int { return pushBits(L, bitArg(L, 1)) },
		"bnot":    func(L *lua.LState) int { return pushBits(L, ^bitArg(L, 1)) },
		"bswap":   func(L *lua.LState) int { return pushBits(L, bits.ReverseBytes32(bitArg(L, 1))) },
		"band":    fold(func(a, b uint32) uint32 { return a & b }),
		"bor":     fold(func(a, b uint32) uint32 { return a | b }),
		"bxor":    fold(func(a, b uint32) uint32 { return a ^ b }),
		"lshift":  shift(func(b uint32, n int) uint32 { return b << n }),
		"rshift":  shift(func(b uint32, n int) uint32 { return b >> n }),
		"arshift": shift(func(b uint32, n int) uint32 { return uint32(int32(b) >> n) }), //nolint:gosec // sign extension
		"rol":     shift(bits.RotateLeft32),
		"ror":     shift(func(b uint32, n int) uint32 { return bits.RotateLeft32(b, -n) }),
		"tohex":   bitToHex,
	})
}

func bitToHex(L *lua.LState) int {
	b, n, digits := bitArg(L, 1), int32(8), "0123456789abcdef"
	if L.GetTop() >= 2 {
		n = int32(bitArg(L, 2)) //nolint:gosec // signed
	}
	if n < 0 {
		n, digits = -n, strings.ToUpper(digits)
	}
	if n > 8 || n < 0 {
		n = 8
	}
	buf := make([]byte, n)
	for i := n - 1; i >= 0; i-- {
		buf[i] = digits[b&15]
		b >>= 4
	}
	L.Push(lua.LString(buf))
	return 1
}
