package compare

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/kevydb/kevy/internal/bench"
)

// Options say what Run measures.
type Options struct {
	Kevy     string        // path of kevy's binary
	Full     bool          // all cells
	Cells    string        // regular expression: only these of all
	List     bool          // only list the cells
	Rounds   int           // of each cell; the medians are reported
	Time     time.Duration // of each run on kevy, about
	Progress *bench.Progress
}

// Row is what was measured of one server in one cell: medians over the rounds. The ratios are kevy's
// figure by this server's; 0 in kevy's own rows.
type Row struct {
	What         string  `json:"what"`
	Server       string  `json:"server"`
	Rate         float64 `json:"per_second,omitempty"`
	RateRatio    float64 `json:"rate_ratio,omitempty"`
	CPU          float64 `json:"server_cpu_us,omitempty"`
	CPURatio     float64 `json:"server_cpu_ratio,omitempty"`
	P50          float64 `json:"p50_us,omitempty"`
	P99          float64 `json:"p99_us,omitempty"`
	ClientBusy   float64 `json:"client_busy,omitempty"` // CPU seconds a second
	BytesPerKey  float64 `json:"rss_bytes_per_key,omitempty"`
	RSSRatio     float64 `json:"rss_ratio,omitempty"`
	Restart      float64 `json:"restart_s,omitempty"`
	RestartRatio float64 `json:"restart_ratio,omitempty"`
}

// Result is what Run measured.
type Result struct {
	CPUs   int    `json:"cpus"`
	Arch   string `json:"arch"`
	Rounds int    `json:"rounds"`
	Rows   []Row  `json:"rows"`
}

// List is the names of cells.
type List []string

// Table returns the names as text.
func (l List) Table() *bench.Table {
	t := &bench.Table{Head: []string{"cells"}}
	for _, name := range l {
		t.Add(name)
	}
	return t
}

// runner is a running Run.
type runner struct {
	o      Options
	peers  []peer
	driver *driver
	result Result
}

// Run compares kevy with redis-server, if it is installed, and the given servers. It returns a Result,
// or with Options.List a List.
func Run(ctx context.Context, o Options, given []string) (any, error) {
	s, err := choose(o.Full, o.Cells)
	if err != nil {
		return nil, err
	}
	if o.List {
		return s.list(), nil
	}
	peers, err := findPeers(o.Kevy, given)
	if err != nil {
		return nil, err
	}
	o.Rounds = max(o.Rounds, 1)
	r := &runner{o: o, peers: peers, driver: newDriver()}
	r.result = Result{CPUs: runtime.NumCPU(), Arch: runtime.GOARCH, Rounds: o.Rounds}
	defer o.Progress.Clear()
	if s.memory {
		if err := r.memory(ctx); err != nil {
			return nil, err
		}
	}
	if s.restart {
		if err := r.restart(ctx); err != nil {
			return nil, err
		}
	}
	for _, g := range s.groups() {
		if err := r.group(ctx, g); err != nil {
			return nil, err
		}
	}
	return r.result, nil
}

func (s *selection) list() List {
	var out List
	if s.memory {
		out = append(out, cellMemory)
	}
	if s.restart {
		out = append(out, cellRestart)
	}
	for _, c := range s.cells {
		out = append(out, c.String())
	}
	return out
}

// group measures cells of one setting.
func (r *runner) group(ctx context.Context, cells []cell) (err error) {
	set := cells[0].setting
	f, err := startFleet(r.peers, set.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	for _, t := range f.targets {
		if err := bench.Fill(ctx, t, set.keys, set.size, r.o.Progress); err != nil {
			return err
		}
	}
	for _, c := range cells {
		if err := r.cell(ctx, f, c); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) cell(ctx context.Context, f *fleet, c cell) error {
	r.o.Progress.Say("%s: warming up", c)
	for _, t := range f.targets {
		if err := bench.Prepare(ctx, t, c.op); err != nil {
			return err
		}
	}
	n, err := r.driver.calibrate(ctx, f, c, r.o.Time)
	if err != nil {
		return err
	}
	samples := make([][]sample, len(f.targets))
	for round := range r.o.Rounds {
		for turn := range f.targets {
			i := bench.TurnOf(round, turn, len(f.targets))
			r.o.Progress.Say("%s: %d/%d %s", c, round+1, r.o.Rounds, f.servers[i].Name)
			s, err := r.driver.run(ctx, f.targets[i], c, n)
			if err != nil {
				return fmt.Errorf("%s: %w", f.servers[i].Name, err)
			}
			samples[i] = append(samples[i], s)
		}
	}
	rows := r.newRows(c.String())
	for i := range rows {
		median := func(f func(s sample) float64) float64 {
			var v []float64
			for _, s := range samples[i] {
				v = append(v, f(s))
			}
			return bench.Median(v)
		}
		rows[i].Rate = median(func(s sample) float64 { return s.rate })
		rows[i].CPU = median(func(s sample) float64 { return s.cpu })
		rows[i].P50 = median(func(s sample) float64 { return s.p50 })
		rows[i].P99 = median(func(s sample) float64 { return s.p99 })
		rows[i].ClientBusy = median(func(s sample) float64 { return s.busy })
	}
	r.finish(rows)
	return nil
}

// newRows returns a row for each server.
func (r *runner) newRows(what string) []Row {
	rows := make([]Row, len(r.peers))
	for i, p := range r.peers {
		rows[i] = Row{What: what, Server: p.name}
	}
	return rows
}

// finish fills in the ratios and keeps the rows.
func (r *runner) finish(rows []Row) {
	k := rows[0]
	for i := range rows[1:] {
		o := &rows[i+1]
		o.RateRatio, o.CPURatio = ratio(k.Rate, o.Rate), ratio(k.CPU, o.CPU)
		o.RSSRatio, o.RestartRatio = ratio(k.BytesPerKey, o.BytesPerKey), ratio(k.Restart, o.Restart)
	}
	r.result.Rows = append(r.result.Rows, rows...)
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Table returns the result as text.
func (r Result) Table() *bench.Table {
	t := &bench.Table{Head: []string{
		"what", "server", "per s", "rate x", "cpu us", "cpu x", "p50 us", "p99 us", "client", "B/key", "rss x", "start s", "start x",
	}}
	for i, row := range r.Rows {
		what := row.What
		if i > 0 && r.Rows[i-1].What == what {
			what = ""
		}
		rate := "-"
		if row.Rate > 0 {
			rate = bench.Count(row.Rate)
		}
		cells := []string{what, row.Server, rate}
		for _, n := range []float64{
			row.RateRatio, row.CPU, row.CPURatio, row.P50, row.P99, row.ClientBusy,
			row.BytesPerKey, row.RSSRatio, row.Restart, row.RestartRatio,
		} {
			cells = append(cells, bench.Number(n))
		}
		t.Add(cells...)
	}
	return t
}
