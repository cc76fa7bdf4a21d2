package feed

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/kevydb/kevy/log"
)

const (
	defaultCount = 256
	maxCount     = 4096
	// replyBytes is about how many bytes of frames one reply carries.
	replyBytes = 4 << 20
)

// Error is an error reply of a FEED command, as it stands on the wire without the leading "-".
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

// The error replies that are always the same.
const (
	errShard       Error = "ERR invalid shard"
	errGeneration  Error = "ERR invalid generation"
	errOffset      Error = "ERR invalid offset"
	errCount       Error = "ERR invalid COUNT"
	errPrefix      Error = "ERR PREFIX requires a value"
	errBlock       Error = "ERR invalid BLOCK"
	errSyntax      Error = "ERR syntax error"
	errShardRange  Error = "ERR shard out of range"
	errAhead       Error = "ERR feed cursor ahead of stream"
	ErrDisabled    Error = "ERR feed disabled: start kevy with [feed] enabled = true (--feed-enabled) to serve it"
	errInfoArity   Error = "ERR wrong number of arguments for 'feed.info' command"
	errStoreClosed Error = "ERR the store is closing"
)

// Request is a parsed FEED.READ.
type Request struct {
	Filter

	Shard  uint64
	Cursor log.Cursor
	// Block is how long to wait for a frame: negative: not at all, 0: for ever.
	Block    time.Duration
	WithMeta bool
	Lineage  bool
}

// ParseRead parses the arguments of FEED.READ, args[0] being the name.
// REQUIRES: len(args) >= 4. The request aliases args.
func ParseRead(args [][]byte) (Request, error) {
	r := Request{Filter: Filter{Count: defaultCount}, Block: -1}
	var err error
	if r.Shard, err = unsigned(args[1], errShard); err != nil {
		return r, err
	}
	if r.Cursor.Generation, err = unsigned(args[2], errGeneration); err != nil {
		return r, err
	}
	if r.Cursor.Offset, err = unsigned(args[3], errOffset); err != nil {
		return r, err
	}
	for rest := args[4:]; len(rest) > 0; {
		if rest, err = r.option(rest); err != nil {
			return r, err
		}
	}
	return r, nil
}

// option parses the first option of rest and returns what follows it.
func (r *Request) option(rest [][]byte) ([][]byte, error) {
	name := strings.ToUpper(string(rest[0]))
	switch name {
	case "WITHMETA":
		r.WithMeta = true
		return rest[1:], nil
	case "LINEAGE":
		r.Lineage = true
		return rest[1:], nil
	case "BLOCK":
		if len(rest) < 2 {
			return nil, errBlock
		}
		n, err := unsigned(rest[1], errBlock)
		r.Block = time.Duration(min(n, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
		return rest[2:], err
	}
	return r.Filter.option(name, rest)
}

// Filter is what FEED.READ and FEED.SCAN share: how much to deliver, and of which keys.
type Filter struct {
	Count    int
	Prefixes [][]byte // any of them; empty: all keys
}

// option parses COUNT or PREFIX, rest[0] being the name, and returns what follows it.
func (f *Filter) option(name string, rest [][]byte) ([][]byte, error) {
	switch name {
	case "COUNT":
		if len(rest) < 2 {
			return nil, errCount
		}
		n, err := unsigned(rest[1], errCount)
		f.Count = int(min(max(n, 1), maxCount)) //nolint:gosec // bounded
		return rest[2:], err
	case "PREFIX":
		if len(rest) < 2 {
			return nil, errPrefix
		}
		f.Prefixes = append(f.Prefixes, rest[1])
		return rest[2:], nil
	}
	return nil, errSyntax
}

// unsigned parses a plain unsigned decimal.
func unsigned(b []byte, bad Error) (uint64, error) {
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return 0, bad
	}
	return n, nil
}

// Matches reports whether a frame passes the filter: frames without the plain single-key shape
// always do.
func (r *Request) Matches(f *log.Frame) bool {
	return f.Wanted(r.Prefixes)
}
