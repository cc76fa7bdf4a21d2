package migrate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/kevydb/kevy/internal/rdb"
	"github.com/kevydb/kevy/log"
)

// part is one of the files to read, in order.
type part struct {
	path string
	aof  bool // commands, perhaps behind an RDB file
	last bool // may end within a command
}

// Keys and bytes of a group that restores values.
const (
	groupKeys  = 128
	groupBytes = 1 << 20
)

var kindNames = [...]string{"string", "list", "set", "zset", "hash", "stream"}

// reading is one pass over the files.
type reading struct {
	ctx   context.Context //nolint:containedctx // lives as long as one call
	o     *Options
	r     *Result
	to    target // nil: only look
	group [][][]byte
	held  int
}

func (p *reading) all(files []part, phase string) error {
	s := &stream{to: p.to, db: p.o.DB, chosen: p.o.Chosen}
	for i := range files {
		if err := p.file(&files[i], s, phase); err != nil {
			return fmt.Errorf("%s: %w", files[i].path, err)
		}
	}
	p.r.Commands, p.r.Skipped = s.applied, s.skipped
	return nil
}

func (p *reading) file(f *part, s *stream, phase string) error {
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	fi, err := file.Stat()
	switch {
	case err != nil:
		return err
	case !fi.Mode().IsRegular():
		return errors.New("it is no file")
	}
	p.o.Meter.Begin(phase, uint64(fi.Size())) //nolint:gosec // a size
	in := bufio.NewReaderSize(file, 256<<10)
	at := int64(0)
	magic, _ := in.Peek(5) // an error shows again
	if !f.aof || string(magic) == "REDIS" {
		if at, err = p.rdb(in); err != nil {
			return err
		}
	}
	if f.aof {
		return p.commands(f, s, in, at, fi.Size())
	}
	if at < fi.Size() {
		return fmt.Errorf("byte %d: the RDB file ends here, and %d bytes follow", at, fi.Size()-at)
	}
	return nil
}

// rdb reads an RDB file and returns its length.
func (p *reading) rdb(in *bufio.Reader) (int64, error) {
	f, err := rdb.NewFile(in)
	if err != nil {
		return 0, err
	}
	for {
		rec, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = p.ctx.Err()
		}
		if err == nil {
			err = p.record(rec)
		}
		if err != nil {
			return f.Offset(), err
		}
		p.o.Meter.At(uint64(f.Offset())) //nolint:gosec // an offset
	}
	p.r.Version, p.r.Aux, p.r.Empty = f.Version(), f.Aux(), f.Empty()
	return f.Offset(), p.flush()
}

func (p *reading) record(rec *rdb.Record) error {
	if rec.Function != nil {
		p.r.Libraries++
		return p.add([][]byte{[]byte("FUNCTION"), []byte("LOAD"), []byte("REPLACE"), bytes.Clone(rec.Function)})
	}
	if rec.DB != uint64(p.o.DB) { //nolint:gosec // not negative
		if p.o.From != nil && !p.o.Chosen { // it is read once only
			return otherDB(rec.DB)
		}
		p.r.Others[strconv.FormatUint(rec.DB, 10)]++
		return nil
	}
	p.r.Values[kindNames[rec.Kind]]++
	if rec.Deadline != 0 {
		p.r.Deadlines++
		if rec.Deadline <= p.o.Now() {
			p.r.Overdue++
		}
	}
	if p.to == nil {
		return nil
	}
	args := [][]byte{
		[]byte("RESTORE"), bytes.Clone(rec.Key), strconv.AppendInt(nil, rec.Deadline, 10), bytes.Clone(rec.Payload), []byte("ABSTTL"),
	}
	if p.o.Replace {
		args = append(args, []byte("REPLACE"))
	}
	switch {
	case rec.Idle >= 0:
		args = append(args, []byte("IDLETIME"), strconv.AppendInt(nil, rec.Idle, 10))
	case rec.Freq >= 0:
		args = append(args, []byte("FREQ"), strconv.AppendInt(nil, int64(rec.Freq), 10))
	}
	return p.add(args)
}

// add adds a command to the group of values.
func (p *reading) add(args [][]byte) error {
	if p.to == nil {
		return nil
	}
	p.group = append(p.group, args)
	for _, a := range args {
		p.held += len(a)
	}
	if len(p.group) < groupKeys && p.held < groupBytes {
		return nil
	}
	return p.flush()
}

func (p *reading) flush() error {
	if len(p.group) == 0 {
		return nil
	}
	err := p.to.apply(log.ByRestore, p.group)
	clear(p.group)
	p.group, p.held = p.group[:0], 0
	return errors.Join(err, p.to.settle())
}

// settleEvery is after how many commands what was applied is written.
const settleEvery = 1024

// commands reads the commands of an append-only file from byte at on.
func (p *reading) commands(f *part, s *stream, in *bufio.Reader, at, size int64) error {
	q := newRequests(in)
	whole := at
	for n := 1; ; n++ {
		args, err := q.next()
		if errors.Is(err, io.EOF) && s.atRest() {
			break
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return p.tail(f, s, Tail{File: f.path, Offset: whole, Bytes: size - whole})
		}
		if err == nil {
			err = p.ctx.Err()
		}
		if err == nil {
			err = s.take(args)
		}
		if err != nil {
			return fmt.Errorf("byte %d: the command that follows: %w", whole, err)
		}
		if s.atRest() {
			whole = at + q.at()
		}
		if n%settleEvery == 0 && p.to != nil {
			if err := p.to.settle(); err != nil {
				return err
			}
		}
		p.o.Meter.At(uint64(at + q.at())) //nolint:gosec // an offset
	}
	if p.to == nil {
		return nil
	}
	return p.to.settle()
}

// tail decides what to do about a file that ends too early.
func (p *reading) tail(f *part, s *stream, t Tail) error {
	if !f.last || !p.o.Truncated {
		why := "--truncated imports what is whole"
		if !f.last {
			why = "only the last file of an append-only log may"
		}
		return fmt.Errorf("byte %d: the file ends within a command or transaction that begins here (%d bytes): %s", t.Offset, t.Bytes, why)
	}
	s.rewind()
	p.r.Tail = &t
	return nil
}
