package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/log"
)

const (
	blockMS    = 5000 // one FEED.READ waits this long at most, so that a dead connection is noticed
	replyLimit = 30 * time.Second
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

var errResync = errors.New("the feed cannot be resumed")

// follower follows one shard.
type follower struct {
	o      *feedOptions
	p      *printer
	shard  int
	cursor log.Cursor
	known  bool // cursor is set

	conn    *client.Conn
	backoff time.Duration
	lost    bool // a lost connection has been told
}

// run prints changes until ctx ends (nil) or it cannot go on.
func (f *follower) run(ctx context.Context) error {
	defer f.drop()
	for ctx.Err() == nil {
		err := f.step(ctx)
		if err == nil {
			f.backoff = 0
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		if text, ok := resyncText(err); ok {
			if err := f.resync(text); err != nil {
				return err
			}
			continue
		}
		if !f.retry(ctx, err) {
			return err
		}
	}
	return nil
}

// step reads one batch and prints it.
func (f *follower) step(ctx context.Context) error {
	shard := strconv.Itoa(f.shard)
	if !f.known {
		v, err := f.ask(ctx, "FEED.TAIL", shard)
		if err != nil {
			return err
		}
		if f.cursor, err = cursorOf(v); err != nil {
			return err
		}
		f.known = true
	}
	args := []string{
		"FEED.READ", shard, strconv.FormatUint(f.cursor.Generation, 10), strconv.FormatUint(f.cursor.Offset, 10),
		"BLOCK", strconv.Itoa(blockMS), "WITHMETA",
	}
	for _, prefix := range f.o.prefixes {
		args = append(args, "PREFIX", prefix)
	}
	v, err := f.ask(ctx, args...)
	if err != nil {
		return err
	}
	reply, ok := v.([]any)
	if !ok || len(reply) != 3 {
		return fmt.Errorf("FEED.READ: unexpected reply")
	}
	next, err := cursorOf(reply[:2])
	if err != nil {
		return err
	}
	frames, _ := reply[2].([]any)
	for _, fr := range frames {
		if err := f.print(fr); err != nil {
			return err
		}
	}
	f.cursor = next
	return nil
}

func cursorOf(v any) (log.Cursor, error) {
	a, ok := v.([]any)
	if !ok || len(a) != 2 {
		return log.Cursor{}, errors.New("unexpected reply where a cursor should be")
	}
	gen, ok1 := a[0].(int64)
	off, ok2 := a[1].(int64)
	if !ok1 || !ok2 {
		return log.Cursor{}, errors.New("unexpected reply where a cursor should be")
	}
	return log.Cursor{Generation: uint64(gen), Offset: uint64(off)}, nil //nolint:gosec // never negative
}

// ask sends a command, over a new connection if there is none.
func (f *follower) ask(ctx context.Context, args ...string) (any, error) {
	if f.conn == nil {
		if err := f.connect(ctx); err != nil {
			return nil, err
		}
	}
	stop := context.AfterFunc(ctx, f.conn.Close)
	defer stop()
	v, err := f.conn.Do(replyLimit, args...)
	var reply client.Error
	if err != nil && !errors.As(err, &reply) {
		f.drop()
	}
	return v, err
}

func (f *follower) connect(ctx context.Context) error {
	c, err := f.o.server.connect(ctx)
	if err != nil {
		return err
	}
	f.conn = c
	if f.lost {
		f.p.note("shard %d: connected to %s again", f.shard, f.o.server.addr)
		f.lost = false
	}
	return nil
}

func (f *follower) drop() {
	if f.conn != nil {
		f.conn.Close()
		f.conn = nil
	}
}

// retry waits before the next try and reports whether there is any point in one: an error reply
// stays one, a lost connection may come back.
func (f *follower) retry(ctx context.Context, err error) bool {
	var reply client.Error
	if errors.As(err, &reply) && !strings.HasPrefix(string(reply), "LOADING") &&
		!strings.Contains(string(reply), "max number of clients") {
		if strings.HasPrefix(string(reply), "ERR the store is closing") {
			f.drop()
		} else {
			return false
		}
	}
	if !f.lost {
		f.p.note("shard %d: %s: %v; trying again until it answers", f.shard, f.o.server.addr, err)
		f.lost = true
	}
	f.backoff = min(max(2*f.backoff, minBackoff), maxBackoff)
	wait := f.backoff/2 + rand.N(f.backoff/2) //nolint:gosec // spreads clients
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}

// resyncText returns what follows FEEDRESYNC in an error reply.
func resyncText(err error) (string, bool) {
	var reply client.Error
	if !errors.As(err, &reply) {
		return "", false
	}
	return strings.CutPrefix(string(reply), "FEEDRESYNC ")
}

// resync says that changes may have been missed, and with --continue sets the cursor to go on.
func (f *follower) resync(text string) error {
	next, err := log.ParseCursor(strings.ReplaceAll(text, " ", ":"))
	if err != nil {
		return fmt.Errorf("FEEDRESYNC %s: %w", text, err)
	}
	f.p.note("shard %d: FEEDRESYNC: the server cannot go on from %s: its history was replaced there, or its feed "+
		"window has moved on. Changes may be missing: read the keys anew, then resume with --shard %d --from %s",
		f.shard, f.cursor, f.shard, next)
	if !f.o.goOn {
		return errResync
	}
	if f.o.json {
		data, err := json.Marshal(map[string]any{
			"shard": f.shard, "resync": map[string]any{"from": f.cursor.String(), "to": next.String()},
		})
		if err != nil {
			return err
		}
		if err := f.p.line(string(data)); err != nil {
			return err
		}
	}
	f.cursor = next
	return nil
}

// change is one frame as --json prints it.
type change struct {
	Shard      int      `json:"shard"`
	Generation uint64   `json:"generation"`
	Offset     int64    `json:"offset"`
	Time       int64    `json:"time"` // unix ms
	Cause      string   `json:"cause"`
	Group      []int64  `json:"group,omitempty"`       // first and last offset
	First      *uint64  `json:"group_first,omitempty"` // of a dump: the first offset of its group
	Txn        uint64   `json:"txn,omitempty"`
	Argv       []string `json:"argv"`
	// Raw has the arguments as bytes (base64) if they are not all UTF-8.
	Raw [][]byte `json:"argv_base64,omitempty"`
}

func (f *follower) print(frame any) error {
	c, err := f.parse(frame)
	if err != nil {
		return err
	}
	line, err := c.line(f.o.json)
	if err != nil {
		return err
	}
	return f.p.line(line)
}

// line spells the change for people, or as a JSON object.
func (c *change) line(asJSON bool) (string, error) {
	if !asJSON {
		return c.text(), nil
	}
	for _, a := range c.Argv {
		if !utf8.ValidString(a) {
			for _, a := range c.Argv {
				c.Raw = append(c.Raw, []byte(a))
			}
			break
		}
	}
	data, err := json.Marshal(c)
	return string(data), err
}

// parse reads a frame of FEED.READ WITHMETA: offset, argv, map.
func (f *follower) parse(frame any) (*change, error) {
	bad := errors.New("FEED.READ: unexpected frame")
	parts, ok := frame.([]any)
	if !ok || len(parts) != 3 {
		return nil, bad
	}
	c := &change{Shard: f.shard, Generation: f.cursor.Generation}
	argv, ok1 := parts[1].([]any)
	meta, ok2 := parts[2].([]any)
	c.Offset, ok = parts[0].(int64)
	if !ok || !ok1 || !ok2 {
		return nil, bad
	}
	for _, a := range argv {
		s, ok := a.(string)
		if !ok {
			return nil, bad
		}
		c.Argv = append(c.Argv, s)
	}
	for i := 0; i+1 < len(meta); i += 2 {
		switch meta[i] {
		case "time":
			c.Time, _ = meta[i+1].(int64)
		case "cause":
			c.Cause, _ = meta[i+1].(string)
		case "group":
			if g, ok := meta[i+1].([]any); ok {
				for _, x := range g {
					n, _ := x.(int64)
					c.Group = append(c.Group, n)
				}
			}
		}
	}
	return c, nil
}

// text is a change on a line for people: shard, cursor, time, cause unless a client's, command.
func (c *change) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d:%d %s", c.Shard, c.Generation, c.Offset,
		time.UnixMilli(c.Time).UTC().Format("2006-01-02T15:04:05.000Z"))
	if c.Cause != "client" {
		b.WriteString(" (" + c.Cause + ")")
	}
	for i, a := range c.Argv {
		if i == 0 {
			b.WriteString(" " + a)
			continue
		}
		b.WriteString(" " + strconv.Quote(a))
	}
	return b.String()
}
