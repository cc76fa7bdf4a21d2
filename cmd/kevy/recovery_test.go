package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// recoveryDoc runs the blocks of docs/recovery.md in a directory where ./kevy-data is in use by a server.
type recoveryDoc struct {
	t        *testing.T
	dir      string
	srv      *proc.Server
	conn     *wire.Conn
	restored *proc.Server
	env      []string
	blocks   map[string][]string // by section
	ran      int
}

func TestRecoveryDoc(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("redis-cli is not installed (apt-get install redis-tools)")
	}
	bin, err := proc.Kevy()
	if err != nil {
		t.Fatal(err)
	}
	r := &recoveryDoc{t: t, dir: t.TempDir(), blocks: docBlocks(t, "../../docs/recovery.md")}
	tools := t.TempDir()
	if err := os.Symlink(bin, filepath.Join(tools, "kevy")); err != nil {
		t.Fatal(err)
	}
	r.env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
	r.srv = startServer(t, filepath.Join(r.dir, "kevy-data"), "--shards", "3", "--log-keep-bytes", "1gb",
		"--archive-url", "file://"+r.backups(), "--archive-interval", "100ms")
	r.conn = dial(t, r.srv.Addr)
	lost := r.flushall()
	r.massDel()
	deployed := r.deploy()
	r.archived(lost, deployed)
	r.lostArchive()
	r.run("What can be restored", 0)
	r.lost()
	r.damage()
	total := 0
	for _, b := range r.blocks {
		total += len(b)
	}
	if r.ran != total || total < 10 {
		t.Errorf("%d of %d blocks were run", r.ran, total)
	}
}

// docBlocks returns the sh blocks of a document by its sections.
func docBlocks(t *testing.T, name string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string][]string{}
	for part := range strings.SplitSeq(string(text), "\n## ") {
		title, rest, _ := strings.Cut(part, "\n")
		for {
			var block string
			var ok bool
			if _, rest, ok = strings.Cut(rest, "```sh\n"); !ok {
				break
			}
			block, rest, _ = strings.Cut(rest, "```\n")
			blocks[title] = append(blocks[title], block)
		}
	}
	return blocks
}

// run runs a block, with the ports, and 10:42, replaced by those of the test, and returns what it printed.
func (r *recoveryDoc) run(section string, n int, times ...string) string {
	r.t.Helper()
	if n >= len(r.blocks[section]) {
		r.t.Fatalf("section %q has %d blocks", section, len(r.blocks[section]))
	}
	r.ran++
	var out bytes.Buffer
	for line := range strings.Lines(r.blocks[section][n]) {
		line = strings.ReplaceAll(strings.TrimSpace(line), "6379", fmt.Sprint(r.srv.Port))
		line = strings.ReplaceAll(line, "/var/backups/kevy", r.backups())
		for _, t := range times {
			line = strings.ReplaceAll(line, "10:42", t)
		}
		if dir, ok := strings.CutPrefix(line, "kevy --dir "); ok { // a server in the foreground
			dir, _, _ = strings.Cut(dir, " ")
			r.restored = startServer(r.t, filepath.Join(r.dir, dir))
			continue
		}
		if r.restored != nil {
			line = strings.ReplaceAll(line, "6400", fmt.Sprint(r.restored.Port))
		}
		cmd := exec.Command("bash", "-c", line)
		cmd.Dir, cmd.Env = r.dir, r.env
		text, err := cmd.CombinedOutput()
		fmt.Fprintf(&out, "$ %s\n%s", line, text)
		if code := cmd.ProcessState.ExitCode(); code != exitOK && code != exitFound {
			r.t.Fatalf("%s: %v\n%s", line, err, text)
		}
	}
	r.t.Logf("%s", out.Bytes())
	return out.String()
}

func (r *recoveryDoc) must(args ...string) string {
	r.t.Helper()
	reply, err := r.conn.Must(args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return reply.String()
}

func (r *recoveryDoc) digest(prefix string) string { return r.must("PREFIX.DIGEST", prefix) }

func (r *recoveryDoc) same(what, want, got string) {
	r.t.Helper()
	if want != got {
		r.t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// endRestored ends the server that a block has started, after asking it for its digest.
func (r *recoveryDoc) endRestored(prefix string) (digest string) {
	r.t.Helper()
	c := dial(r.t, r.restored.Addr)
	reply, err := c.Must("PREFIX.DIGEST", prefix)
	if err != nil {
		r.t.Fatal(err)
	}
	c.Close()
	if err := r.restored.Stop(); err != nil {
		r.t.Error(err)
	}
	r.restored = nil
	return reply.String()
}

// fill writes keys of all types below a prefix.
func (r *recoveryDoc) fill(prefix string, n int) {
	r.t.Helper()
	for i := range n {
		k := func(kind string) string { return fmt.Sprintf("%s%s:%d", prefix, kind, i) }
		r.must("SET", k("s"), fmt.Sprint(i))
		r.must("SET", k("ttl"), fmt.Sprint(i), "EX", fmt.Sprint(9000+i))
		r.must("HSET", k("h"), "f", fmt.Sprint(i), "g", "x")
		r.must("RPUSH", k("l"), "a", "b", fmt.Sprint(i))
		r.must("SADD", k("set"), "m", fmt.Sprint(i))
		r.must("ZADD", k("z"), fmt.Sprint(i), "m")
		r.must("XADD", k("x"), "*", "f", fmt.Sprint(i))
	}
}

// tick lets a millisecond pass on the server's clock, and returns that millisecond.
func (r *recoveryDoc) tick() time.Time {
	r.t.Helper()
	at := r.clock()
	for !r.clock().After(at) {
		continue // a millisecond at most
	}
	return at
}

func (r *recoveryDoc) clock() time.Time {
	r.t.Helper()
	reply, err := r.conn.Must("TIME")
	if err != nil {
		r.t.Fatal(err)
	}
	var s, us int64
	fmt.Sscan(reply.Elems[0].Text(), &s)  //nolint:errcheck // a number
	fmt.Sscan(reply.Elems[1].Text(), &us) //nolint:errcheck // a number
	return time.UnixMilli(s*1000 + us/1000)
}

func (r *recoveryDoc) flushall() (lost string) {
	const section = "After a FLUSHALL"
	r.fill("user:", 20)
	want, all := r.digest("user:"), r.digest("")
	r.must("FLUSHALL")
	r.must("SET", "after", "1")
	r.run(section, 0)
	r.same("put back after FLUSHALL", want, r.digest("user:"))
	r.same("what was written since", "$1", r.must("GET", "after"))
	if out := r.run(section, 1); !strings.Contains(out, "$ redis-cli") || !strings.Contains(out, "140") {
		r.t.Errorf("restored server: %s", out)
	}
	r.same("restored", all, r.endRestored(""))
	return all
}

// backups is where the server archives to.
func (r *recoveryDoc) backups() string { return filepath.Join(r.dir, "backups") }

// archived restores from the archive to before the FLUSHALL; deployed is a time before the deploy.
func (r *recoveryDoc) archived(lost, deployed string) {
	const section = "From the archive"
	archived(r.t, r.conn)
	if out := r.run(section, 0); !strings.Contains(out, "flushall") || !strings.Contains(out, "closed cleanly") || !strings.Contains(out, "sound") {
		r.t.Errorf("the archive: %s", out)
	}
	r.run(section, 1)
	r.same("restored from the archive", lost, r.endRestored(""))
	if out := r.run(section, 2, deployed); !strings.Contains(out, "0 added, 0 removed, 0 changed, 0 with") {
		r.t.Errorf("what has changed, from the archive: %s", out)
	}
}

// lostArchive takes the archive's manifest away, and goes on with one that is made anew.
func (r *recoveryDoc) lostArchive() {
	const section = "From the archive"
	r.must("SAVE")
	url := "file://" + r.backups()
	await(r.t, "the set is in the archive", func() bool {
		code, out, _ := kevy("snapshot", "list", url)
		return code == exitOK && strings.HasPrefix(out, "*")
	})
	archived(r.t, r.conn)
	if err := os.Remove(filepath.Join(r.backups(), "ARCHIVE")); err != nil {
		r.t.Fatal(err)
	}
	if code, out, errs := kevy("verify", url); code != exitFound || !strings.Contains(out, "--rebuild-manifest") {
		r.t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if out := r.run(section, 3); !strings.Contains(out, "made anew") || !strings.Contains(out, "sound") {
		r.t.Errorf("the archive: %s", out)
	}
	r.must("MSET", "after", "it", "was", "made", "anew", "1")
	want := r.digest("")
	archived(r.t, r.conn)
	to := filepath.Join(r.dir, "from-rebuilt")
	if code, out, errs := kevy("restore", "--from", url, "--to", to); code != exitOK || !strings.Contains(want, digestOf(out)) {
		r.t.Errorf("exit code %d, %s%s; want %s", code, out, errs, want)
	}
}

// digestOf is the digest that restore has printed.
func digestOf(out string) string {
	_, rest, _ := strings.Cut(out, "digest ")
	digest, _, _ := strings.Cut(rest, ",")
	return digest
}

func (r *recoveryDoc) massDel() {
	const section = "After a mass DEL by a bad script"
	want := r.digest("user:")
	r.must("SET", "other", "1")
	r.tick()
	for i := range 20 {
		r.must("DEL", fmt.Sprintf("user:s:%d", i), fmt.Sprintf("user:h:%d", i))
		r.must("DEL", fmt.Sprintf("user:x:%d", i))
	}
	r.must("SET", "user:new", "stays")
	if out := r.run(section, 0); !strings.Contains(out, "60 removed") {
		r.t.Errorf("what is gone: %s", out)
	}
	r.run(section, 1)
	if out := r.run(section, 2); strings.Count(out, ` DEL "user:`) != 5 {
		r.t.Errorf("frames: %s", out)
	}
	r.same("what was written since", "$stays", r.must("GET", "user:new"))
	r.must("DEL", "user:new")
	r.same("put back after a mass DEL", want, r.digest("user:"))
}

func (r *recoveryDoc) deploy() (before string) {
	const section = "After a bad deploy"
	r.fill("cart:", 10)
	want, all := r.digest("cart:"), r.digest("")
	at := r.tick().Format(time.RFC3339Nano)
	r.must("SET", "cart:s:1", "broken")
	r.must("DEL", "cart:h:2", "cart:z:3")
	r.must("RPUSH", "cart:l:4", "broken")
	r.must("PERSIST", "cart:ttl:5")
	r.must("EXPIRE", "cart:s:6", "9999")
	r.must("SET", "cart:new", "broken")
	r.must("SET", "elsewhere", "stays")
	if out := r.run(section, 0, at); !strings.Contains(out, "1 added, 2 removed, 2 changed, 2 with another deadline") {
		r.t.Errorf("what has changed: %s", out)
	}
	r.run(section, 1, at)
	r.same("rolled back", want, r.digest("cart:"))
	r.same("other keys", "$stays", r.must("GET", "elsewhere"))
	r.run(section, 2, at)
	for dir, digest := range map[string]string{"before-deploy": all, "carts": want} {
		r.restored = startServer(r.t, filepath.Join(r.dir, dir))
		r.same(dir, digest, r.endRestored(""))
	}
	return at
}

// lost stops the server and takes the MANIFEST away for a while.
func (r *recoveryDoc) lost() {
	const section = "When the MANIFEST is lost"
	r.must("SAVE")
	r.must("SET", "behind the snapshot", "1")
	want := r.digest("")
	r.conn.Close()
	if err := r.srv.Stop(); err != nil {
		r.t.Fatal(err)
	}
	name := filepath.Join(r.dir, "kevy-data/MANIFEST")
	if err := os.Rename(name, name+".aside"); err != nil {
		r.t.Fatal(err)
	}
	if _, err := proc.StartKevy(filepath.Dir(name)); err == nil || !strings.Contains(err.Error(), "--rebuild-manifest") {
		r.t.Errorf("a server without a MANIFEST: %v", err)
	}
	if out := r.run(section, 0); !strings.Contains(out, "made anew") {
		r.t.Errorf("restored: %s", out)
	}
	r.same("restored without a MANIFEST", want, r.endRestored(""))
	if err := os.Rename(name+".aside", name); err != nil {
		r.t.Fatal(err)
	}
}

// damage flips a byte in the middle of a shard's log. The server has ended.
func (r *recoveryDoc) damage() {
	const section = "When it refuses to start"
	name := ""
	segments, _ := filepath.Glob(filepath.Join(r.dir, "kevy-data/shard-01/*.seg"))
	for _, s := range segments { // the largest
		if name == "" || size(r.t, s) > size(r.t, name) {
			name = s
		}
	}
	b, err := os.ReadFile(name)
	if err != nil {
		r.t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		r.t.Fatal(err)
	}
	if out := r.run(section, 0); !strings.Contains(out, "DAMAGE: shard 1") || !strings.Contains(out, filepath.Base(name)) || !strings.Contains(out, "frame ") {
		r.t.Errorf("verify: %s", out)
	}
	r.run(section, 1)
	if d := r.endRestored(""); strings.Contains(d, "1) (integer) 0\n") {
		r.t.Errorf("salvaged: %s", d)
	}
}

func size(t *testing.T, name string) int64 {
	t.Helper()
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return fi.Size()
}
