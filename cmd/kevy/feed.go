package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/kevydb/kevy/log"
)

const feedUsage = `Usage: kevy feed tail [flags]

Prints every change of a running server as it happens, one a line, and connects again when the
connection is lost. Without --from it begins with the next change.
` + loginUsage + `
Flags:
%s
When the server cannot serve the cursor any more (FEEDRESYNC: the history was replaced, or the
change feed's window has moved on) it says so and ends with exit code 3; with --continue it says so
and goes on from the cursor that the server names.
`

// feedOptions are the flags of kevy feed tail.
type feedOptions struct {
	flags    serverFlags
	server   serverAddr
	prefixes []string
	json     bool
	from     string
	shard    string
	goOn     bool
}

// feedCommand is kevy feed.
func feedCommand(args []string, stdout, stderr io.Writer) int {
	o, err := parseFeed(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(stdout, feedUsage, feedFlags(new(feedOptions)).FlagUsages())
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "kevy feed:", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return tailFeed(ctx, o, stdout, stderr)
}

func feedFlags(o *feedOptions) *pflag.FlagSet {
	fs := pflag.NewFlagSet("feed", pflag.ContinueOnError)
	fs.Usage = func() {}
	fs.SortFlags = false
	fs.SetOutput(io.Discard)
	o.flags.add(fs, "127.0.0.1:6379", "server to follow")
	fs.StringArrayVar(&o.prefixes, "prefix", nil, "only changes of keys with this prefix (repeatable); changes of several keys always")
	fs.BoolVar(&o.json, "json", false, "print JSON objects")
	fs.StringVar(&o.from, "from", "", "cursor to begin at, generation:offset; of one shard")
	fs.StringVar(&o.shard, "shard", "all", "shard to follow")
	fs.BoolVar(&o.goOn, "continue", false, "go on after FEEDRESYNC instead of ending")
	return fs
}

func parseFeed(args []string) (*feedOptions, error) {
	o := new(feedOptions)
	fs := feedFlags(o)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() != 1 || fs.Arg(0) != "tail" {
		return nil, errors.New("want: kevy feed tail [flags]")
	}
	var err error
	if o.server, err = o.flags.server(fs); err != nil {
		return nil, err
	}
	if o.shard != "all" {
		if _, err := strconv.ParseUint(o.shard, 10, 16); err != nil {
			return nil, fmt.Errorf("--shard %q: want a shard number or all", o.shard)
		}
	}
	if o.from != "" {
		if _, err := log.ParseCursor(o.from); err != nil {
			return nil, fmt.Errorf("--from %q: want generation:offset", o.from)
		}
	}
	return o, nil
}

// printer writes lines of several followers, whole.
type printer struct {
	mu  sync.Mutex
	out io.Writer
	err io.Writer
}

func (p *printer) line(text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := io.WriteString(p.out, text+"\n")
	return err
}

func (p *printer) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.err, "kevy feed tail: "+format+"\n", args...)
}

// tailFeed follows the shards until ctx ends or one of them cannot go on.
func tailFeed(ctx context.Context, o *feedOptions, stdout, stderr io.Writer) int {
	p := &printer{out: stdout, err: stderr}
	shards, err := shardsToFollow(ctx, o, p)
	if err != nil {
		if ctx.Err() != nil {
			return exitOK
		}
		p.note("%v", loginHint(err))
		return exitFailed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, shard := range shards {
		f := &follower{o: o, p: p, shard: shard}
		if o.from != "" {
			f.cursor, _ = log.ParseCursor(o.from) // parseFeed has checked it
			f.known = true
		}
		wg.Go(func() {
			if err := f.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errResync):
		return exitResync
	case cause == nil || errors.Is(cause, context.Canceled):
		return exitOK
	default:
		p.note("%v", loginHint(cause))
		return exitFailed
	}
}

// shardsToFollow asks the server how many shards it has; it keeps trying while there is no server.
func shardsToFollow(ctx context.Context, o *feedOptions, p *printer) ([]int, error) {
	if o.shard != "all" {
		n, err := strconv.Atoi(o.shard)
		return []int{n}, err
	}
	f := &follower{o: o, p: p}
	defer f.drop()
	for {
		v, err := f.ask(ctx, "FEED.SHARDS")
		if err == nil {
			n, ok := v.(int64)
			if !ok || n < 1 {
				return nil, fmt.Errorf("FEED.SHARDS: unexpected reply %v", v)
			}
			if o.from != "" && n > 1 {
				return nil, errors.New("--from names a cursor of one shard: say which with --shard")
			}
			shards := make([]int, n)
			for i := range shards {
				shards[i] = i
			}
			return shards, nil
		}
		if !f.retry(ctx, err) {
			return nil, err
		}
	}
}
