package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// FeedOptions say what the benchmarks of the feed do. Zero values stand for the defaults of
// EnsureDefaults.
type FeedOptions struct {
	Frames   uint64        // written before reading; default 1M
	Size     int           // bytes of a value; default 64
	Time     time.Duration // of each measurement; default 3s
	Rate     float64       // writes a second, for Latency; 0: a fifth of the measured peak
	Clients  int           // writing connections; default 50, for Latency 16
	Pipeline int           // commands sent at once; default 16
	Rounds   int           // of Writers and View; default 3
	Progress *Progress
}

// EnsureDefaults fills in what is zero.
func (o *FeedOptions) EnsureDefaults() {
	setDefault(&o.Frames, 1_000_000)
	setDefault(&o.Size, 64)
	setDefault(&o.Time, 3*time.Second)
	setDefault(&o.Clients, 50)
	setDefault(&o.Pipeline, 16)
	setDefault(&o.Rounds, 3)
}

// DrainRow is one measurement of Drain or Filter.
type DrainRow struct {
	Name      string  `json:"name"`
	Consumers int     `json:"consumers"`
	Frames    uint64  `json:"frames"`
	Rate      float64 `json:"frames_per_second"`
	MBps      float64 `json:"mb_per_second"`
	Usage             // for each frame
}

// drainCase is one way to drain.
type drainCase struct {
	name      string
	consumers int
	ahead     bool // ask for the next frames before reading the last
}

var drainCases = []drainCase{{"", 1, false}, {", asking ahead", 1, true}, {"", 16, false}}

// Drain fills the feed, then reads all of it again and again: with one consumer, with one that asks
// ahead, and with sixteen. Each is followed by the probe: the bytes of a full reply, copied once and
// sent by a plain sender whenever the same client asks.
func Drain(ctx context.Context, t *Target, o FeedOptions) ([]DrainRow, error) {
	o.EnsureDefaults()
	shards, err := fillFeed(ctx, t, &o, 0)
	if err != nil {
		return nil, err
	}
	reply, err := capture(t.Addr, shards[0])
	if err != nil {
		return nil, err
	}
	p, err := startProbe(reply)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.close() }() // nothing depends on how it ends
	var rows []DrainRow
	for _, k := range drainCases {
		for _, from := range []struct{ name, addr string }{{"FEED.READ", t.Addr}, {"probe", p.addr}} {
			o.Progress.Say("drain: %s%s, %d consumers", from.name, k.name, k.consumers)
			d := &drainer{addr: from.addr, shards: shards, ahead: k.ahead, end: time.Now().Add(o.Time)}
			pid := t.PID
			if from.addr == p.addr {
				pid = 0 // its sender is part of this process
			}
			row, err := d.run(ctx, pid, k.consumers)
			if err != nil {
				return nil, err
			}
			row.Name = from.name + k.name
			rows = append(rows, row)
		}
	}
	o.Progress.Clear()
	return rows, nil
}

// fillFeed writes o.Frames frames and returns where they are. Each every-th key begins with hit:.
func fillFeed(ctx context.Context, t *Target, o *FeedOptions, every uint64) ([]span, error) {
	before, err := spans(t.Addr)
	if err != nil {
		return nil, err
	}
	_, err = Load(ctx, t, LoadOptions{
		Op: Set, Keys: o.Frames, Size: o.Size, Dist: Sequential, Count: o.Frames, Clients: 8,
		Pipeline: 100, Every: every, Progress: o.Progress,
	})
	if err != nil {
		return nil, err
	}
	shards, err := spans(t.Addr)
	if err != nil {
		return nil, err
	}
	for i := range shards {
		shards[i].base = before[i].tail
	}
	return shards, nil
}

// drainer reads frames with several consumers until its time is over.
type drainer struct {
	addr   string
	shards []span
	ahead  bool
	prefix string
	end    time.Time
	frames atomic.Uint64
	bytes  atomic.Int64
}

func (d *drainer) run(ctx context.Context, pid, consumers int) (DrainRow, error) {
	cpu, begin := startCPU(pid), time.Now()
	errs := make([]error, consumers)
	var wg sync.WaitGroup
	for i := range consumers {
		wg.Go(func() { errs[i] = d.consume(ctx, d.shards[i%len(d.shards)]) })
	}
	wg.Wait()
	took, n := time.Since(begin).Seconds(), d.frames.Load()
	return DrainRow{
		Consumers: consumers, Frames: n, Rate: float64(n) / took,
		MBps: float64(d.bytes.Load()) / took / 1e6, Usage: cpu.per(n),
	}, errors.Join(errs...)
}

// consume reads the span again and again.
func (d *drainer) consume(ctx context.Context, s span) error {
	begin := cursor{s.generation, s.base}
	c, err := newConsumer(d.addr, s.shard, begin)
	if err != nil {
		return err
	}
	defer c.close()
	defer context.AfterFunc(ctx, c.close)()
	c.prefix = d.prefix
	for time.Now().Before(d.end) && ctx.Err() == nil {
		if !d.ahead || c.total == 0 {
			if err := c.request(); err != nil {
				return err
			}
		}
		from, read := c.at, c.total
		n, err := c.head()
		if err != nil {
			return explainWindow(err)
		}
		scanned := c.at.offset - from.offset
		if c.at.offset >= s.tail {
			c.at = begin
		}
		if d.ahead {
			if err := c.request(); err != nil {
				return err
			}
		}
		if err := c.skipFrames(n); err != nil {
			return err
		}
		if d.prefix == "" {
			scanned = uint64(n)
		}
		d.frames.Add(scanned)
		d.bytes.Add(c.total - read)
	}
	return ctx.Err()
}

// explainWindow adds to a resync what it means here.
func explainWindow(err error) error {
	var re ReplyError
	if errors.As(err, &re) && strings.HasPrefix(string(re), "FEEDRESYNC") {
		return fmt.Errorf("the feed's window does not hold what was written: fewer --frames, "+
			"or start the server with a larger --feed-buffer-size: %w", err)
	}
	return err
}
