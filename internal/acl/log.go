package acl

import (
	"slices"
	"sync"
)

// Context is where a denied command came from.
type Context string

// The contexts.
const (
	TopLevel Context = "toplevel"
	InMulti  Context = "multi"
	InScript Context = "lua"
)

// Entry is one entry of ACL LOG.
type Entry struct {
	Count            int
	Reason           Reason
	Context          Context
	Object, Username string
	Client           string // the client's line in CLIENT LIST
	ID               int64
	Created, Updated int64 // unix ms
}

// Log keeps what was denied lately. Safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	max     int     // guarded by mu
	entries []Entry // the newest last; guarded by mu
	next    int64   // guarded by mu
}

const (
	// sameWithin is how long apart (ms) two equal denials count as one entry.
	sameWithin = 60_000
	// sameScan is how many entries are searched for an equal one.
	sameScan = 10
)

// SetMax bounds the entries kept (acllog-max-len).
func (l *Log) SetMax(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.max = n
	l.trim()
}

func (l *Log) trim() {
	if over := len(l.entries) - l.max; over > 0 {
		l.entries = slices.Delete(l.entries, 0, over)
	}
}

// Add notes a denial at the time e.Updated. An equal one of the last minute counts once more and moves to the front.
func (l *Log) Add(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Count, e.Created = 1, e.Updated
	for i := len(l.entries) - 1; i >= max(0, len(l.entries)-sameScan); i-- {
		o := l.entries[i]
		if o.Reason == e.Reason && o.Context == e.Context && e.Updated-o.Updated <= sameWithin &&
			o.Object == e.Object && o.Username == e.Username {
			o.Count++
			o.Client, o.Updated = e.Client, e.Updated
			l.entries = append(slices.Delete(l.entries, i, i+1), o)
			return
		}
	}
	e.ID = l.next
	l.next++
	l.entries = append(l.entries, e)
	l.trim()
}

// Last returns up to n entries, the newest first.
func (l *Log) Last(n int) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := slices.Clone(l.entries[max(0, len(l.entries)-n):])
	slices.Reverse(out)
	return out
}

// Reset forgets all entries.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}
