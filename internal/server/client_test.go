package server

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// lineRE is a line of CLIENT LIST as Redis 7.2 writes it.
var lineRE = regexp.MustCompile(`^id=\d+ addr=127\.0\.0\.1:\d+ laddr=127\.0\.0\.1:\d+ fd=\d+ name=\S* age=\d+ idle=\d+ ` +
	`flags=\w+ db=0 sub=0 psub=0 ssub=0 multi=-?\d+ qbuf=\d+ qbuf-free=\d+ argv-mem=\d+ multi-mem=\d+ rbs=\d+ rbp=\d+ ` +
	`obl=\d+ oll=0 omem=0 tot-mem=\d+ events=r cmd=\S+ user=\S+ redir=-1 resp=[23] lib-name=\S* lib-ver=\S*$`)

func TestClientList(t *testing.T) {
	s := start(t, testOptions{})
	a, b := s.client(), s.client()
	a.want("CLIENT LIST", "id=1 addr=* laddr=*"[:5]+"*")
	a.want("CLIENT SETNAME ann", "+OK")
	a.want("CLIENT SETINFO lib-name go-redis(,go1.26)", "+OK")
	a.want("CLIENT SETINFO LIB-VER 9.1", "+OK")
	a.want("CLIENT NO-EVICT ON", "+OK")
	a.want("CLIENT NO-TOUCH ON", "+OK")
	b.want("HELLO 3", "%[*")
	b.want("MULTI", "+OK")
	b.want("SET k v", "+QUEUED")
	lines := strings.Split(strings.TrimSuffix(a.do("CLIENT LIST"), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	for _, line := range lines {
		if !lineRE.MatchString(line) {
			t.Errorf("line %q", line)
		}
	}
	for line, words := range map[string][]string{
		lines[0]: {" name=ann ", " flags=eT ", " cmd=client|list ", " resp=2 ", "lib-name=go-redis(,go1.26) lib-ver=9.1", " qbuf=26 ", " argv-mem=10 ", " multi=-1 "},
		lines[1]: {" name= ", " flags=x ", " cmd=set ", " resp=3 ", " multi=1 ", " multi-mem=5 "},
	} {
		for _, word := range words {
			if !strings.Contains(line, word) {
				t.Errorf("no %q in %q", word, line)
			}
		}
	}
	id := a.do("CLIENT ID")
	a.want("CLIENT LIST ID "+id[1:]+" 999", "id="+id[1:]+" *")
	a.want("CLIENT LIST TYPE normal", "id=*")
	a.want("CLIENT LIST TYPE pubsub", "")
	a.want("CLIENT LIST TYPE x", "-ERR Unknown client type 'x'")
	a.want("CLIENT LIST ID x", "-ERR Invalid client ID")
	a.want("CLIENT LIST x", "-ERR syntax error")
	a.want("CLIENT INFO", "id="+id[1:]+" *")
	a.want("CLIENT GETNAME", "ann")
	a.want("CLIENT SETINFO foo bar", "-ERR Unrecognized option 'foo'")
	if r, err := a.Do("CLIENT", "SETNAME", "a b"); err != nil || !r.IsError() {
		t.Errorf("SETNAME with a space: %v %v", show(&r), err)
	}
	if r, err := a.Do("CLIENT", "SETINFO", "lib-ver", "a b"); err != nil || show(&r) != "-ERR lib-ver cannot contain spaces, newlines or special characters." {
		t.Errorf("SETINFO with a space: %v %v", show(&r), err)
	}
	if r, err := a.Do("CLIENT", "SETNAME", ""); err != nil || show(&r) != "+OK" {
		t.Errorf("SETNAME empty: %v %v", show(&r), err)
	}
	a.want("CLIENT GETNAME", "nil")
	a.want("CLIENT HELP", "*[+CLIENT <subcommand>*")
}

// TestClientInfoNamesTheOuterCommand: what a transaction runs is not what the client has sent last.
func TestClientInfoNamesTheOuterCommand(t *testing.T) {
	s := start(t, testOptions{})
	c, other := s.client(), s.client()
	for _, line := range []string{"CLIENT SETNAME me", "MULTI", "CLIENT INFO"} {
		c.do(line)
	}
	if got := c.do("EXEC"); !strings.Contains(got, " cmd=exec ") {
		t.Error(got)
	}
	if got := other.do("CLIENT LIST ID " + c.do("CLIENT ID")[1:]); !strings.Contains(got, " cmd=client|id ") {
		t.Error(got)
	}
}

func TestClientListOfMany(t *testing.T) {
	s := start(t, testOptions{})
	var all []*client
	for range listOnLoop + 20 {
		all = append(all, s.client())
	}
	for _, c := range all {
		c.want("PING", "+PONG")
	}
	if n := strings.Count(all[3].do("CLIENT LIST"), "\n"); n != len(all) {
		t.Errorf("%d lines for %d clients", n, len(all))
	}
}

func TestClientKill(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	for line, want := range map[string]string{
		"CLIENT KILL":                   "-ERR wrong number of arguments for 'client|kill' command",
		"CLIENT KILL 1.2.3.4:5":         "-ERR No such client",
		"CLIENT KILL ID 10 x":           "-ERR syntax error",
		"CLIENT KILL ID x":              "-ERR client-id should be greater than 0",
		"CLIENT KILL ID 0":              "-ERR client-id should be greater than 0",
		"CLIENT KILL TYPE x":            "-ERR Unknown client type 'x'",
		"CLIENT KILL USER x":            "-ERR No such user 'x'",
		"CLIENT KILL SKIPME x":          "-ERR syntax error",
		"CLIENT KILL NOPE x":            "-ERR syntax error",
		"CLIENT KILL ID 12345":          ":0",
		"CLIENT KILL TYPE pubsub":       ":0",
		"CLIENT KILL ADDR 1.2.3.4:5 ID": "-ERR syntax error",
	} {
		c.want(line, want)
	}
	for _, filter := range [][]string{{""}, {"ADDR", ""}, {"LADDR", ""}, {"ADDR", "", "SKIPME", "no"}} { // nobody's
		want := ":0"
		if len(filter) == 1 {
			want = "-ERR No such client"
		}
		r, err := c.Do(append([]string{"CLIENT", "KILL"}, filter...)...)
		if err != nil || show(&r) != want {
			t.Errorf("CLIENT KILL %q: %s, %v", filter, show(&r), err)
		}
	}
	victim := func() (*client, string, string) {
		v := s.client()
		id := v.do("CLIENT ID")[1:]
		info := v.do("CLIENT INFO")
		addr := strings.TrimPrefix(strings.Fields(info)[1], "addr=")
		return v, id, addr
	}
	v, id, _ := victim()
	c.want("CLIENT KILL ID "+id, ":1")
	v.gone()
	v, _, addr := victim()
	c.want("CLIENT KILL "+addr, "+OK")
	v.gone()
	v, id, addr = victim()
	c.want("CLIENT KILL ADDR "+addr+" LADDR "+s.addr+" TYPE normal USER default ID "+id+" SKIPME no", ":1")
	v.gone()
	v, _, _ = victim()
	w, _, _ := victim()
	if n := c.field("clients", "connected_clients"); n != "3" {
		t.Errorf("connected_clients = %s", n)
	}
	c.want("CLIENT KILL SKIPME yes", ":2")
	if n := c.field("clients", "connected_clients"); n != "1" {
		t.Errorf("connected_clients = %s", n)
	}
	v.gone()
	w.gone()
	c.want("CLIENT KILL SKIPME no", ":1")
	c.gone()
}

func TestClientKillWhileBlocked(t *testing.T) {
	s := start(t, testOptions{})
	c, v := s.client(), s.client()
	id := v.do("CLIENT ID")[1:]
	v.send("WAIT 1 0")
	eventually(t, "the client is blocked", func() bool { return c.field("clients", "blocked_clients") == "1" })
	if list := c.do("CLIENT LIST ID " + id); !strings.Contains(list, " flags=b ") {
		t.Errorf("flags of a blocked client: %q", list)
	}
	c.want("CLIENT KILL ID "+id, ":1")
	v.gone()
	eventually(t, "nobody is blocked", func() bool { return c.field("clients", "blocked_clients") == "0" })
}

func TestClientUnblock(t *testing.T) {
	s := start(t, testOptions{})
	c, v := s.client(), s.client()
	id := v.do("CLIENT ID")[1:]
	c.want("CLIENT UNBLOCK "+id, ":0")
	c.want("CLIENT UNBLOCK x", "-ERR value is not an integer or out of range")
	c.want("CLIENT UNBLOCK 1 NOPE", "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	gen := s.eng.Dir().Log(0).Generation()
	read := fmt.Sprintf("FEED.READ 0 %d 0 BLOCK 0", gen)
	empty := fmt.Sprintf("*[:%d :0 *[]]", gen)
	for _, tc := range []struct{ waits, reason, want string }{
		{"WAIT 1 0", "", ":0"},
		{"WAIT 1 0", " TIMEOUT", ":0"},
		{"WAIT 1 0", " ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"},
		{read, "", empty},
		{read, " TIMEOUT", empty},
		{read, " ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"},
	} {
		v.send(tc.waits)
		eventually(t, "unblocked", func() bool { return c.do("CLIENT UNBLOCK "+id+tc.reason) == ":1" })
		if got := v.read(); got != tc.want {
			t.Errorf("%s%s: %s, want %s", tc.waits, tc.reason, got, tc.want)
		}
	}
}

func TestClientReply(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	send := func(lines ...string) {
		for _, l := range lines {
			c.Queue(wire.Bytes(strings.Fields(l)...))
		}
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	send("CLIENT REPLY OFF", "PING a", "SET k 1", "KEYS *", "NOPE", "CLIENT REPLY ON", "PING b")
	for _, want := range []string{"+OK", "b"} {
		if got := c.read(); got != want {
			t.Errorf("OFF then ON: %s, want %s", got, want)
		}
	}
	send("CLIENT REPLY SKIP", "PING c", "PING d", "CLIENT REPLY SKIP", "KEYS *", "PING e")
	for _, want := range []string{"d", "e"} {
		if got := c.read(); got != want {
			t.Errorf("SKIP: %s, want %s", got, want)
		}
	}
	send("CLIENT REPLY SKIP", "CLIENT REPLY ON", "PING f")
	for _, want := range []string{"+OK", "f"} {
		if got := c.read(); got != want {
			t.Errorf("SKIP then ON: %s, want %s", got, want)
		}
	}
	c.want("CLIENT REPLY x", "-ERR syntax error")
	c.want("GET k", "1")
}

func TestClientPause(t *testing.T) {
	s := start(t, testOptions{})
	c, w, r, q := s.client(), s.client(), s.client(), s.client()
	q.want("MULTI", "+OK")
	q.want("INCR n", "+QUEUED")
	c.want("CLIENT PAUSE x", "-ERR timeout is not an integer or out of range")
	c.want("CLIENT PAUSE -1", "-ERR timeout is negative")
	c.want("CLIENT PAUSE 10 x", "-ERR CLIENT PAUSE mode must be WRITE or ALL")
	c.want("CLIENT UNPAUSE", "+OK")

	c.want("CLIENT PAUSE 100000 WRITE", "+OK")
	r.want("GET k", "nil")
	w.send("SET k 1")
	q.send("EXEC")
	eventually(t, "blocked", func() bool { return c.field("clients", "blocked_clients") == "2" })
	w.silent()
	q.silent()
	c.want("GET k", "nil")
	c.want("CLIENT UNPAUSE", "+OK")
	if got := w.read(); got != "+OK" {
		t.Errorf("the paused write: %s", got)
	}
	if got := q.read(); got != "*[:1]" {
		t.Errorf("the paused transaction: %s", got)
	}

	c.want("CLIENT PAUSE 60 ALL", "+OK")
	began := time.Now()
	w.want("PING", "+PONG")
	if d := time.Since(began); d < 40*time.Millisecond {
		t.Errorf("PING after %v of a pause of 60 ms", d)
	}
	c.want("CLIENT PAUSE 100000 WRITE", "+OK")
	w.send("SET gone 1")
	eventually(t, "blocked", func() bool { return c.field("clients", "blocked_clients") == "1" })
	w.Close()
	eventually(t, "the paused client has gone", func() bool { return c.field("clients", "blocked_clients") == "0" })
	c.want("CLIENT UNPAUSE", "+OK")
	c.want("GET gone", "nil")
}

// TestPauseHoldsExpiry: while writes are paused the log does not grow by itself, neither for reads nor for the
// deadlines of keys and fields; what PFCOUNT and PUBLISH may tell replicas of waits too.
func TestPauseHoldsExpiry(t *testing.T) {
	s := start(t, testOptions{})
	c, p, q := s.client(), s.client(), s.client()
	c.want("PFADD hll a", ":1")
	for _, queued := range []string{"SET k 1 PX 10", "SET other 1 PX 10", "HSET h f 1", "HPEXPIRE h 10 FIELDS 1 f"} {
		if queued == "SET k 1 PX 10" {
			c.want("MULTI", "+OK")
		}
		c.want(queued, "+QUEUED")
	}
	c.want("CLIENT PAUSE 100000 WRITE", "+QUEUED")
	c.want("EXEC", "*[+OK +OK :1 *[:1] +OK]")
	tails := func() string { return c.do("FEED.TAIL 0") + c.do("FEED.TAIL 1") }
	before := tails()
	p.send("PFCOUNT hll")
	q.send("PUBLISH ch msg")
	for _, read := range []string{"GET k", "GET other", "HGET h f"} {
		eventually(t, read, func() bool { return c.do(read) == "nil" })
	}
	c.want("MULTI", "+OK")
	c.want("GET k", "+QUEUED")
	c.want("EXEC", "*[nil]")
	if got := c.field("stats", "expired_keys"); got != "0" {
		t.Errorf("%s keys expired during the pause", got)
	}
	if got := tails(); got != before {
		t.Errorf("the log grew during the pause: %s, was %s", got, before)
	}
	eventually(t, "blocked", func() bool { return c.field("clients", "blocked_clients") == "2" })
	c.want("CLIENT UNPAUSE", "+OK")
	if got := p.read() + q.read(); got != ":1:0" {
		t.Errorf("PFCOUNT, PUBLISH: %s", got)
	}
	eventually(t, "expired", func() bool { return c.field("stats", "expired_keys") == "2" && c.do("EXISTS h") == ":0" })
}

func TestPausedPipelineKeepsItsOrder(t *testing.T) {
	s := start(t, testOptions{})
	c, w := s.client(), s.client()
	c.want("CLIENT PAUSE 100000 WRITE", "+OK")
	for i := range 5 {
		w.Queue(wire.Bytes("SET", "k", fmt.Sprint(i)))
		w.Queue(wire.Bytes("GET", "k"))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	w.silent()
	c.want("CLIENT UNPAUSE", "+OK")
	for i := range 5 {
		if ok, got := w.read(), w.read(); ok != "+OK" || got != fmt.Sprint(i) {
			t.Errorf("%d: %s, %s", i, ok, got)
		}
	}
}
