package log

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"

	"github.com/kevydb/kevy/internal/vfs"
)

// OpenReadOnly opens a data directory for reading only: one that is in use by another process, or
// a copy. It takes no lock and changes nothing. Each shard ends at the last whole group found, and
// before the first group over several shards that is not whole on all of them; what is written
// later is not seen. A bad tail is accepted whatever it is, as copies have it: Recovery says what
// would be cut. Damage elsewhere is a *CorruptError as for Open.
//
// The append side of the logs fails with ErrReadOnly; readers work as usual.
func OpenReadOnly(fsys vfs.FS, dir string) (*Dir, *Recovery, error) {
	opts, err := (&Options{FS: fsys, Dir: dir, ServeAll: true}).withDefaults()
	if err != nil {
		return nil, nil, err
	}
	opts.Logger = slog.New(slog.DiscardHandler)
	// A directory in use may change between the manifest and the segments: look again then.
	for try := 0; ; try++ {
		d := &Dir{o: opts, readOnly: true}
		rec, err := d.openReadOnly()
		if err == nil {
			return d, rec, nil
		}
		if try == 3 || !(errors.Is(err, ErrCorrupt) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF)) {
			return nil, nil, err
		}
	}
}

func (d *Dir) openReadOnly() (*Recovery, error) {
	m, err := readManifest(d.o.FS, d.o.Dir)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, &fs.PathError{Op: "open", Path: d.o.Dir + "/" + manifestName, Err: fs.ErrNotExist}
	}
	d.man, d.hashSeed, d.lastTxn = m, m.HashSeed, m.LastTxn
	shards, err := d.scanAll()
	if err != nil {
		return nil, err
	}
	if err := cutGroups(shards); err != nil {
		return nil, err
	}
	rec := &Recovery{Clean: m.Clean}
	for _, s := range shards {
		c := Cursor{s.generation(), s.end.off}
		r := ShardRecovery{Generation: c.Generation, Found: c, Tail: c, CutBytes: s.size - s.end.pos}
		if s.reason != nil {
			r.Reason = s.reason.Error()
			r.CutFrames = s.read - min(s.read, s.end.off)
		}
		rec.Shards = append(rec.Shards, r)
		l := d.newLog(s)
		l.shut(ErrReadOnly)
		d.logs = append(d.logs, l)
	}
	return rec, nil
}
