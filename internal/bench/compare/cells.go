package compare

import (
	"fmt"
	"regexp"

	"github.com/kevydb/kevy/internal/bench"
)

// Policies of the log. kevy cannot switch its log off: appendfsync no stands in for logOff.
const (
	logOff      = "off"
	logEverySec = "everysec"
	logAlways   = "always"
)

// cell is one thing to measure.
type cell struct {
	setting
	op       bench.Op
	dist     bench.Distribution
	pipeline int
	clients  int
}

// setting is what servers are started and filled for: cells of one setting share them.
type setting struct {
	log  string
	size int // bytes of a value
	keys uint64
}

func (c cell) String() string {
	return fmt.Sprintf("%s -P %d -c %d %s %s %s %s", c.op, c.pipeline, c.clients, sizeText(c.size),
		bench.Count(float64(c.keys)), c.dist, c.log)
}

func sizeText(n int) string {
	if n >= 1024 && n%1024 == 0 {
		return fmt.Sprintf("%dKiB", n/1024)
	}
	return fmt.Sprintf("%dB", n)
}

// Further things to measure, and their names as cells.
const (
	cellMemory  = "memory 1M keys 64B"
	cellRestart = "restart 1M keys 64B"
)

const million = 1_000_000

// base is the setting that most cells have.
var base = setting{logEverySec, 64, million}

// typed is the setting of the other data types: fewer fields, members and elements than keys elsewhere.
var typed = setting{logEverySec, 16, 100_000}

// quickCells are the selection that takes a few minutes.
func quickCells() []cell {
	u := bench.Uniform
	return []cell{
		{base, bench.Get, u, 1, 50},
		{base, bench.Set, u, 1, 50},
		{base, bench.Get, u, 16, 50},
		{base, bench.Set, u, 16, 50},
		{base, bench.Incr, u, 16, 50},
		{base, bench.MSet, u, 16, 50},
		{base, bench.Mix, u, 16, 50},
		{base, bench.Get, bench.Zipfian, 16, 50},
		{base, bench.Set, u, 100, 50},
		{base, bench.Set, u, 1, 1},
		{base, bench.Get, u, 16, 500},
		{base, bench.Set, u, 16, 500},
		{setting{logAlways, 64, million}, bench.Set, u, 1, 50},
		{setting{logAlways, 64, million}, bench.Set, u, 16, 50},
	}
}

// fullCells vary one or two things at a time around the usual.
func fullCells() []cell {
	var out []cell
	add := func(s setting, ops []bench.Op, d bench.Distribution, pipelines, clients []int) {
		for _, op := range ops {
			for _, p := range pipelines {
				for _, c := range clients {
					out = append(out, cell{s, op, d, p, c})
				}
			}
		}
	}
	all := []bench.Op{bench.Get, bench.Set, bench.Incr, bench.MSet, bench.Mix}
	writes := []bench.Op{bench.Set, bench.Incr, bench.MSet, bench.Mix}
	getSet := []bench.Op{bench.Get, bench.Set}
	pipelines, clients := []int{1, 16, 100}, []int{1, 50, 500}
	add(base, all, bench.Uniform, pipelines, clients)
	add(base, []bench.Op{bench.Get, bench.Set, bench.Mix}, bench.Zipfian, pipelines, []int{50})
	for _, size := range []int{8, 1 << 10} {
		add(setting{logEverySec, size, million}, getSet, bench.Uniform, []int{1, 16}, []int{50})
	}
	add(setting{logEverySec, 100 << 10, 2000}, getSet, bench.Uniform, []int{1, 16}, []int{50})
	add(setting{logEverySec, 64, 10 * million}, getSet, bench.Uniform, []int{1, 16}, []int{50})
	add(setting{logOff, 64, million}, writes, bench.Uniform, pipelines, []int{50})
	add(setting{logAlways, 64, million}, writes, bench.Uniform, []int{1, 16}, []int{1, 50})
	types := []bench.Op{
		bench.HSet, bench.LPush, bench.LPop, bench.LRange, bench.SAdd, bench.ZAdd, bench.ZRange, bench.ZRank, bench.XAdd, bench.Eval,
	}
	add(typed, types, bench.Uniform, []int{16}, []int{50})
	add(typed, []bench.Op{bench.SInter}, bench.Uniform, []int{1}, []int{8}) // its replies have 10,000 members
	return out
}

// selection is what one run measures.
type selection struct {
	cells           []cell
	memory, restart bool
}

// choose returns the quick selection, the full one, or those of all that match a regular expression.
func choose(full bool, match string) (selection, error) {
	s := selection{cells: quickCells(), memory: true, restart: true}
	if !full && match == "" {
		return s, nil
	}
	s.cells = fullCells()
	if match == "" {
		return s, nil
	}
	re, err := regexp.Compile(match)
	if err != nil {
		return s, err
	}
	s.memory, s.restart = re.MatchString(cellMemory), re.MatchString(cellRestart)
	s.cells = nil
	for _, c := range fullCells() {
		if re.MatchString(c.String()) {
			s.cells = append(s.cells, c)
		}
	}
	return s, nil
}

// groups puts cells of one setting together, in the order of their first cells.
func (s *selection) groups() [][]cell {
	at := make(map[setting]int)
	var out [][]cell
	for _, c := range s.cells {
		i, ok := at[c.setting]
		if !ok {
			i = len(out)
			at[c.setting] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], c)
	}
	return out
}
