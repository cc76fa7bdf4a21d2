package server

import (
	"strconv"
	"strings"
	"testing"
	"time"

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
		"PSYNC ? x":                                       "-ERR value is not an integer or out of range",
		"PSYNC x 1 FAILOVER":                              "-ERR PSYNC FAILOVER can't be sent to a master.",
		"REPLCONF rdb-only 2":                             "-ERR value is out of range, value must between 0 and 1",
		"REPLCONF rdb-only x":                             "-ERR value is not an integer or out of range",
		"REPLCONF rdb-filter-only functions":              "+OK",
		"REPLCONF rdb-filter-only keys":                   "-ERR Unsupported rdb-filter-only option: keys",
		"SYNC x":                                          "-ERR wrong number of arguments for 'sync' command",
		"PSYNC x":                                         "-ERR wrong number of arguments for 'psync' command",
	} {
		c.want(line, want)
	}
	for _, line := range []string{"SYNC", "PSYNC ? -1"} { // its copy is to be filtered, from above
		c.want(line, "-ERR Filtered replica requires EOF capability")
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

// stockPeer is a connection of a stock replica.
type stockPeer struct {
	*client
	got string
}

// psync asks for a stream as the replica at port 7000.
func (s *testServer) psync(id string, offset int) *stockPeer {
	s.t.Helper()
	p := &stockPeer{client: s.client()}
	p.want("REPLCONF listening-port 7000 capa eof capa psync2", "+OK")
	p.send("PSYNC " + id + " " + strconv.Itoa(offset))
	return p
}

// until waits until what has come has this in it.
func (p *stockPeer) until(text string) {
	p.t.Helper()
	eventually(p.t, "the stream has "+text, func() bool {
		data, _, err := p.ReadAll(time.Millisecond)
		if p.got += string(data); err != nil {
			p.t.Fatal(err)
		}
		return strings.Contains(p.got, text)
	})
}

// TestStockLink: a stock replica is copied once, and then goes on where it was, also when the end of its old connection has not been seen; it is there when the
// server stops.
func TestStockLink(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	c.want("SET before 1", "+OK")
	p := s.psync("?", -1)
	p.until("+FULLRESYNC ")
	id := strings.Fields(p.got)[1]
	mark := id + "*2\r\n" // at the end of the copy; the SELECT follows
	p.send("REPLCONF ACK 0")
	p.until(mark)
	c.want("SET x 1", "+OK")
	p.until("x\r\n$1\r\n1\r\n")
	_, stream, _ := strings.Cut(p.got, mark)
	at := len("*2\r\n") + len(stream)
	p.Close()
	c.want("SET y 2", "+OK")
	for n, write := range []string{"SET z 3", "SET x 4"} {
		old := p
		p = s.psync(id, at+1)
		p.until("+CONTINUE " + id + "\r\n*3\r\n$3\r\nSET\r\n$1\r\ny\r\n")
		if c.want(write, "+OK"); n > 0 {
			old.gone()
		}
		p.until(strings.Fields(write)[1] + "\r\n$1\r\n" + strings.Fields(write)[2] + "\r\n")
	}
	c.want("WAIT 1 1", ":0") // it has acknowledged what it had, not this
	for name, want := range map[string]string{"sync_full": "1", "sync_partial_ok": "2", "sync_partial_err": "0"} {
		if got := c.field("stats", name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := c.field("replication", "slave0"); !strings.HasPrefix(got, "ip=127.0.0.1,port=7000,state=online,") {
		t.Errorf("slave0 is %s", got)
	}
	s.shutdown()
	p.until("") // what came before
	p.gone()
}

// TestSyncOnce: SYNC for the copy only ends the connection behind it, and one for the writes has no keys in its copy; neither is remembered or counts for
// WAIT. Who has not said that he takes a copy without a length gets one with it, and the writes at once.
func TestSyncOnce(t *testing.T) {
	s := start(t, testOptions{})
	c, once, tail := s.client(), &stockPeer{client: s.client()}, &stockPeer{client: s.client()}
	c.want("SET before 1", "+OK")
	once.want("REPLCONF capa eof rdb-only 1", "+OK")
	once.send("SYNC")
	data, closed, err := once.ReadAll(10 * time.Second)
	mark, file, ok := strings.Cut(strings.TrimPrefix(string(data), "$EOF:"), "\r\n")
	if !ok || !closed || err != nil || !strings.HasPrefix(file, "REDIS0") || !strings.HasSuffix(file, mark) || !strings.Contains(file, "before") {
		t.Errorf("%q, closed %v, %v", data, closed, err)
	}
	if r, err := tail.Do("REPLCONF", "capa", "eof", "rdb-filter-only", ""); err != nil || r.IsError() {
		t.Fatal(show(&r), err)
	}
	tail.send("SYNC")
	tail.until("\xff")
	tail.send("REPLCONF ACK 0")
	tail.until("SELECT")
	c.want("SET after 2", "+OK")
	tail.until("after\r\n$1\r\n2\r\n")
	if strings.Contains(tail.got, "before") {
		t.Errorf("%q", tail.got)
	}
	c.want("WAIT 1 1", ":0")
	if got := c.field("replication", "slave0"); !strings.HasPrefix(got, "ip=127.0.0.1,port=0,state=online,offset=0,lag=") {
		t.Errorf("slave0 is %s", got)
	}
	old := &stockPeer{client: s.client()}
	old.send("SYNC")
	old.until("SELECT")
	length, file, _ := strings.Cut(strings.TrimPrefix(old.got, "$"), "\r\n")
	n, err := strconv.Atoi(length)
	if err != nil || len(file) < n || !strings.HasPrefix(file[n:], "*2\r\n$6\r\nSELECT") {
		t.Errorf("%q", old.got)
	}
	old.Close()
	id, _, _ := strings.Cut(strings.TrimPrefix(tail.got, "$EOF:"), "\r\n")
	for _, gone := range []string{mark, id} {
		tail.Close()
		eventually(t, "nobody is there", func() bool { return c.field("replication", "connected_slaves") == "0" })
		p := s.psync(gone, 1)
		p.until("+FULLRESYNC ")
		p.Close()
	}
}
