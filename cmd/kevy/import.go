package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/kevydb/kevy/internal/migrate"
)

const importUsage = `Usage: kevy import FILE.rdb --to DIR | --addr HOST:PORT  [flags]
       kevy import --aof PATH --to DIR | --addr HOST:PORT   [flags]
       kevy import --from redis://HOST:PORT --to DIR [--follow]

Takes the data of Redis or Valkey over: an RDB file (versions 1 to 12: up to Redis 7.4, Valkey 8), an append-only file (the single one, or the
directory with its manifest), or a running server, as whose replica it acts. --to makes a new data directory; --addr fills a running
server.

Files are read twice: whatever is wrong with them is found, and named with its byte, before anything is changed. --dry-run stops
there and says what there is. What fails leaves no directory behind.

From a running server it takes what there is now, while writes go on there; with --follow it keeps DIR in step until it is interrupted, and
says how far behind it is.
` + loginUsage + `
Keys past their deadline come with it, and go when the directory is served. Modules' data is refused.

Flags:
%s
Exit codes: 0 imported (or read), 1 not, 2 a bad flag.
`

// importFlags returns the flags of kevy import.
func importFlags(o *migrate.Options, from *string) *pflag.FlagSet {
	fs := newFlags("import")
	fs.StringVar(&o.AOF, "aof", "", "append-only file, its manifest, or their directory")
	fs.StringVar(from, "from", "", "URL of a running server")
	fs.StringVar(&o.To, "to", "", "data directory to make; must not exist or be empty")
	fs.IntVar(&o.Shards, "shards", 0, "shards of the new directory (0: as many as CPUs, at most 16)")
	fs.StringVar(&o.Addr, "addr", "", "running server to fill")
	fs.BoolVar(&o.Replace, "replace", false, "with --addr: also if it has keys; those of the same name are replaced")
	fs.IntVar(&o.DB, "db", 0, "database to take; the others are left out (without it they are refused)")
	fs.BoolVar(&o.Truncated, "truncated", false, "accept an append-only file that ends within a command or transaction, up to there")
	fs.BoolVar(&o.DryRun, "dry-run", false, "only read and check, and say what there is")
	fs.BoolVar(&o.Follow, "follow", false, "from a server: keep the directory in step until interrupted")
	return fs
}

// checkImport completes the options.
func checkImport(o *migrate.Options, fs *pflag.FlagSet, from string) error {
	sources := fs.NArg()
	for _, s := range []string{o.AOF, from} {
		if s != "" {
			sources++
		}
	}
	o.RDB, o.Chosen = fs.Arg(0), fs.Changed("db")
	switch {
	case sources != 1:
		return errors.New("name one source: an RDB file, --aof PATH or --from URL")
	case (o.To != "") == (o.Addr != "") && !(o.DryRun && o.To == ""):
		return errors.New("name one target: --to DIR or --addr HOST:PORT")
	case o.Shards < 0 || o.Shards > 32:
		return fmt.Errorf("--shards %d: want 0 to 32", o.Shards)
	case o.DB < 0:
		return fmt.Errorf("--db %d: want 0 or more", o.DB)
	case o.Follow && from == "":
		return errors.New("--follow goes with --from redis://host:port")
	case o.Truncated && o.AOF == "":
		return errors.New("--truncated goes with --aof")
	case o.Replace && o.Addr == "":
		return errors.New("--replace goes with --addr")
	}
	o.To = slashed(o.To)
	if from != "" && (o.DryRun || o.Addr != "") {
		return errors.New("--from goes with --to")
	}
	if o.Addr != "" {
		a, err := parseHostPort(o.Addr)
		if err != nil {
			return fmt.Errorf("--addr %w", err)
		}
		o.Addr, o.Connect = a.addr, a.connect
	}
	if from == "" {
		return nil
	}
	if !isServer(from) {
		return errors.New("--from: want redis://[[user]:password@]host[:port] (rediss: TLS)")
	}
	m, err := (&restoreOptions{from: from}).mirror()
	if err != nil {
		return err
	}
	o.From = &migrate.Source{Addr: m.Addr, User: m.User, Password: m.Password, Dial: m.Dial}
	return nil
}

// importCommand is kevy import.
func importCommand(args []string, stdout, stderr io.Writer) int {
	var o migrate.Options
	var from string
	t := &tool{name: "kevy import", usage: importUsage, stdout: stdout, stderr: stderr}
	fs := importFlags(&o, &from)
	if done, code := t.parse(fs, args, func() error { return checkImport(&o, fs, from) }); done {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	o.Meter, o.Logger = &t.meter, slog.New(slog.NewTextHandler(t.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	stopWatch := t.watch()
	said := make(chan struct{})
	o.Based = func(r *migrate.Result) {
		stopWatch()
		stopWatch = func() {}
		if !o.Follow {
			close(said)
			return
		}
		fmt.Fprintf(t.stderr, "copied the keys as of offset %d; following %s until interrupted\n", r.Offset, o.From.Addr)
		go func() {
			defer close(said)
			t.saySourceLag(ctx, o.From)
		}()
	}
	res, err := migrate.Run(ctx, o)
	stopWatch()
	if o.From != nil && res.Replid != "" {
		stop()
		<-said
	}
	if err != nil {
		return t.fail(err)
	}
	return t.print(res, func() []byte { return describeImport(res) })
}

// saySourceLag says how far the import is behind, until ctx ends.
func (t *tool) saySourceLag(ctx context.Context, s *migrate.Source) {
	tick := time.NewTicker(lagEvery)
	defer tick.Stop()
	for {
		tail, err := s.Tail(ctx)
		at, commands, resumed := s.Status()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			fmt.Fprintf(t.stderr, "behind: unknown: %v; %d commands applied\n", err, commands)
		default:
			fmt.Fprintf(t.stderr, "behind: %d bytes; %d commands applied, taken up again %d times\n", max(0, tail-at), commands, resumed)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func describeImport(r *migrate.Result) (out []byte) {
	if r.Version != 0 {
		out = fmt.Appendf(out, "RDB version %d", r.Version)
		if v := r.Aux["redis-ver"] + r.Aux["valkey-ver"]; v != "" {
			out = fmt.Appendf(out, ", written by %s", v)
		}
		out = append(out, '\n')
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Values)) {
		out = fmt.Appendf(out, "%-8s %d\n", kind, r.Values[kind])
	}
	out = fmt.Appendf(out, "%d with a deadline, %d of them past it; %d libraries of functions; %d commands\n",
		r.Deadlines, r.Overdue, r.Libraries, r.Commands)
	for _, db := range slices.Sorted(maps.Keys(r.Others)) {
		out = fmt.Appendf(out, "left out: %d keys of database %s\n", r.Others[db], db)
	}
	if r.Skipped > 0 {
		out = fmt.Appendf(out, "left out: %d commands of other databases\n", r.Skipped)
	}
	if r.Empty > 0 {
		out = fmt.Appendf(out, "left out: %d empty collections\n", r.Empty)
	}
	if r.Tail != nil {
		out = fmt.Appendf(out, "left out: %d bytes from byte %d of %s on: no whole command or transaction\n", r.Tail.Bytes, r.Tail.Offset, r.Tail.File)
	}
	if r.Replid != "" {
		out = fmt.Appendf(out, "followed %s up to offset %d\n", r.Replid, r.Offset)
	}
	switch {
	case r.DryRun:
		return append(out, "nothing was imported: --dry-run\n"...)
	case r.Addr != "":
		return fmt.Appendf(out, "imported into %s\n", r.Addr)
	}
	return fmt.Appendf(out, "%d keys, digest %s, verified\nStart it with: kevy --dir %s\n", r.Keys, r.Digest, shellWord(r.To))
}
