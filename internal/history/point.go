package history

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

// Point names a state of a directory. The zero value is the latest there is.
type Point struct {
	kind    pointKind
	cursors []log.Cursor
	timeMS  int64 // kind timed; of a named frame: where the search begins, 0: the newest is meant
	before  Pattern
}

type pointKind int

const (
	latest pointKind = iota
	atCursors
	atTime
	beforeFrame
	beforeDamage
	empty
)

// Latest is the newest state.
func Latest() Point { return Point{} }

// At is the state of shard i at cursors[i]: the first frame that is not in it.
func At(cursors ...log.Cursor) Point { return Point{kind: atCursors, cursors: cursors} }

// AtTime is the state with the frames of that unix millisecond and before.
func AtTime(ms int64) Point { return Point{kind: atTime, timeMS: ms} }

// Before is the state before the newest group with a frame that p matches.
func Before(p Pattern) Point { return Point{kind: beforeFrame, before: p} }

// BeforeSince is the state before the first group at or after sinceMS with a frame that p matches.
func BeforeSince(p Pattern, sinceMS int64) Point {
	return Point{kind: beforeFrame, before: p, timeMS: max(sinceMS, 1)}
}

// BeforeDamage is the newest state that needs no damaged or missing frame, whole in groups.
func BeforeDamage() Point { return Point{kind: beforeDamage} }

// Empty is the state without keys and libraries, whatever the history.
func Empty() Point { return Point{kind: empty} }

// String describes the point.
func (p Point) String() string {
	switch p.kind {
	case atCursors:
		var s []string
		for _, c := range p.cursors {
			s = append(s, c.String())
		}
		return "cursor " + strings.Join(s, ",")
	case atTime:
		return fmt.Sprintf("time %s (%d)", FormatMS(p.timeMS), p.timeMS)
	case beforeFrame:
		if p.timeMS > 0 {
			return fmt.Sprintf("before the first %s since %s", p.before, FormatMS(p.timeMS))
		}
		return fmt.Sprintf("before the last %s", p.before)
	case beforeDamage:
		return "before the damage"
	case empty:
		return "empty"
	}
	return "latest"
}

// ParseCursors reads cursors separated by commas.
func ParseCursors(text string) ([]log.Cursor, error) {
	var cs []log.Cursor
	for s := range strings.SplitSeq(text, ",") {
		c, err := log.ParseCursor(s)
		if err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	return cs, nil
}

var clockTime = regexp.MustCompile(`^\d{1,2}:\d\d(:|$)`)

// ParsePoint reads a point: "latest", "empty", cursors separated by commas, "before:COMMAND", "since:TIME,before:COMMAND", or a time.
func ParsePoint(text string, now time.Time) (Point, error) {
	if since, cmd, ok := strings.Cut(text, "before:"); ok {
		p, err := ParsePattern(cmd)
		if since == "" || err != nil {
			return Before(p), err
		}
		t, err := ParseTime(strings.TrimSuffix(strings.TrimPrefix(since, "since:"), ","), now)
		return BeforeSince(p, t.UnixMilli()), err
	}
	switch text {
	case "latest":
		return Latest(), nil
	case "empty":
		return Empty(), nil
	}
	if cs, err := ParseCursors(text); err == nil && !clockTime.MatchString(text) {
		return At(cs...), nil
	}
	t, err := ParseTime(text, now)
	if err != nil {
		return Point{}, fmt.Errorf("%w, or generation:offset for each shard, separated by commas, or latest, or empty, or [since:TIME,]before:COMMAND", err)
	}
	return AtTime(t.UnixMilli()), nil
}

// Pattern matches effects by their first words: the verb in any case, arguments with the wildcards of
// KEYS. With one word behind a verb that takes many keys (DEL), any of the keys may match.
type Pattern struct{ words []string }

// ParsePattern reads a pattern as a command line, with quotes as redis-cli reads them.
func ParsePattern(text string) (Pattern, error) {
	words, ok := state.SplitWords(text)
	if !ok || len(words) == 0 {
		return Pattern{}, fmt.Errorf("command %q: want a verb and perhaps arguments", text)
	}
	return Pattern{words}, nil
}

// String returns the pattern's words.
func (p Pattern) String() string { return strings.Join(p.words, " ") }

func (p Pattern) matches(e *effect.Effect) bool {
	if !strings.EqualFold(p.words[0], e.Op.String()) {
		return false
	}
	args := p.words[1:]
	if e.Op.Keys() == effect.AllKeys && len(args) == 1 {
		for _, a := range e.Args {
			if command.Match([]byte(args[0]), a) {
				return true
			}
		}
		return false
	}
	if len(args) > len(e.Args) {
		return false
	}
	for i, a := range args {
		if !command.Match([]byte(a), e.Args[i]) {
			return false
		}
	}
	return true
}
