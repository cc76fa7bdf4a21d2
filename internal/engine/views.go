package engine

import (
	"slices"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/state"
)

// Views are all shards as they are at one instant between groups: they show exactly what the frames below the cursors make. It belongs to one
// goroutine.
type Views struct {
	e       *Engine
	views   []*state.View
	cursors []log.Cursor
	safe    Ticket
}

// FreezeAll freezes all shards, in constant time under their locks. Close what it returns.
func (e *Engine) FreezeAll() (*Views, error) {
	e.lock(e.all())
	defer e.unlock(e.all())
	if err := e.brokenErr(); err != nil {
		return nil, misconf(err) // the state may be ahead of the log, until it is repaired
	}
	v := &Views{e: e}
	for _, sh := range e.shards {
		v.views = append(v.views, sh.ks.View())
		v.cursors = append(v.cursors, sh.log().Tail())
		v.safe.note(sh)
	}
	return v, nil
}

// Cursors returns the cursor of each shard: the first frame that is not in what is shown. Read-only.
func (v *Views) Cursors() []log.Cursor { return v.cursors }

// Digest returns how many keys start with prefix, and their digest. Keys past their deadline count until a frame deletes them: at a cursor,
// all stores with this history have the same digest, whatever their clocks say.
func (v *Views) Digest(prefix []byte) (keys int, digest string) {
	var sum uint64
	for _, view := range v.views {
		n, d := view.Digest(prefix, 0)
		keys += n
		sum += d
	}
	return keys, command.FormatDigest(sum)
}

// View returns the view of a shard, which belongs to one goroutine at a time.
func (v *Views) View(shard int) *state.View { return v.views[shard] }

// Await returns when all that the views show is as safe as the policy promises. After an error it never will be.
func (v *Views) Await() error { return misconf(v.e.Await(&v.safe)) }

// Close ends the views, and returns when all they showed is as safe as the policy promises. After an error it never will be.
func (v *Views) Close() error {
	for i, view := range v.views {
		sh := v.e.shards[i]
		sh.mu.Lock()
		view.Close()
		sh.mu.Unlock()
	}
	return misconf(v.e.Await(&v.safe))
}

// stop is a place at which an Applier pauses for an instant.
type stop struct {
	at   []log.Cursor
	then func(*Views, error)
}

// FreezeAt has the Applier call then with the state at the cursors, before any frame behind them is applied. They tear no group, and none is before
// where the logs are. Stops are reached in the order of the calls. then takes the views over, and must not block.
func (a *Applier) FreezeAt(at []log.Cursor, then func(*Views, error)) {
	a.stops = append(a.stops, stop{at, then})
}

// Close tells those who wait for a stop that it will not be reached, and why. The Applier is of no use afterwards.
func (a *Applier) Close(err error) {
	for _, s := range a.stops {
		s.then(nil, err)
	}
	a.stops = nil
}

// stopped reports whether a shard is where it has to wait for the others to come to the next stop.
func (a *Applier) stopped(shard int) bool {
	return a.stopsAt(shard, a.e.shards[shard].log().Tail())
}

// stopsAt reports whether a shard has to wait at a cursor.
func (a *Applier) stopsAt(shard int, c log.Cursor) bool {
	return len(a.stops) > 0 && c == a.stops[0].at[shard]
}

// freeze serves the next stop, if all shards have come to it, and reports whether it did.
func (a *Applier) freeze() bool {
	for i := range a.shards {
		if !a.stopped(i) {
			return false
		}
	}
	s := a.stops[0]
	a.stops = slices.Delete(a.stops, 0, 1)
	s.then(a.e.FreezeAll())
	return true
}
