package log

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log/effect"
)

// FuzzFrameDecode: whatever is read as frames is, encoded again, the same bytes; everything else is
// ErrCorrupt at the place where it stands.
func FuzzFrameDecode(f *testing.F) {
	e := NewEncoder(1, Cursor{7, 3}, 0)
	e.Begin(5, ByScript, 9, 3)
	e.Append(set("key", "value"))
	e.Append(&effect.Effect{Op: effect.Del, Args: [][]byte{[]byte("a"), []byte("b")}})
	e.End()
	f.Add(e.Buf, false)
	f.Add(e.Buf[:len(e.Buf)-3], false)
	f.Add(append(bytes.Clone(e.Buf), make([]byte, 64)...), true)
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if fix {
			fixChecksums(b)
		}
		s := NewStream(bytes.NewReader(b), "fuzz", 1, Cursor{7, 3}, 0, int64(len(b)))
		defer s.Close()
		at := 0
		for {
			fr, err := s.Next()
			if err == io.EOF {
				if at != len(b) {
					t.Fatalf("end at %d of %d", at, len(b))
				}
				return
			}
			if err != nil {
				var c *CorruptError
				if !errors.Is(err, ErrCorrupt) || !errors.As(err, &c) || c.Position != int64(at) {
					t.Fatal(err)
				}
				return
			}
			n := frameHeader + len(fr.Payload)
			if fr.GroupFirst && b[at+posFlags]&flagTxn != 0 {
				n += txnExtension
			}
			if fr.Single != (fr.Key != nil) || !bytes.Equal(fr.Payload, b[at+n-len(fr.Payload):at+n]) {
				t.Fatalf("%+v", fr)
			}
			at += n
		}
	})
}

// fixChecksums makes the checksums of what could be frames right, so that what comes after them is
// tried too.
func fixChecksums(b []byte) {
	for off := uint64(3); len(b) >= frameHeader; off++ {
		n, err := frameSize(b)
		if err != nil || n > len(b) {
			return
		}
		le.PutUint32(b, frameCRC(frameSeed(1, 7), off, b[:n]))
		b = b[n:]
	}
}

// FuzzSegmentOpen: a directory whose newest segment is anything opens with a prefix, or is refused; if
// it opens, it takes frames and opens again.
func FuzzSegmentOpen(f *testing.F) {
	killed, items := build(f, []int{3, 2, 1}, 1)
	good := fileBytes(f, killed, segmentPath(2))
	manifest := fileBytes(f, killed, "data/MANIFEST")
	first := fileBytes(f, killed, segmentPath(1))
	f.Add([]byte{}, 0, 0)
	f.Add([]byte("junk"), len(good), 0)
	f.Add([]byte{0xff}, headerBytes+7, 1)
	f.Add(good[headerBytes:], 50, 5)
	f.Fuzz(func(t *testing.T, patch []byte, at, cut int) {
		b := bytes.Clone(good)
		if at >= 0 && at <= len(b) && len(patch) < 1<<16 {
			n := copy(b[at:], patch)
			b = append(b, patch[n:]...)
		}
		if cut > 0 && cut <= len(b) {
			b = b[:len(b)-cut]
		}
		fsys := vfs.NewMem()
		_ = fsys.MkdirAll("data/shard-00")
		setBytes(t, fsys, segmentPath(1), first)
		setBytes(t, fsys, segmentPath(2), b)
		setBytes(t, fsys, "data/MANIFEST", manifest)
		d, _, err := Open(testOptions(fsys))
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		got := history(t, d.Log(0), d.Log(0).Oldest())
		_ = d.Close(false)
		if len(got) < 5 || len(got) > len(items) {
			t.Fatalf("%d frames", len(got))
		}
		reopen(t, fsys, items, len(got))
	})
}

// FuzzManifest: what decodes is valid and encodes to something that decodes to the same.
func FuzzManifest(f *testing.F) {
	m := &manifest{Version: 1, Clean: true, HashSeed: 1 << 63, LastTxn: 5, Snapshot: &snapshotRef{"s", []Cursor{{5, 1}}}, Shards: []shardManifest{
		{FirstLive: 1, End: &shardEnd{1, 128, Cursor{5, 0}}, Lineage: []Lineage{{Generation: 5, Cause: CauseCreate}}},
	}}
	b, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, false)
	f.Add(b[:len(b)-16], true)
	f.Add([]byte(`{"version":2}`), true)
	f.Fuzz(func(t *testing.T, b []byte, sign bool) {
		if sign {
			b = signed(b)
		}
		m, err := decodeManifest(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		again, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		m2, err := decodeManifest(again)
		if err != nil {
			t.Fatal(err)
		}
		if third, _ := m2.encode(); !bytes.Equal(again, third) {
			t.Fatalf("%s\n%s", again, third)
		}
	})
}
