package log

// window is the feed window: a sparse index of the newest part of the current generation, in
// bytes since the oldest frame of that generation that was on disk when it was opened. It is
// guarded by Log.mu.
//
// Two neighbouring entries are at most one granule apart, or one frame if that is longer, so the
// first entry at or before the boundary (tail - size) serves less than a granule too much.
type window struct {
	size    int64 // bytes to serve behind the tail
	granule int64
	known   indexEntry   // where entries begin; before it nothing is indexed
	oldest  indexEntry   // oldest frame of the generation on disk when it was opened
	entries []indexEntry // ascending; entries[head:] are in use; pos counts the generation's bytes
	head    int
}

func newWindow(size int64) window { return window{size: size, granule: max(size/1024, 1)} }

// begin starts a generation whose oldest frame on disk is oldest, and which is indexed from known on.
func (w *window) begin(oldest, known indexEntry) {
	w.oldest, w.known = oldest, known
	w.entries, w.head = append(w.entries[:0], known), 0
}

// add takes in a frame of n bytes at pos.
func (w *window) add(off uint64, pos, n int64) {
	if last := w.entries[len(w.entries)-1].pos; pos != last && pos+n-last > w.granule {
		w.entries = append(w.entries, indexEntry{off, pos})
	}
}

// trim drops the entries the window has left behind, for a tail at the given byte.
func (w *window) trim(tail int64) {
	boundary := tail - w.size
	for w.head+1 < len(w.entries) && w.entries[w.head+1].pos <= boundary {
		w.head++
	}
	if w.head > 64 && w.head*2 > len(w.entries) {
		n := copy(w.entries, w.entries[w.head:])
		w.entries, w.head = w.entries[:n], 0
	}
}

// base returns the first offset to serve. ok is false when that lies in the part that is not
// indexed yet.
func (w *window) base(tail int64) (off uint64, ok bool) {
	boundary := tail - w.size
	switch {
	case boundary >= w.known.pos:
		return w.entries[w.head].off, true
	case boundary <= w.oldest.pos:
		return w.oldest.off, true
	default:
		return 0, false
	}
}

// end drops the entries of frames that are not there: the log ends at the given byte.
func (w *window) end(tail int64) {
	for n := len(w.entries); n > w.head+1 && w.entries[n-1].pos >= tail; n-- {
		w.entries = w.entries[:n-1]
	}
}

// prepend adds what was found before known.
func (w *window) prepend(older []indexEntry) {
	if len(older) == 0 {
		return
	}
	w.entries = append(older, w.entries[w.head:]...)
	w.head, w.known = 0, older[0]
}
