package compare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kevydb/kevy/internal/bench"
)

// settle is how long servers rest before their memory is read.
const settle = 2 * time.Second

// overwrites is how often each key is set again.
const overwrites = 2

// memory measures RSS per key after loading, and after overwriting each key twice.
func (r *runner) memory(ctx context.Context) (err error) {
	f, err := startFleet(r.peers, base.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	loaded, overwritten := r.newRows("memory: loaded"), r.newRows("memory: overwritten twice")
	for i, t := range f.targets {
		r.o.Progress.Say("memory: %s", f.servers[i].Name)
		for pass := range 1 + overwrites {
			if err := bench.Fill(ctx, t, base.keys, base.size, nil); err != nil {
				return err
			}
			into := overwritten
			if pass == 0 {
				into = loaded
			}
			if pass == 0 || pass == overwrites {
				time.Sleep(settle)
				rss, err := bench.RSS(t.PID)
				if err != nil {
					return err
				}
				into[i].BytesPerKey = float64(rss) / float64(base.keys)
			}
		}
	}
	r.finish(loaded)
	r.finish(overwritten)
	return nil
}

// restart measures the time from the start of a process to its first PONG, with the keys in the log.
func (r *runner) restart(ctx context.Context) (err error) {
	f, err := startFleet(r.peers, base.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	for _, t := range f.targets {
		if err := bench.Fill(ctx, t, base.keys, base.size, r.o.Progress); err != nil {
			return err
		}
	}
	times := make([][]float64, len(r.peers))
	for round := range r.o.Rounds {
		for turn := range f.servers {
			i := bench.TurnOf(round, turn, len(f.servers))
			s := f.servers[i]
			r.o.Progress.Say("restart %d: %s", round+1, s.Name)
			took, err := s.Restart()
			if err != nil {
				return err
			}
			times[i] = append(times[i], took.Seconds())
			if n, err := bench.Ask(s.Addr, "DBSIZE"); err != nil || n != int64(base.keys) {
				return fmt.Errorf("%s has %v keys after its restart, want %d (%w)", s.Name, n, base.keys, err)
			}
		}
	}
	rows := r.newRows("restart")
	for i := range rows {
		rows[i].Restart = bench.Median(times[i])
	}
	r.finish(rows)
	return nil
}
