package engine

import (
	"github.com/kevydb/kevy/log"
)

// Stats is a picture of the engine for INFO.
type Stats struct {
	Keys, Expires int
	Loaded        int    // keys at start
	Expired       uint64 // keys deleted at their deadline since start or ResetStats
	Dirty         uint64 // effects since the last snapshot
	LogGrown      int64  // bytes of log since the last snapshot
	ViewBytes     int64  // memory kept for open views: what changed while a snapshot is being written
	UsedBytes     int64  // memory accounted to records
	// LazyPending counts the large values that are gone and wait to be freed, LazyFreed those freed off the request path.
	LazyPending, LazyFreed uint64
	// WaitedKeys counts the keys clients wait for, WaitedAnyChange those where one wants to know of any change,
	// WaitTimed the clients that wait with a timeout.
	WaitedKeys, WaitedAnyChange, WaitTimed int
	Policy                                 log.Policy
	Err                                    error // why writes are refused
	Save                                   SaveStatus
	Disk                                   log.Stats // the logs of all shards
	Shards                                 []ShardStats
}

// ShardStats is a picture of one shard.
type ShardStats struct {
	Cursor                          log.Cursor // appended tail
	Base, Written, Durable, Visible uint64
	Retained                        int64 // bytes of log on disk
	OldestMS                        int64 // time of the oldest frame on disk, 0 if none
	Keys, Expires                   int
}

// WriteErr returns why writes are refused: for good, or while the disk is full.
func (s *Stats) WriteErr() error {
	if s.Err == nil && s.Disk.DiskFull {
		return log.ErrDiskFull
	}
	return s.Err
}

// ResetStats sets the counters of keys expired, evicted and freed in the background to zero.
func (e *Engine) ResetStats() {
	e.lock(e.all())
	defer e.unlock(e.all())
	for _, sh := range e.shards {
		sh.expired, sh.tidied = 0, 0
	}
	e.evictor.evicted.Store(0)
}

// Stats returns a picture of the engine. It takes each shard's lock for a moment.
func (e *Engine) Stats() Stats { return e.stats(false) }

// StatsInside is Stats for a command inside a group. REQUIRES: the group holds the locks of all shards.
func (e *Engine) StatsInside() Stats { return e.stats(true) }

func (e *Engine) stats(locked bool) Stats {
	s := Stats{Loaded: e.loaded, Policy: e.Policy(), Err: e.brokenErr(), Save: e.SaveStatus(), WaitTimed: int(e.waitTimed.Load())}
	for _, sh := range e.shards {
		if !locked {
			sh.mu.Lock()
		}
		x := ShardStats{Keys: sh.ks.Len(), Expires: sh.ks.LenWithDeadline(), Cursor: sh.log().Tail()}
		s.Expired += sh.expired
		s.Dirty += sh.dirty
		s.LogGrown += sh.grown()
		s.ViewBytes += sh.ks.Memory().Deferred
		s.LazyPending += uint64(sh.ks.Trash())
		s.LazyFreed += sh.tidied
		s.UsedBytes += sh.ks.UsedBytes()
		s.WaitedKeys += len(sh.waits.queues)
		for _, q := range sh.waits.queues {
			s.WaitedAnyChange += min(q.anyChange, 1)
		}
		if !locked {
			sh.mu.Unlock()
		}
		x.Base, x.Written, x.Durable, x.Visible = sh.log().Base(), sh.log().Written(), sh.log().Durable(), sh.log().Visible()
		disk := sh.log().Stats()
		x.Retained, x.OldestMS = disk.Bytes, disk.OldestMS
		s.Disk.Add(disk)
		s.Keys += x.Keys
		s.Expires += x.Expires
		s.Shards = append(s.Shards, x)
	}
	return s
}
