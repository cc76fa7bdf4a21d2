package server

import (
	"strings"
	"testing"
)

func TestPingEchoSelect(t *testing.T) {
	c := start(t, testOptions{}).client()
	for _, x := range [][2]string{
		{"PING", "+PONG"},
		{"PING hello", "hello"},
		{"PING a b", "-ERR wrong number of arguments for 'ping' command"},
		{"ECHO hi", "hi"},
		{"SELECT 0", "+OK"},
		{"SELECT 1", "-ERR DB index is out of range"},
		{"SELECT x", "-ERR value is not an integer or out of range"},
		{"NOPE a", "-ERR unknown command 'NOPE', with args beginning with: 'a' "},
		{"GET", "-ERR wrong number of arguments for 'get' command"},
		{"CLIENT NOPE", "-ERR unknown subcommand 'NOPE'. Try CLIENT HELP."},
		{"CLIENT", "-ERR wrong number of arguments for 'client' command"},
		{"FUNCTION FLUSH", "+OK"},
		{"ROLE", "*[master :*"},
		{"TIME", "*[1*"},
		{"WAIT 0 100", ":0"},
		{"WAIT 1 10", ":0"},
		{"WAITAOF 0 0 0", "*[*"},
		{"SWAPDB 0 0", "+OK"},
		{"SWAPDB 2147483648 0", "-ERR invalid first DB index"},
		{"SWAPDB 0 -2147483649", "-ERR invalid second DB index"},
		{"SWAPDB 0 1", "-ERR DB index is out of range"},
		{"MODULE LIST", "*[]"},
		{"MODULE LOAD /x.so", "-ERR MODULE command not allowed.*"},
		{"MODULE HELP", "*[+MODULE <subcommand>*"},
		{"MODULE NOPE", "-ERR unknown subcommand 'NOPE'. Try MODULE HELP."},
	} {
		c.want(x[0], x[1])
	}
	c.want("SET k v", "+OK")
	c.want("WAITAOF 1 0 0", "*[:1 :0]")
	if got := c.do("LOLWUT VERSION 5"); !strings.Contains(got, "Redis ver. 7.2.4") {
		t.Errorf("LOLWUT: %q", got)
	}
	c.want("QUIT", "+OK")
	c.gone()
}

func TestHandshake(t *testing.T) {
	open := start(t, testOptions{})
	locked := start(t, testOptions{set: map[string]string{"requirepass": "sesame"}})
	const noAuth = "-NOAUTH Authentication required."
	for name, tc := range map[string]struct {
		s     *testServer
		steps [][2]string
	}{
		"hello":        {open, [][2]string{{"HELLO", "*[server redis version 7.2.4 proto :2 id :*"}}},
		"hello 2":      {open, [][2]string{{"HELLO 2", "*[server redis version 7.2.4 proto :2 id :*"}, {"GET nokey", "nil"}}},
		"hello 3":      {open, [][2]string{{"HELLO 3", "%[server redis version 7.2.4 proto :3 id :*"}, {"CONFIG GET port", "%[port 6379]"}, {"HELLO 2", "*[server*"}, {"CONFIG GET port", "*[port 6379]"}}},
		"hello 4":      {open, [][2]string{{"HELLO 4", "-NOPROTO unsupported protocol version"}}},
		"hello x":      {open, [][2]string{{"HELLO x", "-ERR Protocol version is not an integer or out of range"}}},
		"hello opt":    {open, [][2]string{{"HELLO 3 FOO", "-ERR Syntax error in HELLO option 'FOO'"}, {"CONFIG GET port", "*[port 6379]"}}},
		"setname":      {open, [][2]string{{"HELLO 3 SETNAME bob", "%[*"}, {"CLIENT GETNAME", "bob"}}},
		"auth open":    {open, [][2]string{{"AUTH x", "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"}, {"AUTH default x", "+OK"}, {"AUTH bob x", "-WRONGPASS invalid username-password pair or user is disabled."}, {"AUTH a b c", "-ERR syntax error"}}},
		"locked":       {locked, [][2]string{{"GET a", noAuth}, {"PING", noAuth}, {"NOPE", "-ERR unknown command 'NOPE', with args beginning with: "}, {"GET", "-ERR wrong number of arguments for 'get' command"}, {"HELLO 3", "-NOAUTH HELLO must be called with the client already authenticated*"}, {"AUTH wrong", "-WRONGPASS*"}, {"AUTH sesame", "+OK"}, {"PING", "+PONG"}}},
		"hello auth":   {locked, [][2]string{{"HELLO 3 AUTH default wrong", "-WRONGPASS*"}, {"HELLO 3 AUTH default sesame SETNAME bob", "%[*"}, {"CLIENT GETNAME", "bob"}}},
		"bad name":     {locked, [][2]string{{"HELLO 3 AUTH default sesame SETNAME b\x01", "-ERR Client names cannot contain spaces, newlines or special characters."}, {"PING", "-NOAUTH*"}}},
		"reset":        {locked, [][2]string{{"AUTH default sesame", "+OK"}, {"HELLO 3 SETNAME bob", "%[*"}, {"MULTI", "+OK"}, {"RESET", "+RESET"}, {"PING", noAuth}, {"AUTH sesame", "+OK"}, {"CLIENT GETNAME", "nil"}, {"EXEC", "-ERR EXEC without MULTI"}}},
		"multi locked": {locked, [][2]string{{"MULTI", noAuth}, {"AUTH sesame", "+OK"}, {"EXEC", "-ERR EXEC without MULTI"}}},
		"exec locked":  {locked, [][2]string{{"EXEC", "-EXECABORT Transaction discarded because of: NOAUTH Authentication required."}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := tc.s.client()
			c.t = t
			for _, step := range tc.steps {
				c.want(step[0], step[1])
			}
		})
	}
}

// TestDefaultRESP: client-default-resp is what connections speak from then on, and after RESET.
func TestDefaultRESP(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"client-default-resp": "3"}})
	c := s.client()
	c.want("CONFIG GET port", "%[port 6379]")
	if got := c.do("CLIENT LIST"); !strings.Contains(got, " resp=3 ") {
		t.Errorf("CLIENT LIST: %s", got)
	}
	c.want("HELLO 2", "*[server*")
	c.want("CONFIG GET port", "*[port 6379]")
	c.want("RESET", "+RESET")
	c.want("CONFIG GET port", "%[port 6379]")
	c.want("CONFIG SET client-default-resp 4", "-ERR CONFIG SET failed (possibly related to argument 'client-default-resp') - argument must be between 2 and 3 inclusive")
	c.want("CONFIG SET client-default-resp 2", "+OK")
	c.want("CONFIG GET client-default-resp", "%[client-default-resp 2]")
	s.client().want("CONFIG GET port", "*[port 6379]")
	c.want("RESET", "+RESET")
	c.want("CONFIG GET port", "*[port 6379]")
	start(t, testOptions{}).client().want("CONFIG GET client-default-resp", "*[client-default-resp 2]")
}

func TestUnauthenticatedLimits(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"requirepass": "sesame"}})
	for sent, want := range map[string]string{
		"*100\r\n":                   "-ERR Protocol error: unauthenticated multibulk length\r\n",
		"*1\r\n$20000\r\n":           "-ERR Protocol error: unauthenticated bulk length\r\n",
		"*2\r\n$4\r\nAUTH\r\n-x\r\n": "-ERR Protocol error: expected '$', got '-'\r\n",
	} {
		if got, closed := s.raw(sent); got != want || !closed {
			t.Errorf("%q: %q, closed %v", sent, got, closed)
		}
	}
}

func TestProtocolErrors(t *testing.T) {
	s := start(t, testOptions{})
	for sent, want := range map[string]string{
		"PING\r\n*3000000000\r\n":                           "+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n",
		"*1\r\n$-5\r\n":                                     "-ERR Protocol error: invalid bulk length\r\n",
		"*1\r\n$600000000\r\n":                              "-ERR Protocol error: invalid bulk length\r\n",
		"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n":            "-ERR Protocol error: expected '$', got 'f'\r\n",
		"SET x \"unbalanced\r\n":                            "-ERR Protocol error: unbalanced quotes in request\r\n",
		"*2\r\n$3\r\nGET\r\n$1\r\nx\r\n*1\r\n$x\r\n":        "$-1\r\n-ERR Protocol error: invalid bulk length\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n":        "",
		"*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n":          "+OK\r\n",
		"\r\n\r\n*0\r\n*-1\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n": "+PONG\r\n+OK\r\n",
	} {
		if got, closed := s.raw(sent); got != want || !closed {
			t.Errorf("%q: %q, closed %v", sent, got, closed)
		}
	}
	s.client().want("PING", "+PONG")
}

func TestPortableBackend(t *testing.T) {
	s := start(t, testOptions{portable: true})
	c := s.client()
	c.want("SET a 1", "+OK")
	c.want("KEYS *", "*[a]")
	c.want("MULTI", "+OK")
	c.want("INCR a", "+QUEUED")
	c.want("EXEC", "*[:2]")
	c.want("DEBUG SLEEP 0.01", "+OK")
}
