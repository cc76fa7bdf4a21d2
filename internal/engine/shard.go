package engine

import (
	"sync"
	"sync/atomic"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// shard is one independent log and the keyspace folded from it.
type shard struct {
	id int

	mu      sync.Mutex
	ks      *state.Keyspace         // guarded by mu; replaced by reload
	lg      atomic.Pointer[log.Log] // append side guarded by mu; replaced with all shard locks held
	watched map[string][]*Watch
	lastTxn uint64 // newest transaction with a part here
	dirty   uint64 // effects since the last snapshot

	grownBefore int64  // bytes of log since the last snapshot, until the log had
	grownMark   int64  // this many bytes; see grown
	expired     uint64 // keys expired since start or ResetStats
	tidied      uint64 // large values freed off the request path since start or ResetStats

	waits      waits          // clients that wait for keys
	readyClock *atomic.Uint64 // of the engine: orders ready keys over shards

	used atomic.Int64 // UsedBytes after the last change; see Engine.UsedNow

	hold uint64 // guarded by txns.mu: the cap given to the log

	_ [64]byte // keep neighbours' locks off this cache line
}

func (sh *shard) log() *log.Log { return sh.lg.Load() }

// fold applies one effect and tells those who watch its keys or wait for them. REQUIRES: sh.mu held.
func (sh *shard) fold(e *effect.Effect) error {
	if len(sh.watched) > 0 {
		sh.touchWatched(e)
	}
	if len(sh.waits.queues) > 0 {
		sh.noteReady(e)
	}
	sh.dirty++
	_, err := sh.ks.Fold(e)
	return err
}
