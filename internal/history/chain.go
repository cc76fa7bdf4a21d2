package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kevydb/kevy/log"
)

// span is one generation of a chain.
type span struct {
	log.Lineage
	End uint64 // frames of it below this offset are part of the history
	pos uint64 // position of its first frame
}

// chain is the history of a shard: the newest generation and its ancestors, oldest first.
type chain []span

// newChain follows the parents of the newest generation, which ends at end, as far as they are on record.
func newChain(lineage []log.Lineage, end uint64) chain {
	byGen := make(map[uint64]log.Lineage, len(lineage))
	for _, l := range lineage {
		byGen[l.Generation] = l
	}
	var c chain
	for l, ok := lineage[len(lineage)-1], true; ok; l, ok = byGen[l.Parent] {
		c = append(c, span{Lineage: l, End: end})
		end = l.ParentOffset
	}
	for i, j := 0, len(c)-1; i < j; i, j = i+1, j-1 {
		c[i], c[j] = c[j], c[i]
	}
	for i := 1; i < len(c); i++ {
		c[i].pos = c[i-1].pos + c[i-1].End
	}
	return c
}

func (c chain) tail() log.Cursor {
	last := c[len(c)-1]
	return log.Cursor{Generation: last.Generation, Offset: last.End}
}

// complete reports whether the chain begins with the empty store.
func (c chain) complete() bool { return c[0].Parent == 0 && c[0].Cause == log.CauseCreate }

// pos returns the position of a cursor, or an error that says why it is not in this history.
func (c chain) pos(at log.Cursor) (uint64, error) {
	for _, s := range c {
		if s.Generation != at.Generation {
			continue
		}
		if at.Offset > s.End {
			return 0, noPointf("cursor %s: generation %d ends at %d", at, s.Generation, s.End)
		}
		return s.pos + at.Offset, nil
	}
	return 0, noPointf("cursor %s: there is no such generation in this history; it has %s", at, c)
}

// String names the newest generations.
func (c chain) String() string {
	const most = 5
	var names []string
	for _, s := range c[max(0, len(c)-most):] {
		names = append(names, fmt.Sprintf("%d (0 to %d)", s.Generation, s.End))
	}
	if len(c) > most {
		names = append([]string{fmt.Sprintf("%d older ones", len(c)-most)}, names...)
	}
	return strings.Join(names, ", ")
}

// index returns where a generation is in the chain, -1: nowhere.
func (c chain) index(gen uint64) int {
	return slices.IndexFunc(c, func(s span) bool { return s.Generation == gen })
}
