package command

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// streamShapes are request forms: k key, g group, c consumer, I an ID, N the ID of a new entry, e range end, n
// count, f fields; other words stand for themselves.
var streamShapes = map[string][]string{
	"xadd": {
		"k N f", "k N f", "k N f", "k N f", "k N f", "k N f", "k MAXLEN n N f", "k MAXLEN ~ n N f", "k MINID I N f",
		"k MINID ~ I N f", "k MAXLEN ~ n LIMIT n N f", "k NOMKSTREAM N f", "k I f",
	},
	"xlen": {"k"}, "xrange": {"k e e", "k e e COUNT n", "k - + COUNT n"}, "xrevrange": {"k e e", "k e e COUNT n", "k + -"},
	"xdel": {"k I", "k I I I", "k I I I I I I"}, "xtrim": {"k MAXLEN n", "k MINID I", "k MAXLEN ~ n", "k MINID ~ I LIMIT n"},
	"xread": {"STREAMS k I", "COUNT n STREAMS k I", "COUNT 2 STREAMS k k I I", "STREAMS k $", "BLOCK 1 STREAMS k $"},
	"xreadgroup": {
		"GROUP g c COUNT n STREAMS k >", "GROUP g c COUNT 2 STREAMS k >", "GROUP g c COUNT 5 STREAMS k 0",
		"GROUP g c COUNT 5 STREAMS k I", "GROUP g c COUNT 3 NOACK STREAMS k >", "GROUP g c COUNT 1 STREAMS k k > >",
		"GROUP g c STREAMS k >",
	},
	"xack":       {"k g I", "k g I I I I", "k g I I I I I I I I I"},
	"xclaim":     {"k g c 0 I I I", "k g c 1000000 I I I I", "k g c 0 I I JUSTID", "k g c 0 I I FORCE", "k g c 0 I I I IDLE 5000000", "k g c 0 I RETRYCOUNT n", "k g c 0 I LASTID I", "k g c 0 I I TIME 1000 JUSTID FORCE"},
	"xautoclaim": {"k g c 0 I COUNT 2", "k g c 1000000 0 COUNT 5", "k g c 0 I COUNT 3 JUSTID", "k g c 1000000 I"},
	"xpending":   {"k g", "k g e e 10", "k g - + n", "k g - + 20 c", "k g IDLE 1000000 - + 20"},
	"xgroup":     {"CREATE k g I", "CREATE k g $ MKSTREAM", "CREATE k g 0", "SETID k g I", "SETID k g I ENTRIESREAD n", "SETID k g $", "DESTROY k g", "DELCONSUMER k g c"},
	"xinfo":      {"GROUPS k", "STREAM k"}, "del": {"k"}, "copy": {"k k REPLACE"}, "rename": {"k k"}, "type": {"k"},
	"expire": {"k 1000"}, "object": {"ENCODING k"},
}

// streamRandom makes requests whose IDs grow with time.
type streamRandom struct {
	r     *rand.Rand
	clock int
}

func (x *streamRandom) id() string {
	back := min(x.r.IntN(1+x.r.IntN(400)), x.clock)
	return fmt.Sprintf("%d-%d", (x.clock-back)/3, x.r.IntN(3))
}

func (x *streamRandom) request(name string) [][]byte {
	pick := func(pool ...string) string { return pool[x.r.IntN(len(pool))] }
	form := strings.Fields(pick(streamShapes[name]...))
	line := []string{name}
	for _, word := range form {
		switch word {
		case "k":
			word = pick("s", "s", "s", "t", "u")
		case "g":
			word = pick("g", "g", "h")
		case "c":
			word = pick("alice", "bob", "")
		case "I":
			word = x.id()
		case "N":
			x.clock++
			word = pick(fmt.Sprintf("%d-%d", x.clock/3, x.clock%3), fmt.Sprintf("%d-*", x.clock/3))
		case "e":
			word = pick("-", "+", "(", "", "") + x.id()
			if word[0] == '-' || word[0] == '+' {
				word = word[:1]
			}
		case "n":
			word = pick("0", "1", "2", "5", "20", "80", "150", "-1")
			if name == "xadd" || name == "xtrim" {
				word = pick("10", "50", "90", "100", "110", "150", "220", "400")
			}
		case "f":
			line = append(line, "f", strconv.Itoa(x.r.IntN(1000)))
			if x.r.IntN(5) == 0 {
				line = append(line, "g", pick("x", "", "-1", "300000"))
			}
			continue
		}
		line = append(line, word)
	}
	return words(line...)
}

// radixTree are the counts of Redis's radix tree in XINFO STREAM.
var radixTree = regexp.MustCompile(`(radix-tree-(keys|nodes)\r\n:)\d+`)

// TestOracleRandomStream compares long random sequences about streams with redis-server. All consumers are made
// with their groups: before 7.2, reading nothing makes none.
func TestOracleRandomStream(t *testing.T) {
	o := startOracle(t)
	var names []string
	for _, c := range TopLevel() {
		weight := map[string]int{"xadd": 16, "xreadgroup": 5, "xgroup": 2, "xack": 2, "xclaim": 2}[c.Name]
		for range max(weight, 1) {
			if streamShapes[c.Name] != nil {
				names = append(names, c.Name)
			}
		}
	}
	rounds := 60
	if testing.Short() {
		rounds = 6
	}
	for seed := range rounds {
		x := streamRandom{r: rand.New(rand.NewPCG(uint64(seed), 11))}
		h := newHarness(t, 1+seed%3)
		h.w.Proto = 2 + seed%2
		o.run(t, words("HELLO", strconv.Itoa(h.w.Proto)))
		o.run(t, words("FLUSHALL"))
		var trail []string
		both := func(args [][]byte) {
			h.ctx.Now = time.Now().UnixMilli()
			got, want := h.exec(args), o.run(t, args)
			trail = append(trail, fmt.Sprintf("%.300q -> %.300s", args, h.did))
			mask := func(s string) string { return radixTree.ReplaceAllString(maskIdle(s), "${1}0") }
			if got, want = mask(got), mask(want); got != want {
				t.Fatalf("seed %d: %.300q\n got  %.1200q\n want %.1200q\n%s", seed, args, got, want,
					strings.Join(trail[max(0, len(trail)-25):], "\n"))
			}
		}
		for range 1000 {
			args := x.request(names[x.r.IntN(len(names))])
			switch name := string(args[0]); name {
			case "del", "rename", "copy":
				if x.r.IntN(8) > 0 || name != "del" && seed%4 < 2 {
					continue
				}
			case "xadd", "xtrim":
				if seed%4 >= 2 && string(args[min(3, len(args)-1)]) == "~" {
					continue // a copy has other nodes
				}
			}
			both(args)
			if sub := string(args[1]); sub == "CREATE" || sub == "DELCONSUMER" {
				for _, name := range []string{"alice", "bob", ""} {
					both(words("xgroup", "CREATECONSUMER", string(args[2]), string(args[3]), name))
				}
			}
		}
	}
}
