package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/resp"
)

// TestUndo checks that a group that fails leaves small and large keys as they were.
func TestUndo(t *testing.T) {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(t, crashfs.New(), 2, clock)
	defer s.Close()
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, " f%d v%d", i, i)
	}
	s.Do("HSET big" + b.String())
	s.Do("HPEXPIRE big 5000 FIELDS 2 f1 f2")
	s.Do("HSET other" + b.String())
	s.Do("SET string " + strings.Repeat("x", 9000))
	s.Do("SET small 1")
	before := s.Digest()
	tail := s.Cursors()

	c, w := s.E.NewCtx(), resp.Writer{}
	c.W = &w
	boom := errors.New("boom")
	err := s.E.Update(c, new(engine.Ticket), func(*command.Ctx) error { return nil }, func(run func() error) error {
		for _, line := range []string{
			"HSET big f1 new g 1", "HDEL big f3", "APPEND string y", "INCR small", "SET fresh 1", "RENAME other moved",
			"HSET big f1 again", "SETRANGE string 0 abc", "DEL big", "HSET big x 1", "SET string short", "DEL small",
		} {
			args := strings.Fields(line)
			c.Args = c.Args[:0]
			for _, a := range args {
				c.Args = append(c.Args, []byte(a))
			}
			c.Cmd = command.Lookup(c.Args[0])
			if err := run(); err != nil {
				return err
			}
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if got := s.Digest(); got != before {
		t.Errorf("digest %q after an undone group, %q before", got, before)
	}
	for i, at := range s.Cursors() {
		if at != tail[i] {
			t.Errorf("shard %d: the log went on from %v to %v", i, tail[i], at)
		}
	}
}

// BenchmarkGroupOnLargeKey writes one field of a large hash in a transaction: its cost must not grow with the hash.
func BenchmarkGroupOnLargeKey(b *testing.B) {
	for _, n := range []int{1000, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			clock := &gate.Clock{MS: 1_800_000_000_000}
			s := gate.Open(b, crashfs.New(), 1, clock)
			defer s.Close()
			for i := range n {
				s.Do(fmt.Sprintf("HSET big f%d v", i))
			}
			b.ReportAllocs()
			for b.Loop() {
				s.Do("MULTI ; HSET big f1 x ; HSET big f2 y")
			}
		})
	}
}
