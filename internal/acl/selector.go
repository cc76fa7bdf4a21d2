package acl

import (
	"bytes"
	"slices"
	"strings"

	"github.com/kevydb/kevy/internal/command"
)

// Access to keys.
const (
	reads = 1 << iota
	writes
)

// pattern is a pattern of keys and what may be done with them.
type pattern struct {
	text   string
	access int
}

func (p pattern) String() string {
	switch p.access {
	case reads:
		return "%R~" + p.text
	case writes:
		return "%W~" + p.text
	}
	return "~" + p.text
}

// selector is a set of permissions: a command is allowed if one selector of the user allows all of it.
type selector struct {
	allKeys, allChannels bool
	future               bool     // commands that do not exist yet are allowed too: +@all came last
	allowed              []uint64 // a bit for each row, by ID
	all                  bool     // every bit is set
	keys                 []pattern
	channels             []string
	firstArgs            map[int][]string // by row: first arguments with which it is allowed all the same
	rules                []string         // behind +@all or -@all
}

func newSelector(allChannels bool) *selector {
	return &selector{allChannels: allChannels, allowed: make([]uint64, (len(command.All())+63)/64)}
}

func (s *selector) clone() *selector {
	c := *s
	c.allowed = slices.Clone(s.allowed)
	c.keys, c.channels, c.rules = slices.Clone(s.keys), slices.Clone(s.channels), slices.Clone(s.rules)
	c.firstArgs = make(map[int][]string, len(s.firstArgs))
	for id, words := range s.firstArgs {
		c.firstArgs[id] = slices.Clone(words)
	}
	return &c
}

// set applies one rule.
func (s *selector) set(op string) error {
	switch lower := strings.ToLower(op); {
	case lower == "allkeys" || lower == "~*":
		s.allKeys, s.keys = true, nil
	case lower == "resetkeys":
		s.allKeys, s.keys = false, nil
	case lower == "allchannels" || lower == "&*":
		s.allChannels, s.channels = true, nil
	case lower == "resetchannels":
		s.allChannels, s.channels = false, nil
	case lower == "allcommands" || lower == "+@all":
		s.setAll(true)
	case lower == "nocommands" || lower == "-@all":
		s.setAll(false)
	case op == "":
		return errSyntax
	case op[0] == '~' || op[0] == '%':
		return s.addKeys(op)
	case op[0] == '&':
		return s.addChannels(op[1:])
	case strings.HasPrefix(op, "+@") || strings.HasPrefix(op, "-@"):
		return s.setCategory(strings.ToLower(op[2:]), op[0] == '+')
	case op[0] == '+':
		return s.allow(strings.ToLower(op[1:]))
	case op[0] == '-':
		row := find(strings.ToLower(op[1:]))
		if row == nil {
			return errUnknown
		}
		s.setRow(row, false)
		s.addRule("-", row.Name)
	default:
		return errSyntax
	}
	return nil
}

func (s *selector) setAll(on bool) {
	for i := range s.allowed {
		s.allowed[i] = 0
		if on {
			s.allowed[i] = ^uint64(0)
		}
	}
	s.all, s.future, s.rules, s.firstArgs = on, on, nil, nil
}

func (s *selector) addKeys(op string) error {
	if s.allKeys {
		return errAllKeys
	}
	p := pattern{text: op[1:], access: reads | writes}
	if op[0] == '%' {
		access, text, ok := strings.Cut(op[1:], "~")
		p = pattern{text: text}
		for _, c := range strings.ToUpper(access) {
			bit := map[rune]int{'R': reads, 'W': writes}[c]
			if bit == 0 || p.access&bit != 0 {
				return errSyntax
			}
			p.access |= bit
		}
		if !ok || p.access == 0 {
			return errSyntax
		}
	}
	if hasSpaces(p.text) {
		return errSyntax
	}
	for i := range s.keys {
		if s.keys[i].text == p.text {
			s.keys[i].access |= p.access
			return nil
		}
	}
	s.keys = append(s.keys, p)
	return nil
}

func (s *selector) addChannels(text string) error {
	switch {
	case s.allChannels:
		return errAllChannels
	case hasSpaces(text):
		return errSyntax
	case !slices.Contains(s.channels, text):
		s.channels = append(s.channels, text)
	}
	return nil
}

func (s *selector) setCategory(name string, on bool) error {
	if !slices.Contains(Categories, name) {
		return errUnknown
	}
	sign := "-"
	if on {
		sign = "+"
	}
	s.addRule(sign, "@"+name)
	for _, row := range command.All() {
		if row.HasCategory(name) {
			s.setRow(row, on)
		}
	}
	return nil
}

// allow is +name, +container|sub or +name|first-argument.
func (s *selector) allow(name string) error {
	base, sub, several := cutLast(name)
	if !several {
		row := find(name)
		if row == nil {
			return errUnknown
		}
		s.setRow(row, true)
		s.addRule("+", row.Name)
		return nil
	}
	row := find(base)
	switch {
	case row == nil:
		return errUnknown
	case row.Container() != nil:
		return errFirstArg
	case sub == "":
		return errSyntax
	case len(row.Sub) > 0:
		child := find(name)
		if child == nil {
			return errUnknown
		}
		s.setRow(child, true)
	default:
		if s.firstArgs == nil {
			s.firstArgs = make(map[int][]string)
		}
		if !slices.Contains(s.firstArgs[row.ID], sub) {
			s.firstArgs[row.ID] = append(s.firstArgs[row.ID], sub)
		}
	}
	s.addRule("+", name)
	return nil
}

func cutLast(name string) (base, sub string, found bool) {
	i := strings.LastIndexByte(name, '|')
	if i < 0 {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}

// find returns the row of a command's full name in lower case.
func find(name string) *command.Command {
	base, sub, several := strings.Cut(name, "|")
	row := command.Lookup([]byte(base))
	if row == nil || !several {
		return row
	}
	return row.Subcommand([]byte(sub))
}

// setRow allows or forbids a command and its subcommands.
func (s *selector) setRow(row *command.Command, on bool) {
	bit := uint64(1) << (row.ID & 63)
	if on {
		s.allowed[row.ID>>6] |= bit
	} else {
		s.allowed[row.ID>>6] &^= bit
		s.all = false
	}
	delete(s.firstArgs, row.ID)
	for _, sub := range row.Sub {
		s.setRow(sub, on)
	}
}

// addRule notes a rule; it takes the place of those about the same command or a part of it.
func (s *selector) addRule(sign, name string) {
	s.rules = slices.DeleteFunc(s.rules, func(r string) bool {
		return r[1:] == name || strings.HasPrefix(r[1:], name+"|")
	})
	s.rules = append(s.rules, sign+name)
}

func (s *selector) commandRules() string {
	first := "-@all"
	if s.future {
		first = "+@all"
	}
	return strings.Join(append([]string{first}, s.rules...), " ")
}

func (s *selector) keyRules() string {
	if s.allKeys {
		return "~*"
	}
	words := make([]string, len(s.keys))
	for i, p := range s.keys {
		words[i] = p.String()
	}
	return strings.Join(words, " ")
}

func (s *selector) channelRules() string {
	if s.allChannels {
		return "&*"
	}
	words := make([]string, len(s.channels))
	for i, c := range s.channels {
		words[i] = "&" + c
	}
	return strings.Join(words, " ")
}

func (s *selector) String() string {
	var words []string
	if k := s.keyRules(); k != "" {
		words = append(words, k)
	}
	if !s.allChannels {
		words = append(words, "resetchannels")
	}
	if c := s.channelRules(); c != "" {
		words = append(words, c)
	}
	return strings.Join(append(words, s.commandRules()), " ")
}

// mayRun reports whether the command itself is allowed, keys and channels aside.
func (s *selector) mayRun(row *command.Command, args [][]byte) bool {
	if s.all || row.Flags&command.NoAuth != 0 || s.allowed[row.ID>>6]>>(row.ID&63)&1 != 0 {
		return true
	}
	at := 1
	if row.Container() != nil {
		at = 2
	}
	if at >= len(args) {
		return false
	}
	return slices.ContainsFunc(s.firstArgs[row.ID], func(w string) bool {
		return bytes.EqualFold(args[at], []byte(w))
	})
}

// mayUse reports whether a key may be accessed as asked.
func (s *selector) mayUse(key []byte, access int) bool {
	if s.allKeys {
		return true
	}
	for i := range s.keys {
		if p := &s.keys[i]; p.access&access == access && command.Match([]byte(p.text), key) {
			return true
		}
	}
	return false
}

// mayListen reports whether a channel, or a pattern of channels, may be used. A pattern must be one of the rules.
func mayListen(rules []string, channel []byte, isPattern bool) bool {
	for _, r := range rules {
		if isPattern && r == string(channel) || !isPattern && command.Match([]byte(r), channel) {
			return true
		}
	}
	return false
}

// readsAll reports whether every key may be read.
func (s *selector) readsAll() bool {
	return s.allKeys || slices.ContainsFunc(s.keys, func(p pattern) bool { return p.text == "*" && p.access&reads != 0 })
}

func hasSpaces(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r == 0 || r == ' ' || r >= '\t' && r <= '\r' })
}
