package engine_test

import (
	"testing"

	"github.com/kevydb/kevy/internal/engine"
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
