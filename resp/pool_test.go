package resp

import (
	"runtime"
	"testing"
)

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

// TestHugeBuffers: buffers of several sizes, taken and left in turn as one request after another grows through them, are made once. What was
// kept beside them counted as live, so the heap grew by the collector's factor with each collection.
func TestHugeBuffers(t *testing.T) {
	steps := []int{hugeBuffer - slack, hugeBuffer, 200 << 10, 400 << 10, 1<<20 + 40, 3 << 20, poolBuffer - slack}
	made := func(rounds int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			for _, n := range steps {
				b := TakeBuffer(n)
				if cap(b) < n || len(b) != 0 {
					t.Fatalf("%d of %d bytes for %d", len(b), cap(b), n)
				}
				LeaveBuffer(b[:1][:cap(b)])
			}
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	sum := 0
	for _, n := range steps {
		sum += n
	}
	made(1)
	if more := made(200); more > uint64(100*sum) { // with the race detector a sync.Pool drops a quarter
		t.Errorf("%d bytes were made for 200 times %d", more, sum)
	}
	for i, n := 0, hugeBuffer; n <= poolBuffer; i, n = i+1, sizeClass(n+1) {
		if hugeClass(n) != i || i >= hugeClasses {
			t.Errorf("size %d has class %d, want %d", n, hugeClass(n), i)
		}
	}
}
