package engine

import (
	"errors"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/state"
)

// Frozen is one shard as it is at a cursor: its view shows exactly what the frames below the cursor make. What it
// shows may still be unsafe: nothing of it may leave before Close has returned nil. It belongs to one goroutine.
type Frozen struct {
	*state.View

	cursor  log.Cursor
	release func() error
}

// Cursor returns the cursor of the frozen state: the first frame that is not in it.
func (f *Frozen) Cursor() log.Cursor { return f.cursor }

// Close ends the view, and returns when all it showed is as safe as the policy promises. After an error it
// never will be.
func (f *Frozen) Close() error { return f.release() }

// errFlushed is FEED.SCAN's error: there is no cursor yet at which the keys are as they are.
var errFlushed = errors.New("ERR FEED.SCAN after FLUSHALL in the same transaction or script: the new generation has not begun")

// Freeze freezes a shard, in constant time under its lock. Inside a transaction or a script, c being its context, the
// locks are held already and what the group has planned so far counts, as it does for FEED.TAIL.
func (e *Engine) Freeze(c *command.Ctx, shard int) (*Frozen, error) {
	if err := e.brokenErr(); err != nil {
		return nil, errors.New(Misconf(err)) // the state may be ahead of the log, until it is repaired
	}
	sh := e.shards[shard]
	if c != nil && c.Flushed {
		return nil, errFlushed
	}
	if c != nil && c.Pending != nil {
		f := &Frozen{View: sh.ks.View(), cursor: sh.log().Tail()}
		f.cursor.Offset += c.Pending(shard)
		f.release = func() error {
			f.View.Close()
			// The group itself, and an fsync, are what the reply of the group waits for.
			return misconf(e.Flush(shard))
		}
		return f, nil
	}
	var t Ticket
	sh.mu.Lock()
	defer sh.mu.Unlock()
	f := &Frozen{View: sh.ks.View(), cursor: sh.log().Tail()}
	t.note(sh)
	f.release = func() error {
		sh.mu.Lock()
		f.View.Close()
		sh.mu.Unlock()
		return misconf(e.Await(&t))
	}
	return f, nil
}

// Await returns when everything of t is as safe as the policy promises. An error means that it never will be.
func (e *Engine) Await(t *Ticket) error {
	done, err := e.Settle(t)
	if err != nil || done {
		return err
	}
	end := make(chan error, 1)
	e.OnSafe(t, func(err error) { end <- err })
	return <-end
}

func misconf(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(Misconf(err))
}
