package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kevydb/kevy"
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

func TestMain(m *testing.M) { os.Exit(proc.Main(m)) }

// bed is a server, whose process may change, and a mirror of it.
type bed struct {
	t     *testing.T
	flags []string
	dir   string
	srv   *proc.Server
	addr  atomic.Pointer[string]

	m *kevy.Mirror

	mu     sync.Mutex
	shards []*state.Keyspace
	stored map[int]string
	hook   func(b *kevy.MirrorBatch) error
}

func newBed(t *testing.T, flags ...string) *bed {
	b := &bed{t: t, flags: flags, dir: filepath.Join(t.TempDir(), "data"), stored: make(map[int]string)}
	b.start()
	t.Cleanup(func() {
		_ = b.srv.Kill()
		for _, ks := range b.shards {
			ks.Release()
		}
	})
	b.m = b.mirror()
	return b
}

// mirror returns a mirror that goes on from what was stored.
func (b *bed) mirror() *kevy.Mirror {
	return &kevy.Mirror{
		Addr: "wherever it is now", Apply: b.apply,
		Load: func(_ context.Context, shard int) (string, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.stored[shard], nil
		},
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", *b.addr.Load())
		},
	}
}

func (b *bed) start() {
	b.t.Helper()
	srv, err := proc.StartKevy(b.dir, b.flags...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.srv = srv
	b.addr.Store(&srv.Addr)
}

func (b *bed) client() *wire.Conn {
	b.t.Helper()
	c, err := wire.Dial(b.srv.Addr)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

func (b *bed) do(c *wire.Conn, args ...string) wire.Reply {
	b.t.Helper()
	r, err := c.Must(args...)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// apply folds each shard into a keyspace of its own and stores the position with it.
func (b *bed) apply(_ context.Context, batch *kevy.MirrorBatch) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hook != nil {
		if err := b.hook(batch); err != nil {
			return err
		}
	}
	for len(b.shards) <= batch.Shard {
		b.shards = append(b.shards, state.New(1))
	}
	ks := b.shards[batch.Shard]
	if batch.Reset != nil {
		var gone [][]byte
		ks.AscendFrom(batch.Reset.From, func(e state.Entry) bool {
			gone = append(gone, bytes.Clone(e.Key()))
			return batch.Reset.Contains(e.Key())
		})
		for _, k := range gone {
			if batch.Reset.Contains(k) {
				b.fold(ks, []byte("DEL"), k)
			}
		}
	}
	for _, c := range batch.Changes {
		b.fold(ks, c.Argv...)
	}
	b.stored[batch.Shard] = batch.Position
	return nil
}

func (b *bed) fold(ks *state.Keyspace, argv ...[]byte) {
	e, err := effect.FromArgv(argv)
	if err == nil {
		_, err = ks.Fold(&e)
	}
	if err != nil {
		b.t.Errorf("%q: %v", argv, err)
	}
}

func (b *bed) digest() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys, sum := 0, uint64(0)
	for _, ks := range b.shards {
		n, d := ks.Digest(nil, time.Now().UnixMilli())
		keys += n
		sum += d
	}
	return fmt.Sprintf("%d %s", keys, command.FormatDigest(sum))
}

// run runs the mirror until the test ends or end is called.
func (b *bed) run() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	m := b.m
	go func() { done <- m.Run(ctx) }()
	var once sync.Once
	end = func() {
		once.Do(func() {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				b.t.Errorf("Run: %v", err)
			}
		})
	}
	b.t.Cleanup(end)
	return end
}

// same waits until the mirror stands where the quiet server does and compares the keys.
func (b *bed) same(c *wire.Conn) {
	b.t.Helper()
	var got, want string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if !b.there() {
			continue
		}
		r := b.do(c, "PREFIX.DIGEST", "")
		want = string(r.Elems[0].Str) + " " + string(r.Elems[1].Str)
		if got = b.digest(); got == want {
			return
		}
	}
	b.t.Fatalf("the mirror has %s, the server %s; %+v", got, want, b.m.Status())
}

// there reports whether the mirror stands at the server's tail on every shard.
func (b *bed) there() bool {
	tails, err := b.m.Tails(b.t.Context())
	status := b.m.Status()
	if err != nil || len(status) != len(tails) {
		return false
	}
	for i, s := range status {
		if s.Cursor != tails[i] || s.Rebuilding {
			return false
		}
	}
	return true
}

func (b *bed) copies() (n int) {
	for _, s := range b.m.Status() {
		n += s.Copies
	}
	return n
}

// storm writes what must not be applied twice, n commands in pipelines, or until stop is closed (may be nil).
func (b *bed) storm(seed uint64, n int, stop <-chan struct{}) {
	b.t.Helper()
	c, err := wire.Dial(*b.addr.Load())
	if err != nil {
		b.t.Error(err)
		return
	}
	defer c.Close()
	r := rand.New(rand.NewPCG(seed, 2))
	for done := 0; done < n; done += 50 {
		select {
		case <-stop:
			return
		default:
		}
		for range 50 {
			c.Queue(wire.Bytes(randomCommand(r)...))
		}
		if c.Flush() != nil {
			return // the server was killed
		}
		for range 50 {
			if _, err := c.Read(); err != nil {
				return
			}
		}
	}
}

func randomCommand(r *rand.Rand) []string {
	k := func(kind string) string { return fmt.Sprint(kind, ":", r.IntN(300)) }
	switch r.IntN(10) {
	case 0:
		return []string{"INCR", k("n")}
	case 1:
		return []string{"APPEND", k("s"), "xy"}
	case 2:
		return []string{"RPUSH", k("l"), "a", "b"}
	case 3:
		return []string{"ZINCRBY", k("z"), "1.5", "m"}
	case 4:
		return []string{"XADD", k("x"), "*", "f", "v"}
	case 5:
		return []string{"DEL", k("n"), k("s"), k("l"), k("z"), k("x")}
	case 6:
		return []string{"MSET", k("n"), "1", k("n"), "2", k("n"), "3"}
	case 7:
		return []string{"PEXPIRE", k("s"), fmt.Sprint(r.IntN(50))}
	case 8:
		return []string{"RENAME", k("n"), k("n")} // an error where there is none
	}
	return []string{"HINCRBY", k("h"), "f", "1"}
}
