package feed

import (
	"bytes"
	"slices"
	"strings"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/resp"
)

// Frozen is a shard as it was at a cursor.
type Frozen interface {
	// Cursor is that of the first frame that is not in the state.
	Cursor() log.Cursor
	// RebuildLibraries calls f with the effects that make the shard's libraries of functions.
	RebuildLibraries(f func(*effect.Effect) bool) bool
	// RebuildFrom calls f with the effects that make the keys from start on, in key order, until f returns false; last marks
	// the last effect of a key. An effect is about one key, and valid until f returns.
	RebuildFrom(start []byte, f func(e *effect.Effect, last bool) bool)
	// Close ends it. Nothing that it showed may leave before Close has returned nil.
	Close() error
}

// Freezer freezes a shard. It is called once, with a shard that exists.
type Freezer func(shard int) (Frozen, error)

// ScanRequest is a parsed FEED.SCAN.
type ScanRequest struct {
	Filter

	Shard uint64
	Start []byte // first key, inclusive
}

// ParseScan parses the arguments of FEED.SCAN, args[0] being the name. REQUIRES: len(args) >= 3. The request
// aliases args.
func ParseScan(args [][]byte) (ScanRequest, error) {
	r := ScanRequest{Filter: Filter{Count: defaultCount}}
	var err error
	if r.Shard, err = unsigned(args[1], errShard); err != nil {
		return r, err
	}
	r.Start = args[2]
	for rest := args[3:]; len(rest) > 0; {
		if rest, err = r.option(strings.ToUpper(string(rest[0])), rest); err != nil {
			return r, err
		}
	}
	return r, nil
}

// Scan answers FEED.SCAN. It waits until what it shows is as safe as the policy promises. REQUIRES: len(args) >= 3.
func (f *Feed) Scan(args [][]byte, w *resp.Writer, freeze Freezer) {
	req, err := ParseScan(args)
	var at log.Cursor
	var next []byte
	var body frames
	if err == nil {
		at, next, err = f.Keys(&req, freeze, &body)
	}
	if err != nil {
		w.Error(f.reply(err))
		return
	}
	grow(w, len(body.w.Buf)+len(next)+headerRoom)
	w.Array(4)
	w.Uint(at.Generation)
	w.Uint(at.Offset)
	w.Bulk(next)
	w.Array(body.n)
	w.Raw(body.w.Buf)
}

// KeySink takes the frames of a scan.
type KeySink interface {
	// Add takes a frame, valid until Add returns.
	Add(e *effect.Effect)
	// Size returns about how many bytes have been taken.
	Size() int
	// Keep makes what has been taken so far final; Undo takes back what is not.
	Keep()
	Undo()
}

// Keys feeds sink with the frames of req's keys as they are at the cursor at: at most req.Count keys and about 4 MiB, but at least
// one key. next is the key to go on with, empty if there is none. From the empty start on, shard 0's libraries of functions
// come first, whatever the prefixes are.
func (f *Feed) Keys(req *ScanRequest, freeze Freezer, sink KeySink) (at log.Cursor, next []byte, err error) {
	if err := f.check(req.Shard); err != nil {
		return at, nil, err
	}
	state, err := freeze(int(req.Shard)) //nolint:gosec // checked
	if err != nil {
		return at, nil, Error(err.Error())
	}
	over := false
	defer func() {
		if !over { // a panic: the view must not stay open
			_ = state.Close()
		}
	}()
	if len(req.Start) == 0 {
		state.RebuildLibraries(func(e *effect.Effect) bool { sink.Add(e); return true })
		sink.Keep()
	}
	s := scan{req: req, sink: sink}
	for _, p := range ranges(req.Prefixes) {
		if !s.over {
			s.scan(state, p)
		}
	}
	over = true
	if err := state.Close(); err != nil {
		return at, nil, Error(err.Error())
	}
	return state.Cursor(), s.next, nil
}

// ranges returns the prefixes in key order, without those that another one covers; one empty prefix for none.
func ranges(prefixes [][]byte) (out [][]byte) {
	if len(prefixes) == 0 {
		return [][]byte{nil}
	}
	sorted := slices.Clone(prefixes)
	slices.SortFunc(sorted, bytes.Compare)
	for _, p := range sorted {
		if len(out) == 0 || !bytes.HasPrefix(p, out[len(out)-1]) {
			out = append(out, p)
		}
	}
	return out
}

// scan is a FEED.SCAN under way.
type scan struct {
	req  *ScanRequest
	sink KeySink
	keys int
	next []byte // the first key that was not taken
	over bool
	open bool // in the middle of a key
}

// scan takes the keys with a prefix until it has enough.
func (s *scan) scan(state Frozen, prefix []byte) {
	start := s.req.Start
	if bytes.Compare(start, prefix) < 0 {
		start = prefix
	}
	state.RebuildFrom(start, func(e *effect.Effect, last bool) bool {
		key := e.Args[e.Op.KeyAt()]
		if !bytes.HasPrefix(key, prefix) {
			return false
		}
		if !s.open && (s.keys == s.req.Count || s.keys > 0 && s.sink.Size() >= replyBytes) {
			return s.end(key)
		}
		s.sink.Add(e)
		s.open = !last
		if s.keys > 0 && s.sink.Size() > replyBytes+replyBytes/8 {
			s.sink.Undo() // it is large: it comes alone
			return s.end(key)
		}
		if last {
			s.keys++
			s.sink.Keep()
		}
		return true
	})
}

// end ends the scan before a key.
func (s *scan) end(key []byte) bool {
	s.next, s.over = bytes.Clone(key), true
	return false
}

// frames are frames as FEED.SCAN delivers them: the argv of each.
type frames struct {
	w     resp.Writer
	n     int
	bytes int // of the final ones
	final int // how many are
}

func (b *frames) Add(e *effect.Effect) {
	size := 64
	for _, a := range e.Args {
		size += len(a) + 32
	}
	grow(&b.w, size)
	b.w.Buf, _ = effect.AppendPayload(b.w.Buf, e)
	b.n++
}

func (b *frames) Size() int { return len(b.w.Buf) }

func (b *frames) Keep() { b.bytes, b.final = len(b.w.Buf), b.n }

func (b *frames) Undo() { b.w.Buf, b.n = b.w.Buf[:b.bytes], b.final }
