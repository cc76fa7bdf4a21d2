package archive

import (
	"testing"

	"github.com/kevydb/kevy/log"
)

func sample() *manifest {
	return &manifest{
		HashSeed: 7, CutMS: 5,
		Shards: []shardPart{{
			End: log.Cursor{Generation: 9, Offset: 4}, Lineage: []log.Lineage{{Generation: 9, TimeMS: 1}},
			Segments: []segment{
				{Number: 1, Start: log.Cursor{Generation: 9}, Whole: true, Sealed: &object{"shard-00/00000000000000000001.sealed", 10, 1}},
				{Number: 2, Start: log.Cursor{Generation: 9, Offset: 2}, Parts: []part{
					{object{"shard-00/00000000000000000002.seg.0-150", 150, 1}, 0, 3}, {object{"shard-00/00000000000000000002.seg.150-170", 20, 1}, 150, 4},
				}},
			},
		}},
	}
}

func TestManifestRules(t *testing.T) {
	if b, err := sample().encode(); err != nil {
		t.Fatal(err)
	} else if _, err := decodeManifest(b); err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(*manifest){
		"a name outside":      func(m *manifest) { m.Shards[0].Segments[0].Sealed.Name = "../../etc/passwd" },
		"a retired stranger":  func(m *manifest) { m.Retired = []retired{{"/etc/passwd", 1}} },
		"a hole":              func(m *manifest) { m.Shards[0].Segments[1].Number = 3 },
		"a hole in the parts": func(m *manifest) { m.Shards[0].Segments[1].Parts[1].From = 151 },
		"another end":         func(m *manifest) { m.Shards[0].End.Offset = 5 },
		"no lineage":          func(m *manifest) { m.Shards[0].Lineage = nil },
		"half a segment":      func(m *manifest) { m.Shards[0].Segments[0].Whole = false },
		"a set of no shards":  func(m *manifest) { m.Sets = []setPart{{ID: "1"}} },
		"too many shards":     func(m *manifest) { m.Shards = make([]shardPart, 65) },
	} {
		m := sample()
		spoil(m)
		if _, err := m.encode(); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

// FuzzManifest reads any bytes, and shows what it accepts as a directory.
func FuzzManifest(f *testing.F) {
	b, err := sample().encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[:len(b)-len("crc32c 01234567\n")])
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		m, err := decodeManifest(signed(doc))
		if err != nil || len(m.Shards) == 0 {
			return
		}
		if _, err := m.encode(); err != nil {
			t.Fatalf("read, and not written: %v", err)
		}
		_, _ = m.outline() // refuses what the log's manifest can't say
	})
}
