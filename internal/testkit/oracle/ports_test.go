package oracle

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// mover is a server whose ports are changed while it runs, by a client that stays. The streams of CONFIG leave these parameters
// out: each server needs ports of its own, and what matters is who gets in afterwards.
type mover struct {
	*wire.Conn
	ports map[string]string // A and B are two free ports, C is the first one, T one that is taken
	names *strings.Replacer // ports by their names
	at    []string          // the addresses to look at
	tls   *tls.Config
}

func newMover(t *testing.T, s *proc.Server, taken int, cert tls.Certificate) *mover {
	t.Helper()
	c, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	m := &mover{Conn: c, tls: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{cert}}} //nolint:gosec // a test's server
	m.ports = map[string]string{"C": strconv.Itoa(s.Port), "T": strconv.Itoa(taken)}
	for _, name := range []string{"A", "B"} {
		n, err := proc.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		m.ports[name] = strconv.Itoa(n)
	}
	var names []string
	for name, number := range m.ports {
		names = append(names, number, name)
	}
	m.names = strings.NewReplacer(names...)
	for _, name := range []string{"A", "B", "C"} {
		for _, host := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
			m.at = append(m.at, net.JoinHostPort(host, m.ports[name]))
		}
	}
	return m
}

// step runs CONFIG SET with words and tells what came of it: the reply, what CONFIG GET and INFO show, and who gets in where.
func (m *mover) step(t *testing.T, words []string) string {
	t.Helper()
	args := []string{"CONFIG", "SET"}
	for _, w := range words {
		if number, ok := m.ports[w]; ok {
			w = number
		}
		args = append(args, w)
	}
	var out strings.Builder
	for _, cmd := range [][]string{args, {"CONFIG", "GET", "bind"}, {"CONFIG", "GET", "port"}, {"CONFIG", "GET", "tls-port"}} {
		r, err := m.Do(cmd...)
		if err != nil {
			t.Fatalf("%q: %v", cmd, err)
		}
		out.WriteString(r.String())
	}
	info, err := m.Must("INFO", "server")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info.Text()) {
		if strings.HasPrefix(line, "tcp_port:") {
			out.WriteString("\n" + line)
		}
	}
	for _, addr := range m.at {
		fmt.Fprintf(&out, "%s %s\n", addr, m.speaks(addr))
	}
	return m.names.Replace(out.String())
}

// take listens on a port, of every address that the test binds, and returns it.
func take(t *testing.T) int {
	t.Helper()
	port := 0
	for _, host := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() }) //nolint:errcheck // a listener
		port = l.Addr().(*net.TCPAddr).Port
	}
	return port
}

// speaks tells what is spoken at an address.
func (m *mover) speaks(addr string) string {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return "refused"
	}
	defer nc.Close() //nolint:errcheck // a test's client
	if pings(nc) {
		return "plain"
	}
	if nc, err = net.Dial("tcp", addr); err != nil {
		return "refused late"
	}
	defer nc.Close() //nolint:errcheck // a test's client
	if pings(tls.Client(nc, m.tls)) {
		return "TLS"
	}
	return "nothing"
}

func pings(nc net.Conn) bool {
	_ = nc.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = nc.Write([]byte("PING\r\n"))
	buf := make([]byte, 7)
	n, _ := nc.Read(buf)
	return string(buf[:n]) == "+PONG\r\n"
}

// TestPortsSameAsRedis changes where two servers listen, in all ways that come to mind and then at random, and compares the replies and
// who gets in where.
func TestPortsSameAsRedis(t *testing.T) {
	port := take(t)
	certFile, keyFile := proc.Certificate(t)
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	redis, kevy := newMover(t, proc.RedisForTest(t), port, cert), newMover(t, proc.ForTest(t), port, cert)
	var done []string
	compare := func(words ...string) {
		t.Helper()
		done = append(done, fmt.Sprintf("%q", words))
		if want, got := redis.step(t, words), kevy.step(t, words); got != want {
			t.Fatalf("%s\n got %s\nwant %s", strings.Join(done[max(0, len(done)-8):], "\n"), got, want)
		}
	}
	compare("tls-port", "B") // without a certificate
	compare("tls-cert-file", certFile, "tls-key-file", keyFile, "tls-ca-cert-file", certFile, "tls-port", "B")
	for _, line := range []string{
		"port A", "port T", "port 65536", "port -1", "port x", "port A port B", "port B", "tls-port A", "tls-port 0", "port B",
		"tls-port A", "tls-port T", "port 0", "tls-port 0", "tls-port A port B", "port A tls-port B", "tls-port B port A", "port B tls-port B",
	} {
		compare(strings.Fields(line)...)
	}
	addrs := []string{
		"127.0.0.1", "127.0.0.2", "127.0.0.1 127.0.0.2", "::1", "127.0.0.1 ::1", "*", "::*", "* -::*", "127.0.0.1 *", "* 127.0.0.1",
		"192.0.2.1", "127.0.0.1 192.0.2.1", "127.0.0.1 -192.0.2.1", "-192.0.2.1", "-127.0.0.1", "127.0.0.1 127.0.0.1", "", "localhost",
		strings.TrimSpace(strings.Repeat("-192.0.2.1 ", 16)), strings.TrimSpace(strings.Repeat("-192.0.2.1 ", 17)),
	}
	for _, a := range addrs {
		compare("bind", a)
	}
	values := map[string][]string{"port": {"0", "A", "C", "A", "C", "T"}, "tls-port": {"0", "B", "B", "T"}, "bind": addrs} // with bind 7.0 closes both before it opens one
	rng := rand.New(rand.NewPCG(seed(t), 0))
	for end := time.Now().Add(*timeFlag / hearPart); time.Now().Before(end); {
		var words []string
		for _, name := range []string{"port", "bind", "tls-port"} {
			if rng.IntN(2) == 0 {
				words = append(words, name, values[name][rng.IntN(len(values[name]))])
			}
		}
		if len(words) == 6 && rng.IntN(2) == 0 {
			words = append(words[2:], words[:2]...)
		}
		if len(words) > 0 {
			compare(words...)
		}
	}
	t.Logf("%d changes", len(done))
}
