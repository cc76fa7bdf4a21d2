package engine

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/snapshot"
)

var (
	// ErrSaving is returned while another snapshot is being written. The text is Redis's.
	ErrSaving = errors.New("ERR Background save already in progress")
	// ErrRewriting is returned while a snapshot is being written in order to shorten the log. The text is Redis's.
	ErrRewriting = errors.New("ERR Background append only file rewriting already in progress")
	// ErrNoDirectory is returned by snapshots of a store that lives in memory.
	ErrNoDirectory = errors.New("ERR this store has no directory: it lives in memory only")
)

// SaveKind is what a snapshot is written for. Every kind writes the same.
type SaveKind int

// Kinds of snapshots.
const (
	SaveData   SaveKind = iota // SAVE, BGSAVE, save rules
	RewriteLog                 // BGREWRITEAOF, the log's growth
	saveKinds
)

// SaveStatus is what INFO and LASTSAVE tell about snapshots.
type SaveStatus struct {
	Running    bool
	Kind       SaveKind      // of the running one
	StartedMS  int64         // of the running one, unix ms
	Held       time.Duration // the longest that the running or last one has held a shard's lock
	Keys       int64         // written so far by the running one
	KeysTotal  int64         // that the running one will write
	LastMS     int64         // unix ms at which the newest set was frozen; start-up time if there is none
	LastID     string        // of the newest set, "" if there is none
	LastKeys   uint64        // keys of the newest set
	Count      int           // sets published since start
	ByKind     [saveKinds]KindStatus
	Failures   int   // tries that failed since the last good one
	RetryMS    int64 // unix ms before which no automatic snapshot is tried again, 0: nothing to wait for
	Sets       int   // on disk
	SetBytes   int64 // of all sets on disk
	BaseBytes  int64 // frames of the newest set, uncompressed
	PruneError error // why old sets could not be removed the last time, nil: they could
}

// KindStatus tells about the snapshots of one kind.
type KindStatus struct {
	Scheduled bool  // begins when the running one has ended
	Count     int   // published since start
	Err       error // of the last try
	Failures  int   // since the last good one
	TookMS    int64 // of the last try
	Tried     bool
}

// LastErr returns why the last try, of any kind, failed; nil when the last one did not.
func (s *SaveStatus) LastErr() error {
	if s.Failures == 0 {
		return nil
	}
	return errors.Join(s.ByKind[SaveData].Err, s.ByKind[RewriteLog].Err)
}

// checkpointer writes snapshot sets, one at a time.
type checkpointer struct {
	e        *Engine
	progress atomic.Int64 // keys written by the running one
	cancel   atomic.Bool  // the running one is to give up

	mu     sync.Mutex
	idle   *sync.Cond // signalled when the running one, or pruning, ends
	prunes bool       // sets are being removed; not while one is being written
	closed bool
	status SaveStatus
	policy SnapshotPolicy
	many   int   // manyGenerations, but in tests
	restMS int64 // unix ms until which the log's growth should not ask for a set

	wake chan struct{} // for auto; nil: there is none
	quit chan struct{}
	done chan struct{}
}

func (c *checkpointer) init(e *Engine) {
	c.e = e
	c.idle = sync.NewCond(&c.mu)
	c.many = manyGenerations
	c.status.LastMS = e.now()
	if e.opt.Snapshots != nil {
		c.policy = *e.opt.Snapshots
	}
	if e.opt.Log.Ephemeral {
		return
	}
	if id, _ := e.Dir().Snapshot(); id != "" {
		if set, err := snapshot.ReadSet(e.fs, e.Dir().Path(), id); err == nil {
			c.status.note(&set)
		}
	}
	c.status.Sets, c.status.SetBytes = c.onDisk()
	c.hold()
	c.wake, c.quit, c.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go c.auto()
}

// note takes in a set that has become the newest.
func (s *SaveStatus) note(set *snapshot.Set) {
	s.LastID, s.LastMS, s.LastKeys, s.BaseBytes = set.ID, set.TimeMS, 0, 0
	for i := range set.Shards {
		s.LastKeys += set.Shards[i].Keys
		s.BaseBytes += set.Shards[i].FrameBytes
	}
}

// onDisk counts the published sets.
func (c *checkpointer) onDisk() (sets int, bytes int64) {
	ids, err := snapshot.List(c.e.fs, c.e.Dir().Path())
	if err != nil {
		return 0, 0
	}
	for _, id := range ids {
		set, err := snapshot.ReadSet(c.e.fs, c.e.Dir().Path(), id)
		if err != nil {
			continue // unreadable: restore and verify say so
		}
		sets++
		bytes += set.Bytes()
	}
	return sets, bytes
}

// begin takes the right to write a set. With wait, it waits for the running one to end.
func (c *checkpointer) begin(kind SaveKind, wait bool) error {
	if c.e.opt.Log.Ephemeral {
		return ErrNoDirectory
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for (c.prunes || wait && c.status.Running) && !c.closed {
		c.idle.Wait()
	}
	if err := c.refusal(); err != nil {
		return err
	}
	s := &c.status
	s.Running, s.Kind, s.StartedMS, s.KeysTotal, s.Held = true, kind, c.e.now(), 0, 0
	s.ByKind[kind].Scheduled = false
	c.progress.Store(0)
	return nil
}

// refusal returns why no set may be written or removed now. REQUIRES: c.mu held.
func (c *checkpointer) refusal() error {
	switch {
	case c.closed:
		return ErrClosed
	case c.status.Running && c.status.Kind == RewriteLog:
		return ErrRewriting
	case c.status.Running:
		return ErrSaving
	}
	return nil
}

// end takes note of what became of the running snapshot.
func (c *checkpointer) end(set *snapshot.Set, err error) {
	sets, bytes := c.onDisk()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.status
	k := &s.ByKind[s.Kind]
	now := c.e.now()
	s.Running, s.Sets, s.SetBytes = false, sets, bytes
	k.Err, k.TookMS, k.Tried = err, now-s.StartedMS, true
	if err == nil {
		s.note(set)
		c.restMS = now + restTimes*k.TookMS
		s.Count++
		k.Count++
		s.Failures, s.RetryMS = 0, 0
		for i := range s.ByKind {
			s.ByKind[i].Failures = 0
		}
	} else {
		s.Failures++
		k.Failures++
		s.RetryMS = now + backoff(s.Failures).Milliseconds()
	}
	c.idle.Broadcast()
	c.poke()
}

// close makes the running snapshot give up, waits for that, and refuses later ones.
func (c *checkpointer) close() {
	c.cancel.Store(true)
	c.mu.Lock()
	c.closed = true
	for c.status.Running || c.prunes {
		c.idle.Wait()
	}
	c.idle.Broadcast()
	c.mu.Unlock()
	if c.quit != nil {
		close(c.quit)
		<-c.done
	}
}

// SaveStatus tells about the snapshots taken.
func (e *Engine) SaveStatus() SaveStatus {
	c := &e.checkpoint
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.status
	s.Keys = c.progress.Load()
	return s
}

// LastSave returns the unix time in seconds of the last published snapshot set.
func (e *Engine) LastSave() int64 { return e.SaveStatus().LastMS / 1000 }
