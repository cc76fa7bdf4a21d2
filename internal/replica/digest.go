package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/log"
)

const (
	// maxViews is how many digests at most a source computes for its followers at a time: each holds a view.
	maxViews = 4
	// maxDigests is how many of them it remembers.
	maxDigests = 16
)

// Digest tells of the keys below a prefix at a cursor of each shard.
type Digest struct {
	Keys    int
	Digest  string // as PREFIX.DIGEST spells it
	Cursors []log.Cursor
}

// DigestOf computes the digest of a store as views show it, and closes them.
func DigestOf(v *engine.Views, prefix []byte) (d Digest, err error) {
	d.Cursors = v.Cursors()
	d.Keys, d.Digest = v.Digest(prefix)
	return d, v.Close()
}

// taken is a digest that a follower has asked for.
type taken struct {
	prefix string
	at     []log.Cursor
	done   chan struct{} // closed when digest and err are set
	digest Digest
	err    error
}

// Freeze answers REPL.FREEZE: it freezes the state at the end of the log and returns the cursors. run computes the digest of the keys below
// prefix; it is to be called, and then At knows it.
func (k *Link) Freeze(prefix []byte) (at []log.Cursor, run func(), err error) {
	s := k.src
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.views == maxViews {
		return nil, nil, fmt.Errorf("ERR %d digests are being computed already: ask again", maxViews)
	}
	v, err := s.eng.FreezeAll()
	if err != nil {
		return nil, nil, err
	}
	s.views++
	t := &taken{prefix: string(prefix), at: v.Cursors(), done: make(chan struct{})}
	s.taken = append(s.taken, t)
	if len(s.taken) > maxDigests {
		s.taken = slices.Delete(s.taken, 0, 1)
	}
	return t.at, func() {
		defer close(t.done)
		t.digest, t.err = DigestOf(v, []byte(t.prefix))
		s.mu.Lock()
		s.views--
		s.mu.Unlock()
	}, nil
}

// errNotAt is the answer to who asks for the digest at cursors at which the store is not.
var errNotAt = errors.New("ERR the state at these cursors is not at hand: the store is not there, and no replica has had it frozen there lately")

// At returns the digest of the keys below prefix at the cursors: when the store is there now, or a follower has had it frozen there with Freeze. It
// waits for a digest that is being computed, until ctx ends.
func (s *Source) At(ctx context.Context, prefix []byte, at []log.Cursor) (Digest, error) {
	s.mu.Lock()
	i := slices.IndexFunc(s.taken, func(t *taken) bool { return t.prefix == string(prefix) && slices.Equal(t.at, at) })
	if i >= 0 {
		t := s.taken[i]
		s.mu.Unlock()
		select {
		case <-t.done:
			return t.digest, t.err
		case <-ctx.Done():
			return Digest{}, context.Cause(ctx)
		}
	}
	s.mu.Unlock()
	v, err := s.eng.FreezeAll()
	if err != nil {
		return Digest{}, err
	}
	if !slices.Equal(v.Cursors(), at) {
		return Digest{}, errors.Join(errNotAt, v.Close())
	}
	return DigestOf(v, prefix)
}

// asked is a digest at cursors that the source has frozen too, on its way: from the puller, which asks the source for them, over the
// applier, which stops there, to the asker.
type asked struct {
	prefix []byte
	at     []log.Cursor
	views  chan frozen // has room for the one answer
}

type frozen struct {
	v   *engine.Views
	err error
}

func (q *asked) answer(v *engine.Views, err error) { q.views <- frozen{v, err} }

// Digest returns the digest of the keys below prefix at cursors at which the source has frozen its state as well: its PREFIX.DIGEST AT
// answers for them. It waits until the log has come there, until ctx or the link ends.
func (f *Follower) Digest(ctx context.Context, prefix []byte) (Digest, error) {
	q := &asked{prefix: prefix, views: make(chan frozen, 1)}
	if err := f.hand(ctx, q); err != nil {
		return Digest{}, err
	}
	select {
	case a := <-q.views:
		if a.err != nil {
			return Digest{}, a.err
		}
		return DigestOf(a.v, prefix)
	case <-ctx.Done():
		go func() { // the answer comes, at the latest when the link ends
			if a := <-q.views; a.v != nil {
				_ = a.v.Close() // nobody is told what it showed
			}
		}()
		return Digest{}, context.Cause(ctx)
	}
}

// hand gives the puller a question, which it takes between two pulls.
func (f *Follower) hand(ctx context.Context, q *asked) error {
	tick := time.NewTicker(pullWait)
	defer tick.Stop()
	for {
		switch st := f.Status(); {
		case !st.Up:
			return fmt.Errorf("ERR the link to the source is down: %s", st.Err)
		case st.Stock:
			return errors.New("ERR the source is no kevy: it has no digests")
		}
		select {
		case f.asks <- q:
			return nil
		case <-tick.C:
		case <-f.done:
			return ErrStopped
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// freeze asks the source for a digest that somebody waits for, if there is one. An error is one of the connection.
func (f *Follower) freeze(c *client.Conn) (*asked, error) {
	var q *asked
	select {
	case q = <-f.asks:
	default:
		return nil, nil //nolint:nilnil // nobody asks
	}
	at, err := readFrozen(c, f, q.prefix)
	if err == nil {
		q.at = at
		return q, nil
	}
	q.answer(nil, fmt.Errorf("ERR asking the source: %w", err))
	if _, reply := errors.AsType[client.Error](err); reply {
		return nil, nil //nolint:nilnil // the link is as good as before
	}
	return nil, err
}

func readFrozen(c *client.Conn, f *Follower, prefix []byte) ([]log.Cursor, error) {
	if err := c.Send(f.o.Timeout(), []byte("REPL.FREEZE"), prefix); err != nil {
		return nil, err
	}
	at := make([]log.Cursor, f.o.Engine.Shards())
	if err := c.Tuple(2 * len(at)); err != nil {
		return nil, err
	}
	r := reader{c: c}
	for i := range at {
		at[i] = log.Cursor{Generation: r.uint(), Offset: r.uint()}
	}
	return at, r.err
}

// ParseCursors reads a generation and an offset for each shard.
func ParseCursors(args [][]byte, shards int) ([]log.Cursor, error) {
	if len(args) != 2*shards {
		return nil, fmt.Errorf("ERR %d numbers for %d shards: a generation and an offset for each", len(args), shards)
	}
	at := make([]log.Cursor, shards)
	for i := range at {
		gen, err1 := strconv.ParseUint(string(args[2*i]), 10, 64)
		off, err2 := strconv.ParseUint(string(args[2*i+1]), 10, 64)
		switch {
		case err1 != nil:
			return nil, errors.New("ERR invalid generation")
		case err2 != nil:
			return nil, errors.New("ERR invalid offset")
		}
		at[i] = log.Cursor{Generation: gen, Offset: off}
	}
	return at, nil
}
