package resp

import "testing"

// TestBuffersComeBack cuts a header off the front, as who builds a reply does, and expects the buffer to count
// for its size all the same.
func TestBuffersComeBack(t *testing.T) {
	for _, n := range []int{1, smallBuffer - slack, smallBuffer, 5000, 16 << 10, 60 << 10} {
		b := TakeBuffer(n)
		if cap(b) < n {
			t.Fatalf("%d bytes for %d", cap(b), n)
		}
		b = b[:1]
		LeaveBuffer(b[:cap(b)][slack:])
		again := TakeBuffer(n)
		if cap(again) != cap(b)-slack {
			t.Errorf("size %d: a buffer of %d bytes did not come back, one of %d did", n, cap(b), cap(again))
		}
	}
	for _, size := range sizes {
		if i := filled(size); sizes[i] != size || fitting(size-slack) != i {
			t.Errorf("size %d counts for class %d", size, i)
		}
	}
	if filled(smallBuffer-slack-1) != -1 || filled(hugeBuffer) != len(sizes) || fitting(hugeBuffer) != len(sizes) {
		t.Error("bounds of the classes")
	}
}

func TestSizeClass(t *testing.T) {
	for n := 1; n < 1<<20; n += 1 + n/100 {
		got := sizeClass(n)
		if got < n || 4*(got-n) >= n+3 {
			t.Errorf("%d is rounded to %d", n, got)
		}
		if again := sizeClass(got); again != got {
			t.Errorf("%d is rounded to %d, that to %d", n, got, again)
		}
	}
}
