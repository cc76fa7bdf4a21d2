package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"time"

	"github.com/spf13/pflag"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

const snapshotUsage = `Usage: kevy snapshot list DIR [--json]
       kevy snapshot create DIR | --addr HOST:PORT
       kevy snapshot prune DIR | --addr HOST:PORT [--keep N] [--dry-run] [--json]

list shows the snapshot sets of a data directory, which may be in use, a copy, or the URL of an archive. create takes a
snapshot, prune removes the sets that need not stay and says of each why it stays: in a directory that
is not in use, or through the server that uses it. A server prunes by its own configuration, and with --keep keeps
so many of the newest instead of snapshot-keep.
` + loginUsage + `
Flags:
%s
Exit codes: 0 done, 1 not done, or (list) a set that cannot be read, 2 a bad flag.
`

// snapshotOptions are the flags of kevy snapshot.
type snapshotOptions struct {
	verb, dir string
	serverFlags
	server serverAddr
	dryRun bool
	policy engine.SnapshotPolicy
}

func snapshotFlags(o *snapshotOptions) *pflag.FlagSet {
	fs := newFlags("snapshot")
	o.add(fs, "", "server to do it, in place of a directory")
	fs.BoolVar(&o.dryRun, "dry-run", false, "prune: only print what would be done")
	fs.IntVar(&o.policy.Keep, "keep", 2, "prune: sets that stay, the newest included")
	fs.DurationVar(&o.policy.KeepTime, "keep-time", 0, "prune of a directory: age up to which all sets stay")
	fs.DurationVar(&o.policy.LogKeepTime, "log-keep-time", 0, "prune of a directory: window of the log that must stay restorable")
	return fs
}

// check reads what is left of the command line.
func (o *snapshotOptions) check(fs *pflag.FlagSet) error {
	o.verb, o.dir = fs.Arg(0), fs.Arg(1)
	for _, name := range []string{"dry-run", "keep", "keep-time", "log-keep-time"} {
		if fs.Changed(name) && (o.verb == "list" || o.verb == "create") {
			return fmt.Errorf("--%s goes with prune", name)
		}
	}
	switch {
	case o.verb != "list" && o.verb != "create" && o.verb != "prune":
		return errors.New("want: kevy snapshot list|create|prune")
	case fs.NArg() > 2:
		return fmt.Errorf("unexpected argument %q", fs.Arg(2))
	case o.verb == "list" && o.addr != "":
		return errors.New("--addr: list reads the directory, also of a server that runs")
	case (o.dir == "") == (o.addr == ""):
		return errors.New("name a data directory, or a server with --addr")
	case o.verb != "list" && archive.IsURL(o.dir):
		return fmt.Errorf("%s: an archive takes and removes sets by itself", o.dir)
	case o.policy.Keep < 1:
		return fmt.Errorf("--keep %d: the newest set always stays", o.policy.Keep)
	case o.addr != "" && (fs.Changed("keep-time") || fs.Changed("log-keep-time")):
		return errors.New("--keep-time and --log-keep-time are for directories: a server has its configuration")
	}
	if o.addr == "" {
		return nil
	}
	var err error
	o.server, err = o.serverFlags.server(fs)
	return err
}

// snapshotCommand is kevy snapshot.
func snapshotCommand(args []string, stdout, stderr io.Writer) int {
	t := &tool{name: "kevy snapshot", usage: snapshotUsage, stdout: stdout, stderr: stderr}
	var o snapshotOptions
	fs := snapshotFlags(&o)
	if done, code := t.parse(fs, args, func() error { return o.check(fs) }); done {
		return code
	}
	keep := 0
	if fs.Changed("keep") {
		keep = o.policy.Keep
	}
	switch o.verb {
	case "list":
		return t.listSets(&o)
	case "create":
		return t.createSet(&o)
	default:
		return t.pruneSets(&o, keep)
	}
}

// listedSet is one set as list shows it.
type listedSet struct {
	ID      string       `json:"id"`
	TimeMS  int64        `json:"time_ms"`
	Keys    uint64       `json:"keys"`
	Bytes   int64        `json:"bytes"`
	Cursors []log.Cursor `json:"cursors"`
	InUse   bool         `json:"in_use"` // the next start loads it
	Error   string       `json:"error,omitempty"`
}

func (t *tool) listSets(o *snapshotOptions) int {
	src, done, err := openPlace(o.dir)
	if err != nil {
		return t.fail(err)
	}
	defer done()
	inUse, err := log.SnapshotOnRecord(src.FS, src.Dir)
	if err != nil {
		return t.fail(err)
	}
	ids, err := snapshot.List(src.FS, src.Dir)
	if err != nil {
		return t.fail(err)
	}
	sets, bad, found := []listedSet{}, false, inUse == ""
	for _, id := range ids {
		l := listedSet{ID: id, InUse: id == inUse}
		found = found || l.InUse
		if set, err := snapshot.Inspect(src.FS, src.Dir, id); err != nil {
			l.Error, bad = err.Error(), true
		} else {
			l.TimeMS, l.Keys, l.Bytes, l.Cursors = set.TimeMS, set.Keys(), set.Bytes(), set.Cursors()
		}
		sets = append(sets, l)
	}
	if !found {
		sets = append(sets, listedSet{ID: inUse, InUse: true, Error: "it is missing, and the next start needs it"})
		bad = true
	}
	code := t.print(sets, func() []byte { return listText(sets) })
	if bad {
		return exitFailed
	}
	return code
}

func listText(sets []listedSet) (out []byte) {
	for _, s := range sets {
		mark := " "
		if s.InUse {
			mark = "*"
		}
		if s.Error != "" {
			out = fmt.Appendf(out, "%s %s  cannot be read: %s\n", mark, s.ID, s.Error)
			continue
		}
		out = fmt.Appendf(out, "%s %s  %s  %d keys  %d bytes ", mark, s.ID, when(s.TimeMS), s.Keys, s.Bytes)
		for _, c := range s.Cursors {
			out = fmt.Appendf(out, " %s", c)
		}
		out = append(out, '\n')
	}
	return fmt.Appendf(out, "%d sets; * is the one that the next start loads\n", len(sets))
}

func when(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

func (t *tool) createSet(o *snapshotOptions) int {
	if o.addr != "" {
		if _, err := o.ask("SAVE"); err != nil {
			return t.fail(err)
		}
		return t.print(map[string]string{"saved": o.server.addr}, func() []byte { return []byte("saved\n") })
	}
	dir := slashed(o.dir)
	if _, err := log.SnapshotOnRecord(vfs.OS(), dir); err != nil {
		return t.fail(err) // Open would make a new directory
	}
	// What may go is the business of who serves the directory, with its configuration.
	everything := engine.SnapshotPolicy{Keep: math.MaxInt32, LogKeepTime: math.MaxInt64}
	e, _, err := engine.Open(engine.Options{
		Log:       log.Options{Dir: dir, Follower: true}, // a directory that follows another store goes on doing so
		Snapshots: &everything, DigestSets: true,
	})
	if err != nil {
		return t.fail(explainUse(err))
	}
	err = e.Save()
	id := e.SaveStatus().LastID
	if err = errors.Join(err, e.Close(true)); err != nil {
		return t.fail(err)
	}
	return t.print(map[string]string{"set": id}, func() []byte { return []byte("set " + id + "\n") })
}

// explainUse says what to do when the directory is in use.
func explainUse(err error) error {
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("the directory is in use: name the server with --addr: %w", err)
	}
	return err
}

func (t *tool) pruneSets(o *snapshotOptions, keep int) int {
	var plan []snapshot.Decision
	var err error
	if o.addr != "" {
		plan, err = o.pruneServer(keep)
	} else {
		plan, err = o.pruneDir()
	}
	if err != nil {
		return t.fail(err)
	}
	if plan == nil {
		plan = []snapshot.Decision{} // [] in JSON
	}
	return t.print(plan, func() (out []byte) {
		for _, d := range plan {
			verb := "removed"
			switch {
			case d.Keep:
				verb = "kept"
			case o.dryRun:
				verb = "would be removed"
			}
			out = fmt.Appendf(out, "%s  %s  %d keys  %d bytes  %s: %s\n", d.ID, when(d.TimeMS), d.Keys, d.Bytes, verb, d.Reason)
		}
		return out
	})
}

// pruneDir prunes a directory that is not in use. It leaves the log alone: the next start drops what is not needed.
func (o *snapshotOptions) pruneDir() (plan []snapshot.Decision, err error) {
	fsys, at := vfs.OS(), slashed(o.dir)
	if _, err := log.SnapshotOnRecord(fsys, at); err != nil {
		return nil, err // Lock would make a file
	}
	if !o.dryRun {
		lock, err := fsys.Lock(path.Join(at, "LOCK"))
		if err != nil {
			return nil, explainUse(err)
		}
		defer lock.Close() //nolint:errcheck // gives the lock back
	}
	dir, _, err := log.OpenReadOnly(fsys, at)
	if err != nil {
		return nil, err
	}
	defer dir.Close(false) //nolint:errcheck // only read
	plan, _, unreadable, err := engine.PlanPrune(fsys, dir, o.policy, time.Now().UnixMilli())
	if err = errors.Join(unreadable, err); err != nil || o.dryRun {
		return plan, err
	}
	return plan, engine.CarryOut(fsys, at, plan)
}

func (o *snapshotOptions) pruneServer(keep int) (plan []snapshot.Decision, err error) {
	args := []string{"SNAPSHOT.PRUNE"}
	if keep > 0 {
		args = append(args, "KEEP", fmt.Sprint(keep))
	}
	if o.dryRun {
		args = append(args, "DRYRUN")
	}
	reply, err := o.ask(args...)
	if err != nil {
		return nil, err
	}
	sets, _ := reply.([]any)
	for _, s := range sets {
		fields, _ := s.([]any)
		d := snapshot.Decision{}
		for i := 0; i+1 < len(fields); i += 2 {
			text, _ := fields[i+1].(string)
			n, _ := fields[i+1].(int64)
			switch fields[i] {
			case "id":
				d.ID = text
			case "time":
				d.TimeMS = n
			case "keys":
				d.Keys = uint64(n)
			case "bytes":
				d.Bytes = n
			case "keep":
				d.Keep = n == 1
			case "reason":
				d.Reason = text
			}
		}
		plan = append(plan, d)
	}
	return plan, nil
}

// ask sends one command to the server. It waits for the reply as long as it takes.
func (o *snapshotOptions) ask(args ...string) (any, error) {
	c, err := o.server.connect(context.Background())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do(0, args...)
}
