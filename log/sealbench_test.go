package log

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log/effect"
)

var sealFrames = flag.Int("log.sealframes", 300_000, "how many frames the benchmarks of sealed segments write")

// mix makes effects as a shop's back end might log them: JSON documents, sessions, counters, carts, rankings, queues, and
// 1 in 1,000 of the tenant that the benchmark asks for, spread evenly.
type mix struct {
	r *rand.Rand
	n int
}

func (m *mix) next() *effect.Effect {
	m.n++
	r := m.r
	e := func(op effect.Op, args ...string) *effect.Effect {
		x := &effect.Effect{Op: op}
		for _, a := range args {
			x.Args = append(x.Args, []byte(a))
		}
		return x
	}
	if m.n%1000 == 0 {
		return e(effect.Set, fmt.Sprintf("tenant:acme:%d", r.IntN(5000)), m.document())
	}
	id := int(r.ExpFloat64() * 20_000)
	stamp := 1_790_000_000_000 + int64(m.n)
	switch k := r.IntN(100); {
	case k < 25:
		return e(effect.Set, fmt.Sprintf("user:%d:profile", id), m.document())
	case k < 40:
		return e(effect.Set, fmt.Sprintf("session:%016x", r.Uint64N(1<<20)*0x9e3779b97f4a7c15), fmt.Sprintf("uid=%d;csrf=%016x", id, r.Uint64()),
			"PXAT", strconv.FormatInt(stamp+1_800_000, 10))
	case k < 60:
		return e(effect.Set, fmt.Sprintf("counter:page:%d:views", id%3000), strconv.Itoa(1000+r.IntN(100_000)))
	case k < 75:
		return e(effect.HSet, fmt.Sprintf("cart:%d", id), fmt.Sprintf("sku-%05d", r.IntN(20_000)), strconv.Itoa(1+r.IntN(5)),
			"updated", strconv.FormatInt(stamp, 10))
	case k < 85:
		return e(effect.ZAdd, fmt.Sprintf("ranking:%d", id%50), strconv.Itoa(r.IntN(100_000)), fmt.Sprintf("player:%d", id))
	case k < 93:
		return e(effect.RPush, fmt.Sprintf("queue:mail:%d", id%8), fmt.Sprintf(`{"to":"user%d@example.com","template":"order-confirmed","order":%d}`, id, m.n))
	default:
		return e(effect.Del, fmt.Sprintf("session:%016x", r.Uint64N(1<<20)*0x9e3779b97f4a7c15))
	}
}

func (m *mix) document() string {
	r := m.r
	cities := []string{"Berlin", "Lyon", "Porto", "Gent", "Malmö", "Turin", "Brno"}
	return fmt.Sprintf(`{"id":%d,"name":"user-%d","email":"user%d@example.com","city":"%s","created":"2026-%02d-%02dT%02d:%02d:%02dZ","plan":"%s","score":%d}`,
		r.IntN(1_000_000), r.IntN(1_000_000), r.IntN(1_000_000), cities[r.IntN(len(cities))], 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60),
		[]string{"free", "pro", "team"}[r.IntN(3)], r.IntN(10_000))
}

// sealedLog makes a log of the mix whose ended segments are sealed, on the disk.
func sealedLog(b *testing.B) (*Log, time.Duration) {
	b.Helper()
	d, _ := mustOpen(b, Options{FS: vfs.OS(), Dir: b.TempDir() + "/data", Policy: No, ServeAll: true})
	l := d.Log(0)
	m := &mix{r: rand.New(rand.NewPCG(1, 1))}
	for i := range *sealFrames {
		if err := l.Reserve(1000); err != nil {
			b.Fatal(err)
		}
		l.Begin(int64(1_790_000_000_000+i), ByClient, 0, 0)
		l.Append(m.next())
		l.End()
		if i%256 == 255 {
			if err := l.Flush(); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := l.roll(); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if _, err := d.Seal(); err != nil {
		b.Fatal(err)
	}
	return l, time.Since(began)
}

// BenchmarkSealed measures sealing once, and then reading everything, reading one frame in 1,000 by its prefix, and a
// consumer that asks for 256 frames at a time.
func BenchmarkSealed(b *testing.B) {
	l, took := sealedLog(b)
	st := l.Stats()
	b.Logf("%d frames, %d segments: %.1f MB raw, %.1f MB sealed (%.1f%%), sealed at %.0f MB/s", *sealFrames, st.Sealed, float64(st.RawBytes)/1e6,
		float64(st.Bytes)/1e6, 100*float64(st.Bytes)/float64(st.RawBytes), float64(st.RawBytes)/1e6/took.Seconds())
	start := l.Oldest()
	acme := [][]byte{[]byte("tenant:acme:")}
	all := func(o ReaderOptions) (frames, matching int) {
		r, err := l.NewReader(start, o)
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		for {
			f, err := r.Next()
			if errors.Is(err, io.EOF) {
				return frames, matching
			}
			if err != nil {
				b.Fatal(err)
			}
			frames++
			if bytes.HasPrefix(f.Key, acme[0]) {
				matching++
			}
		}
	}
	rate := func(b *testing.B) {
		b.ReportMetric(float64(*sealFrames)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mframes/s")
	}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			if n, k := all(ReaderOptions{}); n != *sealFrames || k != *sealFrames/1000 {
				b.Fatal(n, k)
			}
		}
		rate(b)
	})
	b.Run("prefix", func(b *testing.B) {
		for b.Loop() {
			if n, k := all(ReaderOptions{Prefixes: acme}); k != *sealFrames/1000 || n != k {
				b.Fatal(n, k)
			}
		}
		rate(b)
	})
	b.Run("batches", func(b *testing.B) {
		for b.Loop() {
			batches(b, l, start)
		}
		rate(b)
	})
}

// batches reads everything as FEED.READ does: a reader for each 256 frames.
func batches(b *testing.B, l *Log, c Cursor) {
	for c != l.Tail() {
		r, err := l.NewReader(c, ReaderOptions{Feed: true})
		if err != nil {
			b.Fatal(err)
		}
		for range 256 {
			if _, err := r.Next(); err != nil && !errors.Is(err, io.EOF) {
				b.Fatal(err)
			}
		}
		c = r.Cursor()
		r.Close()
	}
}
