package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kevydb/kevy/internal/history"
)

const diffUsage = `Usage: kevy diff DIR@POINT [DIR@]POINT [flags]

Prints the keys that differ between two points of a data directory, or of two directories, and how (DIR may be the
URL of an archive: file:///dir, s3://bucket/prefix):

  added, removed     the key is there only at the second, at the first point
  changed            another value (and perhaps another deadline)
  deadline           the same value with another deadline

Without --prefix libraries of functions that differ are shown too.

Strings of at most %d bytes are shown. A POINT is "latest", "empty" (no keys), cursors (generation:offset, one for each shard,
separated by commas), "before:COMMAND" (the newest that matches), "since:TIME,before:COMMAND" (the first since
then), or a time:
  %s

--format resp prints the commands that lead from the first point to the second: with the latest state as the
first one and a state of the past as the second, they undo what happened since, on a server that runs.
  kevy diff DIR@latest DIR@POINT --format resp | redis-cli --pipe
From "empty" they make everything, as for a stock Redis that has no keys. They overwrite what was written to these keys after the diff was made. --only restricts any format to
some kinds of changes: with --only added they put back only keys that are gone.

Flags:
%%s
Exit codes: 0 no difference, 1 a point can't be restored, 2 a bad flag, 4 there are differences (not with --format resp).
`

// place is a point of a directory as a command line names it.
type place struct {
	dir   string
	point history.Point
}

func parsePlace(text, dir string, now time.Time) (p place, err error) {
	point := text
	at := strings.LastIndexByte(text, '@')
	for _, word := range []string{"@before:", "@since:"} { // a command may have an @ too
		if i := strings.Index(text, word); i >= 0 {
			at = i
			break
		}
	}
	if at >= 0 {
		point = text[at+1:]
		if at > 0 {
			dir = text[:at]
		}
	}
	if dir == "" || point == "" {
		return p, fmt.Errorf("%q: want DIR@POINT", text)
	}
	p.dir = dir
	if p.point, err = history.ParsePoint(point, now); err != nil {
		return p, fmt.Errorf("%q: %w", text, err)
	}
	return p, nil
}

// changeJSON is one difference as --json prints it.
type changeJSON struct {
	Kind string     `json:"change"`
	Key  string     `json:"key"`                  // or, with the type library, its name
	Raw  []byte     `json:"key_base64,omitempty"` // if the key is not UTF-8
	Old  *valueJSON `json:"old,omitempty"`
	New  *valueJSON `json:"new,omitempty"`
}

type valueJSON struct {
	Type       string  `json:"type"`
	DeadlineMS int64   `json:"deadline_ms,omitempty"`
	Value      *string `json:"value,omitempty"`
	Raw        []byte  `json:"value_base64,omitempty"` // if the value is not UTF-8
	Len        int     `json:"bytes,omitempty"`
}

// diff is kevy diff.
func diff(args []string, stdout, stderr io.Writer) int {
	var places [2]place
	var prefix, format string
	var only []string
	t := &tool{name: "kevy diff", usage: fmt.Sprintf(diffUsage, history.ShortValue, history.TimeForms), stdout: stdout, stderr: stderr}
	fs := newFlags("diff")
	fs.StringVar(&prefix, "prefix", "", "only keys that start with this")
	fs.StringVar(&format, "format", "text", "text, json (the same as --json) or resp")
	fs.StringSliceVar(&only, "only", nil, "kinds of changes: added, removed, changed, deadline")
	if done, code := t.parse(fs, args, func() (err error) {
		if fs.NArg() != 2 {
			return errors.New("want two arguments: DIR@POINT [DIR@]POINT")
		}
		if err := diffWords(format, only); err != nil {
			return err
		}
		now := time.Now()
		if places[0], err = parsePlace(fs.Arg(0), "", now); err != nil {
			return err
		}
		places[1], err = parsePlace(fs.Arg(1), places[0].dir, now)
		return err
	}); done {
		return code
	}
	var built [2]*history.Built
	stop := t.watch()
	for i, p := range places {
		b, err := buildPlace(p, []byte(prefix), &t.meter)
		if err != nil {
			stop()
			return t.fail(err)
		}
		defer b.Release()
		built[i] = b
	}
	changes := history.Diff(built[0], built[1], []byte(prefix))
	changes = slices.DeleteFunc(changes, func(c history.Change) bool {
		return len(only) > 0 && !slices.Contains(only, c.Kind())
	})
	stop()
	t.json = t.json || format == "json"
	if code := t.printChanges(built[1], changes, format == "resp"); code != exitOK {
		return code
	}
	if len(changes) > 0 && format != "resp" {
		return exitFound
	}
	return exitOK
}

// diffWords checks flags that take words.
func diffWords(format string, only []string) error {
	if format != "text" && format != "json" && format != "resp" {
		return fmt.Errorf("--format %q: want text, json or resp", format)
	}
	for _, kind := range only {
		if !slices.Contains([]string{"added", "removed", "changed", "deadline"}, kind) {
			return fmt.Errorf("--only %q: want added, removed, changed or deadline", kind)
		}
	}
	return nil
}

// printChanges prints the changes that lead to the point b.
func (t *tool) printChanges(b *history.Built, changes []history.Change, asCommands bool) int {
	if !asCommands {
		list := make([]changeJSON, 0, len(changes))
		for i := range changes {
			list = append(list, jsonChange(&changes[i]))
		}
		return t.print(list, func() []byte { return describeChanges(changes) })
	}
	out := bufio.NewWriterSize(t.stdout, 64<<10)
	err := history.Patch(b, changes, func(command []byte) error {
		_, err := out.Write(command)
		return err
	})
	if ferr := out.Flush(); err == nil { // a writer that has failed fails again
		err = ferr
	}
	if err != nil {
		return t.fail(err)
	}
	return exitOK
}

func jsonChange(c *history.Change) changeJSON {
	j := changeJSON{Kind: c.Kind(), Key: string(c.Key), Old: jsonValue(c.Old), New: jsonValue(c.New)}
	if !utf8.Valid(c.Key) {
		j.Raw = c.Key
	}
	return j
}

func jsonValue(v *history.Value) *valueJSON {
	if v == nil {
		return nil
	}
	j := &valueJSON{Type: v.Type, DeadlineMS: v.DeadlineMS, Len: v.Len}
	if v.Text != nil {
		s := string(v.Text)
		if j.Value = &s; !utf8.Valid(v.Text) {
			j.Raw = v.Text
		}
	}
	return j
}

func describeChanges(changes []history.Change) []byte {
	var out []byte
	counts := map[string]int{}
	for i := range changes {
		c := &changes[i]
		counts[c.Kind()]++
		out = fmt.Appendf(out, "%-8s %s", c.Kind(), strconv.Quote(string(c.Key)))
		if c.Old != nil {
			out = fmt.Appendf(out, "  %s", describeValue(c.Old))
		}
		if c.Old != nil && c.New != nil {
			out = append(out, "  ->"...)
		}
		if c.New != nil {
			out = fmt.Appendf(out, "  %s", describeValue(c.New))
		}
		out = append(out, '\n')
	}
	return fmt.Appendf(out, "%d added, %d removed, %d changed, %d with another deadline\n",
		counts["added"], counts["removed"], counts["changed"], counts["deadline"])
}

func describeValue(v *history.Value) string {
	s := v.Type
	switch {
	case v.Text != nil:
		s += " " + strconv.Quote(string(v.Text))
	case v.Len > 0:
		s += fmt.Sprintf(" of %d bytes", v.Len)
	}
	if v.DeadlineMS != 0 {
		s += " until " + history.FormatMS(v.DeadlineMS)
	}
	return s
}
