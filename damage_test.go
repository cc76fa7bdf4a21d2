package kevy_test

import (
	"bytes"
	"log/slog"
	"path"
	"strings"
	"testing"

	"github.com/kevydb/kevy"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// damaged returns a store's directory with a snapshot and frames behind it, after do.
func damaged(t *testing.T, do func(fs vfs.FS)) (kevy.Config, *bytes.Buffer) {
	t.Helper()
	fs, said := vfs.NewMem(), new(bytes.Buffer)
	cfg := kevy.DefaultConfig().WithDir("data").WithLogger(slog.New(slog.NewTextHandler(said, nil))).OnFSForTesting(fs)
	s := must[*kevy.Store](t)(kevy.Open(cfg))
	for _, err := range []error{s.Set("a", []byte("1")), s.Snapshot(), s.Set("b", []byte("2")), s.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	do(fs)
	return cfg, said
}

const segment = "data/shard-00/00000000000000000001.seg"

// change rewrites a file.
func change(t *testing.T, fs vfs.FS, name string, to func([]byte) []byte) {
	t.Helper()
	b, err := vfs.ReadFile(fs, name, 1<<20)
	if err == nil {
		err = fs.Remove(name)
	}
	if err == nil {
		err = vfs.WriteFile(fs, name, to(b))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamageRefused: what is damaged or missing is named, with the commands that help, and never taken for empty.
func TestDamageRefused(t *testing.T) {
	flip := func(b []byte) []byte { b[len(b)-2] ^= 1; return b }
	inSet := func(fs vfs.FS, name string) string {
		ids, err := fs.ReadDir("data/snapshots")
		if err != nil || len(ids) != 1 {
			t.Fatalf("%v, %v", ids, err)
		}
		return path.Join("data/snapshots", ids[0], name)
	}
	const verify, rebuild = "kevy verify data shows", "--rebuild-manifest"
	for name, tc := range map[string]struct {
		do   func(fs vfs.FS)
		want []string // in the error
	}{
		"frame":        {func(fs vfs.FS) { change(t, fs, segment, flip) }, []string{segment + " at byte ", verify, "--before-damage"}},
		"no segment":   {func(fs vfs.FS) { _ = fs.Remove(segment) }, []string{segment, verify}},
		"no shard":     {func(fs vfs.FS) { _ = fs.RemoveAll("data/shard-00") }, []string{segment, verify}},
		"manifest":     {func(fs vfs.FS) { change(t, fs, "data/MANIFEST", flip) }, []string{"data/MANIFEST", rebuild}},
		"no manifest":  {func(fs vfs.FS) { _ = fs.Remove("data/MANIFEST") }, []string{"MANIFEST", rebuild}},
		"snapshot":     {func(fs vfs.FS) { change(t, fs, inSet(fs, "shard-00.snap"), flip) }, []string{"shard-00.snap", verify}},
		"no snapshot":  {func(fs vfs.FS) { _ = fs.Remove(inSet(fs, "shard-00.snap")) }, []string{"shard-00.snap", verify}},
		"description":  {func(fs vfs.FS) { change(t, fs, inSet(fs, "SET"), flip) }, []string{"SET", verify}},
		"no set":       {func(fs vfs.FS) { _ = fs.RemoveAll("data/snapshots") }, []string{"data/snapshots/", verify}},
		"only the set": {func(fs vfs.FS) { _ = fs.Remove(inSet(fs, "SET")) }, []string{"SET", verify}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := damaged(t, tc.do)
			for range 2 {
				s, err := kevy.Open(cfg)
				if err == nil {
					t.Error(s.Close())
					t.Fatal("opened")
				}
				for _, w := range tc.want {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%v: without %q", err, w)
					}
				}
			}
		})
	}
}

// TestCutIsTold: what recovery cuts off is told to the logger.
func TestCutIsTold(t *testing.T) {
	for tail, kept := range map[string]string{"garbage": "kept=data/shard-00/cut/", "\x00\x00\x00": "they are zeros"} {
		cfg, said := damaged(t, func(fs vfs.FS) {
			change(t, fs, segment, func(b []byte) []byte { return append(b, tail...) })
		})
		open(t, cfg)
		if got := said.String(); !strings.Contains(got, "unclean log tail cut off") || !strings.Contains(got, kept) {
			t.Errorf("%q: %s", tail, got)
		}
	}
}

func TestShardsBound(t *testing.T) {
	s := must[*kevy.Store](t)(kevy.Open(kevy.DefaultConfig().WithShards(32)))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, n := range []int{-1, 33, log.MaxShards} {
		if err := kevy.DefaultConfig().WithShards(n).Validate(); err == nil || !strings.Contains(err.Error(), "Shards") {
			t.Errorf("%d shards: %v", n, err)
		}
	}
}
