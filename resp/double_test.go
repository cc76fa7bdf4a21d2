package resp

import (
	"math"
	"strconv"
	"testing"
)

func TestAppendDouble(t *testing.T) {
	for _, c := range []struct {
		f    float64
		want string
	}{
		{0, "0"},
		{math.Copysign(0, -1), "-0"},
		{1, "1"},
		{-5, "-5"},
		{0.1, "0.1"},
		{1.5, "1.5"},
		{-3.25, "-3.25"},
		{1e17, "100000000000000000"},
		{4e18, "4000000000000000000"},
		{1e20, "1e+20"},
		{1.5e300, "1.5e+300"},
		{1e-5, "0.00001"},
		{1e-7, "1e-7"},
		{1.25e-10, "1.25e-10"},
		{math.Inf(1), "inf"},
		{math.Inf(-1), "-inf"},
		{math.NaN(), "nan"},
		{3.141592653589793, "3.141592653589793"},
		{123456.789, "123456.789"},
		{math.MaxFloat64, "1.7976931348623157e+308"},
		{5e-324, "5e-324"},
		{9223372036854775808, "9223372036854776000"},
		{0.000123, "0.000123"},
		{1.7976931348623157e-3, "0.0017976931348623157"},
	} {
		got := string(AppendDouble(nil, c.f))
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.f, got, c.want)
		}
		if back, _ := strconv.ParseFloat(got, 64); back != c.f && c.f == c.f {
			t.Errorf("%v is read back as %v", c.f, back)
		}
	}
	if n := testing.AllocsPerRun(100, func() { var b [32]byte; AppendDouble(b[:0], 0.1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
