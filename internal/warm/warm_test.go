package warm_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kevydb/kevy"
	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
	"github.com/kevydb/kevy/internal/warm"
)

func TestMain(m *testing.M) { os.Exit(proc.Main(m)) }

func serve(t *testing.T, flags ...string) *proc.Server {
	t.Helper()
	s, err := proc.StartKevy(filepath.Join(t.TempDir(), "data"), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Kill() })
	return s
}

func dial(t *testing.T, s *proc.Server) *wire.Conn {
	t.Helper()
	c, err := wire.Dial(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func do(t *testing.T, c *wire.Conn, line string) wire.Reply {
	t.Helper()
	args := strings.Fields(line)
	for i := range args {
		if args[i] == `""` {
			args[i] = ""
		}
	}
	r, err := c.Must(args...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func digest(t *testing.T, c *wire.Conn) string {
	t.Helper()
	r := do(t, c, `PREFIX.DIGEST ""`)
	return string(r.Elems[0].Str) + " " + string(r.Elems[1].Str)
}

// write changes keys of all kinds, by effects that must not be applied twice.
func write(t *testing.T, c *wire.Conn, round, n int) {
	t.Helper()
	for i := range n {
		k := (round*7 + i) % 50
		c.Queue(wire.Bytes("INCR", fmt.Sprint("n", k)))
		c.Queue(wire.Bytes("APPEND", fmt.Sprint("s", k), "x"))
		c.Queue(wire.Bytes("RPUSH", fmt.Sprint("l", k), "x"))
		c.Queue(wire.Bytes("ZINCRBY", fmt.Sprint("z", k), "1", "m"))
		c.Queue(wire.Bytes("XADD", fmt.Sprint("x", k), "*", "f", "v"))
		c.Queue(wire.Bytes("DEL", fmt.Sprint("s", k+25), fmt.Sprint("l", k+25)))
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	for range 6 * n {
		if r, err := c.Read(); err != nil || r.Err() != nil {
			t.Fatal(err, r.Err())
		}
	}
}

// await waits until the copy stands where the server does now.
func await(t *testing.T, m *kevy.Mirror) {
	t.Helper()
	tails, err := m.Tails(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		there := 0
		for i, s := range m.Status() {
			if s.Cursor == tails[i] && !s.Rebuilding {
				there++
			}
		}
		if there == len(tails) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v, tails %v", m.Status(), tails)
		}
	}
}

// started starts the copy and compares it with what it should be.
func started(t *testing.T, to, want string) {
	t.Helper()
	dst, err := proc.StartKevy(to)
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Kill() //nolint:errcheck // over
	d := dial(t, dst)
	if got := digest(t, d); got != want {
		t.Errorf("started, the copy has %s, the server %s", got, want)
	}
	if r := do(t, d, "FUNCTION LIST"); len(r.Elems) != 1 {
		t.Error("the copy has no functions")
	}
	if r := do(t, d, "FEED.INFO 0"); !strings.Contains(string(r.Raw), "restore") {
		t.Errorf("no generation of cause restore: %q", r.Raw)
	}
}

// TestCopy copies a server that is being written to, follows it, and starts the copy: it has the same keys.
func TestCopy(t *testing.T) {
	src := serve(t, "--shards", "3")
	c := dial(t, src)
	write(t, c, 0, 500)
	if _, err := c.Must("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)"); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	based := make(chan struct{})
	m := &kevy.Mirror{Addr: src.Addr}
	var res *warm.Result
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		res, failed = warm.Run(ctx, warm.Options{From: m, To: to, Follow: true, Based: func(int, string) { close(based) }})
	})
	for round := 1; ; round++ {
		write(t, c, round, 100)
		select {
		case <-based:
		default:
			continue
		}
		break
	}
	do(t, c, "FLUSHALL")
	write(t, c, 99, 100)
	want := digest(t, c)
	await(t, m)
	stop()
	wg.Wait()
	if failed != nil {
		t.Fatal(failed)
	}
	if got := fmt.Sprint(res.Keys, " ", res.Digest); got != want || res.Copies != 3 {
		t.Errorf("the copy has %s after %d copies, the server %s", got, res.Copies, want)
	}
	started(t, to, want)
}

// TestCopyOnce ends by itself, and takes only the keys with the prefix.
func TestCopyOnce(t *testing.T) {
	src := serve(t, "--shards", "2")
	c := dial(t, src)
	write(t, c, 0, 100)
	to := filepath.Join(t.TempDir(), "copy")
	res, err := warm.Run(t.Context(), warm.Options{From: &kevy.Mirror{Addr: src.Addr, Prefixes: []string{"n"}}, To: to})
	if err != nil {
		t.Fatal(err)
	}
	r := do(t, c, "PREFIX.DIGEST n")
	if want := string(r.Elems[0].Str) + " " + string(r.Elems[1].Str); fmt.Sprint(res.Keys, " ", res.Digest) != want {
		t.Errorf("%+v, want %s", res, want)
	}
	if _, err := warm.Run(t.Context(), warm.Options{From: &kevy.Mirror{Addr: src.Addr}, To: to}); err == nil {
		t.Error("copied over a directory that is not empty")
	}
}

// TestCopyResyncs: after the server has lost its history (other data at the same address) the copy is made anew in place; nothing of the
// old data stays.
func TestCopyResyncs(t *testing.T) {
	one, two := serve(t, "--shards", "2"), serve(t, "--shards", "2")
	a, b := dial(t, one), dial(t, two)
	write(t, a, 0, 300)
	do(t, a, "SET only:one 1")
	write(t, b, 5, 200)
	do(t, b, "SET only:two 1")
	current := one.Addr
	var mu sync.Mutex
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	based := make(chan struct{})
	links := make(map[*link]bool)
	m := &kevy.Mirror{Addr: "either"}
	m.Dial = dialer(&mu, &current, links)
	done := make(chan error, 1)
	var res *warm.Result
	go func() {
		var err error
		res, err = warm.Run(ctx, warm.Options{
			From: m, To: filepath.Join(t.TempDir(), "copy"), Follow: true, Based: func(int, string) { close(based) },
		})
		done <- err
	}()
	<-based
	mu.Lock()
	current = two.Addr
	for l := range links {
		_ = l.Close()
	}
	mu.Unlock()
	want := digest(t, b)
	await(t, m)
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(res.Keys, " ", res.Digest); got != want || res.Copies != 4 {
		t.Errorf("the copy has %s after %d copies, the server %s", got, res.Copies, want)
	}
}

// link is a connection that the test can cut.
type link struct{ net.Conn }

func dialer(mu *sync.Mutex, addr *string, links map[*link]bool) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, _ string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		nc, err := new(net.Dialer).DialContext(ctx, "tcp", *addr)
		if err != nil {
			return nil, err
		}
		l := &link{nc}
		links[l] = true
		return l, nil
	}
}

func TestCopyRefuses(t *testing.T) {
	to := filepath.Join(t.TempDir(), "copy")
	if _, err := warm.Run(t.Context(), warm.Options{From: &kevy.Mirror{Addr: "127.0.0.1:1"}, To: to}); err == nil {
		t.Error("copied from nobody")
	}
	src := serve(t, "--feed-enabled=no")
	if _, err := warm.Run(t.Context(), warm.Options{From: &kevy.Mirror{Addr: src.Addr}, To: to}); err == nil || !strings.Contains(err.Error(), "feed disabled") {
		t.Errorf("without a feed: %v", err)
	}
	if _, err := os.Stat(to); !os.IsNotExist(err) {
		t.Errorf("something is left: %v", err)
	}
}

// run runs a copy until it has come to where the source is, and longer if it follows: end ends it.
func run(t *testing.T, o warm.Options) (end func() *warm.Result) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	based, done := make(chan struct{}), make(chan struct{})
	o.Based = func(int, string) { close(based) }
	var res *warm.Result
	var err error
	go func() {
		defer close(done)
		res, err = warm.Run(ctx, o)
	}()
	select {
	case <-based:
	case <-done:
		stop()
		t.Fatal("it ended: ", err)
	}
	return func() *warm.Result {
		t.Helper()
		if o.Follow {
			await(t, o.From)
			stop()
		}
		<-done
		stop()
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
}

// TestCopyGoesOn ends a copy that follows, and takes it up again, several times: nothing is copied twice, effects that must not be applied twice are not, a
// FLUSHALL and a copy that has to be made anew leave nothing of the old keys.
func TestCopyGoesOn(t *testing.T) {
	src := serve(t, "--shards", "3", "--feed-buffer-size", "1mb", "--log-segment-size", "64kb")
	c := dial(t, src)
	write(t, c, 0, 200)
	if _, err := c.Must("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)"); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	resumed := ""
	options := func(follow bool) warm.Options {
		return warm.Options{
			From: &kevy.Mirror{Addr: src.Addr}, To: to, Follow: follow,
			Resumed: func(keys int, digest string) { resumed = fmt.Sprint(keys, " ", digest) },
		}
	}
	end := run(t, options(true))
	write(t, c, 1, 50)
	was := end()
	for round, step := range []struct {
		do     func()
		follow bool
		copies int
	}{
		{func() {}, true, 0},
		{func() { write(t, c, 2, 50) }, true, 0},
		{func() { write(t, c, 3, 50) }, false, 0},
		{func() { do(t, c, "FLUSHALL"); write(t, c, 4, 50) }, true, 0},
		{func() { do(t, c, "DEL n1 n2 n3 n4 n5"); overrun(t, c) }, true, 3},
		{func() { write(t, c, 5, 50) }, true, 0},
	} {
		step.do()
		end := run(t, options(step.follow))
		if step.follow {
			write(t, c, 10+round, 20)
		}
		want := digest(t, c)
		r := end()
		if got := fmt.Sprint(r.Keys, " ", r.Digest); got != want || r.Copies != step.copies {
			t.Errorf("round %d: the copy has %s after %d copies, the server %s", round, got, r.Copies, want)
		}
		if resumed != fmt.Sprint(was.Keys, " ", was.Digest) {
			t.Errorf("round %d: it went on with %s, it was left with %d %s", round, resumed, was.Keys, was.Digest)
		}
		was, resumed = r, ""
	}
	started(t, to, digest(t, c))
}

// overrun writes more than the feed's window.
func overrun(t *testing.T, c *wire.Conn) {
	t.Helper()
	v := strings.Repeat("v", 100_000)
	for i := range 60 {
		do(t, c, fmt.Sprintf("SET big%d %s", i, v))
	}
}

// TestCopyGoesOnRefuses: a copy that was served and written to, or one whose record is damaged, is not taken up, and stays as it is.
func TestCopyGoesOnRefuses(t *testing.T) {
	src := serve(t, "--shards", "2")
	c := dial(t, src)
	write(t, c, 0, 50)
	for what, spoil := range map[string]func(to string){
		"served": func(to string) {
			s, err := proc.StartKevy(to)
			if err != nil {
				t.Fatal(err)
			}
			do(t, dial(t, s), "SET mine 1")
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
		},
		"a damaged record": func(to string) {
			name := filepath.Join(to, "MIRROR")
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/2] ^= 1
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		to := filepath.Join(t.TempDir(), "copy")
		run(t, warm.Options{From: &kevy.Mirror{Addr: src.Addr}, To: to, Follow: true})()
		spoil(to)
		for range 2 {
			if r, err := warm.Run(t.Context(), warm.Options{From: &kevy.Mirror{Addr: src.Addr}, To: to}); err == nil {
				t.Errorf("%s: it went on: %+v", what, r)
			}
		}
		s, err := proc.StartKevy(to)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		_ = s.Stop()
	}
}
