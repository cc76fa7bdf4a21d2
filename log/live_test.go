package log

import (
	"io/fs"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/vfs"
)

// watched is a file system of which each look at a file or a directory is noted, and one look waits for act: until everything else that can go on
// has, and act is done.
type watched struct {
	vfs.FS
	mu    sync.Mutex
	looks []string
	at    string // which look; "": none
	nth   int    // which of those
	act   func()
}

func (w *watched) look(what, name string) {
	what += " " + name
	w.mu.Lock()
	w.looks = append(w.looks, what)
	hit := what == w.at && w.nth == 0
	if what == w.at {
		w.nth--
	}
	w.mu.Unlock()
	if hit {
		time.Sleep(time.Millisecond) // of the bubble: all others are blocked then
		w.act()
	}
}

func (w *watched) ReadDir(name string) ([]string, error) {
	w.look("list", name)
	return w.FS.ReadDir(name)
}

func (w *watched) Stat(name string) (fs.FileInfo, error) {
	w.look("stat", name)
	return w.FS.Stat(name)
}

func (w *watched) Open(name string) (vfs.File, error) {
	w.look("open", name)
	return w.FS.Open(name)
}

// TestReadWhileSegmentsEnd opens a directory in use for reading, and at every look at its files, one after the other, the writer goes on with
// groups over several shards, ends segments, of one shard or of all, and begins a generation: what is opened is whole, and has of every group all
// parts or none.
func TestReadWhileSegmentsEnd(t *testing.T) {
	const shards = 4
	for _, rolled := range []uint64{0b0001, 0b0010, 0b1000, 0b0110, 0b1111, 0b10000, 0b11111} {
		looks := readWhile(t, shards, rolled, "", 0)
		seen := map[string]int{}
		for _, l := range looks {
			readWhile(t, shards, rolled, l, seen[l])
			seen[l]++
		}
	}
}

// putAll appends a group over all shards, and flushes it.
func putAll(t *testing.T, d *Dir, txn uint64) {
	t.Helper()
	for _, l := range d.logs {
		l.Begin(1000, ByClient, txn, 1<<len(d.logs)-1)
		l.Append(set("key", "value"))
		l.End()
	}
	for _, l := range d.logs {
		if err := l.Flush(); err != nil {
			t.Error(err)
		}
	}
}

// readWhile returns the looks. rolled has a bit for each shard that ends a segment, and one more for a new generation.
func readWhile(t *testing.T, shards int, rolled uint64, at string, nth int) (looks []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mem := crashfs.New()
		o := testOptions(mem)
		o.Shards = shards
		d, _ := mustOpen(t, o)
		txn := uint64(0)
		group := func() {
			txn++
			putAll(t, d, txn)
		}
		group()
		w := &watched{FS: mem, at: at, nth: nth}
		w.act = func() {
			for i := range shards {
				group()
				if rolled&(1<<i) == 0 {
					continue
				}
				if err := d.Log(i).roll(); err != nil {
					t.Error(err)
				}
			}
			if rolled&(1<<shards) != 0 {
				if err := d.NewGeneration(CauseFlush); err != nil {
					t.Error(err)
				}
			}
			group()
		}
		ro, rec, err := Examine(w, o.Dir)
		if err != nil {
			t.Fatalf("at %s: %v", at, err)
		}
		defer ro.Close(false) //nolint:errcheck // only read
		for i, s := range rec.Shards {
			if len(s.Damage) > 0 || s.Stray != nil {
				t.Errorf("at %s: shard %d: damage %v, stray %v", at, i, s.Damage, s.Stray)
			}
		}
		mustBeWhole(t, ro)
		if at != "" && txn == 1 {
			t.Errorf("at %s: the writer has not gone on", at)
		}
		looks = w.looks
		if err := d.Close(false); err != nil {
			t.Error(err)
		}
	})
	return looks
}
