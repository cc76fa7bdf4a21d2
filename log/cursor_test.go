package log

import (
	"errors"
	"io"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
)

// twoGenerations makes a log with 5 frames in one generation and 20 in its child, the current one.
func twoGenerations(t *testing.T) (d *Dir, l *Log, old, gen uint64) {
	o := testOptions(vfs.NewMem())
	o.Window = 300
	d, _ = mustOpen(t, o)
	l = d.Log(0)
	old = l.Generation()
	put(t, l, 5)
	if err := d.NewGeneration(CauseFlush); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		put(t, l, 1)
	}
	return d, l, old, l.Generation()
}

// TestErrorsOfCursors: what NewReader says about cursors at and around every boundary.
func TestErrorsOfCursors(t *testing.T) {
	_, l, old, gen := twoGenerations(t)
	base := l.Base()
	if base < 10 || base > 19 {
		t.Fatalf("base %d", base)
	}
	feed, replay := ReaderOptions{Feed: true}, ReaderOptions{Limit: LimitWritten}
	resync := &ResyncError{gen, 20}
	for _, tt := range []struct {
		c    Cursor
		o    ReaderOptions
		want error
	}{
		{Cursor{gen, base}, feed, nil},
		{Cursor{gen, base - 1}, feed, resync},
		{Cursor{gen, 0}, feed, resync},
		{Cursor{gen, 20}, feed, nil},
		{Cursor{gen, 21}, feed, ErrAhead},
		{Cursor{gen, 1<<64 - 1}, feed, ErrAhead},
		{Cursor{gen + 1, 0}, feed, resync},
		{Cursor{old, 0}, feed, resync},
		{Cursor{old, 5}, feed, resync},
		{Cursor{0, 0}, feed, resync},
		{Cursor{old, 5}, ReaderOptions{Feed: true, Follow: true}, nil},
		{Cursor{old, 6}, ReaderOptions{Feed: true, Follow: true}, resync},
		{Cursor{old + 1, 0}, ReaderOptions{Feed: true, Follow: true}, resync},
		{Cursor{gen, 0}, replay, nil},
		{Cursor{gen, 20}, replay, nil},
		{Cursor{gen, 21}, replay, ErrAhead},
		{Cursor{old, 0}, replay, nil},
		{Cursor{old, 5}, replay, nil},
		{Cursor{old, 6}, replay, ErrAhead},
		{Cursor{old - 1, 0}, replay, ErrGone},
		{Cursor{0, 0}, replay, ErrGone},
		{Cursor{old, 0}, ReaderOptions{Limit: LimitEnd, End: Cursor{gen, 21}, Follow: true}, ErrAhead},
		{Cursor{old, 0}, ReaderOptions{Limit: LimitEnd, End: Cursor{gen + 1, 0}, Follow: true}, ErrGone},
	} {
		err := firstError(l, tt.c, tt.o)
		var want, got *ResyncError
		if errors.As(tt.want, &want) {
			if !errors.As(err, &got) || *got != *want {
				t.Errorf("%v %+v: %v, want %v", tt.c, tt.o, err, tt.want)
			}
		} else if !errors.Is(err, tt.want) {
			t.Errorf("%v %+v: %v, want %v", tt.c, tt.o, err, tt.want)
		}
	}
}

// firstError is what making a reader and reading once says; the end of the log is no error.
func firstError(l *Log, c Cursor, o ReaderOptions) error {
	r, err := l.NewReader(c, o)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err = r.Next(); err == io.EOF {
		return nil
	}
	return err
}

func TestReadToAnEnd(t *testing.T) {
	_, l, old, gen := twoGenerations(t)
	for _, tt := range []struct {
		end  Cursor
		want int
	}{{Cursor{old, 0}, 0}, {Cursor{old, 3}, 3}, {Cursor{old, 5}, 5}, {Cursor{gen, 0}, 5}, {Cursor{gen, 7}, 12}, {Cursor{gen, 20}, 25}} {
		n, end := readAll(t, l, Cursor{old, 0}, ReaderOptions{Limit: LimitEnd, End: tt.end, Follow: true})
		if n != tt.want || end != tt.end {
			t.Errorf("to %v: %d frames, at %v", tt.end, n, end)
		}
	}
}

// TestGenerationChangesUnderReader: a feed reader that is open meanwhile has to resync.
func TestGenerationChangesUnderReader(t *testing.T) {
	d, l, _, gen := twoGenerations(t)
	r, err := l.NewReader(Cursor{gen, 20}, ReaderOptions{Feed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(); err != io.EOF {
		t.Fatal(err)
	}
	called := false
	r.OnAdvance(func() { called = true })
	if err := d.NewGeneration(CauseFlush); err != nil {
		t.Fatal(err)
	}
	var re *ResyncError
	if _, err := r.Next(); !errors.As(err, &re) || re.Generation != l.Generation() || re.Tail != 0 || !called {
		t.Fatalf("%v, called %v", err, called)
	}
	called = false
	l.OnAdvanceFrom(Cursor{gen, 20}, func() { called = true })
	if !called {
		t.Fatal("waits for an offset of a generation that has ended")
	}
}
