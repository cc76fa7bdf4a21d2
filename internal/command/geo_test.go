package command

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func init() { effectCases = append(effectCases, geoEffectCases...) }

var geoEffectCases = []effectCase{
	{"", "GEOADD k 13.361389 38.115556 p", "ZADD k 3479099956230698 p", ":1\r\n"},
	{"GEOADD k 13.361389 38.115556 p", "GEOADD k CH 13.361389 38.115556 p", "", ":0\r\n"},
	{"GEOADD k 13.361389 38.115556 p", "GEORADIUS k 13 38 100 km STORE d", "ZADD d 3479099956230698 p", ":1\r\n"},
	{"GEOADD k 13.361389 38.115556 p", "GEORADIUS k 13 38 100 km", "", ""},
	{"SET d 1", "GEORADIUS k 13 38 100 km STORE d", "DEL d", ":0\r\n"},
	{"GEOADD k 13.361389 38.115556 p", "GEORADIUSBYMEMBER k p 1 km STOREDIST k", "DEL k; ZADD k 0 p", ":1\r\n"},
	{"GEOADD k 13.361389 38.115556 p", "GEOSEARCHSTORE d k FROMLONLAT 13 38 BYBOX 300 300 km", "ZADD d 3479099956230698 p", ":1\r\n"},
	{"", "GEOSEARCHSTORE d k FROMLONLAT 13 38 BYBOX 300 300 km", "", ":0\r\n"},
}

// TestGeoBits: any score is read as a position, also where the conversion is not defined (values as gcc 12 makes them on x86-64).
func TestGeoBits(t *testing.T) {
	for score, want := range map[float64]uint64{
		math.Inf(1): 0, math.Inf(-1): 1 << 63, -5: 0xfffffffffffffffb, 1e19: 0x8ac7230489e80000, 1e300: 0, 9.3e18: 0x81103cb9fb220000, -1e300: 1 << 63,
		3479099956230698: 3479099956230698, 2.9: 2,
	} {
		if got := geoBits(score); got != want {
			t.Errorf("%v: %x, want %x", score, got, want)
		}
	}
}

// TestGeoKeys: the keys that a search may store into are among its keys.
func TestGeoKeys(t *testing.T) {
	for request, want := range map[string]int{
		"GEORADIUS k 1 2 3 m": 1, "GEORADIUS k 1 2 3 m STORE d": 2,
		"GEORADIUSBYMEMBER k x 3 m STOREDIST d": 2, "GEORADIUS_RO k 1 2 3 m": 1, "GEOSEARCHSTORE d k x": 2,
	} {
		args := fields(request)
		if got := KeyPositions(Lookup(args[0]), args, nil); len(got) != want {
			t.Errorf("%s: keys at %v", request, got)
		}
	}
}

// TestOracleGeoRandom compares searches among random places with redis-server.
func TestOracleGeoRandom(t *testing.T) {
	o := startOracle(t)
	r := rand.New(rand.NewPCG(8, 9))
	num := func(f float64) string { return strconv.FormatFloat(f, 'f', 6, 64) }
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	for round := range rounds {
		h := newHarness(t, 2)
		h.w.Proto = 2 + round%2
		o.run(t, words("HELLO", strconv.Itoa(h.w.Proto)))
		o.run(t, words("FLUSHALL"))
		centerLong, centerLat := r.Float64()*360-180, r.Float64()*170-85
		spread := []float64{0.01, 1, 10, 200}[r.IntN(4)]
		place := func() (string, string) {
			for {
				long, lat := centerLong+(r.Float64()-0.5)*spread, centerLat+(r.Float64()-0.5)*spread
				if math.Abs(long) <= 180 && math.Abs(lat) <= 85.05 {
					return num(long), num(lat)
				}
			}
		}
		both := func(args ...string) {
			t.Helper()
			if got, want := h.exec(words(args...)), o.run(t, words(args...)); got != want {
				t.Errorf("round %d: %q\n got  %.600q\n want %.600q", round, args, got, want)
			}
		}
		for i := range 150 {
			long, lat := place()
			both("GEOADD", "g", long, lat, "m"+strconv.Itoa(i))
		}
		for range 60 {
			long, lat := place()
			size := num(spread * 111 * (0.01 + r.Float64()))
			unit := pick("m", "km", "mi", "ft")
			m, n := "m"+strconv.Itoa(r.IntN(150)), "m"+strconv.Itoa(r.IntN(150))
			both("GEODIST", "g", m, n, unit)
			both("GEOPOS", "g", m)
			both("GEOHASH", "g", m)
			both("GEOSEARCH", "g", "FROMLONLAT", long, lat, "BYRADIUS", size, "km", pick("ASC", "DESC"), "WITHDIST", "WITHCOORD")
			both("GEOSEARCH", "g", "FROMMEMBER", m, "BYBOX", size, num(spread*111*r.Float64()), "km", "WITHHASH", "WITHDIST")
			both("GEORADIUS", "g", long, lat, size, pick("km", "mi"), "COUNT", "5", pick("ASC", "DESC", "ANY"))
			both("GEORADIUSBYMEMBER", "g", m, size, unit, "STORE", "d")
			both("ZRANGE", "d", "0", "-1", "WITHSCORES")
			both("GEOSEARCHSTORE", "d", "g", "FROMLONLAT", long, lat, "BYRADIUS", size, "km", "STOREDIST")
			if got, want := numbers(h.run("ZRANGE", "d", "0", "-1", "WITHSCORES")),
				numbers(o.run(t, words("ZRANGE", "d", "0", "-1", "WITHSCORES"))); !slices.EqualFunc(got, want, nearly) {
				t.Errorf("round %d: STOREDIST\n got  %v\n want %v", round, got, want)
			}
		}
	}
}

// numbers returns the numbers among the lines of a reply: servers before 7.2 write them otherwise.
func numbers(reply string) (out []float64) {
	for line := range strings.SplitSeq(reply, "\r\n") {
		if f, err := strconv.ParseFloat(strings.TrimPrefix(line, ","), 64); err == nil {
			out = append(out, f)
		}
	}
	return out
}

// nearly compares distances: the last digit depends on the machine's sines.
func nearly(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }

// BenchmarkGeoSearch searches among 10,000 places.
func BenchmarkGeoSearch(b *testing.B) {
	h := newHarness(b, 1)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 10_000 {
		h.run("GEOADD", "g", strconv.FormatFloat(r.Float64()*10, 'f', 6, 64), strconv.FormatFloat(40+r.Float64()*10, 'f', 6, 64),
			"m"+strconv.Itoa(i))
	}
	args := fields("GEOSEARCH g FROMLONLAT 5 45 BYRADIUS 50 km ASC")
	b.ReportAllocs()
	for b.Loop() {
		h.plan(args)
	}
}
