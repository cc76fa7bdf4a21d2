package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// Options say what to import and where to. One of RDB, AOF and From, and one of To and Addr unless DryRun is set.
type Options struct {
	RDB  string  // an RDB file
	AOF  string  // an append-only file, a manifest of several, or the directory of one
	From *Source // a running server

	FS     vfs.FS // of To; nil: the operating system's
	To     string // new data directory; must not exist or be empty
	Shards int    // of To; 0: as many as CPUs, at most 16

	Addr    string                                          // host:port of a running server
	Connect func(ctx context.Context) (*client.Conn, error) // to it, logged in
	Replace bool                                            // import into a server that has keys, and replace those of the same name

	DB     int  // database to take
	Chosen bool // the user has said which: others are left out, not refused
	// Truncated accepts an append-only file that ends within a command or a transaction, up to there.
	Truncated bool
	DryRun    bool // only read
	// Follow goes on with From until ctx ends.
	Follow bool
	// Based is called when the base is complete and To can be opened; may be nil.
	Based  func(r *Result)
	Meter  *history.Meter // may be nil; counts bytes
	Logger *slog.Logger   // nil: nobody
	Now    func() int64   // unix ms; nil: the system's
}

// Result tells what was found and imported.
type Result struct {
	To      string            `json:"to,omitempty"`
	Addr    string            `json:"addr,omitempty"`
	Version int               `json:"rdb_version,omitempty"`
	Aux     map[string]string `json:"aux,omitempty"` // what the RDB file says about itself
	// Values are the values of the RDB file by type; Deadlines how many have one, Overdue one that has passed.
	Values    map[string]uint64 `json:"values,omitempty"`
	Deadlines uint64            `json:"deadlines"`
	Overdue   uint64            `json:"overdue"`
	Libraries uint64            `json:"libraries"` // of functions
	Empty     uint64            `json:"empty"`     // empty collections, left out
	Others    map[string]uint64 `json:"others,omitempty"`
	Commands  uint64            `json:"commands"` // of an append-only file, or followed
	Skipped   uint64            `json:"skipped"`  // commands of other databases
	Tail      *Tail             `json:"tail,omitempty"`

	Replid string `json:"replid,omitempty"` // of a running server, and the offset up to which it was followed
	Offset int64  `json:"offset,omitempty"`

	New    []log.Cursor `json:"new,omitempty"` // by shard of To: where it goes on
	Keys   uint64       `json:"keys"`          // in To, those past their deadline included
	Digest string       `json:"digest,omitempty"`
	DryRun bool         `json:"dry_run,omitempty"`
}

// Tail is what an append-only file has behind its last whole command or transaction.
type Tail struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"` // where it begins
	Bytes  int64  `json:"bytes"`
}

// Run imports. What it can find wrong with a file it finds before anything is changed. When it fails nothing is left in o.To; a server may
// have got a part, and the error says so. The new directory is verified by reading it again.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Shards == 0 {
		o.Shards = min(runtime.NumCPU(), 16)
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	o.Logger = discard(o.Logger)
	r := &Result{DryRun: o.DryRun, Values: map[string]uint64{}, Others: map[string]uint64{}}
	if o.From != nil {
		return r, runLive(ctx, &o, r)
	}
	load, err := readFiles(ctx, &o, r)
	if err != nil || o.DryRun {
		return r, err
	}
	if o.Addr != "" {
		r.Addr = o.Addr
		to, err := newServer(ctx, &o)
		if err != nil {
			return r, err
		}
		defer to.c.Close()
		if err := load(to); err != nil {
			return r, fmt.Errorf("%s has only a part now (FLUSHALL, or import again with --replace): %w", o.Addr, err)
		}
		return r, nil
	}
	to, err := newDir(&o)
	if err != nil {
		return r, err
	}
	if err := errors.Join(load(to), ctx.Err()); err != nil {
		return r, errors.Join(err, to.abandon())
	}
	return r, to.finish(r, position{})
}

// readFiles reads the files once, and returns what imports them.
func readFiles(ctx context.Context, o *Options, r *Result) (load func(target) error, err error) {
	files := []part{{path: o.RDB}}
	if o.AOF != "" {
		if files, err = aofParts(o.AOF); err != nil {
			return nil, err
		}
	}
	if err := (&reading{ctx: ctx, o: o, r: r}).all(files, "checking"); err != nil {
		return nil, err
	}
	if len(r.Others) > 0 && !o.Chosen {
		for name := range r.Others {
			err = fmt.Errorf("there are %d keys in database %s: %s", r.Others[name], name, oneDB)
		}
		return nil, err
	}
	return func(to target) error {
		again := Result{Values: map[string]uint64{}, Others: map[string]uint64{}}
		return (&reading{ctx: ctx, o: o, r: &again, to: to}).all(files, "importing")
	}, nil
}
