package rdb

import (
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"io"
)

// flushBytes is how much of a file is gathered before it is written.
const flushBytes = 256 << 10

// FileWriter writes an RDB file of version 10, as Redis 7.0 and later read it (7.4 if fields of hashes have deadlines). After an error of the
// writer below all methods return it. It is not safe for concurrent use.
type FileWriter struct {
	out  io.Writer
	buf  []byte
	body []byte // room for a value
	crc  uint64 // of what has been written, inverted
	err  error
}

// NewFileWriter begins a file that says of itself what aux has: names and values in turns.
func NewFileWriter(out io.Writer, aux ...string) *FileWriter {
	f := &FileWriter{out: out, crc: ^uint64(0)}
	f.buf = fmt.Appendf(f.buf, "REDIS%04d", versionPlain)
	for i := 0; i+1 < len(aux); i += 2 {
		f.buf = append(f.buf, opAux)
		f.buf = writer{}.text(writer{}.text(f.buf, []byte(aux[i])), []byte(aux[i+1]))
	}
	f.buf = append(f.buf, opSelectDB, 0)
	return f
}

// Function adds a library of functions.
func (f *FileWriter) Function(code []byte) error {
	f.buf = writer{}.raw(append(f.buf, opFunction), code)
	return f.flush(flushBytes)
}

// Key adds a key with its value. deadline is in unix ms, 0 for none.
func (f *FileWriter) Key(key []byte, deadline int64, v *Value) error {
	if deadline != 0 {
		f.buf = binary.LittleEndian.AppendUint64(append(f.buf, opExpireMS), uint64(deadline)) //nolint:gosec // signed
	}
	body := writer{}.value(f.body[:0], v) // its type, and the value: the key goes between
	f.buf = append(writer{}.text(append(f.buf, body[0]), key), body[1:]...)
	if f.body = body; cap(body) > flushBytes {
		f.body = nil
	}
	return f.flush(flushBytes)
}

// End ends the file with its checksum.
func (f *FileWriter) End() error {
	f.buf = append(f.buf, opEOF)
	if err := f.flush(0); err != nil {
		return err
	}
	_, f.err = f.out.Write(binary.LittleEndian.AppendUint64(nil, ^f.crc))
	return f.err
}

// flush writes what has been gathered if that is least or more.
func (f *FileWriter) flush(least int) error {
	if f.err != nil || len(f.buf) < least {
		return f.err
	}
	f.crc = crc64.Update(f.crc, jones, f.buf)
	_, f.err = f.out.Write(f.buf)
	f.buf = f.buf[:0]
	return f.err
}
