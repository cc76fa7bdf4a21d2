package crashfs_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/internal/vfs/vfstest"
)

const sector = 512

func TestConformance(t *testing.T) {
	vfstest.Run(t, func(*testing.T) (vfs.FS, string) { return crashfs.New(), "/" })
}

// TestConformanceOfClones: clones are file systems like any other.
func TestConformanceOfClones(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
		f := crashfs.New()
		ok(t, f.MkdirAll("/d"), f.SyncDir("/"))
		return f.CrashClone(seed(1)).KillClone(), "/d"
	})
}

func seed(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 0)) }

func ok(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// create makes a file with content, synced or not; its name is not.
func create(t *testing.T, f vfs.FS, name, content string, sync bool) vfs.File {
	t.Helper()
	file, err := f.Create(name)
	ok(t, err)
	write(t, file, content, 0)
	if sync {
		ok(t, file.Sync())
	}
	return file
}

func write(t *testing.T, file vfs.File, content string, off int64) {
	t.Helper()
	_, err := file.WriteAt([]byte(content), off)
	ok(t, err)
}

// dump returns all files with their content, and directories as "dir/".
func dump(t *testing.T, f vfs.FS, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := f.ReadDir(dir)
	ok(t, err)
	for _, name := range names {
		name = path.Join(dir, name)
		info, err := f.Stat(name)
		ok(t, err)
		if info.IsDir() {
			all[name+"/"] = ""
			maps.Copy(all, dump(t, f, name))
			continue
		}
		file, err := f.Open(name)
		ok(t, err)
		content, err := io.ReadAll(io.NewSectionReader(file, 0, info.Size()))
		ok(t, err)
		all[name] = string(content)
	}
	return all
}

// outcomes crashes f with many seeds and counts what describe makes of the results.
func outcomes(t *testing.T, f *crashfs.FS, describe func(files map[string]string) string) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for n := range uint64(2000) {
		seen[describe(dump(t, f.CrashClone(seed(n)), "/"))]++
	}
	return seen
}

// exactly checks that all the wanted outcomes were seen and no others.
func exactly(t *testing.T, seen map[string]int, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
		t.Errorf("saw %q, want %q", got, want)
	}
}

// names describes an outcome by the files and their first bytes.
func names(files map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		parts = append(parts, strings.TrimPrefix(name, "/")+"="+files[name][:min(1, len(files[name]))])
	}
	return strings.Join(parts, " ")
}

// sectors describes file a: the first byte of each sector, "0" for zero, and the size of the last
// one if it is not whole.
func sectors(files map[string]string) string {
	content := files["/a"]
	var b strings.Builder
	for len(content) > 0 {
		n := min(sector, len(content))
		part := content[:n]
		if part != strings.Repeat(part[:1], n) {
			return "mixed sector"
		}
		b.WriteString(strings.ReplaceAll(part[:1], "\x00", "0"))
		if n < sector {
			b.WriteString("+")
		}
		content = content[n:]
	}
	return b.String()
}

// with returns a file system with the durable file a.
func with(t *testing.T, content string) (*crashfs.FS, vfs.File) {
	t.Helper()
	f := crashfs.New()
	a := create(t, f, "/a", content, true)
	ok(t, f.SyncDir("/"))
	return f, a
}

func TestSyncedSurvives(t *testing.T) {
	f, _ := with(t, "A")
	exactly(t, outcomes(t, f, names), "a=A")
}

func TestUnsyncedBytes(t *testing.T) {
	f, a := with(t, strings.Repeat("A", 2*sector))
	write(t, a, strings.Repeat("B", 2*sector), 0)
	write(t, a, strings.Repeat("C", 2*sector), 0)
	exactly(t, outcomes(t, f, sectors), "AA", "AB", "AC", "BA", "BB", "BC", "CA", "CB", "CC")
	ok(t, a.Sync())
	exactly(t, outcomes(t, f, sectors), "CC")
}

func TestUnsyncedGrowth(t *testing.T) {
	f, a := with(t, "")
	write(t, a, strings.Repeat("A", 2*sector), 0)
	seen := outcomes(t, f, sectors)
	exactly(t, seen, "", "0+", "A+", "0", "00+", "0A+", "A0+", "AA+", "00", "0A", "A0", "AA", "A")
	if seen[""] < 100 || seen["AA"] < 100 {
		t.Errorf("plain crashes are rare: %v", seen)
	}
}

func TestUnsyncedTruncate(t *testing.T) {
	f, a := with(t, strings.Repeat("A", 2*sector))
	ok(t, a.Truncate(sector))
	exactly(t, outcomes(t, f, sectors), "AA", "A")
	ok(t, a.Truncate(2*sector))
	exactly(t, outcomes(t, f, sectors), "AA", "A", "A0")
}

func TestSyncCoversTruncate(t *testing.T) {
	f, a := with(t, strings.Repeat("A", 2*sector))
	ok(t, a.Truncate(sector), a.Sync())
	exactly(t, outcomes(t, f, sectors), "A")
}

func TestUnsyncedCreate(t *testing.T) {
	f := crashfs.New()
	create(t, f, "/a", "A", true)
	create(t, f, "/b", "B", true)
	exactly(t, outcomes(t, f, names), "", "a=A", "b=B", "a=A b=B")
}

func TestSyncDirIsNotSync(t *testing.T) {
	f := crashfs.New()
	create(t, f, "/a", "A", false)
	ok(t, f.SyncDir("/"))
	exactly(t, outcomes(t, f, names), "a=", "a=A", "a=\x00")
}

func TestUnsyncedRemove(t *testing.T) {
	f, _ := with(t, "A")
	ok(t, f.Remove("/a"))
	exactly(t, outcomes(t, f, names), "", "a=A")
	create(t, f, "/a", "B", true)
	exactly(t, outcomes(t, f, names), "", "a=A", "a=B")
	ok(t, f.SyncDir("/"))
	exactly(t, outcomes(t, f, names), "a=B")
}

func TestUnsyncedRename(t *testing.T) {
	f, _ := with(t, "A")
	ok(t, f.Rename("/a", "/b"))
	exactly(t, outcomes(t, f, names), "a=A", "b=A", "a=A b=A")
}

func TestUnsyncedReplace(t *testing.T) {
	f, _ := with(t, "old")
	create(t, f, "/tmp", "new", true)
	ok(t, f.Rename("/tmp", "/a"))
	exactly(t, outcomes(t, f, names), "a=o", "a=o tmp=n", "a=n", "a=n tmp=n")
	ok(t, f.SyncDir("/"))
	exactly(t, outcomes(t, f, names), "a=n")
}

// TestHardLinkAfterCrash: what is left under two names is one file.
func TestHardLinkAfterCrash(t *testing.T) {
	f, _ := with(t, "A")
	ok(t, f.Rename("/a", "/b"))
	for n := range uint64(1000) {
		clone := f.CrashClone(seed(n))
		if len(dump(t, clone, "/")) < 2 {
			continue
		}
		a, err := clone.OpenReadWrite("/a")
		ok(t, err)
		write(t, a, "X", 0)
		if got := dump(t, clone, "/")["/b"]; got != "X" {
			t.Fatalf("b holds %q", got)
		}
		return
	}
	t.Fatal("no such crash")
}

func TestUnsyncedRenameOfDirectory(t *testing.T) {
	f := crashfs.New()
	ok(t, f.MkdirAll("/tmp"))
	create(t, f, "/tmp/x", "X", true)
	ok(t, f.SyncDir("/tmp"), f.SyncDir("/"), f.Rename("/tmp", "/set"))
	exactly(t, outcomes(t, f, names), "tmp/= tmp/x=X", "set/= set/x=X")
	ok(t, f.SyncDir("/"))
	exactly(t, outcomes(t, f, names), "set/= set/x=X")
}

func TestRenameAcrossDirectories(t *testing.T) {
	setup := func() *crashfs.FS {
		f := crashfs.New()
		ok(t, f.MkdirAll("/d"), f.MkdirAll("/e"))
		create(t, f, "/d/x", "X", true)
		ok(t, f.SyncDir("/"), f.SyncDir("/d"), f.Rename("/d/x", "/e/x"))
		return f
	}
	f := setup()
	ok(t, f.SyncDir("/d"))
	exactly(t, outcomes(t, f, names), "d/= e/= e/x=X")
	f = setup()
	ok(t, f.SyncDir("/e"))
	exactly(t, outcomes(t, f, names), "d/= e/= e/x=X", "d/= d/x=X e/= e/x=X")
}

func TestDirectoryNeedsItsParent(t *testing.T) {
	f := crashfs.New()
	ok(t, f.MkdirAll("/d"))
	create(t, f, "/d/x", "X", true)
	ok(t, f.SyncDir("/d"))
	exactly(t, outcomes(t, f, names), "", "d/= d/x=X")
}

func TestCrashIsDeterministic(t *testing.T) {
	for n := range uint64(50) {
		first := randomFS(t, n)
		second := randomFS(t, n)
		a, b := dump(t, first.CrashClone(seed(n)), "/"), dump(t, second.CrashClone(seed(n)), "/")
		if !maps.Equal(a, b) {
			t.Fatalf("seed %d: two different crashes", n)
		}
	}
}

// TestKillKeepsAll: also what cannot be seen: what is durable and what is not.
func TestKillKeepsAll(t *testing.T) {
	for n := range uint64(100) {
		f := randomFS(t, n)
		clone := f.KillClone()
		if !maps.Equal(dump(t, f, "/"), dump(t, clone, "/")) {
			t.Fatalf("seed %d: the clone differs", n)
		}
		a, b := dump(t, f.CrashClone(seed(n)), "/"), dump(t, clone.CrashClone(seed(n)), "/")
		if !maps.Equal(a, b) {
			t.Fatalf("seed %d: the clone crashes differently", n)
		}
	}
}

// TestCrashAfterSyncLosesNothing: with everything synced, a crash is as harmless as a kill, and
// what a crash leaves is all durable.
func TestCrashAfterSyncLosesNothing(t *testing.T) {
	for n := range uint64(100) {
		f := randomFS(t, n).CrashClone(seed(n))
		want := dump(t, f, "/")
		if got := dump(t, f.CrashClone(seed(n+1)), "/"); !maps.Equal(got, want) {
			t.Fatalf("seed %d: a second crash lost something", n)
		}
		scribble(t, f, seed(n+2))
		want = dump(t, f, "/")
		syncAll(t, f, "/")
		if got := dump(t, f.CrashClone(seed(n+3)), "/"); !maps.Equal(got, want) {
			t.Fatalf("seed %d: the crash lost something synced", n)
		}
	}
}

func TestClonesAreApart(t *testing.T) {
	f := randomFS(t, 1)
	want := dump(t, f, "/")
	for _, clone := range []*crashfs.FS{f.KillClone(), f.CrashClone(seed(1))} {
		scribble(t, clone, seed(2))
	}
	if !maps.Equal(dump(t, f, "/"), want) {
		t.Error("a clone wrote into its original")
	}
	clone := f.KillClone()
	scribble(t, f, seed(3))
	if !maps.Equal(dump(t, clone, "/"), want) {
		t.Error("the original wrote into its clone")
	}
}

func TestFreeze(t *testing.T) {
	f, a := with(t, "A")
	l, err := f.Lock("/LOCK")
	ok(t, err)
	clone := f.Crash(seed(1))
	_, writeErr := a.WriteAt([]byte("X"), 0)
	_, readErr := a.ReadAt(make([]byte, 1), 0)
	_, createErr := f.Create("/b")
	_, lockErr := f.Lock("/OTHER")
	for _, err := range []error{writeErr, readErr, createErr, lockErr, a.Sync(), a.Truncate(0), f.SyncDir("/")} {
		if !errors.Is(err, crashfs.ErrFrozen) {
			t.Errorf("frozen: %v", err)
		}
	}
	ok(t, a.Close(), l.Close())
	if got := names(dump(t, f.KillClone(), "/")); got != "LOCK= a=A" {
		t.Errorf("clone of the frozen one: %s", got)
	}
	_, err = clone.Create("/b")
	ok(t, err)
}

func TestLockDiesWithItsHolder(t *testing.T) {
	f := crashfs.New()
	_, err := f.Lock("/LOCK")
	ok(t, err)
	_, err = f.KillClone().Lock("/LOCK")
	ok(t, err)
	_, err = f.CrashClone(seed(1)).Lock("/LOCK")
	ok(t, err)
	if _, err = f.Lock("/LOCK"); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("original: %v", err)
	}
}

func TestTruncateClone(t *testing.T) {
	f, a := with(t, "abcdef")
	write(t, a, "ghi", 6)
	for size := range 10 {
		clone, err := f.TruncateClone("/a", int64(size))
		ok(t, err)
		if got := dump(t, clone, "/")["/a"]; got != "abcdefghi"[:size] {
			t.Errorf("cut to %d: %q", size, got)
		}
	}
	if _, err := f.TruncateClone("/none", 0); err == nil {
		t.Error("no error without a file")
	}
}

// randomFS returns a file system on which much has been done.
func randomFS(t *testing.T, n uint64) *crashfs.FS {
	t.Helper()
	f := crashfs.New()
	scribble(t, f, seed(n))
	return f
}

// scribble does random operations; those that fail (no such file, say) do no harm.
func scribble(t *testing.T, f vfs.FS, rng *rand.Rand) {
	t.Helper()
	dirs := []string{"/", "/d", "/e", "/d/f"}
	pick := func() string {
		return path.Join(dirs[rng.IntN(len(dirs))], fmt.Sprint("file", rng.IntN(4)))
	}
	for range 200 {
		switch rng.IntN(10) {
		case 0:
			_ = f.MkdirAll(dirs[rng.IntN(len(dirs))])
		case 1:
			_ = f.Rename(pick(), pick())
		case 2:
			_ = f.Remove(pick())
		case 3:
			_ = f.SyncDir(dirs[rng.IntN(len(dirs))])
		case 4:
			_ = f.Rename(dirs[1+rng.IntN(3)], dirs[1+rng.IntN(3)])
		case 5:
			_, _ = f.Create(pick())
		default:
			scribbleFile(f, pick(), rng)
		}
	}
	if rng.IntN(2) == 0 {
		_ = f.RemoveAll("/e")
	}
}

func scribbleFile(f vfs.FS, name string, rng *rand.Rand) {
	file, err := f.OpenReadWrite(name)
	if err != nil {
		return
	}
	switch rng.IntN(6) {
	case 0:
		_ = file.Truncate(rng.Int64N(3000))
	case 1:
		_ = file.Sync()
	default:
		text := strings.Repeat(string(rune('a'+rng.IntN(26))), rng.IntN(2000))
		_, _ = file.WriteAt([]byte(text), rng.Int64N(2000))
	}
	_ = file.Close()
}

func syncAll(t *testing.T, f vfs.FS, dir string) {
	t.Helper()
	ok(t, f.SyncDir(dir))
	names, err := f.ReadDir(dir)
	ok(t, err)
	for _, name := range names {
		name = path.Join(dir, name)
		if info, err := f.Stat(name); err == nil && info.IsDir() {
			syncAll(t, f, name)
			continue
		}
		file, err := f.Open(name)
		ok(t, err, file.Sync(), file.Close())
	}
}
