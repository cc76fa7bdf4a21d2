package oracle

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/proc"
)

var rewrite = flag.Bool("rewrite", false, "record the scripts' replies anew from redis-server")

func scripts(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	return paths
}

// TestScripts wants of kevy what redis-server answered.
func TestScripts(t *testing.T) {
	if *rewrite {
		t.Skip("recording from redis-server")
	}
	addr := proc.ForTest(t, "--shards", "4", "--appendfsync", "no").Addr
	for _, path := range scripts(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			playScript(t, addr, path, (*entry).forKevy)
		})
	}
}

// TestScriptsAreRedis makes sure that the recorded replies are redis-server's.
func TestScriptsAreRedis(t *testing.T) {
	addr := proc.RedisForTest(t).Addr
	for _, path := range scripts(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := playScript(t, addr, path, func(e *entry) []string { return e.want })
			if *rewrite {
				if err := os.WriteFile(path, []byte(s.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// playScript runs a script and compares each reply with what want says; with -rewrite it stores
// the replies instead.
func playScript(t *testing.T, addr, path string, want func(*entry) []string) script {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := parseScript(string(src))
	p := &player{addr: addr}
	defer p.close()
	if err := p.flush(); err != nil {
		t.Fatal(err)
	}
	for i := range s.entries {
		e := &s.entries[i]
		got, err := p.play(e)
		if err != nil {
			t.Fatalf("%s:%d: %s: %v", path, e.line, e.text, err)
		}
		if *rewrite {
			e.want = got
			continue
		}
		if w := want(e); !slices.Equal(got, w) {
			t.Errorf("%s:%d: %.200s\nwant: %s\ngot:  %s", path, e.line, e.text, indent(w), indent(got))
		}
	}
	return s
}

func indent(lines []string) string { return strings.Join(lines, "\n      ") }

func TestScriptRoundTrip(t *testing.T) {
	src := "# c\n> SET a \"b c\"\n+OK\n\n!conn 1\n> GET a\n$\"b c\"\nkevy: why\n$x\n"
	if got := parseScript(src).String(); got != src {
		t.Errorf("got:\n%s\nwant:\n%s", got, src)
	}
	w, err := words(`a "b\x00" "x"*3 c`)
	if want := []string{"a", "b\x00", "xxx", "c"}; err != nil || !slices.Equal(w, want) {
		t.Errorf("words: %q, %v", w, err)
	}
}
