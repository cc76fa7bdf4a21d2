package killloop

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// cursor is a position in a shard's feed.
type cursor struct{ gen, off int64 }

// generation is one entry of FEED.INFO's lineage.
type generation struct {
	gen, parent, parentOff int64
	cause                  string
}

// shardInfo is what FEED.INFO says of one shard.
type shardInfo struct {
	cursor
	base, durable int64
	lineage       []generation
}

func intField(r *wire.Reply, name string) (int64, error) {
	f, ok := r.Field(name)
	if !ok {
		return 0, fmt.Errorf("no field %q in %s", name, r.String())
	}
	n, ok := f.Int()
	if !ok {
		return 0, fmt.Errorf("field %q is %q", name, f.Text())
	}
	return n, nil
}

func intFields(r *wire.Reply, into map[string]*int64) error {
	for name, p := range into {
		n, err := intField(r, name)
		if err != nil {
			return err
		}
		*p = n
	}
	return nil
}

func feedInfo(c *wire.Conn, shard int) (shardInfo, error) {
	var s shardInfo
	r, err := c.Must("FEED.INFO", strconv.Itoa(shard))
	if err != nil {
		return s, err
	}
	err = intFields(&r, map[string]*int64{
		"generation": &s.gen, "tail": &s.off, "base": &s.base, "durable": &s.durable,
	})
	if err != nil {
		return s, err
	}
	lineage, ok := r.Field("lineage")
	if !ok {
		return s, fmt.Errorf("no lineage in %s", r.String())
	}
	for i := range lineage.Elems {
		e := &lineage.Elems[i]
		var g generation
		err := intFields(e, map[string]*int64{
			"generation": &g.gen, "parent_generation": &g.parent, "parent_offset": &g.parentOff,
		})
		if err != nil {
			return s, err
		}
		if cause, ok := e.Field("cause"); ok {
			g.cause = cause.Text()
		}
		s.lineage = append(s.lineage, g)
	}
	return s, nil
}

// feedTail returns the cursor of a shard's next frame.
func feedTail(c *wire.Conn, shard int) (cursor, error) {
	r, err := c.Must("FEED.TAIL", strconv.Itoa(shard))
	if err != nil {
		return cursor{}, err
	}
	if len(r.Elems) != 2 {
		return cursor{}, fmt.Errorf("FEED.TAIL answers %s", r.String())
	}
	gen, ok1 := r.Elems[0].Int()
	off, ok2 := r.Elems[1].Int()
	if !ok1 || !ok2 {
		return cursor{}, fmt.Errorf("FEED.TAIL answers %s", r.String())
	}
	return cursor{gen, off}, nil
}

// feedRead reads frames from a cursor on and returns them in RESP with the next cursor. It checks
// that the offsets have no holes.
func feedRead(c *wire.Conn, shard int, from cursor, more ...string) ([]string, cursor, error) {
	args := []string{
		"FEED.READ", strconv.Itoa(shard),
		strconv.FormatInt(from.gen, 10), strconv.FormatInt(from.off, 10),
	}
	r, err := c.Must(append(args, more...)...)
	if err != nil {
		return nil, from, err
	}
	if len(r.Elems) != 3 {
		return nil, from, fmt.Errorf("FEED.READ answers %s", r.String())
	}
	next := from
	next.off, _ = r.Elems[1].Int()
	var frames []string
	want := from.off
	for i := range r.Elems[2].Elems {
		f := &r.Elems[2].Elems[i]
		off, _ := f.Elems[0].Int()
		if off != want {
			return nil, from, fmt.Errorf("shard %d: frame %d where %d was due", shard, off, want)
		}
		want++
		frames = append(frames, string(f.Elems[1].Raw))
	}
	if want != next.off {
		return nil, from, fmt.Errorf("shard %d: next cursor %d after frames up to %d", shard, next.off, want)
	}
	return frames, next, nil
}

// follower reads one shard's feed until the server goes.
type follower struct {
	seen cursor
	err  error // other than the connection's end
}

func follow(addr string, shard int, from cursor, wg *sync.WaitGroup) (*follower, error) {
	c, err := wire.Dial(addr)
	if err != nil {
		return nil, err
	}
	f := &follower{seen: from}
	wg.Go(func() {
		defer c.Close()
		for {
			_, next, err := feedRead(c, shard, f.seen, "BLOCK", "50", "COUNT", "100")
			if err != nil {
				if !isConnError(err) {
					f.err = err
				}
				return
			}
			f.seen = next
		}
	})
	return f, nil
}
