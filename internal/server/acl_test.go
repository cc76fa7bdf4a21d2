package server

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/config"
)

// TestACL: what is denied is refused, in a transaction, at EXEC and in a script, and logged.
func TestACL(t *testing.T) {
	s := start(t, testOptions{})
	c, d := s.client(), s.client()
	c.want("ACL SETUSER alice on >pw ~a:* resetchannels &news +@all", "+OK")
	d.want("AUTH alice wrong", "-WRONGPASS*")
	d.want("AUTH alice pw", "+OK")
	d.want("ACL WHOAMI", "alice")
	d.want("SET b 1", "-NOPERM No permissions to access a key")
	d.want("SET a:1 1", "+OK")
	d.want("PUBLISH sports x", "-NOPERM No permissions to access a channel")
	d.want("MULTI", "+OK")
	d.want("SET b 1", "-NOPERM No permissions to access a key")
	d.want("EXEC", "-EXECABORT*")
	d.want("MULTI", "+OK")
	d.want("SET a:1 2", "+QUEUED")
	c.want("ACL SETUSER alice -set", "+OK")
	d.want("EXEC", "*[-NOPERM ACLs rules changed between*")
	d.want("GET a:1", "1")
	d.want("SET a:1 2", "-NOPERM User alice has no permissions to run the 'set' command")
	d.want("EVAL return(redis.call('set','a:1','9')) 0", "-ERR ACL failure in script: User alice has no permissions to run the 'set' command*")
	d.want("EVAL return(redis.acl_check_cmd('get','a:1')) 0", ":1")
	d.want("SORT a:l BY w_*", "-ERR BY option of SORT denied due to insufficient ACL permissions.")
	d.want("GET a:1", "1")
	if got := c.do("ACL LOG"); !strings.Contains(got, "lua") || !strings.Contains(got, "multi") || !strings.Contains(got, "auth") || !strings.Contains(got, "sports") {
		t.Errorf("ACL LOG: %s", got)
	}
	c.want("ACL LOG RESET", "+OK")
	c.want("ACL LOG", "*[]")
	c.want("ACL DELUSER alice", ":1")
	d.gone()
}

// TestACLSubscribers: who may no longer listen is cut off, who still may is not.
func TestACLSubscribers(t *testing.T) {
	s := start(t, testOptions{})
	c, d, e := s.client(), s.client(), s.client()
	c.want("ACL SETUSER alice on nopass +@all ~* resetchannels &a &b", "+OK")
	for _, x := range []*client{d, e} {
		x.want("AUTH alice x", "+OK")
	}
	d.want("SUBSCRIBE a", "*[subscribe a :1]")
	e.want("SUBSCRIBE b", "*[subscribe b :1]")
	c.want("ACL SETUSER alice resetchannels &a", "+OK")
	e.gone()
	c.want("PUBLISH a x", ":1")
	if got := d.read(); got != "*[message a x]" {
		t.Errorf("%s", got)
	}
}

// TestACLFile: users come from the file at the start, and go into it.
func TestACLFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.acl")
	s := start(t, testOptions{})
	c := s.client()
	c.want("ACL LOAD", "-ERR This Redis instance is not configured to use an ACL file.*")
	s.Server.cfg.Store(func() *config.Config { cfg := s.Server.config().Clone(); cfg.ACLFile = path; return cfg }())
	c.want("ACL LOAD", "-ERR Error loading ACLs, opening file*")
	c.want("ACL SETUSER bob on >pw ~* +get", "+OK")
	c.want("ACL SAVE", "+OK")
	c.want("ACL SETUSER carol on nopass", "+OK")
	d := s.client()
	d.want("AUTH carol x", "+OK")
	c.want("ACL LOAD", "+OK")
	d.gone()
	c.want("ACL USERS", "*[bob default]")
	c.want("CONFIG SET requirepass sesame", "+OK")
	d = s.client()
	d.want("GET x", "-NOAUTH*")
	d.want("HELLO 3 AUTH bob pw", "%[*")
	d.want("GET x", "nil")
	d.want("RESET", "+RESET")
	d.want("GET x", "-NOAUTH*")
	c.want("ACL SETUSER default nopass", "+OK")
	d.want("GET x", "nil")
}
