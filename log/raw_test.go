package log

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// TestNextRaw: NextRaw gives the bytes that Next does, from the same cursors, whole groups at the limit, and stops at the same damage with the same error.
func TestNextRaw(t *testing.T) {
	killed, _ := build(t, []int{3, 2, 1, 4, 2, 3, 3, 2, 5}, 2, 5)
	rng := rand.New(rand.NewPCG(3, 3))
	outcomes := map[string]int{}
	for round := range 300 {
		fsys := killed.KillClone()
		if name := segmentPath(1 + rng.Uint64N(3)); round > 0 {
			b := fileBytes(t, fsys, name)
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			setBytes(t, fsys, name, b)
		}
		d, _, err := Open(testOptions(fsys))
		if err != nil {
			outcomes["refused"]++
			continue
		}
		l := d.Log(0)
		put(t, l, 2) // in the next generation
		want, wantErr := readFrames(t, l, l.Oldest(), ReaderOptions{Follow: true})
		for _, most := range []int{0, 1, 150, 1 << 20} {
			got, err := readRaw(t, l, most)
			if !bytes.Equal(got, want) || err.Error() != wantErr.Error() {
				t.Fatalf("round %d, most %d: %d bytes, %v; want %d, %v", round, most, len(got), err, len(want), wantErr)
			}
		}
		outcomes[map[bool]string{true: "end", false: "damage"}[errors.Is(wantErr, io.EOF)]]++
		_ = d.Close(false)
	}
	if len(outcomes) != 3 {
		t.Error(outcomes)
	}
}

// readRaw reads as many frames at a time as there are, but not many more than most bytes.
func readRaw(t *testing.T, l *Log, most int) (out []byte, err error) {
	r, err := l.NewReader(l.Oldest(), ReaderOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	whole := true
	for {
		at := r.Cursor()
		raw, first, w, err := r.NextRaw(most)
		if err != nil {
			if errors.Is(err, io.EOF) && !whole {
				t.Error("a group is not whole at the limit")
			}
			return out, err
		}
		n := uint64(0)
		for rest := raw; len(rest) > 0; n++ {
			_, size := PeekKey(rest)
			rest = rest[size:]
		}
		if first.Generation == at.Generation && first != at || r.Cursor() != (Cursor{first.Generation, first.Offset + n}) {
			t.Fatalf("at %v: %d frames from %v on, now at %v", at, n, first, r.Cursor())
		}
		whole, out = w, append(out, raw...)
	}
}

// TestRunMisplaced: a frame that is not where its group has it ends a run, and is refused as by Next.
func TestRunMisplaced(t *testing.T) {
	frames := func(at uint64, n int) []byte {
		e := NewEncoder(0, Cursor{5, at}, 0)
		e.Begin(1, ByClient, 0, 0)
		for range n {
			e.Append(set("key", "value"))
		}
		e.End()
		return e.Buf
	}
	two := frames(1, 2)
	first, last := two[:len(two)/2], two[len(two)/2:]
	for _, raw := range [][]byte{last, append(bytes.Clone(first), frames(2, 1)...)} {
		at := Cursor{5, 1}
		if &raw[0] == &last[0] {
			at.Offset = 2
		}
		s := NewRawStream(raw, "raw", 0, at)
		got, err := s.run(9, 1000)
		if at.Offset == 1 {
			if !bytes.Equal(got, first) || err != nil {
				t.Fatalf("%d bytes before the bad frame, %v", len(got), err)
			}
			got, err = s.run(9, 1000)
		}
		_, want := s.Next()
		if got != nil || err == nil || err.Error() != want.Error() || !errors.Is(err, ErrCorrupt) {
			t.Errorf("from %v: %v, Next says %v", at, err, want)
		}
	}
}
