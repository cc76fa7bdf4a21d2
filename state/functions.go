package state

import (
	"bytes"
	"slices"
	"strings"

	"github.com/kevydb/kevy/log/effect"
)

// Library is a library of functions (FUNCTION LOAD): its name and its whole code, header line included.
type Library struct{ Name, Code string }

// Libraries is a set of libraries, by name. It never changes: a fold makes a new one, so a pointer tells whether
// something has changed, and a view keeps the one it was taken with.
type Libraries struct{ list []Library }

// List returns the libraries in the order of their names. Read-only.
func (l *Libraries) List() []Library {
	if l == nil {
		return nil
	}
	return l.list
}

// find returns where the library is or belongs.
func (l *Libraries) find(name string) (at int, ok bool) {
	return slices.BinarySearchFunc(l.List(), name, func(x Library, n string) int { return strings.Compare(x.Name, n) })
}

// Libraries returns the libraries as they are. Only shard 0 has any. They are no keys: they are not in the digest,
// have no deadline, and FLUSHALL leaves them.
func (ks *Keyspace) Libraries() *Libraries { return ks.libs }

// RebuildLibraries calls f with the effects that make the libraries on an empty keyspace, until f returns false.
func (l *Libraries) RebuildLibraries(f func(*effect.Effect) bool) bool {
	for _, x := range l.List() {
		e := effect.Effect{Op: effect.Function, Args: [][]byte{[]byte("LOAD"), []byte("REPLACE"), []byte(x.Code)}}
		if !f(&e) {
			return false
		}
	}
	return true
}

// foldFunction folds FUNCTION LOAD REPLACE code, FUNCTION DELETE name and FUNCTION FLUSH.
func (ks *Keyspace) foldFunction(e *effect.Effect) (Change, error) {
	a := e.Args
	switch {
	case len(a) == 3 && isWord(a[0], "LOAD") && isWord(a[1], "REPLACE"):
		name, ok := LibraryName(a[2])
		if !ok || len(a[2]) > MaxValue {
			return Change{}, fail(e, "library")
		}
		ks.libs = ks.libs.with(Library{Name: name, Code: string(a[2])})
	case len(a) == 2 && isWord(a[0], "DELETE"):
		ks.libs = ks.libs.without(string(a[1]))
	case len(a) == 1 && isWord(a[0], "FLUSH"):
		ks.libs = nil
	default:
		return Change{}, fail(e, "subcommand")
	}
	return Change{}, nil
}

func isWord(b []byte, word string) bool { return strings.EqualFold(string(b), word) }

func (l *Libraries) with(x Library) *Libraries {
	list := slices.Clone(l.List())
	at, ok := l.find(x.Name)
	if ok {
		list[at] = x
	} else {
		list = slices.Insert(list, at, x)
	}
	return &Libraries{list}
}

func (l *Libraries) without(name string) *Libraries {
	at, ok := l.find(name)
	if !ok {
		return l
	}
	return &Libraries{slices.Delete(slices.Clone(l.list), at, at+1)}
}

// LibraryName finds the name in a library's header line: "#!lua name=mylib". A word of it may be quoted.
func LibraryName(code []byte) (name string, ok bool) {
	end := bytes.IndexByte(code, '\n')
	if end < 0 || !bytes.HasPrefix(code, []byte("#!")) {
		return "", false
	}
	words, ok := SplitWords(string(code[:end]))
	if !ok {
		return "", false
	}
	for _, w := range words[1:] {
		if len(w) > 5 && strings.EqualFold(w[:5], "name=") {
			return w[5:], true
		}
	}
	return "", false
}

// SplitWords splits a line at spaces as Redis splits inline requests: words may be quoted, in double quotes with escapes. It
// reports false for unbalanced quotes.
func SplitWords(line string) (words []string, ok bool) {
	i := 0
	for {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return words, true
		}
		var w []byte
		if w, i, ok = splitWord(line, i); !ok {
			return nil, false
		}
		words = append(words, string(w))
	}
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' || c == 0 }

func splitWord(s string, i int) (w []byte, next int, ok bool) {
	var quote byte
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == 0 && isSpace(c):
			return w, i, true
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == '"' && c == '\\' && i+1 < len(s):
			var n int
			c, n = unescape(s[i+1:])
			w = append(w, c)
			i += n
		case quote == '\'' && c == '\\' && i+1 < len(s) && s[i+1] == '\'':
			w = append(w, '\'')
			i++
		case quote != 0 && c == quote:
			return w, i + 1, i+1 == len(s) || isSpace(s[i+1])
		default:
			w = append(w, c)
		}
	}
	return w, i, quote == 0
}

// unescape reads what follows a backslash.
func unescape(s string) (c byte, n int) {
	if s[0] == 'x' && len(s) >= 3 && isHex(s[1]) && isHex(s[2]) {
		return hexDigit(s[1])<<4 | hexDigit(s[2]), 3
	}
	switch s[0] {
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'b':
		return '\b', 1
	case 'a':
		return '\a', 1
	}
	return s[0], 1
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

func hexDigit(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
