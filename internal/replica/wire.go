package replica

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

// wanted is before a set's id in REPL.SNAPSHOT: the follower has something of that set already.
const wanted = "+"

// Format is the version of the protocol and of the frames and snapshot files it carries.
const Format = 2

// Hello is what a source says of itself.
type Hello struct {
	Format  int             `json:"format"`
	Shards  int             `json:"shards"`
	Seed    uint64          `json:"hash_seed"`
	ID      string          `json:"id"` // of the replication history, 40 hex digits
	Lineage [][]log.Lineage `json:"lineage"`
	Tails   []log.Cursor    `json:"tails"`
}

// Offer is a snapshot set that a follower can fetch, with what it must know to go on from there.
type Offer struct {
	Set     snapshot.Set    `json:"set"`
	Seed    uint64          `json:"hash_seed"`
	LastTxn uint64          `json:"last_transaction"`
	Lineage [][]log.Lineage `json:"lineage"`
}

// Ack is how far a follower has come on one shard.
type Ack struct {
	Generation       uint64
	Applied, Durable uint64     // offsets of the next frame
	Cut              log.Cursor // of the newest cut that it holds; zero: none
}

// errNoFrames is the class of PULL's errors that a snapshot helps against.
var errNoFrames = errors.New("NOFRAMES the frames are not there (any more)")

// uints reads unsigned decimals.
func uints(args [][]byte) ([]uint64, error) {
	out := make([]uint64, len(args))
	for i, a := range args {
		n, err := strconv.ParseUint(string(a), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("ERR %.40q is not an unsigned number", a)
		}
		out[i] = n
	}
	return out, nil
}

// endOf returns the end of a generation of a lineage whose last one ends at tail.
func endOf(lineage []log.Lineage, generation uint64, tail log.Cursor) (end uint64, ok bool) {
	if generation == tail.Generation {
		return tail.Offset, true
	}
	for i := range lineage {
		if lineage[i].Parent == generation && generation != 0 {
			return lineage[i].ParentOffset, true
		}
	}
	return 0, false
}

// compare returns where the histories of two logs of a shard part, or where the shorter one ends; false when they have nothing in common.
func compare(own []log.Lineage, tail log.Cursor, theirs []log.Lineage, theirTail log.Cursor) (common log.Cursor, ok bool) {
	for _, g := range slices.Backward(own) {
		for _, t := range slices.Backward(theirs) {
			if t.Generation != g.Generation || t.Parent != g.Parent || t.ParentOffset != g.ParentOffset {
				continue
			}
			end, ok1 := endOf(own, g.Generation, tail)
			theirEnd, ok2 := endOf(theirs, g.Generation, theirTail)
			return log.Cursor{Generation: g.Generation, Offset: min(end, theirEnd)}, ok1 && ok2
		}
	}
	return log.Cursor{}, false
}

// Position counts the frames of a shard's history up to a cursor: what Redis's offsets are to its clients.
func Position(lineage []log.Lineage, at log.Cursor) uint64 {
	n := at.Offset
	for i := range lineage {
		if lineage[i].Generation <= at.Generation {
			n += lineage[i].Earlier + lineage[i].ParentOffset
		}
	}
	return n
}
