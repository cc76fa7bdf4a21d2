//lint:file-ignore ST1005 errors are worded as Redis words them

package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Categories are the names of all categories, in the order of ACL CAT.
var Categories = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo", "stream",
	"pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting",
}

var (
	errUnknown = errors.New("Unknown command or category name in ACL")
	errSyntax  = errors.New("Syntax error")
	errAllKeys = errors.New("Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any " +
		"effect. Try 'resetkeys' to start with an empty list of patterns")
	errAllChannels = errors.New("Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have " +
		"any effect. Try 'resetchannels' to start with an empty list of channels")
	errNoPassword = errors.New("The password you are trying to remove from the user does not exist")
	errHash       = errors.New("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters")
	errFirstArg   = errors.New("Allowing first-arg of a subcommand is not supported")
)

// User is what one user may do. Immutable.
type User struct {
	Name         string
	Enabled      bool
	NoPassword   bool // any password will do
	SkipSanitize bool
	Passwords    []string // SHA-256, in hex
	// Unrestricted says that the root selector allows everything.
	Unrestricted bool

	selectors []*selector // the first is the root
}

// newUser returns a user who may do nothing.
func newUser(name string, allChannels bool) *User {
	return &User{Name: name, selectors: []*selector{newSelector(allChannels)}}
}

func (u *User) clone() *User {
	c := *u
	c.Passwords = slices.Clone(u.Passwords)
	c.selectors = make([]*selector, len(u.selectors))
	for i, s := range u.selectors {
		c.selectors[i] = s.clone()
	}
	return &c
}

// with returns u changed by rules; allChannels is what acl-pubsub-default says. The error is worded as Redis words it.
func (u *User) with(rules []string, allChannels bool) (*User, error) {
	rules, bad := mergeSelectors(rules)
	if bad != "" {
		return nil, fmt.Errorf("Unmatched parenthesis in acl selector starting at '%s'.", bad)
	}
	c := u.clone()
	for _, r := range rules {
		if err := c.set(r, allChannels); err != nil {
			return nil, &ruleError{rule: r, cause: err}
		}
	}
	root := c.selectors[0]
	c.Unrestricted = root.all && root.allKeys && root.allChannels
	return c, nil
}

// ruleError is a rule that does not apply.
type ruleError struct {
	rule  string
	cause error
}

func (e *ruleError) Error() string {
	return "Error in ACL SETUSER modifier '" + e.rule + "': " + e.cause.Error()
}

func (e *ruleError) Unwrap() error { return e.cause }

// mergeSelectors joins the words of each selector in parentheses; bad is the start of one that does not end.
func mergeSelectors(words []string) (out []string, bad string) {
	open := ""
	for _, w := range words {
		switch {
		case open != "":
			open += " " + w
		case strings.HasPrefix(w, "("):
			open = w
		default:
			out = append(out, w)
			continue
		}
		if strings.HasSuffix(w, ")") {
			out = append(out, open)
			open = ""
		}
	}
	if open != "" {
		return nil, strings.Fields(open + " ")[0]
	}
	return out, ""
}

// set applies one rule. REQUIRES: u is not published yet.
func (u *User) set(op string, allChannels bool) error {
	switch lower := strings.ToLower(op); {
	case op == "":
	case lower == "on" || lower == "off":
		u.Enabled = lower == "on"
	case lower == "skip-sanitize-payload" || lower == "sanitize-payload":
		u.SkipSanitize = lower == "skip-sanitize-payload"
	case lower == "nopass" || lower == "resetpass":
		u.NoPassword, u.Passwords = lower == "nopass", nil
	case strings.ContainsRune("><#!", rune(op[0])):
		return u.setPassword(op)
	case op[0] == '(' && op[len(op)-1] == ')':
		s := newSelector(allChannels)
		for w := range strings.FieldsSeq(op[1 : len(op)-1]) {
			if err := s.set(w); err != nil {
				return err
			}
		}
		u.selectors = append(u.selectors, s)
	case lower == "clearselectors":
		u.selectors = u.selectors[:1]
	case lower == "reset":
		fresh := newUser(u.Name, allChannels)
		*u = *fresh
	default:
		return u.selectors[0].set(op)
	}
	return nil
}

func (u *User) setPassword(op string) error {
	hash := op[1:]
	if op[0] == '>' || op[0] == '<' {
		hash = Hash([]byte(op[1:]))
	} else if len(hash) != 2*sha256.Size || strings.Trim(hash, "0123456789abcdef") != "" {
		return errHash
	}
	at := slices.Index(u.Passwords, hash)
	if op[0] == '>' || op[0] == '#' {
		if at < 0 {
			u.Passwords = append(u.Passwords, hash)
		}
		u.NoPassword = false
		return nil
	}
	if at < 0 {
		return errNoPassword
	}
	u.Passwords = slices.Delete(u.Passwords, at, at+1)
	return nil
}

// Hash returns the form in which a password is kept.
func Hash(password []byte) string {
	sum := sha256.Sum256(password)
	return hex.EncodeToString(sum[:])
}

// accepts reports whether the user is enabled and the password one of theirs, in a time that does not tell which.
func (u *User) accepts(password []byte) bool {
	if !u.Enabled || u.NoPassword {
		return u.Enabled
	}
	hash, ok := []byte(Hash(password)), 0
	for _, p := range u.Passwords {
		ok |= subtle.ConstantTimeCompare(hash, []byte(p))
	}
	return ok == 1
}

// Open reports whether connections are this user without a password.
func (u *User) Open() bool { return u.Enabled && u.NoPassword }

// Flags are the user's flags as ACL GETUSER shows them.
func (u *User) Flags() []string {
	flags := []string{"off"}
	if u.Enabled {
		flags[0] = "on"
	}
	if u.NoPassword {
		flags = append(flags, "nopass")
	}
	if u.SkipSanitize {
		return append(flags, "skip-sanitize-payload")
	}
	return append(flags, "sanitize-payload")
}

// Permissions are a selector's rules in the form of ACL GETUSER.
type Permissions struct{ Commands, Keys, Channels string }

// Selectors returns the permissions of all selectors, the root first.
func (u *User) Selectors() []Permissions {
	out := make([]Permissions, len(u.selectors))
	for i, s := range u.selectors {
		out[i] = Permissions{s.commandRules(), s.keyRules(), s.channelRules()}
	}
	return out
}

// String is the user's line in ACL LIST and in files, without "user NAME".
func (u *User) String() string {
	words := u.Flags()
	for _, p := range u.Passwords {
		words = append(words, "#"+p)
	}
	words = append(words, u.selectors[0].String())
	for _, s := range u.selectors[1:] {
		words = append(words, "("+s.String()+")")
	}
	return strings.Join(words, " ")
}
