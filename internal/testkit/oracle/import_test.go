package oracle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/migrate"
	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// play runs a random stream on a server of Redis, and makes values of every encoding; then more streams while a FLUSHALL has left few keys.
func play(t *testing.T, target *Target, seed uint64) {
	t.Helper()
	for ; ; seed += 1 << 32 {
		for _, st := range NewGen(seed).Stream(streamLen) {
			if _, err := target.run(st); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			time.Sleep(st.Sleep)
		}
		large(t, target.conns[1], int(seed%7))
		size, err := target.conns[1].Must("DBSIZE")
		if n, _ := size.Int(); err != nil || n >= 40 {
			return
		}
	}
}

// large makes values that are packed, and some that are not, with strings of all forms.
func large(t *testing.T, c *wire.Conn, n int) {
	t.Helper()
	must := func(args ...string) {
		t.Helper()
		if _, err := c.Must(args...); err != nil {
			t.Fatal(err)
		}
	}
	for i, size := range []int{3, 100, 700 + n} {
		for _, kind := range []string{"list", "set", "ints", "zset", "hash", "stream"} {
			must("DEL", fmt.Sprint("big:", kind, i))
		}
		for k := range size {
			member := fmt.Sprint("member", k)
			must("RPUSH", fmt.Sprint("big:list", i), member)
			must("SADD", fmt.Sprint("big:set", i), member)
			must("SADD", fmt.Sprint("big:ints", i), fmt.Sprint(k*(1<<(12*i))))
			must("ZADD", fmt.Sprint("big:zset", i), fmt.Sprint(float64(k)/4), member)
			must("HSET", fmt.Sprint("big:hash", i), member, fmt.Sprint(k))
			must("XADD", fmt.Sprint("big:stream", i), fmt.Sprintf("%d-1", k+1), "f", member)
		}
		must("XDEL", fmt.Sprint("big:stream", i), "2-1")
		must("XGROUP", "CREATE", fmt.Sprint("big:stream", i), "g", "0")
		must("XREADGROUP", "GROUP", "g", "me", "COUNT", "3", "STREAMS", fmt.Sprint("big:stream", i), ">")
	}
	must("DEL", "big:plain")
	must("RPUSH", "big:plain", strings.Repeat("x", 20000), "y")
	must("SET", "big:text", strings.Repeat("kevy ", 5000), "PX", "100000000")
	must("SET", "big:int", "-70000", "EX", "100000")
	must("PEXPIRE", "big:hash1", "98765432")
	must("FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\nredis.register_function('f', function() return 1 end)")
}

// imported starts kevy on an imported directory and compares it with what the source had.
func imported(t *testing.T, dir string, want []string) {
	t.Helper()
	s, err := proc.StartKevy(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.KillAndCheck(t)
	compare(t, s, want)
}

func compare(t *testing.T, s *proc.Server, want []string) {
	t.Helper()
	c, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := keyspace(t, c)
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("redis has %d keys, kevy %d; the first that differs:\n%.600s\n%.600s", len(want), len(got),
				at(want, i), at(got, i))
		}
	}
	if r, err := c.Must("FUNCTION", "LIST"); err != nil || len(r.Elems) != 1 {
		t.Errorf("libraries: %s, %v", r.String(), err)
	}
}

func at(all []string, i int) string {
	if i < len(all) {
		return all[i]
	}
	return "(none)"
}

// kevyRun runs kevy and returns what it printed.
func kevyRun(t *testing.T, args ...string) string {
	t.Helper()
	bin, err := proc.Kevy()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(bin, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kevy %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func stock(t *testing.T, flags ...string) (*proc.Server, *Target) {
	t.Helper()
	s := proc.RedisForTest(t, flags...)
	return s, emptied(t, "redis-server", s)
}

// emptied empties a server and connects to it.
func emptied(t *testing.T, name string, s *proc.Server) *Target {
	t.Helper()
	x := target(name, s)
	t.Cleanup(x.Close)
	if err := x.reset(); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestImportRDB imports what SAVE of a stock redis-server writes, into a new directory and into a running server.
func TestImportRDB(t *testing.T) {
	for i, flags := range [][]string{nil, {"--rdbcompression", "no", "--rdbchecksum", "no"}, {"--maxmemory-policy", "allkeys-lfu"}} {
		s, redis := stock(t, flags...)
		play(t, redis, uint64(i)+500)
		if _, err := redis.conns[1].Must("SAVE"); err != nil {
			t.Fatal(err)
		}
		want := keyspace(t, redis.conns[1])
		file, to := filepath.Join(s.Dir, "dump.rdb"), filepath.Join(t.TempDir(), "new")
		if out := kevyRun(t, "import", file, "--dry-run"); !strings.Contains(out, "RDB version 10, written by 7.0.15") {
			t.Errorf("dry run: %s", out)
		}
		kevyRun(t, "import", file, "--to", to, "--shards", "3")
		imported(t, to, want)
		srv := proc.ForTest(t, "--shards", "2")
		kevyRun(t, "import", file, "--addr", srv.Addr)
		compare(t, srv, want)
		kevyRun(t, "import", file, "--addr", srv.Addr, "--replace")
		compare(t, srv, want)
	}
}

// TestImportAOF imports the append-only files of a stock redis-server that has rewritten them meanwhile.
func TestImportAOF(t *testing.T) {
	for i, preamble := range []string{"yes", "no"} {
		flags := []string{"--appendonly", "yes", "--aof-use-rdb-preamble", preamble, "--aof-timestamp-enabled", "yes"}
		s, redis := stock(t, flags...)
		play(t, redis, uint64(i)+600)
		if _, err := redis.conns[1].Must("BGREWRITEAOF"); err != nil {
			t.Fatal(err)
		}
		for info := ""; !strings.Contains(info, "aof_rewrite_in_progress:0"); time.Sleep(time.Millisecond) {
			r, err := redis.conns[1].Must("INFO", "persistence")
			if err != nil {
				t.Fatal(err)
			}
			info = r.Text()
		}
		for _, st := range NewGen(uint64(i) + 650).Stream(streamLen) {
			if _, err := redis.run(st); err != nil {
				t.Fatal(err)
			}
			time.Sleep(st.Sleep)
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		want := reloaded(t, s.Dir, flags)
		to := filepath.Join(t.TempDir(), "new")
		kevyRun(t, "import", "--aof", filepath.Join(s.Dir, "appendonlydir"), "--to", to)
		imported(t, to, want)
		srv := proc.ForTest(t, "--shards", "2")
		kevyRun(t, "import", "--aof", filepath.Join(s.Dir, "appendonlydir"), "--addr", srv.Addr)
		compare(t, srv, want)
	}
}

// reloaded returns what redis-server itself makes of its files: 7.0 does not log all of what groups know (entries-read).
func reloaded(t *testing.T, dir string, flags []string) []string {
	t.Helper()
	s, err := proc.StartRedis(dir, flags...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop() //nolint:errcheck // over
	c, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return keyspace(t, c)
}

// replica is a stock replica of a server.
func replica(t *testing.T, of *proc.Server) *wire.Conn {
	t.Helper()
	_, target := stock(t)
	if _, err := target.conns[1].Must("REPLICAOF", "127.0.0.1", fmt.Sprint(of.Port)); err != nil {
		t.Fatal(err)
	}
	for info := ""; !strings.Contains(info, "master_link_status:up"); time.Sleep(time.Millisecond) {
		r, err := target.conns[1].Must("INFO", "replication")
		if err != nil {
			t.Fatal(err)
		}
		info = r.Text()
	}
	return target.conns[1]
}

// cutting is a connection that the test cuts.
type cutting struct {
	mu  sync.Mutex
	all []net.Conn
}

func (c *cutting) dial(ctx context.Context, addr string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err == nil {
		c.mu.Lock()
		c.all = append(c.all, nc)
		c.mu.Unlock()
	}
	return nc, err
}

func (c *cutting) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, nc := range c.all {
		_ = nc.Close()
	}
	c.all = nil
}

// TestImportLive follows a stock redis-server while clients write, over a link that is cut, and compares when the writes have stopped.
func TestImportLive(t *testing.T) {
	for i, diskless := range []string{"yes", "no"} {
		s, redis := stock(t, "--repl-diskless-sync", diskless, "--repl-diskless-sync-delay", "0", "--repl-backlog-size", "64mb")
		play(t, redis, uint64(i)+700)
		twin := replica(t, s)
		var link cutting
		src := &migrate.Source{Addr: s.Addr, Dial: link.dial}
		ctx, stop := context.WithCancel(t.Context())
		to := filepath.Join(t.TempDir(), "new")
		based, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := migrate.Run(ctx, migrate.Options{
				From: src, To: to, Shards: 3, Follow: true, Based: func(*migrate.Result) { close(based) },
			})
			ended <- err
		}()
		var over atomic.Bool
		var writers sync.WaitGroup
		writers.Go(func() { churn(t, s, &over) })
		t.Cleanup(func() { over.Store(true); writers.Wait() })
		for n := range 4 {
			play(t, redis, uint64(i*10+n)+720)
			select {
			case err := <-ended:
				t.Fatal(err)
			case <-based:
				link.cut()
			}
		}
		over.Store(true)
		writers.Wait()
		await(t, src, ended)
		if r, err := redis.conns[1].Must("WAIT", "2", "30000"); err != nil || r.Text() != "2" {
			t.Errorf("replicas that have all: %s, %v", r.String(), err)
		}
		want := keyspace(t, twin)
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if _, commands, resumed := src.Status(); resumed == 0 || commands == 0 {
			t.Errorf("%d commands, %d times taken up again", commands, resumed)
		}
		imported(t, to, want)
	}
}

// churn writes what must be applied exactly once, in transactions and scripts too, until it is over.
func churn(t *testing.T, s *proc.Server, over *atomic.Bool) {
	c, err := s.Dial()
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	for n := 0; !over.Load(); n++ {
		for _, line := range []string{
			"MULTI", "INCR churn:n", "APPEND churn:s x", "RPUSH churn:l a", "XADD churn:x * f v", "EXEC",
			"SET churn:due 1 PX 3", "EVAL redis.call('incr',KEYS[1])redis.call('lpush',KEYS[2],'s') 2 churn:e churn:el",
			"SPOP churn:set", "SADD churn:set " + fmt.Sprint(n, " ", n+1, " ", n+2), "XTRIM churn:x MAXLEN ~ 200",
			"LTRIM churn:l -50 -1", "GETEX churn:n PX 1000000", "INCRBYFLOAT churn:f 0.1",
		} {
			if _, err := c.Do(strings.Fields(line)...); err != nil {
				t.Error(err)
				return
			}
		}
	}
	if _, err := c.Do("DEL", "churn:due"); err != nil {
		t.Error(err)
	}
}

// await waits until the import has what the source has.
func await(t *testing.T, src *migrate.Source, ended <-chan error) {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	want, err := src.Tail(t.Context())
	for at := int64(-1); err != nil || at < want; time.Sleep(time.Millisecond) {
		select {
		case err := <-ended:
			t.Fatal(err)
		default:
		}
		if at, _, _ = src.Status(); time.Now().After(end) {
			t.Fatalf("at %d of %d, %v", at, want, err)
		}
		if err != nil {
			want, err = src.Tail(t.Context())
		}
	}
}

// TestImportRefuses: bad files are refused and leave nothing, whatever is wrong with them.
func TestImportRefuses(t *testing.T) {
	s, redis := stock(t)
	large(t, redis.conns[1], 0)
	if _, err := redis.conns[1].Must("SAVE"); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(s.Dir, "dump.rdb"))
	if err != nil {
		t.Fatal(err)
	}
	file, to := filepath.Join(t.TempDir(), "bad.rdb"), filepath.Join(t.TempDir(), "new")
	refuse := func(what string, b []byte) {
		t.Helper()
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := migrate.Run(t.Context(), migrate.Options{RDB: file, To: to})
		if err == nil || !strings.Contains(err.Error(), "byte ") {
			t.Fatalf("%s: %v", what, err)
		}
		if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%s: something is left: %v", what, err)
		}
	}
	for n := 0; n < len(good); n += 1 + len(good)/300 {
		refuse(fmt.Sprint("cut at ", n), good[:n])
	}
	for i := range 300 {
		bad := slices.Clone(good)
		at := (i*7919 + 13) % len(bad)
		bad[at] ^= 1 << (i % 8)
		refuse(fmt.Sprint("bit flipped in byte ", at), bad)
	}
	refuse("more behind", append(slices.Clone(good), 'x'))
	refuse("version", append([]byte("REDIS0099"), good[9:]...))
	if strings.Contains(dryRun(t, file, good), "byte") {
		t.Error("the good file is refused")
	}
}

// dryRun reads a file and returns the error's text.
func dryRun(t *testing.T, file string, b []byte) string {
	t.Helper()
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := migrate.Run(t.Context(), migrate.Options{RDB: file, DryRun: true})
	return fmt.Sprint(err)
}

// TestImportIntoServer: a server with keys is left alone, and a command that it refuses is named.
func TestImportIntoServer(t *testing.T) {
	srv := proc.ForTest(t)
	c, err := srv.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var file []byte
	for _, line := range []string{"SET a 1", "MULTI", "SET b 1", "LPUSH a x", "EXEC", "SET c 1"} {
		file = wire.AppendCommand(file, wire.Bytes(strings.Fields(line)...))
	}
	o := migrate.Options{AOF: filepath.Join(t.TempDir(), "a.aof"), Addr: srv.Addr}
	o.Connect = func(ctx context.Context) (*client.Conn, error) { return client.Dial(ctx, o.Addr) }
	if err := os.WriteFile(o.AOF, file, 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *migrate.CommandError
	if _, err := migrate.Run(t.Context(), o); !errors.As(err, &refused) || !strings.HasPrefix(refused.Reply, "WRONGTYPE") ||
		refused.Command != `["LPUSH" "a" "x"]` || !strings.Contains(err.Error(), "only a part") {
		t.Errorf("%v", err)
	}
	if _, err := migrate.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "it has 3 keys already") {
		t.Errorf("%v", err)
	}
	o.Addr = "127.0.0.1:1"
	if _, err := migrate.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}
