package log

import (
	"bytes"
	"testing"
)

// TestZerosAhead keeps zeros behind the end of a segment that is no longer the newest, as a crash between the making of the next one and
// the truncation leaves them: they are no damage. Anything else there is.
func TestZerosAhead(t *testing.T) {
	killed, items := build(t, []int{3, 2, 1, 4}, 1)
	for _, c := range []struct {
		name   string
		behind []byte
		fine   bool
	}{
		{"one zero", make([]byte, 1), true},
		{"all that is written ahead", make([]byte, len(zeros)), true},
		{"more", make([]byte, len(zeros)+1), false},
		{"a byte among zeros", append(make([]byte, 4096), 1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := killed.KillClone()
			b := fileBytes(t, fsys, segmentPath(1))
			setBytes(t, fsys, segmentPath(1), append(bytes.Clone(b), c.behind...))
			if c.fine {
				reopen(t, fsys, items, len(items))
				return
			}
			if d, _, err := Open(testOptions(fsys)); err == nil {
				_ = d.Close(false)
				t.Fatal("opened")
			}
		})
	}
}

// TestWritesAhead looks at the file under always: zeros behind the end, no more than there may be, none after a
// clean end.
func TestWritesAhead(t *testing.T) {
	killed, _ := build(t, []int{1})
	o := testOptions(killed)
	o.Policy = Always
	d, _ := mustOpen(t, o)
	l := d.Log(0)
	for range 50 {
		put(t, l, 100)
		l.maintain(false)
	}
	end := int(l.w.seg.end.Load())
	b := fileBytes(t, killed, l.w.seg.path())
	ahead := b[end:]
	if len(ahead) < len(zeros)/2 || len(ahead) > len(zeros) || !bytes.Equal(ahead, zeros[:len(ahead)]) {
		t.Fatalf("%d bytes behind the end, want %d to %d zeros", len(ahead), len(zeros)/2, len(zeros))
	}
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	if b := fileBytes(t, killed, l.w.seg.path()); len(b) != end {
		t.Fatalf("%d bytes after a clean end, want %d", len(b), end)
	}
}
