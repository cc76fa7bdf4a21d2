package rdb

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"slices"
	"strconv"
)

// An RDB file:
//
//	file    = "REDIS" | version (4 digits) | records | 255 | CRC64 of all before (8, little-endian; from version 5 on; 0: none)
//	record  = [252 | unix ms (8)] [253 | unix s (4)] [248 | idle s] [249 | counter (1)] type (1) | key | value
//	        | 254 | database, for the records that follow
//	        | 251 | keys | keys with a deadline | 244 | slot | keys | keys with a deadline
//	        | 250 | name | value | 245 | code of a library of functions | 247 | of a module
const (
	opSlotInfo     = 244
	opFunction     = 245
	opFunctionOld  = 246 // before 7.0's release
	opModuleAux    = 247
	opIdle         = 248
	opFreq         = 249
	opAux          = 250
	opResizeDB     = 251
	opExpireMS     = 252
	opExpireS      = 253
	opSelectDB     = 254
	opEOF          = 255
	typeModule     = 6
	typeModule2    = 7
	headerBytes    = 9
	checksumSince  = 5
	eagerBytes     = 1 << 20 // allocated because a length has been announced; more only as it arrives
	slabBytes      = 64 << 10
	maxStringBytes = 1 << 32
)

// FileError is why a file can't be read: what is wrong with the record that begins at an offset.
type FileError struct {
	Record int64  // byte where the record begins
	Offset int64  // byte up to which was read when it showed
	Key    []byte // of the record, if it was read
	Reason string
	Err    error // ErrVersion, ErrFormat, io.ErrUnexpectedEOF, or what reading returned
}

// Error implements error.
func (e *FileError) Error() string {
	s := fmt.Sprintf("rdb: byte %d", e.Offset)
	if e.Key != nil {
		s += fmt.Sprintf(": key %.60q, whose record begins at byte %d", e.Key, e.Record)
	}
	return s + ": " + e.Reason
}

// Unwrap returns the class of the error.
func (e *FileError) Unwrap() error { return e.Err }

// Record is a key, or a library of functions, of a file. Its slices are valid until the next one is read.
type Record struct {
	Offset   int64  // where the record begins
	DB       uint64 // database
	Function []byte // code of a library; then there is no key
	Key      []byte
	Kind     Kind
	Deadline int64 // unix ms, 0: none
	Idle     int64 // s, -1: not said
	Freq     int   // -1: not said
	// Payload is the value as RESTORE takes it.
	Payload []byte
}

// File reads an RDB file, one key at a time: it holds one value as a whole, never more. It is not safe for concurrent use.
type File struct {
	src     source
	r       reader
	version int
	db      uint64
	rec     Record
	err     error // for good; io.EOF after the end
	aux     map[string]string
	empty   uint64
	raw     []byte
}

// NewFile begins to read a file. It reads no byte behind the file's end but what in has buffered.
func NewFile(in *bufio.Reader) (*File, error) {
	f := &File{src: source{in: in}, aux: map[string]string{}}
	f.r.file = &f.src
	head := f.src.take(headerBytes)
	if head == nil {
		f.fail("the file ends within its header")
		return nil, f.err
	}
	v, err := strconv.ParseUint(string(head[5:]), 10, 16)
	switch {
	case string(head[:5]) != "REDIS" || err != nil:
		f.refuse(ErrFormat, fmt.Sprintf("no RDB file: it begins with %q", head))
	case v == 0 || v > maxVersion:
		f.refuse(ErrVersion, fmt.Sprintf("RDB version %d: versions 1 to %d are read", v, maxVersion))
	}
	if f.err != nil {
		return nil, f.err
	}
	f.version = int(v)
	return f, nil
}

// Version returns the version of the format.
func (f *File) Version() int { return f.version }

// Aux returns what the file has told about itself so far (redis-ver, ctime, used-mem, ...).
func (f *File) Aux() map[string]string { return f.aux }

// Offset returns how many bytes have been read.
func (f *File) Offset() int64 { return f.src.at }

// Empty returns how many empty collections were passed over: servers had them by mistake, and pass over them too.
func (f *File) Empty() uint64 { return f.empty }

// Next returns the next key or library of functions, io.EOF behind the last one when the checksum was right, or a *FileError.
func (f *File) Next() (*Record, error) {
	for f.err == nil {
		f.src.next()
		f.rec = Record{Offset: f.src.at, DB: f.db, Idle: -1, Freq: -1}
		f.src.key = nil
		if there := f.record(); there && f.err == nil {
			return &f.rec, nil
		}
	}
	return nil, f.err
}

// record reads a record and reports whether it is one for the caller.
func (f *File) record() bool {
	for f.err == nil {
		op := f.r.byte()
		if f.r.bad {
			f.fail("the file ends without the mark of its end")
			return false
		}
		switch op {
		case opExpireMS:
			f.rec.Deadline = max(1, int64(f.r.uint64())) //nolint:gosec // written as a signed number
		case opExpireS:
			if b := f.r.take(4); b != nil {
				f.rec.Deadline = max(1, int64(int32(binary.LittleEndian.Uint32(b)))*1000) //nolint:gosec // signed
			}
		case opIdle:
			f.rec.Idle = f.r.signed()
		case opFreq:
			f.rec.Freq = int(f.r.byte())
		case opEOF:
			f.end()
			return false
		case opFunction:
			f.rec.Function = f.r.text()
			f.check("a library of functions")
			return true
		default:
			if op < opSlotInfo {
				return f.key(op)
			}
			f.about(op)
			return false
		}
		f.check("what precedes a key")
	}
	return false
}

// about reads a record about the file.
func (f *File) about(op byte) {
	switch op {
	case opSelectDB:
		f.db = f.r.length()
	case opResizeDB:
		f.r.length()
		f.r.length()
	case opSlotInfo:
		f.r.length()
		f.r.length()
		f.r.length()
	case opAux:
		if name, value := string(f.r.text()), string(f.r.text()); !f.r.bad && len(f.aux) < 64 {
			f.aux[name] = value
		}
	case opModuleAux:
		f.refuse(ErrFormat, "data of a module: modules' data can't be read")
	case opFunctionOld:
		f.refuse(ErrFormat, "functions in the form of a version before 7.0's release: they can't be read")
	}
	f.check("a record about the file")
}

// key reads the key and the value of a record of type t.
func (f *File) key(t byte) bool {
	f.rec.Key = f.r.text()
	if f.check("a key"); f.err != nil {
		return false
	}
	f.src.key = f.rec.Key
	if t == typeModule || t == typeModule2 {
		f.refuse(ErrFormat, "a value of a module: modules' data can't be read")
		return false
	}
	if t > typeHashFieldsListpack {
		f.refuse(ErrFormat, fmt.Sprintf("unknown type %d", t))
		return false
	}
	f.raw = append(f.raw[:0], t)
	f.src.tee, f.r.empty = &f.raw, false
	v := f.r.valueOf(t)
	f.src.tee = nil
	if f.r.bad && f.src.err == nil && v.Kind != String && v.Stream == nil && len(v.Items) == 0 && f.r.empty {
		f.r.bad = false
		f.empty++
		return false
	}
	if f.check("its value of type " + strconv.Itoa(int(t))); f.err != nil {
		return false
	}
	f.rec.Kind = v.Kind
	f.raw = appendFooter(f.raw, 0, uint16(max(f.version, versionPlain))) //nolint:gosec // at most maxVersion
	f.rec.Payload = f.raw
	return true
}

// end compares the checksum.
func (f *File) end() {
	if f.version < checksumSince {
		f.err = io.EOF
		return
	}
	want := ^f.src.crc
	sum := f.r.uint64()
	if f.check("the checksum"); f.err != nil {
		return
	}
	if sum != 0 && sum != want {
		f.refuse(ErrFormat, fmt.Sprintf("the checksum of the bytes before is %016x, the file says %016x: it is damaged", want, sum))
		return
	}
	f.err = io.EOF
}

// check fails the file if the reader has failed.
func (f *File) check(what string) {
	if !f.r.bad || f.err != nil {
		return
	}
	if f.src.err != nil {
		f.fail("the file ends within " + what)
		return
	}
	f.refuse(ErrFormat, "bad data in "+what)
}

// fail makes an error of what reading returned.
func (f *File) fail(reason string) {
	err := f.src.err
	switch {
	case err == nil:
		err = ErrFormat
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = io.ErrUnexpectedEOF
	default:
		reason = err.Error()
	}
	f.refuse(err, reason)
}

func (f *File) refuse(class error, reason string) {
	f.err = &FileError{Record: f.rec.Offset, Offset: f.src.at, Key: slices.Clone(f.src.key), Reason: reason, Err: class}
}

// source is what a reader reads a file from.
type source struct {
	in   *bufio.Reader
	at   int64  // bytes read
	crc  uint64 // of them, inverted
	err  error
	key  []byte  // being read
	tee  *[]byte // takes a copy of what is read; nil: nobody
	slab []byte  // for small pieces; used again for the next record
}

// next gives the memory of the record before back.
func (s *source) next() {
	if s.at == 0 {
		s.crc = ^uint64(0)
	}
	s.slab = s.slab[:0]
}

// take returns the next n bytes, nil if they are not there. They are valid until next.
func (s *source) take(n uint64) []byte {
	if s.err != nil || n > maxStringBytes {
		return nil
	}
	if s.at == 0 {
		s.crc = ^uint64(0)
	}
	var out []byte
	if n <= slabBytes/16 {
		if uint64(cap(s.slab)-len(s.slab)) < n || s.slab == nil {
			s.slab = make([]byte, 0, slabBytes)
		}
		start := len(s.slab)
		s.slab = s.slab[:start+int(n)]
		out = s.slab[start : start+int(n) : start+int(n)]
		if _, s.err = io.ReadFull(s.in, out); s.err != nil {
			return nil
		}
	} else {
		out = make([]byte, 0, min(n, eagerBytes))
		for uint64(len(out)) < n {
			part := int(min(n-uint64(len(out)), eagerBytes))
			out = slices.Grow(out, part)
			var got int
			got, s.err = io.ReadFull(s.in, out[len(out):len(out)+part])
			if out = out[:len(out)+got]; s.err != nil {
				s.at += int64(got)
				return nil
			}
		}
	}
	s.at += int64(n) //nolint:gosec // at most maxStringBytes
	s.crc = crc64.Update(s.crc, jones, out)
	if s.tee != nil {
		*s.tee = append(*s.tee, out...)
	}
	return out[:n:n]
}
