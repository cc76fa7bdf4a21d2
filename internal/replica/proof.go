package replica

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/log"
)

// A generation's identity says that two logs have begun alike, not that they went on alike: a directory that was put back from a copy of its files goes on
// in its old generation with other frames. So the last frame that both have is compared as well, by its checksum, which covers its place, its time and
// its content. Frames that are equal there came from one writer, which never rewrites what is before.

// Check answers REPL.CHECK: args are a cursor for each shard. It returns the checksum of the frame before each, -1 where there is none on disk.
func (s *Source) Check(args [][]byte) ([]int64, error) {
	at, err := ParseCursors(args, s.eng.Shards())
	if err != nil {
		return nil, err
	}
	return lastSums(s.eng.Dir(), at), nil
}

// lastSums returns the checksum of the frame before each cursor, -1 where there is none on disk.
func lastSums(dir *log.Dir, at []log.Cursor) []int64 {
	sums := make([]int64, len(at))
	for i, c := range at {
		sums[i] = lastSum(dir.Log(i), c)
	}
	return sums
}

func lastSum(l *log.Log, c log.Cursor) int64 {
	if c.Offset == 0 {
		return -1
	}
	c.Offset--
	r, err := l.NewReader(c, log.ReaderOptions{})
	if err != nil {
		return -1
	}
	defer r.Close()
	if f, err := r.Next(); err != nil || f.Cursor != c {
		return -1
	}
	return int64(binary.LittleEndian.Uint32(r.Raw()))
}

// differ returns the shards whose frames before the cursors, which both histories have, are not those of the source. A source that can't be asked is
// believed.
func (f *Follower) differ(c *client.Conn, at []log.Cursor) (shards []int, err error) {
	args := [][]byte{[]byte("REPL.CHECK")}
	for _, cur := range at {
		args = append(args, strconv.AppendUint(nil, cur.Generation, 10), strconv.AppendUint(nil, cur.Offset, 10))
	}
	if err := c.Send(f.o.Timeout(), args...); err != nil {
		return nil, err
	}
	v, err := c.Skip()
	if err != nil {
		return nil, err
	}
	if e, bad := v.(client.Error); bad {
		f.o.Logger.Warn("replication: the source can't be asked for the checksums of the last frames", "error", e)
		return nil, nil
	}
	theirs, ok := v.([]any)
	if !ok || len(theirs) != len(at) {
		return nil, errors.New("REPL.CHECK: unexpected reply")
	}
	for i, own := range lastSums(f.o.Engine.Dir(), at) {
		sum, ok := theirs[i].(int64)
		if !ok {
			return nil, errors.New("REPL.CHECK: unexpected reply")
		}
		if own >= 0 && sum >= 0 && own != sum {
			shards = append(shards, i)
		}
	}
	return shards, nil
}
