package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/kevydb/kevy/internal/bench"
	"github.com/kevydb/kevy/internal/bench/compare"
)

const benchUsage = `Usage: kevy bench <what> [flags]

Measures a server: the one at --addr, or a kevy that it starts for the purpose on a free port and a
temporary directory, and ends.

  load          GET, SET, INCR, MSET of 10 or a mix; uniform, by Zipf's law or each key in turn
  feed drain    FEED.READ of what is there, with a probe: the same bytes from a plain sender
  feed filter   FEED.READ PREFIX with 1 frame in 1,000 that matches
  feed latency  from a write's reply to its frame, delivered by FEED.READ BLOCK
  feed writers  SET with 0, 1 and 16 consumers following, and without the feed (starts its servers)
  replica       SET with 0 and 1 replica, catching up, lag, full copies; beside redis-server (starts its servers)
  view          SET while a snapshot is being written (BGSAVE), and while none is
  compare       kevy beside redis-server and others, in turn; arguments are further servers, name=path

kevy bench <what> --help lists the flags.
`

// benchOptions are the flags of all of kevy bench; each subcommand has some of them.
type benchOptions struct {
	addr    string
	json    bool
	op      string
	dist    string
	load    bench.LoadOptions
	feed    bench.FeedOptions
	compare compare.Options
}

// benchTool is one subcommand.
type benchTool struct {
	flags func(fs *pflag.FlagSet, o *benchOptions)
	run   func(ctx context.Context, o *benchOptions, args []string) (any, error)
	args  bool // takes arguments
}

var benchTools = map[string]benchTool{
	"load":         {loadFlags, runLoad, false},
	"feed drain":   {drainFlags, onTarget(bench.Drain, "--feed-buffer-size", "1gb"), false},
	"feed filter":  {drainFlags, onTarget(bench.Filter, "--feed-buffer-size", "1gb"), false},
	"feed latency": {latencyFlags, onTarget(bench.Latency), false},
	"feed writers": {writersFlags, runStarted(bench.Writers), false},
	"replica":      {writersFlags, runStarted(bench.Replica), false},
	"view":         {viewFlags, onTarget(bench.View), false},
	"compare":      {compareFlags, runCompare, true},
}

// benchCommand is kevy bench.
func benchCommand(args []string, stdout, stderr io.Writer) int {
	words := min(len(args), 1)
	if words == 1 && args[0] == "feed" {
		words = min(len(args), 2)
	}
	name := strings.Join(args[:words], " ")
	tool, ok := benchTools[name]
	if !ok {
		if slices.Contains([]string{"", "help", "-h", "--help"}, name) {
			fmt.Fprint(stdout, benchUsage)
			return exitOK
		}
		fmt.Fprintf(stderr, "kevy bench: unknown benchmark %q\n\n%s", name, benchUsage)
		return exitUsage
	}
	o := new(benchOptions)
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.Usage = func() {}
	fs.SortFlags = false
	fs.SetOutput(io.Discard)
	fs.BoolVar(&o.json, "json", false, "print JSON")
	tool.flags(fs, o)
	err := fs.Parse(args[words:])
	if err == nil && fs.NArg() > 0 && !tool.args {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(stdout, "Usage: kevy bench %s [flags]\n\nFlags:\n%s", name, fs.FlagUsages())
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "kevy bench %s: %v\n", name, err)
		return exitUsage
	}
	return runBench(name, tool, o, fs.Args(), stdout, stderr)
}

func runBench(name string, tool benchTool, o *benchOptions, args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if f, ok := stderr.(*os.File); ok {
		p := bench.NewProgress(f)
		o.load.Progress, o.feed.Progress, o.compare.Progress = p, p, p
	}
	result, err := tool.run(ctx, o, args)
	if err == nil && result != nil {
		if o.json {
			err = json.NewEncoder(stdout).Encode(result)
		} else {
			err = bench.Print(stdout, result)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "kevy bench %s: %v\n", name, err)
		return exitFailed
	}
	return exitOK
}

func addrFlag(fs *pflag.FlagSet, o *benchOptions) {
	fs.StringVar(&o.addr, "addr", "", "server to measure, host:port; default: a kevy started for it")
}

func loadFlags(fs *pflag.FlagSet, o *benchOptions) {
	l := &o.load
	addrFlag(fs, o)
	fs.StringVar(&o.op, "op", "set", fmt.Sprint("one of ", bench.Ops()))
	fs.StringVar(&o.dist, "dist", "uniform", "uniform, zipf or seq")
	fs.Uint64Var(&l.Keys, "keys", 1_000_000, "number of keys")
	fs.IntVar(&l.Size, "size", 64, "bytes of a value")
	fs.IntVarP(&l.Clients, "clients", "c", 50, "connections")
	fs.IntVarP(&l.Pipeline, "pipeline", "P", 16, "commands sent at once")
	fs.Float64Var(&l.ReadPart, "reads", 0.9, "share of GET in a mix")
	fs.Uint64VarP(&l.Count, "count", "n", 0, "commands; 0: no bound but the time")
	fs.DurationVar(&l.Time, "time", 0, "time; default 5s if there is no count")
	fs.Float64Var(&l.Rate, "rate", 0, "commands a second; 0: as fast as it goes")
	fs.Uint64Var(&l.Seed, "seed", 0, "of the random numbers")
}

func runLoad(ctx context.Context, o *benchOptions, _ []string) (r any, err error) {
	o.load.Op, o.load.Dist = bench.Op(o.op), bench.Distribution(o.dist)
	o.load.EnsureDefaults()
	if err := o.load.Validate(); err != nil {
		return nil, err
	}
	t, err := openTarget(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if o.addr == "" && (o.load.Op == bench.Get || o.load.Op == bench.Mix) {
		if err := bench.Fill(ctx, t, o.load.Keys, o.load.Size, o.load.Progress); err != nil {
			return nil, err
		}
	}
	if err := bench.Prepare(ctx, t, o.load.Op); err != nil {
		return nil, err
	}
	return bench.Load(ctx, t, o.load)
}

// openTarget returns the server to measure; flags are those of one that is started.
func openTarget(o *benchOptions, flags ...string) (*bench.Target, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return bench.Open(o.addr, path, flags...)
}

// onTarget makes a subcommand of a benchmark that needs a server.
func onTarget[R any](
	measure func(context.Context, *bench.Target, bench.FeedOptions) (R, error), flags ...string,
) func(context.Context, *benchOptions, []string) (any, error) {
	return func(ctx context.Context, o *benchOptions, _ []string) (r any, err error) {
		t, err := openTarget(o, flags...)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, t.Close()) }()
		return measure(ctx, t, o.feed)
	}
}

func sizeFlags(fs *pflag.FlagSet, o *benchOptions, seconds int) {
	fs.IntVar(&o.feed.Size, "size", 64, "bytes of a value")
	fs.DurationVar(&o.feed.Time, "time", time.Duration(seconds)*time.Second, "of each measurement")
}

func writeFlags(fs *pflag.FlagSet, o *benchOptions, clients int) {
	fs.IntVarP(&o.feed.Clients, "clients", "c", clients, "writing connections")
	fs.IntVarP(&o.feed.Pipeline, "pipeline", "P", 16, "commands sent at once")
}

func drainFlags(fs *pflag.FlagSet, o *benchOptions) {
	addrFlag(fs, o)
	fs.Uint64Var(&o.feed.Frames, "frames", 1_000_000, "frames to write first")
	sizeFlags(fs, o, 3)
}

func latencyFlags(fs *pflag.FlagSet, o *benchOptions) {
	addrFlag(fs, o)
	fs.Float64Var(&o.feed.Rate, "rate", 0, "writes a second; 0: a fifth of the measured peak")
	sizeFlags(fs, o, 5)
	writeFlags(fs, o, 16)
}

func writersFlags(fs *pflag.FlagSet, o *benchOptions) {
	fs.Uint64Var(&o.feed.Frames, "keys", 1_000_000, "number of keys")
	fs.IntVar(&o.feed.Rounds, "rounds", 5, "rounds over all cases")
	sizeFlags(fs, o, 2)
	writeFlags(fs, o, 50)
}

func viewFlags(fs *pflag.FlagSet, o *benchOptions) {
	addrFlag(fs, o)
	fs.Uint64Var(&o.feed.Frames, "keys", 1_000_000, "number of keys")
	fs.IntVar(&o.feed.Rounds, "rounds", 3, "rounds without and with a view")
	fs.Float64Var(&o.feed.Rate, "rate", 0, "writes a second; 0: as fast as it goes")
	sizeFlags(fs, o, 4)
	writeFlags(fs, o, 50)
}

// runStarted makes a subcommand of a benchmark that starts its servers itself.
func runStarted[R any](
	measure func(ctx context.Context, path string, o bench.FeedOptions) (R, error),
) func(context.Context, *benchOptions, []string) (any, error) {
	return func(ctx context.Context, o *benchOptions, _ []string) (any, error) {
		path, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return measure(ctx, path, o.feed)
	}
}

func compareFlags(fs *pflag.FlagSet, o *benchOptions) {
	c := &o.compare
	fs.BoolVar(&c.Full, "full", false, "all cells instead of the quick selection")
	fs.StringVar(&c.Cells, "cells", "", "only cells whose name matches this regular expression, out of all")
	fs.BoolVar(&c.List, "list", false, "only print the names of the cells")
	fs.IntVar(&c.Rounds, "rounds", 5, "runs of each cell on each server")
	fs.DurationVar(&c.Time, "time", 800*time.Millisecond, "of a run on kevy, about")
}

func runCompare(ctx context.Context, o *benchOptions, args []string) (any, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o.compare.Kevy = path
	return compare.Run(ctx, o.compare, args)
}
