package oracle

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/rdb"
	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/rounds"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

var migrateFlags = rounds.Register("migrate", "in which the link is cut while a redis-server is migrated")

// moving is a kevy that follows a redis-server through a proxy.
type moving struct {
	t     *testing.T
	redis *proc.Server
	link  *proc.Proxy
	kevy  *proc.Server
	c     *wire.Conn
}

func move(t *testing.T, redis *proc.Server, flags ...string) *moving {
	t.Helper()
	m := &moving{t: t, redis: redis, link: proc.NewProxy(t, redis.Port), kevy: proc.ForTest(t, flags...)}
	m.dial()
	return m
}

func (m *moving) dial() {
	m.t.Helper()
	c, err := m.kevy.Dial()
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(c.Close)
	c.Timeout = 30 * time.Second
	m.c = c
}

func (m *moving) do(line string) *wire.Reply {
	m.t.Helper()
	r, err := m.c.Do(strings.Fields(line)...)
	if err != nil {
		m.t.Fatalf("%s: %v", line, err)
	}
	return &r
}

func (m *moving) follow() {
	m.t.Helper()
	if r := m.do("REPLICAOF 127.0.0.1 " + strconv.Itoa(m.link.Port)); r.IsError() {
		m.t.Fatal(r.String())
	}
}

// field returns a field of kevy's INFO replication.
func (m *moving) field(name string) string {
	m.t.Helper()
	return field(m.t, m.c, name)
}

func field(t *testing.T, c *wire.Conn, name string) string {
	t.Helper()
	r, err := c.Must("INFO", "replication")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(r.Text()) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return v
		}
	}
	return ""
}

// until waits until check returns "".
func until(t *testing.T, what string, check func() string) {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	bad := check()
	for ; bad != "" && time.Now().Before(end); bad = check() {
		time.Sleep(5 * time.Millisecond) // there is no event to wait for in another process
	}
	if bad != "" {
		t.Fatalf("%s: %s", what, bad)
	}
}

func (m *moving) up() {
	m.t.Helper()
	until(m.t, "the link", func() string {
		if m.field("master_link_status") == "up" {
			return ""
		}
		return "down: " + m.field("repl_error")
	})
}

// caughtUp waits until kevy has all that the redis-server has sent.
func (m *moving) caughtUp(source *wire.Conn) {
	m.t.Helper()
	until(m.t, "kevy's offset", func() string {
		if x, y := field(m.t, source, "master_repl_offset"), m.field("slave_repl_offset"); x != y {
			return fmt.Sprint(y, " of ", x, " ", m.field("repl_error"))
		}
		return ""
	})
}

// dumps returns every key with what DUMP and PEXPIRETIME say of it, in one form for all encodings and orders. What a stock replica has otherwise than its
// primary, and so kevy too, is left out: entries-read of groups, and when consumers were seen.
func dumps(t *testing.T, c *wire.Conn) (out []string) {
	t.Helper()
	keys, err := c.Must("KEYS", "*")
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys.Elems {
		k := keys.Elems[i].Text()
		dump, err := c.Must("DUMP", k)
		if err != nil {
			t.Fatal(err)
		}
		deadline, err := c.Must("PEXPIRETIME", k)
		if err != nil {
			t.Fatal(err)
		}
		if dump.Null {
			continue // it has expired meanwhile
		}
		v, err := rdb.Decode(dump.Str)
		if err != nil {
			t.Fatalf("%q: %v", k, err)
		}
		canonical(&v)
		value := fmt.Sprintf("%q %q %v %v", v.Text, v.Items, v.Scores, v.Deadlines)
		if v.Stream != nil {
			value = fmt.Sprintf("%+v", *v.Stream)
		}
		out = append(out, fmt.Sprintf("%q %d %s %s", k, v.Kind, deadline.Text(), value))
	}
	slices.Sort(out)
	return out
}

// canonical puts what has no order into one.
func canonical(v *rdb.Value) {
	type item struct {
		text  string
		score float64
	}
	var all []item
	switch v.Kind {
	case rdb.Set:
		slices.SortFunc(v.Items, func(a, b []byte) int { return strings.Compare(string(a), string(b)) })
	case rdb.ZSet:
		for i, m := range v.Items {
			all = append(all, item{string(m), v.Scores[i]})
		}
	case rdb.Hash:
		for i := 0; i < len(v.Items); i += 2 {
			all = append(all, item{text: fmt.Sprintf("%q=%q", v.Items[i], v.Items[i+1])})
		}
	case rdb.Stream:
		for i := range v.Stream.Groups {
			g := &v.Stream.Groups[i]
			g.Read = 0
			for k := range g.Consumers {
				g.Consumers[k].Seen, g.Consumers[k].Active = 0, 0
			}
			slices.SortFunc(g.Consumers, func(a, b rdb.Consumer) int { return strings.Compare(string(a.Name), string(b.Name)) })
		}
		slices.SortFunc(v.Stream.Groups, func(a, b rdb.Group) int { return strings.Compare(string(a.Name), string(b.Name)) })
	}
	if all == nil {
		return
	}
	slices.SortFunc(all, func(a, b item) int { return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.text, b.text)) })
	v.Items, v.Scores = nil, nil
	for _, x := range all {
		v.Items, v.Scores = append(v.Items, []byte(x.text)), append(v.Scores, x.score)
	}
}

// equal waits until two lists are: keys may be about to expire.
func equal(t *testing.T, what string, list func() (want, got []string)) {
	t.Helper()
	until(t, what, func() string {
		want, got := list()
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				return fmt.Sprintf("redis has %d keys, kevy %d; the first that differs:\n%.900s\n%.900s", len(want), len(got), at(want, i), at(got, i))
			}
		}
		if len(want) < 30 {
			return fmt.Sprint("only ", len(want), " keys: nothing is shown by that")
		}
		return ""
	})
}

// TestMigrate moves a redis-server under load, with values of all types, deadlines, scripts and transactions, to a kevy that runs, by REPLICAOF, over a link
// that is cut; then kevy has the same keys by DUMP, and is promoted. Clients of kevy read meanwhile.
func TestMigrate(t *testing.T) {
	for i, diskless := range []string{"yes", "no"} {
		s, redis := stock(t, "--repl-diskless-sync", diskless, "--repl-diskless-sync-delay", "0", "--repl-backlog-size", "64mb")
		play(t, redis, uint64(i)+800)
		twin := replica(t, s)
		m := move(t, s, "--shards", "3")
		m.do("SET old junk")
		if r, err := m.c.Do("FUNCTION", "LOAD", "#!lua name=old\nredis.register_function('o', function() return 1 end)"); err != nil || r.IsError() {
			t.Fatal(r.String(), err)
		}
		m.follow()
		var over atomic.Bool
		var writers sync.WaitGroup
		writers.Go(func() { churn(t, s, &over) })
		t.Cleanup(func() { over.Store(true); writers.Wait() })
		for n := range migrateFlags.Rounds(3) {
			play(t, redis, uint64(i*1000+n)+820)
			m.up()
			if r := m.do("GET churn:n"); r.IsError() {
				t.Errorf("a read meanwhile: %s", r.String())
			}
			if r := m.do("SET churn:n 1"); !strings.HasPrefix(r.Text(), "READONLY") {
				t.Errorf("a write meanwhile: %s", r.String())
			}
			m.link.Cut()
		}
		over.Store(true)
		writers.Wait()
		m.up()
		c := redis.conns[1]
		if r, err := c.Must("WAIT", "2", "30000"); err != nil || r.Text() != "2" {
			t.Errorf("replicas that have all: %s, %v", r.String(), err)
		}
		m.caughtUp(c)
		equal(t, "DUMP of all keys", func() (want, got []string) { return dumps(t, c), dumps(t, m.c) })
		equal(t, "all keys, and those of a stock replica", func() (want, got []string) { return keyspace(t, twin), keyspace(t, m.c) })
		if full, got := m.field("repl_full_copies"), m.field("repl_connects"); full != "1" || got == "1" {
			t.Errorf("%s full copies over %s connections: the link was cut for nothing, or for too much", full, got)
		}
		if r := m.do("ROLE"); r.Elems[0].Text() != "slave" || r.Elems[3].Text() != "connected" {
			t.Errorf("ROLE: %s", r.String())
		}
		if r := m.do("FUNCTION LIST"); len(r.Elems) != 1 {
			t.Errorf("libraries: %s", r.String())
		}
		m.promoted(c)
	}
}

// promoted ends the migration: kevy takes writes, and nothing from redis any more.
func (m *moving) promoted(source *wire.Conn) {
	m.t.Helper()
	if r := m.do("REPLICAOF NO ONE"); r.IsError() {
		m.t.Error(r.String())
	}
	if _, err := source.Must("SET", "after", "1"); err != nil {
		m.t.Fatal(err)
	}
	if r := m.do("INCRBY after 7"); r.Text() != "7" {
		m.t.Errorf("a write after REPLICAOF NO ONE: %s", r.String())
	}
	if role := m.field("role"); role != "master" {
		m.t.Errorf("role: %s", role)
	}
}

// TestMigrateRefuses: what can't be taken leaves what kevy has; a server that has not kept what comes next is copied again.
func TestMigrateRefuses(t *testing.T) {
	s := proc.RedisForTest(t, "--databases", "16", "--repl-backlog-size", "16kb", "--repl-diskless-sync-delay", "0")
	c, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	source := func(args ...string) {
		t.Helper()
		if _, err := c.Must(args...); err != nil {
			t.Fatal(err)
		}
	}
	source("CONFIG", "SET", "requirepass", "secret")
	source("AUTH", "secret")
	source("SELECT", "3")
	source("SET", "elsewhere", "1")
	m := move(t, s)
	m.do("SET old 1")
	m.follow()
	m.refused("NOAUTH")
	m.do("CONFIG SET masterauth wrong")
	m.refused("WRONGPASS")
	m.do("CONFIG SET masterauth secret")
	m.refused("there is data in another database, 3")
	if r := m.do("GET old"); r.Text() != "1" {
		t.Errorf("after what was refused old is %s", r.String())
	}
	source("FLUSHALL")
	source("SELECT", "0")
	source("SET", "here", "1")
	m.do("REPLICAOF NO ONE") // or it waits for a minute
	m.follow()
	m.up()
	down := proc.NewProxy(t, 1) // nobody is there
	m.do("REPLICAOF 127.0.0.1 " + strconv.Itoa(down.Port))
	for i := range 40 {
		source("SET", fmt.Sprint("filler", i), strings.Repeat("x", 4000))
	}
	m.follow()
	m.up()
	m.caughtUp(c)
	equal(t, "DUMP of all keys", func() (want, got []string) { return dumps(t, c), dumps(t, m.c) })
	if n := m.field("repl_full_copies"); n != "1" {
		t.Errorf("%s full copies of this connection's follower", n)
	}
	source("SELECT", "5")
	source("SET", "elsewhere", "1")
	m.refused("there is data in another database, 5")
	m.promoted(c)
}

// refused waits until kevy says why it has no link.
func (m *moving) refused(why string) {
	m.t.Helper()
	until(m.t, "the refusal", func() string {
		if got := m.field("repl_error"); !strings.Contains(got, why) {
			return got
		}
		return ""
	})
}

// stockReplica is a redis-server that follows a kevy through a proxy.
func stockReplica(t *testing.T, srv *proc.Server, link *proc.Proxy) *wire.Conn {
	t.Helper()
	s, redis := stock(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("kevy:\n%s\nredis:\n%s", srv.Log(), s.Log())
		}
	})
	r := redis.conns[1]
	for _, line := range []string{"SET old junk", "REPLICAOF 127.0.0.1 " + strconv.Itoa(link.Port)} {
		if _, err := r.Must(strings.Fields(line)...); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// TestStockReplica has a stock redis-server follow a kevy of several shards under load, over a link that is cut again and again: it takes one copy, goes on where it was each
// time, and then has the same keys by DUMP. WAIT at kevy counts it.
func TestStockReplica(t *testing.T) {
	srv := proc.ForTest(t, "--shards", "3")
	kevy := emptied(t, "kevy", srv)
	play(t, kevy, 900)
	link := proc.NewProxy(t, srv.Port)
	r := stockReplica(t, srv, link)
	c := kevy.conns[1]
	up := func(connects int) {
		t.Helper()
		until(t, "redis has a link", func() string {
			if got := field(t, r, "master_link_status"); got != "up" {
				return got
			}
			got, err := c.Must("INFO", "stats")
			if err != nil || !strings.Contains(got.Text(), fmt.Sprintf("sync_full:1\r\nsync_partial_ok:%d\r\n", connects-1)) {
				return fmt.Sprint(got.Text(), err)
			}
			return ""
		})
	}
	up(1)
	var over atomic.Bool
	var writers sync.WaitGroup
	writers.Go(func() { churn(t, srv, &over) })
	t.Cleanup(func() { over.Store(true); writers.Wait() })
	rounds := migrateFlags.Rounds(3)
	for n := range rounds {
		play(t, kevy, uint64(n)+910)
		up(n + 1)
		link.Cut()
		for i := range 2000 { // 4 MB
			if _, err := c.Must("SET", fmt.Sprint("away:", n, ":", i%100), strings.Repeat("x", 2000)); err != nil {
				t.Fatal(err)
			}
		}
		up(n + 2)
	}
	over.Store(true)
	writers.Wait()
	if got, err := c.Must("WAIT", "1", "20000"); err != nil || got.Text() != "1" {
		t.Errorf("WAIT: %s, %v", got.String(), err)
	}
	equal(t, "DUMP of all keys", func() (want, got []string) { return dumps(t, r), dumps(t, c) })
	up(rounds + 1)
	if got, err := r.Must("FUNCTION", "LIST"); err != nil || len(got.Elems) != 1 {
		t.Errorf("libraries: %s, %v", got.String(), err)
	}
	if got, err := c.Do("FAILOVER"); err != nil || got.Text() != "ERR FAILOVER requires connected replicas." {
		t.Errorf("FAILOVER to a stock Redis: %s, %v", got.String(), err)
	}
	if got := field(t, c, "slave0"); !strings.Contains(got, "state=online") {
		t.Errorf("kevy says of its replica: %s", got)
	}
}

// TestStockReplicaOverRestart: a stock redis-server goes on where it was when its kevy was stopped and started again.
func TestStockReplicaOverRestart(t *testing.T) {
	port, err := proc.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	srv, err := proc.StartKevyOn(proc.Loopback, port, filepath.Join(t.TempDir(), "data"), "--shards", "3")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.KillAndCheck(t) })
	r := stockReplica(t, srv, proc.NewProxy(t, port))
	for n, counts := range []string{"sync_full:1\r\nsync_partial_ok:0\r\n", "sync_full:0\r\nsync_partial_ok:1\r\n", "sync_full:0\r\nsync_partial_ok:1\r\n"} {
		if n > 0 {
			if err := srv.Stop(); err != nil {
				t.Fatal(err)
			}
			if srv, err = proc.StartKevyOn(proc.Loopback, port, srv.Dir, "--shards", "3"); err != nil {
				t.Fatal(err)
			}
		}
		c, err := srv.Dial()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for i := range 100 {
			if _, err := c.Must("RPUSH", fmt.Sprint("list", i%40), fmt.Sprint(n, " ", i)); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "redis is served", func() string {
			got, err := c.Must("INFO", "stats")
			if err != nil || !strings.Contains(got.Text(), counts) {
				return fmt.Sprint(got.Text(), err)
			}
			return ""
		})
		if got, err := c.Must("WAIT", "1", "20000"); err != nil || got.Text() != "1" {
			t.Errorf("WAIT: %s, %v", got.String(), err)
		}
		equal(t, "DUMP of all keys", func() (want, got []string) { return dumps(t, r), dumps(t, c) })
	}
}
