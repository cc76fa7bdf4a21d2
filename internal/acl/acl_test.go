package acl

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/command"
)

func words(line string) [][]byte {
	var out [][]byte
	for w := range strings.FieldsSeq(line) {
		out = append(out, []byte(w))
	}
	return out
}

func mustUser(t *testing.T, rules string) *User {
	t.Helper()
	u, err := newUser("alice", false).with(strings.Fields(rules), false)
	if err != nil {
		t.Fatalf("%s: %v", rules, err)
	}
	return u
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		rules, request string
		want           Reason
	}{
		{"", "GET a", DeniedCommand},
		{"", "AUTH x", Granted},
		{"+get", "GET a", DeniedKey},
		{"+get ~*", "GET a", Granted},
		{"allcommands allkeys allchannels", "PUBLISH a b", Granted},
		{"+@all ~*", "PUBLISH a b", DeniedChannel},
		{"+@all &a*", "PUBLISH abc b", Granted},
		{"+@all &a*", "SUBSCRIBE abc b", DeniedChannel},
		{"+@all &a*", "PSUBSCRIBE a*", Granted},
		{"+@all &a*", "PSUBSCRIBE ab", DeniedChannel},
		{"+@all &a*", "UNSUBSCRIBE b", Granted},
		{"+@all %R~r:* %W~w:* ~b:*", "GET r:1", Granted},
		{"+@all %R~r:* %W~w:* ~b:*", "SET r:1 v", DeniedKey},
		{"+@all %R~r:* %W~w:* ~b:*", "SET w:1 v", Granted},
		{"+@all %R~r:* %W~w:* ~b:*", "SET w:1 v GET", DeniedKey},
		{"+@all %R~r:* %W~w:* ~b:*", "COPY r:1 w:1", Granted},
		{"+@all %R~r:* %W~w:* ~b:*", "COPY w:1 r:1", DeniedKey},
		{"+@all %R~r:* %W~w:* ~b:*", "MGET b:1 x", DeniedKey},
		{"+@all -config +config|get", "CONFIG GET x", Granted},
		{"+@all -config +config|get", "CONFIG SET x y", DeniedCommand},
		{"+@all -config|set", "CONFIG GET x", Granted},
		{"+select|0", "SELECT 0", Granted},
		{"+select|0", "SELECT 1", DeniedCommand},
		{"~a +get (+set ~b)", "SET b 1", Granted},
		{"~a +get (+set ~b)", "SET a 1", DeniedKey},
		{"~a +get (+set ~b)", "DEL a", DeniedCommand},
		{"~a +get (+set ~b) clearselectors", "SET b 1", DeniedCommand},
		{"+@all ~* -@dangerous", "FLUSHALL", DeniedCommand},
		{"+@all ~a:*", "EVAL x 1 b", DeniedKey},
		{"+@all ~a:*", "FEED.READ 0 0", DeniedKey},
		{"+@all ~a:*", "FEED.SCAN 0 0", DeniedKey},
		{"+@all ~*", "FEED.SCAN 0 0", Granted},
		{"+@all ~a:*", "PREFIX.STATS b", DeniedKey},
		{"+@all ~a:*", "PREFIX.STATS a:b", Granted},
		{"+@all ~*", "FEED.READ 0 0", Granted},
	} {
		args := words(c.request)
		row := command.Lookup(args[0])
		if row != nil && len(row.Sub) > 0 {
			row = row.Subcommand(args[1])
		}
		if row == nil {
			t.Fatalf("%s: no such command", c.request)
		}
		if got, _ := mustUser(t, c.rules).Check(row, args); got != c.want {
			t.Errorf("%q runs %q: %s, want %s", c.rules, c.request, got, c.want)
		}
	}
}

// TestCheckWhatIsAKey: and what a request does with it, where that depends on the request.
func TestCheckWhatIsAKey(t *testing.T) {
	for _, c := range []struct {
		rules, request string
		want           Reason
	}{
		{"+@all &a*", "SSUBSCRIBE abc", Granted}, // a shard channel is no key
		{"+@all &a*", "SSUBSCRIBE b", DeniedChannel},
		{"+@all &a*", "SPUBLISH abc b", Granted},
		{"+@all %W~w:*", "SET w:1 v EX get", DeniedKey}, // a GET anywhere
		{"+@all %W~w:*", "SET w:1 get", Granted},
		{"+@all %R~r:*", "BITFIELD r:1 GET u4 0", Granted},
		{"+@all %R~r:*", "BITFIELD r:1 OVERFLOW SAT GET u4 0", Granted},
		{"+@all %R~r:*", "BITFIELD r:1 GET u4 0 SET u4 0 1", DeniedKey},
		{"+@all %R~r:*", "BITFIELD r:1 GET u4", DeniedKey},
	} {
		args := words(c.request)
		row, bad := command.Resolve(args)
		if row == nil {
			t.Fatalf("%s: %s", c.request, bad)
		}
		if got, _ := mustUser(t, c.rules).Check(row, args); got != c.want {
			t.Errorf("%s with %s: %v", c.request, c.rules, got)
		}
	}
}

func TestDescribe(t *testing.T) {
	for rules, want := range map[string]string{
		"":                      "off sanitize-payload resetchannels -@all",
		"on nopass ~* &* +@all": "on nopass sanitize-payload ~* &* +@all",
		"+@all -@string +set":   "off sanitize-payload resetchannels +@all -@string +set",
		"+config|get +config":   "off sanitize-payload resetchannels -@all +config",
		"+GET -get +get":        "off sanitize-payload resetchannels -@all +get",
		"%RW~a %R~b %W~b %W~c &x skip-sanitize-payload": "off skip-sanitize-payload ~a ~b %W~c resetchannels &x -@all",
		"(~a +get) ( ~b &* )":                           "off sanitize-payload resetchannels -@all (~a resetchannels -@all +get) (~b &* -@all)",
		"on >pw reset":                                  "off sanitize-payload resetchannels -@all",
	} {
		u := mustUser(t, rules)
		if got := u.String(); got != want {
			t.Errorf("%q: %s, want %s", rules, got, want)
		}
		again := mustUser(t, u.String())
		if again.String() != u.String() || !slices.Equal(again.selectors[0].allowed, u.selectors[0].allowed) {
			t.Errorf("%q: read back it is %s", rules, again)
		}
	}
}

func TestUsers(t *testing.T) {
	us := NewUsers()
	if us.Restricted() || us.Authenticate(Default, []byte("whatever")) == nil || us.Authenticate("bob", nil) != nil {
		t.Error("the default user is not open")
	}
	if _, _, err := us.Set("bob", []string{"on", ">secret", "+get", "nosuch"}); err == nil || us.Find("bob") != nil {
		t.Errorf("half of the rules were applied: %v", err)
	}
	a, _, err := us.Set("bob", []string{"on", ">secret", ">other", "+get", "~*"})
	if err != nil || !us.Restricted() {
		t.Fatal(err)
	}
	if us.Authenticate("bob", []byte("secret")) != a || us.Authenticate("bob", []byte("wrong")) != nil {
		t.Error("passwords")
	}
	us.SetPassword("sesame")
	if us.Authenticate(Default, []byte("x")) != nil || us.Authenticate(Default, []byte("sesame")) == nil {
		t.Error("the default user's password")
	}
	path := filepath.Join(t.TempDir(), "users.acl")
	if err := us.Save(path); err != nil {
		t.Fatal(err)
	}
	us.Delete("bob")
	if why, _ := a.User().Check(command.Lookup([]byte("get")), words("get x")); why == Granted {
		t.Error("a deleted user may go on")
	}
	us.SetPassword("")
	if us.Restricted() {
		t.Error("nobody is restricted")
	}
	if gone, err := us.Load(path); err != nil || len(gone) != 0 {
		t.Fatal(gone, err)
	}
	if us.Authenticate("bob", []byte("other")) == nil || us.Authenticate(Default, []byte("x")) != nil || len(us.All()) != 2 {
		t.Error("what was saved did not come back")
	}
	if err := os.WriteFile(path, []byte("user a on\nuser a off\nbogus\nuser b +nosuch\nuser c zzz\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = us.Load(path)
	if err == nil || !strings.Contains(err.Error(), "Duplicate user 'a' found on line 2") || !strings.Contains(err.Error(), ":5: Syntax error") {
		t.Errorf("a bad file: %v", err)
	}
	if us.Find("bob") == nil {
		t.Error("a bad file changed users")
	}
}

func TestLog(t *testing.T) {
	var l Log
	l.SetMax(3)
	l.Add(Entry{Reason: DeniedKey, Object: "a", Updated: 1000})
	l.Add(Entry{Reason: DeniedKey, Object: "b", Updated: 2000})
	l.Add(Entry{Reason: DeniedKey, Object: "a", Updated: 3000})
	l.Add(Entry{Reason: DeniedKey, Object: "b", Updated: 70_000})
	got := l.Last(10)
	if len(got) != 3 || got[0].Object != "b" || got[0].ID != 2 || got[1].Count != 2 || got[1].Created != 1000 || got[1].Updated != 3000 {
		t.Errorf("%+v", got)
	}
	l.SetMax(1)
	if got = l.Last(10); len(got) != 1 || got[0].ID != 2 {
		t.Errorf("%+v", got)
	}
	l.Reset()
	if len(l.Last(10)) != 0 {
		t.Error("not empty")
	}
}
