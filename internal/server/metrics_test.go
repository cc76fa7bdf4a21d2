package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kevydb/kevy/internal/archive"
)

// TestMetrics scrapes a server as Prometheus does.
func TestMetrics(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	s := start(t, testOptions{set: map[string]string{"metrics-port": port}})
	s.opt.Archive = func() archive.Status { return archive.Status{LagMS: 1500, LagBytes: 7, Failures: 3} }
	if err := s.listenMetrics(); err != nil {
		t.Fatal(err)
	}
	if err := s.listenMetrics(); err == nil || !strings.Contains(err.Error(), "--metrics-port") {
		t.Errorf("the port is taken: %v", err)
	}
	c := s.client()
	for _, line := range []string{"MSET a 1 b 2 c 3", "EXPIRE a 100", "GET a", "GET nokey", "INCR nokey x", "LPOP a"} {
		c.do(line)
	}
	res, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err)
	}
	for _, want := range []string{
		`kevy_keyspace_hits_total 1`, `kevy_keyspace_misses_total 1`, `kevy_connected_clients 1`, `kevy_log_failed 0`,
		`kevy_command_calls_total{command="get"} 2`, `kevy_command_failed_calls_total{command="lpop"} 1`,
		`kevy_archive_lag_seconds 1\.5`, `kevy_archive_lag_bytes 7`, `kevy_archive_failures_total 3`,
		`kevy_log_offset{mark="tail",shard="0"} \d+`, `kevy_following 0`, `kevy_memory_used_bytes [1-9].*`,
	} {
		if !regexp.MustCompile("(?m)^" + want + "$").Match(body) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	keys := 0
	for _, m := range regexp.MustCompile(`(?m)^kevy_keys{shard="\d"} (\d+)$`).FindAllSubmatch(body, -1) {
		var n int
		fmt.Sscan(string(m[1]), &n)
		keys += n
	}
	if keys != 3 {
		t.Errorf("%d keys", keys)
	}
	problems, err := testutil.CollectAndLint(&exporter{srv: s.Server})
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}
