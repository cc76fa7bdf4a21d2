package server

import (
	"strconv"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/replica"
)

// TestReplconf: what a replica says of itself is checked as in Redis, and what would not be one field of INFO is refused.
func TestReplconf(t *testing.T) {
	c := start(t, testOptions{}).client()
	long := strings.Repeat("a", 256)
	for line, want := range map[string]string{
		"REPLCONF": "+OK",
		"REPLCONF listening-port 7000 ip-address 1.2.3.4": "+OK",
		"REPLCONF listening-port 70000":                   "+OK",
		"REPLCONF listening-port -5":                      "+OK",
		"REPLCONF listening-port x":                       "-ERR value is not an integer or out of range",
		"REPLCONF listening-port 99999999999999999999":    "-ERR value is not an integer or out of range",
		"REPLCONF ip-address x listening-port x":          "-ERR value is not an integer or out of range",
		"REPLCONF listening-port":                         "-ERR syntax error",
		"REPLCONF ip-address " + long:                     "-ERR REPLCONF ip-address provided by replica instance is too long: 256 bytes",
		"REPLCONF ip-address " + long[1:]:                 "+OK",
		"REPLCONF ip-address 1.2.3.4,state=online":        "-ERR REPLCONF ip-address provided by replica instance is no address",
		"REPLCONF capa nonsense":                          "+OK",
		"REPLCONF foo bar":                                "-ERR Unrecognized REPLCONF option: foo",
		"PSYNC ? -1":                                      "-ERR this server sends its copy without a length*",
		"PSYNC ? x":                                       "-ERR value is not an integer or out of range",
		"PSYNC x 1 FAILOVER":                              "-ERR PSYNC FAILOVER can't be sent to a master.",
		"PSYNC x":                                         "-ERR wrong number of arguments for 'psync' command",
	} {
		c.want(line, want)
	}
	if r, err := c.Do("REPLCONF", "ip-address", "1.2.3.4\r\nrole:slave"); err != nil || !r.IsError() {
		t.Errorf("an address of two lines: %s, %v", show(&r), err)
	}
	if got := c.field("replication", "connected_slaves"); got != "0" {
		t.Errorf("%s replicas", got)
	}
}

// TestFailoverToKevy: a stock Redis that hands over to a kevy is refused.
func TestFailoverToKevy(t *testing.T) {
	a, b := start(t, testOptions{}), start(t, testOptions{})
	c := b.client()
	c.want("REPLICAOF 127.0.0.1 "+a.port(), "+OK")
	b.follows(a)
	c.want("REPLCONF capa EOF capa PSYNC2", "+OK")
	c.want("PSYNC "+c.field("replication", "master_replid")+" 1 FAILOVER", "-ERR PSYNC FAILOVER is not for a kevy*")
	if role := c.field("replication", "role"); role != "slave" {
		t.Errorf("the role is %s", role)
	}
}

// TestBacklogFields: INFO tells from which frame on a replica can go on.
func TestBacklogFields(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	check := func(first, kept, end int) {
		t.Helper()
		for name, want := range map[string]int{
			"repl_backlog_active": 1, "repl_backlog_first_byte_offset": first, "repl_backlog_histlen": kept, "master_repl_offset": end,
		} {
			if got := c.field("replication", name); got != strconv.Itoa(want) {
				t.Errorf("%s is %s, want %d", name, got, want)
			}
		}
	}
	check(1, 0, 0)
	c.want("SET x 1", "+OK")
	c.want("SET y 1", "+OK")
	check(1, 2, 2)
}

// TestEmbeddedReplicas: a replica without a port is in no list in which others look for servers.
func TestEmbeddedReplicas(t *testing.T) {
	s := start(t, testOptions{})
	c, k := s.client(), s.client()
	if got := c.field("replication", "embedded_replicas"); got != "" {
		t.Errorf("embedded_replicas is %s without any", got)
	}
	if r, err := k.Do("REPL.HELLO", strconv.Itoa(replica.Format), "2", strings.Repeat("a", 40), "0", ""); err != nil || r.IsError() {
		t.Fatalf("%s, %v", show(&r), err)
	}
	for name, want := range map[string]string{
		"connected_slaves": "0", "slave0": "", "embedded_replicas": "1", "embedded0": "ip=127.0.0.1,port=0,state=wait_bgsave,offset=0,lag=0",
	} {
		if got := c.field("replication", name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	c.want("ROLE", "*[master :0 *[]]")
}
