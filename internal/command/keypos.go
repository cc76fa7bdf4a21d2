package command

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

// keyFlags returns the flags of the key at position pos of a request, for COMMAND GETKEYSANDFLAGS.
func (c *Command) keyFlags(args [][]byte, pos int) []string {
	if c.KeyFlags != nil {
		return c.KeyFlags(args)
	}
	for i := range c.KeySpecs {
		s := &c.KeySpecs[i]
		last := s.LastKey + s.BeginIndex
		if s.LastKey < 0 {
			last = s.LastKey + len(args)
		}
		if pos >= s.BeginIndex && pos <= last && (pos-s.BeginIndex)%max(1, s.Step) == 0 {
			return s.Flags
		}
	}
	return nil
}
