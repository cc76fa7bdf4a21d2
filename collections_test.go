package kevy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kevydb/kevy"
	"github.com/kevydb/kevy/log"
)

// TestCollections uses every typed family, then compares with a restarted store and with the folded
// feed of a mirror.
func TestCollections(t *testing.T) {
	dir := t.TempDir()
	cfg := kevy.DefaultConfig().WithDir(dir).WithFeed(0)
	s := must[*kevy.Store](t)(kevy.Open(cfg))
	mirror := open(t, kevy.DefaultConfig())
	cur := must[log.Cursor](t)(s.ChangesTail())
	hashAndList(t, s)
	setAndZSet(t, s)
	stream(t, s)
	for {
		b := must[kevy.Batch](t)(s.ChangesSince(cur, 100))
		if len(b.Changes) == 0 {
			break
		}
		for _, c := range b.Changes {
			args := make([]any, len(c.Argv))
			for i, a := range c.Argv {
				args[i] = a
			}
			if _, err := mirror.Do(args...); err != nil {
				t.Fatalf("%q on the mirror: %v", c.Argv, err)
			}
		}
		cur = b.Next
	}
	_, want, _ := s.Digest(nil)
	if _, got, _ := mirror.Digest(nil); got != want {
		t.Errorf("the mirror's digest is %s, want %s", got, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, cfg)
	if _, got, _ := s.Digest(nil); got != want {
		t.Errorf("after a restart the digest is %s, want %s", got, want)
	}
}

func hashAndList(t *testing.T, s *kevy.Store) {
	t.Helper()
	integer := must[int64](t)
	if n := integer(s.HSet("h", map[string][]byte{"a": []byte("1"), "b": []byte("2")})); n != 2 {
		t.Errorf("HSet = %d", n)
	}
	if n := integer(s.HIncr("h", "a", 41)); n != 42 {
		t.Errorf("HIncr = %d", n)
	}
	if v, ok, err := s.HGet("h", "a"); string(v) != "42" || !ok || err != nil {
		t.Errorf("HGet = %q, %v, %v", v, ok, err)
	}
	if all, err := s.HGetAll("h"); len(all) != 2 || string(all["b"]) != "2" || err != nil {
		t.Errorf("HGetAll = %q, %v", all, err)
	}
	if integer(s.HDel("h", "b", "none")) != 1 || integer(s.HLen("h")) != 1 {
		t.Error("HDel or HLen")
	}
	for i := range 300 {
		integer(s.RPush("l", fmt.Append(nil, i)))
	}
	integer(s.LPush("l", []byte("first")))
	if v, ok, err := s.LIndex("l", -1); string(v) != "299" || !ok || err != nil {
		t.Errorf("LIndex = %q, %v, %v", v, ok, err)
	}
	if v, _, _ := s.LPop("l"); string(v) != "first" {
		t.Errorf("LPop = %q", v)
	}
	if v, _, _ := s.RPop("l"); string(v) != "299" {
		t.Errorf("RPop = %q", v)
	}
	if vs, err := s.LRange("l", 100, 102); len(vs) != 3 || string(vs[0]) != "100" || err != nil {
		t.Errorf("LRange = %q, %v", vs, err)
	}
	if err := s.LTrim("l", 0, 9); err != nil || integer(s.LLen("l")) != 10 {
		t.Errorf("LTrim: %v", err)
	}
}

func setAndZSet(t *testing.T, s *kevy.Store) {
	t.Helper()
	integer := must[int64](t)
	integer(s.SAdd("s", "1", "2", "3", "x"))
	integer(s.SAdd("s2", "3", "x", "y"))
	if vs, err := s.SInter("s", "s2"); len(vs) != 2 || !slices.Contains(vs, "x") || err != nil {
		t.Errorf("SInter = %q, %v", vs, err)
	}
	if has, err := s.SHas("s", "2"); !has || err != nil || integer(s.SRem("s", "2", "9")) != 1 || integer(s.SCard("s")) != 3 {
		t.Error("SHas, SRem or SCard")
	}
	if vs, err := s.SMembers("s2"); len(vs) != 3 || err != nil {
		t.Errorf("SMembers = %q, %v", vs, err)
	}
	integer(s.ZAdd("z", kevy.Scored{Member: "a", Score: 1}, kevy.Scored{Member: "b", Score: 2.5}, kevy.Scored{Member: "c", Score: 3}))
	if f, err := s.ZIncr("z", "a", 4); f != 5 || err != nil {
		t.Errorf("ZIncr = %v, %v", f, err)
	}
	if r, ok, err := s.ZRank("z", "a"); r != 2 || !ok || err != nil {
		t.Errorf("ZRank = %d, %v, %v", r, ok, err)
	}
	if _, ok, err := s.ZScore("z", "none"); ok || err != nil {
		t.Errorf("ZScore = %v, %v", ok, err)
	}
	if ms, err := s.ZRangeByScore("z", 2, 3); len(ms) != 2 || ms[0] != (kevy.Scored{Member: "b", Score: 2.5}) || err != nil {
		t.Errorf("ZRangeByScore = %v, %v", ms, err)
	}
	if ms, err := s.ZRange("z", 0, -1); len(ms) != 3 || ms[2].Member != "a" || err != nil {
		t.Errorf("ZRange = %v, %v", ms, err)
	}
	if integer(s.ZRem("z", "b")) != 1 || integer(s.ZCard("z")) != 2 {
		t.Error("ZRem or ZCard")
	}
}

func stream(t *testing.T, s *kevy.Store) {
	t.Helper()
	if id, err := s.XAdd("x", "1-1", "k", "v"); id != "1-1" || err != nil {
		t.Errorf("XAdd = %q, %v", id, err)
	}
	must[string](t)(s.XAdd("x", "*", "k", "w"))
	if es, err := s.XRange("x", "-", "+", 1); len(es) != 1 || es[0].ID != "1-1" || es[0].Fields[1] != "v" || err != nil {
		t.Errorf("XRange = %v, %v", es, err)
	}
	if n := must[int64](t)(s.XDel("x", "1-1")); n != 1 || must[int64](t)(s.XLen("x")) != 1 {
		t.Error("XDel or XLen")
	}
}
