package kevy

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// position is where a shard's mirror stands: the keys below edge, or all when done, are as at cursor.
type position struct {
	cursor log.Cursor
	done   bool
	edge   []byte
	shards int
	scope  uint32 // of which keys; see scope.sum
}

// known reports whether anything has been copied.
func (p *position) known() bool { return p.cursor.Generation != 0 }

// covers reports whether a key is below the edge.
func (p *position) covers(key []byte) bool { return p.done || bytes.Compare(key, p.edge) < 0 }

const positionVersion = "m1"

// String spells p as MirrorBatch.Position: version, cursor, shards, scope, and the edge in hex or "done".
func (p *position) String() string {
	edge := "done"
	if !p.done {
		edge = "x" + hex.EncodeToString(p.edge)
	}
	return fmt.Sprintf("%s %s %d %08x %s", positionVersion, p.cursor, p.shards, p.scope, edge)
}

func parsePosition(text string) (p position, err error) {
	if text == "" {
		return p, nil
	}
	bad := fmt.Errorf("unreadable position %.80q: want what a batch had, or nothing", text)
	f := strings.Split(text, " ")
	if len(f) != 5 || f[0] != positionVersion {
		return p, bad
	}
	if p.cursor, err = log.ParseCursor(f[1]); err != nil || !p.known() {
		return p, bad
	}
	if _, err := fmt.Sscanf(f[2]+" "+f[3], "%d %x", &p.shards, &p.scope); err != nil || p.shards < 1 {
		return p, bad
	}
	if p.done = f[4] == "done"; p.done {
		return p, nil
	}
	edge, ok := strings.CutPrefix(f[4], "x")
	if p.edge, err = hex.DecodeString(edge); err != nil || !ok {
		return p, bad
	}
	return p, nil
}

// scope is what a mirror mirrors.
type scope struct {
	prefixes  [][]byte // sorted; none: all keys
	functions bool
}

func newScope(prefixes []string, functions bool) (s scope) {
	s.functions = functions
	for _, p := range slices.Sorted(slices.Values(prefixes)) {
		s.prefixes = append(s.prefixes, []byte(p))
	}
	return s
}

// sum tells one scope from another.
func (s *scope) sum() uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%v", s.functions)
	for _, p := range s.prefixes {
		fmt.Fprintf(h, " %q", p)
	}
	return h.Sum32()
}

func (s *scope) has(key []byte) bool {
	return len(s.prefixes) == 0 || slices.ContainsFunc(s.prefixes, func(p []byte) bool { return bytes.HasPrefix(key, p) })
}

// cut reduces an effect to the keys for which keep is true. It returns nil if nothing is left. A verb that this version
// does not know is an error: nobody can tell what it is about.
func (s *scope) cut(argv [][]byte, keep func(key []byte) bool) ([][]byte, error) {
	e, err := effect.FromArgv(argv)
	if err != nil {
		return nil, err
	}
	if e.Op.Keys() == effect.NoKeys {
		return nil, fmt.Errorf("%s in the middle of a generation", e.Op)
	}
	kept := func(key []byte) bool { return s.has(key) && keep(key) }
	if e.Op.Keys() == effect.Keyless {
		if !s.functions {
			return nil, nil
		}
		return argv, nil
	}
	step := 1
	switch key, single := e.SingleKey(); {
	case single && kept(key):
		return argv, nil
	case single:
		return nil, nil
	case e.Op.Keys() == effect.PairKeys:
		step = 2
	}
	out := argv[:1:1]
	for i := 0; i+step <= len(e.Args); i += step {
		if kept(e.Args[i]) {
			out = append(out, e.Args[i:i+step]...)
		}
	}
	if len(out) == 1 {
		return nil, nil
	}
	return out, nil
}
