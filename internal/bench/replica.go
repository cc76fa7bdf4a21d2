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
	Writes  []ReplicaRow    `json:"writes"` // with no replica and with one in step
	CatchUp CatchUpRow      `json:"catch_up"`
	Lag     LatencyResult   `json:"lag"` // from the write's reply to its frame, delivered by the replica
	Copies  []FullCopiesRow `json:"full_copies"`
}

// ReplicaRow is the rate of SET with some replicas.
type ReplicaRow struct {
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
		t.Add(fmt.Sprintf("SET, %d replicas", w.Replicas), Count(w.Rate), Number(w.Source), Number(w.Replica), Number(w.Ratio), Number(w.CPURatio), "", "", "")
	}
	t.Add("catching up, frames", Count(r.CatchUp.Rate), Number(r.CatchUp.Source), Number(r.CatchUp.Replica), "", "", "", "", "")
	t.Add(fmt.Sprintf("lag, %d lost", r.Lag.Lost), Count(r.Lag.Rate), "", "", "", "", Number(r.Lag.Deliver.P50/1e3), Number(r.Lag.Deliver.P99/1e3), "")
	for _, c := range r.Copies {
		t.Add("full copy, "+c.Name, Count(ratio(float64(c.Keys), c.Seconds)), Number(ratio(c.Source*1e6, float64(c.Keys))),
			Number(ratio(c.Replica*1e6, float64(c.Keys))), "", "", "", "", Number(c.Seconds))
	}
	return t
}

// replicaBench is a source and a replica of it.
type replicaBench struct {
	path            string
	o               *FeedOptions
	source, replica *Target
}

// Replica measures what replication costs and how fast it is, with servers that it starts from the binary at path: SET with no replica and
// with one in step, in turn; how fast the replica catches up after each time without; the lag at half of the peak; and full copies, beside those of
// redis-server if that is installed.
func Replica(ctx context.Context, path string, o FeedOptions) (r ReplicaResult, err error) {
	o.EnsureDefaults()
	b := &replicaBench{path: path, o: &o}
	for _, t := range []**Target{&b.source, &b.replica} {
		if *t, err = Open("", path, NoSnapshots...); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, (*t).Close()) }()
	}
	if err := Fill(ctx, b.source, o.Frames, o.Size, o.Progress); err != nil {
		return r, err
	}
	if err := b.rounds(ctx, &r); err != nil {
		return r, err
	}
	lag := o
	lag.Clients, lag.Rate = latencyClients, r.Writes[1].Rate*lagShare
	if r.Lag, err = latency(ctx, b.source, b.replica.Addr, lag); err != nil {
		return r, err
	}
	r.Copies, err = fullCopies(ctx, path, &o)
	return r, err
}

// rounds measures SET without the replica and with it, in turn, and its catching up each time that it comes back.
func (b *replicaBench) rounds(ctx context.Context, r *ReplicaResult) error {
	var rows [2][]ReplicaRow
	var caught []CatchUpRow
	attached := true
	if _, err := b.attach(ctx); err != nil { // the full copy
		return err
	}
	for round := range b.o.Rounds {
		for turn := range rows {
			n := TurnOf(round, turn, len(rows))
			if attached && n == 0 {
				if err := b.detach(); err != nil {
					return err
				}
			}
			if !attached && n == 1 {
				row, err := b.attach(ctx)
				if err != nil {
					return err
				}
				caught = append(caught, row)
			}
			attached = n == 1
			row, err := b.write(ctx, n)
			if err != nil {
				return err
			}
			rows[n] = append(rows[n], row)
		}
	}
	if _, err := b.attach(ctx); err != nil {
		return err
	}
	r.Writes = replicaRows(rows)
	r.CatchUp = CatchUpRow{
		Frames:  medianOf(caught, func(r CatchUpRow) float64 { return r.Frames }),
		Rate:    medianOf(caught, func(r CatchUpRow) float64 { return r.Rate }),
		Source:  medianOf(caught, func(r CatchUpRow) float64 { return r.Source }),
		Replica: medianOf(caught, func(r CatchUpRow) float64 { return r.Replica }),
	}
	return nil
}

// replicaRows are the medians. The ratios are medians of the rounds' ratios, as a machine that others share changes its speed between rounds more
// than within one.
func replicaRows(rows [2][]ReplicaRow) (out []ReplicaRow) {
	for n := range rows {
		for i := range rows[n] {
			rows[n][i].Ratio = ratio(rows[n][i].Rate, rows[0][i].Rate)
			rows[n][i].CPURatio = ratio(rows[n][i].Source, rows[0][i].Source)
		}
		out = append(out, ReplicaRow{
			Replicas: n,
			Rate:     medianOf(rows[n], func(r ReplicaRow) float64 { return r.Rate }),
			Source:   medianOf(rows[n], func(r ReplicaRow) float64 { return r.Source }),
			Replica:  medianOf(rows[n], func(r ReplicaRow) float64 { return r.Replica }),
			Ratio:    medianOf(rows[n], func(r ReplicaRow) float64 { return r.Ratio }),
			CPURatio: medianOf(rows[n], func(r ReplicaRow) float64 { return r.CPURatio }),
		})
	}
	return out
}

// write measures SET once.
func (b *replicaBench) write(ctx context.Context, replicas int) (row ReplicaRow, err error) {
	cpu := startCPU(b.replica.PID)
	res, err := Load(ctx, b.source, LoadOptions{
		Op: Set, Keys: b.o.Frames, Size: b.o.Size, Clients: b.o.Clients, Pipeline: b.o.Pipeline, Time: b.o.Time, Progress: b.o.Progress,
	})
	return ReplicaRow{Replicas: replicas, Rate: res.Rate, Source: res.Server, Replica: cpu.per(res.Ops).Server}, err
}

// detach makes the replica ask where nobody is: it stays a replica.
func (b *replicaBench) detach() error {
	port, err := freePort()
	if err != nil {
		return err
	}
	_, err = Ask(b.replica.Addr, "REPLICAOF", "127.0.0.1", strconv.Itoa(port))
	return err
}

// attach makes the replica follow the source, and waits until it is in step.
func (b *replicaBench) attach(ctx context.Context) (row CatchUpRow, err error) {
	b.o.Progress.Say("catching up")
	source, replica, begin := startCPU(b.source.PID), startCPU(b.replica.PID), time.Now()
	if err := replicaOf(b.replica, b.source); err != nil {
		return row, err
	}
	if err := inStep(ctx, b.source, b.replica); err != nil {
		return row, err
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

// copier is a program whose full copies are measured.
type copier struct {
	name, path string
	command    Command
}

// fullCopies measures new replicas, of each program in turn.
func fullCopies(ctx context.Context, path string, o *FeedOptions) (rows []FullCopiesRow, err error) {
	programs := []copier{{"kevy", path, KevyCommand()}}
	if redis, err := exec.LookPath("redis-server"); err == nil {
		programs = append(programs, copier{"redis-server", redis, func(port int, dir string) []string {
			return []string{
				"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--save", "", "--appendonly", "no",
				"--repl-diskless-sync-delay", "0", // it would wait for more replicas
			}
		}})
	}
	dir, err := os.MkdirTemp("", "kevy-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	results := make([][]FullCopiesRow, len(programs))
	for round := range o.Rounds {
		for turn := range programs {
			i := TurnOf(round, turn, len(programs))
			p := programs[i]
			row, err := p.copy(ctx, filepath.Join(dir, fmt.Sprint(p.name, round)), o)
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
func (p *copier) copy(ctx context.Context, dir string, o *FeedOptions) (row FullCopiesRow, err error) {
	var targets [2]*Target
	for i, name := range []string{"source", "replica"} {
		s, err := Start(p.name, p.path, filepath.Join(dir, name), p.command)
		if err != nil {
			return row, err
		}
		defer func() { err = errors.Join(err, s.Stop()) }()
		targets[i] = &Target{Addr: s.Addr, PID: s.PID()}
	}
	source, replica := targets[0], targets[1]
	if err := Fill(ctx, source, o.Frames, o.Size, o.Progress); err != nil {
		return row, err
	}
	o.Progress.Say("full copy, %s", p.name)
	a, b, begin := startCPU(source.PID), startCPU(replica.PID), time.Now()
	if err := replicaOf(replica, source); err != nil {
		return row, err
	}
	if err := inStep(ctx, source, replica); err != nil {
		return row, err
	}
	row.Seconds = time.Since(begin).Seconds()
	row.Source, row.Replica = a.per(1).Server/1e6, b.per(1).Server/1e6
	return row, nil
}
