package state

import (
	"fmt"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

// TestDigest: the same whatever the order, the seed, the number of shards and the way there.
func TestDigest(t *testing.T) {
	g := newGen(1, 2000)
	m := model{}
	ks := New(1)
	defer ks.Release()
	for range 20000 {
		e := g.effect()
		m.fold(e)
		mustFold(t, ks, e)
	}
	const now = 500
	for _, prefix := range []string{"", "user:", "nothing"} {
		keys, want := ks.Digest([]byte(prefix), now)
		if s := ks.Stats([]byte(prefix), now); s.Keys != keys {
			t.Errorf("%d keys, Stats has %+v", keys, s)
		}
		v := ks.View()
		if n, d := v.Digest([]byte(prefix), now); n != keys || d != want || v.Stats([]byte(prefix), now) != ks.Stats([]byte(prefix), now) {
			t.Errorf("view: %d %x, want %d %x", n, d, keys, want)
		}
		v.Close()
		const shards = 3
		var part [shards]*Keyspace
		for i := range part {
			part[i] = New(uint64(i) * 77)
			defer part[i].Release()
		}
		for k, v := range m { // Go's order of maps is as good as random
			e := eff(effect.Set, k, v.value)
			if v.deadline != 0 {
				e = eff(effect.Set, k, v.value, "PXAT", fmt.Sprint(v.deadline))
			}
			mustFold(t, part[Hash(5, []byte(k))%shards], e)
		}
		n, sum := 0, uint64(0)
		for _, p := range part {
			pn, pd := p.Digest([]byte(prefix), now)
			n, sum = n+pn, sum+pd
		}
		if n != keys || sum != want {
			t.Errorf("%q: %d %x over shards, want %d %x", prefix, n, sum, keys, want)
		}
	}
}

func TestDigestTellsApart(t *testing.T) {
	seen := map[uint64]string{}
	for _, e := range []*effect.Effect{
		eff(effect.Set, "a", "b"), eff(effect.Set, "ab", ""), eff(effect.Set, "", "ab"), eff(effect.Set, "b", "a"),
		eff(effect.Set, "a", "b", "PXAT", "1000"), eff(effect.Set, "a", "b", "PXAT", "1001"), eff(effect.Set, "a", ""),
		eff(effect.Set, "a", "\x00"), eff(effect.MSet, "a", "b", "b", "a"), eff(effect.Del, "a"),
	} {
		ks := New(1)
		mustFold(t, ks, e)
		_, d := ks.Digest(nil, 0)
		if seen[d] != "" {
			t.Errorf("%s %q has the digest of %s", e.Op, e.Args, seen[d])
		}
		seen[d] = fmt.Sprintf("%s %q", e.Op, e.Args)
		ks.Release()
	}
}

// TestDigestIsFixed: nodes compare digests, so the numbers must never change.
func TestDigestIsFixed(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	mustFold(t, ks, eff(effect.Set, "key", "value"))
	mustFold(t, ks, eff(effect.Set, "expiring", "12", "PXAT", "1700000000000"))
	if n, d := ks.Digest(nil, 0); n != 2 || d != goldenDigest {
		t.Errorf("%d keys, digest %#x", n, d)
	}
}

const goldenDigest = 0x26f1b79945f3cc6a
