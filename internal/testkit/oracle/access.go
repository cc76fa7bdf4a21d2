package oracle

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// Streams about users: their rules, what they may do, what they are told.

var accessPools = map[string][]string{
	"USER": {"u1", "u1", "u2", "u2", "u3", "default"},
	"RULE": {
		"on", "on", "off", "nopass", ">p1", ">p2", "<p1", "<nosuch", "resetpass", "~*", "~a", "~k:*", "%R~h*", "%W~l*", "%RW~s1", "allkeys", "resetkeys",
		"&*", "&news", "&n*", "allchannels", "resetchannels", "+@all", "-@all", "+@read", "+@write", "-@write", "+@hash", "-@dangerous", "+get", "-get", "+set",
		"-set", "+client|id", "-client|id", "-client", "+client", "+config|get", "-config|set", "+acl", "+acl|whoami", "-publish", "allcommands", "nocommands",
		"clearselectors", "(+get ~a)", "(+@write ~k:* &news)", "(%R~* +@read)", "reset",
		"#2a97516c354b68848cdbd8f54a226a0a55b21ed138e207ad6c5cbb9c00aa5aea", "!2a97516c354b68848cdbd8f54a226a0a55b21ed138e207ad6c5cbb9c00aa5aea",
		"foo", "+nosuch", "+@nosuch", "+get|a", "+config|nosuch", "%X~a", "~", "(+get", "()", "+", "#12", ">", "<", "(on)", "(reset)",
	},
	"PASS":    {"p1", "p1", "p2", "nosuch", ""},
	"ACLWHAT": {"GET a", "SET a 1", "GET k:1", "MGET a k:1", "HSET h1 f v", "LPUSH l1 x", "PUBLISH news x", "SUBSCRIBE news other", "CLIENT ID", "CONFIG GET maxmemory", "CONFIG SET maxmemory 0", "GET", "nosuch", "SUNIONSTORE s1 a k:1", "ACL WHOAMI", "EVAL return 1 a", "SORT l1 BY w_*", "COPY a k:1"},
	"CAT":     {"read", "write", "hash", "nosuch", "@read", ""},
}

var accessForms = []form{
	{14, true, "ACL SETUSER USER RULE"},
	{14, true, "ACL SETUSER USER RULE RULE RULE"},
	{8, true, "ACL SETUSER USER on >p1 +@all ~* RULE RULE"},
	{8, true, "ACL SETUSER USER on >p2 +@all ~k:* &n* RULE"},
	{1, true, "ACL SETUSER USER"},
	{8, true, "ACL GETUSER USER"},
	{1, true, "ACL GETUSER nosuch"},
	{5, true, "ACL LIST"},
	{3, true, "ACL USERS"},
	{5, true, "ACL WHOAMI"},
	{3, true, "ACL DELUSER USER USER"},
	{12, true, "ACL DRYRUN USER ACLWHAT"},
	{1, true, "ACL DRYRUN nosuch GET a"},
	{3, true, "ACL LOG"},
	{2, true, "ACL LOG 1000"},
	{2, true, "ACL LOG RESET"},
	{1, true, "ACL LOG x"},
	{2, true, "ACL CAT CAT"},
	{1, true, "ACL GENPASS n"},
	{1, true, "ACL GENPASS 5000"},
	{1, true, "ACL SAVE"},
	{1, true, "ACL LOAD"},
	{1, true, "ACL foo"},
	{10, true, "AUTH USER PASS"},
	{3, true, "AUTH PASS"},
	{4, true, "AUTH root toor"},
	{3, true, "HELLO 2 AUTH USER PASS"},
	{2, true, "HELLO 2"},
	{2, true, "RESET"},
	{4, true, "GET TK"},
	{4, true, "SET TK v"},
	{3, true, "PUBLISH C v"},
	{3, true, "SUBSCRIBE news"},
	{2, true, "PSUBSCRIBE n*"},
	{2, true, "UNSUBSCRIBE"},
	{2, true, "PUNSUBSCRIBE"},
	{2, true, "CLIENT INFO"},
}

// accessScripts call what a user may not be allowed to.
var accessScripts = []string{
	"return redis.call('SET', KEYS[1], 1)", "return redis.pcall('GET', KEYS[1])", "return redis.acl_check_cmd('set', KEYS[1], 1)",
	"return redis.call('PUBLISH', KEYS[1], 'x')",
}

func newAccessGen(seed uint64, seventh bool) *hearGen {
	g := &hearGen{Gen: NewGen(seed), rows: formRows(accessForms), apart: append(unqueued(seventh), "SUBSCRIBE", "PSUBSCRIBE"), lone: changesUser}
	g.rows = append(g.rows, row{weight: 4, fixed: true, make: func(g *Gen) []string {
		return []string{"EVAL", g.pick(accessScripts), "1", g.pick(pools["TK"])}
	}})
	g.rows = append(g.rows, row{weight: 40, fixed: true, make: func(g *Gen) []string { return strings.Fields(g.pick(pools["ACLWHAT"])) }})
	g.rest = 100
	// In RESP2 a subscriber stays who he is, and begins outside of transactions: Redis 7.0 ends when one takes channels from himself, and whether it lets one go
	// who has become another user depends on more than what he may hear.
	g.step = func(g *hearGen) Step {
		s := g.byRows()
		if slices.ContainsFunc(s.Cmds, func(c Command) bool { return strings.HasSuffix(c.Name(), "SUBSCRIBE") }) {
			s.Conn = 2 + s.Conn&2
		} else if slices.ContainsFunc(s.Cmds, func(c Command) bool { return c.Sub() == "SETUSER" }) {
			s.Conn &^= 1
		}
		return s
	}
	for _, conn := range []int{0, 1} {
		g.begin = append(g.begin, Step{Conn: conn, Cmds: []Command{{Args: []string{"AUTH", "root", "toor"}}}})
	}
	return g
}

// changesUser reports whether a command may change who its client is, or end it or others: what of a pipeline is answered then differs
// between versions of Redis, and a client that is ended there gets nothing of what the pipeline has sent it before.
func changesUser(c Command) bool {
	return slices.Contains([]string{"AUTH", "HELLO", "RESET"}, c.Name()) || c.Sub() == "DELUSER" || c.Sub() == "SETUSER"
}

// plainUsers is a server with the default user as it begins, and root, who may do all and stays out of the streams.
func plainUsers(c *wire.Conn) error {
	if _, err := c.Do("AUTH", "root", "toor"); err != nil { // there is no root in a new server
		return err
	}
	if _, err := c.Must("ACL", "SETUSER", "root", "reset", "on", ">toor", "+@all", "~*", "&*"); err != nil {
		return err
	}
	for _, line := range []string{
		"AUTH root toor", "ACL DELUSER u1 u2 u3", "ACL SETUSER default reset on nopass +@all ~* &*", "ACL LOG RESET",
	} {
		if _, err := c.Must(strings.Fields(line)...); err != nil {
			return err
		}
	}
	return plain(c)
}

// sameAccess compares replies about users. With seventh the words are turned into those of 7.2, and rules are left out
// that 7.0 sorts anew.
func sameAccess(seventh bool) func(Command, *wire.Reply, *wire.Reply) bool {
	return func(cmd Command, want, got *wire.Reply) bool {
		if same(cmd, want, got) {
			return true
		}
		if seventh && cmd.Name() == "EVAL" && want.IsError() && got.IsError() { // 7.0 has other words for what a script may not do
			return true
		}
		if want.IsError() || cmd.Name() == "ACL" && cmd.Sub() == "DRYRUN" {
			return want.Kind == got.Kind && seventh && deniedAs72(want.Text()) == deniedAs72(got.Text())
		}
		if cmd.Name() != "ACL" || want.Kind != got.Kind {
			return false
		}
		switch cmd.Sub() {
		case "GETUSER":
			return seventh && sameUser(want, got)
		case "LIST":
			return seventh && len(want.Elems) == len(got.Elems)
		case "LOG":
			return sameLog(want, got)
		case "CAT": // kevy has commands of its own
			return !slices.ContainsFunc(want.Elems, func(r wire.Reply) bool {
				return !slices.ContainsFunc(got.Elems, func(g wire.Reply) bool { return g.Text() == r.Text() })
			})
		case "GENPASS":
			return len(want.Text()) == len(got.Text())
		}
		return false
	}
}

// denied matches the beginnings of refusals, which 7.2 gives a name.
var denied = regexp.MustCompile(`(?i)(this user|user \S+) has no permissions`)

func deniedAs72(text string) string {
	text = strings.ReplaceAll(denied.ReplaceAllString(text, "the user has no permissions"), "HELLO <proto> AUTH", "HELLO AUTH")
	for _, what := range []string{"key", "channel"} {
		text = strings.ReplaceAll(text, "the user has no permissions to access one of the "+what+"s used as arguments", "No permissions to access a "+what)
	}
	return text
}

// sameUser compares what ACL GETUSER tells, but for the order of rules and the flag that 7.2 has new.
func sameUser(want, got *wire.Reply) bool {
	for _, name := range []string{"passwords", "keys", "channels"} {
		w, _ := want.Field(name)
		g, ok := got.Field(name)
		if !ok || string(w.Raw) != string(g.Raw) {
			return false
		}
	}
	return true
}

// sameLog compares entries of ACL LOG, but for times and clients.
func sameLog(want, got *wire.Reply) bool {
	return slices.EqualFunc(withoutPing(want.Elems), withoutPing(got.Elems), func(w, g wire.Reply) bool {
		for _, name := range []string{"count", "reason", "context", "object", "username"} {
			a, _ := w.Field(name)
			b, ok := g.Field(name)
			if !ok || a == nil || string(a.Raw) != string(b.Raw) {
				return false
			}
		}
		return true
	})
}

// withoutPing leaves out that the PING behind a step was refused: it may be sent more than once.
func withoutPing(entries []wire.Reply) []wire.Reply {
	return slices.DeleteFunc(slices.Clone(entries), func(r wire.Reply) bool {
		object, ok := r.Field("object")
		return ok && object.Text() == "ping"
	})
}
