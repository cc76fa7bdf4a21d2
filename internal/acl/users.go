//lint:file-ignore ST1005 errors are worded as Redis words them

package acl

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Default is the name of the user that connections are at first.
const Default = "default"

// Account is a user's place in the table: it stays the same when the user's permissions change.
type Account struct{ user atomic.Pointer[User] }

// User returns what the user may do now.
func (a *Account) User() *User { return a.user.Load() }

// Users is the table of users. Safe for concurrent use.
type Users struct {
	mu     sync.Mutex
	byName map[string]*Account // guarded by mu
	def    *Account
	// restricted says that somebody may not do everything: checks are needed.
	restricted atomic.Bool
	// AllChannels is acl-pubsub-default: new users may use all channels.
	AllChannels atomic.Bool
}

// NewUsers returns a table with the default user, who may do everything without a password.
func NewUsers() *Users {
	us := &Users{byName: make(map[string]*Account), def: &Account{}}
	us.def.user.Store(newDefault())
	us.byName[Default] = us.def
	return us
}

func newDefault() *User {
	u, err := newUser(Default, false).with([]string{"+@all", "~*", "&*", "on", "nopass"}, false)
	if err != nil {
		panic(err) // invariant: these rules apply
	}
	return u
}

// Restricted reports whether there is anybody who may not do everything.
func (us *Users) Restricted() bool { return us.restricted.Load() }

// Default returns the default user's account.
func (us *Users) Default() *Account { return us.def }

// Find returns the account of a name, or nil.
func (us *Users) Find(name string) *Account {
	us.mu.Lock()
	defer us.mu.Unlock()
	return us.byName[name]
}

// Authenticate returns the account if the password is right, or nil.
func (us *Users) Authenticate(name string, password []byte) *Account {
	a := us.Find(name)
	if a == nil || !a.User().accepts(password) {
		return nil
	}
	return a
}

// All returns the users in the order of their names.
func (us *Users) All() []*User {
	us.mu.Lock()
	defer us.mu.Unlock()
	var out []*User
	for _, name := range slices.Sorted(maps.Keys(us.byName)) {
		out = append(out, us.byName[name].User())
	}
	return out
}

// Set changes a user or makes a new one. before is what the user was, nil for a new one.
func (us *Users) Set(name string, rules []string) (a *Account, before *User, err error) {
	if hasSpaces(name) {
		return nil, nil, errors.New("Usernames can't contain spaces or null characters")
	}
	us.mu.Lock()
	defer us.mu.Unlock()
	from := newUser(name, us.AllChannels.Load())
	if a = us.byName[name]; a != nil {
		before = a.User()
		from = before
	}
	next, err := from.with(rules, us.AllChannels.Load())
	if err != nil {
		return nil, nil, err
	}
	if a == nil {
		a = &Account{}
		us.byName[name] = a
	}
	a.user.Store(next)
	us.decide()
	return a, before, nil
}

// SetPassword makes password the only one of the default user; an empty one means none is needed.
func (us *Users) SetPassword(password string) {
	rules := []string{"resetpass", "nopass"}
	if password != "" {
		rules[1] = ">" + password
	}
	_, _, _ = us.Set(Default, rules) // these rules apply
}

// Delete removes a user and returns the account, or nil. REQUIRES: it is not the default user.
func (us *Users) Delete(name string) *Account {
	us.mu.Lock()
	defer us.mu.Unlock()
	a := us.byName[name]
	delete(us.byName, name)
	if a != nil {
		a.user.Store(newUser(name, false)) // whoever still is this user may do nothing
	}
	us.decide()
	return a
}

// decide finds out whether checks are needed. REQUIRES: mu held.
func (us *Users) decide() {
	restricted := false
	for _, a := range us.byName {
		restricted = restricted || !a.User().Unrestricted
	}
	us.restricted.Store(restricted)
}

// Load replaces all users by those of a file: all or, with an error worded as Redis words it, none. gone are the
// accounts that exist no more.
func (us *Users) Load(path string) (gone []*Account, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("Error loading ACLs, opening file '%s': %s", path, osReason(err))
	}
	fresh, bad := us.parse(path, strings.Split(string(data), "\n"))
	if bad != "" {
		return nil, errors.New(bad + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed")
	}
	if fresh[Default] == nil {
		fresh[Default] = newDefault()
	}
	us.mu.Lock()
	defer us.mu.Unlock()
	old := us.byName
	us.byName = map[string]*Account{Default: us.def}
	for name, u := range fresh {
		if name != Default {
			us.byName[name] = &Account{}
		}
		us.byName[name].user.Store(u)
	}
	for name, a := range old {
		if name != Default {
			gone = append(gone, a)
			a.user.Store(newUser(name, false)) // whoever still is this user may do nothing
		}
	}
	us.decide()
	return gone, nil
}

// Define adds or replaces users: all that the lines declare, each "name rule ...", or none of them. source says in errors
// where the lines are from.
func (us *Users) Define(source string, lines []string) error {
	whole := make([]string, len(lines))
	for i, line := range lines {
		whole[i] = "user " + line
	}
	fresh, bad := us.parse(source, whole)
	if bad != "" {
		return errors.New(strings.TrimSpace(bad))
	}
	us.mu.Lock()
	defer us.mu.Unlock()
	for name, u := range fresh {
		if us.byName[name] == nil {
			us.byName[name] = &Account{}
		}
		us.byName[name].user.Store(u)
	}
	us.decide()
	return nil
}

// Lines returns the users as Define takes them, in the order of their names.
func (us *Users) Lines() []string {
	var out []string
	for _, u := range us.All() {
		out = append(out, u.Name+" "+u.String())
	}
	return out
}

// parse reads the users that lines declare. bad says what is wrong with them.
func (us *Users) parse(source string, lines []string) (fresh map[string]*User, bad string) {
	fresh = make(map[string]*User)
	var b strings.Builder
	for i, line := range lines {
		us.loadLine(fresh, source, i+1, strings.Trim(line, " \t\r\n"), &b)
	}
	return fresh, b.String()
}

// osReason is the system's word for an error.
func osReason(err error) string {
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		text := no.Error()
		return strings.ToUpper(text[:1]) + text[1:]
	}
	return err.Error()
}

func (us *Users) loadLine(fresh map[string]*User, path string, n int, line string, bad *strings.Builder) {
	if line == "" {
		return
	}
	words := strings.Split(line, " ")
	if words[0] != "user" || len(words) < 2 {
		fmt.Fprintf(bad, "%s:%d should start with user keyword followed by the username. ", path, n)
		return
	}
	name := words[1]
	switch {
	case hasSpaces(name):
		fmt.Fprintf(bad, "'%s:%d: username '%s' contains invalid characters. ", path, n, name)
		return
	case fresh[name] != nil:
		fmt.Fprintf(bad, "WARNING: Duplicate user '%s' found on line %d. ", name, n)
		return
	}
	rules, open := mergeSelectors(words[2:])
	if open != "" {
		fmt.Fprintf(bad, "%s:%d: Unmatched parenthesis in selector definition.", path, n)
		return
	}
	u, err := newUser(name, us.AllChannels.Load()).with(rules, us.AllChannels.Load())
	if re := (*ruleError)(nil); errors.As(err, &re) {
		if errors.Is(err, errUnknown) {
			fmt.Fprintf(bad, "%s:%d: Error in applying operation '%s': %s. ", path, n, re.rule, re.cause)
		} else {
			fmt.Fprintf(bad, "%s:%d: %s. ", path, n, re.cause)
		}
		return
	}
	fresh[name] = u
}

// Save writes all users to a file, which it replaces as a whole.
func (us *Users) Save(path string) error {
	var b strings.Builder
	for _, line := range us.Lines() {
		b.WriteString("user " + line + "\n")
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-")
	if err != nil {
		return err
	}
	_, err = f.WriteString(b.String())
	err = errors.Join(err, f.Chmod(fs.FileMode(0o644)), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
