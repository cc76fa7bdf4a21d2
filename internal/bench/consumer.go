package bench

import (
	"fmt"
	"strconv"
	"time"
)

// readCount is the COUNT of every FEED.READ here: the most that the feed gives at once.
const readCount = 4096

// cursor is a place in one shard's stream.
type cursor struct{ generation, offset uint64 }

// span is the part of a shard's stream that FEED.READ serves.
type span struct {
	shard      int
	generation uint64
	base, tail uint64
}

// spans asks for each shard's span.
func spans(addr string) ([]span, error) {
	v, err := Ask(addr, "FEED.INFO")
	if err != nil {
		return nil, err
	}
	list, _ := v.([]any)
	var out []span
	for i, m := range list {
		fields := make(map[string]uint64)
		pairs, _ := m.([]any)
		for j := 0; j+1 < len(pairs); j += 2 {
			name, _ := pairs[j].(string)
			n, _ := pairs[j+1].(int64)
			fields[name] = uint64(n)
		}
		out = append(out, span{
			shard: i, generation: fields["generation"], base: fields["base"], tail: fields["tail"],
		})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: FEED.INFO: %v", errReply, v)
	}
	return out, nil
}

// consumer reads one shard's stream over a connection of its own.
type consumer struct {
	*conn
	shard  int
	at     cursor
	prefix string
	block  time.Duration // 0: FEED.READ answers at once
}

// newConsumer connects a consumer of the shard.
func newConsumer(addr string, shard int, at cursor) (*consumer, error) {
	c, err := dialSize(addr, 256<<10)
	if err != nil {
		return nil, err
	}
	return &consumer{conn: c, shard: shard, at: at}, nil
}

// request sends FEED.READ from the cursor.
func (c *consumer) request() error {
	args := []string{
		"FEED.READ", strconv.Itoa(c.shard), strconv.FormatUint(c.at.generation, 10),
		strconv.FormatUint(c.at.offset, 10), "COUNT", strconv.Itoa(readCount),
	}
	if c.prefix != "" {
		args = append(args, "PREFIX", c.prefix)
	}
	if c.block > 0 {
		args = append(args, "BLOCK", strconv.FormatInt(c.block.Milliseconds(), 10))
	}
	if err := c.nc.SetDeadline(time.Now().Add(ioLimit + c.block)); err != nil {
		return err
	}
	c.out = appendCommand(c.out[:0], args...)
	return c.send()
}

// head reads what comes before the frames: it moves the cursor and returns how many follow.
func (c *consumer) head() (frames int, err error) {
	var n [4]int64
	for i, want := range "*::*" {
		kind, v, text, err := c.header()
		switch {
		case err != nil:
			return 0, err
		case kind == '-':
			return 0, ReplyError(text)
		case kind != byte(want):
			return 0, fmt.Errorf("%w: FEED.READ: kind %q", errReply, kind)
		}
		n[i] = v
	}
	c.at = cursor{uint64(n[1]), uint64(n[2])}
	return int(n[3]), nil
}

// skipFrames passes over n frames.
func (c *consumer) skipFrames(n int) error {
	for range n {
		if err := c.skip(); err != nil {
			return err
		}
	}
	return nil
}

// values reads n frames and calls f with the last argument of each, if that is long enough to be one
// that this package wrote.
func (c *consumer) values(n int, f func(value []byte)) error {
	for range n {
		var v []byte
		left := int64(1)
		for ; left > 0; left-- {
			kind, n, _, err := c.header()
			switch {
			case err != nil:
				return err
			case kind == '*':
				left += n
			case kind == '$':
				if v, err = c.take(int(n) + 2); err != nil {
					return err
				}
				v = v[:n]
			}
		}
		f(v)
	}
	return nil
}
