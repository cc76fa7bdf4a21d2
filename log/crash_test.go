package log

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log/effect"
)

var crashRounds = flag.Int("log.crashes", 150, "how many random crash histories to run")

// item is one frame of the model: what was appended.
type item struct {
	value string
	txn   uint64
	last  bool // last of its group
}

// model is what the shards of a directory are expected to hold, over all generations.
type model struct {
	t      *testing.T
	rng    *rand.Rand
	shards int
	hist   [][]item
	forks  []int // length of hist where the current generation begins
	// What is dropped leaves hist at the front: surely when DropUnneeded says so, possibly up to snap
	// when it failed.
	snap []int
	gone map[uint64]bool // groups of which parts were dropped
	txn  uint64
	n    int
	// bridged are groups that a generation began in the midst of, by shard: the value before that, and the value behind it.
	bridged [][2]string
	amid    bool // the process ends before the second part of the last one is appended
}

func newModel(t *testing.T, seed uint64, shards int) *model {
	return &model{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), shards: shards, hist: make([][]item, shards), forks: make([]int, shards),
		snap: make([]int, shards), gone: map[uint64]bool{},
	}
}

func (m *model) options(fsys vfs.FS) Options {
	rng := rand.New(rand.NewPCG(m.rng.Uint64(), 2))
	return Options{
		FS: fsys, Dir: "a/data", Shards: m.shards, HashSeed: 1, SegmentBytes: 400 + int64(m.rng.IntN(4000)), Rand: rng.Uint64,
		Window: 1 + int64(m.rng.IntN(3000)), sealSizes: tinySeals,
		Policy: []Policy{EverySec, Always}[min(1, m.rng.IntN(4)/3)],
	}
}

// group appends one group of up to four frames to each of the shards in mask.
func (m *model) group(d *Dir, mask uint64, txn uint64) error {
	for i := range m.shards {
		if err := d.Log(i).Reserve(1000); err != nil {
			return err
		}
	}
	for i := range m.shards {
		if mask&(1<<i) == 0 {
			continue
		}
		l := d.Log(i)
		l.Begin(int64(1000+m.n), ByClient, txn, mask)
		n := 1 + m.rng.IntN(4)
		for k := range n {
			m.n++
			v := fmt.Sprintf("%d-%d", m.n, i)
			if m.rng.IntN(20) == 0 {
				v += string(make([]byte, m.rng.IntN(2000)))
			}
			l.Append(set("k", v))
			m.hist[i] = append(m.hist[i], item{v, txn, k == n-1})
		}
		l.End()
	}
	return nil
}

// step does one random thing. An error means that the process has come to its end.
func (m *model) step(d *Dir) error {
	i := m.rng.IntN(m.shards)
	l := d.Log(i)
	var err error
	switch r := m.rng.IntN(100); {
	case r < 45:
		err = m.group(d, 1<<i, 0)
	case r < 65 && m.shards > 1:
		mask := uint64(1+m.rng.IntN(1<<m.shards-1)) | 1<<i
		m.txn++
		err = m.group(d, mask, m.txn)
	case r < 85:
		err = l.Flush()
	case r < 92:
		err = l.Sync()
	case r < 94:
		if err = l.roll(); errors.Is(err, errUnsettled) {
			err = nil
		}
	case r < 95:
		if err = d.NewGeneration(CauseFlush); err == nil {
			m.forked()
		}
	case r < 96:
		err = m.bridge(d)
	case r < 98:
		err = m.drop(d)
	case r < 100:
		_, err = d.Seal()
	}
	return err
}

// forked takes note that generations begin where the logs end.
func (m *model) forked() {
	for i, h := range m.hist {
		m.forks[i] = len(h)
	}
}

// drop takes a snapshot, so to say, and drops what it makes unneeded.
func (m *model) drop(d *Dir) error {
	cursors := make([]Cursor, m.shards)
	for i := range cursors {
		l := d.Log(i)
		if err := l.Sync(); err != nil {
			return err
		}
		cursors[i] = l.Tail()
		m.snap[i] = len(m.hist[i])
	}
	if err := d.SetSnapshot("s", cursors); err != nil {
		return err
	}
	_, err := d.DropUnneeded()
	return err
}

// forget takes out of the model what is missing at the front of got, and may be: what a snapshot
// covers. It returns how many frames that are.
func (m *model) forget(i int, got []item, lower int) (n int) {
	h := m.hist[i]
	if len(got) > 0 {
		n = slices.Index(h, got[0])
	} else {
		n = min(lower, m.snap[i])
	}
	if n < 0 || n > m.snap[i] {
		m.t.Fatalf("shard %d: %d frames are gone at the front, the snapshot has %d", i, n, m.snap[i])
	}
	for _, it := range h[:n] {
		m.gone[it.txn] = true
	}
	m.hist[i] = h[n:]
	m.snap[i] -= n
	m.forks[i] -= n
	return n
}

// survivors returns how much of each shard must survive: what is safe by itself, up to the first
// group over several shards that is not safe on all of them.
func (m *model) survivors(safe []int) []int {
	safe = append([]int(nil), safe...)
	for changed := true; changed; {
		changed = false
		have := make([]map[uint64]bool, m.shards)
		want := map[uint64]int{}
		for i, h := range m.hist {
			have[i] = map[uint64]bool{}
			for k, it := range h {
				if it.txn != 0 && it.last {
					want[it.txn]++
					if k < safe[i] {
						have[i][it.txn] = true
					}
				}
			}
		}
		for i, h := range m.hist {
			for k := range safe[i] {
				n := 0
				for j := range have {
					if have[j][h[k].txn] {
						n++
					}
				}
				if h[k].txn != 0 && n < want[h[k].txn] {
					for k > 0 && !h[k-1].last {
						k--
					}
					safe[i], changed = k, true
					break
				}
			}
		}
	}
	return safe
}

// history reads everything a shard has.
func history(t testing.TB, l *Log, from Cursor) (items []item) {
	t.Helper()
	r, err := l.NewReader(from, ReaderOptions{Limit: LimitWritten, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var e effect.Effect
	last := int64(0)
	for {
		f, err := r.Next()
		if err == io.EOF {
			return items
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := effect.Decode(f.Payload, &e); err != nil {
			t.Fatal(err)
		}
		if f.TimeMS < last {
			t.Fatalf("frame %v: time %d after %d", f.Cursor, f.TimeMS, last)
		}
		last = f.TimeMS
		items = append(items, item{string(e.Args[1]), f.Txn, f.GroupLast})
	}
}

// check compares what a directory holds with the model and cuts the model to it. lower is what must be
// there at least; it and floor lose what is gone at the front.
func (m *model) check(d *Dir, lower, floor []int) {
	m.t.Helper()
	parts := map[uint64]int{}
	for i := range m.shards {
		got := history(m.t, d.Log(i), d.Log(i).Oldest())
		gone := m.forget(i, got, lower[i])
		lower[i] -= gone
		floor[i] -= gone
		h := m.hist[i]
		if len(got) > len(h) || len(got) < lower[i] {
			m.t.Fatalf("shard %d: %d frames, want %d..%d", i, len(got), lower[i], len(h))
		}
		for k := range got {
			if got[k] != h[k] {
				m.t.Fatalf("shard %d frame %d: %.60v, want %.60v", i, k, got[k], h[k])
			}
		}
		if len(got) > 0 && !got[len(got)-1].last {
			m.t.Fatalf("shard %d: a group was torn", i)
		}
		m.hist[i] = h[:len(got)]
		m.snap[i] = min(m.snap[i], len(got))
		for _, it := range got {
			if it.txn != 0 && it.last {
				parts[it.txn] |= 1 << i
			}
		}
	}
	for i := range m.shards {
		for _, b := range m.bridged {
			has := func(value string) bool {
				return slices.ContainsFunc(m.hist[i], func(it item) bool { return it.value == value })
			}
			if has(b[0]) && !has(b[1]) {
				m.t.Fatalf("shard %d: a group that a generation began in the midst of is torn behind %s", i, b[0])
			}
		}
		l := d.Log(i)
		r, err := l.NewReader(l.Oldest(), ReaderOptions{Limit: LimitWritten, Follow: true})
		if err != nil {
			m.t.Fatal(err)
		}
		for f, err := r.Next(); err == nil; f, err = r.Next() {
			if f.Txn != 0 && !m.gone[f.Txn] && uint64(parts[f.Txn]) != f.Mask {
				m.t.Fatalf("group %d is on shards %b, should be on %b", f.Txn, parts[f.Txn], f.Mask)
			}
		}
		r.Close()
	}
}

// TestCrashHistories runs random histories with power failures and kills, some of them during
// recovery, and checks after each that a prefix of every shard survived that holds all that was
// promised, and groups as wholes.
func TestCrashHistories(t *testing.T) {
	for seed := range uint64(*crashRounds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { crashHistory(t, seed) })
	}
}

func crashHistory(t *testing.T, seed uint64) {
	m := newModel(t, seed, 1+int(seed%3))
	fsys := crashfs.New()
	for range 6 {
		faulty := faultfs.New(fsys)
		d, _, err := Open(m.options(faulty))
		if err != nil {
			t.Fatal(err)
		}
		m.txn = max(m.txn, d.LastTxn())
		if m.rng.IntN(3) == 0 {
			faulty.Inject(stopAfter(m.rng.IntN(150), errStop))
		}
		written, durable := m.safe(d, (*Log).Written), m.safe(d, (*Log).Durable)
		for range m.rng.IntN(120) {
			if err = m.step(d); err != nil {
				break
			}
			written, durable = m.safe(d, (*Log).Written), m.safe(d, (*Log).Durable)
		}
		if err != nil && !errors.Is(err, errStop) {
			t.Fatal(err)
		}
		fsys = m.end(d, fsys, written, durable)
	}
}

var errStop = errors.New("stop")

// end closes the directory, kills its process, or takes its power, and checks what is left.
func (m *model) end(d *Dir, fsys *crashfs.FS, written, durable []int) *crashfs.FS {
	way := m.rng.IntN(4)
	if m.amid {
		way, m.amid = 1+m.rng.IntN(2), false // nobody closes the directory then
	}
	switch way {
	case 0:
		if d.Close(true) != nil { // no write went through after it stopped
			return m.recover(fsys.Crash(m.rng), durable, durable)
		}
		lower := make([]int, m.shards)
		for i := range lower {
			lower[i] = len(m.hist[i])
		}
		d, rec, err := Open(m.options(fsys))
		if err != nil || !rec.Clean {
			m.t.Fatalf("%+v %v", rec, err)
		}
		m.check(d, lower, make([]int, m.shards))
		_ = d.Close(true)
		return fsys
	case 1:
		killed := fsys.KillClone()
		fsys.Freeze()
		_ = d.Close(false)
		return m.recover(killed, written, durable)
	default:
		after := fsys.Crash(m.rng)
		_ = d.Close(false)
		return m.recover(after, durable, durable)
	}
}

// safe returns how many frames of each shard are below a watermark.
func (m *model) safe(d *Dir, mark func(*Log) uint64) []int {
	safe := make([]int, m.shards)
	for i := range safe {
		safe[i] = m.forks[i] + int(mark(d.Log(i)))
	}
	return m.survivors(safe)
}

// recover opens what a crash left, with a few more power failures on the way, and checks it: lower
// must be there at least, floor after a power failure before the first recovery has ended.
func (m *model) recover(fsys *crashfs.FS, lower, floor []int) *crashfs.FS {
	m.t.Helper()
	lower, floor = slices.Clone(lower), slices.Clone(floor)
	for range m.rng.IntN(4) {
		faulty := faultfs.New(fsys)
		var d *Dir
		faulty.Inject(stopAfter(m.rng.IntN(40), errStop))
		d, rec, err := Open(m.options(faulty))
		if err == nil {
			m.check(d, lower, floor)
			m.opened(rec)
			for i := range floor {
				floor[i] = len(m.hist[i])
			}
		} else if !errors.Is(err, errStop) {
			m.t.Fatalf("recovery: %v", err)
		} else {
			lower = slices.Clone(floor)
		}
		next := fsys.Crash(m.rng)
		if d != nil {
			_ = d.Close(false)
		}
		fsys = next
	}
	d, rec, err := Open(m.options(fsys))
	if err != nil {
		m.t.Fatalf("recovery: %v", err)
	}
	m.check(d, lower, floor)
	m.opened(rec)
	_ = d.Close(true)
	return fsys
}

// opened takes note of new generations. (There is none if Close had failed after the last byte.)
func (m *model) opened(rec *Recovery) {
	if !rec.Clean {
		m.forked()
	}
}

// stopAfter fails every write after the first n: as far as the disk is concerned, the process has
// ended there.
func stopAfter(n int, err error) faultfs.Injector {
	var done atomic.Int64
	return func(op faultfs.Op) error {
		if !op.Kind.IsWrite() || op.Kind == faultfs.OpLock {
			return nil
		}
		if done.Add(1) > int64(n) {
			return err
		}
		return nil
	}
}
