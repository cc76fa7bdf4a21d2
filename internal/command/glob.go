package command

// Match reports whether s matches a pattern as KEYS and PSUBSCRIBE have them.
func Match(pattern, s []byte) bool { return glob(pattern, s) }

// glob reports whether s matches pattern exactly as Redis's stringmatchlen does, its corner cases
// included: * and ? and [abc], [^a-z], \x. Only the last * is ever reconsidered, so the work is at
// most len(pattern) times len(s).
func glob(pattern, s []byte) bool {
	p, i := 0, 0
	star, mark := -1, 0 // pattern behind the last *, and where in s it is tried
	for p < len(pattern) && i < len(s) || star >= 0 && i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			p = skipStars(pattern, p)
			if p == len(pattern) {
				return true
			}
			star, mark = p, i
			continue
		}
		if p < len(pattern) {
			if next, ok := matchByte(pattern, p, s[i]); ok {
				p, i = next, i+1
				if i == len(s) {
					p = skipStars(pattern, p)
				}
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		p, i = star, mark
	}
	return p == len(pattern) && i == len(s)
}

func skipStars(pattern []byte, p int) int {
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p
}

// matchByte matches one byte against the pattern element at p and returns where the next element
// begins.
func matchByte(pattern []byte, p int, b byte) (next int, ok bool) {
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '[':
		return matchClass(pattern, p+1, b)
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
	}
	return p + 1, pattern[p] == b
}

// matchClass matches one byte against the class whose first byte is at p. A class that is not
// closed ends with the pattern.
func matchClass(pattern []byte, p int, b byte) (next int, ok bool) {
	not := p < len(pattern) && pattern[p] == '^'
	if not {
		p++
	}
	match := false
	for ; p < len(pattern) && pattern[p] != ']'; p++ {
		switch {
		case pattern[p] == '\\' && p+1 < len(pattern):
			p++
			match = match || pattern[p] == b
		case p+2 < len(pattern) && pattern[p+1] == '-':
			low, high := int8(pattern[p]), int8(pattern[p+2]) // char is signed in Redis
			if low > high {
				low, high = high, low
			}
			match = match || (int8(b) >= low && int8(b) <= high)
			p += 2
		default:
			match = match || pattern[p] == b
		}
	}
	return min(p+1, len(pattern)), match != not
}

// literalPrefix returns the bytes every match of pattern begins with, and whether pattern is
// nothing but these.
func literalPrefix(pattern []byte) (prefix []byte, whole bool) {
	for i, b := range pattern {
		switch b {
		case '*', '?', '[', '\\':
			return pattern[:i], false
		}
	}
	return pattern, true
}
