package killloop

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// worker writes numbered batches to keys of its own, one pipeline at a time. Every command of
// batch n makes its keys show n, so that after a crash each must show the last acknowledged batch or
// the one that was under way.
type worker struct {
	prefix string
	conn   *wire.Conn

	batch int   // the last batch sent
	acked []int // by command: the last batch whose reply came
	err   error
}

// command is one command of a batch, or one transaction, and how to see what it left.
type command struct {
	name    string
	request func(p string, n int) [][]string
	// check returns the batch that the command's keys show; they must all show the same.
	check func(get func(key string) (string, bool), p string) (int, error)
}

func number(get func(string) (string, bool), key string) (int, error) {
	v, ok := get(key)
	if !ok {
		return 0, nil
	}
	return strconv.Atoi(v)
}

// alike wants the same number in all keys.
func alike(get func(string) (string, bool), p string, names ...string) (int, error) {
	first := 0
	for i, name := range names {
		n, err := number(get, p+name)
		if err != nil {
			return 0, err
		}
		if i > 0 && n != first {
			return 0, fmt.Errorf("half a group: %s shows %d, %s shows %d", names[0], first, name, n)
		}
		first = n
	}
	return first, nil
}

var manyNames = []string{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"}

var batchCommands = []command{
	{
		name:    "SET",
		request: func(p string, n int) [][]string { return [][]string{{"SET", p + "seq", strconv.Itoa(n)}} },
		check:   func(get func(string) (string, bool), p string) (int, error) { return number(get, p+"seq") },
	},
	{
		name:    "INCR",
		request: func(p string, _ int) [][]string { return [][]string{{"INCR", p + "ctr"}} },
		check:   func(get func(string) (string, bool), p string) (int, error) { return number(get, p+"ctr") },
	},
	{
		name: "MSET over shards",
		request: func(p string, n int) [][]string {
			args := []string{"MSET"}
			for _, name := range manyNames {
				args = append(args, p+name, strconv.Itoa(n))
			}
			return [][]string{args}
		},
		check: func(get func(string) (string, bool), p string) (int, error) { return alike(get, p, manyNames...) },
	},
	{name: "MULTI/EXEC over shards", request: transaction, check: checkTransaction},
	{name: "RENAME over shards", request: rename, check: checkRename},
	{name: "SET large", request: large, check: checkLarge},
	{
		name: "SET and DEL",
		request: func(p string, n int) [][]string {
			return [][]string{{"MULTI"}, {"SET", p + "d" + strconv.Itoa(n), "x"}, {"DEL", p + "d" + strconv.Itoa(n-1)}, {"EXEC"}}
		},
		check: func(func(string) (string, bool), string) (int, error) { return -1, nil }, // DBSIZE tells
	},
}

func transaction(p string, n int) [][]string {
	return [][]string{
		{"MULTI"},
		{"INCR", p + "t0"},
		{"SET", p + "t1", strconv.Itoa(n), "EX", "100000"},
		{"INCRBY", p + "t2", "1"},
		{"APPEND", p + "t3", "x"},
		{"EXEC"},
	}
}

func checkTransaction(get func(string) (string, bool), p string) (int, error) {
	n, err := alike(get, p, "t0", "t1", "t2")
	if err != nil {
		return 0, err
	}
	if v, _ := get(p + "t3"); len(v) != n {
		return 0, fmt.Errorf("half a group: t0 shows %d, t3 has %d bytes", n, len(v))
	}
	return n, nil
}

// rename makes r0, moves it to r1, and so on: batch n leaves r<n>.
func rename(p string, n int) [][]string {
	if n == 1 {
		return [][]string{{"SET", p + "r1", "v"}}
	}
	return [][]string{{"RENAME", p + "r" + strconv.Itoa(n-1), p + "r" + strconv.Itoa(n)}}
}

func checkRename(func(string) (string, bool), string) (int, error) { return -1, nil }

// large writes values of many sizes, some larger than any buffer of the log's writer.
func large(p string, n int) [][]string {
	return [][]string{{"SET", p + "big", strconv.Itoa(n) + ":" + filler(n)}}
}

func filler(n int) string {
	size := (n * 7919) % 9000
	if n%50 == 0 {
		size = 300_000
	}
	return strings.Repeat(string(rune('a'+n%26)), size)
}

func checkLarge(get func(string) (string, bool), p string) (int, error) {
	v, ok := get(p + "big")
	if !ok {
		return 0, nil
	}
	num, fill, _ := strings.Cut(v, ":")
	n, err := strconv.Atoi(num)
	if err != nil || fill != filler(n) {
		return 0, fmt.Errorf("large value is damaged: %.40q, %d bytes", v, len(v))
	}
	return n, nil
}

func newWorker(addr, prefix string) (*worker, error) {
	c, err := wire.Dial(addr)
	if err != nil {
		return nil, err
	}
	return &worker{prefix: prefix, conn: c, acked: make([]int, len(batchCommands))}, nil
}

// run writes batches until stop is closed or the connection ends.
func (w *worker) run(stop <-chan struct{}) {
	defer w.conn.Close()
	for {
		select {
		case <-stop:
			return
		default:
		}
		if err := w.send(w.batch + 1); err != nil {
			if !wire.IsConnError(err) {
				w.err = err
			}
			return
		}
	}
}

// send sends batch n and notes each reply.
func (w *worker) send(n int) error {
	w.batch = n
	var sizes []int
	for _, c := range batchCommands {
		reqs := c.request(w.prefix, n)
		sizes = append(sizes, len(reqs))
		for _, r := range reqs {
			w.conn.Queue(wire.Bytes(r...))
		}
	}
	if err := w.conn.Flush(); err != nil {
		return err
	}
	for i, size := range sizes {
		for range size {
			r, err := w.conn.Read()
			if err == nil {
				err = r.Err()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", batchCommands[i].name, err)
			}
		}
		w.acked[i] = n
	}
	return nil
}

// keys returns every key that may hold something of this worker.
func (w *worker) keys() []string {
	names := append([]string{"seq", "ctr", "t0", "t1", "t2", "t3", "big"}, manyNames...)
	names = append(names, typeKeys...)
	for _, kind := range []string{"r", "d"} {
		for n := max(w.batch-1, 1); n <= w.batch; n++ {
			names = append(names, kind+strconv.Itoa(n))
		}
	}
	for i := range names {
		names[i] = w.prefix + names[i]
	}
	return names
}

// verify checks what the keys show after a restart.
func (w *worker) verify(get func(string) (string, bool)) error {
	for i, c := range batchCommands {
		n, err := c.check(get, w.prefix)
		if err == nil && n >= 0 && (n < w.acked[i] || n > w.batch) {
			err = fmt.Errorf("shows batch %d; acknowledged %d, sent %d", n, w.acked[i], w.batch)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if err := w.verifyOneOf("r", 4, get); err != nil {
		return err
	}
	return w.verifyOneOf("d", 6, get)
}

// verifyOneOf wants exactly one of <kind><batch-1> and <kind><batch>: the second if that batch's
// command i was acknowledged.
func (w *worker) verifyOneOf(kind string, i int, get func(string) (string, bool)) error {
	if w.batch == 0 {
		return nil
	}
	_, before := get(w.prefix + kind + strconv.Itoa(w.batch-1))
	_, after := get(w.prefix + kind + strconv.Itoa(w.batch))
	switch {
	case before && after:
		return fmt.Errorf("%s: half a group: both keys exist", batchCommands[i].name)
	case !before && !after && w.batch > 1:
		return fmt.Errorf("%s: half a group: no key exists", batchCommands[i].name)
	case !after && w.acked[i] == w.batch:
		return fmt.Errorf("%s: acknowledged batch %d is lost", batchCommands[i].name, w.batch)
	}
	return nil
}
