package pubsub

import (
	"maps"
	"slices"
)

// Subscriptions are what one subscriber listens to. Owned by the subscriber; the Hub is told of every change.
type Subscriptions struct {
	hub   *Hub
	who   Subscriber
	names [kinds]map[string]struct{}
	size  int // bytes of the names
}

// Of returns no subscriptions yet, of s.
func (h *Hub) Of(s Subscriber) Subscriptions { return Subscriptions{hub: h, who: s} }

// Add begins to listen to a name.
func (u *Subscriptions) Add(k Kind, name []byte) {
	if _, has := u.names[k][string(name)]; has {
		return
	}
	if u.names[k] == nil {
		u.names[k] = make(map[string]struct{})
	}
	own := string(name)
	u.names[k][own] = struct{}{}
	u.size += len(own)
	u.hub.subscribe(k, own, u.who)
}

// Remove ends listening to a name.
func (u *Subscriptions) Remove(k Kind, name []byte) {
	own := string(name)
	if _, has := u.names[k][own]; has {
		delete(u.names[k], own)
		u.size -= len(own)
		u.hub.unsubscribe(k, own, u.who)
	}
}

// Names returns the names of a kind, in order.
func (u *Subscriptions) Names(k Kind) []string { return slices.Sorted(maps.Keys(u.names[k])) }

// Len returns the number of names of a kind.
func (u *Subscriptions) Len(k Kind) int { return len(u.names[k]) }

// Memory returns the bytes that the names take, each one at perName besides its text.
func (u *Subscriptions) Memory(perName int) int {
	return u.size + perName*(len(u.names[Channel])+len(u.names[Pattern])+len(u.names[Shard]))
}

// Any reports whether there are any names.
func (u *Subscriptions) Any() bool {
	return len(u.names[Channel])+len(u.names[Pattern])+len(u.names[Shard]) > 0
}

// Clear ends listening to everything.
func (u *Subscriptions) Clear() {
	for k := range u.names {
		for name := range u.names[k] {
			u.hub.unsubscribe(Kind(k), name, u.who) //nolint:gosec // few kinds
		}
		u.names[k] = nil
	}
	u.size = 0
}
