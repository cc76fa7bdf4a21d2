package command

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bitShapes are request forms: k key, o bit offset, b bit, r a range with or without a unit, O operation of BITOP,
// F fields of BITFIELD, G fields to read, v value, e elements.
var bitShapes = map[string][]string{
	"setbit": {"kob", "kob"}, "getbit": {"ko"}, "bitcount": {"k", "kr"}, "bitpos": {"kb", "kbr", "kbi"}, "bitop": {"Okk", "Okkk", "Nkk"},
	"bitfield": {"kF", "kF", "kF"}, "bitfield_ro": {"kG"}, "get": {"k"}, "strlen": {"k"}, "set": {"kv"}, "del": {"k"}, "append": {"kv"},
	"pfadd": {"he", "he", "he"}, "pfmerge": {"hh", "hhh"}, "pfdebug": {"Eh", "Dh"}, "rename": {"hh"}, "copy": {"hhR"}, "getrange": {"hHH"},
}

func bitRequest(r *rand.Rand, name string) [][]byte {
	pick := func(pool ...string) string { return pool[r.IntN(len(pool))] }
	offset := func() string { return strconv.Itoa(r.IntN([]int{20, 300, 3000}[r.IntN(3)])) }
	around := func() string { return strconv.Itoa(r.IntN(600) - 300) }
	field := func() []string {
		kind := pick("u", "i")
		return []string{kind + strconv.Itoa(1+r.IntN(63)), pick("", "#") + strconv.Itoa(r.IntN(130))}
	}
	number := func() string {
		return strconv.FormatInt(int64(r.Uint64())>>r.IntN(64), 10)
	}
	args := []string{name}
	for _, letter := range pick(bitShapes[name]...) {
		switch letter {
		case 'k':
			args = append(args, pick("a", "b", "c"))
		case 'h':
			args = append(args, pick("h", "i", "j"))
		case 'H':
			args = append(args, []string{"0", "7"}[len(args)-2])
		case 'o':
			args = append(args, offset())
		case 'b':
			args = append(args, pick("0", "1"))
		case 'i':
			args = append(args, around())
		case 'r':
			args = append(args, around(), around())
			if r.IntN(2) == 0 {
				args = append(args, pick("BIT", "byte"))
			}
		case 'O':
			args = append(args, pick("AND", "or", "XOR"))
		case 'N', 'E', 'D', 'R':
			args = append(args, map[rune]string{'N': "NOT", 'E': "ENCODING", 'D': "DECODE", 'R': "REPLACE"}[letter])
		case 'v':
			args = append(args, strings.Repeat(pick("\x00", "\xff", "a", "\x80"), r.IntN(60)))
		case 'e':
			for range r.IntN([]int{4, 40, 400}[r.IntN(3)]) {
				args = append(args, "e"+strconv.Itoa(r.IntN(5000)))
			}
		case 'F', 'G':
			for range 1 + r.IntN(4) {
				switch op := r.IntN(4); {
				case op == 0 || letter == 'G':
					args = append(append(args, "GET"), field()...)
				case op == 1:
					args = append(append(append(args, "SET"), field()...), number())
				default:
					args = append(args, "OVERFLOW", pick("WRAP", "SAT", "FAIL"))
					args = append(append(append(args, "INCRBY"), field()...), number())
				}
			}
		}
	}
	return words(args...)
}

// TestOracleRandomBits compares random sequences about bitmaps and HyperLogLogs with redis-server, the bytes of the
// latter too. (PFCOUNT is left out: there it changes the value.)
func TestOracleRandomBits(t *testing.T) {
	o := startOracle(t)
	var names []string
	for _, c := range TopLevel() {
		if bitShapes[c.Name] != nil {
			names = append(names, c.Name)
		}
	}
	names = append(names, "setbit", "bitfield", "bitfield", "pfadd")
	rounds := 100
	if testing.Short() {
		rounds = 10
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 60))
		h := newHarness(t, 1+seed%3)
		h.w.Proto = 2 + seed%2
		o.run(t, words("HELLO", strconv.Itoa(h.w.Proto)))
		o.run(t, words("FLUSHALL"))
		var trail []string
		for i := range 250 {
			args := bitRequest(r, names[r.IntN(len(names))])
			if i%10 == 9 {
				args = words("GET", []string{"h", "i", "j", "a", "b", "c"}[r.IntN(6)])
			}
			h.ctx.Now = time.Now().UnixMilli()
			got, want := h.exec(args), o.run(t, args)
			trail = append(trail, fmt.Sprintf("%.300q -> %.200q", args, h.did))
			if got != want {
				t.Fatalf("seed %d: %.300q\n%s\n%s", seed, args, firstDifference(got, want), strings.Join(trail[max(0, len(trail)-12):], "\n"))
			}
		}
	}
}

// TestOracleHyperLogLog lets HyperLogLogs grow from sparse to dense and compares bytes and estimates.
func TestOracleHyperLogLog(t *testing.T) {
	o := startOracle(t)
	h := newHarness(t, 2)
	n := 0
	for round := range 200 {
		args := words("PFADD", "h")
		for range 1 + round*3 {
			n++
			args = append(args, []byte(fmt.Sprint("element:", n)))
		}
		other := words("PFADD", "k", fmt.Sprint(round), fmt.Sprint(round, " x"))
		for _, a := range [][][]byte{
			args, other, words("GET", "h"), words("PFMERGE", "m", "k", "h"), words("GET", "m"), words("PFCOUNT", "m", "h"),
			words("PFCOUNT", "m"), words("DEL", "m"), words("PFDEBUG", "ENCODING", "h"),
		} {
			if got, want := h.exec(a), o.run(t, a); got != want {
				t.Fatalf("round %d: %.100q\n%s", round, a, firstDifference(got, want))
			}
		}
	}
}
