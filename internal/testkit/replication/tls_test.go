package replication

import (
	"strconv"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/proc"
)

// TestTLS: a kevy and a stock Redis are followed over TLS, with a certificate each way; a source with another one is not.
func TestTLS(t *testing.T) {
	cert, key := proc.Certificate(t)
	other, _ := proc.Certificate(t)
	port := func() string {
		n, err := proc.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		return strconv.Itoa(n)
	}
	serve := func(at string) []string {
		return []string{"--tls-port", at, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert}
	}
	kevyAt, redisAt := port(), port()
	a := newNode(t, "a", serve(kevyAt)...)
	a.ok("SET", "from", "kevy")
	redis := proc.RedisForTest(t, serve(redisAt)...)
	c, err := redis.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Must("SET", "from", "redis"); err != nil {
		t.Fatal(err)
	}
	b := newNode(t, "b", "--tls-replication", "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	for _, s := range []struct{ at, source, name string }{{kevyAt, "kevy", "kevy"}, {redisAt, "stock", "redis"}} {
		b.ok("REPLICAOF", "127.0.0.1", s.at)
		b.up(t)
		eventually(t, "the data of "+s.name, func() string {
			if got := b.ok("GET", "from").Text(); got != s.name {
				return got
			}
			return ""
		})
		b.want(t, "repl_source", s.source)
	}
	for _, bad := range []struct{ key, value, why string }{
		{"tls-ca-cert-file", other, "unknown authority"},
		{"tls-ca-cert-file", "", "tls-replication needs tls-ca-cert-file"},
		{"tls-replication", "no", "EOF"}, // what a TLS port makes of a client without
	} {
		b.ok("CONFIG", "SET", bad.key, bad.value)
		b.ok("REPLICAOF", "127.0.0.1", "1")
		b.ok("REPLICAOF", "127.0.0.1", kevyAt)
		eventually(t, "the refusal: "+bad.why, func() string {
			if got := b.info("replication", "repl_error"); !strings.Contains(got, bad.why) {
				return got
			}
			return ""
		})
	}
	if got := b.ok("GET", "from").Text(); got != "redis" {
		t.Errorf("after links that did not come about: %s", got)
	}
}
