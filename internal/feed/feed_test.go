package feed

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/resp"
)

// bed is a directory with one shard and its feed.
type bed struct {
	t   *testing.T
	dir *log.Dir
	l   *log.Log
	f   *Feed
	gen uint64
}

func newBed(t *testing.T, o log.Options, enabled bool) *bed {
	t.Helper()
	o.FS, o.Dir = vfs.NewMem(), "data"
	o.Now = func() int64 { return 1_800_000_000_000 }
	dir, _, err := log.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close(false) })
	b := &bed{t: t, dir: dir, l: dir.Log(0)}
	b.f = New(func(*log.Dir) *log.Dir { return dir }, enabled, func(int) { _ = b.l.Flush() })
	b.gen = b.l.Generation()
	return b
}

func (b *bed) write(line string) {
	b.t.Helper()
	b.group(line)
}

// group appends one group with a frame for each line.
func (b *bed) group(lines ...string) {
	b.t.Helper()
	if err := b.l.Reserve(64 << 10); err != nil {
		b.t.Fatal(err)
	}
	b.l.Begin(1_800_000_000_000, log.ByClient, 0, 0)
	for _, line := range lines {
		var argv [][]byte
		for w := range strings.FieldsSeq(line) {
			argv = append(argv, []byte(w))
		}
		e, err := effect.FromArgv(argv)
		if err != nil {
			b.t.Fatal(err)
		}
		b.l.Append(&e)
	}
	b.l.End()
}

// read runs FEED.READ with the words of line, GEN standing for the generation at the start, and
// returns the reply on one line.
func (b *bed) read(line string) string {
	b.t.Helper()
	args := [][]byte{[]byte("FEED.READ")}
	for w := range strings.FieldsSeq(strings.ReplaceAll(line, "GEN", fmt.Sprint(b.gen))) {
		if w == `""` {
			w = ""
		}
		args = append(args, []byte(w))
	}
	w := resp.Writer{Buf: []byte("before|")} // replies follow what a pipeline wrote earlier
	b.f.Read(context.Background(), args, &w, true)
	alone := resp.Writer{}
	b.f.Read(context.Background(), args, &alone, true)
	got := strings.TrimPrefix(string(w.Buf), "before|")
	if string(alone.Buf) != got && !strings.Contains(line, "BLOCK") {
		b.t.Errorf("%s: %q in a pipeline, %q alone", line, got, alone.Buf)
	}
	return strings.ReplaceAll(strings.ReplaceAll(got, "\r\n", " "), fmt.Sprint(b.gen), "GEN")
}

func (b *bed) want(line, reply string) {
	b.t.Helper()
	if got := strings.TrimSpace(b.read(line)); got != reply {
		b.t.Errorf("FEED.READ %s:\n got %s\nwant %s", line, got, reply)
	}
}

func TestReadFrames(t *testing.T) {
	b := newBed(t, log.Options{}, true)
	b.want("0 GEN 0", "*3 :GEN :0 *0")
	b.write("SET user:1 a")
	b.write("SET order:1 b")
	b.write("MSET user:2 c x d")
	b.write("DEL order:1 user:1")
	b.write("DEL order:1")
	const (
		f0 = "*2 :0 *3 $3 SET $6 user:1 $1 a"
		f1 = "*2 :1 *3 $3 SET $7 order:1 $1 b"
		f2 = "*2 :2 *5 $4 MSET $6 user:2 $1 c $1 x $1 d"
		f3 = "*2 :3 *3 $3 DEL $7 order:1 $6 user:1"
		f4 = "*2 :4 *2 $3 DEL $7 order:1"
	)
	all := "*3 :GEN :5 *5 " + strings.Join([]string{f0, f1, f2, f3, f4}, " ")
	b.want("0 GEN 0", all)
	b.want(`0 GEN 0 PREFIX ""`, all)
	b.want("0 GEN 0 COUNT 2", "*3 :GEN :2 *2 "+f0+" "+f1)
	b.want("0 GEN 0 COUNT 5 COUNT 0", "*3 :GEN :1 *1 "+f0)
	b.want("0 GEN 3 count 1", "*3 :GEN :4 *1 "+f3)
	b.want("0 GEN 5", "*3 :GEN :5 *0")
	// Fail-open: frames of several keys are always delivered.
	b.want("0 GEN 0 PREFIX nosuch", "*3 :GEN :5 *2 "+f2+" "+f3)
	b.want("0 GEN 0 PREFIX order: COUNT 2", "*3 :GEN :3 *2 "+f1+" "+f2)
	b.want("0 GEN 0 PREFIX user: prefix order:", all)
	// Empty means caught up: the cursor moves over what did not pass.
	b.want("0 GEN 4 PREFIX user:", "*3 :GEN :5 *0")
}

func TestReadErrors(t *testing.T) {
	b := newBed(t, log.Options{}, true)
	b.write("SET a 1")
	for line, reply := range map[string]string{
		"x GEN 0":                    "-ERR invalid shard",
		"-1 GEN 0":                   "-ERR invalid shard",
		"0 x 0":                      "-ERR invalid generation",
		"0 GEN x":                    "-ERR invalid offset",
		"0 GEN 18446744073709551616": "-ERR invalid offset",
		"x y z COUNT":                "-ERR invalid shard",
		"0 GEN 0 COUNT":              "-ERR invalid COUNT",
		"0 GEN 0 COUNT x":            "-ERR invalid COUNT",
		"0 GEN 0 COUNT -1":           "-ERR invalid COUNT",
		"0 GEN 0 PREFIX":             "-ERR PREFIX requires a value",
		"0 GEN 0 NONSENSE":           "-ERR syntax error",
		"9 GEN 0 NONSENSE":           "-ERR syntax error",
		"1 GEN 0":                    "-ERR shard out of range",
		"99999999999 GEN 0":          "-ERR shard out of range",
		"0 1 0":                      "-FEEDRESYNC GEN 1",
		"0 1 99":                     "-FEEDRESYNC GEN 1",
		"0 18446744073709551615 0":   "-FEEDRESYNC GEN 1",
		"0 GEN 2":                    "-ERR feed cursor ahead of stream",
		"0 GEN 18446744073709551615": "-ERR feed cursor ahead of stream",
		"0 GEN 1":                    "*3 :GEN :1 *0",
	} {
		b.want(line, reply)
	}
	off := newBed(t, log.Options{}, false)
	off.want("0 1 0 COUNT x", "-ERR invalid COUNT")
	off.want("7 1 0", "-ERR shard out of range")
	off.want("0 1 0", "-"+string(ErrDisabled))
}

func TestReadWithMeta(t *testing.T) {
	b := newBed(t, log.Options{}, true)
	b.group("SET user:1 a", "SET order:1 b", "SET user:2 c")
	b.write("SET user:3 d")
	meta := func(off, body, group string) string {
		return fmt.Sprintf("*3 :%s %s *6 $4 time :1800000000000 $5 cause $6 client $5 group %s", off, body, group)
	}
	f0 := meta("0", "*3 $3 SET $6 user:1 $1 a", "*2 :0 :2")
	f1 := meta("1", "*3 $3 SET $7 order:1 $1 b", "*2 :0 :2")
	f2 := meta("2", "*3 $3 SET $6 user:2 $1 c", "*2 :0 :2")
	// A reply ends only between groups, whatever COUNT says, and the filter hides nothing of the group's extent.
	b.want("0 GEN 0 WITHMETA COUNT 1", "*3 :GEN :3 *3 "+f0+" "+f1+" "+f2)
	b.want("0 GEN 0 WITHMETA COUNT 2 PREFIX order:", "*3 :GEN :4 *1 "+f1)
	b.want("0 GEN 1 WITHMETA COUNT 1", "*3 :GEN :3 *2 "+f1+" "+f2)
}

func TestReadReplySize(t *testing.T) {
	b := newBed(t, log.Options{}, true)
	big := strings.Repeat("x", 3<<20)
	for range 3 {
		if err := b.l.Reserve(4 << 20); err != nil {
			t.Fatal(err)
		}
		b.l.Begin(0, log.ByClient, 0, 0)
		b.l.Append(&effect.Effect{Op: effect.Set, Args: [][]byte{[]byte("k"), []byte(big)}})
		b.l.End()
	}
	if got := b.read("0 GEN 0"); !strings.HasPrefix(got, "*3 :GEN :2 *2 ") {
		t.Errorf("three frames of 3 MiB: %.40q", got)
	}
	if got := b.read("0 GEN 2"); !strings.HasPrefix(got, "*3 :GEN :3 *1 ") {
		t.Errorf("the last: %.40q", got)
	}
}

func TestWindow(t *testing.T) {
	b := newBed(t, log.Options{Window: 1000}, true)
	for i := range 100 {
		b.write(fmt.Sprintf("SET key:%d value", i))
	}
	base := b.l.Base()
	if base == 0 || base >= 99 {
		t.Fatalf("base = %d", base)
	}
	b.want(fmt.Sprintf("0 GEN %d", base-1), "-FEEDRESYNC GEN 100")
	if got := b.read(fmt.Sprintf("0 GEN %d COUNT 1", base)); !strings.HasPrefix(got, fmt.Sprintf("*3 :GEN :%d *1 ", base+1)) {
		t.Errorf("at the base: %q", got)
	}
}

func TestBlock(t *testing.T) {
	b := newBed(t, log.Options{}, true)
	began := time.Now()
	b.want("0 GEN 0 BLOCK 30", "*3 :GEN :0 *0")
	if time.Since(began) < 30*time.Millisecond {
		t.Error("BLOCK 30 did not wait")
	}
	got := make(chan string, 1)
	ctx := t.Context()
	args := [][]byte{nil, []byte("0"), fmt.Append(nil, b.gen), []byte("0"), []byte("PREFIX"), []byte("user:"), []byte("BLOCK"), []byte("0")}
	go func() {
		var w resp.Writer
		b.f.Read(ctx, args, &w, true)
		got <- string(w.Buf)
	}()
	for range 20 { // filtered writes wake it, but do not answer it
		b.write("SET order:1 x")
		if err := b.l.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case r := <-got:
		t.Fatalf("answered by frames that do not match: %q", r)
	case <-time.After(20 * time.Millisecond):
	}
	b.write("SET user:1 a")
	if err := b.l.Flush(); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("*3\r\n:%d\r\n:21\r\n*1\r\n*2\r\n:20\r\n*3\r\n$3\r\nSET\r\n$6\r\nuser:1\r\n$1\r\na\r\n", b.gen)
	if r := <-got; r != want {
		t.Errorf("got %q, want %q", r, want)
	}
}

// TestBlockEndsWithGeneration answers a blocked consumer with FEEDRESYNC when its history ends.
func TestBlockEndsWithGeneration(t *testing.T) {
	b := newBed(t, log.Options{}, true)
	got := make(chan string, 1)
	go func() {
		var w resp.Writer
		args := [][]byte{nil, []byte("0"), fmt.Append(nil, b.gen), []byte("0"), []byte("BLOCK"), []byte("0")}
		b.f.Read(context.Background(), args, &w, true)
		got <- string(w.Buf)
	}()
	for b.f.blocked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := b.dir.NewGeneration(log.CauseFlush); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("-FEEDRESYNC %d 0\r\n", b.l.Generation())
	if r := <-got; r != want {
		t.Errorf("got %q, want %q", r, want)
	}
}

func TestTail(t *testing.T) {
	b := newBed(t, log.Options{}, true)
	b.write("SET a 1")
	var w resp.Writer
	b.f.Tail([][]byte{nil, []byte("0")}, &w, func(int) uint64 { return 3 })
	b.f.Tail([][]byte{nil, []byte("1")}, &w, nil)
	b.f.Tail([][]byte{nil, []byte("")}, &w, nil)
	want := fmt.Sprintf("*2\r\n:%d\r\n:4\r\n-ERR shard out of range\r\n-ERR invalid shard\r\n", b.gen)
	if string(w.Buf) != want {
		t.Errorf("got %q, want %q", w.Buf, want)
	}
}

func TestInfoErrors(t *testing.T) {
	for line, reply := range map[string]string{
		"FEED.INFO 1":   "-ERR shard out of range\r\n",
		"FEED.INFO x":   "-ERR invalid shard\r\n",
		"FEED.INFO 0 0": "-ERR wrong number of arguments for 'feed.info' command\r\n",
	} {
		var args [][]byte
		for w := range strings.FieldsSeq(line) {
			args = append(args, []byte(w))
		}
		var w resp.Writer
		newBed(t, log.Options{}, true).f.Info(args, &w)
		if string(w.Buf) != reply {
			t.Errorf("%s: got %q, want %q", line, w.Buf, reply)
		}
	}
}

// TestLineageEndsWithGeneration: with LINEAGE a reply ends where its generation does, so that every frame in it is of
// the generation that the reply names.
func TestLineageEndsWithGeneration(t *testing.T) {
	b := newBed(t, log.Options{}, true)
	b.write("SET a 1")
	b.write("SET b 1")
	b.write("FLUSHALL")
	if err := b.dir.NewGeneration(log.CauseFlush); err != nil {
		t.Fatal(err)
	}
	second := b.l.Generation()
	const old = "*2 :0 *3 $3 SET $1 a $1 1 *2 :1 *3 $3 SET $1 b $1 1 *2 :2 *1 $8 FLUSHALL"
	b.want("0 GEN 0 LINEAGE", "*3 :GEN :3 *3 "+old)
	b.want("0 GEN 3 LINEAGE", fmt.Sprintf("*3 :%d :0 *0", second))
	b.write("SET c 1")
	b.want("0 GEN 0 LINEAGE", "*3 :GEN :3 *3 "+old)
	b.want("0 GEN 3 LINEAGE", fmt.Sprintf("*3 :%d :1 *1 *2 :0 *3 $3 SET $1 c $1 1", second))
	b.want("0 GEN 3 LINEAGE WITHMETA PREFIX x", fmt.Sprintf("*3 :%d :1 *0", second))
}
