package kevy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/kevydb/kevy/log"
)

// Mirror keeps something else in step with a store: a table, a search index, a cache, another store. The shortest one
// that works:
//
//	m := kevy.Mirror{Addr: "127.0.0.1:6379", Prefixes: []string{"user:"}, Apply: func(ctx context.Context, b *kevy.MirrorBatch) error {
//		if b.Reset != nil {
//			forget(b.Shard, b.Reset) // every key of this shard in the range
//		}
//		for _, c := range b.Changes {
//			apply(b.Shard, c.Argv) // SET user:1 Ada, DEL user:1, ...
//		}
//		return nil
//	}}
//	err := m.Run(ctx)
//
// Run makes a first copy with FEED.SCAN while writes go on, follows the change feed from there, and starts the copy again by itself when the
// feed can no longer be resumed: the server's history was replaced (restore, loss of power), or the mirror was away longer than the feed's
// window. A history that goes on after a FLUSHALL or a crash is followed without a new copy. A connection that is lost comes back,
// with growing pauses.
//
// # What Apply sees
//
// The stream of each shard is a sequence of batches. Before and after every batch this holds: the keys below the batch's edge
// are exactly as the shard had them at Cursor, a point between two groups (a command, transaction or script; its frames on one shard are never torn). The edge
// is behind the last key unless Rebuilding; then keys from the edge on are old, or not there yet, and come with a later batch. A batch does
// one of two things:
//
//   - Reset is nil: Changes are applied, in order. There may be none: then only the cursor has moved.
//   - Reset is a range of keys: every key of that shard in it is to be removed, then Changes are applied, which make the keys as they are at Cursor.
//     A copy is a run of such batches whose ranges follow each other from the first key to behind the last, with batches of changes between
//     them. FLUSHALL is a Reset of everything.
//
// A key belongs to one shard for as long as the server has the same number of shards, but which one cannot be seen from the key: where there are several,
// Reset needs the shard to be kept with each key: that of the last batch which had it. Shards are independent: there is no order between them, and a group over several shards
// arrives in parts.
//
// Changes are effects, each a plain Redis command (SET, DEL, HSET, RPUSH, APPEND, PEXPIREAT...): what Do of another Store does with them
// is right. Only keys with one of the Prefixes are in them: of a command with several keys the others are cut out.
//
// Apply is called by one goroutine at a time. The batch with all it refers to belongs to Apply. An error ends Run, which returns it.
//
// # At least once
//
// Position is an opaque text: who gives it back from Load later goes on behind that batch. When it is stored in one transaction with what
// Apply did, every change is applied once. When it is stored afterwards (Save), changes can come again after a crash; APPEND or
// RPUSH must not be applied twice, so then the copy has to be made anew (Load returns "") unless the verbs used converge: SET, DEL, HSET, SADD, ZADD do.
type Mirror struct {
	// Addr is host:port of a server. Store, instead, is an open store with the feed enabled.
	Addr  string
	Store *Store

	// User and Password log in, if Password is not empty.
	User, Password string
	// Dial replaces how connections are made (TLS, sockets).
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	// Prefixes restrict the mirror to keys that start with one of them; none means all keys. With other ones than those of a
	// position that Load returned the copy is made anew.
	Prefixes []string
	// Functions adds the libraries of functions: changes FUNCTION LOAD REPLACE, DELETE, FLUSH, on shard 0. A copy begins with FLUSH.
	Functions bool

	// Apply takes the batches.
	Apply func(ctx context.Context, b *MirrorBatch) error
	// Load returns the position of a shard stored last, "" if there is none. nil: every Run makes a new copy.
	Load func(ctx context.Context, shard int) (position string, err error)
	// Save stores the position of a shard, after each Apply. nil if Apply stores Position itself, or nobody does.
	Save func(ctx context.Context, shard int, position string) error

	// Ready, if set, is called when a shard has been copied and has then reached the tail that its feed had at that time: once for each
	// copy, also for one that was complete when Run began. It may be called for several shards at a time.
	Ready func(shard int)

	// Logger takes what operators should know: lost connections, copies that begin anew. nil discards it.
	Logger *slog.Logger

	count    int // tests only: keys or frames to ask for at a time
	applying sync.Mutex
	mu       sync.Mutex
	status   []MirrorStatus // guarded by mu
}

// KeyRange is the keys from From on (inclusive) to To (exclusive); an empty To means that there is no end.
type KeyRange struct{ From, To []byte }

// Contains reports whether key is in the range.
func (r *KeyRange) Contains(key []byte) bool {
	return bytes.Compare(r.From, key) <= 0 && (len(r.To) == 0 || bytes.Compare(key, r.To) < 0)
}

// MirrorBatch is one step of one shard; see Mirror.
type MirrorBatch struct {
	Shard int
	// Reset, if not nil, is a range of keys to be removed before Changes are applied.
	Reset *KeyRange
	// Changes are whole groups, in order. Those of a Reset have the cause "rebuild", the offset of Cursor and no time.
	Changes []Change
	// Cursor is where the shard stands after the batch: the next frame of its feed.
	Cursor log.Cursor
	// Rebuilding says that a copy is under way: keys from Edge on are still to come.
	Rebuilding bool
	Edge       []byte
	// Position is what Load has to return to go on behind this batch.
	Position string
}

// MirrorStatus tells where a shard of a Mirror stands.
type MirrorStatus struct {
	Cursor     log.Cursor
	Rebuilding bool
	Tail       log.Cursor // of the store's shard, as last heard
	Copies     int        // begun since Run
	Changes    uint64     // applied since Run
	Err        error      // why the store is out of reach at the moment
}

// Behind returns how many frames of the feed are still to come; known is false while that cannot be told: a copy is under way, the
// generations differ, or the store is out of reach.
func (s *MirrorStatus) Behind() (frames uint64, known bool) {
	if s.Rebuilding || s.Err != nil || s.Tail.Generation != s.Cursor.Generation || s.Tail.Generation == 0 {
		return 0, false
	}
	return max(s.Tail.Offset, s.Cursor.Offset) - s.Cursor.Offset, true
}

// Status returns where the shards stand. Any goroutine may ask.
func (m *Mirror) Status() []MirrorStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]MirrorStatus(nil), m.status...)
}

func (m *Mirror) setStatus(shard int, f func(s *MirrorStatus)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.status[shard])
}

// validate checks the fields that say where the store is.
func (m *Mirror) validate() error {
	if (m.Store == nil) == (m.Addr == "") {
		return errors.New("kevy: a Mirror needs either Addr or Store")
	}
	return nil
}

func (m *Mirror) logger() *slog.Logger {
	if m.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return m.Logger
}

// ask is how many keys or frames to ask for at a time.
func (m *Mirror) ask() int {
	if m.count > 0 {
		return m.count
	}
	return mirrorCount
}

// errShardsChanged: the server has another number of shards than before.
var errShardsChanged = errors.New("kevy: the number of shards has changed")

// Run mirrors until ctx ends, Apply, Load or Save fail, or the store refuses for good (feed disabled, no permission, closed); it returns
// why. It must not run twice at a time.
func (m *Mirror) Run(ctx context.Context) error {
	if m.Apply == nil {
		return errors.New("kevy: Mirror.Apply is nil")
	}
	if err := m.validate(); err != nil {
		return err
	}
	for had := 0; ; {
		n, err := m.countShards(ctx)
		if err == nil {
			err = m.runShards(ctx, n, had)
			had = max(had, n)
		}
		if own, ok := errors.AsType[*applyError](err); ok {
			return own.err
		}
		if !errors.Is(err, errShardsChanged) {
			return err
		}
		m.logger().Warn("mirror: the store has another number of shards: the copy begins anew")
	}
}

func (m *Mirror) countShards(ctx context.Context) (n int, err error) {
	w := m.worker(0, 0)
	defer w.src.drop()
	err = w.persist(ctx, func() error { n, err = w.src.shards(ctx); return err })
	return n, err
}

// Tails returns where the feeds of the store's shards end now: a batch with a Cursor from there on has all that was written before.
// It asks once.
func (m *Mirror) Tails(ctx context.Context) ([]log.Cursor, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	w := m.worker(0, 0)
	defer w.src.drop()
	n, err := w.src.shards(ctx)
	tails := make([]log.Cursor, n)
	for i := 0; i < n && err == nil; i++ {
		tails[i], err = w.src.tail(ctx, i)
	}
	return tails, err
}

// runShards mirrors n shards until one of them ends; had is how many there were before.
func (m *Mirror) runShards(ctx context.Context, n, had int) error {
	m.mu.Lock()
	m.status = make([]MirrorStatus, n)
	m.mu.Unlock()
	workers := make([]*mirrorShard, n)
	for i := range workers {
		workers[i] = m.worker(i, n)
	}
	if err := m.load(ctx, workers, had); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() { cancel(w.run(ctx)) })
	}
	wg.Wait()
	return context.Cause(ctx)
}

// load sets the workers' positions, and drops what shards have left behind that are no more.
func (m *Mirror) load(ctx context.Context, workers []*mirrorShard, had int) error {
	n := len(workers)
	for i, w := range workers {
		if m.Load == nil {
			break
		}
		text, err := m.Load(ctx, i)
		if err != nil {
			return err
		}
		p, err := parsePosition(text)
		if err != nil {
			return fmt.Errorf("kevy: mirror: shard %d: Load: %w", i, err)
		}
		had = max(had, p.shards)
		if p.shards == n && p.scope == w.scope.sum() {
			w.pos = p
			w.note(func(s *MirrorStatus) { s.Cursor, s.Rebuilding = p.cursor, !p.done })
		}
	}
	for i := n; i < had; i++ {
		gone := MirrorBatch{Shard: i, Reset: &KeyRange{}}
		if err := m.apply(ctx, &gone); err != nil {
			return err
		}
	}
	return nil
}

// apply hands a batch to the user.
func (m *Mirror) apply(ctx context.Context, b *MirrorBatch) error {
	m.applying.Lock()
	defer m.applying.Unlock()
	shard, position := b.Shard, b.Position // the batch is the user's
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := m.Apply(ctx, b); err != nil {
		return &applyError{err}
	}
	if m.Save != nil {
		if err := m.Save(ctx, shard, position); err != nil {
			return &applyError{err}
		}
	}
	return nil
}

// applyError marks an error of the user's functions: it ends Run.
type applyError struct{ err error }

func (e *applyError) Error() string { return e.err.Error() }
func (e *applyError) Unwrap() error { return e.err }

// Pauses between tries to reach the store.
const (
	mirrorMinPause = 50 * time.Millisecond
	mirrorMaxPause = 5 * time.Second
)
