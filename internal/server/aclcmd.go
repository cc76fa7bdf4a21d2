package server

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/kevydb/kevy/internal/acl"
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/resp"
)

var aclHelp = []string{
	"CAT [<category>]", "    List all commands that belong to <category>, or all command categories",
	"    when no category is specified.",
	"DELUSER <username> [<username> ...]", "    Delete a list of users.",
	"DRYRUN <username> <command> [<arg> ...]",
	"    Returns whether the user can execute the given command without executing the command.",
	"GETUSER <username>", "    Get the user's details.",
	"GENPASS [<bits>]", "    Generate a secure 256-bit user password. The optional `bits` argument can",
	"    be used to specify a different size.",
	"LIST", "    Show users details in config file format.",
	"LOAD", "    Reload users from the ACL file.",
	"LOG [<count> | RESET]", "    Show the ACL log entries.",
	"SAVE", "    Save the current config to the ACL file.",
	"SETUSER <username> <attribute> [<attribute> ...]", "    Create or modify a user with the specified attributes.",
	"USERS", "    List all the registered usernames.",
	"WHOAMI", "    Return the current connection username.",
}

func registerACL(r registry) {
	r["acl|cat"] = aclCat
	r["acl|deluser"] = aclDelUser
	r["acl|dryrun"] = aclDryRun
	r["acl|genpass"] = aclGenPass
	r["acl|getuser"] = aclGetUser
	r["acl|help"] = func(s *session, args [][]byte) { command.ReplyHelp(s.w, args[0], aclHelp) }
	r["acl|list"] = func(s *session, _ [][]byte) {
		s.replyUsers(func(u *acl.User) string { return "user " + u.Name + " " + u.String() })
	}
	r["acl|load"] = aclLoad
	r["acl|log"] = aclLog
	r["acl|save"] = aclSave
	r["acl|setuser"] = aclSetUser
	r["acl|users"] = func(s *session, _ [][]byte) { s.replyUsers(func(u *acl.User) string { return u.Name }) }
	r["acl|whoami"] = func(s *session, _ [][]byte) { s.w.BulkString(s.user) }
}

func (s *session) replyUsers(show func(*acl.User) string) {
	users := s.srv.access.users.All()
	s.w.Array(len(users))
	for _, u := range users {
		s.w.BulkString(show(u))
	}
}

func aclCat(s *session, args [][]byte) {
	if len(args) > 3 {
		s.w.Error(command.SubcommandArgsError(args))
		return
	}
	names := acl.Categories
	if len(args) == 3 {
		name := string(lower(args[2]))
		if !slices.Contains(acl.Categories, name) {
			s.w.Error(fmt.Sprintf("ERR Unknown category '%.128s'", args[2]))
			return
		}
		names = nil
		for _, row := range command.All() {
			if row.HasCategory(name) {
				names = append(names, row.Name)
			}
		}
	}
	s.w.Array(len(names))
	for _, name := range names {
		s.w.BulkString(name)
	}
}

func lower(b []byte) []byte {
	out := slices.Clone(b)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c | 0x20
		}
	}
	return out
}

func aclSetUser(s *session, args [][]byte) {
	rules := make([]string, 0, len(args)-3)
	for _, a := range args[3:] {
		rules = append(rules, string(a))
	}
	a := &s.srv.access
	account, before, err := a.users.Set(string(args[2]), rules)
	if err != nil {
		s.w.Error("ERR " + err.Error())
		return
	}
	a.changed()
	a.killSubscribers(account, before)
	s.w.OK()
}

func aclDelUser(s *session, args [][]byte) {
	for _, name := range args[2:] {
		if string(name) == acl.Default {
			s.w.Error("ERR The 'default' user cannot be removed")
			return
		}
	}
	a := &s.srv.access
	var gone []*acl.Account
	for _, name := range args[2:] {
		if account := a.users.Delete(string(name)); account != nil {
			gone = append(gone, account)
		}
	}
	a.changed()
	s.killClients(gone)
	s.w.Int(int64(len(gone)))
}

func aclGetUser(s *session, args [][]byte) {
	account := s.srv.access.users.Find(string(args[2]))
	if account == nil {
		s.w.Null()
		return
	}
	u, w := account.User(), s.w
	w.Map(6)
	w.BulkString("flags")
	flags := u.Flags()
	w.Set(len(flags))
	for _, f := range flags {
		w.BulkString(f)
	}
	w.BulkString("passwords")
	w.Array(len(u.Passwords))
	for _, p := range u.Passwords {
		w.BulkString(p)
	}
	selectors := u.Selectors()
	writePermissions(w, selectors[0])
	w.BulkString("selectors")
	w.Array(len(selectors) - 1)
	for _, p := range selectors[1:] {
		w.Map(3)
		writePermissions(w, p)
	}
}

func writePermissions(w *resp.Writer, p acl.Permissions) {
	w.BulkString("commands")
	w.BulkString(p.Commands)
	w.BulkString("keys")
	w.BulkString(p.Keys)
	w.BulkString("channels")
	w.BulkString(p.Channels)
}

func aclGenPass(s *session, args [][]byte) {
	bits := int64(256)
	if len(args) > 3 {
		s.w.Error(command.SubcommandArgsError(args))
		return
	}
	if len(args) == 3 {
		n, ok := parseInt(args[2])
		if !ok {
			s.w.Error(msgNotInteger)
			return
		}
		bits = n
	}
	if bits <= 0 || bits > 4096 {
		s.w.Error("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096")
		return
	}
	chars := (bits + 3) / 4
	raw := make([]byte, (chars+1)/2)
	_, _ = rand.Read(raw) // never fails
	s.w.BulkString(hex.EncodeToString(raw)[:chars])
}

func aclDryRun(s *session, args [][]byte) {
	account := s.srv.access.users.Find(string(args[2]))
	if account == nil {
		s.w.Error(fmt.Sprintf("ERR User '%s' not found", args[2]))
		return
	}
	request := args[3:]
	row := rowOf(request)
	if row == nil {
		s.w.Error(fmt.Sprintf("ERR Command '%s' not found", request[0]))
		return
	}
	if !row.ArityOK(len(request)) {
		s.w.Error(command.ArityError(row))
		return
	}
	u := account.User()
	if why, at := u.Check(row, request); why != acl.Granted {
		s.w.BulkString(u.Explain(why, row, request, at, true))
		return
	}
	s.w.OK()
}

func aclLog(s *session, args [][]byte) {
	l := &s.srv.access.log
	count := int64(10)
	switch {
	case len(args) > 3:
		s.w.Error(command.SubcommandArgsError(args))
		return
	case len(args) == 3 && isName(args[2], "reset"):
		l.Reset()
		s.w.OK()
		return
	case len(args) == 3:
		n, ok := parseInt(args[2])
		if !ok {
			s.w.Error(msgNotInteger)
			return
		}
		count = max(0, n)
	}
	now := s.srv.eng.Now()
	entries := l.Last(int(min(count, 1<<30)))
	w := s.w
	w.Array(len(entries))
	for i := range entries {
		e := &entries[i]
		w.Map(10)
		w.BulkString("count")
		w.Int(int64(e.Count))
		for _, f := range [][2]string{
			{"reason", e.Reason.String()}, {"context", string(e.Context)}, {"object", e.Object}, {"username", e.Username},
		} {
			w.BulkString(f[0])
			w.BulkString(f[1])
		}
		w.BulkString("age-seconds")
		w.Double(float64(now-e.Updated) / 1000)
		w.BulkString("client-info")
		w.BulkString(e.Client)
		w.BulkString("entry-id")
		w.Int(e.ID)
		w.BulkString("timestamp-created")
		w.Int(e.Created)
		w.BulkString("timestamp-last-updated")
		w.Int(e.Updated)
	}
}

func aclLoad(s *session, _ [][]byte) {
	path, a := s.srv.config().ACLFile, &s.srv.access
	if path == "" {
		s.w.Error("ERR " + errNoACLFile.Error())
		return
	}
	gone, err := a.users.Load(path)
	if err != nil {
		s.w.Error("ERR " + err.Error())
		return
	}
	a.changed()
	s.killClients(gone)
	s.w.OK()
}

func aclSave(s *session, _ [][]byte) {
	path, a := s.srv.config().ACLFile, &s.srv.access
	if path == "" {
		s.w.Error("ERR " + errNoACLFile.Error())
		return
	}
	if err := a.users.Save(path); err != nil {
		s.srv.log.Warn("ACL SAVE failed", "error", err)
		s.w.Error("ERR There was an error trying to save the ACLs. Please check the server logs for more information")
		return
	}
	s.w.OK()
}
