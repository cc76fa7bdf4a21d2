package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// lagShare is the part of the peak at which Replica measures the lag.
const lagShare = 0.5

// stepLimit bounds the wait for a replica to be in step.
const stepLimit = 5 * time.Minute

// ReplicaResult is what Replica measured: medians over the rounds.
type ReplicaResult struct {
	Writes  []ReplicaRow    `json:"writes"` // of each program with no replica and with one in step
	CatchUp CatchUpRow      `json:"catch_up"`
	Lag     LatencyResult   `json:"lag"` // from the write's reply to its frame, delivered by the replica
	Copies  []FullCopiesRow `json:"full_copies"`
}

// ReplicaRow is the rate of SET with some replicas.
type ReplicaRow struct {
	Name     string  `json:"name"`
	Replicas int     `json:"replicas"`
	Rate     float64 `json:"writes_per_second"`
	Source   float64 `json:"source_cpu_us"` // for each write, as the next one
	Replica  float64 `json:"replica_cpu_us"`
	Ratio    float64 `json:"rate_ratio"`       // to no replica
	CPURatio float64 `json:"source_cpu_ratio"` // the same
}

// CatchUpRow is how fast a replica that was away takes in what it has missed.
type CatchUpRow struct {
	Frames  float64 `json:"frames"`
	Rate    float64 `json:"frames_per_second"`
	Source  float64 `json:"source_cpu_us"` // for each frame, as the next one
	Replica float64 `json:"replica_cpu_us"`
}

// FullCopiesRow is how long a new replica takes until it is in step with a source at rest.
type FullCopiesRow struct {
	Name    string  `json:"name"`
	Keys    uint64  `json:"keys"`
	Seconds float64 `json:"seconds"`
	Source  float64 `json:"source_cpu_s"` // without processes that it forks
	Replica float64 `json:"replica_cpu_s"`
}

// Table lays the result out.
func (r ReplicaResult) Table() *Table {
	t := &Table{Head: []string{"replication", "per second", "source us", "replica us", "rate x", "source x", "p50 ms", "p99 ms", "s"}}
	for _, w := range r.Writes {
		t.Add(fmt.Sprintf("SET, %d replicas, %s", w.Replicas, w.Name), Count(w.Rate), Number(w.Source), Number(w.Replica), Number(w.Ratio), Number(w.CPURatio), "", "", "")
	}
	t.Add("catching up, frames", Count(r.CatchUp.Rate), Number(r.CatchUp.Source), Number(r.CatchUp.Replica), "", "", "", "", "")
	t.Add(fmt.Sprintf("lag, %d lost", r.Lag.Lost), Count(r.Lag.Rate), "", "", "", "", Number(r.Lag.Deliver.P50/1e3), Number(r.Lag.Deliver.P99/1e3), "")
	for _, c := range r.Copies {
		t.Add("full copy, "+c.Name, Count(ratio(float64(c.Keys), c.Seconds)), Number(ratio(c.Source*1e6, float64(c.Keys))),
			Number(ratio(c.Replica*1e6, float64(c.Keys))), "", "", "", "", Number(c.Seconds))
	}
	return t
}

// replicaBench is a source and a replica of it, of one program.
type replicaBench struct {
	copier
	o               *FeedOptions
	source, replica *Target
	attached        bool

	rows   [2][]ReplicaRow // by the number of replicas
	caught []CatchUpRow
}

// Replica measures what replication costs and how fast it is, with servers that it starts from the binary at path: SET with no replica and
// with one in step, in turn; how fast the replica catches up after each time without; the lag at half of the peak; and full copies. The first and the last beside
// redis-server if that is installed.
func Replica(ctx context.Context, path string, o FeedOptions) (r ReplicaResult, err error) {
	o.EnsureDefaults()
	dir, err := os.MkdirTemp("", "kevy-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var pairs []*replicaBench
	for _, p := range copiers(path, "yes") {
		b := &replicaBench{copier: p, o: &o}
		stop, err := b.start(ctx, filepath.Join(dir, p.name))
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		if _, err := b.attach(ctx); err != nil { // the full copy
			return r, err
		}
		pairs = append(pairs, b)
	}
	if err := replicaRounds(ctx, pairs, &r); err != nil {
		return r, err
	}
	b, lag := pairs[0], o
	if _, err := b.attach(ctx); err != nil {
		return r, err
	}
	lag.Clients, lag.Rate = latencyClients, r.Writes[1].Rate*lagShare
	if r.Lag, err = latency(ctx, b.source, b.replica.Addr, lag); err != nil {
		return r, err
	}
	r.Copies, err = fullCopies(ctx, path, &o)
	return r, err
}

// replicaRounds measures SET without the replica and with it, in turn, and its catching up each time that it comes back.
func replicaRounds(ctx context.Context, pairs []*replicaBench, r *ReplicaResult) error {
	for round := range pairs[0].o.Rounds {
		for turn := range pairs {
			b := pairs[TurnOf(round, turn, len(pairs))]
			for n := range b.rows {
				if err := b.measure(ctx, TurnOf(round, n, len(b.rows))); err != nil {
					return fmt.Errorf("%s: %w", b.name, err)
				}
			}
		}
	}
	for _, b := range pairs {
		r.Writes = append(r.Writes, replicaRows(b.name, b.rows)...)
	}
	caught := pairs[0].caught
	r.CatchUp = CatchUpRow{
		Frames:  medianOf(caught, func(r CatchUpRow) float64 { return r.Frames }),
		Rate:    medianOf(caught, func(r CatchUpRow) float64 { return r.Rate }),
		Source:  medianOf(caught, func(r CatchUpRow) float64 { return r.Source }),
		Replica: medianOf(caught, func(r CatchUpRow) float64 { return r.Replica }),
	}
	return nil
}

// measure measures SET once, with n replicas.
func (b *replicaBench) measure(ctx context.Context, n int) error {
	if n == 0 && b.attached {
		if err := b.detach(); err != nil {
			return err
		}
	}
	if n == 1 && !b.attached {
		row, err := b.attach(ctx)
		if err != nil {
			return err
		}
		b.caught = append(b.caught, row)
	}
	row, err := b.write(ctx)
	b.rows[n] = append(b.rows[n], row)
	return err
}

// replicaRows are the medians. The ratios are medians of the rounds' ratios, as a machine that others share changes its speed between rounds more
// than within one.
func replicaRows(name string, rows [2][]ReplicaRow) (out []ReplicaRow) {
	for n := range rows {
		for i := range rows[n] {
			rows[n][i].Ratio = ratio(rows[n][i].Rate, rows[0][i].Rate)
			rows[n][i].CPURatio = ratio(rows[n][i].Source, rows[0][i].Source)
		}
		out = append(out, ReplicaRow{
			Name: name, Replicas: n,
			Rate:     medianOf(rows[n], func(r ReplicaRow) float64 { return r.Rate }),
			Source:   medianOf(rows[n], func(r ReplicaRow) float64 { return r.Source }),
			Replica:  medianOf(rows[n], func(r ReplicaRow) float64 { return r.Replica }),
			Ratio:    medianOf(rows[n], func(r ReplicaRow) float64 { return r.Ratio }),
			CPURatio: medianOf(rows[n], func(r ReplicaRow) float64 { return r.CPURatio }),
		})
	}
	return out
}

// write is measure with what is attached.
func (b *replicaBench) write(ctx context.Context) (row ReplicaRow, err error) {
	cpu := startCPU(b.replica.PID)
	res, err := Load(ctx, b.source, LoadOptions{
		Op: Set, Keys: b.o.Frames, Size: b.o.Size, Clients: b.o.Clients, Pipeline: b.o.Pipeline, Time: b.o.Time, Progress: b.o.Progress,
	})
	return ReplicaRow{Rate: res.Rate, Source: res.Server, Replica: cpu.per(res.Ops).Server}, err
}

// detach makes the replica ask where nobody is: it stays a replica.
func (b *replicaBench) detach() error {
	port, err := freePort()
	if err != nil {
		return err
	}
	b.attached = false
	_, err = Ask(b.replica.Addr, "REPLICAOF", "127.0.0.1", strconv.Itoa(port))
	return err
}

// attach makes the replica follow the source, unless it does, and waits until it is in step.
func (b *replicaBench) attach(ctx context.Context) (row CatchUpRow, err error) {
	b.o.Progress.Say("%s: catching up", b.name)
	source, replica, begin := startCPU(b.source.PID), startCPU(b.replica.PID), time.Now()
	if err := replicaOf(b.replica, b.source); err != nil {
		return row, err
	}
	if err := inStep(ctx, b.source, b.replica); err != nil {
		return row, err
	}
	b.attached = true
	if b.name != kevyName {
		return row, nil // it does not tell how much it has applied
	}
	took := time.Since(begin).Seconds()
	c, err := dial(b.replica.Addr)
	if err != nil {
		return row, err
	}
	defer c.close()
	text, err := c.info("replication", "repl_frames_applied")
	if err != nil {
		return row, err
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return CatchUpRow{Frames: float64(n), Rate: float64(n) / took, Source: source.per(n).Server, Replica: replica.per(n).Server}, err
}

func replicaOf(replica, source *Target) error {
	host, port, err := net.SplitHostPort(source.Addr)
	if err != nil {
		return err
	}
	_, err = Ask(replica.Addr, "REPLICAOF", host, port)
	return err
}

// inStep waits until the replica has all that the source has.
func inStep(ctx context.Context, source, replica *Target) error {
	s, err := dial(source.Addr)
	if err != nil {
		return err
	}
	defer s.close()
	r, err := dial(replica.Addr)
	if err != nil {
		return err
	}
	defer r.close()
	for end := time.Now().Add(stepLimit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var up, want, have string
		for _, x := range []struct {
			c     *conn
			field string
			to    *string
		}{{r, "master_link_status", &up}, {s, "master_repl_offset", &want}, {r, "slave_repl_offset", &have}} {
			if *x.to, err = x.c.info("replication", x.field); err != nil {
				return err
			}
		}
		if up == "up" && want == have {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return fmt.Errorf("bench: the replica is not in step after %s", stepLimit)
}

// copier is a program whose replication is measured.
type copier struct {
	name, path string
	command    Command
}

// kevyName is the name of the kevy that is measured.
const kevyName = "kevy"

// copiers are the kevy at path and, if it is installed, redis-server, with an append-only file or without. They write no snapshots but for replicas, and
// have what a replica that was away for a round has missed.
func copiers(path, appendOnly string) []copier {
	programs := []copier{{kevyName, path, KevyCommand(NoSnapshots...)}}
	if redis, err := exec.LookPath("redis-server"); err == nil {
		programs = append(programs, copier{"redis-server", redis, func(port int, dir string) []string {
			return append([]string{
				"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--save", "", "--appendonly", appendOnly,
				"--repl-diskless-sync-delay", "0", // it would wait for more replicas
				"--repl-backlog-size", "1gb",
			}, NoSnapshots...)
		}})
	}
	return programs
}

// start starts a source, filled, and an empty replica that does not follow it yet, with their data in dir.
func (b *replicaBench) start(ctx context.Context, dir string) (stop func() error, err error) {
	var servers []*Server
	stop = func() (err error) {
		for _, s := range servers {
			err = errors.Join(err, s.Stop())
		}
		return err
	}
	for name, to := range map[string]**Target{"source": &b.source, "replica": &b.replica} {
		s, err := Start(b.name, b.path, filepath.Join(dir, name), b.command)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		servers = append(servers, s)
		*to = &Target{Addr: s.Addr, PID: s.PID()}
	}
	if err := Fill(ctx, b.source, b.o.Frames, b.o.Size, b.o.Progress); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// fullCopies measures new replicas, of each program in turn.
func fullCopies(ctx context.Context, path string, o *FeedOptions) (rows []FullCopiesRow, err error) {
	programs := copiers(path, "no")
	dir, err := os.MkdirTemp("", "kevy-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	results := make([][]FullCopiesRow, len(programs))
	for round := range o.Rounds {
		for turn := range programs {
			i := TurnOf(round, turn, len(programs))
			row, err := programs[i].copy(ctx, filepath.Join(dir, fmt.Sprint(programs[i].name, round)), o)
			if err != nil {
				return nil, err
			}
			results[i] = append(results[i], row)
		}
	}
	for i, p := range programs {
		rows = append(rows, FullCopiesRow{
			Name: p.name, Keys: o.Frames,
			Seconds: medianOf(results[i], func(r FullCopiesRow) float64 { return r.Seconds }),
			Source:  medianOf(results[i], func(r FullCopiesRow) float64 { return r.Source }),
			Replica: medianOf(results[i], func(r FullCopiesRow) float64 { return r.Replica }),
		})
	}
	return rows, nil
}

// copy measures a full copy once, with servers of its own.
func (p copier) copy(ctx context.Context, dir string, o *FeedOptions) (row FullCopiesRow, err error) {
	b := &replicaBench{copier: p, o: o}
	stop, err := b.start(ctx, dir)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	source, replica, begin := startCPU(b.source.PID), startCPU(b.replica.PID), time.Now()
	if _, err := b.attach(ctx); err != nil {
		return row, err
	}
	row.Seconds = time.Since(begin).Seconds()
	row.Source, row.Replica = source.per(1).Server/1e6, replica.per(1).Server/1e6
	return row, nil
}
