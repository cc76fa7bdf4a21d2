package kevy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/feed"
	"github.com/kevydb/kevy/log"
)

// mirrorCount is how many keys or frames a mirror asks for at a time.
const mirrorCount = 4096

// source is the store that one shard of a mirror copies from. The errors are those of Store: *ResyncError, ErrCursorAhead,
// ErrFeedDisabled, ErrClosed; errShardsChanged; client.Error for another reply; anything else is the network's.
type source interface {
	shards(ctx context.Context) (int, error)
	tail(ctx context.Context, shard int) (log.Cursor, error)
	// scan is FEED.SCAN.
	scan(ctx context.Context, shard int, start []byte) (Scan, error)
	// read is FEED.READ with LINEAGE in whole groups: all changes are of the generation of Next. It waits up to block
	// for one; not at all if block is 0.
	read(ctx context.Context, shard int, at log.Cursor, block time.Duration) (Batch, error)
	// drop gives up the connection, if there is one.
	drop()
}

// storeSource is an embedded store.
type storeSource struct {
	m        *Mirror
	s        *Store
	prefixes [][]byte
}

func (s *storeSource) shards(context.Context) (int, error) { return s.s.FeedShards(), nil }

func (s *storeSource) tail(_ context.Context, shard int) (log.Cursor, error) {
	return s.s.Shard(shard).ChangesTail()
}

func (s *storeSource) scan(_ context.Context, shard int, start []byte) (Scan, error) {
	return s.s.Shard(shard).ChangesScan(start, s.m.ask(), s.prefixes...)
}

func (s *storeSource) read(ctx context.Context, shard int, at log.Cursor, block time.Duration) (Batch, error) {
	if block == 0 {
		block = -1
	}
	filter := feed.Filter{Count: s.m.ask(), Prefixes: s.prefixes}
	return s.s.Shard(shard).wait(ctx, feed.Request{Cursor: at, Filter: filter, Block: block, Lineage: true, WithMeta: true})
}

func (s *storeSource) drop() {}

// replyLimit is how long a server may take for a reply, besides what it was told to wait.
const replyLimit = 30 * time.Second

// wireSource is a server.
type wireSource struct {
	m        *Mirror
	n        int // shards that the server had; 0: not known yet
	prefixes [][]byte
	conn     *client.Conn
}

func (s *wireSource) drop() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// connect makes a connection if there is none.
func (s *wireSource) connect(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, conn.Close)
	defer stop()
	if err := s.greet(conn); err != nil {
		conn.Close()
		return err
	}
	s.conn = conn
	return nil
}

func (s *wireSource) dial(ctx context.Context) (*client.Conn, error) {
	if s.m.Dial == nil {
		return client.Dial(ctx, s.m.Addr)
	}
	nc, err := s.m.Dial(ctx, s.m.Addr)
	if err != nil {
		return nil, err
	}
	return client.New(nc), nil
}

// greet logs in and checks that the shards are still as many.
func (s *wireSource) greet(conn *client.Conn) error {
	if err := conn.Login(replyLimit, s.m.User, s.m.Password); err != nil {
		return err
	}
	if s.n == 0 {
		return nil
	}
	v, err := conn.Do(replyLimit, "FEED.SHARDS")
	if n, ok := v.(int64); err == nil && (!ok || int(n) != s.n) {
		return errShardsChanged
	}
	return err
}

// ask sends a command and has read take the reply. The connection is dropped unless both come to their ends.
func (s *wireSource) ask(ctx context.Context, wait time.Duration, read func(c *client.Conn) error, args ...[]byte) error {
	err := s.connect(ctx)
	if err == nil {
		stop := context.AfterFunc(ctx, s.conn.Close)
		defer stop()
		if err = s.conn.Send(replyLimit+wait, args...); err == nil {
			err = read(s.conn)
		}
	}
	var reply client.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		s.drop()
		return ctx.Err()
	case !errors.As(err, &reply):
		s.drop()
		return err
	}
	return feedError(reply)
}

// feedError makes an error of a FEED command what the embedded store would have returned.
func feedError(reply client.Error) error {
	text := string(reply)
	var r ResyncError
	switch {
	case strings.HasPrefix(text, "FEEDRESYNC "):
		if _, err := fmt.Sscanf(text, "FEEDRESYNC %d %d", &r.Generation, &r.Tail); err != nil {
			return reply
		}
		return &r
	case text == "ERR feed cursor ahead of stream":
		return ErrCursorAhead
	case strings.HasPrefix(text, "ERR feed disabled"):
		return fmt.Errorf("%w (%s)", ErrFeedDisabled, text)
	case text == "ERR shard out of range":
		return errShardsChanged
	}
	return reply
}

func (s *wireSource) shards(ctx context.Context) (n int, err error) {
	err = s.ask(ctx, 0, func(c *client.Conn) error {
		v, err := c.Uint()
		if n = int(v); err == nil && (v < 1 || v > 1<<16) { //nolint:gosec // checked
			return fmt.Errorf("%w: %d shards", client.ErrProtocol, v)
		}
		return err
	}, word("FEED.SHARDS"))
	return n, err
}

func (s *wireSource) tail(ctx context.Context, shard int) (at log.Cursor, err error) {
	err = s.ask(ctx, 0, func(c *client.Conn) error {
		err := c.Tuple(2)
		if err == nil {
			at, err = readCursor(c)
		}
		return err
	}, word("FEED.TAIL"), num(int64(shard)))
	return at, err
}

func readCursor(c *client.Conn) (at log.Cursor, err error) {
	if at.Generation, err = c.Uint(); err == nil {
		at.Offset, err = c.Uint()
	}
	return at, err
}

// withPrefixes adds the mirror's prefixes to a command.
func (s *wireSource) withPrefixes(args ...[]byte) [][]byte {
	for _, p := range s.prefixes {
		args = append(args, word("PREFIX"), p)
	}
	return args
}

func (s *wireSource) scan(ctx context.Context, shard int, start []byte) (got Scan, err error) {
	args := s.withPrefixes(word("FEED.SCAN"), num(int64(shard)), start, word("COUNT"), num(int64(s.m.ask())))
	err = s.ask(ctx, 0, func(c *client.Conn) error { got, err = readScan(c); return err }, args...)
	return got, err
}

func readScan(c *client.Conn) (got Scan, err error) {
	if err = c.Tuple(4); err != nil {
		return got, err
	}
	if got.Cursor, err = readCursor(c); err != nil {
		return got, err
	}
	if got.Next, err = c.Bulk(); err != nil {
		return got, err
	}
	n, err := c.Array()
	for i := 0; i < n && err == nil; i++ {
		var argv [][]byte
		argv, err = readArgv(c)
		got.Frames = append(got.Frames, argv)
	}
	return got, err
}

func readArgv(c *client.Conn) (argv [][]byte, err error) {
	n, err := c.Array()
	for i := 0; i < n && err == nil; i++ {
		var a []byte
		a, err = c.Bulk()
		argv = append(argv, a)
	}
	return argv, err
}

func (s *wireSource) read(ctx context.Context, shard int, at log.Cursor, block time.Duration) (got Batch, err error) {
	args := s.withPrefixes(word("FEED.READ"), num(int64(shard)),
		strconv.AppendUint(nil, at.Generation, 10), strconv.AppendUint(nil, at.Offset, 10),
		word("COUNT"), num(int64(s.m.ask())), word("WITHMETA"), word("LINEAGE"))
	if block > 0 {
		args = append(args, word("BLOCK"), num(max(block.Milliseconds(), 1)))
	}
	err = s.ask(ctx, block, func(c *client.Conn) error { got, err = readBatch(c); return err }, args...)
	return got, err
}

func readBatch(c *client.Conn) (got Batch, err error) {
	if err = c.Tuple(3); err != nil {
		return got, err
	}
	if got.Next, err = readCursor(c); err != nil {
		return got, err
	}
	n, err := c.Array()
	for i := 0; i < n && err == nil; i++ {
		var ch Change
		ch, err = readChange(c)
		got.Changes = append(got.Changes, ch)
	}
	return got, err
}

// readChange reads a frame of FEED.READ WITHMETA.
func readChange(c *client.Conn) (ch Change, err error) {
	if err = c.Tuple(3); err != nil {
		return ch, err
	}
	if ch.Offset, err = c.Uint(); err != nil {
		return ch, err
	}
	if ch.Argv, err = readArgv(c); err != nil {
		return ch, err
	}
	n, err := c.Array()
	for i := 0; i < n/2 && err == nil; i++ {
		err = readMeta(c, &ch)
	}
	return ch, err
}

// readMeta reads a pair of the map of a frame.
func readMeta(c *client.Conn, ch *Change) error {
	name, err := c.Bulk()
	if err != nil {
		return err
	}
	switch string(name) {
	case "time":
		n, err := c.Uint()
		ch.TimeMS = int64(n) //nolint:gosec // 48 bits
		return err
	case "cause":
		cause, err := c.Bulk()
		ch.Cause = string(cause)
		return err
	case "group":
		if err := c.Tuple(2); err != nil {
			return err
		}
		if ch.Group, err = c.Uint(); err != nil {
			return err
		}
		_, err := c.Uint()
		return err
	case "txn":
		ch.Txn, err = c.Uint()
		return err
	}
	_, err = c.Skip()
	return err
}
