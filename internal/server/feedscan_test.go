package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/wire"
	"github.com/kevydb/kevy/log"
)

// chunk is a reply of FEED.SCAN.
type chunk struct {
	cursor log.Cursor
	next   string
	frames []string
}

func parseChunk(t *testing.T, r *wire.Reply) chunk {
	t.Helper()
	if len(r.Elems) != 4 {
		t.Fatalf("FEED.SCAN: %s", show(r))
	}
	c := chunk{next: string(r.Elems[2].Str)}
	c.cursor = log.Cursor{Generation: uintOf(t, &r.Elems[0]), Offset: uintOf(t, &r.Elems[1])}
	for i := range r.Elems[3].Elems {
		var words []string
		for _, a := range r.Elems[3].Elems[i].Elems {
			words = append(words, string(a.Str))
		}
		c.frames = append(c.frames, strings.Join(words, " "))
	}
	return c
}

func uintOf(t *testing.T, r *wire.Reply) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(string(r.Str), 10, 64)
	if err != nil || r.Kind != ':' {
		t.Fatalf("an integer: %s", show(r))
	}
	return n
}

func (c *client) scan(shard int, start string, options ...string) chunk {
	c.t.Helper()
	r, err := c.Do(append([]string{"FEED.SCAN", strconv.Itoa(shard), start}, options...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	return parseChunk(c.t.(*testing.T), &r)
}

// scanAll scans both shards to their ends and returns all frames, sorted.
func (c *client) scanAll(options ...string) (frames []string) {
	c.t.Helper()
	for shard := range 2 {
		for start, more := "", true; more; more = start != "" {
			got := c.scan(shard, start, options...)
			if got.next != "" && got.next <= start {
				c.t.Fatalf("next start %q after %q", got.next, start)
			}
			start = got.next
			frames = append(frames, got.frames...)
		}
	}
	slices.Sort(frames)
	return frames
}

func TestFeedScanKeys(t *testing.T) {
	c := start(t, testOptions{}).client()
	keys := []string{"", "\x00", "a", "a\x00", "a\x00\xff", "a\r\n", "b", "user:1", "user:2", "user:20", "z", "\xff\xff"}
	var want []string
	for _, k := range keys {
		if _, err := c.Must("SET", k, "v"); err != nil {
			t.Fatal(err)
		}
		want = append(want, "SET "+k+" v")
	}
	slices.Sort(want)
	for _, count := range []string{"1", "2", "3", "5", "100", "0", "18446744073709551615"} {
		if got := c.scanAll("COUNT", count); !slices.Equal(got, want) {
			t.Errorf("COUNT %s:\n got %q\nwant %q", count, got, want)
		}
	}
	for prefix, n := range map[string]int{"": len(keys), "user:": 3, "user:2": 2, "a": 4, "a\x00": 2, "\xff": 1, "none": 0} {
		if got := c.scanAll("COUNT", "1", "PREFIX", prefix); len(got) != n {
			t.Errorf("PREFIX %q: %q, want %d", prefix, got, n)
		}
	}
	if got := c.scanAll("prefix", "user:2", "PREFIX", "user:", "count", "1", "PREFIX", "b", "PREFIX", "user:2"); len(got) != 4 {
		t.Errorf("overlapping prefixes: %q", got)
	}
}

func TestFeedScanErrors(t *testing.T) {
	c := start(t, testOptions{}).client()
	for line, want := range map[string]string{
		"FEED.SCAN":                      "-ERR wrong number of arguments for 'feed.scan' command",
		"FEED.SCAN 0":                    "-ERR wrong number of arguments for 'feed.scan' command",
		"FEED.SCAN x a COUNT x":          "-ERR invalid shard",
		"FEED.SCAN -1 a":                 "-ERR invalid shard",
		"FEED.SCAN 9 a COUNT":            "-ERR invalid COUNT",
		"FEED.SCAN 9 a COUNT x PREFIX":   "-ERR invalid COUNT",
		"FEED.SCAN 9 a PREFIX":           "-ERR PREFIX requires a value",
		"FEED.SCAN 9 a BLOCK 1":          "-ERR syntax error",
		"FEED.SCAN 9 a WITHMETA":         "-ERR syntax error",
		"FEED.SCAN 2 a":                  "-ERR shard out of range",
		"FEED.SCAN 99999999999999 a":     "-ERR shard out of range",
		"FEED.SCAN 0 a COUNT 5 COUNT -1": "-ERR invalid COUNT",
	} {
		c.want(line, want)
	}
	off := start(t, testOptions{set: map[string]string{"feed-enabled": "no"}}).client()
	off.want("FEED.SCAN 0 a COUNT x", "-ERR invalid COUNT")
	off.want("FEED.SCAN 2 a", "-ERR shard out of range")
	off.want("FEED.SCAN 0 a", "-ERR feed disabled*")
}

// TestFeedScanTransaction: inside MULTI the scan shows what the commands before it have done, at a cursor behind
// them, and in scripts as well.
func TestFeedScanTransaction(t *testing.T) {
	for _, policy := range []string{"everysec", "always"} {
		t.Run(policy, func(t *testing.T) {
			c := start(t, testOptions{set: map[string]string{"appendfsync": policy}}).client()
			for _, proto := range []string{"2", "3"} {
				c.do("HELLO " + proto)
				c.do("FLUSHALL")
				for _, line := range []string{
					"MULTI", "SET a 1", "RPUSH l x y", "FEED.SCAN 0 a", "FEED.SCAN 1 a", "DEL a", "FEED.TAIL 0", "FEED.TAIL 1", "EXEC", "FEED.SCAN 0 a", "FEED.SCAN 1 a",
				} {
					c.Queue(wire.Bytes(strings.Fields(line)...))
				}
				if err := c.Flush(); err != nil {
					t.Fatal(err)
				}
				var replies []wire.Reply
				for range 11 {
					r, err := c.Read()
					if err != nil {
						t.Fatal(err)
					}
					replies = append(replies, r)
				}
				exec := replies[8].Elems
				inside := [2]chunk{parseChunk(t, &exec[2]), parseChunk(t, &exec[3])}
				if all := slices.Concat(inside[0].frames, inside[1].frames); len(all) != 2 {
					t.Errorf("inside: %q", all)
				}
				after := [2]chunk{parseChunk(t, &replies[9]), parseChunk(t, &replies[10])}
				if all := slices.Concat(after[0].frames, after[1].frames); !slices.Equal(all, []string{"RPUSH l x y"}) {
					t.Errorf("after: %q", all)
				}
				frames := inside[0].cursor.Offset + inside[1].cursor.Offset
				if frames != 2 {
					t.Errorf("cursors inside: %v, %v: want 2 frames", inside[0].cursor, inside[1].cursor)
				}
				for i := range after {
					if tail := uintOf(t, &exec[5+i].Elems[1]); after[i].cursor.Offset != tail {
						t.Errorf("shard %d: cursor %v after, tail inside %d", i, after[i].cursor, tail)
					}
				}
			}
			script := "redis.call('SET','s','1') return #redis.call('FEED.SCAN','0','')[4] + #redis.call('FEED.SCAN','1','')[4]"
			if r, err := c.Must("EVAL", script, "0"); err != nil || show(&r) != ":2" {
				t.Errorf("in a script: %s, %v", show(&r), err)
			}
		})
	}
}

// TestFeedScanLibraries: the scan of shard 0 begins with the libraries of functions, whatever the prefix is.
func TestFeedScanLibraries(t *testing.T) {
	c := start(t, testOptions{}).client()
	code := "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
	if _, err := c.Must("FUNCTION", "LOAD", code); err != nil {
		t.Fatal(err)
	}
	if got := c.scan(0, "", "PREFIX", "x"); !slices.Equal(got.frames, []string{"FUNCTION LOAD REPLACE " + code}) || got.next != "" {
		t.Errorf("shard 0: %+v", got)
	}
	if got := c.scan(1, ""); len(got.frames) != 0 {
		t.Errorf("shard 1: %+v", got)
	}
	if got := c.scan(0, "\x00"); len(got.frames) != 0 {
		t.Errorf("not from the beginning: %+v", got)
	}
}

// TestFeedScanSize: a reply has about 4 MiB, but never part of a key: a large one comes alone and whole.
func TestFeedScanSize(t *testing.T) {
	c := start(t, testOptions{}).client()
	value := strings.Repeat("x", 1<<20)
	for i := range 20 {
		if _, err := c.Must("SET", fmt.Sprintf("k%02d", i), value); err != nil {
			t.Fatal(err)
		}
	}
	for range 14 {
		if _, err := c.Must("RPUSH", "k05x", value); err != nil {
			t.Fatal(err)
		}
	}
	keys := 0
	for shard := range 2 {
		for start, more := "", true; more; more = start != "" {
			got := c.scan(shard, start, "COUNT", "4096")
			size := 0
			for _, f := range got.frames {
				size += len(f)
				if strings.HasPrefix(f, "SET") {
					keys++
				}
			}
			big := slices.ContainsFunc(got.frames, func(f string) bool { return strings.HasPrefix(f, "RPUSH k05x") })
			if !big && size > 5<<20 || big && size > 15<<20 || big && size < 14<<20 {
				t.Errorf("shard %d from %q: %d bytes in %d frames", shard, start, size, len(got.frames))
			}
			if got.next != "" && size == 0 {
				t.Errorf("an empty reply goes on with %q", got.next)
			}
			start = got.next
		}
	}
	if keys != 20 {
		t.Errorf("%d keys", keys)
	}
}
