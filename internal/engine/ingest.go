package engine

import (
	"errors"
	"fmt"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// Ingest logs and folds effects that another store has decided, as one group of cause restore, and returns when they are as safe as the
// policy promises. Keys go to the shards of this store, so an effect on several keys becomes one for each. An effect that does not fold is an error, and
// then nothing has changed; so is a log that refuses. FLUSHALL is not accepted: it would end a generation.
func (e *Engine) Ingest(effects []effect.Effect) error {
	var t Ticket
	if err := e.ingest(&t, effects); err != nil {
		return err
	}
	return e.Await(&t)
}

func (e *Engine) ingest(t *Ticket, effects []effect.Effect) error {
	e.lock(e.all())
	c := e.NewCtx()
	c.Now = e.now()
	defer e.finish(e.all(), c.Now)
	return e.inGroup(c, t, func(g *group) error {
		g.cause = log.ByRestore
		for i := range effects {
			if err := g.take(&effects[i]); err != nil {
				return fmt.Errorf("engine: effect %d of %d: %w", i+1, len(effects), err)
			}
		}
		return nil
	})
}

// take folds an effect, or one for each of its keys.
func (g *group) take(ef *effect.Effect) error {
	if err := ef.Validate(); err != nil {
		return err
	}
	on := func(key []byte, own effect.Effect) error {
		return g.tryFold(&command.Planned{Shard: g.e.shardOf(key), Effect: own})
	}
	if key, single := ef.SingleKey(); single {
		return on(key, *ef)
	}
	switch ef.Op.Keys() {
	case effect.Keyless:
		return g.tryFold(&command.Planned{Effect: *ef})
	case effect.AllKeys:
		for i := range ef.Args {
			if err := on(ef.Args[i], effect.Effect{Op: ef.Op, Args: ef.Args[i : i+1]}); err != nil {
				return err
			}
		}
		return nil
	case effect.PairKeys: // MSET
		for i := 0; i < len(ef.Args); i += 2 {
			if err := on(ef.Args[i], effect.Effect{Op: effect.Set, Args: ef.Args[i : i+2]}); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New(ef.Op.String() + " is not accepted")
}

// Digest returns how many keys there are, those past their deadline included, and their digest as PREFIX.DIGEST tells it.
func (e *Engine) Digest() (keys int, digest string) {
	e.lock(e.all())
	defer e.unlock(e.all())
	var sum uint64
	for _, ks := range e.keyspaces {
		n, d := ks.Digest(nil, 0)
		keys += n
		sum += d
	}
	return keys, command.FormatDigest(sum)
}
