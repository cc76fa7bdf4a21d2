package engine_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// frames returns the frames of shard 0 as "VERB args (cause)".
func frames(t *testing.T, s *gate.Store) (out []string) {
	t.Helper()
	l := s.E.Dir().Log(0)
	r, err := l.NewReader(l.Oldest(), log.ReaderOptions{Limit: log.LimitEnd, End: l.Tail(), Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		argv, err := effect.DecodeArgv(f.Payload, nil)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, a := range argv {
			words = append(words, string(a))
		}
		if f.Cause == log.ByExpiry {
			words = append(words, "(expired)")
		}
		out = append(out, strings.Join(words, " "))
	}
}

// TestFieldsExpire checks that due fields are logged away, by a command on their key and by the expirer alone.
func TestFieldsExpire(t *testing.T) {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(t, crashfs.New(), 1, clock)
	defer s.Close()
	s.Do("HSET h a 1 b 2 c 3")
	s.Do("HPEXPIRE h 5 FIELDS 2 a b")
	s.Do("HSET gone a 1")
	s.Do("HPEXPIRE gone 6 FIELDS 1 a")
	clock.Advance(5)
	if got := s.Do("HLEN h"); got != ":1\r\n" {
		t.Errorf("HLEN after the fields' deadline: %q", got)
	}
	if got := s.Do("DBSIZE"); got != ":2\r\n" {
		t.Errorf("DBSIZE: %q", got)
	}
	clock.Advance(1)
	s.E.SetActiveExpire(true)
	for deadline := time.Now().Add(10 * time.Second); s.Do("DBSIZE") != ":1\r\n"; {
		if time.Now().After(deadline) {
			t.Fatal("the expirer does not delete fields")
		}
		time.Sleep(time.Millisecond)
	}
	s.Do("MULTI ; HSET h x 1 ; HPEXPIRE h 1 FIELDS 1 x")
	clock.Advance(1)
	s.E.SetActiveExpire(false)
	s.Do("MULTI ; HSET h y 1 ; HGETALL h")
	got := frames(t, s)
	for _, want := range []string{"HDEL h a b (expired)", "HDEL gone a (expired)", "HDEL h x (expired)"} {
		if !slices.Contains(got, want) {
			t.Errorf("no frame %q in %q", want, got)
		}
	}
}

// TestManyDueFields checks that a command deletes only so many of them, hides the others, and that the
// expirer takes them in the end.
func TestManyDueFields(t *testing.T) {
	clock := &gate.Clock{MS: 1_800_000_000_000}
	s := gate.Open(t, crashfs.New(), 1, clock)
	defer s.Close()
	var set, expire strings.Builder
	set.WriteString("HSET h keep 1")
	expire.WriteString("HPEXPIRE h 5 FIELDS 2000")
	for i := range 2000 {
		name := " f" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + strings.Repeat("y", i/26)
		set.WriteString(name + " v")
		expire.WriteString(name)
	}
	s.Do(set.String())
	s.Do(expire.String())
	clock.Advance(10)
	if got := s.Do("HGETALL h"); got != "*2\r\n$4\r\nkeep\r\n$1\r\n1\r\n" {
		t.Errorf("HGETALL: %.100q", got)
	}
	l := s.E.Dir().Log(0)
	n := l.Appended()
	s.E.SetActiveExpire(true)
	for deadline := time.Now().Add(10 * time.Second); l.Appended() < n+(2000-512)/128; {
		if time.Now().After(deadline) {
			t.Fatal("the expirer does not delete fields")
		}
		time.Sleep(time.Millisecond)
	}
}
