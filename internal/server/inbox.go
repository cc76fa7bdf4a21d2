package server

import "sync"

// inbox is what other goroutines have for a session's client, out of band: messages, invalidations, lines of
// MONITOR. The loop is woken once for all that gathers.
type inbox struct {
	mu    sync.Mutex
	items []item
	bytes int
	drain func() // session.drainInbox; made once
}

// item is one thing to send.
type item struct {
	data []byte // encoded; shared, read-only
	kind itemKind
}

type itemKind uint8

const (
	itemPush       itemKind = iota // data is a RESP3 push; an array in RESP2
	itemRaw                        // data is sent as it is
	itemInvalidate                 // data is the array of keys to invalidate, nil for all
	itemRedirected                 // the same, for another client
	itemBroken                     // data is the id of a client that invalidations were to go to, encoded
)

// Deliver implements pubsub.Subscriber.
func (s *session) Deliver(message []byte) { s.push(item{message, itemPush}) }

// push sends something out of band. Replies begun earlier come first. Any goroutine.
func (s *session) push(it item) {
	b := &s.inbox
	b.mu.Lock()
	first := len(b.items) == 0
	b.items = append(b.items, it)
	b.bytes += len(it.data)
	hard := s.srv.config().OutputLimits.PubSub.Hard
	full := hard > 0 && int64(b.bytes) >= hard
	b.mu.Unlock()
	switch {
	case full:
		s.conn.Close()
	case first:
		s.conn.Post(b.drain)
	}
}

// drainInbox appends what has gathered. On the loop. While a command of the client runs elsewhere it waits for
// its reply: an invalidation must not come before the value that it concerns.
func (s *session) drainInbox() {
	if s.jobRuns || s.claimed.Load() {
		return
	}
	b := &s.inbox
	b.mu.Lock()
	items := b.items
	b.items, b.bytes = nil, 0
	b.mu.Unlock()
	for i := range items {
		s.sendItem(&items[i])
	}
}

func (s *session) sendItem(it *item) {
	w := &s.conn.W
	switch it.kind {
	case itemRaw:
		w.Raw(it.data)
	case itemPush:
		at := len(w.Buf)
		w.Raw(it.data)
		if !w.RESP3() {
			w.Buf[at] = '*'
		}
	case itemInvalidate, itemRedirected:
		s.sendInvalidation(it.data, it.kind == itemRedirected)
	case itemBroken:
		if w.RESP3() {
			w.Push(2)
			w.BulkString("tracking-redir-broken")
			w.Raw(it.data)
		}
	}
}

// sendInvalidation tells the client which keys it may no longer keep, as far as its connection can say so: RESP2
// has no pushes, but a subscriber to whom another client redirects can be told as by a message.
func (s *session) sendInvalidation(keys []byte, redirected bool) {
	w := &s.conn.W
	switch {
	case w.RESP3():
		w.Push(2)
		w.BulkString("invalidate")
	case redirected && s.subs.Any():
		w.Array(3)
		w.BulkString("message")
		w.BulkString("__redis__:invalidate")
	default:
		return
	}
	if keys == nil {
		w.Null()
		return
	}
	w.Raw(keys)
}
