package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
	"github.com/kevydb/kevy/state"
)

// Options configure an Engine. The zero value of each field is its default.
type Options struct {
	// Log names the directory and says how its logs behave; see log.Options.
	Log log.Options
	// Now is the clock in unix ms; nil means the system's.
	Now func() int64
	// Limits are the bounds for OBJECT ENCODING; nil means Redis's defaults.
	Limits *state.Limits
	// Snapshots says when snapshots are taken and which stay; nil: only when asked for, and the newest.
	Snapshots *SnapshotPolicy
	// HoldFor, if not empty, names a floor of the log that is there before anything is dropped: from an earlier start, or
	// one that keeps everything. It is for an archive, which moves it.
	HoldFor string
	// DigestSets records in each snapshot set the digest of its keys. That costs a pass over them while the views are open: for tools, which
	// nobody writes beside.
	DigestSets bool
	// Collect, if there is one, is called on a goroutine of its own when much of the Go heap has become garbage: after the state was loaded, and
	// after each try to write a snapshot set.
	Collect func()
	// Logger takes what operators should know; nil discards it.
	Logger *slog.Logger
}

// Engine is an open data directory with the state folded from it. All exported methods are safe
// for concurrent use unless they say otherwise.
type Engine struct {
	opt       Options
	now       func() int64
	logger    *slog.Logger
	fs        vfs.FS
	dir       atomic.Pointer[log.Dir] // replaced with all shard locks held; see follow.go
	shards    []*shard
	keyspaces []*state.Keyspace // by shard; element i is guarded by shard i's lock
	txns      txns
	policy    atomic.Int32
	maxBulk   atomic.Int64
	limits    atomic.Pointer[state.Limits]

	following atomic.Bool // effects come from the store that is followed, and from nowhere else
	held      heldCut     // of that store
	replacing atomic.Bool // the logs are closed, and others are about to take their place

	listener Listener      // nil: nobody
	wanted   atomic.Uint32 // what the listener wants to know
	untold   untold        // what it is to be told when that is safe

	broken   atomic.Pointer[error] // first failure of any log: no more writes
	repaired chan struct{}         // closed when the keyspaces are as the log is, after that

	expirer         *expirer
	nextExpiry      atomic.Int64 // when the expirer looks next, unix ms
	activeExpiryOff atomic.Bool
	expiryHeld      atomic.Bool // see HoldExpiry

	ctxs       sync.Pool     // *command.Ctx, for the commands of waiters
	readyClock atomic.Uint64 // keys that became ready for waiters
	waitTimed  atomic.Int64  // waiters with a timeout

	evictor evictor
	quick   quickSyncs

	loaded     int // keys at start
	checkpoint checkpointer
	closeOnce  sync.Once
}

// Report says what Open found and did.
type Report struct {
	Log      *log.Recovery
	Snapshot string // set the state was loaded from; empty if from the log alone
	Keys     int
	Frames   uint64 // frames folded
	Took     time.Duration
}

// ErrClosed is returned by operations on a closed Engine.
var ErrClosed = errors.New("engine: closed")

// Open opens or creates the data directory, recovers its logs and folds them into keyspaces.
// Errors name the file and what can be done.
func Open(o Options) (*Engine, *Report, error) {
	began := time.Now()
	e := &Engine{opt: o, now: o.Now, logger: o.Logger, repaired: make(chan struct{})}
	if e.now == nil {
		e.now = func() int64 { return time.Now().UnixMilli() }
	}
	if e.logger == nil {
		e.logger = slog.New(slog.DiscardHandler)
	}
	if o.Log.Shards > MaxShards {
		return nil, nil, fmt.Errorf("engine: shards = %d: at most %d", o.Log.Shards, MaxShards)
	}
	o.Log.Now, o.Log.Logger, o.Log.Background = e.now, e.logger, inBackground
	if p := o.Snapshots; p != nil {
		o.Log.KeepBytes, o.Log.KeepTime = p.LogKeepBytes, p.LogKeepTime
	}
	if o.Log.FS == nil {
		o.Log.FS = vfs.OS()
	}
	e.fs = o.Log.FS
	dir, rec, err := log.Open(o.Log)
	if err != nil {
		return nil, nil, advise(err, o.Log.Dir)
	}
	e.dir.Store(dir)
	rep := &Report{Log: rec}
	e.tellCuts(rec)
	if err := e.start(rep); err != nil {
		// The log is whole and nothing was added: however often this is tried, no generation ends by it.
		return nil, nil, advise(errors.Join(err, dir.Close(true)), o.Log.Dir)
	}
	rep.Took = time.Since(began)
	e.collect()
	return e, rep, nil
}

// tellCuts logs what recovery has cut off.
func (e *Engine) tellCuts(rec *log.Recovery) {
	for i, sh := range rec.Shards {
		if sh.Reason == "" {
			continue
		}
		kept := sh.CutFile
		if kept == "" {
			kept = "nowhere: they are zeros"
		}
		e.logger.Warn("unclean log tail cut off", "shard", i, "bytes", sh.CutBytes, "frames", sh.CutFrames, "kept", kept, "reason", sh.Reason)
	}
}

// advise adds to err what can be done about it, if it is damage.
func advise(err error, dir string) error {
	if errors.Is(err, log.ErrCorrupt) || errors.Is(err, snapshot.ErrCorrupt) {
		return log.Advise(err, dir)
	}
	return err
}

// collect has garbage collected, if that is wanted.
func (e *Engine) collect() {
	if e.opt.Collect != nil {
		go e.opt.Collect()
	}
}

func (e *Engine) start(rep *Report) error {
	if n := e.Dir().Shards(); n > MaxShards {
		return fmt.Errorf("engine: the directory has %d shards: this version serves at most %d", n, MaxShards)
	}
	e.policy.Store(int32(e.opt.Log.Policy))
	if limits := state.DefaultLimits(); e.opt.Limits == nil {
		e.opt.Limits = &limits
	}
	e.limits.Store(e.opt.Limits)
	e.txns.e = e
	e.txns.last.Store(e.Dir().LastTxn())
	e.txns.settled.Store(e.Dir().LastTxn())
	e.following.Store(e.opt.Log.Follower && e.Dir().Follower())
	for i := range e.Dir().Shards() {
		e.shards = append(e.shards, &shard{id: i, hold: ^uint64(0), readyClock: &e.readyClock})
		e.shards[i].lg.Store(e.Dir().Log(i))
	}
	e.keyspaces = make([]*state.Keyspace, len(e.shards))
	if err := e.load(rep, log.LimitWritten); err != nil {
		return err
	}
	e.loaded = rep.Keys
	if e.following.Load() {
		if err := e.loadCut(); err != nil {
			return err
		}
	}
	if name := e.opt.HoldFor; name != "" && e.Dir().Floors()[name] == nil {
		if err := e.Dir().SetFloor(name, make([]log.Cursor, len(e.shards))); err != nil {
			return err
		}
	}
	e.checkpoint.init(e)
	e.Dir().Maintain()
	e.expirer = newExpirer(e)
	e.nextExpiry.Store(0)
	go e.expirer.run()
	return nil
}

// Close stops the engine. clean keeps the cursors for the next Open: it flushes and syncs all
// logs and marks the directory clean; of a log that has failed it returns why, and the directory is not
// marked. REQUIRES: no other method runs or follows.
func (e *Engine) Close(clean bool) (err error) {
	e.closeOnce.Do(func() {
		e.expirer.close()
		e.checkpoint.close()
		e.quick.close()
		if e.broken.Load() != nil {
			<-e.repaired
		}
		var failed error
		if clean {
			failed = e.brokenErr()
		}
		err = errors.Join(failed, e.held.close(), e.Dir().Close(clean && failed == nil))
		for _, ks := range e.keyspaces {
			ks.Release()
		}
	})
	return err
}

// NewCtx returns a context for Run and Exec. A Ctx is not safe for concurrent use.
func (e *Engine) NewCtx() *command.Ctx {
	return &command.Ctx{Shards: e.keyspaces, Seed: e.Dir().HashSeed()}
}

// Policy returns when writes are acknowledged.
func (e *Engine) Policy() log.Policy { return log.Policy(e.policy.Load()) }

// SetPolicy changes when writes are acknowledged, from the next command on.
func (e *Engine) SetPolicy(p log.Policy) {
	e.policy.Store(int32(p))
	for _, sh := range e.shards {
		sh.log().SetPolicy(p)
	}
	if p == log.Always {
		for _, sh := range e.shards {
			sh.log().SyncThrough(sh.log().Appended())
		}
	}
}

// SetMaxBulk sets the longest string in bytes that a command may build (proto-max-bulk-len): at most state.MaxValue, which 0
// means as well.
func (e *Engine) SetMaxBulk(n int64) { e.maxBulk.Store(min(n, state.MaxValue)) }

// SetLimits sets the bounds for OBJECT ENCODING: what is written from now on counts against them.
func (e *Engine) SetLimits(l state.Limits) {
	e.lock(e.all())
	defer e.unlock(e.all())
	e.limits.Store(&l)
	for _, sh := range e.shards {
		sh.ks.Limits = l
	}
}

// SetActiveExpire switches deletion at the deadline off and on (DEBUG SET-ACTIVE-EXPIRE); keys
// past their deadline are hidden, and deleted when touched, all the same.
func (e *Engine) SetActiveExpire(on bool) {
	e.activeExpiryOff.Store(!on)
	e.expirer.awaken()
}

// HoldExpiry keeps keys and fields past their deadline from being deleted while hold is true, unless a write
// touches them: the log does not grow by itself while clients' writes are paused. They are hidden all the same.
func (e *Engine) HoldExpiry(hold bool) {
	e.expiryHeld.Store(hold)
	e.expirer.awaken()
}

// Shards returns the number of shards.
func (e *Engine) Shards() int { return len(e.shards) }

// Seed returns the directory's hash seed.
func (e *Engine) Seed() uint64 { return e.Dir().HashSeed() }

// Dir returns the open log directory. A full copy from the store that is followed opens another one in its place.
func (e *Engine) Dir() *log.Dir { return e.dir.Load() }

// FS returns the file system that the directory is on.
func (e *Engine) FS() vfs.FS { return e.fs }

// Now returns the engine's clock in unix ms.
func (e *Engine) Now() int64 { return e.now() }

func (e *Engine) all() uint64 { return 1<<len(e.shards) - 1 }

func (e *Engine) shardOf(key []byte) int {
	if len(e.shards) == 1 {
		return 0
	}
	return command.ShardOfHash(state.Hash(e.Dir().HashSeed(), key), len(e.shards))
}

func (e *Engine) brokenErr() error {
	if p := e.broken.Load(); p != nil {
		return *p
	}
	for _, sh := range e.shards {
		if err := e.logErr(sh.id, sh.log()); err != nil {
			e.markBroken(err)
			return err
		}
	}
	return nil
}

// markBroken refuses all writes from now on, and has the keyspaces folded again up to what
// consumers may see: what was folded but did not reach the log was never acknowledged and must not be read.
func (e *Engine) markBroken(err error) {
	if !e.broken.CompareAndSwap(nil, &err) {
		return
	}
	e.logger.Error("log failed: writes are refused from now on, reads go on", "error", err)
	go func() {
		defer close(e.repaired)
		e.lock(e.all())
		defer e.unlock(e.all())
		var rep Report
		if err := e.load(&rep, log.LimitVisible); err != nil {
			e.logger.Error("the state can't be read back after the failure: reads may show writes that were refused", "error", err)
		}
	}()
}

// isRepaired reports whether the keyspaces are as the log is, after a failure of it.
func (e *Engine) isRepaired() bool {
	select {
	case <-e.repaired:
		return true
	default:
		return false
	}
}

// Err returns why writes are refused, or nil.
func (e *Engine) Err() error { return e.brokenErr() }

// crash ends the process: the log is whole, the state is not. It panics where nobody recovers, and does not return.
func crash(err error) {
	fmt.Fprintln(os.Stderr, "kevy: fatal:", err)
	go func() { panic(err) }()
	select {}
}
