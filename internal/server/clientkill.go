package server

import (
	"strconv"

	"github.com/kevydb/kevy/internal/acl"
)

// killFilter says which clients CLIENT KILL closes.
type killFilter struct {
	addr, laddr, user *string // nil: any; nobody's is empty
	kind              int     // -1: any
	id                uint64  // 0: any
	skipMe            bool
}

// parseKill reads the filters of the new form.
func parseKill(users *acl.Users, args [][]byte) (f killFilter, bad string) {
	f = killFilter{kind: -1, skipMe: true}
	for i := 2; i < len(args); i += 2 {
		if i+1 == len(args) {
			return f, msgSyntax
		}
		if bad := f.option(users, args[i], args[i+1]); bad != "" {
			return f, bad
		}
	}
	return f, ""
}

func (f *killFilter) option(users *acl.Users, name, value []byte) (bad string) {
	switch {
	case isName(name, "id"):
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || n < 1 {
			return "ERR client-id should be greater than 0"
		}
		f.id = uint64(n)
	case isName(name, "type"):
		kind, ok := clientType(value)
		if !ok {
			return "ERR Unknown client type '" + string(value) + "'"
		}
		f.kind = kind
	case isName(name, "addr"):
		f.addr = copyOf(value)
	case isName(name, "laddr"):
		f.laddr = copyOf(value)
	case isName(name, "user"):
		if users.Find(string(value)) == nil {
			return "ERR No such user '" + string(value) + "'"
		}
		f.user = copyOf(value)
	case isName(name, "skipme"):
		switch {
		case isName(value, "yes"):
			f.skipMe = true
		case isName(value, "no"):
			f.skipMe = false
		default:
			return msgSyntax
		}
	default:
		return msgSyntax
	}
	return ""
}

func copyOf(b []byte) *string {
	s := string(b)
	return &s
}

func (f *killFilter) matches(i *clientInfo) bool {
	return (f.addr == nil || i.addr == *f.addr) &&
		(f.laddr == nil || i.laddr == *f.laddr) &&
		(f.kind == -1 || f.kind == i.kind()) &&
		(f.id == 0 || i.id == f.id) &&
		(f.user == nil || i.user == *f.user)
}

// clientKill is CLIENT KILL ip:port, or with filters.
func clientKill(s *session, args [][]byte) {
	f := killFilter{kind: -1}
	if len(args) == 3 {
		f.addr = copyOf(args[2])
	} else {
		var bad string
		if f, bad = parseKill(s.srv.access.users, args); bad != "" {
			s.w.Error(bad)
			return
		}
	}
	killed := 0
	for _, c := range s.srv.clients.all() {
		i := c.info()
		if !f.matches(&i) || (c == s && f.skipMe) {
			continue
		}
		// Out of the registry at once: the client counts no more.
		if !s.srv.clients.remove(c) {
			continue
		}
		killed++
		if c == s {
			s.closeAfterReply()
		} else {
			c.conn.Close()
			c.work.stopWaiting() // nothing is taken out for it from now on
		}
	}
	switch {
	case len(args) > 3:
		s.w.Int(int64(killed))
	case killed == 0:
		s.w.Error("ERR No such client")
	default:
		s.w.OK()
	}
}
