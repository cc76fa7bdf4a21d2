package command

import "bytes"

// KeyPositions appends the positions of the request's keys to buf. A request whose keys cannot be
// found (its planner will reply a syntax error) has none.
func KeyPositions(c *Command, args [][]byte, buf []int) []int {
	if c.Keys != nil {
		if pos, ok := c.Keys(args, buf); ok {
			return pos
		}
		return buf
	}
	if c.FirstKey == 0 {
		return buf
	}
	last := c.LastKey
	if last < 0 {
		last += len(args)
	}
	last = min(last, len(args)-1)
	for i := c.FirstKey; i <= last; i += c.Step {
		buf = append(buf, i)
	}
	return buf
}

// HasKeys reports whether requests of c may name keys.
func (c *Command) HasKeys() bool { return c.FirstKey > 0 || c.Keys != nil }

// KeyFlagsAt returns what a request does with the key at position pos, in the words of key specifications.
func (c *Command) KeyFlagsAt(args [][]byte, pos int) []string { return c.keyFlags(args, pos) }

// keyFlags returns the flags of the key at position pos of a request, for COMMAND GETKEYSANDFLAGS.
func (c *Command) keyFlags(args [][]byte, pos int) []string {
	if c.KeyFlags != nil {
		return c.KeyFlags(args)
	}
	for i := range c.KeySpecs {
		if c.KeySpecs[i].covers(args, pos) {
			return c.KeySpecs[i].Flags
		}
	}
	return nil
}

// covers reports whether the key at position pos of a request is one that the specification tells of.
func (s *KeySpec) covers(args [][]byte, pos int) bool {
	begin := s.BeginIndex
	if s.Unknown && s.Keyword == "" {
		return false
	}
	if s.Keyword != "" {
		lower := string(bytes.ToLower([]byte(s.Keyword)))
		for begin = s.StartFrom; begin < len(args) && !isWord(args[begin], lower); begin++ {
		}
		begin++
	}
	if s.NumKeys {
		n, ok := parseInt(args[min(begin, len(args)-1)])
		return ok && pos > begin && int64(pos-begin) <= n
	}
	last := s.LastKey + begin
	if s.LastKey < 0 {
		last = s.LastKey + len(args)
	}
	return pos >= begin && pos <= last && (pos-begin)%max(1, s.Step) == 0
}

// numberedKeys returns a Keys function: the number of keys stands at position at, the keys behind it, and
// other keys at the positions given.
func numberedKeys(at int, others ...int) func([][]byte, []int) ([]int, bool) {
	return func(args [][]byte, pos []int) ([]int, bool) {
		if at >= len(args) {
			return pos, false
		}
		n, ok := parseInt(args[at])
		if !ok || n < 1 || n > int64(len(args)-at-1) {
			return pos, false
		}
		pos = append(pos, others...)
		for i := range int(n) {
			pos = append(pos, at+1+i)
		}
		return pos, true
	}
}
