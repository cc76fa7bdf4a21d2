package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// DumpOptions say which frames to dump.
type DumpOptions struct {
	Shard  int         // -1: all
	From   *log.Cursor // of Shard; nil: the oldest on disk
	To     *log.Cursor // of Shard, the first frame not dumped; nil: the end
	Prefix []byte      // only frames of keys below it, and those that name no single key
	Meter  *Meter      // may be nil
}

// Dumped is one frame of a dump. It is valid until the function it was passed to returns.
type Dumped struct {
	Shard int
	*log.Frame
	Argv [][]byte
	// Twin is set for a FLUSHALL of which another shard's part is still to come: for a reader without shards that
	// one counts.
	Twin bool
}

// Dump calls f with frames in an order in which a server without shards comes to the same state: a group over
// several shards comes when everything before each of its parts has come, all parts together; other groups come in
// the order of their times.
func (h *History) Dump(o DumpOptions, f func(*Dumped) error) error {
	d := &dumper{f: f, prefix: o.Prefix, heads: make([]*head, h.Shards()), t: tick{m: o.Meter}}
	o.Meter.Begin("dumping", 0)
	defer d.close()
	defer d.t.end()
	for i := range h.chains {
		if o.Shard >= 0 && o.Shard != i {
			continue
		}
		if err := d.open(h, i, &o); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
	}
	for {
		i := d.next()
		if i < 0 {
			return nil
		}
		if err := d.group(i); err != nil {
			return err
		}
	}
}

// head is the next frame of a shard.
type head struct {
	shard int
	r     *log.Reader
	f     *log.Frame // nil: there is none
}

func (x *head) advance() (err error) {
	x.f, err = x.r.Next()
	if errors.Is(err, io.EOF) {
		x.f, err = nil, nil
	}
	return err
}

type dumper struct {
	f      func(*Dumped) error
	prefix []byte
	heads  []*head // by shard; nil: not dumped
	t      tick
	argv   [][]byte
}

func (d *dumper) open(h *History, i int, o *DumpOptions) error {
	from := h.dir.Log(i).Oldest()
	if o.From != nil {
		from = *o.From
	}
	start, err := h.chains[i].pos(from)
	if err != nil {
		return err
	}
	opts := log.ReaderOptions{Limit: log.LimitWritten, Follow: true}
	if o.To != nil {
		end, err := h.chains[i].pos(*o.To)
		if err != nil {
			return err
		}
		if end < start {
			return noPointf("%s is behind %s", from, o.To)
		}
		opts.Limit, opts.End = log.LimitEnd, *o.To
	}
	r, err := h.dir.Log(i).NewReader(from, wanted(opts, o.Prefix))
	if err != nil {
		return err
	}
	d.heads[i] = &head{shard: i, r: r}
	return d.heads[i].advance()
}

func (d *dumper) close() {
	for _, x := range d.heads {
		if x != nil {
			x.r.Close()
		}
	}
}

// next returns the shard whose group comes next, -1: none.
func (d *dumper) next() int {
	best := -1
	for i, x := range d.heads {
		if x == nil || x.f == nil || !d.ready(x.f) {
			continue
		}
		if best < 0 || x.f.TimeMS < d.heads[best].f.TimeMS {
			best = i
		}
	}
	return best
}

// ready reports whether every part of the frame's group that is dumped is at the head of its shard. Ids grow in every
// shard, so the group of the smallest one is ready when all shards stand before such groups: one always is.
func (d *dumper) ready(f *log.Frame) bool {
	for i, x := range d.heads {
		if f.Mask&(1<<i) != 0 && x != nil && x.f != nil && x.f.Txn < f.Txn {
			return false
		}
	}
	return true
}

// group dumps the group at the head of shard i, with all its parts. Of a FLUSHALL, which ends every part, only the
// last one is no twin: it comes behind what precedes it in each part.
func (d *dumper) group(i int) error {
	parts := []*head{d.heads[i]}
	if f := d.heads[i].f; f.Txn != 0 {
		parts = parts[:0]
		for n, x := range d.heads {
			if f.Mask&(1<<n) != 0 && x != nil && x.f != nil && x.f.Txn == f.Txn {
				parts = append(parts, x)
			}
		}
	}
	for n, x := range parts {
		for last := false; !last && x.f != nil; {
			last = x.f.GroupLast
			if err := d.frame(x, n < len(parts)-1); err != nil {
				return err
			}
			if err := x.advance(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *dumper) frame(x *head, more bool) (err error) {
	d.t.one()
	if x.f.Single && !bytes.HasPrefix(x.f.Key, d.prefix) {
		return nil
	}
	if d.argv, err = effect.DecodeArgv(x.f.Payload, d.argv[:0]); err != nil {
		return fmt.Errorf("shard %d: frame %s: %w", x.shard, x.f.Cursor, err)
	}
	return d.f(&Dumped{Shard: x.shard, Frame: x.f, Argv: d.argv, Twin: more && x.f.Op == effect.FlushAll})
}
