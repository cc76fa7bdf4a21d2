// Package feed reads change feeds for tests, and checks what it reads: offsets have no holes, and the next cursor is behind the last frame.
package feed

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// Cursor is a position in a shard's feed.
type Cursor struct{ Gen, Off int64 }

// Generation is one entry of FEED.INFO's lineage.
type Generation struct {
	Gen, Parent, ParentOff int64
	Cause                  string
}

// Shard is what FEED.INFO says of one shard.
type Shard struct {
	Cursor        // its tail
	Base, Durable int64
	Lineage       []Generation
}

// ErrAhead is the class of the error reply to a cursor that the server's log has not come to.
var ErrAhead = errors.New("feed: cursor ahead of stream")

// ResyncError is the reply to a cursor that is not served: the reader has missed something, and goes on at Tail.
type ResyncError struct{ Tail Cursor }

func (e *ResyncError) Error() string { return fmt.Sprintf("feed: resync at %v", e.Tail) }

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

// Info runs FEED.INFO.
func Info(c *wire.Conn, shard int) (Shard, error) {
	var s Shard
	r, err := c.Must("FEED.INFO", strconv.Itoa(shard))
	if err != nil {
		return s, err
	}
	err = intFields(&r, map[string]*int64{
		"generation": &s.Gen, "tail": &s.Off, "base": &s.Base, "durable": &s.Durable,
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
		var g Generation
		err := intFields(e, map[string]*int64{
			"generation": &g.Gen, "parent_generation": &g.Parent, "parent_offset": &g.ParentOff,
		})
		if err != nil {
			return s, err
		}
		if cause, ok := e.Field("cause"); ok {
			g.Cause = cause.Text()
		}
		s.Lineage = append(s.Lineage, g)
	}
	return s, nil
}

// Tail returns the cursor of a shard's next frame.
func Tail(c *wire.Conn, shard int) (Cursor, error) {
	r, err := c.Must("FEED.TAIL", strconv.Itoa(shard))
	if err != nil {
		return Cursor{}, err
	}
	if len(r.Elems) != 2 {
		return Cursor{}, fmt.Errorf("FEED.TAIL answers %s", r.String())
	}
	return cursorOf(&r)
}

func cursorOf(r *wire.Reply) (Cursor, error) {
	gen, ok1 := r.Elems[0].Int()
	off, ok2 := r.Elems[1].Int()
	if !ok1 || !ok2 {
		return Cursor{}, fmt.Errorf("no cursor: %s", r.String())
	}
	return Cursor{gen, off}, nil
}

// Frame is a frame as FEED.READ gives it: all of it but the offset, in RESP.
type Frame struct {
	Cursor Cursor
	Raw    string
}

// Read reads frames from a cursor on, and returns the next cursor. more are further words of FEED.READ, without a prefix. With LINEAGE the
// frames may be those of the next generation.
func Read(c *wire.Conn, shard int, from Cursor, more ...string) ([]Frame, Cursor, error) {
	args := []string{"FEED.READ", strconv.Itoa(shard), strconv.FormatInt(from.Gen, 10), strconv.FormatInt(from.Off, 10)}
	r, err := c.Do(append(args, more...)...)
	if err != nil {
		return nil, from, err
	}
	if r.IsError() {
		return nil, from, refusal(&r)
	}
	if len(r.Elems) != 3 {
		return nil, from, fmt.Errorf("FEED.READ answers %s", r.String())
	}
	next, err := cursorOf(&r)
	if err != nil {
		return nil, from, err
	}
	want := from
	if next.Gen != from.Gen {
		want = Cursor{next.Gen, 0}
	}
	var frames []Frame
	for i := range r.Elems[2].Elems {
		f := &r.Elems[2].Elems[i]
		if off, _ := f.Elems[0].Int(); off != want.Off {
			return nil, from, fmt.Errorf("shard %d: frame %d where %v was due", shard, off, want)
		}
		var raw strings.Builder
		for j := range f.Elems[1:] {
			raw.Write(f.Elems[1+j].Raw)
		}
		frames = append(frames, Frame{want, raw.String()})
		want.Off++
	}
	if want != next {
		return nil, from, fmt.Errorf("shard %d: next cursor %v after frames up to %v", shard, next, want)
	}
	return frames, next, nil
}

// refusal makes an error of an error reply.
func refusal(r *wire.Reply) error {
	words := strings.Fields(r.Text())
	if len(words) == 3 && words[0] == "FEEDRESYNC" {
		gen, err1 := strconv.ParseInt(words[1], 10, 64)
		off, err2 := strconv.ParseInt(words[2], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		return &ResyncError{Cursor{gen, off}}
	}
	if strings.Contains(r.Text(), "ahead of stream") {
		return ErrAhead
	}
	return r.Err()
}
