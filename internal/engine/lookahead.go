package engine

import (
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// keysAhead is for how many keys at a time the processor is asked, see state.Keyspace.PrefetchIndex.
const keysAhead = 32

// Lookahead asks the processor for the records of keys before their frames are folded. The zero value is ready. Not safe for concurrent use.
type Lookahead struct {
	hashes []uint64
	left   int // frames that were looked at and come yet
}

// Before is told that the frame which r has returned is about to be folded into ks.
func (l *Lookahead) Before(r *log.Reader, ks *state.Keyspace) {
	if l.left > 0 {
		l.left--
		return
	}
	l.left = l.ask(r.Ahead(), ks)
}

// ask asks for the records of the keys in the frames that raw begins with, and returns how many frames these are.
func (l *Lookahead) ask(raw []byte, ks *state.Keyspace) (frames int) {
	l.hashes = l.hashes[:0]
	for len(l.hashes) < keysAhead {
		key, size := log.PeekKey(raw)
		if size == 0 {
			break
		}
		if key != nil {
			l.hashes = append(l.hashes, ks.Hash(key))
		}
		frames++
		raw = raw[size:]
	}
	l.bring(ks)
	return frames
}

// askEffects asks for the records of the keys of effects that are about to be folded.
func (l *Lookahead) askEffects(effects []effect.Effect, ks *state.Keyspace) {
	l.hashes = l.hashes[:0]
	for i := range effects {
		if key, ok := effects[i].SingleKey(); ok && len(l.hashes) < keysAhead {
			l.hashes = append(l.hashes, ks.Hash(key))
		}
	}
	l.bring(ks)
}

// bring asks for the lines of the index first, then for what they lead to.
func (l *Lookahead) bring(ks *state.Keyspace) {
	for _, h := range l.hashes {
		ks.PrefetchIndex(h)
	}
	for _, h := range l.hashes {
		ks.PrefetchRecord(h)
	}
}
