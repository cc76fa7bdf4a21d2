package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

// streamModel is a stream as plain as can be.
type streamModel struct {
	last, deleted StreamID
	added         int64
	entries       []modelEntry
	groups        map[string]*modelGroup
}

type modelEntry struct {
	id     StreamID
	fields string
}

type modelGroup struct {
	last      StreamID
	read      int64
	consumers map[string]bool
	pending   map[StreamID]string // "time count consumer"
}

func (m *streamModel) lines() []string {
	out := []string{fmt.Sprintf("s %v %v %d", m.last, m.deleted, m.added)}
	for _, e := range m.entries {
		out = append(out, fmt.Sprintf("e %v %s", e.id, e.fields))
	}
	for name, g := range m.groups {
		out = append(out, fmt.Sprintf("g %q %v %d", name, g.last, g.read))
		for c := range g.consumers {
			n := 0
			for _, p := range g.pending {
				if strings.HasSuffix(p, fmt.Sprintf(" %q", c)) {
					n++
				}
			}
			out = append(out, fmt.Sprintf("c %q %q %d", name, c, n))
		}
		for id, p := range g.pending {
			out = append(out, fmt.Sprintf("p %q %v %s", name, id, p))
		}
	}
	slices.Sort(out)
	return out
}

// parseModel is the inverse of lines.
func parseModel(lines []string) *streamModel {
	m := &streamModel{groups: map[string]*modelGroup{}}
	group := func(name string) *modelGroup {
		if m.groups[name] == nil {
			m.groups[name] = &modelGroup{consumers: map[string]bool{}, pending: map[StreamID]string{}}
		}
		return m.groups[name]
	}
	for _, line := range lines {
		var id, id2 StreamID
		var n, t int64
		var name, c string
		kind, rest := line[0], line[2:]
		switch kind {
		case 's':
			_, _ = fmt.Sscanf(rest, "{%d %d} {%d %d} %d", &id.Ms, &id.Seq, &id2.Ms, &id2.Seq, &n)
			m.last, m.deleted, m.added = id, id2, n
		case 'e':
			_, _ = fmt.Sscanf(rest, "{%d %d}", &id.Ms, &id.Seq)
			_, fields, _ := strings.Cut(rest, "} ")
			m.entries = append(m.entries, modelEntry{id, fields})
		case 'g':
			_, _ = fmt.Sscanf(rest, "%q {%d %d} %d", &name, &id.Ms, &id.Seq, &n)
			g := group(name)
			g.last, g.read = id, n
		case 'c':
			_, _ = fmt.Sscanf(rest, "%q %q", &name, &c)
			group(name).consumers[c] = true
		case 'p':
			_, _ = fmt.Sscanf(rest, "%q {%d %d} %d %d %q", &name, &id.Ms, &id.Seq, &t, &n, &c)
			group(name).pending[id] = fmt.Sprintf("%d %d %q", t, n, c)
		}
	}
	slices.SortFunc(m.entries, func(x, y modelEntry) int {
		if x.id.Less(y.id) {
			return -1
		}
		return 1
	})
	return m
}

func testID(b []byte) (id StreamID) {
	id, ok := parseID(b)
	if !ok {
		panic(string(b))
	}
	return id
}

func testInt(b []byte) int64 {
	n, ok := parseInt(b)
	if !ok {
		panic(string(b))
	}
	return n
}

// apply folds an effect into the model; false if there is no key afterwards.
func (m *streamModel) apply(exists bool, e *effect.Effect) bool {
	a := e.Args
	if !exists && e.Op != effect.XAdd && (e.Op != effect.XGroup || string(a[len(a)-1]) != "MKSTREAM") {
		return false
	}
	switch e.Op {
	case effect.XAdd:
		if id := testID(a[1]); m.last.Less(id) {
			m.last = id
			m.added++
			m.entries = append(m.entries, modelEntry{id, fmt.Sprintf("%q", a[2:])})
		}
	case effect.XDel:
		for _, text := range a[1:] {
			id := testID(text)
			if i := slices.IndexFunc(m.entries, func(e modelEntry) bool { return e.id == id }); i >= 0 {
				m.entries = slices.Delete(m.entries, i, i+1)
			}
			if m.deleted.Less(id) {
				m.deleted = id
			}
		}
	case effect.XTrim:
		for len(m.entries) > 0 && (string(a[1]) == "MAXLEN" || m.entries[0].id.Less(testID(a[3]))) {
			m.entries = m.entries[1:]
		}
	case effect.XSetID:
		m.last, m.added = testID(a[1]), testInt(a[3])
		if d := testID(a[5]); !d.IsZero() {
			m.deleted = d
		}
	default:
		m.applyGroup(e)
	}
	return true
}

func (m *streamModel) applyGroup(e *effect.Effect) {
	a := e.Args
	if e.Op != effect.XGroup {
		g := m.groups[string(a[1])]
		if g == nil {
			return
		}
		if e.Op == effect.XAck {
			for _, id := range a[2:] {
				delete(g.pending, testID(id))
			}
			return
		}
		ids, tail := a[4:len(a)-8], a[len(a)-8:]
		g.consumers[string(a[2])] = true
		for _, id := range ids {
			g.pending[testID(id)] = fmt.Sprintf("%s %s %q", tail[1], tail[3], a[2])
		}
		if last := testID(tail[7]); g.last.Less(last) {
			g.last = last
		}
		return
	}
	name := string(a[2])
	g := m.groups[name]
	switch sub := string(a[0]); {
	case sub == "CREATE" && g == nil:
		m.groups[name] = &modelGroup{
			last: testID(a[3]), read: testInt(a[5]), consumers: map[string]bool{},
			pending: map[StreamID]string{},
		}
	case g == nil:
	case sub == "SETID":
		g.last, g.read = testID(a[3]), testInt(a[5])
	case sub == "DESTROY":
		delete(m.groups, name)
	case sub == "CREATECONSUMER":
		g.consumers[string(a[3])] = true
	case sub == "DELCONSUMER":
		delete(g.consumers, string(a[3]))
		for id, p := range g.pending {
			if strings.HasSuffix(p, fmt.Sprintf(" %q", a[3])) {
				delete(g.pending, id)
			}
		}
	}
}

var streamTestClock uint64

// streamEffect makes an effect whose IDs grow with the test.
func streamEffect(rng *rand.Rand, key string) *effect.Effect {
	id := func() string {
		back := uint64(rng.IntN(300))
		return fmt.Sprintf("%d-%d", (streamTestClock-min(back, streamTestClock))/5, rng.IntN(4))
	}
	ids := func(args ...string) []string {
		for range 1 + rng.IntN(5) {
			args = append(args, id())
		}
		return args
	}
	group := fmt.Sprint("group", rng.IntN(3))
	consumer := fmt.Sprint("c", strings.Repeat("onsumer", rng.IntN(2)), rng.IntN(4))
	switch n := rng.IntN(100); {
	case n < 50:
		streamTestClock++
		args := []string{key, fmt.Sprintf("%d-%d", streamTestClock/5, streamTestClock%5)}
		for i := range 1 + rng.IntN(3) {
			args = append(args, fmt.Sprint("f", i+rng.IntN(10)/9), streamValueText(rng))
		}
		return eff(effect.XAdd, args...)
	case n < 62:
		return eff(effect.XDel, ids(key)...)
	case n < 66:
		return eff(effect.XTrim, key, "MINID", "=", id())
	case n < 67 && rng.IntN(30) == 0:
		return eff(effect.XTrim, key, "MAXLEN", "=", "0")
	case n < 67:
		streamTestClock += 10
		return eff(effect.XSetID, key, fmt.Sprintf("%d-0", streamTestClock/5), "ENTRIESADDED", "100000",
			"MAXDELETEDID", "0-0")
	case n < 70:
		args := []string{"CREATE", key, group, id(), "ENTRIESREAD", fmt.Sprint(rng.IntN(9) - 1)}
		if rng.IntN(2) == 0 {
			args = append(args, "MKSTREAM")
		}
		return eff(effect.XGroup, args...)
	case n < 72:
		return eff(effect.XGroup, "SETID", key, group, id(), "ENTRIESREAD", "7")
	case n < 73 && rng.IntN(3) == 0:
		return eff(effect.XGroup, "DESTROY", key, group)
	case n < 74:
		return eff(effect.XGroup, "CREATECONSUMER", key, group, consumer)
	case n < 75:
		return eff(effect.XGroup, "DELCONSUMER", key, group, consumer)
	case n < 83:
		return eff(effect.XAck, ids(key, group)...)
	}
	args := ids(key, group, consumer, "0")
	return eff(effect.XClaim, append(args, "TIME", fmt.Sprint(rng.IntN(3)*1000), "RETRYCOUNT",
		fmt.Sprint(rng.IntN(3)), "FORCE", "JUSTID", "LASTID", id())...)
}

// streamValueText is a number of any size, a text, or now and then a long one.
func streamValueText(rng *rand.Rand) string {
	switch n := rng.IntN(50); {
	case n == 0:
		return strings.Repeat("x", 100+rng.IntN(9000))
	case n < 30:
		return fmt.Sprint(int64(rng.Uint64()) >> rng.IntN(64))
	case n < 32:
		return []string{"", "-", "-0", "007", "9223372036854775808"}[rng.IntN(5)]
	}
	return fmt.Sprint("value ", rng.IntN(1000))
}

// modelOf reads a stream into a model.
func modelOf(s Stream) *streamModel {
	m := &streamModel{last: s.LastID(), deleted: s.MaxDeletedID(), added: s.Added(), groups: map[string]*modelGroup{}}
	var it StreamIter
	for it.Seek(s, StreamID{}, MaxStreamID, false); it.Next(); {
		var fields []string
		for range it.NumFields() {
			name, val := it.Field()
			fields = append(fields, string(name), string(val))
		}
		m.entries = append(m.entries, modelEntry{it.ID(), fmt.Sprintf("%q", fields)})
	}
	s.EachGroup(func(g Group) bool {
		x := &modelGroup{last: g.LastID(), read: g.Read(), consumers: map[string]bool{}, pending: map[StreamID]string{}}
		g.EachConsumer(func(c Consumer) bool { x.consumers[string(c.Name())] = true; return true })
		g.EachPending(StreamID{}, func(n Nack) bool {
			x.pending[n.ID] = fmt.Sprintf("%d %d %q", n.Time, n.Count, n.Consumer)
			return true
		})
		m.groups[string(g.Name())] = x
		return true
	})
	return m
}

var streamCollection = collection{
	kind:   TypeStream,
	effect: streamEffect,
	model: func(have []string, e *effect.Effect) []string {
		m := parseModel(have)
		if !m.apply(have != nil, e) {
			return have
		}
		return m.lines()
	},
	lines: func(v value) []string {
		s := streamValue(v)
		m := modelOf(s)
		checkStream(s, m)
		return m.lines()
	},
}

// checkStream compares the counts and the other ways to read a stream; it panics where they differ.
func checkStream(s Stream, m *streamModel) {
	bad := func(what string, args ...any) { panic(fmt.Sprintf("stream: "+what, args...)) }
	if s.Len() != len(m.entries) || s.NumGroups() != len(m.groups) {
		bad("%d entries, counted %d; %d groups, counted %d", s.Len(), len(m.entries), s.NumGroups(), len(m.groups))
	}
	var it StreamIter
	i := len(m.entries)
	for it.Seek(s, StreamID{}, MaxStreamID, true); it.Next(); {
		if i--; i < 0 || it.ID() != m.entries[i].id || !s.Has(it.ID()) {
			bad("backward: %v at %d", it.ID(), i)
		}
	}
	if i != 0 || i < len(m.entries) && (s.FirstID() != m.entries[0].id || s.TopID() != m.entries[len(m.entries)-1].id) {
		bad("backward walk ends at %d", i)
	}
	s.EachGroup(func(g Group) bool {
		x := m.groups[string(g.Name())]
		n := 0
		g.EachConsumer(func(c Consumer) bool {
			own := 0
			g.EachPendingOf(c, StreamID{}, func(p Nack) bool {
				if _, ok := g.PendingEntry(p.ID); !ok || string(p.Consumer) != string(c.Name()) {
					bad("pending %v", p)
				}
				own++
				return true
			})
			if own != c.Pending() {
				bad("consumer %q has %d pending, counted %d", c.Name(), c.Pending(), own)
			}
			n += own
			return true
		})
		if n != g.Pending() || n != len(x.pending) || g.NumConsumers() != len(x.consumers) {
			bad("group %q: %d pending, counted %d", g.Name(), g.Pending(), n)
		}
		return true
	})
}

// TestStreamRange compares ranges with a plain search.
func TestStreamRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	ks := New(1)
	defer ks.Release()
	for i := range 3000 {
		mustFold(t, ks, eff(effect.XAdd, "k", fmt.Sprintf("%d-%d", i/7, 1+i%7), "f", fmt.Sprint(i)))
		if i%3 == 0 {
			mustFold(t, ks, eff(effect.XDel, "k", fmt.Sprintf("%d-%d", rng.IntN(450), 1+rng.IntN(7))))
		}
	}
	e, _ := ks.Lookup([]byte("k"))
	s := ks.Stream(e)
	all := modelOf(s).entries
	for range 2000 {
		from, to := StreamID{rng.Uint64N(440), rng.Uint64N(9)}, StreamID{rng.Uint64N(440), rng.Uint64N(9)}
		rev := rng.IntN(2) == 0
		var want, got []StreamID
		for _, e := range all {
			if !e.id.Less(from) && !to.Less(e.id) {
				want = append(want, e.id)
			}
		}
		if rev {
			slices.Reverse(want)
		}
		var it StreamIter
		for it.Seek(s, from, to, rev); it.Next(); {
			got = append(got, it.ID())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v to %v: got %v, want %v", from, to, got, want)
		}
	}
}

// TestStreamAgain applies effects twice: all that came since a point, as a consumer may.
func TestStreamAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		streamTestClock = 0
		once, twice := New(1), New(1)
		var since []*effect.Effect
		for step := range 400 {
			e := streamEffect(rng, "k")
			if rng.IntN(100) == 0 {
				e = eff(effect.Del, "k")
			}
			if k, ok := once.Lookup([]byte("k")); ok && e.Op == effect.XTrim {
				if s := once.Stream(k); string(e.Args[1]) == "MAXLEN" || s.LastID().Less(testID(e.Args[3])) {
					continue // planners cut no more than there is
				}
			}
			_, before := once.Digest(nil, 0)
			mustFold(t, once, e)
			if _, after := once.Digest(nil, 0); before == after {
				continue // no planner plans it
			}
			mustFold(t, twice, e)
			if since = append(since, e); step%37 == 0 {
				since = since[rng.IntN(len(since)):]
				for _, e := range since {
					mustFold(t, twice, e)
				}
				_, d1 := once.Digest(nil, 0)
				if _, d2 := twice.Digest(nil, 0); d1 != d2 {
					t.Fatalf("step %d: applied again, the state differs", step)
				}
				since = nil
			}
		}
		once.Release()
		twice.Release()
	}
}

// TestStreamMemory bounds what a stream of many small entries costs.
func TestStreamMemory(t *testing.T) {
	ks := New(1)
	defer ks.Release()
	const n = 100_000
	for i := range n {
		mustFold(t, ks, eff(effect.XAdd, "k", fmt.Sprintf("%d-0", 1_700_000_000_000+i), "temperature", fmt.Sprint(20+i%10),
			"humidity", fmt.Sprint(i)))
	}
	if per := float64(ks.UsedBytes()) / n; per > 20 {
		t.Errorf("%.1f bytes an entry", per)
	}
}
