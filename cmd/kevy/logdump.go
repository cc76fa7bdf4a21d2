package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/log"
)

const logDumpUsage = `Usage: kevy log dump DIR [flags]

Prints the frames of the log, from the oldest on disk. Over several shards they come in an order that
gives a server without shards the same state: parts of a group together, other groups by their times.

  --format text   a line for people each (the default)
  --format json   a JSON object a line (the same as --json)
  --format resp   the commands as a stock Redis takes them: kevy log dump DIR --format resp | redis-cli --pipe
                  A FLUSHALL over all shards comes once. A key whose deadline has passed by now, although it
                  was lifted later in the log, is gone in a server that reads it today.

The dump has frames only: what was there before the oldest one on disk is in a snapshot set. All keys as they are at a
point, for an empty Redis:
  kevy diff DIR@empty @latest --format resp | redis-cli --pipe

Flags:
%s
Exit codes: 0 dumped, 1 the frames can't be read (what was printed before is right), 2 a bad flag.
`

type dumpFlags struct {
	from, to, prefix, format string
	shard                    int
}

func logDumpFlags(o *dumpFlags) *pflag.FlagSet {
	fs := newFlags("dump")
	fs.StringVar(&o.from, "from", "", "cursor of the first frame, generation:offset; of one shard")
	fs.StringVar(&o.to, "to", "", "cursor of the first frame not to print; of one shard")
	fs.StringVar(&o.prefix, "prefix", "", "only frames of keys that start with this, and those of several keys")
	fs.StringVar(&o.format, "format", "text", "text, json or resp")
	fs.IntVar(&o.shard, "shard", -1, "only this shard; default: all")
	return fs
}

// options checks the flags.
func (o *dumpFlags) options() (d history.DumpOptions, err error) {
	d = history.DumpOptions{Shard: o.shard, Prefix: []byte(o.prefix)}
	if o.format != "text" && o.format != "json" && o.format != "resp" {
		return d, fmt.Errorf("--format %q: want text, json or resp", o.format)
	}
	for _, f := range []struct {
		name, text string
		to         **log.Cursor
	}{{"--from", o.from, &d.From}, {"--to", o.to, &d.To}} {
		if f.text == "" {
			continue
		}
		c, err := log.ParseCursor(f.text)
		if err != nil {
			return d, fmt.Errorf("%s: %w", f.name, err)
		}
		*f.to = &c
	}
	return d, nil
}

func logDump(args []string, stdout, stderr io.Writer) int {
	var o dumpFlags
	var dir string
	var opts history.DumpOptions
	t := &tool{name: "kevy log dump", usage: logDumpUsage, stdout: stdout, stderr: stderr}
	fs := logDumpFlags(&o)
	if done, code := t.parse(fs, args, func() (err error) {
		if dir, err = oneDir(fs.Args()); err != nil {
			return err
		}
		opts, err = o.options()
		return err
	}); done {
		return code
	}
	if t.json {
		o.format = "json"
	}
	h, done, err := openHistory(dir)
	if err != nil {
		return t.fail(err)
	}
	defer done()
	switch {
	case opts.Shard >= h.Shards():
		return t.fail(fmt.Errorf("--shard %d: %s has %d shards", opts.Shard, dir, h.Shards()))
	case opts.Shard < 0 && h.Shards() > 1 && (opts.From != nil || opts.To != nil):
		return t.fail(errors.New("--from and --to name cursors of one shard: say which with --shard"))
	}
	if o.format == "resp" && opts.From == nil && !h.FromFirst() {
		fmt.Fprintf(stderr, "%s: note: the log on disk does not go back to the first frame, so these commands alone do not make the whole state: "+
			"kevy diff %s@empty @latest --format resp prints all keys\n", t.name, shellWord(dir))
	}
	opts.Meter = &t.meter
	stop := func() {}
	if _, both := terminal(stdout); !both { // lines in between would break those of the dump
		stop = t.watch()
	}
	out := bufio.NewWriterSize(stdout, 64<<10)
	err = h.Dump(opts, func(d *history.Dumped) error { return writeDumped(out, d, o.format) })
	if ferr := out.Flush(); err == nil { // a writer that has failed fails again
		err = ferr
	}
	stop()
	if err != nil {
		return t.fail(err)
	}
	return exitOK
}

func writeDumped(w *bufio.Writer, d *history.Dumped, format string) error {
	if format == "resp" {
		if d.Twin {
			return nil
		}
		_, err := w.Write(d.Payload)
		return err
	}
	c := change{
		Shard: d.Shard, Generation: d.Cursor.Generation, Offset: int64(d.Cursor.Offset), Time: d.TimeMS,
		Cause: d.Cause.String(), First: &d.Group, Txn: d.Txn,
	}
	for _, a := range d.Argv {
		c.Argv = append(c.Argv, string(a))
	}
	line, err := c.line(format == "json")
	if err != nil {
		return err
	}
	_, err = w.WriteString(line + "\n")
	return err
}
