package server

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

// tracking is client-side caching: which clients may keep copies of which keys. What a client may keep is noted
// before its read, so a change that comes meanwhile is told behind the value.
//
// Lock order: shard locks, then mu, then the registry of clients and the inboxes.
type tracking struct {
	srv     *Server
	clients atomic.Int64 // with tracking on
	maxKeys atomic.Int64 // tracking-table-max-keys, 0: no bound

	mu       sync.Mutex
	on       map[uint64]*session              // clients with tracking on
	keys     map[string]map[uint64]struct{}   // clients by the keys they may keep
	items    int                              // pairs of key and client
	prefixes map[string]map[*session]struct{} // of BCAST
	order    []string                         // the prefixes, sorted: messages leave in that order
}

// tracked is a session's part. Guarded by tracking.mu, but for caching and reads, which the session owns.
type tracked struct {
	on, bcast, optin, optout, noloop, broken bool
	redirect                                 uint64
	prefixes                                 map[string]struct{}
	memory                                   int // bytes of the prefixes

	caching bool // CLIENT CACHING was given for the next command or transaction
	reads   bool // reads are to be noted: on and not bcast
}

func (t *tracking) init(srv *Server) {
	t.srv = srv
	t.on = make(map[uint64]*session)
	t.keys = make(map[string]map[uint64]struct{})
	t.prefixes = make(map[string]map[*session]struct{})
}

// enable switches tracking on, or changes it.
func (t *tracking) enable(s *session, o *trackingOptions) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := &s.track
	if !k.on {
		t.clients.Add(1)
		t.on[s.id] = s
	}
	k.on, k.bcast, k.broken, k.redirect = true, o.bcast, false, o.redirect
	k.optin, k.optout, k.noloop = o.optin, o.optout, o.noloop
	k.reads = !o.bcast
	if !o.bcast {
		return
	}
	if len(o.prefixes) == 0 {
		o.prefixes = []string{""}
	}
	for _, p := range o.prefixes {
		if k.prefixes == nil {
			k.prefixes = make(map[string]struct{})
		}
		if _, has := k.prefixes[p]; !has {
			k.memory += prefixBytes + len(p)
		}
		k.prefixes[p] = struct{}{}
		if t.prefixes[p] == nil {
			t.prefixes[p] = make(map[*session]struct{})
			at, _ := slices.BinarySearch(t.order, p)
			t.order = slices.Insert(t.order, at, p)
		}
		t.prefixes[p][s] = struct{}{}
	}
}

// disable switches tracking off. The keys the client was noted for stay until they change, or there is no client left.
func (t *tracking) disable(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !s.track.on {
		return
	}
	if t.clients.Add(-1) == 0 { // changes are told no more
		clear(t.keys)
		t.items = 0
	}
	delete(t.on, s.id)
	for p := range s.track.prefixes {
		delete(t.prefixes[p], s)
		if len(t.prefixes[p]) == 0 {
			delete(t.prefixes, p)
			if at, there := slices.BinarySearch(t.order, p); there {
				t.order = slices.Delete(t.order, at, at+1)
			}
		}
	}
	s.track = tracked{}
}

// remember notes that s may keep the keys of a read-only command that it is about to run.
func (t *tracking) remember(s *session, cmd *command.Command, args [][]byte) {
	k := &s.track
	if k.optin && !k.caching || k.optout && k.caching || cmd.Flags&command.PubSub != 0 ||
		cmd.Group == "scripting" { // what a script reads counts, one by one
		return
	}
	positions := command.KeyPositions(cmd, args, nil)
	if len(positions) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range positions {
		ids := t.keys[string(args[i])]
		if ids == nil {
			ids = make(map[uint64]struct{})
			t.keys[string(args[i])] = ids
		}
		if _, has := ids[s.id]; !has {
			ids[s.id] = struct{}{}
			t.items++
		}
	}
	t.shrink()
}

// limit puts a new bound into force.
func (t *tracking) limit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shrink()
}

// shrink forgets keys, and tells their clients, until the table is within its bound. REQUIRES: t.mu held.
func (t *tracking) shrink() {
	most := t.maxKeys.Load()
	if most == 0 {
		return
	}
	for key := range t.keys {
		if int64(len(t.keys)) <= most {
			return
		}
		t.invalidate(t.pull(key, nil), 0)
	}
}

// stale is a changed key with the clients that may keep it.
type stale struct {
	key string
	ids map[uint64]struct{}
}

// pull takes a key with its clients out of the table and adds it to list, if it is there. REQUIRES: t.mu held.
func (t *tracking) pull(key string, list []stale) []stale {
	ids := t.keys[key]
	if ids == nil {
		return list
	}
	delete(t.keys, key)
	t.items -= len(ids)
	return append(list, stale{key, ids})
}

// take pulls the keys that a command has changed: who reads them later, in the same transaction even, keeps what is
// then true.
func (t *tracking) take(c *engine.Changes, at int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list, _ := c.Held.([]stale)
	for _, key := range c.Keys[at:] {
		list = t.pull(key, list)
	}
	if list != nil {
		c.Held = list
	}
}

// invalidate tells the clients that may keep the keys. by is whose change it was. REQUIRES: t.mu held.
func (t *tracking) invalidate(list []stale, by uint64) {
	for _, k := range list {
		var message []byte
		for id := range k.ids {
			s := t.on[id]
			if s == nil || s.track.bcast || s.track.noloop && id == by {
				continue
			}
			if message == nil {
				message = keyArray([]string{k.key})
			}
			t.send(s, message)
		}
	}
}

// send tells s, or the client that s redirects to, to drop keys; nil means all. REQUIRES: t.mu held.
func (t *tracking) send(s *session, keys []byte) {
	to, kind := s, itemInvalidate
	if id := s.track.redirect; id != 0 {
		if to = t.srv.clients.find(id); to == nil {
			s.track.broken = true
			var w resp.Writer
			w.Uint(id)
			s.push(item{w.Buf, itemBroken})
			return
		}
		kind = itemRedirected
	}
	to.push(item{keys, kind})
}

// changed tells of the keys that a group has changed.
func (t *tracking) changed(c *engine.Changes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Flushed {
		for _, s := range t.on {
			t.send(s, nil)
		}
		clear(t.keys)
		t.items = 0
	}
	if list, ok := c.Held.([]stale); ok {
		t.invalidate(list, c.Client)
	}
	for _, prefix := range t.order {
		t.broadcast(prefix, t.prefixes[prefix], c)
	}
}

// broadcast tells of the changed keys with a prefix, in one message. REQUIRES: t.mu held.
func (t *tracking) broadcast(prefix string, sessions map[*session]struct{}, c *engine.Changes) {
	var keys []string
	for _, key := range c.Keys {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return
	}
	slices.Sort(keys)
	message := keyArray(slices.Compact(keys))
	for s := range sessions {
		if !s.track.noloop || s.id != c.Client {
			t.send(s, message)
		}
	}
}

func keyArray(keys []string) []byte {
	var w resp.Writer
	w.Array(len(keys))
	for _, k := range keys {
		w.BulkString(k)
	}
	return w.Buf
}

// figures returns the numbers that INFO shows.
func (t *tracking) figures() (keys, items, prefixes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.keys), t.items, len(t.prefixes)
}

// state returns a copy of what a session tracks. Any goroutine.
func (t *tracking) state(s *session) tracked {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := s.track
	k.prefixes = maps.Clone(k.prefixes)
	return k
}

// brief is state without the prefixes.
func (t *tracking) brief(s *session) tracked {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := s.track
	k.prefixes = nil
	return k
}

// noteRead is called before each command that s runs.
func (s *session) noteRead(cmd *command.Command, args [][]byte) {
	if s.track.reads && cmd.Flags&command.ReadOnly != 0 {
		s.srv.tracking.remember(s, cmd, args)
	}
}

// watcher returns what is called before each command of a transaction or script, or nil: it notes reads, and shows
// the command to the clients of MONITOR.
func (s *session) watcher() func(*command.Command, [][]byte, bool) {
	if !s.track.reads && !s.multi.tracks && s.srv.gate.Load()&gateMonitor == 0 {
		return nil
	}
	return func(cmd *command.Command, args [][]byte, script bool) {
		if s.srv.monitored(cmd) {
			from := "lua"
			if !script {
				from = s.monitorAddr()
			}
			s.srv.monitors.show(cmd, args, from)
		}
		s.noteRead(cmd, args)
	}
}

// commandOver ends what CLIENT CACHING asked for: it counts for one command other than CLIENT, or one transaction. cmd, which is over, is nil if it
// is not known.
func (s *session) commandOver(cmd *command.Command) {
	if !s.multi.on && (cmd == nil || !strings.HasPrefix(cmd.Name, "client|")) {
		s.track.caching = false
	}
}
