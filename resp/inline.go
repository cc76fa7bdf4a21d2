package resp

import "bytes"

// inline goes on with an inline request: a line of words as typed into telnet.
func (r *Reader) inline(b []byte) (bool, error) {
	q := &r.req
	i := bytes.IndexByte(b[q.scan:], '\n')
	if i < 0 {
		q.scan = len(b)
		if len(b) > maxLine {
			return false, errBigInline
		}
		return false, ErrIncomplete
	}
	end := q.scan + i
	if end > maxLine {
		return false, errBigInline
	}
	line := b[:end]
	if end > 0 && line[end-1] == '\r' {
		line = line[:end-1]
	}
	args, ok := splitWords(r.sc.args[:0], line)
	if !ok {
		return false, errQuotes
	}
	r.sc.args = args
	r.finish(end + 1)
	return len(args) > 0, nil
}

// splitWords appends the words of line to dst by Redis's rules: words are separated by white space
// and may have "quoted \n \x1f" and 'quoted' parts; behind a closing quote the word must end. Words are
// decoded in place, which never needs more room than they have. It returns false for
// unbalanced quotes.
func splitWords(dst [][]byte, line []byte) ([][]byte, bool) {
	i := 0
	for {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return dst, true
		}
		word, next, ok := takeWord(line, i)
		if !ok {
			return dst, false
		}
		dst = append(dst, word)
		i = next
	}
}

// takeWord decodes the word at line[i:] in place and returns it with the offset behind it.
func takeWord(line []byte, i int) (word []byte, next int, ok bool) {
	begin, w := i, i
	for i < len(line) {
		c := line[i]
		switch c {
		case ' ', '\n', '\r', '\t':
			return line[begin:w:w], i, true
		case '"', '\'':
			if w, i, ok = takeQuoted(line, w, i+1, c); !ok {
				return nil, i, false
			}
			return line[begin:w:w], i, true
		}
		line[w] = c
		w++
		i++
	}
	return line[begin:w:w], i, true
}

// takeQuoted decodes up to the closing quote; i is behind the opening one and w is where decoded
// bytes go. Nothing but white space may follow the closing quote.
func takeQuoted(line []byte, w, i int, quote byte) (int, int, bool) {
	for i < len(line) {
		c := line[i]
		i++
		switch {
		case c == quote:
			return w, i, i == len(line) || isSpace(line[i])
		case c == '\\' && quote == '\'':
			if i < len(line) && line[i] == '\'' {
				c = '\''
				i++
			}
		case c == '\\' && i+2 < len(line) && line[i] == 'x' && isHex(line[i+1]) && isHex(line[i+2]):
			c = hexDigit(line[i+1])<<4 | hexDigit(line[i+2])
			i += 3
		case c == '\\' && i < len(line):
			c = unescape(line[i])
			i++
		}
		line[w] = c
		w++
	}
	return w, i, false
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func hexDigit(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
