package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// LoadOptions say what Load does. Zero values stand for the defaults of EnsureDefaults.
type LoadOptions struct {
	Op       Op           // default SET
	Keys     uint64       // default 1M
	Dist     Distribution // default Uniform
	Size     int          // bytes of a value; default 64
	Clients  int          // connections; default 50
	Pipeline int          // commands sent at once; default 16
	ReadPart float64      // of Mix: share of GET; default 0.9
	Count    uint64       // commands; 0: no bound but Time
	Time     time.Duration
	Rate     float64 // commands a second over all clients; 0: as fast as it goes
	Every    uint64  // each Every-th key begins with hit: instead of key:; 0: none
	Seed     uint64
	Progress *Progress
}

// defaultTime bounds a load that has neither a count nor a time.
const defaultTime = 5 * time.Second

// EnsureDefaults fills in what is zero.
func (o *LoadOptions) EnsureDefaults() {
	setDefault(&o.Op, Set)
	setDefault(&o.Keys, 1_000_000)
	setDefault(&o.Dist, Uniform)
	setDefault(&o.Size, 64)
	setDefault(&o.Clients, 50)
	setDefault(&o.Pipeline, 16)
	setDefault(&o.ReadPart, 0.9)
	if o.Count == 0 {
		setDefault(&o.Time, defaultTime)
	}
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Validate returns what is wrong with the options.
func (o *LoadOptions) Validate() error {
	switch {
	case ops[o.Op].requests == nil:
		return fmt.Errorf("op %q: want one of %v", o.Op, Ops())
	case o.Dist != Uniform && o.Dist != Zipfian && o.Dist != Sequential:
		return fmt.Errorf("dist %q: want uniform, zipf or seq", o.Dist)
	case o.Keys > maxKeys:
		return fmt.Errorf("keys %d: at most %d", o.Keys, maxKeys)
	case o.Size < 1 || o.Size > 512<<20:
		return fmt.Errorf("size %d: want 1 to 512 MiB", o.Size)
	case o.Clients < 1 || o.Clients > 20000:
		return fmt.Errorf("clients %d: want 1 to 20000", o.Clients)
	case o.Pipeline < 1 || o.Pipeline > 100000:
		return fmt.Errorf("pipeline %d: want 1 to 100000", o.Pipeline)
	case o.ReadPart < 0 || o.ReadPart > 1:
		return fmt.Errorf("reads %v: want 0 to 1", o.ReadPart)
	case o.Rate < 0 || o.Time < 0:
		return errors.New("rate and time: not negative")
	}
	return nil
}

// LoadResult is what Load measured.
type LoadResult struct {
	Ops     uint64      `json:"commands"`
	Seconds float64     `json:"seconds"`
	Rate    float64     `json:"per_second"`
	Latency Percentiles `json:"latency"`
	Usage               // for each command
}

// loader is a running Load.
type loader struct {
	o     LoadOptions
	left  atomic.Int64 // commands not yet taken by a worker
	done  atomic.Uint64
	begin time.Time
	end   time.Time // zero: no bound
}

// Load runs commands until the count or the time is reached, ctx ends or one fails.
func Load(ctx context.Context, t *Target, o LoadOptions) (LoadResult, error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return LoadResult{}, err
	}
	workers, err := newWorkers(t.Addr, &o)
	if err != nil {
		return LoadResult{}, err
	}
	l := &loader{o: o}
	l.left.Store(math.MaxInt64)
	if o.Count > 0 {
		l.left.Store(int64(o.Count))
	}
	stop := o.Progress.Watch(string(o.Op), l.state)
	defer stop()
	return l.run(ctx, t.PID, workers)
}

func (l *loader) state() string {
	n := l.done.Load()
	s := fmt.Sprintf("%d commands, %.0f/s", n, float64(n)/time.Since(l.begin).Seconds())
	if l.o.Count > 0 {
		s += fmt.Sprintf(", %d%%", n*100/l.o.Count)
	}
	return s
}

func (l *loader) run(ctx context.Context, pid int, workers []*worker) (LoadResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		for _, w := range workers {
			w.conn.close()
		}
	})
	defer stop()
	cpu := startCPU(pid)
	l.begin = time.Now()
	if l.o.Time > 0 {
		l.end = l.begin.Add(l.o.Time)
	}
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() {
			defer w.conn.close()
			if err := w.run(l, i); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	took := time.Since(l.begin)
	if err := context.Cause(ctx); err != nil {
		return LoadResult{}, err
	}
	total := new(Histogram)
	for _, w := range workers {
		total.Merge(&w.hist)
	}
	n := l.done.Load()
	return LoadResult{
		Ops: n, Seconds: took.Seconds(), Rate: float64(n) / took.Seconds(),
		Latency: total.Percentiles(), Usage: cpu.per(n),
	}, nil
}

// take reserves up to n commands; 0: there are no more.
func (l *loader) take(n int) int {
	if !l.end.IsZero() && !time.Now().Before(l.end) {
		return 0
	}
	left := l.left.Add(int64(-n))
	if left >= 0 {
		return n
	}
	return int(max(0, int64(n)+left))
}

// Fill sets each of the keys once.
func Fill(ctx context.Context, t *Target, keys uint64, size int, p *Progress) error {
	o := LoadOptions{
		Op: Set, Keys: keys, Size: size, Dist: Sequential, Count: keys, Clients: 8,
		Pipeline: max(1, min(100, 1<<20/size)), Progress: p,
	}
	_, err := Load(ctx, t, o)
	return err
}
