package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kevydb/kevy/log/effect"
)

// Watch is one client's set of watched keys (WATCH). Its methods must not be called concurrently,
// except Dirty.
type Watch struct {
	e     *Engine
	dirty atomic.Bool

	mu   sync.Mutex // taken after a shard lock
	keys map[string]*watchedKey
	size int // bytes of the keys' names
}

type watchedKey struct {
	shard   int
	expired bool // was already past its deadline when watched: its removal is no change; guarded by the shard's lock
}

// NewWatch returns an empty watch.
func (e *Engine) NewWatch() *Watch { return &Watch{e: e} }

// Dirty reports whether a watched key has changed since it was added.
func (w *Watch) Dirty() bool { return w.dirty.Load() }

// Empty reports whether no key is watched.
func (w *Watch) Empty() bool { return len(w.keys) == 0 }

// Memory returns the bytes that the watched keys take, each one at perKey besides its name.
func (w *Watch) Memory(perKey int) int { return w.size + perKey*len(w.keys) }

// Add watches key.
func (w *Watch) Add(key []byte) {
	i, sh := w.e.lockShardOf(key)
	defer sh.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, has := w.keys[string(key)]; has {
		return
	}
	k, name := &watchedKey{shard: i}, string(key)
	if e, ok := sh.ks.Lookup(key); ok {
		ms, has := e.Deadline()
		k.expired = has && ms <= w.e.now()
	}
	if sh.watched == nil {
		sh.watched = make(map[string][]*Watch)
	}
	sh.watched[name] = append(sh.watched[name], w)
	if w.keys == nil {
		w.keys = make(map[string]*watchedKey)
	}
	w.keys[name] = k
	w.size += len(name)
}

// Clear forgets all keys and the dirty mark (UNWATCH, EXEC, DISCARD, disconnect).
func (w *Watch) Clear() {
	w.mu.Lock()
	keys := w.keys
	w.keys, w.size = nil, 0
	w.mu.Unlock()
	for name, k := range keys {
		sh := w.e.shards[k.shard]
		sh.mu.Lock()
		list := slices.DeleteFunc(sh.watched[name], func(o *Watch) bool { return o == w })
		if len(list) == 0 {
			delete(sh.watched, name)
		} else {
			sh.watched[name] = list
		}
		sh.mu.Unlock()
	}
	w.dirty.Store(false)
}

// dirtyAt reports whether EXEC must refuse: a key has changed, or has passed its deadline since it
// was watched. REQUIRES: the locks of the watched keys' shards are held.
func (w *Watch) dirtyAt(now int64) bool {
	if w.dirty.Load() {
		return true
	}
	for name, k := range w.keys {
		if k.expired {
			continue
		}
		if e, ok := w.e.shards[k.shard].ks.Lookup([]byte(name)); ok {
			if ms, has := e.Deadline(); has && ms <= now {
				return true
			}
		}
	}
	return false
}

func (w *Watch) mask() (m uint64) {
	for _, k := range w.keys {
		m |= 1 << k.shard
	}
	return m
}

// touchWatched marks the watchers of the keys an effect is about to change. A flush changes the
// keys that exist. REQUIRES: sh.mu held.
func (sh *shard) touchWatched(e *effect.Effect) {
	if e.Op.Keys() == effect.NoKeys {
		for key, list := range sh.watched {
			if _, ok := sh.ks.Lookup([]byte(key)); ok {
				markDirty(list, key)
			}
		}
		return
	}
	del := e.Op == effect.Del
	e.EachKey(func(key []byte) {
		if list := sh.watched[string(key)]; len(list) > 0 {
			name := ""
			if del {
				name = string(key)
			}
			markDirty(list, name)
		}
	})
}

// markDirty marks watchers; the removal of the named key does not count for a watcher that saw it
// expired already, but that key's later changes do.
func markDirty(list []*Watch, removed string) {
	for _, w := range list {
		if removed != "" && w.forgetExpired(removed) {
			continue
		}
		w.dirty.Store(true)
	}
}

// forgetExpired reports whether key was watched after its deadline, and from now on treats it as
// absent. REQUIRES: the key's shard lock is held.
func (w *Watch) forgetExpired(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.keys[key]
	if k == nil || !k.expired {
		return false
	}
	k.expired = false
	return true
}
