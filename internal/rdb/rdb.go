// Package rdb reads and writes values as Redis's DUMP and RESTORE exchange them: the type and the value as in an
// RDB file, then a footer. File reads whole RDB files.
//
//	payload = type (1) | value | version (2, little-endian) | CRC64 of all before (8, little-endian)
//
// Every type and encoding up to Redis 7.4 is read but for modules' values. Values are written in the plain encoding of
// their type: every server from Redis 7.0 on reads them (7.4 for hashes whose fields have deadlines) and
// gives them the encoding it has for values of that size.
package rdb

import (
	"encoding/binary"
	"errors"
	"hash/crc64"
	"slices"
)

// Versions of the format, as written and the newest that is read.
const (
	versionPlain  = 10 // Redis 7.0
	versionFields = 12 // Redis 7.4: deadlines of hash fields
	maxVersion    = 12

	footer = 10
)

// ErrVersion is a payload of a newer version, or with a wrong checksum; ErrFormat one that does not say what it
// should.
var (
	ErrVersion = errors.New("rdb: version or checksum")
	ErrFormat  = errors.New("rdb: bad data format")
)

// Kind is a type of values.
type Kind uint8

// The kinds.
const (
	String Kind = iota
	List
	Set
	ZSet
	Hash
	Stream
)

// Value is a value of any kind. Its slices may alias the payload it was read from.
type Value struct {
	Kind Kind
	// Text is a string's content.
	Text []byte
	// Items are a list's elements, the members of a set or of a sorted set, or fields and values in turns.
	Items [][]byte
	// Scores are those of a sorted set's members.
	Scores []float64
	// Deadlines are those of a hash's fields in unix ms, 0 for a field without; nil if none has one.
	Deadlines []int64
	Stream    *StreamValue
}

// ID is the ID of a stream's entry.
type ID struct{ Ms, Seq uint64 }

// Less reports whether x is before y.
func (x ID) Less(y ID) bool { return x.Ms < y.Ms || x.Ms == y.Ms && x.Seq < y.Seq }

// StreamValue is the content of a stream.
type StreamValue struct {
	Entries           []Entry // in order
	Last, First, Gone ID      // Gone: the greatest ID ever deleted
	Added             int64
	Groups            []Group
}

// Entry is an entry of a stream: fields and values in turns.
type Entry struct {
	ID     ID
	Fields [][]byte
}

// Group is a consumer group. Read is -1 if nobody knows how many entries it has read.
type Group struct {
	Name      []byte
	Last      ID
	Read      int64
	Consumers []Consumer
}

// Consumer is a consumer with its pending entries, in order.
type Consumer struct {
	Name    []byte
	Seen    int64 // unix ms
	Active  int64 // unix ms; before version 3 of the type the same as Seen. Not encoded
	Pending []Pending
}

// Pending is an entry that a consumer has not acknowledged.
type Pending struct {
	ID    ID
	Time  int64 // unix ms
	Count int64
}

// jones is the polynomial of Redis's CRC64, reflected.
var jones = crc64.MakeTable(0x95ac9329ac4bc9b5)

func checksum(b []byte) uint64 { return ^crc64.Update(^uint64(0), jones, b) }

// Decode reads a payload. It allocates no more than a multiple of the payload's size.
func Decode(payload []byte) (v Value, err error) {
	at := len(payload) - footer
	if at < 0 || binary.LittleEndian.Uint16(payload[at:]) > maxVersion ||
		binary.LittleEndian.Uint64(payload[at+2:]) != checksum(payload[:at+2]) {
		return v, ErrVersion
	}
	r := reader{b: payload[:at]}
	v = r.value()
	if r.bad {
		return Value{}, ErrFormat
	}
	return v, nil
}

// Append appends the payload of a value to dst. Strings of more than 20 bytes are compressed where that makes them shorter,
// unless plain is set.
func Append(dst []byte, v *Value, plain bool) []byte {
	start, version := len(dst), uint16(versionPlain)
	if v.Deadlines != nil {
		version = versionFields
	}
	return appendFooter(writer{plain}.value(dst, v), start, version)
}

// Seal returns the payload of a type and a value that are written already.
func Seal(body []byte) []byte { return appendFooter(slices.Clip(body), 0, versionPlain) }

func appendFooter(dst []byte, start int, version uint16) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, version)
	return binary.LittleEndian.AppendUint64(dst, checksum(dst[start:]))
}
