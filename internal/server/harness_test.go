package server

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/wire"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// testServer is a server in this process, over an engine in memory.
type testServer struct {
	*Server
	t    testing.TB
	addr string
	eng  *engine.Engine
	down bool
}

// testOptions change what start builds.
type testOptions struct {
	fs       vfs.FS
	set      map[string]string // keys of the configuration
	file     string
	portable bool
	handlers map[string]handlerFunc // instead of the real ones
}

func start(t testing.TB, o testOptions) *testServer {
	t.Helper()
	cfg := config.Default()
	cfg.File = o.file
	for name, value := range o.set {
		k, ok := config.Lookup(name)
		if !ok {
			t.Fatalf("no key %s", name)
		}
		if err := cfg.Set(k, value); err != nil {
			t.Fatal(err)
		}
	}
	if o.fs == nil {
		o.fs = vfs.NewMem()
	}
	policy, err := log.ParsePolicy(cfg.AppendFsync)
	if err != nil {
		t.Fatal(err)
	}
	eng, _, err := engine.Open(engine.Options{Log: log.Options{FS: o.fs, Dir: "data", Shards: 2, Policy: policy, SegmentBytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := New(Options{Config: cfg, Engine: eng, Version: "test", Portable: o.portable})
	if err != nil {
		t.Fatal(err)
	}
	for name, fn := range o.handlers {
		srv.handlers[command.Lookup([]byte(name)).ID] = fn
	}
	a, err := srv.ListenOn("tcp", "127.0.0.1:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{Server: srv, t: t, addr: a.String(), eng: eng}
	go func() {
		if err := srv.Serve(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()
	t.Cleanup(func() {
		if !s.down {
			s.shutdown()
		}
	})
	return s
}

// shutdown stops the server and closes the engine.
func (s *testServer) shutdown() {
	s.t.Helper()
	s.down = true
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		s.t.Errorf("Shutdown: %v", err)
	}
	_ = s.eng.Close(true) // tests of a failed log close it uncleanly
}

// client is a connection with short helpers.
type client struct {
	*wire.Conn
	t testing.TB
}

func (s *testServer) client() *client {
	s.t.Helper()
	c, err := wire.Dial(s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	c.Timeout = 10 * time.Second
	s.t.Cleanup(c.Close)
	return &client{c, s.t}
}

// do runs a command written as a line and returns its reply as one line of text.
func (c *client) do(line string) string {
	c.t.Helper()
	r, err := c.Do(strings.Fields(line)...)
	if err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
	return show(&r)
}

// want runs a command and compares its reply; * at the end matches anything.
func (c *client) want(line, want string) {
	c.t.Helper()
	if got := c.do(line); !fits(got, want) {
		c.t.Errorf("%s\n got %s\nwant %s", line, got, want)
	}
}

func fits(got, want string) bool {
	if prefix, ok := strings.CutSuffix(want, "*"); ok {
		return strings.HasPrefix(got, prefix)
	}
	return got == want
}

// send sends a command without reading.
func (c *client) send(line string) {
	c.t.Helper()
	c.Queue(wire.Bytes(strings.Fields(line)...))
	if err := c.Flush(); err != nil {
		c.t.Fatal(err)
	}
}

// read reads one reply.
func (c *client) read() string {
	c.t.Helper()
	r, err := c.Read()
	if err != nil {
		c.t.Fatal(err)
	}
	return show(&r)
}

// silent checks that no reply comes for a while.
func (c *client) silent() {
	c.t.Helper()
	if data, _, _ := c.ReadAll(50 * time.Millisecond); len(data) > 0 {
		c.t.Fatalf("unexpected reply %q", data)
	}
}

// gone waits until the server has closed the connection.
func (c *client) gone() {
	c.t.Helper()
	if _, closed, err := c.ReadAll(5 * time.Second); !closed {
		c.t.Fatalf("connection is open (%v)", err)
	}
}

// show writes a reply on one line: +OK, -ERR x, :1, "bulk", nil, [a b], {k v}.
func show(r *wire.Reply) string {
	if r.Null {
		return "nil"
	}
	if !r.IsAggregate() {
		switch r.Kind {
		case '$', '=':
			return string(r.Str)
		}
		return string(r.Kind) + string(r.Str)
	}
	var parts []string
	for i := range r.Elems {
		parts = append(parts, show(&r.Elems[i]))
	}
	return fmt.Sprintf("%c[%s]", r.Kind, strings.Join(parts, " "))
}

// field returns a field of INFO.
func (c *client) field(section, name string) string {
	c.t.Helper()
	for line := range strings.Lines(c.do("INFO " + section)) {
		if v, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), name+":"); ok {
			return v
		}
	}
	return ""
}

// eventually waits until check is true.
func eventually(t testing.TB, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if check() {
			return
		}
	}
	t.Fatal("did not happen: " + what)
}

// raw sends bytes over a plain connection and returns all that comes back until it is closed or
// silent.
func (s *testServer) raw(data string) (reply string, closed bool) {
	s.t.Helper()
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close() //nolint:errcheck // a test's client
	if _, err := nc.Write([]byte(data)); err != nil {
		s.t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	n := 0
	for {
		_ = nc.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		m, err := nc.Read(buf[n:])
		n += m
		if err != nil {
			ne, timeout := err.(net.Error) //nolint:errorlint // as net returns it
			return string(buf[:n]), !timeout || !ne.Timeout()
		}
	}
}

func panicky(*resp.Writer) { panic("off the loop") }

// slowly is a command that says when it has begun and ends when told to.
func slowly(entered, release chan struct{}) func(*resp.Writer) {
	return func(w *resp.Writer) {
		close(entered)
		<-release
		w.Simple("done")
	}
}

// startBench starts a server with one loop for a benchmark.
func startBench(b *testing.B) (addr string) {
	return start(b, testOptions{set: map[string]string{"loops": "1"}}).addr
}
