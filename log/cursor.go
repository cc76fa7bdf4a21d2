package log

import (
	"fmt"
	"strconv"
	"strings"
)

// Cursor is a position in the stream of one shard: the offset of the next frame to read, in one
// generation. Cursors of different generations have no order; the lineage tells how they relate.
type Cursor struct {
	Generation uint64 `json:"generation"`
	Offset     uint64 `json:"offset"`
}

// String returns "generation:offset" in decimal, the form ParseCursor reads.
func (c Cursor) String() string {
	return strconv.FormatUint(c.Generation, 10) + ":" + strconv.FormatUint(c.Offset, 10)
}

// ParseCursor reads the form String writes and nothing else (no signs, no spaces).
func ParseCursor(s string) (Cursor, error) {
	g, o, ok := strings.Cut(s, ":")
	if !ok {
		return Cursor{}, fmt.Errorf("log: cursor %q: want generation:offset", s)
	}
	gen, err := strconv.ParseUint(g, 10, 64)
	if err != nil {
		return Cursor{}, fmt.Errorf("log: cursor %q: generation: %w", s, err)
	}
	off, err := strconv.ParseUint(o, 10, 64)
	if err != nil {
		return Cursor{}, fmt.Errorf("log: cursor %q: offset: %w", s, err)
	}
	return Cursor{Generation: gen, Offset: off}, nil
}

// Cause says why a generation began. The numbers are wire format (segment header).
type Cause uint32

// The causes of generations.
const (
	CauseCreate    Cause = 1 // the directory was created
	CauseFlush     Cause = 2 // FLUSHALL or FLUSHDB
	CauseCrash     Cause = 3 // the store was not closed cleanly
	CauseRestore   Cause = 4 // restored from a snapshot
	CausePromotion Cause = 5 // a replica became the primary
	CauseRepair    Cause = 6 // repaired, re-sharded
	// -- add new causes here --
)

// String returns the name used in FEED.INFO, in the manifest and in log lines.
func (c Cause) String() string { return name(causeNames, int(c), "cause") }

// ParseCause is the inverse of Cause.String for known causes.
func ParseCause(s string) (Cause, error) {
	for c, n := range causeNames {
		if n == s && n != "" {
			return Cause(c), nil
		}
	}
	return 0, fmt.Errorf("log: unknown cause of a generation %q", s)
}

var causeNames = []string{
	CauseCreate:    "create",
	CauseFlush:     "flushall",
	CauseCrash:     "crash",
	CauseRestore:   "restore",
	CausePromotion: "promotion",
	CauseRepair:    "repair",
}

// FrameCause says why the effects of a frame happened. The numbers are wire format.
type FrameCause uint8

// The causes of frames.
const (
	ByClient   FrameCause = 0 // a command
	ByExpiry   FrameCause = 1 // a deadline passed
	ByEviction FrameCause = 2 // maxmemory
	ByScript   FrameCause = 3 // EVAL, FCALL
	ByRestore  FrameCause = 4 // a restore
	// -- add new causes here --
)

// String returns the name WITHMETA shows.
func (c FrameCause) String() string { return name(frameCauseNames, int(c), "cause") }

var frameCauseNames = []string{
	ByClient:   "client",
	ByExpiry:   "expired",
	ByEviction: "evicted",
	ByScript:   "script",
	ByRestore:  "restore",
}

// Policy says when appended frames are made durable, and with it what an acknowledgement means
// and from when on frames are visible.
type Policy int

// The policies, named as appendfsync names them.
const (
	EverySec Policy = iota // fsync once a second; visible when written
	Always                 // group commit; visible when durable
	No                     // the operating system decides; visible when written
)

// String returns the word appendfsync uses.
func (p Policy) String() string { return name(policyNames, int(p), "policy") }

// ParsePolicy reads the word appendfsync uses, in any case.
func ParsePolicy(s string) (Policy, error) {
	for p, n := range policyNames {
		if strings.EqualFold(n, s) {
			return Policy(p), nil
		}
	}
	return 0, fmt.Errorf("log: unknown policy %q: want always, everysec or no", s)
}

var policyNames = []string{EverySec: "everysec", Always: "always", No: "no"}

func name(names []string, n int, what string) string {
	if n >= 0 && n < len(names) && names[n] != "" {
		return names[n]
	}
	return what + "(" + strconv.Itoa(n) + ")"
}
