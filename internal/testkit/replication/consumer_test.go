package replication

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/testkit/feed"
	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// history is what all consumers have seen: a cursor names the same frame wherever and whenever it is read.
type history struct {
	seed maphash.Seed

	mu     sync.Mutex
	frames map[int]map[feed.Cursor]uint64 // by shard; hashes
	bad    []string
}

func newHistory() *history {
	return &history{seed: maphash.MakeSeed(), frames: map[int]map[feed.Cursor]uint64{0: {}, 1: {}}}
}

// add takes in frames, and returns how many of them are known already.
func (h *history) add(who string, shard int, frames []feed.Frame) (known int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range frames {
		sum := maphash.String(h.seed, f.Raw)
		was, ok := h.frames[shard][f.Cursor]
		if ok && was != sum {
			h.bad = append(h.bad, fmt.Sprintf("%s: frame %v of shard %d is not what another consumer has seen: %.200q", who, f.Cursor, shard, f.Raw))
		}
		if ok {
			known++
		}
		h.frames[shard][f.Cursor] = sum
	}
	return known
}

func (h *history) fail(who string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bad = append(h.bad, who+": "+err.Error())
}

// consumer reads a shard's feed, through everything that happens, until stop.
type consumer struct {
	name  string
	from  proc.Host
	shard int
	moves bool // from server to server
	seen  *history
	at    atomic.Pointer[node]

	mu      sync.Mutex
	cursor  feed.Cursor
	resyncs int
}

func (c *consumer) state() (feed.Cursor, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cursor, c.resyncs
}

// run reads on. feed.Read checks for gaps.
func (c *consumer) run(stop <-chan struct{}) {
	var conn *wire.Conn
	var at *node
	for {
		select {
		case <-stop:
			if conn != nil {
				conn.Close()
			}
			return
		default:
		}
		if to := c.at.Load(); conn == nil || to != at {
			if conn != nil {
				conn.Close()
			}
			at = to
			var err error
			if conn, err = at.dialFrom(c.from); err != nil {
				conn = nil
				time.Sleep(20 * time.Millisecond) // the server is down, or not to be reached
				continue
			}
			conn.Timeout = 2 * time.Second
		}
		if !c.step(conn) {
			conn.Close()
			conn = nil
		}
	}
}

// step reads once. False: the connection is of no use.
func (c *consumer) step(conn *wire.Conn) bool {
	cursor, _ := c.state()
	frames, next, err := feed.Read(conn, c.shard, cursor, "BLOCK", "100", "COUNT", "512", "WITHMETA", "LINEAGE")
	var resync *feed.ResyncError
	switch {
	case err == nil:
		c.seen.add(c.name, c.shard, frames)
		c.mu.Lock()
		c.cursor = next
		c.mu.Unlock()
	case errors.As(err, &resync):
		c.mu.Lock()
		c.cursor = resync.Tail
		c.resyncs++
		c.mu.Unlock()
	case errors.Is(err, feed.ErrAhead): // this server has still to come there
		time.Sleep(10 * time.Millisecond)
	case wire.IsConnError(err) || strings.Contains(err.Error(), "LOADING"):
		return false
	default:
		c.seen.fail(c.name, err)
		return false
	}
	return true
}
