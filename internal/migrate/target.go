package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/script"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// target takes commands.
type target interface {
	// apply runs commands as one unit. A *CommandError for the first one that fails is returned by it, or later, settle at the latest.
	// It may keep the arguments until then.
	apply(cause log.FrameCause, cmds [][][]byte) error
	// settle returns when what was applied is as safe as the target promises.
	settle() error
}

// CommandError is a command that the target has refused.
type CommandError struct {
	Command string // the beginning of it
	Reply   string
}

// Error implements error.
func (e *CommandError) Error() string { return fmt.Sprintf("%s: %s", e.Command, e.Reply) }

func refused(args [][]byte, reply string) error {
	const shown = 3
	text := fmt.Sprintf("%.40q", args[:min(shown, len(args))])
	if len(args) > shown {
		text += " ..."
	}
	return &CommandError{Command: text, Reply: reply}
}

// While it follows, a new directory takes a snapshot when its log has grown by so much (percent of the last one, bytes): the log before it goes.
const (
	growthPercent = 100
	growthMin     = 64 << 20
)

// foreign is the parent of the generations of a new directory: no generation of kevy's has that number.
var foreign = log.Cursor{Generation: 1}

// store is an engine as target.
type store struct {
	e       *engine.Engine
	scripts *script.Runtime
	c       *command.Ctx
	w       resp.Writer
	ticket  engine.Ticket
	replays bool // it is served, and follows where the commands come from
}

func newStore(e *engine.Engine) *store {
	d := &store{e: e, scripts: script.New(e), c: e.NewCtx()}
	d.c.KeepExpired, d.c.NoTouch = true, true
	return d
}

// dir is a new data directory as target.
type dir struct {
	*store
	fs   vfs.FS
	path string
	from position // where an import goes on, if it does
}

// newDir makes the directory, or opens one that an import has left which followed.
func newDir(o *Options) (*dir, error) {
	if o.Follow && hasRecord(o.FS, o.To) {
		return oldDir(o)
	}
	if err := engine.CheckEmpty(o.FS, o.To); err != nil {
		return nil, err
	}
	from := make([]log.Cursor, max(1, o.Shards))
	for i := range from {
		from[i] = foreign
	}
	e, _, err := engine.Open(engine.Options{
		Logger: o.Logger,
		Log:    log.Options{FS: o.FS, Dir: o.To, Shards: len(from), RestoredFrom: from},
	})
	if err != nil {
		return nil, err
	}
	e.SetActiveExpire(false) // what is due stays until the directory is served, or the source says
	return &dir{store: newStore(e), fs: o.FS, path: o.To}, nil
}

// oldDir opens the directory of an import that goes on.
func oldDir(o *Options) (*dir, error) {
	e, _, err := engine.Open(engine.Options{Logger: o.Logger, Log: log.Options{FS: o.FS, Dir: o.To}})
	if err != nil {
		return nil, err
	}
	e.SetActiveExpire(false)
	d := &dir{store: newStore(e), fs: o.FS, path: o.To}
	if d.from, err = takeRecord(o.FS, o.To); err == nil && (!d.from.at(d.tails()) || d.from.Taken != o.DB) {
		err = fmt.Errorf("%s has been written to since it was left by an import that followed, or another database was taken: name a new directory", o.To)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close(true))
	}
	return d, nil
}

// tails returns where the logs end.
func (d *store) tails() (all []log.Cursor) {
	for i := range d.e.Shards() {
		all = append(all, d.e.Dir().Log(i).Tail())
	}
	return all
}

func (d *store) apply(cause log.FrameCause, cmds [][][]byte) error {
	all := func(run func() error) error {
		for _, args := range cmds {
			if err := runOne(d.c, &d.w, args, run); err != nil {
				return err
			}
		}
		return nil
	}
	if d.replays {
		return d.e.Replay(d.c, &d.ticket, d.local, all)
	}
	return d.e.UpdateAs(cause, d.c, &d.ticket, d.local, all)
}

// runOne runs a command with c, and makes an error of one in its reply, for which w has room.
func runOne(c *command.Ctx, w *resp.Writer, args [][]byte, run func() error) error {
	row, bad := command.Resolve(args)
	if row == nil {
		return refused(args, bad)
	}
	w.Buf = w.Buf[:0]
	c.Cmd, c.Args, c.W = row, args, w
	if err := run(); err != nil {
		return err
	}
	if b := w.Buf; len(b) > 0 && b[0] == '-' {
		return refused(args, string(b[1:len(b)-2]))
	}
	return nil
}

// local runs the rows without a planner.
func (d *store) local(c *command.Ctx) error {
	if c.Cmd.Group == "scripting" && c.Cmd.Scope == command.ScopeAll {
		return d.scripts.Run(c, &script.Host{Began: time.Now(), Local: d.local})
	}
	c.W.Error("ERR the command changes no data here: it can't be imported")
	return nil
}

// settle waits again, after a failure, for what has failed: nothing is acknowledged meanwhile.
func (d *store) settle() error {
	err := d.e.Await(&d.ticket)
	if err == nil {
		d.ticket.Reset()
	}
	return err
}

// based makes the directory one that can be opened.
func (d *dir) based() error { return errors.Join(d.settle(), d.e.SaveAfter()) }

// follow prepares for a log that grows without end.
func (d *dir) follow() {
	d.e.SetSnapshotPolicy(engine.SnapshotPolicy{GrowthPercent: growthPercent, GrowthMin: growthMin})
}

// abandon removes the directory.
func (d *dir) abandon() error { return errors.Join(d.e.Close(false), d.fs.RemoveAll(d.path)) }

// finish closes the directory and reads it once more. at, if it is one, is where it is in the source's stream.
func (d *dir) finish(r *Result, at position) error {
	keys, digest := d.e.Digest()
	r.Keys, r.Digest, r.To, r.New = uint64(keys), digest, d.path, d.tails() //nolint:gosec // a count
	err := errors.Join(d.settle(), d.e.SaveAfter())
	if at.Tails = r.New; err == nil && at.Replid != "" {
		err = at.write(d.fs, d.path)
	}
	if err := errors.Join(err, d.e.Close(true)); err != nil {
		return err // without its snapshot it can't be opened
	}
	return history.CheckCopy(d.fs, d.path, keys, digest, nil)
}

// serverLimit bounds the time a running server takes for a batch, of so many commands or groupBytes.
const (
	serverLimit    = 5 * time.Minute
	serverCommands = 256
)

// server is a running server as target: of kevy, or any that knows the commands.
type server struct {
	c     *client.Conn
	sent  [][][]byte // commands without a reply yet
	bytes int        // of them
}

// newServer connects. Unless replace is set the server must be empty.
func newServer(ctx context.Context, o *Options) (*server, error) {
	c, err := o.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if !o.Replace {
		var n any
		if n, err = c.Do(serverLimit, "DBSIZE"); err == nil && n != int64(0) {
			err = fmt.Errorf("it has %v keys already: --replace imports all the same, and replaces keys of the same name", n)
		}
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: %w", o.Addr, err)
	}
	return &server{c: c}, nil
}

func (s *server) apply(cause log.FrameCause, cmds [][][]byte) error {
	whole := cause != log.ByRestore && len(cmds) > 1
	if whole {
		s.send([][]byte{[]byte("MULTI")})
	}
	for _, args := range cmds {
		s.send(args)
	}
	if whole {
		s.send([][]byte{[]byte("EXEC")})
	}
	if len(s.sent) < serverCommands && s.bytes < groupBytes {
		return nil
	}
	return s.settle()
}

func (s *server) send(args [][]byte) {
	s.c.Queue(args...)
	s.sent = append(s.sent, args)
	for _, a := range args {
		s.bytes += len(a)
	}
}

// settle sends what is queued and reads the replies.
func (s *server) settle() error {
	if len(s.sent) == 0 {
		return nil
	}
	if err := s.c.Flush(serverLimit); err != nil {
		return err
	}
	var failed error
	check := func(args [][]byte, v any) {
		if bad, ok := v.(client.Error); ok && failed == nil {
			failed = refused(args, string(bad))
		}
	}
	for i, args := range s.sent {
		v, err := s.c.Skip()
		if err != nil {
			return err
		}
		check(args, v)
		if all, ok := v.([]any); ok && string(args[0]) == "EXEC" && len(all) < i {
			for k, v := range all {
				check(s.sent[i-len(all)+k], v)
			}
		}
	}
	clear(s.sent)
	s.sent, s.bytes = s.sent[:0], 0
	return failed
}

// discard is the logger of nobody.
func discard(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
