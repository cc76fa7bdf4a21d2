package log

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log/effect"
)

// tinySeals make many chunks, buckets and parts of few frames.
var tinySeals = sealSizes{chunk: 900, bucket: 120, bigFrame: 500, part: 200, least: 150}

// seen is a frame as a reader gave it.
type seen struct {
	cursor  Cursor
	payload string
	key     string
	timeMS  int64
	group   uint64
	txn     uint64
	last    bool
	single  bool
}

func sight(f *Frame) seen {
	return seen{f.Cursor, string(f.Payload), string(f.Key), f.TimeMS, f.Group, f.Txn, f.GroupLast, f.Single}
}

// read returns all frames a reader gives, and the error it ends with.
func read(t testing.TB, l *Log, c Cursor, o ReaderOptions) ([]seen, error) {
	t.Helper()
	r, err := l.NewReader(c, o)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var got []seen
	for {
		f, err := r.Next()
		if err != nil {
			return got, err
		}
		got = append(got, sight(f))
	}
}

func mustRead(t testing.TB, l *Log, c Cursor, o ReaderOptions) []seen {
	t.Helper()
	got, err := read(t, l, c, o)
	if !errors.Is(err, io.EOF) {
		t.Fatalf("reading from %v: %v", c, err)
	}
	return got
}

// mixedKey is a key of one of several styles.
func mixedKey(r *rand.Rand) string {
	switch r.IntN(5) {
	case 0:
		return fmt.Sprintf("user:%d:name", r.IntN(300))
	case 1:
		return fmt.Sprintf("order:%04d", r.IntN(1000))
	case 2:
		return strings.Repeat("a", r.IntN(70))
	case 3:
		return string([]byte{byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(4))})
	default:
		return "hot"
	}
}

// mixedGroup appends a group of all kinds of frames; large allows some of several parts.
func mixedGroup(l *Log, r *rand.Rand, n int, large bool) {
	txn, mask := uint64(0), uint64(0)
	if r.IntN(4) == 0 {
		txn, mask = uint64(n+1), 1
	}
	l.Begin(int64(1000+n), ByClient, txn, mask)
	for range 1 + r.IntN(4)*r.IntN(2) {
		size := r.IntN(60)
		if large && r.IntN(30) == 0 {
			size = r.IntN(2000)
		}
		key, value := []byte(mixedKey(r)), bytes.Repeat([]byte{byte('a' + r.IntN(20))}, size)
		e := effect.Effect{Op: effect.Set, Args: [][]byte{key, value}}
		switch r.IntN(8) {
		case 0:
			e = effect.Effect{Op: effect.Del, Args: [][]byte{key, []byte("x")}}
		case 1:
			e = effect.Effect{Op: effect.MSet, Args: [][]byte{key, value, []byte("y"), value}}
		}
		l.Append(&e)
	}
	l.End()
}

// mixedLog makes a log of the given number of groups, which has ended several segments.
func mixedLog(t testing.TB, o Options, seed uint64, groups int) (*Dir, *Log) {
	t.Helper()
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	r := rand.New(rand.NewPCG(seed, 7))
	for n := range groups {
		if err := l.Reserve(1 << 20); err != nil {
			t.Fatal(err)
		}
		mixedGroup(l, r, n, o.sealSizes == tinySeals)
		if n%(groups/4+1) == groups/5 {
			if err := l.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := l.roll(); err != nil {
				t.Fatal(err)
			}
		}
		if n == groups/2 {
			if err := d.NewGeneration(CauseFlush); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	return d, l
}

func mustSeal(t testing.TB, d *Dir) {
	t.Helper()
	want := 0
	for _, l := range d.logs {
		for _, s := range l.segments()[:l.Segments()-1] {
			if !s.sealed.Load() && s.end.Load() >= int64(d.o.sealSizes.least) {
				want++
			}
		}
	}
	n, err := d.Seal()
	if err != nil || n != want || n == 0 {
		t.Fatalf("sealed %d of %d segments: %v", n, want, err)
	}
}

func sealOptions(fsys vfs.FS, sizes sealSizes) Options {
	o := testOptions(fsys)
	o.sealSizes, o.SegmentBytes = sizes, 1<<30 // rolled by hand
	return o
}

// Readers see the same frames in sealed segments as in the raw ones, from every offset on, also when they
// began before; after a restart, read-only, and crossing generations.
func TestSealedSameFrames(t *testing.T) {
	for name, sizes := range map[string]sealSizes{"tiny": tinySeals, "default": defaultSealSizes} {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			groups := 200
			if name == "default" {
				groups = 60_000
			}
			o := sealOptions(fsys, sizes)
			d, l := mixedLog(t, o, 1, groups)
			all := ReaderOptions{Limit: LimitWritten, Follow: true}
			start := l.Oldest()
			raw := mustRead(t, l, start, all)
			early, err := l.NewReader(start, all)
			if err != nil {
				t.Fatal(err)
			}
			defer early.Close()
			if _, err := early.Next(); err != nil {
				t.Fatal(err)
			}
			mustSeal(t, d)
			st := l.Stats()
			if st.Sealed == 0 || st.Bytes >= st.RawBytes && name == "default" || st.OldestMS != 1000 {
				t.Fatalf("%+v", st)
			}
			for i := 1; i < len(raw); i++ {
				if f, err := early.Next(); err != nil || sight(f) != raw[i] {
					t.Fatalf("a reader that began before: frame %d: %v, %v", i, f, err)
				}
			}
			same(t, "sealed", raw, mustRead(t, l, start, all))
			step := max(1, len(raw)/700)
			for i := 0; i < len(raw); i += step {
				r, err := l.NewReader(raw[i].cursor, all)
				if err != nil {
					t.Fatal(err)
				}
				if f, err := r.Next(); err != nil || sight(f) != raw[i] {
					t.Fatalf("from %v: %+v, %v", raw[i].cursor, f, err)
				}
				r.Close()
			}
			ro, _, err := OpenReadOnly(fsys, "data")
			if err != nil {
				t.Fatal(err)
			}
			same(t, "read-only", raw, mustRead(t, ro.Log(0), start, all))
			if err := d.Close(true); err != nil {
				t.Fatal(err)
			}
			d, rec := mustOpen(t, o)
			if !rec.Clean {
				t.Fatal("not clean")
			}
			same(t, "after a restart", raw, mustRead(t, d.Log(0), start, all))
		})
	}
}

func same(t testing.TB, what string, want, got []seen) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Fatalf("%s: frame %d is %+v, want %+v", what, i, got[i], want[i])
		}
	}
	if len(want) != len(got) {
		t.Fatalf("%s: %d frames, want %d", what, len(got), len(want))
	}
}

// prefixesOf are filters of all kinds for the keys in frames.
func prefixesOf(frames []seen, r *rand.Rand) [][][]byte {
	b := func(s ...string) (p [][]byte) {
		for _, x := range s {
			p = append(p, []byte(x))
		}
		return p
	}
	sets := [][][]byte{
		b("user:"), b("order:0", "order:1"), b("nosuch"), b("hot"), b("a"), b(strings.Repeat("a", 48)), b(strings.Repeat("a", 60)),
		b("\xff"), b(""), b("zz", ""), b("\x00", "user:1", "\x80"),
	}
	for range 8 {
		if f := frames[r.IntN(len(frames))]; f.single && f.key != "" {
			sets = append(sets, b(f.key), b(f.key[:1+r.IntN(len(f.key))]))
		}
	}
	return sets
}

// A filtered reader of sealed segments gives exactly what filtering everything gives, from any offset on; with
// Groups, groups as wholes from the first wanted frame on and with what belongs to them. It ends at the same cursor.
func TestSealedFilter(t *testing.T) {
	for name, sizes := range map[string]sealSizes{"tiny": tinySeals, "default": defaultSealSizes} {
		t.Run(name, func(t *testing.T) {
			groups := 300
			if name == "default" {
				groups = 12_000
			}
			d, l := mixedLog(t, sealOptions(vfs.NewMem(), sizes), 2, groups)
			start := l.Oldest()
			raw := mustRead(t, l, start, ReaderOptions{Follow: true})
			mustSeal(t, d)
			r := rand.New(rand.NewPCG(3, 3))
			for _, prefixes := range prefixesOf(raw, r) {
				from := []int{0, len(raw) - 1}
				for range 2 {
					from = append(from, r.IntN(len(raw)))
				}
				for _, i := range from {
					checkFiltered(t, l, raw[i:], prefixes, false)
					checkFiltered(t, l, raw[i:], prefixes, true)
				}
			}
		})
	}
}

// checkFiltered compares a filtered reader with frames, which are all from where it begins.
func checkFiltered(t *testing.T, l *Log, frames []seen, prefixes [][]byte, groups bool) {
	t.Helper()
	r, err := l.NewReader(frames[0].cursor, ReaderOptions{Follow: true, Prefixes: prefixes, Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := wanted(frames, prefixes)
	given := 0
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		given++
		if !f.Wanted(prefixes) {
			continue
		}
		got := sight(f)
		if !groups {
			got.group, got.txn = 0, 0
		}
		if len(want) == 0 {
			t.Fatalf("prefixes %q: %+v, want the end", prefixes, got)
		}
		if whole := r.Raw(); !bytes.HasSuffix(whole, f.Payload) || frameCRC(frameSeed(l.shard, f.Cursor.Generation), f.Cursor.Offset, whole) != le.Uint32(whole) {
			t.Fatalf("prefixes %q: %+v comes with %d other bytes", prefixes, got, len(whole))
		}
		w := want[0]
		if !groups {
			w.group, w.txn = 0, 0
		}
		if got != w {
			t.Fatalf("prefixes %q: %+v, want %+v", prefixes, got, w)
		}
		want = want[1:]
	}
	if len(want) > 0 {
		t.Fatalf("prefixes %q: the end, want %+v", prefixes, want[0])
	}
	if c := r.Cursor(); c != l.Tail() {
		t.Fatalf("prefixes %q: ended at %v, the tail is %v", prefixes, c, l.Tail())
	}
}

func wanted(frames []seen, prefixes [][]byte) (want []seen) {
	for _, s := range frames {
		f := Frame{Single: s.single, Key: []byte(s.key)}
		if f.Wanted(prefixes) {
			want = append(want, s)
		}
	}
	return want
}

// A filtered reader stops exactly at its limit, within a sealed segment too, and goes on from there.
func TestSealedFilterLimit(t *testing.T) {
	d, l := mixedLog(t, sealOptions(vfs.NewMem(), tinySeals), 5, 120)
	start := l.Oldest()
	raw := mustRead(t, l, start, ReaderOptions{})
	mustSeal(t, d)
	prefixes := [][]byte{[]byte("user:")}
	for i := range raw {
		end := raw[i].cursor
		r, err := l.NewReader(start, ReaderOptions{Limit: LimitEnd, End: end, Prefixes: prefixes})
		if err != nil {
			t.Fatal(err)
		}
		want := wanted(raw[:i], prefixes)
		for {
			f, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if !f.Wanted(prefixes) {
				continue
			}
			if len(want) == 0 || want[0].cursor != f.Cursor {
				t.Fatalf("up to %v: frame %v", end, f.Cursor)
			}
			want = want[1:]
		}
		if len(want) > 0 || r.Cursor() != end {
			t.Fatalf("ended at %v, want %v and %d more frames", r.Cursor(), end, len(want))
		}
		r.Close()
	}
}
