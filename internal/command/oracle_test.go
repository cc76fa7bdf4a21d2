package command

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// oracle is a real redis-server to compare replies with.
type oracle struct {
	conn    net.Conn
	r       *bufio.Reader
	version string
}

// startOracle starts the redis-server in PATH on a free port; the test is skipped without one.
func startOracle(t *testing.T) *oracle {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server in PATH")
	}
	o := startServer(t, path)
	if !o.older("7.3") {
		t.Skip("redis-server is", o.version, "but replies are those of 7.2")
	}
	return o
}

// startServer starts a redis-server on a free port.
func startServer(t *testing.T, path string) *oracle {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "",
		"--appendonly", "no", "--databases", "1", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	o := &oracle{}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		o.conn, err = net.Dial("tcp", l.Addr().String())
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { o.conn.Close() })
	o.r = bufio.NewReader(o.conn)
	for line := range strings.SplitSeq(o.run(t, words("INFO", "server")), "\r\n") {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			o.version = v
		}
	}
	return o
}

// older reports whether the server is older than version "major.minor".
func (o *oracle) older(version string) bool {
	number := func(s string) (n int) {
		for _, part := range strings.SplitN(s, ".", 3)[:2] {
			i, _ := strconv.Atoi(part)
			n = n*1000 + i
		}
		return n
	}
	return number(o.version) < number(version)
}

// run sends a request and returns the raw reply.
func (o *oracle) run(t *testing.T, args [][]byte) string {
	t.Helper()
	req := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		req = fmt.Appendf(req, "$%d\r\n%s\r\n", len(a), a)
	}
	_ = o.conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := o.conn.Write(req); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := readRaw(o.r, &out); err != nil {
		t.Fatalf("%.200q: %v", args, err)
	}
	return out.String()
}

func readRaw(r *bufio.Reader, out *bytes.Buffer) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	out.WriteString(line)
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '$', '=':
		if n >= 0 {
			_, err = io.CopyN(out, r, int64(n)+2)
		}
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		for ; n > 0 && err == nil; n-- {
			err = readRaw(r, out)
		}
	}
	return err
}

// step is one line of an oracle script.
type step struct {
	where   string
	args    [][]byte
	sorted  bool   // @sorted: arrays compare as sets
	since   string // @since7.2: not for older servers
	newCase bool   // follows an empty line: starts with no keys
}

// readSteps reads a script: one request a line, words as in a Go string when quoted; an empty line
// starts anew; # is a comment.
func readSteps(t *testing.T, path string) []step {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	newCase := true
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			newCase = true
			continue
		}
		if line[0] == '#' {
			continue
		}
		s := step{where: fmt.Sprintf("%s:%d", filepath.Base(path), i+1), newCase: newCase}
		newCase = false
		for line[0] == '@' {
			word, rest, _ := strings.Cut(line, " ")
			if v, ok := strings.CutPrefix(word, "@since"); ok {
				s.since = v
			}
			s.sorted = s.sorted || word == "@sorted"
			line = rest
		}
		for line != "" {
			word := line
			if line[0] == '"' {
				if word, err = strconv.QuotedPrefix(line); err != nil {
					t.Fatalf("%s: %v", s.where, err)
				}
			} else if i := strings.IndexByte(line, ' '); i >= 0 {
				word = line[:i]
			}
			line = strings.TrimLeft(line[len(word):], " ")
			if word[0] == '"' {
				if word, err = strconv.Unquote(word); err != nil {
					t.Fatalf("%s: %v", s.where, err)
				}
			}
			s.args = append(s.args, []byte(word))
		}
		steps = append(steps, s)
	}
	return steps
}

// sortReply orders the elements of arrays and sets, nested ones too.
func sortReply(s string) string {
	head, rest, _ := strings.Cut(s, "\r\n")
	if s[0] != '*' && s[0] != '~' {
		return s
	}
	var parts []string
	for rest != "" {
		behind, err := skipReply([]byte(rest))
		if err != nil {
			return s
		}
		end := len(rest) - len(behind)
		parts = append(parts, sortReply(rest[:end]))
		rest = rest[end:]
	}
	slices.Sort(parts)
	return head + "\r\n" + strings.Join(parts, "")
}

func TestOracleScripts(t *testing.T) {
	o := startOracle(t)
	paths, err := filepath.Glob("testdata/oracle/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, proto := range []int{2, 3} {
		o.run(t, words("HELLO", strconv.Itoa(proto)))
		for _, shards := range []int{1, 3} {
			for _, path := range paths {
				name := fmt.Sprintf("%s/resp%d/%dshards", filepath.Base(path), proto, shards)
				t.Run(name, func(t *testing.T) { runScript(t, o, path, proto, shards) })
			}
		}
	}
}

func runScript(t *testing.T, o *oracle, path string, proto, shards int) {
	var h *harness
	for _, s := range readSteps(t, path) {
		if s.newCase {
			h = newHarness(t, shards)
			o.run(t, words("FLUSHALL"))
		}
		if s.since != "" && o.older(s.since) {
			continue
		}
		h.w.Proto = proto
		h.ctx.Now = time.Now().UnixMilli()
		got, want := h.exec(s.args), o.run(t, s.args)
		if isWord(s.args[0], "xpending") {
			got, want = maskIdle(got), maskIdle(want)
		}
		if s.sorted {
			got, want = sortReply(got), sortReply(want)
		}
		slack := 0
		if isWord(s.args[0], "ttl") || isWord(s.args[min(1, len(s.args)-1)], "idletime") {
			slack = 1
		}
		if !sameReply(got, want, slack) {
			t.Errorf("%s: %.200q\n got  %.400q\n want %.400q", s.where, s.args, got, want)
		}
	}
}
