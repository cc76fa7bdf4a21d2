package bench

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
)

func TestMain(m *testing.M) { os.Exit(proc.Main(m)) }

// kevy starts a server for the test.
func kevy(t *testing.T, flags ...string) *Target {
	t.Helper()
	path, err := proc.Kevy()
	if err != nil {
		t.Fatal(err)
	}
	target, err := Open("", path, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := target.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(target.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory is still there: %v", err)
		}
	})
	return target
}

// prints checks that a result can be shown.
func prints(t *testing.T, result any, words ...string) {
	t.Helper()
	var b strings.Builder
	if err := Print(&b, result); err != nil {
		t.Fatal(err)
	}
	for _, w := range words {
		if !strings.Contains(b.String(), w) {
			t.Errorf("no %q in\n%s", w, b.String())
		}
	}
}

func TestLoad(t *testing.T) {
	target := kevy(t)
	ctx := context.Background()
	if err := Fill(ctx, target, 1000, 16, nil); err != nil {
		t.Fatal(err)
	}
	if n, err := Ask(target.Addr, "DBSIZE"); err != nil || n != int64(1000) {
		t.Fatalf("%v keys, %v", n, err)
	}
	for _, op := range []Op{Get, Set, Incr, MSet, Mix} {
		for _, d := range []Distribution{Uniform, Zipfian, Sequential} {
			r, err := Load(ctx, target, LoadOptions{
				Op: op, Keys: 1000, Dist: d, Size: 16, Clients: 3, Pipeline: 7, Count: 500,
			})
			if err != nil {
				t.Fatal(op, d, err)
			}
			if r.Ops != 500 || r.Latency.Count != 500 || r.Latency.P50 <= 0 || r.Rate <= 0 {
				t.Errorf("%s %s: %+v", op, d, r)
			}
			prints(t, r, "per second")
		}
	}
	if v, err := Ask(target.Addr, "GET", "key:000000000999"); err != nil || v != strings.Repeat("x", 16) {
		t.Errorf("value %v, %v", v, err)
	}
}

func TestLoadIsBoundedByTimeAndPaced(t *testing.T) {
	target := kevy(t)
	begin := time.Now()
	r, err := Load(context.Background(), target, LoadOptions{
		Keys: 10, Clients: 2, Pipeline: 2, Time: 300 * time.Millisecond, Rate: 200,
	})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 20*time.Second || r.Ops < 4 || r.Ops > 80 {
		t.Errorf("%d commands in %v", r.Ops, took)
	}
}

func TestLoadStops(t *testing.T) {
	target := kevy(t)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := Load(ctx, target, LoadOptions{Time: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if _, err := Ask(target.Addr, "SET", "key:000000000000", "text"); err != nil {
		t.Fatal(err)
	}
	_, err := Load(context.Background(), target, LoadOptions{Op: "flush"})
	if err == nil {
		t.Error("an unknown op runs")
	}
	if _, err := Ask(target.Addr, "SET", "counter:000000000000", "text"); err != nil {
		t.Fatal(err)
	}
	_, err = Load(context.Background(), target, LoadOptions{Op: Incr, Keys: 1, Count: 1})
	if _, ok := errors.AsType[ReplyError](err); !ok {
		t.Errorf("INCR of a text: %v", err)
	}
}

// tiny makes every benchmark of the feed short.
var tiny = FeedOptions{
	Frames: 20_000, Size: 32, Time: 30 * time.Millisecond, Clients: 4, Pipeline: 4, Rounds: 1,
}

func TestDrainAndFilter(t *testing.T) {
	target := kevy(t)
	rows, err := Drain(context.Background(), target, tiny)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2*len(drainCases) {
		t.Errorf("%d rows", len(rows))
	}
	for _, r := range rows {
		if r.Frames == 0 || r.Rate <= 0 || r.MBps <= 0 {
			t.Errorf("%+v", r)
		}
	}
	prints(t, rows, "probe", "FEED.READ, asking ahead")
	if rows, err = Filter(context.Background(), target, tiny); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Frames < tiny.Frames/4 {
			t.Errorf("%+v", r)
		}
	}
	prints(t, rows, "matching")
}

func TestDrainSaysThatTheWindowIsSmall(t *testing.T) {
	target := kevy(t, "--feed-buffer-size", "64kb", "--shards", "1", "--log-segment-size", "1mb")
	_, err := Drain(context.Background(), target, tiny)
	if err == nil || !strings.Contains(err.Error(), "feed-buffer-size") {
		t.Errorf("error %v", err)
	}
}

func TestLatency(t *testing.T) {
	target := kevy(t)
	o := tiny
	o.Rate, o.Time = 2000, 200*time.Millisecond
	r, err := Latency(context.Background(), target, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Lost != 0 || r.Deliver.Count == 0 || r.Deliver.Count != r.Write.Count {
		t.Errorf("%+v", r)
	}
	prints(t, r, "delivered")
	o.Rate = 0
	if r, err = Latency(context.Background(), target, o); err != nil || r.Peak <= 0 || r.Asked >= r.Peak {
		t.Errorf("%+v, %v", r, err)
	}
	o.Size = 3
	if _, err = Latency(context.Background(), target, o); err == nil {
		t.Error("a value too short for its number")
	}
}

func TestWriters(t *testing.T) {
	path, err := proc.Kevy()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Writers(context.Background(), path, tiny)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4 || rows[0].Ratio != 1 || rows[1].Feed || rows[3].Consumers != 16 || rows[3].Frames == 0 {
		t.Errorf("%+v", rows)
	}
	prints(t, rows, "feed disabled")
}

func TestReplica(t *testing.T) {
	path, err := proc.Kevy()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Replica(t.Context(), path, FeedOptions{Frames: 2000, Rounds: 2, Time: 200 * time.Millisecond, Clients: 4})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Writes) != 2*len(r.Copies) {
		t.Errorf("writes: %+v", r.Writes)
	}
	for i, w := range r.Writes {
		if w.Name != r.Copies[i/2].Name || w.Replicas != i%2 || w.Rate == 0 || w.Ratio == 0 || w.CPURatio == 0 && w.Source != 0 {
			t.Errorf("writes: %+v", w)
		}
	}
	if r.CatchUp.Frames == 0 || r.CatchUp.Rate == 0 {
		t.Errorf("catching up: %+v", r.CatchUp)
	}
	if r.Lag.Deliver.Count == 0 || r.Lag.Lost != 0 {
		t.Errorf("lag: %+v", r.Lag)
	}
	for _, c := range r.Copies {
		if c.Keys != 2000 || c.Seconds == 0 {
			t.Errorf("full copy: %+v", c)
		}
	}
	var out strings.Builder
	if err := Print(&out, r); err != nil || len(r.Copies) == 0 || !strings.Contains(out.String(), "full copy, kevy") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestView(t *testing.T) {
	target := kevy(t)
	o := tiny
	o.Time = 300 * time.Millisecond
	rows, err := View(context.Background(), target, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].Open != 0 || rows[1].Open == 0 || rows[1].P99 == 0 || rows[0].P99Ratio != 1 {
		t.Errorf("%+v", rows)
	}
	prints(t, rows, "view open")
}

func TestServerRestarts(t *testing.T) {
	target := kevy(t)
	if _, err := Ask(target.Addr, "SET", "k", "v"); err != nil {
		t.Fatal(err)
	}
	if rss, err := RSS(target.PID); err != nil || rss < 1<<20 {
		t.Errorf("RSS %d, %v", rss, err)
	}
	if pid := localPID(target.Addr); pid != target.PID {
		t.Errorf("process %d, want %d", pid, target.PID)
	}
	if _, err := target.server.Restart(); err != nil {
		t.Fatal(err)
	}
	if v, err := Ask(target.Addr, "GET", "k"); err != nil || v != "v" {
		t.Errorf("%v, %v", v, err)
	}
}

func TestStartShowsWhatTheServerSaid(t *testing.T) {
	path, err := proc.Kevy()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open("", path, "--no-such-flag")
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("error %v", err)
	}
}
