package kevy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

const (
	// mirrorBlock is how long a shard waits for a change before it asks again: so long it takes to notice a dead connection, and to
	// move a position over changes of other keys.
	mirrorBlock = 2 * time.Second
	// mirrorSettle is how long it waits for frames that are on their way to become visible.
	mirrorSettle = 5 * time.Millisecond
	// tailEvery is how often the tail is asked for.
	tailEvery = time.Second
)

// mirrorShard mirrors one shard.
type mirrorShard struct {
	m      *Mirror
	shard  int
	shards int
	src    source
	scope  scope
	pos    position

	pause   time.Duration
	tail    log.Cursor // as last heard
	tailDue time.Time
	told    bool // Ready has been called for this copy
}

func (m *Mirror) worker(shard, shards int) *mirrorShard {
	w := &mirrorShard{m: m, shard: shard, shards: shards, scope: newScope(m.Prefixes, m.Functions)}
	if m.Store != nil {
		w.src = &storeSource{m: m, s: m.Store, prefixes: w.scope.prefixes}
	} else {
		w.src = &wireSource{m: m, n: shards, prefixes: w.scope.prefixes}
	}
	return w
}

// run mirrors until ctx ends or there is no point in going on.
func (w *mirrorShard) run(ctx context.Context) error {
	defer w.src.drop()
	for {
		err := w.persist(ctx, func() error {
			if w.pos.done {
				return w.follow(ctx)
			}
			return w.copy(ctx)
		})
		var resync *ResyncError
		switch {
		case err == nil:
		case errors.As(err, &resync), errors.Is(err, ErrCursorAhead):
			w.m.logger().Warn("mirror: the feed can't be resumed: the copy begins anew", "shard", w.shard, "cursor", w.pos.cursor, "error", err)
			w.pos = position{}
		default:
			return err
		}
	}
}

// persist calls f until it succeeds or fails for good, with pauses that grow between.
func (w *mirrorShard) persist(ctx context.Context, f func() error) error {
	for {
		err := f()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !passing(err) {
			if w.pause > 0 {
				w.m.logger().Info("mirror: the store answers again", "shard", w.shard)
			}
			w.pause = 0
			w.note(func(s *MirrorStatus) { s.Err = nil })
			return err
		}
		if w.pause == 0 {
			w.m.logger().Warn("mirror: the store is out of reach: trying again", "shard", w.shard, "error", err)
		}
		w.note(func(s *MirrorStatus) { s.Err = err })
		w.pause = min(max(2*w.pause, mirrorMinPause), mirrorMaxPause)
		t := time.NewTimer(w.pause/2 + rand.N(w.pause/2)) //nolint:gosec // spreads clients
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

// note changes the shard's status; while the shards are being counted there is none.
func (w *mirrorShard) note(f func(s *MirrorStatus)) {
	if w.shards > 0 {
		w.m.setStatus(w.shard, f)
	}
}

// passing reports whether an error may pass by itself: the network's, and replies of a server that is busy, starting,
// stopping, or has to be started again.
func passing(err error) bool {
	var resync *ResyncError
	var apply *applyError
	var own Error // of an embedded store
	var reply client.Error
	switch {
	case err == nil, errors.As(err, &resync), errors.As(err, &apply), errors.As(err, &own), errors.Is(err, ErrCursorAhead), errors.Is(err, ErrFeedDisabled),
		errors.Is(err, ErrClosed), errors.Is(err, errShardsChanged), errors.Is(err, errMirror):
		return false
	case !errors.As(err, &reply):
		return true
	}
	for _, text := range []string{"LOADING", "BUSY", "MISCONF", "MASTERDOWN", "TRYAGAIN", "ERR the store is closing", "ERR max number of clients", "ERR reading the log"} {
		if strings.HasPrefix(string(reply), text) {
			return true
		}
	}
	return false
}

// errMirror is the class of what this version can't mirror.
var errMirror = errors.New("kevy: mirror")

// follow applies the next changes.
func (w *mirrorShard) follow(ctx context.Context) error {
	if time.Now().After(w.tailDue) {
		tail, err := w.src.tail(ctx, w.shard)
		if err != nil {
			return err
		}
		w.note(func(s *MirrorStatus) { s.Tail = tail })
		w.tail, w.tailDue = tail, time.Now().Add(tailEvery)
	}
	if !w.told && !before(w.pos.cursor, w.tail) {
		w.told = true
		if w.m.Ready != nil {
			w.m.Ready(w.shard)
		}
	}
	b, err := w.src.read(ctx, w.shard, w.pos.cursor, mirrorBlock)
	if err != nil {
		return err
	}
	return w.deliver(ctx, b)
}

// copy copies the keys from the edge on, as many as come at once: it first brings those below the edge to where the new ones are. Frames of keys
// beyond the edge are passed over on the way, since the scan that is still to come shows what they have made.
func (w *mirrorShard) copy(ctx context.Context) error {
	if !w.pos.known() {
		w.note(func(s *MirrorStatus) { s.Copies++ })
	}
	w.told, w.tailDue = false, time.Time{}
	got, err := w.src.scan(ctx, w.shard, w.pos.edge)
	if err != nil {
		return err
	}
	if w.pos.known() {
		if reached, err := w.reach(ctx, got.Cursor); err != nil || !reached {
			return err
		}
	}
	b := MirrorBatch{Reset: &KeyRange{From: w.pos.edge, To: got.Next}}
	if b.Changes, err = w.rebuild(&got); err != nil {
		return fmt.Errorf("%w: shard %d at %s: %w", errMirror, w.shard, got.Cursor, err)
	}
	next := position{cursor: got.Cursor, done: len(got.Next) == 0, edge: got.Next}
	return w.apply(ctx, &b, next)
}

// rebuild makes changes of the frames of a scan. A key that is not made by a SET is deleted first: another shard of another server may have left
// it, and then the reset did not remove it.
func (w *mirrorShard) rebuild(got *Scan) (changes []Change, err error) {
	add := func(argv ...[]byte) {
		changes = append(changes, Change{Offset: got.Cursor.Offset, Group: got.Cursor.Offset, Argv: argv, Cause: "rebuild"})
	}
	if len(w.pos.edge) == 0 && w.shard == 0 && w.scope.functions {
		add(word("FUNCTION"), word("FLUSH"))
	}
	var last []byte // key
	some := false
	for _, argv := range got.Frames {
		if argv, err = w.scope.cut(argv, func([]byte) bool { return true }); err != nil {
			return nil, err
		}
		if argv == nil {
			continue
		}
		e, _ := effect.FromArgv(argv) // cut has done so
		if key, ok := e.SingleKey(); ok && (!some || !bytes.Equal(key, last)) {
			if last, some = key, true; e.Op != effect.Set {
				add(word("DEL"), key)
			}
		}
		add(argv...)
	}
	return changes, nil
}

// reach applies the changes up to a cursor. It reports false if the history goes on without it.
func (w *mirrorShard) reach(ctx context.Context, to log.Cursor) (bool, error) {
	block := time.Duration(0)
	for w.pos.cursor != to {
		at := w.pos.cursor
		if before(to, at) {
			return false, nil
		}
		b, err := w.src.read(ctx, w.shard, at, block)
		if err != nil {
			return false, err
		}
		if b.Next.Generation == to.Generation && b.Next.Offset > to.Offset {
			b = b.until(to)
		}
		if err := w.deliver(ctx, b); err != nil {
			return false, err
		}
		if block = 0; w.pos.cursor == at {
			block = mirrorSettle
		}
	}
	return true, nil
}

// before reports whether a cursor of a shard is before another one: generations grow.
func before(a, b log.Cursor) bool {
	return a.Generation < b.Generation || a.Generation == b.Generation && a.Offset < b.Offset
}

// until returns the part of b before a cursor, which lies between two groups.
func (b Batch) until(c log.Cursor) Batch {
	for i := range b.Changes {
		if b.Changes[i].Offset >= c.Offset {
			return Batch{Changes: b.Changes[:i], Next: c}
		}
	}
	return Batch{Changes: b.Changes, Next: c}
}

// deliver applies what a read has brought. A FLUSHALL, the last frame of its generation, becomes a reset; what its group did
// to keys before is of no account.
func (w *mirrorShard) deliver(ctx context.Context, b Batch) error {
	last := len(b.Changes) - 1
	if last < 0 || !strings.EqualFold(string(b.Changes[last].Argv[0]), "FLUSHALL") {
		return w.changes(ctx, b, nil)
	}
	flush := b.Changes[last]
	before := b.until(log.Cursor{Generation: b.Next.Generation, Offset: flush.Group})
	if len(before.Changes) > 0 {
		if err := w.changes(ctx, before, nil); err != nil {
			return err
		}
	}
	own := Batch{Next: b.Next}
	for _, c := range b.Changes[len(before.Changes):last] {
		if strings.EqualFold(string(c.Argv[0]), "FUNCTION") {
			own.Changes = append(own.Changes, c)
		}
	}
	return w.changes(ctx, own, &KeyRange{})
}

// changes applies what concerns the keys below the edge.
func (w *mirrorShard) changes(ctx context.Context, b Batch, reset *KeyRange) error {
	if b.Next == w.pos.cursor && len(b.Changes) == 0 {
		return nil
	}
	out := MirrorBatch{Reset: reset, Changes: b.Changes[:0:len(b.Changes)]}
	for _, c := range b.Changes {
		argv, err := w.scope.cut(c.Argv, w.pos.covers)
		if err != nil {
			return fmt.Errorf("%w: shard %d, frame %d:%d: %w", errMirror, w.shard, b.Next.Generation, c.Offset, err)
		}
		if argv != nil {
			c.Argv = argv
			out.Changes = append(out.Changes, c)
		}
	}
	next := w.pos
	next.cursor = b.Next
	return w.apply(ctx, &out, next)
}

// apply hands a batch over, behind which the shard stands at next.
func (w *mirrorShard) apply(ctx context.Context, b *MirrorBatch, next position) error {
	next.shards, next.scope = w.shards, w.scope.sum()
	b.Shard, b.Cursor, b.Rebuilding, b.Position = w.shard, next.cursor, !next.done, next.String()
	if !next.done {
		b.Edge = append([]byte(nil), next.edge...)
	}
	n := uint64(len(b.Changes))
	if err := w.m.apply(ctx, b); err != nil {
		return err
	}
	w.pos = next
	w.note(func(s *MirrorStatus) {
		s.Cursor, s.Rebuilding = next.cursor, !next.done
		s.Changes += n
	})
	return nil
}
