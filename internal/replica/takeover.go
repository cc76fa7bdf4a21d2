package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/log"
)

// TakeOver is the order to a source, which follows this store so far, to be the primary from now on. This store's log is closed to writes:
// where it ends now is its end.
type TakeOver struct {
	ID    string // this store's replication id
	Force bool   // although the other one may lack frames
	// Done is called once: with nil when the other one has taken over, or with why it has refused, and then nothing more is tried. It must not block.
	Done func(error)
}

// errNotTaken ends a follower whose source has refused to take over.
var errNotTaken = errors.New("the replica refuses to take over")

// handOver has the source take over, unless it has. An order whose reply is lost is given again.
func (f *Follower) handOver(c *client.Conn) error {
	t := f.o.TakeOver
	if t == nil || f.taken {
		return nil
	}
	args := []string{"REPL.TAKEOVER", t.ID, exact}
	if t.Force {
		args[2] = force
	}
	ends := make([]log.Cursor, f.o.Engine.Shards())
	for i := range ends {
		at := f.o.Engine.Dir().Log(i).Tail()
		ends[i] = at
		args = append(args, strconv.FormatUint(at.Generation, 10), strconv.FormatUint(at.Offset, 10))
	}
	_, err := c.Do(f.o.Timeout(), args...)
	var reply client.Error
	switch {
	case errors.As(err, &reply):
		t.Done(reply)
		return fmt.Errorf("%w: %w", errNotTaken, err)
	case err != nil:
		return err
	}
	f.taken = true
	t.Done(nil)
	if t.Force {
		return nil
	}
	_, err = f.o.Engine.HoldCut(ends) // the other one has just that
	return err
}

const exact, force = "EXACT", "FORCE"

// Order is what a REPL.TAKEOVER asks for.
type Order struct {
	ID    string // replication id of who gives it
	Force bool
	At    []log.Cursor // where the log of who gives it ends
}

// ParseTakeOver reads REPL.TAKEOVER's arguments.
func ParseTakeOver(args [][]byte, shards int) (o Order, err error) {
	n, err := uints(args[3:])
	if err != nil {
		return o, err
	}
	mode := strings.ToUpper(string(args[2]))
	if len(n) != 2*shards || mode != exact && mode != force {
		return o, fmt.Errorf("ERR REPL.TAKEOVER %.20s with %d numbers for %d shards", mode, len(n), shards)
	}
	o.ID, o.Force = string(args[1]), mode == force
	for i := range shards {
		o.At = append(o.At, log.Cursor{Generation: n[2*i], Offset: n[2*i+1]})
	}
	return o, nil
}

// Obeyed reports whether a store that follows nobody has done so: its history was its own from there on. tails and lineages are by shard.
func (o *Order) Obeyed(dir *log.Dir) bool {
	for i, at := range o.At {
		if !slices.ContainsFunc(dir.Lineage(i), func(g log.Lineage) bool {
			return g.Cause == log.CausePromotion && g.Parent == at.Generation &&
				(g.ParentOffset == at.Offset || o.Force && g.ParentOffset < at.Offset)
		}) {
			return false
		}
	}
	return true
}

// InStep waits until a follower that is a kevy, and knows this store's replication id, by which it obeys, has applied everything that is appended, and returns it: any, or the one at host and port.
func (s *Source) InStep(ctx context.Context, host, port string) (f FollowerInfo, err error) {
	for {
		s.mu.Lock()
		moved := s.moved
		s.mu.Unlock()
		tails := s.Tails()
		for _, f := range s.Followers() {
			if f.CanTakeOver() && f.Knows && (host == "" || f.Is(host, port)) && s.covers(f.Acks, tails, false) {
				return f, nil
			}
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return f, context.Cause(ctx)
		}
	}
}

// Is reports whether others reach the follower at host and port.
func (f *FollowerInfo) Is(host, port string) bool {
	return strings.EqualFold(f.Host, host) && f.Port == port
}

// CanTakeOver reports whether the follower can be a primary: it is a kevy that others reach.
func (f *FollowerInfo) CanTakeOver() bool { return !f.Stock && f.Port != "0" }
