package acl

import (
	"slices"
	"strings"

	"github.com/kevydb/kevy/internal/command"
)

// Reason is why something was denied.
type Reason int

// The reasons, the weightier the later.
const (
	Granted Reason = iota
	DeniedCommand
	DeniedKey
	DeniedAuth
	DeniedChannel
)

func (r Reason) String() string {
	return [...]string{"ok", "command", "key", "auth", "channel"}[r]
}

// Check decides about a request. at is the position of the key or channel that was denied, else 0.
func (u *User) Check(row *command.Command, args [][]byte) (why Reason, at int) {
	if u.Unrestricted {
		return Granted, 0
	}
	why = DeniedCommand
	var keys []int
	var known bool
	for _, s := range u.selectors {
		if !known && !s.allKeys && row.HasKeys() {
			keys, known = command.KeyPositions(row, args, nil), true
		}
		r, i := s.check(row, args, keys)
		if r == Granted {
			return Granted, 0
		}
		if r > why || r == why && i > at {
			why, at = r, i
		}
	}
	return why, at
}

func (s *selector) check(row *command.Command, args [][]byte, keys []int) (Reason, int) {
	if !s.mayRun(row, args) {
		return DeniedCommand, 0
	}
	if !s.allKeys {
		for _, i := range keys {
			flags := row.KeyFlagsAt(args, i)
			if !slices.Contains(flags, "not_key") && !s.mayUse(args[i], accessOf(flags)) {
				return DeniedKey, i
			}
		}
		if !s.mayUsePrefix(row, args) {
			return DeniedKey, min(1, len(args)-1)
		}
	}
	if s.allChannels {
		return Granted, 0
	}
	from, to, isPattern := channelsOf(row, args)
	for i := from; i < to; i++ {
		if !mayListen(s.channels, args[i], isPattern) {
			return DeniedChannel, i
		}
	}
	return Granted, 0
}

// mayUsePrefix decides about kevy's own commands, which show or change keys that the request does not name: those of a
// prefix, which a rule must cover, or all keys.
func (s *selector) mayUsePrefix(row *command.Command, args [][]byte) bool {
	prefix := ""
	switch {
	case row.Name == "feed.read", row.Name == "feed.scan":
	case strings.HasPrefix(row.Name, "prefix."):
		if len(args) > 1 {
			prefix = string(args[1])
		}
	default:
		return true
	}
	access := reads
	if row.Flags&command.Write != 0 {
		access |= writes
	}
	return slices.ContainsFunc(s.keys, func(p pattern) bool {
		literal, ok := strings.CutSuffix(p.text, "*")
		return ok && p.access&access == access && !strings.ContainsAny(literal, "*?[\\") && strings.HasPrefix(prefix, literal)
	})
}

// accessOf tells from the flags of a key what a command does with it.
func accessOf(flags []string) (access int) {
	for _, f := range flags {
		switch f {
		case "access":
			access |= reads
		case "insert", "delete", "update":
			access |= writes
		}
	}
	return access
}

// channelsOf returns where a request names channels that it publishes to or listens to.
func channelsOf(row *command.Command, args [][]byte) (from, to int, isPattern bool) {
	switch row.Name {
	case "subscribe", "ssubscribe":
		return 1, len(args), false
	case "psubscribe":
		return 1, len(args), true
	case "publish", "spublish":
		return 1, 2, false
	}
	return 0, 0, false
}

// ReadsAll reports whether a request that names its keys may read any other key as well (SORT's BY and GET).
func (u *User) ReadsAll(row *command.Command, args [][]byte) bool {
	if u.Unrestricted {
		return true
	}
	for _, s := range u.selectors {
		if r, _ := s.check(row, args, command.KeyPositions(row, args, nil)); r == Granted && s.readsAll() {
			return true
		}
	}
	return false
}

// Explain words a denial. With verbose it names the key or channel, as ACL DRYRUN does.
func (u *User) Explain(why Reason, row *command.Command, args [][]byte, at int, verbose bool) string {
	what := map[Reason]string{DeniedKey: "key", DeniedChannel: "channel"}[why]
	switch {
	case what == "":
		return "User " + u.Name + " has no permissions to run the '" + row.Name + "' command"
	case verbose:
		return "User " + u.Name + " has no permissions to access the '" + string(args[at]) + "' " + what
	}
	return "No permissions to access a " + what
}

// KeepsChannels reports whether next may listen to all that u may listen to, as far as the rules tell.
func (u *User) KeepsChannels(next *User) bool {
	rules, all := next.channelRules()
	if all {
		return true
	}
	for _, s := range u.selectors {
		if s.allChannels {
			return false
		}
		for _, c := range s.channels {
			if !slices.Contains(rules, c) {
				return false
			}
		}
	}
	return true
}

func (u *User) channelRules() (rules []string, all bool) {
	for _, s := range u.selectors {
		all = all || s.allChannels
		rules = append(rules, s.channels...)
	}
	return rules, all
}

// MayKeep reports whether a client may go on listening to channels and patterns.
func (u *User) MayKeep(channels, patterns []string) bool {
	rules, all := u.channelRules()
	if all {
		return true
	}
	for _, c := range channels {
		if !mayListen(rules, []byte(c), false) {
			return false
		}
	}
	for _, p := range patterns {
		if !mayListen(rules, []byte(p), true) {
			return false
		}
	}
	return true
}
