package engine_test

import (
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

func ef(op effect.Op, args ...string) effect.Effect {
	e := effect.Effect{Op: op}
	for _, a := range args {
		e.Args = append(e.Args, []byte(a))
	}
	return e
}

// TestIngest: the effects are one group over the shards of their keys; one that does not fold takes all of them back, and so does one
// that would end a generation.
func TestIngest(t *testing.T) {
	fs := vfs.NewMem()
	open := func() *engine.Engine {
		e, _, err := engine.Open(engine.Options{Log: log.Options{FS: fs, Dir: "data", Shards: 3}})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	if err := e.Ingest([]effect.Effect{
		ef(effect.MSet, "a", "1", "b", "2", "c", "3", "d", "4"), ef(effect.RPush, "l", "x", "y"), ef(effect.Del, "a", "c", "none"),
		ef(effect.Function, "LOAD", "REPLACE", "#!lua name=lib\n"), ef(effect.XAdd, "x", "1-1", "f", "v"),
	}); err != nil {
		t.Fatal(err)
	}
	keys, digest := e.Digest()
	if keys != 4 {
		t.Errorf("%d keys", keys)
	}
	for _, bad := range [][]effect.Effect{
		{ef(effect.Set, "b", "9"), ef(effect.RPush, "b", "x")},
		{ef(effect.Del, "b"), ef(effect.FlushAll)},
		{ef(effect.Del, "l"), ef(effect.Set, "b")},
		{ef(effect.Function, "FLUSH"), ef(effect.Invalid)},
	} {
		if err := e.Ingest(bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
		if n, d := e.Digest(); n != keys || d != digest {
			t.Errorf("after %v: %d keys, %s; before %d, %s", bad, n, d, keys, digest)
		}
	}
	if err := e.Close(true); err != nil {
		t.Fatal(err)
	}
	e = open()
	if n, d := e.Digest(); n != keys || d != digest {
		t.Errorf("after a restart: %d keys, %s; before %d, %s", n, d, keys, digest)
	}
	if err := e.Close(true); err != nil {
		t.Error(err)
	}
}

// TestHalfCopyRefuses: a directory that goes on from another store's cursor, and was left before its first snapshot, is not taken for a
// whole one.
func TestHalfCopyRefuses(t *testing.T) {
	fs := crashfs.New()
	options := func(fs vfs.FS) engine.Options {
		return engine.Options{Log: log.Options{FS: fs, Dir: "data", RestoredFrom: []log.Cursor{{Generation: 5, Offset: 7}}}}
	}
	e, _, err := engine.Open(options(fs))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Ingest([]effect.Effect{ef(effect.Set, "a", "1")}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := engine.Open(options(fs.KillClone())); err == nil || !strings.Contains(err.Error(), "frames before are missing") {
		t.Errorf("killed before the first snapshot: %v", err)
	}
	if err := e.Save(); err != nil {
		t.Fatal(err)
	}
	whole, _, err := engine.Open(options(fs.KillClone()))
	if err != nil {
		t.Fatalf("killed after it: %v", err)
	}
	if n, _ := whole.Digest(); n != 1 {
		t.Errorf("%d keys", n)
	}
	for _, x := range []*engine.Engine{whole, e} {
		if err := x.Close(true); err != nil {
			t.Error(err)
		}
	}
}
