package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/log"
)

const restoreUsage = `Usage: kevy restore --from DIR --to DIR2 [point] [flags]
       kevy restore --from redis://HOST:PORT --to DIR2 [--follow] [--prefix P]
       kevy restore --from URL --rebuild-manifest [--dry-run]

DIR may be the URL of an archive: file:///dir or s3://bucket/prefix?endpoint=...&region=...

Makes the new data directory DIR2 with the state that DIR had at a point: the newest snapshot set
from which the point can be reached, and the frames from there. DIR is only read; it may be in use, or a
copy. DIR2 begins new generations of cause "restore", and is loaded once more to verify it.

Points (one of them):
  --latest           everything there is (the default)
  --time T           the frames of that millisecond and before
  --before COMMAND   what was before the newest matching effect: its verb, and perhaps arguments with
                     wildcards ("FLUSHALL", "DEL user:*"); with --since T the first one since then
  --at G:O           a cursor: that of the first frame not to apply (one for each shard, in shard order)
  --shard-cursors    the same as a list: G:O,G:O,...
  --before-damage    what needs no damaged or missing frame

From a running server it takes what there is now, while writes go on there; with --follow it keeps DIR2 in step until it is interrupted, and
says how far behind it is. A copy that was interrupted so, and not written to since, goes on when it is named again.
` + loginUsage + `
--time and --before never tear a group: over all shards it is in as a whole or not at all.
A directory whose MANIFEST is lost or damaged is refused. With --rebuild-manifest it is made anew, in memory, from segments and the
newest snapshot set, all of which is read before it is trusted. Of an archive (without --to) it puts ARCHIVE back, which all tools and the server
that archives there then go on with.

Times are read in the local time zone (TZ) unless they name one:
  %s

Flags:
%%s
Exit codes: 0 restored and verified (or planned), 1 not restored, 2 a bad flag.
`

// restoreOptions are the flags of kevy restore.
type restoreOptions struct {
	from, to     string
	latest       bool
	time, before string
	since        string
	at           []string
	shardCursors string
	beforeDamage bool
	prefix       string
	keepExpired  bool
	dryRun       bool
	rebuild      bool
	follow       bool
}

func restoreFlags(o *restoreOptions) *pflag.FlagSet {
	fs := newFlags("restore")
	fs.StringVar(&o.from, "from", "", "data directory to restore from, or URL of a server")
	fs.StringVar(&o.to, "to", "", "data directory to make; must not exist or be empty")
	fs.BoolVar(&o.latest, "latest", false, "the newest state there is")
	fs.StringVar(&o.time, "time", "", "point in time")
	fs.StringVar(&o.before, "before", "", "command whose effect is the first not to apply")
	fs.StringVar(&o.since, "since", "", "with --before: the first one since this time, not the newest")
	fs.StringArrayVar(&o.at, "at", nil, "cursor of the first frame not to apply; one for each shard, in shard order")
	fs.StringVar(&o.shardCursors, "shard-cursors", "", "these cursors in one list, separated by commas")
	fs.BoolVar(&o.beforeDamage, "before-damage", false, "the newest state that needs nothing damaged or missing")
	fs.StringVar(&o.prefix, "prefix", "", "restore only keys that start with this")
	fs.BoolVar(&o.keepExpired, "keep-expired", false, "keep keys (and fields) whose deadline has passed by now, without it")
	fs.BoolVar(&o.dryRun, "dry-run", false, "only print the plan")
	fs.BoolVar(&o.rebuild, "rebuild-manifest", false, "the directory has lost its MANIFEST, or the archive its ARCHIVE: make it anew if all the rest proves whole")
	fs.BoolVar(&o.follow, "follow", false, "from a server: keep the copy in step until interrupted")
	return fs
}

// point returns the point that the flags name.
func (o *restoreOptions) point(now time.Time) (history.Point, error) {
	var p history.Point
	var err error
	named := 0
	for _, f := range []struct {
		set  bool
		read func() (history.Point, error)
	}{
		{o.latest, func() (history.Point, error) { return history.Latest(), nil }},
		{o.beforeDamage, func() (history.Point, error) { return history.BeforeDamage(), nil }},
		{o.time != "", func() (history.Point, error) { return timePoint("--time", o.time, now, history.AtTime) }},
		{o.before != "", func() (history.Point, error) { return o.beforePoint(now) }},
		{len(o.at) > 0, func() (history.Point, error) { return cursorPoint("--at", o.at...) }},
		{o.shardCursors != "", func() (history.Point, error) { return cursorPoint("--shard-cursors", o.shardCursors) }},
	} {
		if !f.set {
			continue
		}
		if named++; named > 1 {
			return p, errors.New("--latest, --time, --before, --at, --shard-cursors and --before-damage exclude each other: name one point")
		}
		if p, err = f.read(); err != nil {
			return p, err
		}
	}
	if o.since != "" && o.before == "" {
		return p, errors.New("--since goes with --before")
	}
	return p, nil
}

func timePoint(flag, text string, now time.Time, point func(ms int64) history.Point) (history.Point, error) {
	t, err := history.ParseTime(text, now)
	if err != nil {
		return history.Point{}, fmt.Errorf("%s: %w", flag, err)
	}
	return point(t.UnixMilli()), nil
}

func (o *restoreOptions) beforePoint(now time.Time) (history.Point, error) {
	p, err := history.ParsePattern(o.before)
	if err != nil {
		return history.Point{}, fmt.Errorf("--before: %w", err)
	}
	if o.since == "" {
		return history.Before(p), nil
	}
	return timePoint("--since", o.since, now, func(ms int64) history.Point { return history.BeforeSince(p, ms) })
}

func cursorPoint(flag string, lists ...string) (history.Point, error) {
	var all []log.Cursor
	for _, l := range lists {
		cs, err := history.ParseCursors(l)
		if err != nil {
			return history.Point{}, fmt.Errorf("%s: %w", flag, err)
		}
		all = append(all, cs...)
	}
	return history.At(all...), nil
}

// check refuses what does not go together, and returns the point.
func (o *restoreOptions) check(fs *pflag.FlagSet) (point history.Point, err error) {
	switch {
	case fs.NArg() > 0:
		return point, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.from == "":
		return point, errors.New("--from is missing: name the data directory to restore from")
	case o.to == "" && !o.dryRun && !o.rebuildsArchive():
		return point, errors.New("--to is missing: name the data directory to make")
	case archive.IsURL(o.to):
		return point, errors.New("--to is the URL of an archive: name a data directory to make; a server that uses it archives it")
	case isURL(o.to):
		return point, fmt.Errorf("--to %s: name a data directory to make", o.to)
	}
	if err := o.checkServer(); err != nil {
		return point, err
	}
	if point, err = o.point(time.Now()); err == nil && o.rebuildsArchive() {
		err = o.checkRebuild(point)
	}
	return point, err
}

// restore is kevy restore.
func restore(args []string, stdout, stderr io.Writer) int {
	var o restoreOptions
	var point history.Point
	t := &tool{name: "kevy restore", usage: fmt.Sprintf(restoreUsage, history.TimeForms), stdout: stdout, stderr: stderr}
	fs := restoreFlags(&o)
	if done, code := t.parse(fs, args, func() (err error) {
		point, err = o.check(fs)
		return err
	}); done {
		return code
	}
	if isServer(o.from) {
		return restoreServer(t, &o)
	}
	if o.rebuildsArchive() {
		return t.rebuildArchive(&o)
	}
	src, done, err := openPlace(o.from)
	if err != nil {
		return t.fail(err)
	}
	defer done()
	stop := t.watch()
	if o.rebuild {
		if src, err = history.Rebuilt(src, &t.meter); err != nil {
			stop()
			return t.fail(err)
		}
	}
	res, err := history.Restore(history.RestoreOptions{
		From: src, Point: point, To: slashed(o.to), Prefix: []byte(o.prefix),
		KeepExpired: o.keepExpired, DryRun: o.dryRun, Meter: &t.meter,
		Planned: func(p *history.Plan) {
			if !t.json {
				_, _ = t.stdout.Write(describePlan(&o, p)) // an error shows again at the end
			}
		},
	})
	stop()
	if errors.Is(err, log.ErrCorrupt) && !o.beforeDamage {
		err = log.Advise(err, shellWord(o.from))
	}
	if err != nil {
		return t.fail(err)
	}
	return t.print(res, func() []byte { return describeRestored(&o, res) })
}

// slashed makes an absolute, slash-separated path of a directory's name; "" stays.
func slashed(dir string) string {
	if dir == "" {
		return ""
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.ToSlash(dir)
}

func describePlan(o *restoreOptions, p *history.Plan) []byte {
	base := "the first frame"
	if p.Set != "" {
		base = fmt.Sprintf("snapshot set %s of %s (%d keys)", p.Set, history.FormatMS(p.SetTimeMS), p.SetKeys)
	}
	out := fmt.Appendf(nil, "from %s, %s\nstarting with %s, %d frames in %d segments of %d bytes\n",
		o.from, p.Point, base, p.Frames, p.Segments, p.Bytes)
	for i, s := range p.Shards {
		out = fmt.Appendf(out, "shard %d: frames %s to %s: %d\n", i, s.From, s.To, s.Frames)
	}
	return append(out, notes(p)...)
}

func notes(p *history.Plan) (out []byte) {
	for _, n := range p.Notes {
		out = fmt.Appendf(out, "note: %s\n", n)
	}
	return out
}

func describeRestored(o *restoreOptions, res *history.Restored) []byte {
	if res.DryRun {
		out := describePlan(o, res.Plan)
		if res.Digest != "" {
			out = fmt.Appendf(out, "%d keys, digest %s\n", res.Keys, res.Digest)
		}
		return append(out, "nothing was restored: --dry-run\n"...)
	}
	out := notes(&history.Plan{Notes: res.Found})
	for i, c := range res.New {
		out = fmt.Appendf(out, "shard %d goes on as %s\n", i, c)
	}
	out = fmt.Appendf(out, "%d keys, digest %s, verified\n", res.Keys, res.Digest)
	switch {
	case res.Overdue > 0 && res.Kept:
		out = fmt.Appendf(out, "%d keys or fields whose deadline has passed were kept, without it\n", res.Overdue)
	case res.Overdue > 0:
		out = fmt.Appendf(out, "%d keys or fields are past their deadline and go as soon as it is started: --keep-expired keeps them\n", res.Overdue)
	}
	return fmt.Appendf(out, "Start it with: kevy --dir %s\n", shellWord(o.to))
}
