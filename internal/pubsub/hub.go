// Package pubsub knows who listens to which channel and hands messages to them. It moves no bytes and knows
// no connections: a Subscriber takes what is published.
package pubsub

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kevydb/kevy/resp"
)

// Kind is a kind of subscription.
type Kind uint8

// The kinds.
const (
	Channel Kind = iota // SUBSCRIBE
	Pattern             // PSUBSCRIBE
	Shard               // SSUBSCRIBE
	kinds
)

// Subscriber takes messages. Deliver must not block and must not call the Hub; message is an encoded RESP3 push
// that is shared with others: read-only. Any goroutine.
type Subscriber interface {
	Deliver(message []byte)
}

// Hub is the registry of all subscriptions. All methods are safe for concurrent use.
type Hub struct {
	match    func(pattern, name []byte) bool
	patterns atomic.Int64 // subscribed patterns: most publishes need not look

	mu    sync.RWMutex
	names [kinds]map[string]*audience // guarded by mu
}

// audience are the subscribers of one name, in no particular order.
type audience struct {
	list []Subscriber
	at   map[Subscriber]int // place in list
}

// New returns a Hub whose patterns match by the given function.
func New(match func(pattern, name []byte) bool) *Hub {
	h := &Hub{match: match}
	for k := range h.names {
		h.names[k] = make(map[string]*audience)
	}
	return h
}

func (h *Hub) subscribe(k Kind, name string, s Subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.names[k][name]
	if a == nil {
		a = &audience{at: make(map[Subscriber]int)}
		h.names[k][name] = a
		if k == Pattern {
			h.patterns.Add(1)
		}
	}
	if _, has := a.at[s]; !has {
		a.at[s] = len(a.list)
		a.list = append(a.list, s)
	}
}

func (h *Hub) unsubscribe(k Kind, name string, s Subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.names[k][name]
	if a == nil {
		return
	}
	i, has := a.at[s]
	if !has {
		return
	}
	last := len(a.list) - 1
	a.list[i] = a.list[last]
	a.at[a.list[i]] = i
	a.list[last] = nil
	a.list = a.list[:last]
	delete(a.at, s)
	if last == 0 {
		delete(h.names[k], name)
		if k == Pattern {
			h.patterns.Add(-1)
		}
	}
}

// Publish sends message to the subscribers of channel and of the patterns that match it, and returns how many
// that were.
func (h *Hub) Publish(channel, message []byte) int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	n := h.names[Channel][string(channel)].send("message", channel, message)
	if h.patterns.Load() == 0 {
		return n
	}
	for pattern, a := range h.names[Pattern] {
		if h.match([]byte(pattern), channel) {
			n += a.send("pmessage", []byte(pattern), channel, message)
		}
	}
	return n
}

// PublishShard sends message to the shard subscribers of channel.
func (h *Hub) PublishShard(channel, message []byte) int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.names[Shard][string(channel)].send("smessage", channel, message)
}

// send delivers a message to everyone of a, which may be nil.
func (a *audience) send(kind string, parts ...[]byte) int {
	if a == nil {
		return 0
	}
	message := Push(kind, parts...)
	for _, s := range a.list {
		s.Deliver(message)
	}
	return len(a.list)
}

// Push encodes a push message of bulk strings.
func Push(kind string, parts ...[]byte) []byte {
	size := 32 + len(kind)
	for _, p := range parts {
		size += len(p) + 32
	}
	w := resp.Writer{Buf: make([]byte, 0, size), Proto: 3}
	w.Push(1 + len(parts))
	w.BulkString(kind)
	for _, p := range parts {
		w.Bulk(p)
	}
	return w.Buf
}

// Audience returns the number of subscribers of a name.
func (h *Hub) Audience(k Kind, name []byte) int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a := h.names[k][string(name)]
	if a == nil {
		return 0
	}
	return len(a.list)
}

// Len returns the number of names that someone listens to.
func (h *Hub) Len(k Kind) int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.names[k])
}

// Names returns the names that someone listens to and that match pattern, in order; nil matches all.
func (h *Hub) Names(k Kind, pattern []byte) []string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	out := make([]string, 0, len(h.names[k]))
	for name := range h.names[k] {
		if pattern == nil || h.match(pattern, []byte(name)) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
