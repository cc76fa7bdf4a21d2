package state

import "github.com/kevydb/kevy/internal/arena"

// positionShift: a scan position is the top 48 bits of a hash.
const positionShift = 16

// Scan visits keys in the order of their hashes, from the 48-bit position cursor on, and returns the
// position to go on from, 0 at the end. A position means the same at any size of the keyspace
// and after a restart. Every key present throughout a whole scan is visited; none twice unless the
// keyspace changes its size meanwhile. It visits about count keys and looks at about ten times as
// many slots at most. f must not fold.
func (ks *Keyspace) Scan(cursor uint64, count int, f func(Entry)) (next uint64) {
	x := &ks.idx
	h := cursor << positionShift
	seen, slots := 0, 0
	for {
		e := x.dir[h>>(x.shift&63)]
		d := entryDepth(e)
		w := x.words(e)
		last := ^uint64(0)
		for i := home(tagOf(h, d), len(w)); i < len(w)-1; i++ {
			s := w[i]
			t := s >> tagPos
			if s == 0 || t < tagOf(h, d) {
				continue
			}
			if seen >= count && seen > 0 && t != last {
				return (h>>(64-d)<<(64-d) | t<<tagShift>>d) >> positionShift
			}
			f(Entry{x.a, arena.Ref(s & arena.RefMask)})
			last = t
			seen++
		}
		slots += len(w)
		if h = (h>>(64-d) + 1) << (64 - d); h == 0 {
			return 0
		}
		if seen >= count || slots > 10*count+(2<<tableLog) {
			return h >> positionShift
		}
	}
}

// randomProbes are the slots Random tries in a table before it takes the next entry it finds.
const randomProbes = 64

// Random returns a key chosen by rnd: a table by the top bits, then slots in it until one is taken.
// Tables hold about the same number of keys for their share of the hashes, so the choice is fair.
func (ks *Keyspace) Random(rnd uint64) (Entry, bool) {
	x := &ks.idx
	if x.n == 0 {
		return Entry{}, false
	}
	at := int(rnd >> (x.shift & 63))
	for {
		w := x.words(x.dir[at])
		if w[len(w)-1] > 0 {
			return Entry{x.a, randomSlot(w, rnd)}, true
		}
		if at++; at == len(x.dir) {
			at = 0
		}
	}
}

func randomSlot(w []uint64, rnd uint64) arena.Ref {
	for range randomProbes {
		rnd = rnd*6364136223846793005 + 1442695040888963407
		if s := w[int(rnd>>32)&(len(w)-1)]; s != 0 && rnd>>32&uint64(len(w)-1) != uint64(len(w)-1) {
			return arena.Ref(s & arena.RefMask)
		}
	}
	for i := int(rnd>>32) & (len(w) - 1); ; i = (i + 1) & (len(w) - 1) {
		if s := w[i]; s != 0 && i != len(w)-1 {
			return arena.Ref(s & arena.RefMask)
		}
	}
}
