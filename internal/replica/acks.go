package replica

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kevydb/kevy/log"
)

// ackNumbers is how many numbers REPL.ACK has for each shard.
const ackNumbers = 5

// Ack takes an acknowledgement: args are those of REPL.ACK. One that is no part of this store's history counts for nothing.
func (s *Source) Ack(args [][]byte) error {
	id := string(args[1])
	n, err := uints(args[2:])
	if err != nil {
		return err
	}
	if len(n) != ackNumbers*s.eng.Shards() {
		return fmt.Errorf("ERR REPL.ACK with %d numbers for %d shards", len(n), s.eng.Shards())
	}
	acks := make([]Ack, s.eng.Shards())
	dir := s.eng.Dir()
	for i := range acks {
		k := n[ackNumbers*i:]
		a := Ack{k[0], k[1], k[2], log.Cursor{Generation: k[3], Offset: k[4]}}
		l := dir.Log(i)
		tail := l.Tail() // before the lineage: a generation may begin meanwhile
		if end, ok := endOf(l.Lineage(), a.Generation, tail); !ok || a.Applied > end || a.Durable > a.Applied {
			return fmt.Errorf("ERR acknowledged %d:%d (durable %d) of shard %d, which is no part of its history", a.Generation, a.Applied, a.Durable, i)
		}
		if !l.Before(a.Cut, log.Cursor{Generation: a.Generation, Offset: a.Applied}) {
			a.Cut = log.Cursor{} // of generations that are not on record any more
		}
		acks[i] = a
	}
	s.mu.Lock()
	k := s.links[id]
	if k != nil {
		k.acks, k.acked = acks, time.Now()
		k.heard = k.acked
		s.wakeLocked()
	}
	s.mu.Unlock()
	if k == nil {
		return fmt.Errorf("ERR no replica %.50q is connected", id)
	}
	if s.onAck != nil {
		s.onAck()
	}
	return nil
}

func (s *Source) wakeLocked() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// FollowerInfo is what a source knows of a follower.
type FollowerInfo struct {
	ID    string
	Host  string
	Port  string
	Acks  []Ack         // nil: none has come
	Since time.Duration // since the last one, 0 if none has come
	// Online: it gets, or has asked for, what follows a copy.
	Online bool
	Stock  bool // it is no kevy
	Knows  bool // it has been told of the replication id that is in force
}

// Followers returns the followers that are connected, in the order of their ids.
func (s *Source) Followers() []FollowerInfo {
	id := s.id()
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []FollowerInfo
	for _, k := range s.links {
		at, since := strings.LastIndexByte(k.addr, ':'), time.Duration(0)
		if !k.acked.IsZero() {
			since = time.Since(k.acked)
		}
		out = append(out, FollowerInfo{
			ID: k.id, Host: strings.Trim(k.addr[:at], "[]"), Port: k.addr[at+1:], Acks: k.acks, Online: k.acks != nil || k.online, Since: since, Stock: k.stock, Knows: k.history == id,
		})
	}
	slices.SortFunc(out, func(a, b FollowerInfo) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Good returns how many followers have acknowledged something within the last while.
func (s *Source) Good(within time.Duration) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.links {
		if k.acks != nil && time.Since(k.acked) <= within {
			n++
		}
	}
	return n
}

// Tails returns the cursors behind everything that is appended now.
func (s *Source) Tails() (out []log.Cursor) {
	dir := s.eng.Dir()
	for i := range dir.Shards() {
		out = append(out, dir.Log(i).Tail())
	}
	return out
}

// Reached returns how many followers have everything before the cursors within a cut that they hold, and with durable have synced it.
func (s *Source) Reached(to []log.Cursor, durable bool) int {
	n, _ := s.reached(to, durable)
	return n
}

func (s *Source) reached(to []log.Cursor, durable bool) (n int, moved <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.links {
		if s.covers(k.acks, to, durable) {
			n++
		}
	}
	return n, s.moved
}

// covers reports whether everything before the cursors is within the cut that is acknowledged, and with durable is durable as well.
func (s *Source) covers(acks []Ack, to []log.Cursor, durable bool) bool {
	if acks == nil {
		return false
	}
	dir := s.eng.Dir()
	for i, c := range to {
		l, a := dir.Log(i), &acks[i]
		if !l.Before(c, a.Cut) || durable && !l.Before(c, log.Cursor{Generation: a.Generation, Offset: a.Durable}) {
			return false
		}
	}
	return true
}

// Await waits until so many followers have reached the cursors, ctx ends, or dismissed is closed: then ok is false. It returns how many have.
func (s *Source) Await(ctx context.Context, dismissed <-chan struct{}, followers int, to []log.Cursor, durable bool) (n int, ok bool) {
	defer s.urge()()
	for asked := durable; ; asked = true { // nobody that is asked says what is durable
		n, moved := s.reached(to, durable)
		if n >= followers {
			return n, true
		}
		if !asked {
			s.askAcks(to)
		}
		select {
		case <-moved:
		case <-dismissed:
			return n, false
		case <-ctx.Done():
			return s.Reached(to, durable), true
		}
	}
}

// urge ends the pauses of gathering until done is called: somebody waits for what would be gathered.
func (s *Source) urge() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaited++
	close(s.urged)
	s.urged = make(chan struct{})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.awaited--
	}
}

// askAcks has stock replicas acknowledge what is before the cursors as soon as they have it; by themselves they acknowledge once a second.
func (s *Source) askAcks(to []log.Cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		if k := st.server; k != nil {
			k.asked = to // it covers what was asked for before
			select {
			case k.kick <- struct{}{}:
			default:
			}
		}
	}
}

// Dismissed returns what the next Dismiss closes.
func (s *Source) Dismissed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dismissed
}

// Dismiss ends all that wait for acknowledgements: the store follows another one now, and what it has written may be no part of its history much longer.
func (s *Source) Dismiss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.dismissed)
	s.dismissed = make(chan struct{})
}
