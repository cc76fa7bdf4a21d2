package log

import (
	"io"

	"github.com/kevydb/kevy/internal/vfs"
)

// cutGroups moves the end of shards to before the first part of a group over several shards whose
// other parts are not all there, until none is left (step 4). A part is missing exactly if its
// shard's last surviving transaction id is smaller.
//
// Ids grow in every shard, and a cut at one id only takes away greater ones. So one pass in the order
// of ids over all shards, like a merge, finds every cut.
func cutGroups(shards []*shardScan) error {
	if allWhole(shards) {
		return nil
	}
	m := make([]*groupScan, len(shards))
	for i, s := range shards {
		g := &groupScan{s: s}
		defer g.close()
		if err := g.open(); err != nil {
			return err
		}
		m[i] = g
	}
	for {
		id := noHold
		for _, g := range m {
			if !g.ended {
				id = min(id, g.txn)
			}
		}
		if id == noHold {
			return nil
		}
		whole := isWhole(m, id)
		for _, g := range m {
			if g.ended || g.txn != id {
				continue
			}
			if whole {
				if err := g.next(); err != nil {
					return err
				}
				continue
			}
			g.cut()
		}
	}
}

// allWhole reports whether no group can be missing a part: the usual case, and known from the scan.
func allWhole(shards []*shardScan) bool {
	for _, s := range shards {
		for i, other := range shards {
			if s.needs[i] > other.end.txn {
				return false
			}
		}
	}
	return true
}

// isWhole reports whether every shard that takes part in group id has its part.
func isWhole(m []*groupScan, id uint64) bool {
	mask := uint64(0)
	for _, g := range m {
		if !g.ended && g.txn == id {
			mask |= g.mask
		}
	}
	for i, g := range m {
		if mask&(1<<i) != 0 && g.ended && g.last < id {
			return false
		}
	}
	return true
}

// groupScan runs over the groups over several shards in one shard's newest segment.
type groupScan struct {
	s      *shardScan
	f      vfs.File
	st     *Stream
	ended  bool      // there are no more groups, or they are cut
	txn    uint64    // id of the group it stands before
	mask   uint64    // the group's shards
	before tailState // end of the log without the group
	last   uint64    // id of the newest group accepted
	timeMS int64     // of the newest frame read
}

func (g *groupScan) open() error {
	seg := g.s.newest()
	f, err := g.s.fs.Open(seg.path())
	if err != nil {
		return err
	}
	g.f = f
	g.st = NewStream(f, seg.path(), g.s.shard, seg.start(), headerBytes, g.s.end.pos)
	g.timeMS, g.txn = seg.lastTimeMS, seg.lastTxn
	return g.next()
}

func (g *groupScan) close() {
	if g.st != nil {
		g.st.Close()
		_ = g.f.Close() // opened for reading only
	}
}

// next accepts the group it stands before, and goes to before the next one with an id.
func (g *groupScan) next() error {
	g.last = g.txn
	for {
		at := tailState{g.st.pos, g.st.off, g.st.lastCRC, g.timeMS, g.last}
		f, err := g.st.Next()
		if err == io.EOF { //nolint:errorlint // the stream's own, never wrapped
			g.ended = true
			return nil
		}
		if err != nil {
			return err
		}
		g.timeMS = f.TimeMS
		if f.GroupFirst && f.Txn != 0 {
			g.before, g.txn, g.mask = at, f.Txn, f.Mask
			return nil
		}
	}
}

// cut ends the shard's log before the group.
func (g *groupScan) cut() {
	g.s.end = g.before
	g.s.reason = corruptf("group %d over several shards is not whole on all of them", g.txn)
	g.ended = true
}
