package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of Latency.
const (
	latencyShare   = 0.2 // of the peak, if no rate is given
	latencyClients = 16
	maxStamps      = 50_000_000 // writes whose times are kept
	arriveLimit    = 10 * time.Second
)

// LatencyResult is what Latency measured.
type LatencyResult struct {
	Peak    float64     `json:"peak_writes_per_second,omitempty"` // measured, if no rate was given
	Asked   float64     `json:"asked_writes_per_second"`
	Rate    float64     `json:"writes_per_second"`
	Write   Percentiles `json:"write"`   // the write's own latency
	Deliver Percentiles `json:"deliver"` // from the reply's arrival to the frame's
	Lost    uint64      `json:"lost"`    // writes whose frame did not come within 10 s
}

// stamps are the times of each write: index is the number in its value. Each element is written by
// one goroutine and read when all have ended.
type stamps struct {
	begin   time.Time
	next    atomic.Uint64
	acked   []time.Duration
	arrived []time.Duration
}

// Latency writes at a given rate, or a fifth of the measured peak, while one consumer follows every
// shard with BLOCK, and measures from the write's reply to its frame. A frame that comes before the
// reply counts as 0.
func Latency(ctx context.Context, t *Target, o FeedOptions) (r LatencyResult, err error) {
	return latency(ctx, t, t.Addr, o)
}

// latency is Latency with a consumer that reads the feed of the server at addr: t, or a replica of it.
func latency(ctx context.Context, t *Target, addr string, o FeedOptions) (r LatencyResult, err error) {
	setDefault(&o.Clients, latencyClients)
	o.EnsureDefaults()
	if o.Size < len(valueOf(0)) {
		return r, fmt.Errorf("size %d: want at least %d, for the number of the write", o.Size, len(valueOf(0)))
	}
	if r.Asked = o.Rate; o.Rate == 0 {
		peak, err := Load(ctx, t, LoadOptions{Op: Set, Size: o.Size, Time: o.Time, Progress: o.Progress})
		if err != nil {
			return r, err
		}
		r.Peak, r.Asked = peak.Rate, peak.Rate*latencyShare
	}
	s := &stamps{begin: time.Now()}
	n := min(int(r.Asked*o.Time.Seconds()*1.1)+o.Clients*o.Pipeline, maxStamps)
	s.acked, s.arrived = make([]time.Duration, n), make([]time.Duration, n)
	fs, err := follow(ctx, addr, 1, s.arrive)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, fs.close()) }()
	stop := o.Progress.Watch("feed latency", func() string { return fmt.Sprintf("%d frames", fs.frames.Load()) })
	defer stop()
	o.Rate = r.Asked
	if err := s.write(ctx, t.Addr, &o, &r); err != nil {
		return r, err
	}
	written := min(s.next.Load(), uint64(n))
	for end := time.Now().Add(arriveLimit); fs.frames.Load() < written && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if err := fs.close(); err != nil {
		return r, err
	}
	r.Deliver, r.Lost = s.deliveries(written)
	return r, nil
}

// arrive notes the arrival of a frame.
func (s *stamps) arrive(value []byte) {
	digits, _, _ := strings.Cut(string(value[:min(len(value), 17)]), " ")
	i, err := strconv.ParseUint(digits, 10, 64)
	if err == nil && i < uint64(len(s.arrived)) {
		s.arrived[i] = time.Since(s.begin)
	}
}

func valueOf(i uint64) string { return fmt.Sprintf("%016d ", i) }

func (s *stamps) deliveries(written uint64) (p Percentiles, lost uint64) {
	h := new(Histogram)
	for i := range written {
		if s.arrived[i] == 0 {
			lost++
			continue
		}
		h.Record(s.arrived[i]-s.acked[i], 1)
	}
	return h.Percentiles(), lost
}

// write writes at o.Rate for o.Time.
func (s *stamps) write(ctx context.Context, addr string, o *FeedOptions, r *LatencyResult) error {
	begin := time.Now()
	hists, errs := make([]Histogram, o.Clients), make([]error, o.Clients)
	lo := &LoadOptions{Rate: o.Rate, Clients: o.Clients, Pipeline: o.Pipeline}
	var wg sync.WaitGroup
	for i := range o.Clients {
		wg.Go(func() {
			w := &stampWriter{s: s, o: o, pace: newPace(begin, lo, i), hist: &hists[i]}
			errs[i] = w.run(ctx, addr, begin.Add(o.Time))
		})
	}
	wg.Wait()
	total := new(Histogram)
	for i := range hists {
		total.Merge(&hists[i])
	}
	r.Write, r.Rate = total.Percentiles(), float64(total.n)/time.Since(begin).Seconds()
	return errors.Join(errs...)
}

// stampWriter is one writing connection of Latency.
type stampWriter struct {
	s    *stamps
	o    *FeedOptions
	pace pace
	hist *Histogram
}

func (w *stampWriter) run(ctx context.Context, addr string, end time.Time) error {
	c, err := dial(addr)
	if err != nil {
		return err
	}
	defer c.close()
	defer context.AfterFunc(ctx, c.close)()
	n := uint64(w.o.Pipeline)
	pad := strings.Repeat("x", w.o.Size)
	for ctx.Err() == nil {
		w.pace.wait()
		if time.Now().After(end) {
			return nil
		}
		first := w.s.next.Add(n) - n
		if first+n > uint64(len(w.s.acked)) {
			return nil
		}
		for i := first; i < first+n; i++ {
			value := valueOf(i)
			c.out = appendCommand(c.out, "SET", fmt.Sprintf("key:%012d", i%1_000_000), value+pad[len(value):])
		}
		start := time.Now()
		if err := c.nc.SetDeadline(start.Add(ioLimit)); err != nil {
			return err
		}
		if err := c.send(); err != nil {
			return err
		}
		for i := first; i < first+n; i++ {
			if err := c.skip(); err != nil {
				return err
			}
			w.s.acked[i] = time.Since(w.s.begin)
		}
		w.hist.Record(time.Since(start), int(n))
	}
	return ctx.Err()
}
