package command

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestOracleDumpBytes: payloads of strings are redis-server's to the byte, compressed or not.
func TestOracleDumpBytes(t *testing.T) {
	o := startOracle(t)
	h := newHarness(t, 1)
	theirs := func(args ...string) string { return o.run(t, words(args...)) }
	rng := rand.New(rand.NewPCG(7, 7))
	texts := []string{"", "1", "-129", "40000", "2147483648", "99999999999", "999999999999", strings.Repeat("a", 20), strings.Repeat("a", 21)}
	for i := range 1200 {
		texts = append(texts, repetitive(rng, rng.IntN([]int{60, 700, 30000}[i%3])))
	}
	for _, text := range texts {
		h.run("SET", "k", text)
		theirs("SET", "k", text)
		if got, want := bulk(t, h.run("DUMP", "k")), bulk(t, theirs("DUMP", "k")); got != want {
			t.Fatalf("%d bytes %.200q\n got %.200q\nwant %.200q", len(text), text, got, want)
		}
	}
}

// repetitive returns n bytes of few letters, with parts that come again.
func repetitive(rng *rand.Rand, n int) string {
	var b strings.Builder
	letters := 1 + rng.IntN(256)
	for b.Len() < n {
		if at := b.Len(); at > 0 && rng.IntN(4) == 0 {
			from := rng.IntN(at)
			b.WriteString(b.String()[from:min(at, from+rng.IntN(400))])
			continue
		}
		for range 1 + rng.IntN(40) {
			b.WriteByte(byte(rng.IntN(letters)))
		}
	}
	return b.String()[:n]
}
