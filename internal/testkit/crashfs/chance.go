package crashfs

import "math/rand/v2"

// mood is how a crash treats a set of unsynced things.
type mood int

const (
	nothing mood = iota // survives
	everything
	mixed
)

func drawMood(rng *rand.Rand) mood { return mood(rng.IntN(3)) }

// draw draws how many of n changes in a row survive.
func (m mood) draw(rng *rand.Rand, n int) int {
	switch m {
	case nothing:
		return 0
	case everything:
		return n
	default:
		return rng.IntN(n + 1)
	}
}

// survivors decides which changes survive, where of the changes to one thing (a sector, a
// name) the first ones do. First all changes are counted, then each is asked for, in order.
type survivors[K comparable] struct {
	rng     *rand.Rand
	mood    mood
	changes map[K]int // counted and not yet drawn for
	left    map[K]int // that may still survive
}

func newSurvivors[K comparable](rng *rand.Rand) *survivors[K] {
	return &survivors[K]{rng: rng, mood: drawMood(rng), changes: map[K]int{}, left: map[K]int{}}
}

func (s *survivors[K]) count(k K) { s.changes[k]++ }

// next reports whether the next change to k survives.
func (s *survivors[K]) next(k K) bool {
	if n, ok := s.changes[k]; ok {
		delete(s.changes, k)
		s.left[k] = s.mood.draw(s.rng, n)
	}
	s.left[k]--
	return s.left[k] >= 0
}

// stop makes all further changes to k be lost. REQUIRES: next was called for k.
func (s *survivors[K]) stop(k K) { s.left[k] = 0 }
