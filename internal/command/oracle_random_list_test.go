package command

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	listKeys     = []string{"l", "m", "n", "o"}
	listElements = []string{
		"", "a", "b", "c", "d", "0", "-1", "127", "128", "4096", "65536", "9223372036854775807", "007",
		"x\x00y", strings.Repeat("y", 70), strings.Repeat("z", 300), strings.Repeat("w", 5000),
	}
	listShapes = map[string][]string{
		"lpush": {"ke", "keee", "kE", "kE"}, "rpush": {"ke", "keee", "kE", "kE"}, "lpushx": {"ke", "kee"}, "rpushx": {"kE"},
		"lpop": {"k", "kn", "ki"}, "rpop": {"k", "kn", "ki"}, "llen": {"k"}, "lrange": {"k0_", "kii", "kii"}, "lindex": {"ki", "ki"},
		"lset": {"kie", "kie", "kie"}, "linsert": {"kbee", "kaee"}, "lrem": {"kie", "kne", "k0e"},
		"ltrim": {"kii", "k0i", "ki_"}, "lpos": {"ke", "keRi", "keCn", "keRiCn", "keMn", "keRiCnMn"},
		"lmove": {"kkss", "kkss"}, "rpoplpush": {"kk"}, "lmpop": {"1ks", "2kks", "1ksCn", "2kksCn"}, "del": {"k"}, "rename": {"kk"},
		"copy": {"kk", "kkr"}, "type": {"k"}, "set": {"ke"}, "expire": {"kt"}, "ttl": {"k"}, "persist": {"k"}, "exists": {"k"},
	}
)

// listRequest makes a request of a shape: k key, e element, E many elements, i index, n count, s side; the other letters
// are options.
func listRequest(r *rand.Rand, name string) [][]byte {
	pick := func(pool []string) string { return pool[r.IntN(len(pool))] }
	args := []string{name}
	options := map[rune]string{
		'0': "0", '_': "-1", '1': "1", '2': "2", 'b': "BEFORE", 'a': "AFTER", 'R': "RANK", 'C': "COUNT",
		'M': "MAXLEN", 'r': "REPLACE", 't': "1000000",
	}
	for _, letter := range pick(listShapes[name]) {
		switch letter {
		case 'k':
			args = append(args, pick(listKeys))
		case 'e':
			args = append(args, pick(listElements[:1+r.IntN(len(listElements))]))
		case 'E':
			for range 1 + r.IntN(250) {
				args = append(args, listElements[r.IntN(len(listElements)-1-r.IntN(5))])
			}
		case 'i':
			most := []int{40, 1500}[r.IntN(2)]
			args = append(args, strconv.Itoa(r.IntN(2*most+1)-most))
		case 'n':
			args = append(args, strconv.Itoa(r.IntN(60)))
		case 's':
			args = append(args, pick([]string{"LEFT", "RIGHT", "left"}))
		default:
			args = append(args, options[letter])
		}
	}
	return words(args...)
}

// TestOracleRandomList compares long random sequences about lists with redis-server.
func TestOracleRandomList(t *testing.T) {
	o := startOracle(t)
	var names []string
	for _, c := range TopLevel() {
		if listShapes[c.Name] != nil {
			names = append(names, c.Name)
		}
	}
	names = append(names, "lpush", "rpush", "lpush", "rpush", "linsert", "lset")
	rounds := 120
	if testing.Short() {
		rounds = 12
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		h := newHarness(t, 1+seed%3)
		h.w.Proto = 2 + seed%2
		o.run(t, words("HELLO", strconv.Itoa(h.w.Proto)))
		o.run(t, words("FLUSHALL"))
		var trail []string
		for range 200 {
			args := listRequest(r, names[r.IntN(len(names))])
			h.ctx.Now = time.Now().UnixMilli()
			got, want := h.exec(args), o.run(t, args)
			trail = append(trail, fmt.Sprintf("%.200q -> %.200s", args, h.did))
			if !sameReply(got, want, clockSlack[string(args[0])]) {
				t.Fatalf("seed %d: %.300q\n got  %.300q\n want %.300q\n%s", seed, args, got, want,
					strings.Join(trail[max(0, len(trail)-12):], "\n"))
			}
		}
	}
}
