package script

import (
	"encoding/binary"
	"errors"
	"hash/crc64"
	"strconv"
	"strings"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
	"github.com/kevydb/kevy/state"
)

// Facts of Redis's RDB format.
const (
	rdbVersion      = 10 // that dumps are written with
	rdbNewest       = 11 // that is understood
	opFunction      = 245
	opFunctionPreGA = 246
	dumpFooter      = 10 // version and checksum
)

// crcTable is of the polynomial of Jones, reflected.
var crcTable = crc64.MakeTable(0x95ac9329ac4bc9b5)

func crc(b []byte) (sum uint64) {
	for _, c := range b {
		sum = crcTable[byte(sum)^c] ^ sum>>8
	}
	return sum
}

// dump is FUNCTION DUMP's payload.
func dump(libs *state.Libraries) []byte {
	var b []byte
	for _, l := range libs.List() {
		b = append(b, opFunction)
		b = appendLength(b, len(l.Code))
		b = append(b, l.Code...)
	}
	b = binary.LittleEndian.AppendUint16(b, rdbVersion)
	return binary.LittleEndian.AppendUint64(b, crc(b))
}

func appendLength(b []byte, n int) []byte {
	switch {
	case n < 1<<6:
		return append(b, byte(n))
	case n < 1<<14:
		return append(b, 0x40|byte(n>>8), byte(n))
	case n <= 1<<32-1:
		return binary.BigEndian.AppendUint32(append(b, 0x80), uint32(n)) //nolint:gosec // checked
	}
	return binary.BigEndian.AppendUint64(append(b, 0x81), uint64(n)) //nolint:gosec // a length
}

var errPayload = errors.New("failed loading the given functions payload")

// parseDump reads a payload's libraries. bad is an error without its code, or "".
func parseDump(b []byte) (codes []string, bad string) {
	if len(b) < dumpFooter {
		return nil, msgBadPayload
	}
	foot := b[len(b)-dumpFooter:]
	if v := binary.LittleEndian.Uint16(foot); v > rdbNewest {
		return nil, msgBadPayload
	}
	if sum := binary.LittleEndian.Uint64(foot[2:]); sum != 0 && sum != crc(b[:len(b)-8]) {
		return nil, msgBadPayload
	}
	r := &dumpReader{b: b[:len(b)-dumpFooter]}
	for len(r.b) > 0 {
		switch op := r.byte(); op {
		case opFunctionPreGA:
			return nil, "Pre-GA function format not supported"
		case opFunction:
			s := r.string()
			if r.err != nil {
				return nil, r.err.Error()
			}
			codes = append(codes, s)
		default:
			return nil, "given type is not a function"
		}
	}
	return codes, ""
}

const msgBadPayload = "DUMP payload version or checksum are wrong"

// dumpReader reads strings of the RDB format. After an error it gives zero values.
type dumpReader struct {
	b   []byte
	err error
}

func (r *dumpReader) take(n uint64) []byte {
	if r.err != nil || n > uint64(len(r.b)) {
		r.err = errPayload
		return nil
	}
	s := r.b[:n]
	r.b = r.b[n:]
	return s
}

func (r *dumpReader) byte() byte {
	if s := r.take(1); s != nil {
		return s[0]
	}
	return 0
}

// length reads a length, or the kind of a specially encoded string.
func (r *dumpReader) length() (n uint64, encoded bool) {
	c := r.byte()
	switch c >> 6 {
	case 0:
		return uint64(c & 0x3f), false
	case 1:
		return uint64(c&0x3f)<<8 | uint64(r.byte()), false
	case 3:
		return uint64(c & 0x3f), true
	}
	size := uint64(4)
	if c == 0x81 {
		size = 8
	}
	for _, x := range r.take(size) {
		n = n<<8 | uint64(x)
	}
	return n, false
}

func (r *dumpReader) string() string {
	n, encoded := r.length()
	if !encoded {
		return string(r.take(n))
	}
	if n < 3 {
		size := uint64(1) << n
		var v int64
		for i, x := range r.take(size) {
			v |= int64(x) << (8 * i)
		}
		return strconv.FormatInt(v<<(64-8*size)>>(64-8*size), 10)
	}
	packed, _ := r.length()
	size, _ := r.length()
	return string(r.lzf(r.take(packed), size))
}

// lzf unpacks size bytes.
func (r *dumpReader) lzf(b []byte, size uint64) []byte {
	const most = 512 << 20
	if size > most {
		r.err = errPayload
		return nil
	}
	var out []byte
	for i := 0; i < len(b) && r.err == nil; {
		c := int(b[i])
		i++
		if c < 32 {
			if i+c+1 > len(b) {
				break
			}
			out = append(out, b[i:i+c+1]...)
			i += c + 1
			continue
		}
		n := c >> 5
		if n == 7 && i < len(b) {
			n += int(b[i])
			i++
		}
		if i == len(b) {
			break
		}
		at := len(out) - (c&0x1f)<<8 - int(b[i]) - 1
		i++
		if at < 0 || uint64(len(out)+n+2) > size {
			break
		}
		for range n + 2 {
			out = append(out, out[at])
			at++
		}
	}
	if uint64(len(out)) != size {
		r.err = errPayload
	}
	return out
}

// restore is FUNCTION RESTORE payload [FLUSH|APPEND|REPLACE].
func (rt *Runtime) restore(c *command.Ctx) {
	policy := "append"
	switch {
	case len(c.Args) > 4:
		c.W.Error("ERR unknown subcommand or wrong number of arguments for '" + string(c.Args[1]) + "'. Try FUNCTION HELP.")
		return
	case len(c.Args) == 4:
		policy = strings.ToLower(string(c.Args[3]))
	}
	if policy != "append" && policy != "replace" && policy != "flush" {
		c.W.Error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
		return
	}
	codes, bad := parseDump(c.Args[2])
	var libs []*library
	if bad == "" {
		libs, bad = rt.tryAll(codes, policy)
	}
	if bad != "" {
		c.W.Error("ERR " + bad)
		return
	}
	if policy == "flush" {
		if err := rt.change(c, "FLUSH"); err != nil {
			c.W.Error(refused(err))
			return
		}
	}
	rt.adopt(c, rt.fns, libs, (*resp.Writer).OK)
}

// tryAll compiles libraries and checks that they fit to each other and, unless those go, to the ones there are.
func (rt *Runtime) tryAll(codes []string, policy string) (libs []*library, bad string) {
	fs := rt.sync()
	fresh := &functions{ip: fs.ip, libs: make(map[string]*library), byName: make(map[string]*function)}
	replaced := make(map[string]bool)
	for _, code := range codes {
		name, body, bad := metadata(code)
		if bad == "" && fresh.libs[name] != nil {
			bad = "Library '" + name + "' already exists"
		}
		if bad != "" {
			return nil, bad
		}
		l, bad := fresh.compile(name, code, body, loadTimeout)
		if bad != "" {
			return nil, bad
		}
		if dup := fresh.clash(l, nil); dup != "" {
			return nil, "Function " + dup + " already exists"
		}
		fresh.link(l)
		libs = append(libs, l)
		replaced[name] = true
	}
	if policy == "flush" {
		return libs, ""
	}
	for _, l := range libs {
		if fs.libs[l.name] != nil && policy != "replace" {
			return nil, "Library " + l.name + " already exists"
		}
	}
	for _, l := range libs {
		if dup := fs.clash(l, replaced); dup != "" {
			return nil, "Function " + dup + " already exists"
		}
	}
	return libs, ""
}

// refused words why the log took no change.
func refused(err error) string { return engine.Misconf(err) }
