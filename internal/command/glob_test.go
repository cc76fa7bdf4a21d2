package command

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// redisMatch is the recursive matcher of Redis, over the same pattern elements: a check on glob's loop.
// The elements themselves are checked by TestOracleGlob.
func redisMatch(p, s []byte, skip *bool) bool {
	at := func(i int) byte { // C strings end in a NUL
		if i < len(p) {
			return p[i]
		}
		return 0
	}
	for len(p) > 0 && len(s) > 0 {
		if p[0] == '*' {
			for at(1) == '*' {
				p = p[1:]
			}
			if len(p) == 1 {
				return true
			}
			for ; len(s) > 0; s = s[1:] {
				if redisMatch(p[1:], s, skip) {
					return true
				}
				if *skip {
					return false
				}
			}
			*skip = true
			return false
		}
		next, ok := matchByte(p, 0, s[0])
		if !ok {
			return false
		}
		p, s = p[next:], s[1:]
		if len(s) == 0 {
			for len(p) > 0 && p[0] == '*' {
				p = p[1:]
			}
			break
		}
	}
	return len(p) == 0 && len(s) == 0
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", false},
		{"*", "a", true},
		{"**", "abc", true},
		{"a*", "a", true},
		{"a*", "b", false},
		{"*a", "ba", true},
		{"*a", "ab", false},
		{"a**", "a", true},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"?", "", false},
		{"h[ae]llo", "hallo", true},
		{"h[ae]llo", "hillo", false},
		{"h[^e]llo", "hello", false},
		{"h[^e]llo", "hallo", true},
		{"h[a-b]llo", "hbllo", true},
		{"h[b-a]llo", "hbllo", true},
		{"h[a-b]llo", "hcllo", false},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`a\`, `a\`, true},
		{`\\`, `\`, true},
		{`[\]]`, "]", true},
		{`[\]]`, `\`, false},
		{"[]", "a", false},
		{"[^]", "a", true},
		{"[", "a", false},
		{"[^", "a", true},
		{"[a", "a", true},
		{"[a-", "a", true},
		{"[a-", "-", true},
		{"[a-]", "-", false},
		{"[a-]", "^", true},
		{`[a\`, `\`, true},
		{"*a*b*c*", "xaxbxcx", true},
		{"*a*b*c*", "xaxcxbx", false},
		{"a*b?d", "axxbcd", true},
		{"*[ab]", "xb", true},
		{"foo*", "foo", true},
		{"a", "aa", false},
	} {
		if got := glob([]byte(c.pattern), []byte(c.s)); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.s, got)
		}
	}
}

// TestGlobMatchesRedis compares with the recursive matcher on random input.
func TestGlobMatchesRedis(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(alphabet string, most int) []byte {
		b := make([]byte, r.IntN(most+1))
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		return b
	}
	for range 300_000 {
		pattern, s := draw(`ab*?[]^-\*`, 9), draw("ab-]", 8)
		var skip bool
		if got, want := glob(pattern, s), redisMatch(pattern, s, &skip); got != want {
			t.Fatalf("glob(%q, %q) = %v, Redis says %v", pattern, s, got, want)
		}
	}
}

func TestGlobIsNotExponential(t *testing.T) {
	pattern := []byte(strings.Repeat("a*", 5000) + "b")
	s := []byte(strings.Repeat("a", 20_000))
	start := time.Now()
	if glob(pattern, s) {
		t.Error("matched")
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestLiteralPrefix(t *testing.T) {
	for pattern, want := range map[string]string{
		"abc*": "abc", "a?c": "a", "[a]": "", `a\*`: "a", "*": "", "abc": "abc", "": "",
	} {
		got, whole := literalPrefix([]byte(pattern))
		if string(got) != want || whole != (pattern == want) {
			t.Errorf("literalPrefix(%q) = %q, %v", pattern, got, whole)
		}
	}
}
