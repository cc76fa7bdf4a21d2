package engine

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// Foreign is a run of frames of one shard, as the store that is followed has them.
type Foreign struct {
	Shard      int
	Generation log.Lineage // of the frames
	Offset     uint64      // of the first one
	Raw        []byte      // may begin and end amid a group, but not amid a frame; may be empty. The Applier's from then on.
}

// maxQueued is how many bytes of a shard may wait for parts of other shards before no more of it should be asked for.
const maxQueued = 16 << 20

// maxSpare is how much memory of a part is kept for the next one.
const maxSpare = 8 << 20

// applyHold is how many bytes of frames at most are applied under one hold of a shard's lock.
const applyHold = 64 << 10

// Applier appends the frames of the store that is followed to the logs and folds them: in the order of each shard, a group over several shards
// when it is there as a whole, under the locks of all of them. It belongs to one goroutine. After an error it is of no use: another one goes
// on from where the logs end.
type Applier struct {
	e      *Engine
	shards []inbound
	frames uint64
	full   []atomic.Bool // by shard
	spare  chan []byte   // memory of parts that are applied
	ahead  Lookahead
	stops  []stop // see FreezeAt
}

// inbound is what has come for a shard and is not applied yet.
type inbound struct {
	queue []Foreign    // contiguous runs: neighbours are of different generations
	st    *log.Stream  // over what is left of the first one; nil: to be made
	read  int64        // bytes of that which are decoded
	head  foreignGroup // the first group of queue, if it is there as a whole, and what extend has put behind it
	ready bool         // head is
	bad   error        // what is wrong with the frame behind head; nil: nothing is known
}

// foreignGroup is a group that has been decoded and checked, or several that lie one behind the other on one shard alone.
type foreignGroup struct {
	start   log.Cursor
	raw     []byte
	txn     uint64
	mask    uint64
	timeMS  int64           // of the first frame
	effects []effect.Effect // the first n are the group's; they point into raw
	n       int
	first   int // of the effects, those of the first group; of the other groups each has one
}

// What is applied at once of groups that are of one frame on one shard: that many frames, and about that many bytes. What a group costs beside its
// frames is then paid once, and memory is waited for once.
const (
	runFrames = keysAhead
	runBytes  = 16 << 10
)

// NewApplier returns an Applier that begins where the logs end. REQUIRES: the store follows; no other Applier is in use.
func (e *Engine) NewApplier() *Applier {
	n := len(e.shards)
	return &Applier{e: e, shards: make([]inbound, n), full: make([]atomic.Bool, n), spare: make(chan []byte, n)}
}

// Spare returns memory for the frames of a part: that of one which has been applied, or nil. Any goroutine.
func (a *Applier) Spare() []byte {
	select {
	case b := <-a.spare:
		return b
	default:
		return nil
	}
}

// release lets go of the memory of what a shard had, if all of it is applied.
func (a *Applier) release(in *inbound) {
	if len(in.queue) != 1 || in.ready || in.read == 0 || in.read < int64(len(in.queue[0].Raw)) {
		return
	}
	raw := in.queue[0].Raw
	in.rest()
	in.queue[0].Raw = nil
	if cap(raw) > maxSpare {
		return
	}
	select {
	case a.spare <- raw[:0]:
	default:
	}
}

// Frames returns how many frames have been applied.
func (a *Applier) Frames() uint64 { return a.frames }

// Full reports whether so much of a shard waits for parts of others that they should come first. There is always a shard that is not
// full: of those that wait, the one with the smallest transaction id waits for one that does not. Any goroutine.
func (a *Applier) Full(shard int) bool { return a.full[shard].Load() }

// Apply takes parts and applies all whole groups that can be applied; the rest waits for more parts. What is applied has reached the files
// when it returns. An error is that of a part that does not belong here, or of the log.
func (a *Applier) Apply(parts []Foreign) error {
	for i := range parts {
		if err := a.take(&parts[i]); err != nil {
			return err
		}
	}
	for more := true; more; {
		var err error
		if more, err = a.step(); err != nil {
			return err
		}
	}
	for i := range a.shards {
		in := &a.shards[i]
		a.release(in)
		a.full[i].Store((in.ready || a.atFork(i) || a.stopped(i)) && in.queued() > maxQueued)
	}
	e := a.e
	if err := e.flush(e.all()); err != nil {
		return err
	}
	e.txns.settle()
	if e.Policy() == log.Always {
		for _, sh := range e.shards {
			sh.log().SyncThrough(sh.log().Appended())
		}
	}
	return nil
}

// take puts a part behind those that its shard has.
func (a *Applier) take(p *Foreign) error {
	if p.Shard < 0 || p.Shard >= len(a.shards) {
		return fmt.Errorf("engine: frames of shard %d of %d", p.Shard, len(a.shards))
	}
	in := &a.shards[p.Shard]
	n := len(in.queue)
	if n == 0 || in.queue[n-1].Generation.Generation != p.Generation.Generation {
		in.queue = append(in.queue, *p)
		return nil
	}
	last := &in.queue[n-1]
	if n == 1 {
		in.rest()
	}
	if len(last.Raw) == 0 {
		last.Offset, last.Raw = p.Offset, p.Raw
	} else {
		last.Raw = append(last.Raw, p.Raw...)
	}
	return nil
}

// step applies what can be applied of the groups that lie on one shard, then one group over several shards, or a new generation. It
// reports whether there may be more.
func (a *Applier) step() (more bool, err error) {
	forks, flushes := 0, 0
	txn := uint64(0)
	for i := range a.shards {
		if err := a.plain(i); err != nil {
			return false, err
		}
		in := &a.shards[i]
		switch {
		case in.ready && in.head.flushes():
			flushes++
		case in.ready && (txn == 0 || in.head.txn < txn):
			txn = in.head.txn
		case !in.ready && a.atFork(i):
			forks++
		}
	}
	if a.freeze() {
		return true, nil
	}
	if forks == len(a.shards) {
		a.e.lock(a.e.all())
		defer a.e.unlock(a.e.all())
		return true, a.generations()
	}
	switch {
	case txn != 0:
		return a.together(txn)
	case flushes == len(a.shards):
		return a.flush()
	}
	return false, nil
}

// atFork reports whether the next thing that a shard has is a generation that the log does not have.
func (a *Applier) atFork(i int) bool {
	in := &a.shards[i]
	gen := a.e.shards[i].log().Generation()
	for len(in.queue) > 1 && in.queue[0].Generation.Generation == gen && in.read == int64(len(in.queue[0].Raw)) {
		in.queue, in.st, in.read = in.queue[1:], nil, 0
	}
	return len(in.queue) > 0 && in.queue[0].Generation.Generation != gen
}

// plain applies the groups at the head of a shard's queue that lie on that shard alone.
func (a *Applier) plain(i int) error {
	for {
		more, err := a.batch(i)
		if err != nil || !more {
			return err
		}
	}
}

// batch is plain for as many groups as one hold of the lock may take.
func (a *Applier) batch(i int) (more bool, err error) {
	e, sh, in := a.e, a.e.shards[i], &a.shards[i]
	if err := a.decode(i); err != nil || !in.plain() {
		return false, err
	}
	locked := e.lockWide(1 << i)
	now := e.now()
	defer func() { e.finish(locked, now) }()
	for size := 0; size < applyHold; {
		g := &in.head
		if err := e.room(1<<i, len(g.raw)+log.Overhead); err != nil {
			return false, err
		}
		a.ahead.askEffects(g.effects[:g.n], sh.ks)
		if err := a.append(sh, g, now); err != nil {
			return false, err
		}
		size += len(g.raw)
		in.ready = false
		if err := a.decode(i); err != nil || !in.plain() {
			return false, err
		}
	}
	return true, nil
}

// plain reports whether the head lies on its shard alone and needs nothing else.
func (in *inbound) plain() bool { return in.ready && in.head.txn == 0 && !in.head.flushes() }

// together applies the group over several shards with the given id, if all its parts are there.
func (a *Applier) together(txn uint64) (done bool, err error) {
	e := a.e
	mask := uint64(0)
	for i := range a.shards {
		if in := &a.shards[i]; in.ready && in.head.txn == txn {
			mask |= in.head.mask
		}
	}
	for m := mask; m != 0; m &= m - 1 {
		if in := &a.shards[lowest(m)]; !in.ready || in.head.txn != txn {
			if in.ready || a.atFork(lowest(m)) {
				return false, fmt.Errorf("engine: group %d has no part on shard %d", txn, lowest(m))
			}
			return false, nil
		}
	}
	locked := e.lockWide(mask)
	now := e.now()
	defer func() { e.finish(locked, now) }()
	for m := mask; m != 0; m &= m - 1 {
		if err := e.room(1<<lowest(m), len(a.shards[lowest(m)].head.raw)+log.Overhead); err != nil {
			return false, err
		}
	}
	e.txns.begin(txn, mask)
	defer e.txns.finish(txn)
	for m := mask; m != 0; m &= m - 1 {
		in := &a.shards[lowest(m)]
		if err := a.append(e.shards[lowest(m)], &in.head, now); err != nil {
			return false, err
		}
		in.ready = false
	}
	return true, nil
}

// append appends a group's part to the log of its shard, as it is, and folds it. REQUIRES: the lock of sh is held.
func (a *Applier) append(sh *shard, g *foreignGroup, now int64) error {
	if _, err := sh.log().AppendRaw(g.start, g.raw); err != nil {
		return err
	}
	a.fold(sh, g, now)
	return nil
}

// fold folds a group's part that is in the log. REQUIRES: the lock of sh is held.
func (a *Applier) fold(sh *shard, g *foreignGroup, now int64) {
	sh.ks.SetAccessClock(uint32(now / 1000)) //nolint:gosec // a clock of 32 bits
	n := a.e.newNotes(0)
	for i := range g.n {
		if n == nil {
			g.fold(sh, i)
			continue
		}
		// A replica of Redis is told commands, and not why: what has expired is deleted.
		ef := &g.effects[i]
		n.around(sh, &command.Planned{Shard: sh.id, Effect: *ef, Cmd: rowOf(ef)}, log.ByClient, func() { g.fold(sh, i) })
		if ef.Op != effect.Del { // that may make room for what follows
			n.commandEnds()
		}
		if i+1 >= g.first {
			n.deliver(1 << sh.id)
		}
	}
	a.frames += uint64(g.n) //nolint:gosec // a count
	a.e.measure(1 << sh.id)
}

// fold folds an effect of the group. REQUIRES: the lock of sh is held.
func (g *foreignGroup) fold(sh *shard, i int) {
	if err := sh.fold(&g.effects[i]); err != nil {
		crash(fmt.Errorf("engine: frame %d of the group at %s, from the store that is followed, does not fold: %s: %w", i, g.start, g.effects[i].Op, err))
	}
}

// rowOf returns the row of the command that an effect is.
func rowOf(ef *effect.Effect) *command.Command {
	row := command.Lookup([]byte(ef.Op.String()))
	if row != nil && len(row.Sub) > 0 && len(ef.Args) > 0 {
		return row.Subcommand(ef.Args[0])
	}
	return row
}

// generations begins the generations that all shards have come to. REQUIRES: all shard locks are held.
func (a *Applier) generations() error {
	e := a.e
	lineage := make([]log.Lineage, len(a.shards))
	for i := range a.shards {
		lineage[i] = a.shards[i].queue[0].Generation
		if err := forksAt(i, &lineage[i], e.shards[i].log().Tail()); err != nil {
			return err
		}
	}
	if err := e.flush(e.all()); err != nil {
		return err
	}
	e.txns.settle()
	return e.beginGeneration(func(d *log.Dir, _ func()) error { return d.FollowGenerations(lineage, nil) })
}

// forksAt returns an error unless a generation forks off where the log of its shard ends.
func forksAt(shard int, g *log.Lineage, end log.Cursor) error {
	if at := (log.Cursor{Generation: g.Parent, Offset: g.ParentOffset}); at != end {
		return fmt.Errorf("engine: shard %d: generation %d forks off at %s, the log ends at %s", shard, g.Generation, at, end)
	}
	return nil
}

// decode makes the first group of a shard's queue its head, if it is there as a whole and of the log's generation.
func (a *Applier) decode(i int) error {
	in := &a.shards[i]
	if in.ready || a.stopped(i) || a.atFork(i) || len(in.queue) == 0 || in.read == int64(len(in.queue[0].Raw)) {
		return nil
	}
	if in.bad != nil {
		return in.bad
	}
	p, g := &in.queue[0], &in.head
	if in.st == nil {
		at := log.Cursor{Generation: p.Generation.Generation, Offset: p.Offset}
		if tail := a.e.shards[i].log().Tail(); at != tail {
			return fmt.Errorf("engine: shard %d: frames from %s on, the log ends at %s", i, at, tail)
		}
		in.st, in.read = log.NewRawStream(p.Raw, "frames of the store that is followed", i, at), 0
	}
	whole, err := a.group(i, in.st, g)
	if err != nil {
		return err
	}
	if !whole { // there is more to come
		p.Offset = g.start.Offset
		p.Raw = p.Raw[in.read:]
		in.st, in.read = nil, 0
		return nil
	}
	end := in.st.Position()
	if g.txn == 0 && !g.flushes() {
		end = a.extend(i)
	}
	g.raw, in.read, in.ready = p.Raw[in.read:end], end, true
	return nil
}

// extend takes groups of one frame that are there behind the head into it, and returns where it ends then. What is wrong with a frame is for the next
// decode to say, when all before it is applied.
func (a *Applier) extend(i int) (end int64) {
	in := &a.shards[i]
	raw, g := in.queue[0].Raw, &in.head
	for end = in.st.Position(); g.n < runFrames && end-in.read < runBytes && !a.stopsAt(i, in.st.Cursor()); end = in.st.Position() {
		if op, alone := log.PeekAlone(raw[end:]); !alone || op == effect.FlushAll {
			break
		}
		f, err := in.st.Next()
		if err == nil {
			err = g.take(f)
		}
		if err != nil {
			in.bad = err
			break
		}
	}
	return end
}

// group reads the next group of a shard's frames, but for raw, and reports whether it is there as a whole.
func (a *Applier) group(shard int, st *log.Stream, g *foreignGroup) (whole bool, err error) {
	g.start, g.n, g.txn, g.mask = st.Cursor(), 0, 0, 0
	for {
		f, err := st.Next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if f.GroupFirst {
			g.txn, g.mask, g.timeMS = f.Txn, f.Mask, f.TimeMS
			if g.txn != 0 && (g.mask&^a.e.all() != 0 || g.mask&(1<<shard) == 0) {
				return false, fmt.Errorf("engine: frame %s, of group %d, is on shard %d of %d and names shards %b", f.Cursor, g.txn, shard, len(a.shards), g.mask)
			}
		}
		if err := g.take(f); err != nil {
			return false, err
		}
		if f.GroupLast {
			g.first = g.n
			return true, nil
		}
	}
}

// take decodes the effect of the next frame of the group.
func (g *foreignGroup) take(f *log.Frame) error {
	if g.n == len(g.effects) {
		g.effects = append(g.effects, effect.Effect{})
	}
	ef := &g.effects[g.n]
	if err := effect.Decode(f.Payload, ef); err != nil {
		return fmt.Errorf("engine: frame %s, from the store that is followed: %w", f.Cursor, err)
	}
	if ef.Op != f.Op {
		return fmt.Errorf("engine: frame %s, from the store that is followed: a %s is marked as %s", f.Cursor, ef.Op, f.Op)
	}
	g.n++
	return nil
}

// queued returns how many bytes are not decoded.
func (in *inbound) queued() (n int64) {
	for i := range in.queue {
		n += int64(len(in.queue[i].Raw))
	}
	return n - in.read
}

// rest leaves of the first run what is not decoded.
func (in *inbound) rest() {
	if in.st == nil {
		return
	}
	p := &in.queue[0]
	p.Offset, p.Raw = in.st.Cursor().Offset, p.Raw[in.read:]
	in.st, in.read = nil, 0
}
