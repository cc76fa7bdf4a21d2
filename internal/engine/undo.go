package engine

import (
	"bytes"
	"encoding/binary"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// undo is what makes the keys that a group changes as they were: of small values the effects that rebuild
// them, of large ones a view of the shard, which costs the same whatever their size.
type undo struct {
	effects []command.Planned   // to be folded from the last one to the first
	kept    map[string]struct{} // shard and key
	id      []byte              // scratch: one of these
	large   []largeKey
	views   map[int]*state.View // by shard

	flushed []*state.View // by shard, as they were before the group's first FLUSHALL; nil: there was none
	before  int           // of effects: those kept before it
}

// largeKey is a key whose value is in its shard's view.
type largeKey struct {
	shard int
	key   []byte
}

// keep saves what makes key as it is now, unless the group has done so before. REQUIRES: the shard's lock is held.
func (u *undo) keep(sh *shard, key []byte) {
	if u.flushed != nil {
		return // all keys are in flushed
	}
	u.id = append(binary.AppendUvarint(u.id[:0], uint64(sh.id)), key...)
	if _, done := u.kept[string(u.id)]; done {
		return
	}
	if u.kept == nil {
		u.kept = make(map[string]struct{})
	}
	u.kept[string(u.id)] = struct{}{}
	entry, ok := sh.ks.Lookup(key)
	if ok && entry.Large() {
		if u.views == nil {
			u.views = make(map[int]*state.View)
		}
		if u.views[sh.id] == nil {
			u.views[sh.id] = sh.ks.View()
		}
		u.large = append(u.large, largeKey{shard: sh.id, key: bytes.Clone(key)})
		return
	}
	// The effects are folded backwards: first the key goes, then it is rebuilt.
	if ok {
		at := len(u.effects)
		sh.ks.Rebuild(entry, func(ef effect.Effect) {
			u.effects = append(u.effects, command.Planned{Shard: sh.id, Effect: copyEffect(&ef)})
		})
		reverse(u.effects[at:])
	}
	u.effects = append(u.effects, command.Planned{
		Shard:  sh.id,
		Effect: effect.Effect{Op: effect.Del, Args: [][]byte{bytes.Clone(key)}},
	})
}

// keepAll saves all shards before a FLUSHALL. REQUIRES: the locks of all shards are held.
func (u *undo) keepAll(e *Engine) {
	if u.flushed != nil {
		return
	}
	for _, sh := range e.shards {
		u.flushed = append(u.flushed, sh.ks.View())
	}
	u.before = len(u.effects)
}

func reverse(p []command.Planned) {
	for i, j := 0, len(p)-1; i < j; i, j = i+1, j-1 {
		p[i], p[j] = p[j], p[i]
	}
}

// restore folds what was kept. REQUIRES: the locks of the shards are held.
func (u *undo) restore(e *Engine) {
	fold := func(shard int, ef *effect.Effect) {
		if err := e.shards[shard].fold(ef); err != nil {
			crash(err)
		}
	}
	back := func(from int) {
		for ; len(u.effects) > from; u.effects = u.effects[:len(u.effects)-1] {
			last := &u.effects[len(u.effects)-1]
			fold(last.Shard, &last.Effect)
		}
	}
	back(u.before) // of libraries, when there was a FLUSHALL
	for i, v := range u.flushed {
		fold(i, &effect.Effect{Op: effect.FlushAll})
		v.Rebuild(func(ef *effect.Effect, _ bool) bool { fold(i, ef); return true })
	}
	back(0)
	for _, k := range u.large {
		fold(k.shard, &effect.Effect{Op: effect.Del, Args: [][]byte{k.key}})
		u.views[k.shard].RebuildKey(k.key, func(ef *effect.Effect) { fold(k.shard, ef) })
	}
	u.forget()
}

// forget drops what was kept, but for the memory of few and short keys. REQUIRES: the locks of the shards are held.
func (u *undo) forget() {
	for _, v := range u.views {
		v.Close()
	}
	for _, v := range u.flushed {
		v.Close()
	}
	next := undo{effects: emptied(u.effects)}
	if len(u.kept) <= fewEffects && cap(u.id) <= 1<<10 {
		clear(u.kept)
		next.kept, next.id = u.kept, u.id
	}
	*u = next
}
