package engine_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// partsOf returns the frames of a shard, in parts of up to n frames.
func partsOf(t testing.TB, s *gate.Store, shard, n int) (parts []engine.Foreign) {
	t.Helper()
	l := s.E.Dir().Log(shard)
	if err := s.E.Flush(shard); err != nil {
		t.Fatal(err)
	}
	lin := l.Lineage()
	r, err := l.NewReader(log.Cursor{Generation: lin[0].Generation}, log.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := 0; ; i++ {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		if i%n == 0 {
			parts = append(parts, engine.Foreign{Shard: shard, Generation: lin[0], Offset: f.Cursor.Offset})
		}
		p := &parts[len(parts)-1]
		p.Raw = append(p.Raw, r.Raw()...)
	}
}

// TestApplyHeldBack: a shard whose head waits for its other part applies nothing, says when it is full, and shows the group
// when it is whole.
func TestApplyHeldBack(t *testing.T) {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(t, vfs.NewMem(), 2, clock)
	defer s.Close()
	s.Do(gate.Wide("v"))
	big := strings.Repeat("x", 1<<20)
	for i := range 50 {
		s.Do(fmt.Sprintf("SET k%d %s", i, big))
	}
	r := followOf(t, s, clock)
	defer r.Close()
	a := r.E.NewApplier()
	first := partsOf(t, s, 0, 1)
	for len(first) > 0 {
		if err := a.Apply(first[:1]); err != nil {
			t.Fatal(err)
		}
		first = first[1:]
	}
	if !a.Full(0) || a.Full(1) {
		t.Errorf("full: %v and %v", a.Full(0), a.Full(1))
	}
	if n := a.Frames(); n != 0 {
		t.Errorf("%d frames applied without the other part of the first group", n)
	}
	parts := partsOf(t, s, 1, 3)
	for i := range parts {
		if err := a.Apply(parts[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if a.Full(0) || a.Full(1) || !slices.Equal(r.Cursors(), s.Cursors()) || r.Digest() != s.Digest() {
		t.Errorf("cursors %v, live %v", r.Cursors(), s.Cursors())
	}
	bad := partsOf(t, s, 1, 1)[:1]
	if err := a.Apply(bad); err == nil {
		t.Error("frames that are there already are accepted")
	}
}

// TestApplyRefusesShards: a group over several shards that names shards which are not there, or not the one that it is on, is refused,
// and nothing has changed.
func TestApplyRefusesShards(t *testing.T) {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(t, vfs.NewMem(), 2, clock)
	defer s.Close()
	for _, mask := range []uint64{0, 1, 1 << 7, 0b110} {
		r := followOf(t, s, clock)
		tail, lin := r.E.Dir().Log(1).Tail(), r.E.Dir().Lineage(1)
		enc := log.NewEncoder(1, tail, 0)
		enc.Begin(1, log.ByClient, 9, mask)
		enc.Append(&effect.Effect{Op: effect.Set, Args: [][]byte{[]byte("k"), []byte("v")}})
		enc.End()
		err := r.E.NewApplier().Apply([]engine.Foreign{{Shard: 1, Generation: lin[0], Raw: enc.Buf}})
		if err == nil || !strings.Contains(err.Error(), "names shards") || r.E.Dir().Log(1).Tail() != tail {
			t.Errorf("mask %b: %v", mask, err)
		}
		r.Close()
	}
}

// TestApplyBad: of frames that are applied together, those before a bad one are applied, and the bad one is named; whoever goes on from there with what should have come
// has the same state.
func TestApplyBad(t *testing.T) {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(t, vfs.NewMem(), 1, clock)
	defer s.Close()
	for i := range 100 {
		s.Do(fmt.Sprintf("SET k%d %d", i%40, i))
	}
	frames := partsOf(t, s, 0, 1)
	for what, spoil := range map[string]func(frame []byte, c log.Cursor){
		"checksum": func(b []byte, _ log.Cursor) { b[len(b)-3] ^= 1 },
		"a SET is marked as DEL": func(b []byte, c log.Cursor) {
			b[14] = byte(effect.Del)
			sum := crc32.Checksum(binary.LittleEndian.AppendUint64(nil, 0), castagnoli) // the shard
			sum = crc32.Update(sum, castagnoli, binary.LittleEndian.AppendUint64(nil, c.Generation))
			sum = crc32.Update(sum, castagnoli, binary.LittleEndian.AppendUint64(nil, c.Offset))
			binary.LittleEndian.PutUint32(b, crc32.Update(sum, castagnoli, b[4:]))
		},
	} {
		for _, at := range []int{0, 1, 31, 32, 33, 99} {
			part := engine.Foreign{Generation: frames[0].Generation}
			for i, f := range frames {
				b := slices.Clone(f.Raw)
				if i == at {
					spoil(b, log.Cursor{Generation: f.Generation.Generation, Offset: f.Offset})
				}
				part.Raw = append(part.Raw, b...)
			}
			r := followOf(t, s, clock)
			err := r.E.NewApplier().Apply([]engine.Foreign{part})
			name := fmt.Sprintf("%d:%d", part.Generation.Generation, at)
			if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), name) {
				t.Errorf("frame %s: %v, want %q", name, err, what)
			}
			if tail := r.E.Dir().Log(0).Tail(); tail.Offset != uint64(at) {
				t.Errorf("frame %d is bad: %d are applied", at, tail.Offset)
			}
			if err := r.E.NewApplier().Apply(slices.Clone(frames[at:])); err != nil || r.Digest() != s.Digest() {
				t.Errorf("going on at %d: %v", at, err)
			}
			r.Close()
		}
	}
}

// heard is a listener that writes down what it is told, a line for each group.
type heard struct{ lines []string }

func (h *heard) Committed(c *engine.Changes) {
	h.lines = append(h.lines, fmt.Sprint(c.Events, c.Keys, c.Flushed))
}
func (h *heard) Touched(*engine.Changes, int) {}

// TestApplyTells: listeners are told of each group by itself, also of groups that are applied together.
func TestApplyTells(t *testing.T) {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(t, vfs.NewMem(), 1, clock)
	defer s.Close()
	for i := range 50 {
		s.Do(fmt.Sprintf("SET k%d %d", i%7, i))
		s.Do(fmt.Sprintf("DEL k%d", i%3))
		s.Do(fmt.Sprintf("LPUSH l a b %d", i))
		if i%9 == 0 {
			s.Do("MSET a 1 b 2")
			s.Do("RENAME a c") // two frames
		}
	}
	var want []string
	for _, n := range []int{1, 10_000} {
		r := followOf(t, s, clock)
		h := &heard{}
		r.E.Listen(h)
		r.E.SetWanted(uint32(engine.WantKeys | command.EventString | command.EventGeneric | command.EventList))
		a := r.E.NewApplier()
		for _, p := range partsOf(t, s, 0, n) {
			if err := a.Apply([]engine.Foreign{p}); err != nil {
				t.Fatal(err)
			}
		}
		if n == 1 {
			want = h.lines
		}
		if !slices.Equal(h.lines, want) || len(want) < 100 || r.Digest() != s.Digest() {
			t.Errorf("parts of %d frames: told of %d groups, want %d", n, len(h.lines), len(want))
		}
		r.Close()
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// followOf opens an empty store that follows s from its beginning.
func followOf(t testing.TB, s *gate.Store, clock *gate.Clock) *gate.Store {
	t.Helper()
	return followOn(t, vfs.NewMem(), s, clock, 0)
}

// followOn is followOf on a file system, with segments of the given size, 0: the usual one.
func followOn(t testing.TB, fs vfs.FS, s *gate.Store, clock *gate.Clock, segment int64) *gate.Store {
	t.Helper()
	r := gate.Open(t, fs, s.E.Shards(), clock)
	if err := r.E.Close(true); err != nil {
		t.Fatal(err)
	}
	d, _, err := log.Open(log.Options{FS: fs, Dir: gate.Dir, Follower: true})
	if err != nil {
		t.Fatal(err)
	}
	base := &log.Base{HashSeed: s.E.Seed(), Set: "none"}
	for i := range s.E.Shards() {
		lin := s.E.Dir().Lineage(i)
		base.Cursors = append(base.Cursors, log.Cursor{Generation: lin[0].Generation})
		base.Lineage = append(base.Lineage, lin[:1])
	}
	d, _, err = d.Replace(base)
	if err != nil {
		t.Fatal(err)
	}
	// The state at the beginning is that of no snapshot.
	if err := errors.Join(d.SetSnapshot("", nil), d.Close(true)); err != nil {
		t.Fatal(err)
	}
	return openFollower(t, fs, clock, segment)
}

// openFollower opens a store that follows another one, as its directory says.
func openFollower(t testing.TB, fs vfs.FS, clock *gate.Clock, segment int64) *gate.Store {
	t.Helper()
	e, _, err := engine.Open(engine.Options{Now: clock.Now, Log: log.Options{FS: fs, Dir: gate.Dir, Follower: true, SegmentBytes: segment}})
	if err != nil {
		t.Fatal(err)
	}
	if !e.Following() {
		t.Fatal("the directory is not on record as one that follows")
	}
	return gate.Over(t, e, fs, clock)
}

// BenchmarkApply applies frames of SETs, each a group, as they come from a source.
func BenchmarkApply(b *testing.B) {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(b, vfs.NewMem(), 1, clock)
	defer s.Close()
	const frames = 200_000
	for i := range frames {
		s.Do(fmt.Sprintf("SET key:%d value:%d", i%50_000, i))
	}
	parts := partsOf(b, s, 0, 10_000)
	var took time.Duration
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		r := followOf(b, s, clock)
		a := r.E.NewApplier()
		own := slices.Clone(parts)
		b.StartTimer()
		began := time.Now()
		for i := range own {
			if err := a.Apply(own[i : i+1]); err != nil {
				b.Fatal(err)
			}
		}
		took += time.Since(began)
		b.StopTimer()
		r.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N)*frames/took.Seconds(), "frames/s")
}
