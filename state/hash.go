package state

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// A hash is a run of fields (packed), or a tree of them keyed by the hashes of their names and, beside it, a
// tree of those with a deadline, keyed by it. A field is written the same way in both forms:
//
//	name length, uvarint | name | value length<<1, +1 with a deadline, uvarint | value | deadline (8)
//
// A packed hash that has a field with a deadline has flagFields.
//
//	head = fields, root of the tree, root of the tree of deadlines, the earliest deadline, bytes of all blocks
const (
	hashCount = iota
	hashRoot
	hashDues
	hashNext // as the keyspace's index has it
	hashBytes
	hashHeadWords
)

// flagFields is flagRaw of a hash.
const flagFields = flagRaw

// hintFields in the hint of a hash says that a field once had a deadline.
const hintFields = 2

var hashOps = kindOps{
	headWords: hashHeadWords,
	names:     hashRoot,
	len:       func(v value) int { h := hashValue(v); return h.Len() },
	digest:    digestHash,
	rebuild:   rebuildHash,
	blocks:    hashBlocks,
	drain:     drainHash,
	bytes:     func(v value) int { return int(v.words(hashHeadWords)[hashBytes]) },
	encoding: func(_ value, hint byte) string {
		switch {
		case hint&hintLarge != 0:
			return "hashtable"
		case hint&hintFields != 0:
			return "listpackex"
		}
		return "listpack"
	},
}

// Field is a field of a hash. Name and Value are read-only aliases; Deadline is unix ms or NoDeadline.
type Field struct {
	Name, Value []byte
	Deadline    int64
}

// Live reports whether the field's deadline, if it has one, is after nowMS.
func (f *Field) Live(nowMS int64) bool { return f.Deadline == NoDeadline || f.Deadline > nowMS }

// size returns the bytes of the field as it is written.
func (f *Field) size() int {
	n := stringSize(len(f.Name)) + stringSize(2*len(f.Value)) - len(f.Value)
	if f.Deadline != NoDeadline {
		n += deadlineLen
	}
	return n
}

// append writes the field.
func (f *Field) append(dst []byte) []byte {
	dst = appendString(dst, f.Name)
	n := uint64(len(f.Value)) << 1
	if f.Deadline == NoDeadline {
		return append(binary.AppendUvarint(dst, n), f.Value...)
	}
	dst = append(binary.AppendUvarint(dst, n|1), f.Value...)
	return le.AppendUint64(dst, uint64(f.Deadline))
}

// cutField returns the first field of a packed run and the rest.
func cutField(b []byte) (f Field, rest []byte) {
	f.Name, b = cutString(b)
	n, at := int(b[0]), 1
	if n >= 0x80 {
		n, at = uvarint(b)
	}
	end := at + n>>1
	f.Value = b[at:end:end]
	if n&1 != 0 {
		f.Deadline = int64(le.Uint64(b[end:]))
		end += deadlineLen
	}
	return f, b[end:]
}

// minField is the least a packed field takes.
const minField = 2

// fieldEnds returns where the name of the field at b[at:] begins and ends, and where the field ends.
func fieldEnds(b []byte, at int) (name, nameEnd, end int) {
	n, w := int(b[at]), 1
	if n >= 0x80 {
		n, w = uvarint(b[at:])
	}
	name = at + w
	nameEnd = name + n
	n, w = int(b[nameEnd]), 1
	if n >= 0x80 {
		n, w = uvarint(b[nameEnd:])
	}
	return name, nameEnd, nameEnd + w + n>>1 + n&1*deadlineLen
}

// findField returns where the field of that name lies in a packed hash; its end if there is none.
func findField(flat, name []byte) (at, end int, found bool) {
	for at < len(flat) {
		from, to, end := fieldEnds(flat, at)
		if string(flat[from:to]) == string(name) {
			return at, end, true
		}
		at = end
	}
	return at, at, false
}

// countFields returns the number of fields of a packed hash.
func countFields(flat []byte) (n int) {
	for at := 0; at < len(flat); n++ {
		_, _, at = fieldEnds(flat, at)
	}
	return n
}

// fieldAt returns the field in a block of a large hash.
func fieldAt(a *arena.Arena, r arena.Ref) Field {
	name := blockString(a, r)
	at := stringSize(len(name))
	n, w := uvarint(a.Bytes(r, at+binary.MaxVarintLen64)[at:]) // reads no further than the length goes
	at += w
	end := at + n>>1
	if n&1 == 0 {
		b := a.Bytes(r, end)
		return Field{Name: name, Value: b[at:end:end]}
	}
	b := a.Bytes(r, end+deadlineLen)
	return Field{Name: name, Value: b[at:end:end], Deadline: int64(le.Uint64(b[end:]))}
}

// Fields reads the fields of a hash, those whose deadline has passed included.
type Fields struct {
	v    value
	tree tree // of a large hash
	seed uint64

	sought *sought // nil in a view
}

// Fields returns the fields of a hash. REQUIRES: e.Type() == TypeHash.
func (ks *Keyspace) Fields(e Entry) Fields {
	h := hashValue(valueAt(e.a, e.ref))
	h.seed, h.sought = ks.seed, &ks.sought
	return h
}

func hashValue(v value) Fields {
	h := Fields{v: v}
	if v.head != 0 {
		h.tree = tree{a: v.a, keyed: true, root: arena.Ref(v.words(hashHeadWords)[hashRoot])}
	}
	return h
}

// dues returns the tree of a large hash's deadlines.
func (h *Fields) dues() tree {
	return tree{a: h.v.a, keyed: true, root: arena.Ref(h.v.words(hashHeadWords)[hashDues])}
}

// Len returns the number of fields.
func (h *Fields) Len() int {
	if h.v.head != 0 {
		return int(h.v.words(hashHeadWords)[hashCount])
	}
	return countFields(h.v.flat)
}

// Get returns the field of that name.
func (h *Fields) Get(name []byte) (f Field, ok bool) {
	if h.v.head != 0 {
		r, found := h.sought.seekNamed(&h.tree, Hash(h.seed, name), name, blockString)
		if !found {
			return Field{}, false
		}
		return fieldAt(h.v.a, r), true
	}
	at, end, found := findField(h.v.flat, name)
	if found {
		f, _ = cutField(h.v.flat[at:end])
	}
	return f, found
}

// Each calls f with every field until it returns false.
func (h *Fields) Each(f func(*Field) bool) bool {
	if h.v.head != 0 {
		return h.tree.each(func(r arena.Ref, _, _ uint64) bool {
			x := fieldAt(h.v.a, r)
			return f(&x)
		})
	}
	for b := h.v.flat; len(b) > 0; {
		var x Field
		if x, b = cutField(b); !f(&x) {
			return false
		}
	}
	return true
}

// At returns the i-th field, in an order that depends on nothing but the fields. REQUIRES: 0 <= i < Len().
func (h *Fields) At(i int) Field {
	if h.v.head != 0 {
		c, _ := h.tree.seekWeight(uint64(i))
		r, _, _, _ := c.item()
		return fieldAt(h.v.a, r)
	}
	b := h.v.flat
	for {
		var f Field
		if f, b = cutField(b); i == 0 {
			return f
		}
		i--
	}
}

// Scan is Keyspace.Scan for the fields: from the 48-bit position cursor on it visits about count of them
// and returns the position to go on from, 0 at the end. A packed hash is visited as a whole.
func (h *Fields) Scan(cursor uint64, count int, f func(*Field)) (next uint64) {
	if h.v.head == 0 {
		h.Each(func(x *Field) bool { f(x); return true })
		return 0
	}
	c := h.tree.seek(cursor<<positionShift, func(arena.Ref) int { return 0 })
	last := uint64(0)
	for n := 0; ; n++ {
		r, _, key, ok := c.item()
		if !ok {
			return 0
		}
		if n >= count && n > 0 && key>>positionShift != last {
			return key >> positionShift
		}
		x := fieldAt(h.v.a, r)
		f(&x)
		last = key >> positionShift
		c.next()
	}
}

// NextDeadline returns the earliest deadline of a field, NoDeadline if none has one.
func (h *Fields) NextDeadline() int64 {
	if h.v.head != 0 {
		return int64(h.v.words(hashHeadWords)[hashNext])
	}
	return nextOf(h.v.flat)
}

// nextOf returns the earliest deadline in a packed hash.
func nextOf(flat []byte) (next int64) {
	for len(flat) > 0 {
		var f Field
		f, flat = cutField(flat)
		if f.Deadline != NoDeadline && (next == NoDeadline || f.Deadline < next) {
			next = f.Deadline
		}
	}
	return next
}

// eachDue calls f with the fields that have a deadline, by deadline, until it returns false.
func (h *Fields) eachDue(f func(*Field) bool) bool {
	if h.v.head != 0 {
		t := h.dues()
		return t.each(func(r arena.Ref, _, _ uint64) bool {
			x := fieldAt(h.v.a, r)
			return f(&x)
		})
	}
	var dues []Field
	h.Each(func(x *Field) bool {
		if x.Deadline != NoDeadline {
			dues = append(dues, *x)
		}
		return true
	})
	slices.SortStableFunc(dues, func(x, y Field) int { return cmp.Compare(x.Deadline, y.Deadline) })
	for i := range dues {
		if !f(&dues[i]) {
			return false
		}
	}
	return true
}

func digestHash(v value) (lo, hi uint64) {
	h := hashValue(v)
	var b []byte
	h.Each(func(f *Field) bool {
		b = f.append(b[:0])
		x := xxh3.Hash128Seed(b, valueSeed)
		lo += x.Lo
		hi += x.Hi
		return true
	})
	return lo, hi
}

// rebuildHash emits all fields, then the deadlines.
func rebuildHash(v value, key []byte, emit func(*effect.Effect) bool) bool {
	h := hashValue(v)
	p := pieces{op: effect.HSet, key: key, emit: emit}
	if !h.Each(func(f *Field) bool { return p.add(f.Name, f.Value) }) || !p.flush() {
		return false
	}
	if h.NextDeadline() == NoDeadline {
		return true
	}
	d := duePieces{key: key, emit: emit}
	return h.eachDue(d.add) && d.flush()
}

// duePieces gathers fields of the same deadline into effects of bounded size.
type duePieces struct {
	key   []byte
	emit  func(*effect.Effect) bool
	ms    int64
	names [][]byte
}

func (d *duePieces) add(f *Field) bool {
	if (f.Deadline != d.ms || len(d.names) == rebuildElements) && !d.flush() {
		return false
	}
	d.ms = f.Deadline
	d.names = append(d.names, f.Name)
	return true
}

func (d *duePieces) flush() bool {
	if len(d.names) == 0 {
		return true
	}
	args := append(make([][]byte, 0, 4+len(d.names)), d.key, strconv.AppendInt(nil, d.ms, 10),
		[]byte("FIELDS"), strconv.AppendInt(nil, int64(len(d.names)), 10))
	e := effect.Effect{Op: effect.HPExpireAt, Args: append(args, d.names...)}
	d.names = d.names[:0]
	return d.emit(&e)
}

func hashBlocks(v value, f func(arena.Ref)) {
	h := hashValue(v)
	h.tree.nodes(f)
	h.tree.each(func(r arena.Ref, _, _ uint64) bool { f(r); return true })
	dues := h.dues()
	dues.nodes(f)
}

func drainHash(ks *Keyspace, w []uint64) (more bool) {
	dues := tree{a: ks.a, keyed: true, root: arena.Ref(w[hashDues]), bytes: &ks.bytes}
	t := tree{a: ks.a, keyed: true, root: arena.Ref(w[hashRoot]), bytes: &ks.bytes}
	if dues.root != 0 {
		dues.drain(func(arena.Ref) {}) // its items are those of the other tree
		w[hashDues] = uint64(dues.root)
		return true
	}
	more = t.drain(ks.freeValue)
	w[hashRoot] = uint64(t.root)
	return more
}

// dueFields returns the names of at most limit fields of a hash whose deadline is not after nowMS, by deadline.
func dueFields(v value, nowMS int64, limit int) (names [][]byte) {
	h := hashValue(v)
	h.eachDue(func(f *Field) bool {
		if f.Deadline > nowMS || len(names) == limit {
			return false
		}
		names = append(names, f.Name)
		return true
	})
	return names
}

// Due returns the names of at most limit fields whose deadline is not after nowMS, by deadline.
func (h *Fields) Due(nowMS int64, limit int) [][]byte { return dueFields(h.v, nowMS, limit) }

// FieldDeadline returns the earliest deadline of a field if the value is a hash that has one.
func (e Entry) FieldDeadline() (ms int64, ok bool) {
	ms = fieldDeadline(e.a, e.ref)
	return ms, ms != NoDeadline
}

// Size returns the bytes of the arena that the entry's record and value take.
func (ks *Keyspace) Size(e Entry) int {
	b := e.a.Tail(e.ref)
	n := capacity(e.a, e.ref, b)
	if b[offFlags]&flagOwn == 0 {
		return n
	}
	block, _ := ks.own(e.ref, b)
	n += e.a.Capacity(block)
	if v := valueAt(e.a, e.ref); v.head != 0 {
		if o := v.kind.ops(); o.bytes != nil {
			return n + o.bytes(v)
		}
		v.kind.ops().blocks(v, func(r arena.Ref) { n += e.a.Capacity(r) })
	}
	return n
}
