package server

import (
	"net"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

// TestMigrate moves keys between two servers.
func TestMigrate(t *testing.T) {
	target := start(t, testOptions{set: map[string]string{"requirepass": "sesame"}})
	host, port, err := net.SplitHostPort(target.addr)
	if err != nil {
		t.Fatal(err)
	}
	c, to := start(t, testOptions{}).client(), target.client()
	to.want("AUTH sesame", "+OK")
	at := "MIGRATE " + host + " " + port + " "
	const keys = "0 5000 AUTH sesame KEYS a b c nokey"
	migrate := func(first, rest string) string {
		args := []string{"MIGRATE", host, port, first, "0", "5000", "AUTH", "sesame"}
		args = append(args, strings.Fields(rest)...)
		r, err := c.Do(args...)
		if err != nil {
			t.Fatal(err)
		}
		return show(&r)
	}
	c.want("SET a 1", "+OK")
	c.want("SET a2 1 PXAT 99999999999999", "+OK")
	c.want("RPUSH b x y", ":2")
	c.want("HSET c f v", ":1")
	for _, x := range [][2]string{
		{at + "a 0 5000", "-ERR Target instance replied with error: NOAUTH*"},
		{at + "a 0 5000 AUTH wrong", "-ERR Target instance replied with error: WRONGPASS*"},
		{at + "a 1 5000 AUTH sesame", "-ERR Target instance replied with error: ERR DB index is out of range"},
		{at + "nokey 0 5000 AUTH sesame", "+NOKEY"},
		{at + "a x 5000", "-ERR value is not an integer or out of range"},
		{at + "a 0 5000 WHAT", "-ERR syntax error"},
		{at + "a " + keys, "-ERR When using MIGRATE KEYS option, the key argument must be set to the empty string"},
		{"MIGRATE 127.0.0.1 1 a 0 5000", "-IOERR error or timeout connecting to the client"},
		{"MGET a a2", "*[1 1]"},
		{at + "a 0 5000 COPY AUTH sesame", "+OK"},
		{"GET a", "1"},
		{at + "a 0 5000 AUTH sesame", "-ERR Target instance replied with error: BUSYKEY Target key name already exists."},
		{"GET a", "1"},
		{"SET a 2", "+OK"},
		{at + "a 0 5000 AUTH2 default sesame REPLACE", "+OK"},
		{at + "a2 0 5000 AUTH sesame", "+OK"},
		{"EXISTS a a2", ":0"},
		{"MULTI", "+OK"},
		{at + "b 0 5000", "+QUEUED"},
		{"EXEC", "*[-ERR MIGRATE is not allowed in a transaction: it waits for another server]"},
	} {
		c.want(x[0], x[1])
	}
	to.want("GET a", "2")
	to.want("PEXPIRETIME a2", ":99999999999999")
	if got := migrate("", "KEYS nokey b c"); got != "+OK" {
		t.Errorf("KEYS: %s", got)
	}
	c.want("DBSIZE", ":0")
	to.want("LRANGE b 0 -1", "*[x y]")
	to.want("HGETALL c", "*[f v]")
	c.want("COMMAND GETKEYS MIGRATE h 1 k 0 0", "*[k]")
}

// TestMigrateChangingKey: a key that changes while it is sent is sent again, one that goes goes at the target too.
func TestMigrateChangingKey(t *testing.T) {
	s, target := start(t, testOptions{}), start(t, testOptions{})
	c, to := s.client(), target.client()
	host, port, _ := net.SplitHostPort(target.addr)
	request := func(keys ...string) (m migration) {
		args := [][]byte{[]byte("MIGRATE"), []byte(host), []byte(port), {}, []byte("0"), []byte("5000"), []byte("KEYS")}
		for _, k := range keys {
			args = append(args, []byte(k))
		}
		m, bad := parseMigrate(args)
		if bad != "" {
			t.Fatal(bad)
		}
		m.srv = s.Server
		return m
	}
	c.want("MSET k 1 gone 1", "+OK")
	m := request("k", "gone")
	defer m.close()
	watch := s.eng.NewWatch()
	defer watch.Clear()
	for _, key := range m.keys {
		watch.Add(key)
		if there, err := m.send(key); !there || err != nil {
			t.Fatal(there, err)
		}
	}
	c.want("SET k 2", "+OK")
	c.want("DEL gone", ":1")
	var ticket engine.Ticket
	if done, err := m.remove(m.keys, watch, &ticket); done || err != nil {
		t.Error("deleted although it has changed", err)
	}
	c.want("GET k", "2")
	if done, err := m.try(&ticket); !done || err != nil {
		t.Error(done, err)
	}
	c.want("DBSIZE", ":0")
	to.want("GET k", "2")
	to.want("DBSIZE", ":1")
	c.want("SET stays 1", "+OK")
	m = request("stays")
	defer m.close()
	if err := s.eng.Follow(); err != nil { // it becomes a replica meanwhile
		t.Fatal(err)
	}
	var w resp.Writer
	if m.run(&w, &ticket); !strings.HasPrefix(string(w.Buf), "-READONLY ") {
		t.Errorf("moved although the key is still here: %q", w.Buf)
	}
	c.want("GET stays", "1")
}
