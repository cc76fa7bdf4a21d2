package state

import "github.com/kevydb/kevy/internal/arena"

// Every record has an access clock (unix seconds) and an access counter, for OBJECT IDLETIME and FREQ and to
// choose what goes when memory is short. They are no state: not in the digest, not in a snapshot, not in
// what a view promises. A record that is created or overwritten counts as accessed.

// freqNew is the counter of a new record: it must survive until it had a chance to be used.
const freqNew = 5

// access is how a keyspace notes accesses.
type access struct {
	now    uint32 // unix seconds
	lfu    bool
	factor int    // the more, the more accesses a counter's step takes
	decay  int    // minutes after which a counter loses a step; 0: never
	rnd    uint64 // state of the random numbers for the counters
}

// SetAccessClock tells the time (unix seconds) at which the next folds count as accesses.
func (ks *Keyspace) SetAccessClock(seconds uint32) { ks.access.now = seconds }

// SetLFU says whether access counters are kept, and how (lfu-log-factor, lfu-decay-time).
func (ks *Keyspace) SetLFU(on bool, factor, decay int) {
	ks.access.lfu, ks.access.factor, ks.access.decay = on, factor, decay
}

// Touch notes an access.
func (ks *Keyspace) Touch(e Entry, seconds uint32) { ks.access.note(e.a.Tail(e.ref), seconds) }

// SetAccess sets the access clock and the access counter.
func (ks *Keyspace) SetAccess(e Entry, seconds uint32, freq uint8) {
	b := e.a.Tail(e.ref)
	le.PutUint32(b[offAccess:], seconds)
	b[offFreq] = freq
}

// Freq returns the access counter as it is at the time, in unix seconds.
func (ks *Keyspace) Freq(e Entry, seconds uint32) uint8 {
	return ks.access.freq(e.a.Tail(e.ref), seconds)
}

// note counts an access to the record whose bytes are b.
func (x *access) note(b []byte, seconds uint32) {
	if x.lfu {
		b[offFreq] = x.more(x.freq(b, seconds))
	}
	le.PutUint32(b[offAccess:], seconds)
}

// fresh marks the record whose bytes are b as new.
func (x *access) fresh(b []byte) {
	le.PutUint32(b[offAccess:], x.now)
	b[offFreq] = freqNew
}

// freq is the counter less what it has lost since the last access.
func (x *access) freq(b []byte, seconds uint32) uint8 {
	n, last := b[offFreq], le.Uint32(b[offAccess:])
	if x.decay <= 0 || seconds <= last {
		return n
	}
	lost := int(seconds/60-last/60) / x.decay
	if lost >= int(n) {
		return 0
	}
	return n - uint8(lost) //nolint:gosec // less than n
}

// more is the counter n after one more access: a logarithm, counted by chance.
func (x *access) more(n uint8) uint8 {
	if n == 255 {
		return n
	}
	x.rnd = x.rnd*6364136223846793005 + 1442695040888963407
	base := max(0, int64(n)-freqNew)
	if float64(x.rnd>>11)/(1<<53)*float64(base*int64(x.factor)+1) < 1 {
		n++
	}
	return n
}

// RandomVolatile returns a key with a deadline chosen by rnd. It draws among all keys as long as a good part
// of them has one; where such keys are rare it draws a point in time and takes a key due about then.
func (ks *Keyspace) RandomVolatile(rnd uint64) (Entry, bool) {
	n := ks.dl.n
	if n == 0 {
		return Entry{}, false
	}
	const rare = 64
	if ks.Len()/n < rare {
		for range 4 * rare {
			rnd = rnd*6364136223846793005 + 1442695040888963407
			if e, ok := ks.Random(rnd); ok {
				if _, has := e.Deadline(); has {
					return e, true
				}
			}
		}
	}
	return Entry{ks.a, ks.dl.random(rnd)}, true
}

// random returns the record of some pair of a leaf that rnd chooses. REQUIRES: there is one.
func (d *deadlines) random(rnd uint64) arena.Ref {
	last, _ := d.t.Max()
	w := d.words(last.leaf)
	at := due{ms: d.next}
	if span := uint64(dueAt(w, int(w[0])-1).ms-d.next) + 1; span > 1 { //nolint:gosec // deadlines are positive and in order
		at.ms += int64(rnd >> 8 % span) //nolint:gosec // within the span
	}
	w = d.words(d.floor(at).leaf)
	return dueAt(w, int((rnd*0x9e3779b97f4a7c15)>>33)%int(w[0])).ref //nolint:gosec // 31 bits
}

// Soonest returns the key with the earliest deadline.
func (ks *Keyspace) Soonest() (e Entry, ok bool) {
	ks.dl.ascend(func(d due) bool {
		e, ok = Entry{ks.a, d.ref}, true
		return false
	})
	return e, ok
}

// Trash returns how many large values wait to be freed; see Housekeep.
func (ks *Keyspace) Trash() int { return len(ks.trash) }
