package migrate_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kevydb/kevy"
	"github.com/kevydb/kevy/internal/migrate"
)

// aof writes commands, one a line, as an append-only file.
func aof(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		words := strings.Fields(line)
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, w := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	return b.String()
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ask opens an imported directory of one shard and returns the reply to each command.
func ask(t *testing.T, dir string, lines ...string) (out []string) {
	t.Helper()
	s, err := kevy.Open(kevy.DefaultConfig().WithDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // over
	for _, line := range lines {
		var args []any
		for w := range strings.FieldsSeq(line) {
			args = append(args, w)
		}
		v, err := s.Do(args...)
		if err != nil {
			t.Fatal(line, err)
		}
		if b, ok := v.([]byte); ok {
			v = string(b)
		}
		out = append(out, fmt.Sprint(v))
	}
	return out
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestAOF runs what append-only files have: transactions, annotations, scripts of old versions, deadlines that have passed, FLUSHALL.
func TestAOF(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "a.aof"), "#TS:1700000000\r\n"+aof("SELECT 0", "SET gone 1", "FLUSHALL", "SET a 1", "MULTI", "INCR a", "RPUSH l x", "SWAPDB 0 0", "EXEC",
		"EVAL redis.call('incrby',KEYS[1],5) 1 a", "SET due 1", "PEXPIREAT due 1000", "PERSIST due", "PUBLISH c m"))
	to := filepath.Join(t.TempDir(), "new")
	r, err := migrate.Run(t.Context(), migrate.Options{AOF: path, To: to, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Keys != 3 || r.Commands != 9 {
		t.Errorf("%+v", r)
	}
	same(t, ask(t, to, "GET a", "LLEN l", "PTTL due", "EXISTS gone"), "7", "1", "-1", "0")
}

// TestTruncated cuts a file at every byte: it is refused, or with Truncated imported up to its last whole command or transaction.
func TestTruncated(t *testing.T) {
	whole := []string{aof("SET a 1"), aof("MULTI", "INCR a", "INCR a", "EXEC"), aof("INCR a")}
	values, text := []string{"<nil>", "1", "3", "4"}, strings.Join(whole, "")
	path := filepath.Join(t.TempDir(), "a.aof")
	for n := 1; n < len(text); n += 3 {
		write(t, path, text[:n])
		done, at := 0, 0
		for done < len(whole) && at+len(whole[done]) <= n {
			at += len(whole[done])
			done++
		}
		to := filepath.Join(t.TempDir(), "new")
		_, err := migrate.Run(t.Context(), migrate.Options{AOF: path, To: to, Shards: 1})
		if at < n && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf("byte %d: the file ends within", at))) {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if at == n {
			continue
		}
		if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("cut at %d: something is left: %v", n, err)
		}
		r, err := migrate.Run(t.Context(), migrate.Options{AOF: path, To: to, Shards: 1, Truncated: true})
		if err != nil || r.Tail == nil || r.Tail.Offset != int64(at) || r.Tail.Bytes != int64(n-at) {
			t.Fatalf("cut at %d: %v %+v", n, err, r)
		}
		same(t, ask(t, to, "GET a"), values[done])
	}
}

// TestManifest reads several files in order, and refuses what does not fit.
func TestManifest(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.base.aof"), aof("SET a 1"))
	write(t, filepath.Join(dir, "a 1.incr.aof"), aof("APPEND a 2"))
	write(t, filepath.Join(dir, "a.2.incr.aof"), aof("APPEND a 3")+"*1\r\n")
	const good = "file a.0 seq 1 type h\nfile a.base.aof seq 2 type b\nfile a.2.incr.aof seq 2 type i\nfile \"a 1.incr.aof\" seq 1 type i\n"
	manifest := write(t, filepath.Join(dir, "a.manifest"), good)
	to := filepath.Join(t.TempDir(), "new")
	r, err := migrate.Run(t.Context(), migrate.Options{AOF: dir, To: to, Shards: 1, Truncated: true})
	if err != nil || r.Tail == nil || r.Tail.Bytes != 4 {
		t.Fatal(r, err)
	}
	same(t, ask(t, to, "GET a"), "123")
	for text, want := range map[string]string{
		"":  "0 base files",
		"x": "line 1",
		strings.Replace(good, "seq 2 type i", "seq 3 type i", 1):                           "increment 3 follows 1",
		strings.Replace(good, "a.2.incr.aof", "../a.2.incr.aof", 1):                        "want a name in the manifest's directory",
		strings.Replace(good, "a.2.incr.aof", "a.7.incr.aof", 1):                           "no such file",
		strings.Replace(good, "seq 1 type h", "seq 1 type b", 1):                           "2 base files",
		strings.ReplaceAll(strings.Replace(good, "2 type i", "0 type i", 1), "\n", "\r\n"): "line 3",
	} {
		write(t, manifest, text)
		if _, err := migrate.Run(t.Context(), migrate.Options{AOF: manifest, DryRun: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestDatabases: other databases are refused, or left out when one was chosen.
func TestDatabases(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "a.aof"), aof("SET zero 1", "SELECT 3", "SET three 1", "MULTI", "SELECT 0", "SET both 1", "SELECT 3", "SET both 2", "EXEC", "SET last 1"))
	for db, want := range map[int][]string{0: {"1", "<nil>", "1", "<nil>"}, 3: {"<nil>", "1", "2", "1"}} {
		to := filepath.Join(t.TempDir(), "new")
		if _, err := migrate.Run(t.Context(), migrate.Options{AOF: path, To: to, DB: db}); err == nil || !strings.Contains(err.Error(), "--db N") {
			t.Errorf("%d: %v", db, err)
		}
		r, err := migrate.Run(t.Context(), migrate.Options{AOF: path, To: to, Shards: 1, DB: db, Chosen: true})
		if err != nil || r.Skipped+r.Commands != 5 {
			t.Fatal(r, err)
		}
		same(t, ask(t, to, "GET zero", "GET three", "GET both", "GET last"), want...)
	}
}

// TestRefused: what can't be run is refused before, or undone as a whole.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		aof("SET a 1", "JSON.SET k . 1"):   `byte 27: the command that follows: ["JSON.SET" "k" "."] ...: ERR unknown command`,
		aof("SET a 1", "LPUSH a 1"):        "WRONGTYPE",
		aof("EXEC"):                        "EXEC without MULTI",
		aof("MULTI", "MULTI"):              "MULTI inside one",
		aof("SET a"):                       "wrong number of arguments",
		aof("SELECT x"):                    "no database",
		aof("SWAPDB 0 1"):                  "moves keys between databases",
		"*1\r\n$x\r\n":                     "Protocol error",
		"*1\r\n$0\r\n\r\n":                 "unknown command ''",
		"REDIS0010\xff12345678":            "checksum",
		aof("MULTI", "SET b 1", "BOGUS 1"): "unknown command",
	} {
		path := write(t, filepath.Join(t.TempDir(), "a.aof"), text)
		to := filepath.Join(t.TempDir(), "new")
		if _, err := migrate.Run(t.Context(), migrate.Options{AOF: path, To: to}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: something is left: %v", text, err)
		}
	}
}

// primary answers like a primary: each PSYNC gets the next of the scripts. Others may connect too: ports are used again.
func primary(t *testing.T, scripts ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	next := make(chan string, len(scripts))
	for _, s := range scripts {
		next <- s
	}
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go answer(nc.(*net.TCPConn), next)
		}
	}()
	return l.Addr().String()
}

func answer(nc *net.TCPConn, scripts <-chan string) {
	defer nc.Close() //nolint:errcheck // over
	in := bufio.NewScanner(nc)
	for in.Scan() {
		switch in.Text() {
		case "PING", "eof", "listening-port":
			_, _ = nc.Write([]byte("+OK\r\n"))
		case "PSYNC":
			_, _ = nc.Write([]byte(<-scripts))
			_ = nc.CloseWrite() // and takes what is acknowledged, or the other side gets a reset
			_, _ = io.Copy(io.Discard, nc)
			return
		}
	}
}

// TestLiveRefuses: a primary that sends nonsense, stops in the middle, or can't go on.
func TestLiveRefuses(t *testing.T) {
	const full = "\n\n+FULLRESYNC 0123456789012345678901234567890123456789 7\r\n"
	for _, c := range []struct {
		scripts []string
		want    string
		kept    bool
	}{
		{[]string{"-NOMASTERLINK no\r\n"}, "NOMASTERLINK", false},
		{[]string{"+WHAT\r\n"}, "WHAT", false},
		{[]string{full}, "EOF", false},
		{[]string{full + "\n$x\r\n"}, "no copy but", false},
		{[]string{full + "$100\r\nREDIS0004\xff"}, "10 bytes, 100 were announced", false},
		{[]string{full + "$100\r\nREDIS0004\x00\x01k"}, "ends within", false},
		{[]string{full + "$EOF:" + strings.Repeat("m", 40) + "\r\nREDIS0004\xff" + strings.Repeat("n", 40)}, "mark", false},
		{[]string{full + "$10\r\nREDIS0004\xff" + aof("SET a 1", "LPUSH a 1")}, "offset 34: the command that follows", true},
		{[]string{full + "$10\r\nREDIS0004\xff" + aof("SET a 1", "MULTI", "INCR a"), "+CONTINUE\r\n" + aof("INCR a"), full}, "PSYNC 0123456789012345678901234567890123456789 56", true},
	} {
		to := filepath.Join(t.TempDir(), "new")
		ctx, stop := context.WithCancel(t.Context())
		r, err := migrate.Run(ctx, migrate.Options{From: &migrate.Source{Addr: primary(t, c.scripts...)}, To: to, Shards: 1, Follow: true})
		stop()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.scripts, err, c.want)
		}
		if _, err := os.Stat(to); (err == nil) != c.kept {
			t.Errorf("%q: %v", c.scripts, err)
		}
		if c.kept {
			same(t, ask(t, to, "GET a"), fmt.Sprint(len(c.scripts)/2+1))
			if r.Offset == 7 {
				t.Errorf("%+v", r)
			}
		}
	}
}
