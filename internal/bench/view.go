package bench

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ViewRow is one measurement of View: medians over the rounds.
type ViewRow struct {
	Name     string  `json:"name"`
	Rate     float64 `json:"writes_per_second"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	Max      float64 `json:"max_us"`
	Open     float64 `json:"view_open"` // share of the time that a snapshot was being written
	Usage            // for each write; Server includes writing the snapshot, unless the server forks
	P99Ratio float64 `json:"p99_ratio"` // to no view
}

// View fills the keys and overwrites each of them in turn, without and with a BGSAVE under way that is
// begun again whenever it ends; several rounds. It works with any server that has BGSAVE.
func View(ctx context.Context, t *Target, o FeedOptions) ([]ViewRow, error) {
	o.EnsureDefaults()
	if err := Fill(ctx, t, o.Frames, o.Size, o.Progress); err != nil {
		return nil, err
	}
	var plain, open []ViewRow
	for range o.Rounds {
		for _, saving := range []bool{false, true} {
			row, err := viewRound(ctx, t, &o, saving)
			if err != nil {
				return nil, err
			}
			if saving {
				open = append(open, row)
			} else {
				plain = append(plain, row)
			}
		}
	}
	rows := []ViewRow{viewMedians("no view", plain), viewMedians("view open", open)}
	for i := range rows {
		rows[i].P99Ratio = ratio(rows[i].P99, rows[0].P99)
	}
	return rows, nil
}

func viewMedians(name string, rows []ViewRow) ViewRow {
	r := ViewRow{
		Name: name,
		Rate: medianOf(rows, func(r ViewRow) float64 { return r.Rate }),
		P50:  medianOf(rows, func(r ViewRow) float64 { return r.P50 }),
		P99:  medianOf(rows, func(r ViewRow) float64 { return r.P99 }),
		Max:  medianOf(rows, func(r ViewRow) float64 { return r.Max }),
		Open: medianOf(rows, func(r ViewRow) float64 { return r.Open }),
	}
	r.Server = medianOf(rows, func(r ViewRow) float64 { return r.Server })
	r.Client = medianOf(rows, func(r ViewRow) float64 { return r.Client })
	return r
}

// viewRound overwrites for o.Time.
func viewRound(ctx context.Context, t *Target, o *FeedOptions, saving bool) (row ViewRow, err error) {
	if err := waitSaved(ctx, t.Addr); err != nil {
		return row, err
	}
	var s *saver
	if saving {
		s = startSaver(ctx, t.Addr)
		defer func() { err = errors.Join(err, s.close()) }()
	}
	res, err := Load(ctx, t, LoadOptions{
		Op: Set, Keys: o.Frames, Size: o.Size, Dist: Sequential, Clients: o.Clients, Pipeline: o.Pipeline,
		Time: o.Time, Rate: o.Rate, Progress: o.Progress,
	})
	if err != nil {
		return row, err
	}
	row = ViewRow{
		Rate: res.Rate, P50: res.Latency.P50, P99: res.Latency.P99, Max: res.Latency.Max, Usage: res.Usage,
	}
	if s != nil {
		row.Open = ratio(float64(s.busy.Load()), float64(s.seen.Load()))
	}
	return row, nil
}

// saver keeps a snapshot under way.
type saver struct {
	busy, seen atomic.Uint64 // how often it looked, and found a snapshot being written
	stop       context.CancelFunc
	wg         sync.WaitGroup
	err        error // read after wg
}

const saverPoll = 5 * time.Millisecond

func startSaver(ctx context.Context, addr string) *saver {
	s := new(saver)
	ctx, s.stop = context.WithCancel(ctx)
	s.wg.Go(func() { s.err = s.run(ctx, addr) })
	return s
}

func (s *saver) run(ctx context.Context, addr string) error {
	c, err := dial(addr)
	if err != nil {
		return err
	}
	defer c.close()
	for ; ctx.Err() == nil; time.Sleep(saverPoll) {
		busy, err := savingNow(c)
		if err != nil {
			return err
		}
		s.seen.Add(1)
		if busy {
			s.busy.Add(1)
			continue
		}
		_, err = c.do("BGSAVE")
		var re ReplyError
		if errors.As(err, &re) && (strings.Contains(string(re), "in progress") || strings.Contains(string(re), "right now")) {
			continue // another one, or a rewrite of the append-only file
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *saver) close() error {
	s.stop()
	s.wg.Wait()
	return s.err
}

func savingNow(c *conn) (bool, error) {
	v, err := c.info("persistence", "rdb_bgsave_in_progress")
	return v == "1", err
}

// waitSaved waits until no snapshot is being written.
func waitSaved(ctx context.Context, addr string) error {
	c, err := dial(addr)
	if err != nil {
		return err
	}
	defer c.close()
	for ; ctx.Err() == nil; time.Sleep(saverPoll) {
		if busy, err := savingNow(c); err != nil || !busy {
			return err
		}
	}
	return ctx.Err()
}
