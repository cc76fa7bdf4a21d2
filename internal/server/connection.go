package server

import (
	"slices"
	"strconv"

	"github.com/kevydb/kevy/internal/acl"
	"github.com/kevydb/kevy/internal/command"
)

const (
	defaultUser = "default"
	// RedisVersion is the version of Redis whose commands and replies kevy follows.
	RedisVersion = "7.2.4"

	msgSyntax    = "ERR syntax error"
	msgWrongPass = "WRONGPASS invalid username-password pair or user is disabled."
	msgNoPass    = "ERR AUTH <password> called without any password configured for the default user. " +
		"Are you sure your configuration is correct?"
	msgHelloAuth = "NOAUTH HELLO must be called with the client already authenticated, otherwise the " +
		"HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the " +
		"RESP protocol version at the same time"
	msgNotInteger = "ERR value is not an integer or out of range"
)

func pingCommand(s *session, args [][]byte) {
	if s.gate&gateSubscriber != 0 && !s.w.RESP3() && len(args) <= 2 {
		s.w.Array(2)
		s.w.BulkString("pong")
		s.w.Bulk(slices.Concat(args[1:]...))
		return
	}
	switch len(args) {
	case 1:
		s.w.Simple("PONG")
	case 2:
		s.w.Bulk(args[1])
	default:
		s.w.Error(command.ArityError(s.cmd))
	}
}

func echoCommand(s *session, args [][]byte) { s.w.Bulk(args[1]) }

func quitCommand(s *session, _ [][]byte) {
	s.w.OK()
	s.closeAfterReply()
}

// isInt32 reports whether n fits what Redis keeps numbers of databases in.
func isInt32(n int64) bool { return n == int64(int32(n)) } //nolint:gosec // that it overflows is the question

func selectCommand(s *session, args [][]byte) {
	n, ok := parseInt(args[1])
	switch {
	case !ok:
		s.w.Error(msgNotInteger)
	case !isInt32(n):
		s.w.Error(command.MsgIntRange)
	case n != 0:
		s.w.Error("ERR DB index is out of range")
	default:
		s.w.OK()
	}
}

// defaultProto is the protocol of a connection that has not said HELLO.
func (srv *Server) defaultProto() int { return int(srv.config().DefaultRESP) }

// resetCommand puts the connection back into the state of a new one.
func resetCommand(s *session, _ [][]byte) {
	s.discard()
	s.subs.Clear()
	s.subscriptionsChanged()
	s.srv.monitors.set(s, false)
	s.srv.tracking.disable(s)
	s.gate &^= gateTracking
	s.srv.applyWanted()
	s.noTouch, s.noEvict = false, false
	s.setReplyMode(replyOn)
	s.conn.W.Proto = s.srv.defaultProto()
	s.beginAs()
	s.setInfo(func(i *clientInfo) { i.name = "" })
	s.w.Simple("RESET")
}

// login authenticates the session; false after a wrong password, which it answers.
func (s *session) login(user, password []byte) bool {
	account := s.srv.access.users.Authenticate(string(user), password)
	if account == nil {
		s.srv.stats.authFailures.Add(1)
		s.noteDenied(acl.DeniedAuth, s.context(), string(user), string(s.args[0]))
		s.w.Error(msgWrongPass)
		return false
	}
	s.setAccount(account)
	s.gate &^= gateAuth
	s.onLoop(func() { s.conn.SetAuthenticated(true) })
	return true
}

func authCommand(s *session, args [][]byte) {
	if len(args) > 3 {
		s.w.Error(msgSyntax)
		return
	}
	user, password := []byte(defaultUser), args[1]
	if len(args) == 3 {
		user, password = args[1], args[2]
	} else if s.srv.access.users.Default().User().NoPassword {
		s.w.Error(msgNoPass)
		return
	}
	if s.login(user, password) {
		s.w.OK()
	}
}

// hello is a parsed HELLO.
type hello struct {
	proto          int
	user, password []byte
	auth, named    bool
	name           []byte
}

func parseHello(args [][]byte) (h hello, bad string) {
	if len(args) >= 2 {
		n, ok := parseInt(args[1])
		if !ok {
			return h, "ERR Protocol version is not an integer or out of range"
		}
		if n < 2 || n > 3 {
			return h, "NOPROTO unsupported protocol version"
		}
		h.proto = int(n)
	}
	for i := 2; i < len(args); i++ {
		more := len(args) - 1 - i
		switch {
		case isName(args[i], "auth") && more >= 2:
			h.auth, h.user, h.password = true, args[i+1], args[i+2]
			i += 2
		case isName(args[i], "setname") && more >= 1:
			if !validAttr(args[i+1]) {
				return h, msgBadName
			}
			h.named, h.name = true, args[i+1]
			i++
		default:
			return h, "ERR Syntax error in HELLO option '" + string(args[i]) + "'"
		}
	}
	return h, ""
}

func helloCommand(s *session, args [][]byte) {
	h, bad := parseHello(args)
	if bad != "" {
		s.w.Error(bad)
		return
	}
	if h.auth && !s.login(h.user, h.password) {
		return
	}
	if s.mustLogin() {
		s.w.Error(msgHelloAuth)
		return
	}
	if h.named {
		s.setInfo(func(i *clientInfo) { i.name = string(h.name) })
	}
	if h.proto != 0 {
		s.w.Proto = h.proto
	}
	s.writeHello()
}

func (s *session) writeHello() {
	w := s.w
	proto := 2
	if w.RESP3() {
		proto = 3
	}
	w.Map(7)
	w.BulkString("server")
	w.BulkString("redis")
	w.BulkString("version")
	w.BulkString(RedisVersion)
	w.BulkString("proto")
	w.Int(int64(proto))
	w.BulkString("id")
	w.Uint(s.id)
	w.BulkString("mode")
	w.BulkString("standalone")
	w.BulkString("role")
	if s.srv.eng.Following() {
		w.BulkString("replica")
	} else {
		w.BulkString("master")
	}
	w.BulkString("modules")
	w.Array(0)
}

// parseInt reads a decimal integer as strictly as Redis does.
func parseInt(b []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || len(b) > 20 || (b[0] == '+') || (len(b) > 1 && (b[0] == '0' || string(b[:2]) == "-0")) {
		return 0, false
	}
	return n, true
}
