package compare

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/bench"
	"github.com/kevydb/kevy/internal/testkit/proc"
)

func TestMain(m *testing.M) { os.Exit(proc.Main(m)) }

func TestCells(t *testing.T) {
	names := func(full bool, match string) []string {
		s, err := choose(full, match)
		if err != nil {
			t.Fatal(err)
		}
		return s.list()
	}
	quick, full := names(false, ""), names(true, "")
	for _, n := range quick {
		if !slices.Contains(full, n) {
			t.Errorf("%s is not among the full cells", n)
		}
	}
	seen := make(map[string]bool)
	for _, n := range full {
		if seen[n] {
			t.Errorf("%s comes twice", n)
		}
		seen[n] = true
	}
	got := names(false, "^(memory|set -P 1 -c 50 64B 1.00M uniform always)")
	if want := []string{cellMemory, "set -P 1 -c 50 64B 1.00M uniform always"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := choose(true, "("); err == nil {
		t.Error("a bad expression is taken")
	}
}

func TestGroups(t *testing.T) {
	s, err := choose(true, "")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range s.groups() {
		for _, c := range g {
			if c.setting != g[0].setting {
				t.Errorf("%s is in the group of %s", c, g[0])
			}
			n++
		}
	}
	if n != len(s.cells) {
		t.Errorf("%d cells in groups, want %d", n, len(s.cells))
	}
}

func TestParseCSV(t *testing.T) {
	const text = "WARNING: something\n" +
		`"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` + "\n" +
		`"GET","83333.34","0.316","0.104","0.311","0.391","0.423","0.551"` + "\n"
	s, err := parseCSV(text)
	if err != nil || s.rate != 83333.34 || s.p50 != 311 || s.p99 != 423 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"", text[:len(text)-60], strings.Replace(text, "83333.34", "x", 1)} {
		if _, err := parseCSV(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestPeers(t *testing.T) {
	peers, err := findPeers("/k", []string{"redis-server=/bin/true", "other=/bin/true --p {port} --d={dir}", "/bin/false", "kevy-old=/bin/true", "kevy=/bin/false"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range peers {
		names = append(names, p.name)
	}
	if want := []string{"kevy", "redis-server", "other", "false", "kevy-old"}; !slices.Equal(names, want) {
		t.Fatalf("%v, want %v", names, want)
	}
	if !strings.HasSuffix(peers[0].path, "false") {
		t.Errorf("kevy is %s", peers[0].path)
	}
	for i, want := range []string{
		"--port 7 --dir /d --loglevel warning --appendfsync no",
		"--save  --appendonly no --appendfsync no",
		"--p 7 --d=/d",
		"--save  --appendonly no",
		"--loglevel warning --appendfsync no",
	} {
		if got := strings.Join(peers[i].command(logOff)(7, "/d"), " "); !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", peers[i].name, got, want)
		}
	}
	for _, bad := range []string{"x=", "x=/no/such/file"} {
		if _, err := findPeers("/k", []string{bad}); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestCompareKevyWithItself(t *testing.T) {
	path, err := proc.Kevy()
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{
		o:      Options{Rounds: 2, Time: 20 * time.Millisecond},
		peers:  []peer{{name: "kevy", path: path}, {name: "kevy-too", path: path}},
		driver: newDriver(),
	}
	small := setting{logEverySec, 32, 1000}
	cells := []cell{{small, bench.Set, bench.Uniform, 4, 2}, {small, bench.Mix, bench.Zipfian, 4, 2}}
	if err := r.group(context.Background(), cells); err != nil {
		t.Fatal(err)
	}
	if len(r.result.Rows) != 4 {
		t.Fatalf("%d rows", len(r.result.Rows))
	}
	for i, row := range r.result.Rows {
		if row.Rate == 0 || row.P99 == 0 || (row.RateRatio != 0) != (i%2 == 1) {
			t.Errorf("%+v", row)
		}
	}
	var b strings.Builder
	if err := bench.Print(&b, r.result); err != nil || !strings.Contains(b.String(), "kevy-too") {
		t.Errorf("%v\n%s", err, b.String())
	}
	t.Log("\n" + b.String())
}

func TestEveryDriver(t *testing.T) {
	if _, err := exec.LookPath("redis-benchmark"); err != nil {
		t.Skip("no redis-benchmark")
	}
	path, err := proc.Kevy()
	if err != nil {
		t.Fatal(err)
	}
	f, err := startFleet([]peer{{name: "kevy", path: path}}, logEverySec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, op := range bench.Ops() {
		if err := bench.Prepare(context.Background(), f.targets[0], op); err != nil {
			t.Fatal(err)
		}
		c := cell{setting{logEverySec, 32, 100}, op, bench.Uniform, 4, 2}
		s, err := newDriver().run(context.Background(), f.targets[0], c, 400)
		if err != nil || s.rate == 0 {
			t.Errorf("%s: %+v, %v", c, s, err)
		}
	}
}
