package gate

import (
	"errors"
	"io"
	"slices"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/log"
)

// FramesFor returns what s has and r, which follows it, has not, a part for each frame: an Applier must put groups together.
func (s *Store) FramesFor(r *Store) (parts []engine.Foreign) {
	s.T.Helper()
	for i := range s.E.Shards() {
		if err := s.E.Flush(i); err != nil {
			s.T.Fatal(err)
		}
		from := r.E.Dir().Log(i).Tail()
		reader, err := s.E.Dir().Log(i).NewReader(from, log.ReaderOptions{Follow: true})
		if err != nil {
			s.T.Fatal(err)
		}
		add := func(c log.Cursor, raw []byte) {
			p := engine.Foreign{Shard: i, Offset: c.Offset, Raw: slices.Clone(raw)}
			for _, g := range s.E.Dir().Lineage(i) {
				if g.Generation == c.Generation {
					p.Generation = g
				}
			}
			parts = append(parts, p)
		}
		for {
			f, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				s.T.Fatal(err)
			}
			add(f.Cursor, reader.Raw())
		}
		if c := reader.Cursor(); c.Generation != from.Generation && c.Offset == 0 {
			add(c, nil)
		}
		reader.Close()
	}
	return parts
}
