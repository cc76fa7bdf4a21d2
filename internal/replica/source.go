package replica

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

const (
	// maxReply is how many bytes of frames at most a reply carries, but for a larger frame.
	maxReply = 64 << 20
	// maxPiece is how many bytes at most REPL.FETCH returns.
	maxPiece = 8 << 20
	// behindSet is how many bytes of log a snapshot set may be behind and still be offered, or as many as it has itself.
	behindSet = 64 << 20
)

// Source serves the log of an engine to followers. All methods are safe for concurrent use.
type Source struct {
	eng *engine.Engine
	fs  vfs.FS
	id  func() string // of the replication history

	fullCopies atomic.Uint64
	resumed    atomic.Uint64 // streams that began without a full copy
	refused    atomic.Uint64 // stock replicas that were copied although they had been before

	linger time.Duration // lingerTime, but in tests

	cutting sync.Mutex // held while a cut is taken

	mu      sync.Mutex
	links   map[string]*Link   // by id
	streams map[string]*stream // of stock replicas, by id
	moved   chan struct{}      // closed, and replaced, when an acknowledgement has come or a link has gone
	taken   []*taken           // digests asked for, the newest last
	views   int                // of them that are being computed
	onAck   func()
	awaited int           // callers of Await that wait
	urged   chan struct{} // closed, and replaced, when one begins to

	dismissed chan struct{} // see Dismiss
}

// NewSource returns a source. id tells the replication id; onAck, which may be nil, is called when acknowledgements have come or a link
// has gone, and must not block.
func NewSource(eng *engine.Engine, fs vfs.FS, id func() string, onAck func()) *Source {
	return &Source{
		eng: eng, fs: fs, id: id, onAck: onAck, linger: lingerTime, links: make(map[string]*Link), streams: make(map[string]*stream),
		moved: make(chan struct{}), urged: make(chan struct{}), dismissed: make(chan struct{}),
	}
}

// Counters returns how many full copies and how many streams without one have been begun, and how often a stock replica could not go on in the stream that
// it had.
func (s *Source) Counters() (full, resumed, refused uint64) {
	return s.fullCopies.Load(), s.resumed.Load(), s.refused.Load()
}

// Link is a follower's connection for frames. Its commands come one at a time.
type Link struct {
	src  *Source
	id   string
	addr string // host:port where the follower serves

	history string // replication id that HELLO told

	files   []vfs.File // of the offered set
	readers []*log.Reader
	dir     *log.Dir     // that HELLO told of; the readers are of it
	parts   []part       // of the reply that is being made
	full    bool         // a set has been fetched since HELLO
	onClose func()       // may be nil
	stock   bool         // the follower is no kevy
	begun   bool         // frames have been asked for
	told    []log.Cursor // the cut that the last reply has told of

	cut func() // closes the connection

	// guarded by src.mu
	busy  bool      // a command runs
	pulls bool      // frames; not a full copy, which the follower may be folding for long
	heard time.Time // when a command last came or ended, on either connection
	acks  []Ack
	acked time.Time // zero: never
	// online: a stock replica's copy is done.
	online bool
}

// Hello begins a link: args are those of REPL.HELLO. remote is the host it comes from; cut closes the connection, from any goroutine. The reply is JSON.
func (s *Source) Hello(args [][]byte, remote string, cut func()) (*Link, []byte, error) {
	format, shards, id, port, ip := string(args[1]), string(args[2]), string(args[3]), string(args[4]), string(args[5])
	if format != strconv.Itoa(Format) {
		return nil, nil, fmt.Errorf("ERR replication format %.20q is not known here: this kevy speaks format %d", format, Format)
	}
	if n := s.eng.Shards(); shards != strconv.Itoa(n) {
		return nil, nil, fmt.Errorf("ERR the replica has %.20s shards and this kevy has %d: the numbers must be equal. "+
			"Start the replica with a new directory and --shards %d", shards, n, n)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || len(id) != 40 {
		return nil, nil, fmt.Errorf("ERR REPL.HELLO with id %.50q and port %.20q", id, port)
	}
	if strings.ContainsFunc(ip, NoAddress) {
		return nil, nil, fmt.Errorf("ERR REPL.HELLO with the address %.50q", ip)
	}
	if ip == "" {
		ip = remote
	}
	// The follower may cut its log at these tails: they tear no group.
	dir, tails := s.eng.Tails()
	k := &Link{src: s, id: id, addr: net.JoinHostPort(ip, port), dir: dir, cut: cut, heard: time.Now(), history: s.id()}
	h := Hello{Format: Format, Shards: s.eng.Shards(), Seed: dir.HashSeed(), ID: k.history, Tails: tails}
	for i := range h.Shards {
		h.Lineage = append(h.Lineage, dir.Log(i).Lineage())
	}
	b, err := json.Marshal(h)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links[id] = k // one that is left from a connection that is dead goes by itself
	return k, b, nil
}

// NoAddress reports whether a character is in no address, and would be mistaken for something else where INFO shows one.
func NoAddress(r rune) bool { return r <= ' ' || r == ',' || r == 0x7f }

// OnClose sets what Close calls first.
func (k *Link) OnClose(fn func()) { k.onClose = fn }

// Serve runs a command of the link. pulls: it asks for frames.
func (k *Link) Serve(pulls bool, command func()) {
	k.hear(true, pulls)
	defer k.hear(false, pulls)
	command()
}

func (k *Link) hear(busy, pulls bool) {
	k.src.mu.Lock()
	defer k.src.mu.Unlock()
	k.busy, k.pulls, k.heard = busy, pulls, time.Now()
}

// CutSilent closes the connections of followers that apply frames and have sent nothing for so long, and returns their addresses: one that is there
// asks for more, or acknowledges, all the time.
func (s *Source) CutSilent(limit time.Duration) (gone []string) {
	s.mu.Lock()
	var cuts []func()
	for _, k := range s.links {
		if k.pulls && !k.busy && time.Since(k.heard) > limit {
			cuts, gone = append(cuts, k.cut), append(gone, k.addr)
		}
	}
	s.mu.Unlock()
	for _, cut := range cuts {
		cut()
	}
	return gone
}

// Close ends the link.
func (k *Link) Close() {
	if k.onClose != nil {
		k.onClose()
	}
	k.closeFiles()
	k.closeReaders()
	s := k.src
	s.mu.Lock()
	if s.links[k.id] == k {
		delete(s.links, k.id)
	}
	s.wakeLocked()
	s.mu.Unlock()
	if s.onAck != nil {
		s.onAck()
	}
}

func (k *Link) closeFiles() {
	for _, f := range k.files {
		_ = f.Close() // opened for reading only
	}
	k.files = nil
}

func (k *Link) closeReaders() {
	for _, r := range k.readers {
		if r != nil {
			r.Close()
		}
	}
	k.readers = nil
}

// Offer answers REPL.SNAPSHOT: it opens the files of a set that is none of those named, and holds the log behind it. It takes as long as writing a
// set when there is none that will do.
func (k *Link) Offer(not [][]byte) ([]byte, error) {
	k.closeFiles()
	k.closeReaders()
	k.src.fullCopies.Add(1)
	var last error
	for range 3 { // a set may go while it is being opened
		o, err := k.choose(not)
		if err != nil {
			return nil, err
		}
		if last = k.open(o); last == nil {
			k.full = true
			return json.Marshal(o)
		}
	}
	return nil, last
}

// choose returns a set to offer.
func (k *Link) choose(not [][]byte) (*Offer, error) {
	s := k.src
	if o := k.again(not); o != nil {
		return o, nil
	}
	for try := 0; ; try++ {
		dir := s.eng.Dir()
		id, cursors := dir.Snapshot()
		if id != "" && !slices.ContainsFunc(not, func(x []byte) bool { return string(x) == id }) {
			set, err := snapshot.ReadSet(s.fs, dir.Path(), id)
			if err == nil && (try > 0 || nearTail(dir, &set, cursors)) {
				return k.offer(dir, set), nil
			}
		}
		if try > 1 {
			return nil, fmt.Errorf("ERR no snapshot to offer: set %s is not in its place", id)
		}
		if err := s.eng.SaveAfter(); err != nil {
			return nil, fmt.Errorf("ERR writing a snapshot for the replica: %w", err)
		}
	}
}

// again returns a set of which the follower has something already, if there is one with the log behind it.
func (k *Link) again(names [][]byte) *Offer {
	dir := k.src.eng.Dir()
	for _, n := range names {
		id, ok := strings.CutPrefix(string(n), wanted)
		if !ok || !snapshot.IsID(id) {
			continue
		}
		if set, err := snapshot.ReadSet(k.src.fs, dir.Path(), id); err == nil && len(set.Shards) == dir.Shards() && nearTail(dir, &set, set.Cursors()) {
			return k.offer(dir, set)
		}
	}
	return nil
}

// nearTail reports whether the log behind a set is short enough to be sent instead of a fresh set.
func nearTail(dir *log.Dir, set *snapshot.Set, cursors []log.Cursor) bool {
	behind := int64(0)
	for i, c := range cursors {
		n, ok := dir.Log(i).BytesFrom(c)
		if !ok {
			return false
		}
		behind += n
	}
	return behind <= max(behindSet, set.Bytes())
}

func (k *Link) offer(dir *log.Dir, set snapshot.Set) *Offer {
	o := &Offer{Set: set, Seed: dir.HashSeed(), LastTxn: dir.LastTxn()}
	for i, c := range set.Cursors() {
		lineage := dir.Lineage(i)
		at := slices.IndexFunc(lineage, func(l log.Lineage) bool { return l.Generation == c.Generation })
		o.Lineage = append(o.Lineage, lineage[:at+1])
	}
	return o
}

// open opens the set's files, and readers that hold the log behind it.
func (k *Link) open(o *Offer) error {
	dir := k.src.eng.Dir()
	at := snapshot.Dir(dir.Path(), o.Set.ID)
	for i := range o.Set.Shards {
		f, err := k.src.fs.Open(snapshot.ShardPath(at, i))
		if err != nil {
			k.closeFiles()
			return err
		}
		k.files = append(k.files, f)
	}
	return k.place(dir, o.Set.Cursors())
}

// Fetch answers REPL.FETCH: args are shard, position and most bytes. The reply is valid until the next call.
func (k *Link) Fetch(args [][]byte) ([]byte, error) {
	n, err := uints(args)
	if err != nil {
		return nil, err
	}
	if n[0] >= uint64(len(k.files)) {
		return nil, fmt.Errorf("ERR REPL.FETCH of shard %d: %d files are offered", n[0], len(k.files))
	}
	f := k.files[n[0]]
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if n[1] > uint64(size) { //nolint:gosec // not negative
		return nil, fmt.Errorf("ERR REPL.FETCH at %d of %d bytes", n[1], size)
	}
	b := make([]byte, min(n[2], maxPiece, uint64(size)-n[1])) //nolint:gosec // not negative
	if m, err := f.ReadAt(b, int64(n[1])); m < len(b) {       //nolint:gosec // at most size
		return nil, fmt.Errorf("ERR reading the snapshot: %w", err)
	}
	return b, nil
}
