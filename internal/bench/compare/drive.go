package compare

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/bench"
)

// sample is one run of a cell on one server.
type sample struct {
	rate     float64 // commands a second
	p50, p99 float64 // us
	cpu      float64 // the server's, us a command
	busy     float64 // of the client: CPU seconds a second
}

// redisBenchmarkOps are driven by redis-benchmark, the others by Load.
var redisBenchmarkOps = []bench.Op{bench.Get, bench.Set, bench.Incr, bench.MSet}

// driver sends a cell's commands.
type driver struct {
	redisBenchmark string // path; empty: bench.Load drives everything
}

func newDriver() *driver {
	path, err := exec.LookPath("redis-benchmark")
	if err != nil {
		path = ""
	}
	return &driver{redisBenchmark: path}
}

// run sends n commands of the cell to t.
func (d *driver) run(ctx context.Context, t *bench.Target, c cell, n uint64) (sample, error) {
	before, err := bench.CPU(t.PID)
	if err != nil {
		return sample{}, err
	}
	var s sample
	if d.redisBenchmark == "" || c.dist != bench.Uniform || !slices.Contains(redisBenchmarkOps, c.op) {
		s, err = driveLoad(ctx, t, c, n)
	} else {
		s, err = d.driveRedisBenchmark(ctx, t, c, n)
	}
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w", c, err)
	}
	after, err := bench.CPU(t.PID)
	if err != nil {
		return sample{}, err
	}
	s.cpu = float64((after - before).Microseconds()) / float64(n)
	return s, nil
}

func driveLoad(ctx context.Context, t *bench.Target, c cell, n uint64) (sample, error) {
	r, err := bench.Load(ctx, t, bench.LoadOptions{
		Op: c.op, Keys: c.keys, Dist: c.dist, Size: c.size, Clients: c.clients, Pipeline: c.pipeline, Count: n,
	})
	return sample{
		rate: r.Rate, p50: r.Latency.P50, p99: r.Latency.P99, busy: r.Client * r.Rate / 1e6,
	}, err
}

func (d *driver) driveRedisBenchmark(ctx context.Context, t *bench.Target, c cell, n uint64) (sample, error) {
	host, port, err := net.SplitHostPort(t.Addr)
	if err != nil {
		return sample{}, err
	}
	cmd := exec.CommandContext(ctx, d.redisBenchmark, "-h", host, "-p", port, "-t", string(c.op),
		"-n", strconv.FormatUint(n, 10), "-r", strconv.FormatUint(c.keys, 10), "-d", strconv.Itoa(c.size),
		"-c", strconv.Itoa(c.clients), "-P", strconv.Itoa(c.pipeline), "--csv")
	start := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return sample{}, fmt.Errorf("redis-benchmark: %w: %.500s", err, out)
	}
	took := time.Since(start)
	s, err := parseCSV(string(out))
	if math.IsInf(s.rate, 0) { // a run of less than its millisecond
		s.rate = float64(n) / took.Seconds()
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	s.busy = used.Seconds() / took.Seconds()
	return s, err
}

var errCSV = errors.New("redis-benchmark: unexpected output")

// parseCSV reads what redis-benchmark --csv prints: a line of names, and one of numbers.
func parseCSV(text string) (sample, error) {
	at := strings.Index(text, `"test"`)
	if at < 0 {
		return sample{}, fmt.Errorf("%w: %.500s", errCSV, text)
	}
	rows, err := csv.NewReader(strings.NewReader(text[at:])).ReadAll()
	if err != nil || len(rows) != 2 {
		return sample{}, fmt.Errorf("%w: %.500s", errCSV, text)
	}
	values := make(map[string]float64)
	for i, name := range rows[0][1:] {
		if values[name], err = strconv.ParseFloat(rows[1][i+1], 64); err != nil {
			return sample{}, fmt.Errorf("%w: %w", errCSV, err)
		}
	}
	return sample{
		rate: values["rps"], p50: 1000 * values["p50_latency_ms"], p99: 1000 * values["p99_latency_ms"],
	}, nil
}

// Bounds of a run.
const (
	calibrateTime = 100 * time.Millisecond // a run from whose length that of others is guessed
	growth        = 8                      // from one try to the next, if it was shorter
	maxCommands   = 50_000_000
	bigValue      = 64 << 10 // runs with such values are shorter: they fill the disk
	setupShare    = 100      // a run is longer by its time for so many clients: accepting them must not show
)

// calibrate returns how many commands of the cell take kevy about the given time. It runs the cell on
// every server, which warms them up as well.
func (d *driver) calibrate(ctx context.Context, f *fleet, c cell, run time.Duration) (uint64, error) {
	if c.size >= bigValue {
		run /= 4
	}
	run += run * time.Duration(c.clients) / setupShare
	batch := uint64(c.clients * c.pipeline)
	for n := 2 * batch; ; n *= growth {
		begin := time.Now()
		if _, err := d.run(ctx, f.targets[0], c, n); err != nil {
			return 0, err
		}
		took := time.Since(begin)
		if took < min(calibrateTime, run) && n < maxCommands/growth {
			continue
		}
		for _, t := range f.targets[1:] {
			if _, err := d.run(ctx, t, c, n); err != nil {
				return 0, err
			}
		}
		n = min(uint64(float64(n)*float64(run)/float64(took)), maxCommands)
		return max(1, n/batch) * batch, nil
	}
}
