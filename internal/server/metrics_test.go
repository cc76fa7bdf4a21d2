package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kevydb/kevy/internal/archive"
)

// TestMetrics scrapes a server as Prometheus does.
func TestMetrics(t *testing.T) {
	s := start(t, testOptions{})
	s.opt.Archive = func() archive.Status { return archive.Status{LagMS: 1500, LagBytes: 7, Failures: 3} }
	c := s.client()
	port := freePort(t)
	c.want("CONFIG SET metrics-port "+port, "+OK")
	for _, line := range []string{"MSET a 1 b 2 c 3", "EXPIRE a 100", "GET a", "GET nokey", "INCR nokey x", "LPOP a"} {
		c.do(line)
	}
	res, err := http.Get("http://127.0.0.1:" + port + "/metrics")
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
	c.want("CONFIG SET metrics-port 0", "+OK")
	if _, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
		t.Error("the metrics port is still open")
	}
	problems, err := testutil.CollectAndLint(&s.metrics)
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}
