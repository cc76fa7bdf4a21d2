package script

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// rand48 is the generator of drand48: with the same seed, math.random gives the same numbers as in Redis. All scripts share one.
type rand48 uint64

const (
	randomMax  = math.MaxInt32
	randomMask = 1<<48 - 1
)

// firstRandom is the state before anybody seeds it.
const firstRandom rand48 = 0x1234ABCD330E

func (r *rand48) seed(n int32) { *r = rand48(uint64(uint32(n))<<16 | 0x330E) }

func (r *rand48) next() int64 {
	*r = rand48((uint64(*r)*0x5DEECE66D + 0xB) & randomMask)
	return int64(*r >> 17)
}

// openRandom replaces math.random and math.randomseed.
func (ip *interp) openRandom(math *lua.LTable) {
	math.RawSetString("randomseed", ip.L.NewFunction(func(L *lua.LState) int {
		ip.rt.rng.seed(int32(int64(L.CheckNumber(1)))) //nolint:gosec // as in Redis, the low 32 bits
		return 0
	}))
	math.RawSetString("random", ip.L.NewFunction(ip.random))
}

func (ip *interp) random(L *lua.LState) int {
	r := float64(ip.rt.rng.next()%randomMax) / randomMax
	switch L.GetTop() {
	case 0:
		L.Push(lua.LNumber(r))
	case 1:
		u := L.CheckInt(1)
		if u < 1 {
			L.ArgError(1, "interval is empty")
		}
		L.Push(lua.LNumber(math.Floor(r*float64(u)) + 1))
	case 2:
		l, u := L.CheckInt(1), L.CheckInt(2)
		if l > u {
			L.ArgError(2, "interval is empty")
		}
		L.Push(lua.LNumber(math.Floor(r*float64(u-l+1)) + float64(l)))
	default:
		L.RaiseError("wrong number of arguments")
	}
	return 1
}
