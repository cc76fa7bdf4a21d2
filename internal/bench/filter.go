package bench

import (
	"context"
	"time"
)

// filterEvery is how rare matching frames are in Filter.
const filterEvery = 1000

// Filter fills the feed with frames of which 1 in 1,000 has a key of the prefix hit:, and reads
// them all with PREFIX hit:. A row's frames are those that the server passed over, delivered or not.
func Filter(ctx context.Context, t *Target, o FeedOptions) ([]DrainRow, error) {
	o.EnsureDefaults()
	shards, err := fillFeed(ctx, t, &o, filterEvery)
	if err != nil {
		return nil, err
	}
	var rows []DrainRow
	for _, consumers := range []int{1, 16} {
		o.Progress.Say("filter: %d consumers", consumers)
		d := &drainer{addr: t.Addr, shards: shards, prefix: "hit:", end: time.Now().Add(o.Time)}
		row, err := d.run(ctx, t.PID, consumers)
		if err != nil {
			return nil, err
		}
		row.Name = "FEED.READ PREFIX, 1 in 1,000 matching"
		rows = append(rows, row)
	}
	o.Progress.Clear()
	return rows, nil
}
