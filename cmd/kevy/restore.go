package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/log"
)

const restoreUsage = `Usage: kevy restore --from DIR --to DIR2 [--at generation:offset]... [flags]

Makes the new data directory DIR2 with the state that DIR had at a cursor: the newest snapshot set
from which the cursor can be reached, and the frames from there. DIR is only read; it may be in
use. DIR2 begins a new generation of cause "restore", and is loaded once more to verify it.

Flags:
%s
Exit codes: 0 restored and verified, 1 not restored, 2 a bad flag.
`

// restoreOptions are the flags of kevy restore.
type restoreOptions struct {
	from, to string
	at       []string
	latest   bool
	dryRun   bool
	json     bool
}

func restoreFlags(o *restoreOptions) *pflag.FlagSet {
	fs := pflag.NewFlagSet("restore", pflag.ContinueOnError)
	fs.Usage = func() {}
	fs.SortFlags = false
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.from, "from", "", "data directory to restore from")
	fs.StringVar(&o.to, "to", "", "data directory to make; must not exist or be empty")
	fs.StringArrayVar(&o.at, "at", nil, "cursor of the first frame not to apply; one for each shard, in shard order")
	fs.BoolVar(&o.latest, "latest", false, "the newest state there is (the default without --at)")
	fs.BoolVar(&o.dryRun, "dry-run", false, "only say what would be done")
	fs.BoolVar(&o.json, "json", false, "print the result as a JSON object")
	return fs
}

func parseRestore(args []string) (o restoreOptions, at []log.Cursor, err error) {
	fs := restoreFlags(&o)
	if err := fs.Parse(args); err != nil {
		return o, nil, err
	}
	switch {
	case fs.NArg() > 0:
		return o, nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.from == "":
		return o, nil, errors.New("--from is missing: name the data directory to restore from")
	case o.to == "":
		return o, nil, errors.New("--to is missing: name the data directory to make")
	case o.latest && len(o.at) > 0:
		return o, nil, errors.New("--latest and --at exclude each other")
	}
	for _, s := range o.at {
		c, err := log.ParseCursor(s)
		if err != nil {
			return o, nil, fmt.Errorf("--at: %w", err)
		}
		at = append(at, c)
	}
	return o, at, nil
}

// restore is kevy restore.
func restore(args []string, stdout, stderr io.Writer) int {
	o, at, err := parseRestore(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(stdout, restoreUsage, restoreFlags(new(restoreOptions)).FlagUsages())
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "kevy restore:", err)
		return exitUsage
	}
	res, err := engine.Restore(engine.RestoreOptions{
		From: filepath.ToSlash(o.from), To: filepath.ToSlash(o.to), At: at, DryRun: o.dryRun,
		Progress: func(frames uint64) { fmt.Fprintf(stderr, "%d frames\n", frames) },
	})
	if err != nil {
		fmt.Fprintln(stderr, "kevy restore:", err)
		return exitFailed
	}
	if o.json {
		err = json.NewEncoder(stdout).Encode(res)
	} else {
		err = printRestored(stdout, &o, res)
	}
	if err != nil {
		fmt.Fprintln(stderr, "kevy restore:", err)
		return exitFailed
	}
	return exitOK
}

func printRestored(w io.Writer, o *restoreOptions, res *engine.Restored) error {
	base := "the first frame"
	if res.Set != "" {
		base = "snapshot set " + res.Set
	}
	out := fmt.Appendf(nil, "from %s, starting with %s\n", o.from, base)
	for i, s := range res.Shards {
		out = fmt.Appendf(out, "shard %d: frames %s to %s", i, s.From, s.To)
		if !o.dryRun {
			out = fmt.Appendf(out, ": %d applied, goes on as %s", s.Frames, s.New)
		}
		out = append(out, '\n')
	}
	if !o.dryRun {
		out = fmt.Appendf(out, "%d keys, digest %s, verified\nStart it with: kevy --dir %s\n", res.Keys, res.Digest, o.to)
	}
	_, err := w.Write(out)
	return err
}
