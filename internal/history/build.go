package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/snapshot"
	"github.com/kevydb/kevy/state"
)

// Built is a point made: the keyspaces of all shards. Its owner releases it.
type Built struct {
	Plan   *Plan
	Shards []*state.Keyspace
	Found  []string // what was noticed on the way
	seed   uint64
}

// Release gives the keyspaces back.
func (b *Built) Release() {
	for _, ks := range b.Shards {
		if ks != nil {
			ks.Release()
		}
	}
}

// Digest returns the number of keys below prefix and their digest, keys that are due at nowMS not
// counted; 0 counts all.
func (b *Built) Digest(prefix []byte, nowMS int64) (keys int, sum string) {
	return digest(b.Shards, prefix, nowMS)
}

func digest(shards []*state.Keyspace, prefix []byte, nowMS int64) (keys int, text string) {
	var sum uint64
	for _, ks := range shards {
		n, d := ks.Digest(prefix, nowMS)
		keys += n
		sum += d
	}
	return keys, command.FormatDigest(sum)
}

// setError is damage in a snapshot set.
type setError struct {
	id  string
	err error
}

func (e *setError) Error() string { return "snapshot set " + e.id + ": " + e.err.Error() }
func (e *setError) Unwrap() error { return e.err }

// BuildFrom opens a directory and makes a point of it. A directory in use may drop what is just being read: then it
// tries again.
func BuildFrom(src Source, p Point, prefix []byte, m *Meter) (b *Built, err error) {
	for range 4 {
		if b, err = buildFrom(src, p, prefix, m); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return b, err
}

func buildFrom(src Source, p Point, prefix []byte, m *Meter) (*Built, error) {
	h, err := Open(src)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	return h.Build(p, prefix, m)
}

// Libraries returns the libraries of functions.
func (b *Built) Libraries() []state.Library { return libraries(b.Shards) }

// libraries returns those of shard 0: no other has any.
func libraries(shards []*state.Keyspace) []state.Library { return shards[0].Libraries().List() }

// Build makes a point, of the keys below prefix only. A set that turns out to be damaged is left aside for
// one before it, and noted in the plan. fs.ErrNotExist: files that were there when the directory was opened have been dropped since.
func (h *History) Build(p Point, prefix []byte, m *Meter) (*Built, error) {
	return h.build(p, prefix, m, nil)
}

// nothing is the empty point.
func (h *History) nothing() *Built {
	b := &Built{Plan: &Plan{Point: Empty().String()}, seed: h.dir.HashSeed()}
	for range h.chains {
		b.Shards = append(b.Shards, state.New(b.seed))
	}
	return b
}

func (h *History) build(p Point, prefix []byte, m *Meter, planned func(*Plan)) (*Built, error) {
	if p.kind == empty {
		return h.nothing(), nil
	}
	var without, notes []string
	var vanished error // a set was there when the directory was opened, and is not any more
	for {
		pl, err := h.plan(p, without, m)
		if err != nil {
			return nil, errors.Join(err, vanished)
		}
		pl.Notes = append(pl.Notes, notes...)
		if planned != nil {
			planned(pl)
		}
		b, err := h.carryOut(pl, prefix, m)
		var bad *setError
		if !errors.As(err, &bad) {
			return b, err
		}
		if errors.Is(bad, fs.ErrNotExist) {
			vanished = bad
		}
		without = append(without, bad.id)
		notes = append(notes, bad.Error())
	}
}

// carryOut makes what pl says.
func (h *History) carryOut(pl *Plan, prefix []byte, m *Meter) (*Built, error) {
	m.Begin("restoring", pl.Frames+pl.SetKeys)
	b := &Built{Plan: pl, Shards: make([]*state.Keyspace, h.Shards()), seed: h.dir.HashSeed()}
	regions := make([]region, h.Shards())
	err := h.parallel(func(i int) (err error) {
		ks := state.New(b.seed)
		b.Shards[i] = ks
		ks.BeginBulk()
		f := folder{ks: ks, prefix: prefix, t: tick{m: m}}
		defer f.t.end()
		if set := pl.base.set; set != nil {
			if err := h.foldSet(set, i, &f); err != nil {
				return err
			}
			if pl.Shards[i].Frames < uint64(ks.Len())/8 { // so few are better folded one by one than all keys sorted in the end
				ks.EndBulk()
			}
		}
		if regions[i], err = h.foldFrames(i, &pl.Shards[i], &f); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		ks.EndBulk()
		return nil
	})
	if err != nil {
		b.Release()
		return nil, err
	}
	for i := range regions {
		if regions[i].open {
			b.Found = append(b.Found, fmt.Sprintf("shard %d: cursor %s is within a group: its first part is in, the rest is not", i, pl.Shards[i].To))
		}
		if torn(regions, i) {
			b.Found = append(b.Found, fmt.Sprintf("shard %d: cursor %s is behind a group over several shards that another shard's cursor leaves out", i, pl.Shards[i].To))
		}
	}
	return b, nil
}

// folder folds effects of keys below a prefix.
type folder struct {
	ks     *state.Keyspace
	prefix []byte
	t      tick
}

func (f *folder) fold(e *effect.Effect) error {
	f.t.one()
	if len(f.prefix) > 0 && !restrict(e, f.prefix) {
		return nil
	}
	_, err := f.ks.Fold(e)
	return err
}

// restrict leaves only keys below prefix in e and reports whether it still does anything. Effects that name no
// key stay.
func restrict(e *effect.Effect, prefix []byte) bool {
	step := 1
	switch e.Op.Keys() {
	case effect.NoKeys, effect.Keyless:
		return true
	case effect.FirstKey, effect.SecondKey:
		key, _ := e.SingleKey()
		return bytes.HasPrefix(key, prefix)
	case effect.PairKeys:
		step = 2
	case effect.AllKeys:
	}
	kept := e.Args[:0]
	for i := 0; i < len(e.Args); i += step {
		if bytes.HasPrefix(e.Args[i], prefix) {
			kept = append(kept, e.Args[i:i+step]...)
		}
	}
	e.Args = kept
	return len(kept) > 0
}

// foldSet folds a shard's file of a set. Errors of the set are *setError.
func (h *History) foldSet(set *snapshot.Set, shard int, f *folder) error {
	hd, _, err := snapshot.Load(h.fs, h.shardFile(set, shard), f.fold)
	if err == nil {
		err = set.Check(&hd, shard, h.dir.HashSeed())
	}
	if err != nil {
		return &setError{set.ID, err}
	}
	return nil
}

// foldFrames folds the frames of a plan. The region it returns is open if it ends within a group.
func (h *History) foldFrames(i int, s *ShardPlan, f *folder) (g region, err error) {
	if s.From == s.To {
		return g, nil
	}
	r, err := h.reader(i, s.From, s.To, f.prefix)
	if err != nil {
		return g, err
	}
	defer r.Close()
	var e effect.Effect
	var ahead engine.Lookahead
	for {
		fr, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			if at := r.Cursor(); at != s.To {
				return g, fmt.Errorf("%w: the log ends at %s, before %s", log.ErrCorrupt, at, s.To)
			}
			return g, nil
		case errors.Is(err, log.ErrGone): // headers did not show that
			return g, fmt.Errorf("%w: the segment with frame %s is missing or can't be read (kevy verify says why): %w", ErrDamaged, r.Cursor(), err)
		case err != nil:
			return g, err
		}
		if fr.GroupFirst && fr.Txn != 0 {
			g.groups.add(fr)
		}
		g.open = !fr.GroupLast
		ahead.Before(r, f.ks)
		if fr.Single && !bytes.HasPrefix(fr.Key, f.prefix) {
			f.t.one()
			continue
		}
		if err := effect.Decode(fr.Payload, &e); err != nil {
			return g, fmt.Errorf("frame %s: %w", fr.Cursor, err)
		}
		if err := f.fold(&e); err != nil {
			return g, fmt.Errorf("frame %s: %w", fr.Cursor, err)
		}
	}
}

// overdue counts the keys, and the fields of hashes, whose deadline has passed; with keep it takes the deadlines
// away.
func (b *Built) overdue(nowMS int64, keep bool) (n int, err error) {
	for _, ks := range b.Shards {
		var effects []effect.Effect
		ks.Due(nowMS, ks.Len(), func(key []byte) {
			effects = append(effects, effect.Effect{Op: effect.Persist, Args: [][]byte{bytes.Clone(key)}})
		})
		ks.DueFields(nowMS, int(^uint(0)>>1), func(key []byte, names [][]byte) {
			args := [][]byte{bytes.Clone(key), []byte("FIELDS"), fmt.Append(nil, len(names))}
			for _, f := range names {
				args = append(args, bytes.Clone(f))
			}
			n += len(names) - 1
			effects = append(effects, effect.Effect{Op: effect.HPersist, Args: args})
		})
		n += len(effects)
		if !keep {
			continue
		}
		for i := range effects {
			if _, err := ks.Fold(&effects[i]); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}
