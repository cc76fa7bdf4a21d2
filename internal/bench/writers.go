package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// WritersRow is one measurement of Writers: medians over the rounds.
type WritersRow struct {
	Name      string  `json:"name"`
	Feed      bool    `json:"feed_enabled"`
	Consumers int     `json:"consumers"`
	Rate      float64 `json:"writes_per_second"`
	Frames    float64 `json:"frames_per_second"` // over all consumers
	Usage             // for each write
	Ratio     float64 `json:"rate_ratio"`       // to the feed enabled and no consumer
	CPURatio  float64 `json:"server_cpu_ratio"` // the same
}

// writersCase is one situation that Writers measures.
type writersCase struct {
	target    *Target
	name      string
	feed      bool
	consumers int
}

// Writers measures the rate of SET with 0, 1 and 16 consumers following every shard, and with the
// feed disabled, in turn and several rounds. It starts two servers from the binary at path.
func Writers(ctx context.Context, path string, o FeedOptions) (rows []WritersRow, err error) {
	o.EnsureDefaults()
	on, err := Open("", path, "--feed-enabled=yes")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	off, err := Open("", path, "--feed-enabled=no")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, off.Close()) }()
	for _, t := range []*Target{on, off} {
		if err := Fill(ctx, t, o.Frames, o.Size, o.Progress); err != nil {
			return nil, err
		}
	}
	return measureWriters(ctx, &o, []writersCase{
		{on, "feed enabled", true, 0},
		{off, "feed disabled", false, 0},
		{on, "feed enabled", true, 1},
		{on, "feed enabled", true, 16},
	})
}

func measureWriters(ctx context.Context, o *FeedOptions, cases []writersCase) ([]WritersRow, error) {
	results := make([][]WritersRow, len(cases))
	for round := range o.Rounds {
		for turn := range cases {
			i := TurnOf(round, turn, len(cases))
			row, err := cases[i].run(ctx, o)
			if err != nil {
				return nil, err
			}
			results[i] = append(results[i], row)
		}
	}
	var rows []WritersRow
	for i, k := range cases {
		row := WritersRow{Name: k.name, Feed: k.feed, Consumers: k.consumers}
		row.Rate = medianOf(results[i], func(r WritersRow) float64 { return r.Rate })
		row.Frames = medianOf(results[i], func(r WritersRow) float64 { return r.Frames })
		row.Server = medianOf(results[i], func(r WritersRow) float64 { return r.Server })
		row.Client = medianOf(results[i], func(r WritersRow) float64 { return r.Client })
		rows = append(rows, row)
		rows[i].Ratio, rows[i].CPURatio = ratio(row.Rate, rows[0].Rate), ratio(row.Server, rows[0].Server)
	}
	return rows, nil
}

// TurnOf returns which of n things is measured at a turn of a round: A B C, then C B A, and so on. The disk still
// writes what was sent before, so whatever always follows the same one is measured with a bias: of two equal servers
// one wrote 4% less because it always came after the fastest.
func TurnOf(round, turn, n int) int {
	if round%2 == 1 {
		return n - 1 - turn
	}
	return turn
}

// run measures one case once.
func (k writersCase) run(ctx context.Context, o *FeedOptions) (row WritersRow, err error) {
	var fs *followers
	if k.consumers > 0 {
		if fs, err = follow(ctx, k.target.Addr, k.consumers, nil); err != nil {
			return row, err
		}
		defer func() { err = errors.Join(err, fs.close()) }()
	}
	begin := time.Now()
	res, err := Load(ctx, k.target, LoadOptions{
		Op: Set, Keys: o.Frames, Size: o.Size, Clients: o.Clients, Pipeline: o.Pipeline, Time: o.Time,
		Progress: o.Progress,
	})
	if err != nil {
		return row, fmt.Errorf("%s, %d consumers: %w", k.name, k.consumers, err)
	}
	row.Rate, row.Usage = res.Rate, res.Usage
	if fs != nil {
		row.Frames = float64(fs.frames.Load()) / time.Since(begin).Seconds()
	}
	return row, nil
}

// Median returns the middle of the numbers, 0 of none.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func medianOf[T any](rows []T, f func(T) float64) float64 {
	v := make([]float64, len(rows))
	for i, r := range rows {
		v[i] = f(r)
	}
	return Median(v)
}

// ratio is a / b, or 0 if b is.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
