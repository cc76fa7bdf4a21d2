//lint:file-ignore ST1005 errors are worded as Redis words them

package server

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/acl"
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/internal/pubsub"
)

// access is who may do what, and what was denied. While everybody may do everything no command pays for it.
type access struct {
	srv    *Server
	users  *acl.Users
	log    acl.Log
	denied [acl.DeniedChannel + 1]atomic.Uint64 // by reason
}

func (a *access) init(srv *Server) { a.srv, a.users = srv, acl.NewUsers() }

// changed has the next commands checked, or no longer.
func (a *access) changed() { a.srv.setGate(gateACL, a.users.Restricted()) }

// apply puts a setting into force.
func (a *access) apply(cfg *config.Config, name string) {
	text, _ := cfg.Get(name)
	switch name {
	case "requirepass":
		a.users.SetPassword(text)
		a.changed()
	case "acllog-max-len":
		n, _ := strconv.Atoi(text) // config knows it as a number
		a.log.SetMax(n)
	case "acl-pubsub-default":
		a.users.AllChannels.Store(text == "allchannels")
	}
}

// load reads the users of the ACL file or of the configuration.
func (a *access) load() error {
	cfg := a.srv.config()
	var err error
	if cfg.ACLFile != "" {
		_, err = a.users.Load(cfg.ACLFile)
	} else if err = a.users.Define("users", cfg.Users); err != nil {
		err = fmt.Errorf("in the configured users: %w", err)
	}
	a.changed()
	return err
}

// configured returns the users as the configuration file is to define them: none if they are in the ACL file, or if
// there are only those that a server begins with.
func (a *access) configured(cfg *config.Config) []string {
	initial := acl.NewUsers()
	initial.SetPassword(cfg.RequirePass)
	lines := a.users.Lines()
	if cfg.ACLFile != "" || slices.Equal(lines, initial.Lines()) {
		return nil
	}
	return lines
}

// setAccount makes the session a user's.
func (s *session) setAccount(a *acl.Account) {
	s.account.Store(a)
	s.user = a.User().Name
}

// beginAs makes the session the default user's, who may have to give a password first.
func (s *session) beginAs() {
	a := s.srv.access.users.Default()
	s.setAccount(a)
	if !a.User().Open() {
		s.requireAuth()
	}
}

// mustLogin reports whether the session has to authenticate first.
func (s *session) mustLogin() bool {
	return s.gate&gateAuth != 0 && !s.srv.access.users.Default().User().Open()
}

// note counts and logs a denial.
func (s *session) noteDenied(why acl.Reason, where acl.Context, user, object string) {
	a := &s.srv.access
	a.denied[why].Add(1)
	now := time.Now()
	i := s.own()
	a.log.Add(acl.Entry{
		Reason: why, Context: where, Object: object, Username: user, Client: i.line(now), Updated: now.UnixMilli(),
	})
}

// context is where the session's commands come from, for ACL LOG.
func (s *session) context() acl.Context {
	if s.multi.on {
		return acl.InMulti
	}
	return acl.TopLevel
}

// decide checks a request, and logs it if it is denied. at is the key or channel that was denied.
func (s *session) decide(cmd *command.Command, args [][]byte, where acl.Context) (u *acl.User, why acl.Reason, at int) {
	u = s.account.Load().User()
	why, at = u.Check(cmd, args)
	if why != acl.Granted {
		object := cmd.Name
		if why != acl.DeniedCommand {
			object = string(args[at])
		}
		s.noteDenied(why, where, u.Name, object)
	}
	return u, why, at
}

// permitted checks a request and refuses it if it is denied.
func (s *session) permitted(cmd *command.Command, args [][]byte) bool {
	u, why, at := s.decide(cmd, args, s.context())
	if why != acl.Granted {
		s.refuse(cmd, "NOPERM "+u.Explain(why, cmd, args, at, false))
		return false
	}
	if bad := sortDenied(u, cmd, args); bad != "" && !s.multi.on {
		s.srv.stats.errorReply(bad)
		s.w.Error(bad)
		return false
	}
	return true
}

// queuedPermitted is asked by EXEC before each command: permissions may have changed since it was queued.
func (s *session) queuedPermitted(cmd *command.Command, args [][]byte) string {
	const text = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: "
	u, why, _ := s.decide(cmd, args, acl.InMulti)
	switch why {
	case acl.Granted:
		return sortDenied(u, cmd, args)
	case acl.DeniedKey:
		return text + "no permission to touch the specified keys"
	case acl.DeniedChannel:
		return text + "no permission to access one of the channels used as arguments to the command"
	}
	return text + "no permission to execute the command or subcommand"
}

// scriptPermitted is asked before each command of a script.
func (s *session) scriptPermitted(cmd *command.Command, args [][]byte) string {
	u, why, at := s.decide(cmd, args, acl.InScript)
	if why != acl.Granted {
		return "ACL failure in script: " + u.Explain(why, cmd, args, at, false)
	}
	return sortDenied(u, cmd, args)
}

// scriptMay answers redis.acl_check_cmd.
func (s *session) scriptMay(cmd *command.Command, args [][]byte) bool {
	why, _ := s.account.Load().User().Check(cmd, args)
	return why == acl.Granted
}

// sortDenied refuses the options with which SORT reads keys that it does not name, unless the user may read all.
func sortDenied(u *acl.User, cmd *command.Command, args [][]byte) string {
	if cmd.Name != "sort" && cmd.Name != "sort_ro" || u.ReadsAll(cmd, args) {
		return ""
	}
	for i := 2; i < len(args); i++ {
		left := len(args) - 1 - i
		switch {
		case isName(args[i], "limit") && left >= 2:
			i += 2
		case isName(args[i], "store") && left >= 1:
			i++
		case isName(args[i], "get") && left >= 1:
			return "ERR GET option of SORT denied due to insufficient ACL permissions."
		case isName(args[i], "by") && left >= 1:
			i++
			if bytes.IndexByte(args[i], '*') >= 0 {
				return "ERR BY option of SORT denied due to insufficient ACL permissions."
			}
		}
	}
	return ""
}

// killSubscribers closes the connections of a user that listen to what the user may no longer listen to.
func (a *access) killSubscribers(account *acl.Account, before *acl.User) {
	if before == nil || before.KeepsChannels(account.User()) {
		return
	}
	for _, c := range a.srv.clients.all() {
		if c.account.Load() != account {
			continue
		}
		c.conn.Post(func() {
			channels := append(c.subs.Names(pubsub.Channel), c.subs.Names(pubsub.Shard)...)
			patterns := c.subs.Names(pubsub.Pattern)
			if c.account.Load() == account && len(channels)+len(patterns) > 0 && !account.User().MayKeep(channels, patterns) {
				c.conn.Close()
			}
		})
	}
}

// killClients closes the connections of users that are no more; the one that asks gets its reply first.
func (s *session) killClients(gone []*acl.Account) {
	for _, c := range s.srv.clients.all() {
		account := c.account.Load()
		for _, a := range gone {
			if a != account {
				continue
			}
			s.srv.clients.remove(c)
			if c == s {
				s.closeAfterReply()
			} else {
				c.conn.Close()
				c.work.stopWaiting()
			}
		}
	}
}

var errNoACLFile = errors.New("This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL " +
	"SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users " +
	"in the Redis configuration.")
