package state

import (
	"bytes"
	"cmp"

	"github.com/kevydb/kevy/internal/arena"
	"github.com/kevydb/kevy/log/effect"
)

// hashEdit is a hash being changed: packed fields in the keyspace's scratch until they are too many, then
// the trees of a large hash.
//
//	begin, then put, setDeadline and remove for each field, then end
type hashEdit struct {
	ks   *Keyspace
	key  []byte
	h    uint64
	r    arena.Ref // 0: no such key yet
	next int64     // the earliest deadline when the edit began

	flat  []byte // packed
	dated bool   // a field of it was given a deadline
	w     []uint64
	tree  tree
	dues  tree
	bytes int64 // ks.bytes when the trees were opened
}

// begin opens the hash of key; ok is false if the key has another type.
func (x *hashEdit) begin(ks *Keyspace, key []byte) (ok bool) {
	x.ks, x.key = ks, key
	if x.h, x.r, ok = ks.open(key, TypeHash); !ok || x.r == 0 {
		x.flat = ks.scratch[:0]
		return ok
	}
	v := hashValue(valueAt(ks.a, x.r))
	if v.v.head != 0 {
		x.next = v.NextDeadline()
		x.openLarge()
		return true
	}
	x.flat = append(ks.scratch[:0], v.v.flat...)
	if ks.a.Tail(x.r)[offFlags]&flagFields != 0 {
		x.next = v.NextDeadline()
	}
	return true
}

// large reports whether the hash is large by now.
func (x *hashEdit) large() bool { return x.w != nil }

// openLarge opens the trees of a large hash. If its record has to move, the index of deadlines follows.
func (x *hashEdit) openLarge() {
	ks := x.ks
	r, w := ks.headForWrite(x.h, x.r, TypeHash)
	ks.moveFields(x.next, x.r, x.next, r)
	x.r, x.w = r, w
	x.tree = tree{a: ks.a, keyed: true, root: arena.Ref(w[hashRoot]), bytes: &ks.bytes}
	x.dues = tree{a: ks.a, keyed: true, root: arena.Ref(w[hashDues]), bytes: &ks.bytes}
	x.bytes = ks.bytes
}

// enlarge makes a packed hash a large one.
func (x *hashEdit) enlarge() {
	ks := x.ks
	head, w := ks.newHead(TypeHash)
	w[hashNext] = uint64(x.next)
	r := ks.setHead(x.h, x.r, x.key, TypeHash, head)
	if x.r != 0 {
		ks.moveFields(x.next, x.r, x.next, r)
	}
	x.r = r
	x.openLarge()
	for b := x.flat; len(b) > 0; {
		var f Field
		f, b = cutField(b)
		x.put(&f)
	}
	ks.scratch = x.flat[:0]
}

// put sets a field: name, value and deadline.
func (x *hashEdit) put(f *Field) {
	if x.large() {
		x.putLarge(f)
		return
	}
	at, end, found := findField(x.flat, f.Name)
	size := f.size()
	if !found && len(x.flat) >= minField*maxPacked && countFields(x.flat) == maxPacked || len(x.flat)-(end-at)+size > maxInline {
		x.enlarge()
		x.putLarge(f)
		return
	}
	if !found {
		x.flat = f.append(x.flat)
		return
	}
	x.flat = resize(x.flat, at, end, size)
	f.append(x.flat[: at : at+size])
}

// resize makes b[at:end] size bytes long, with arbitrary content.
func resize(b []byte, at, end, size int) []byte {
	n := len(b)
	switch d := size - (end - at); {
	case d > 0:
		b = append(b, make([]byte, d)...)
		copy(b[at+size:], b[end:n])
	case d < 0:
		copy(b[at+size:], b[end:n])
		b = b[:n+d]
	}
	return b
}

func (x *hashEdit) putLarge(f *Field) {
	ks, size := x.ks, f.size()
	h := Hash(ks.seed, f.Name)
	c, found := ks.seekNamed(&x.tree, h, f.Name, blockString)
	if !found {
		r := ks.newField(f, size)
		c.insert(r, 1, h)
		x.w[hashCount]++
		x.addDue(f.Deadline, r)
		return
	}
	r, _, _, _ := c.item()
	x.dropDue(fieldAt(ks.a, r).Deadline, r)
	if n := ks.a.Capacity(r); size <= n && size > n/2 && !ks.a.Shared(r) {
		f.append(ks.a.Bytes(r, size)[:0])
	} else {
		old := r
		r = ks.newField(f, size)
		c.replace(r, 1, h)
		ks.freeValue(old)
	}
	x.addDue(f.Deadline, r)
}

// newField makes a block that holds a field.
func (ks *Keyspace) newField(f *Field, size int) arena.Ref {
	r := ks.newValue(size)
	f.append(ks.a.Bytes(r, size)[:0])
	return r
}

func (x *hashEdit) seekDue(ms int64, r arena.Ref) treeCursor {
	return x.dues.seek(uint64(ms), func(have arena.Ref) int { return cmp.Compare(have, r) })
}

func (x *hashEdit) addDue(ms int64, r arena.Ref) {
	if ms != NoDeadline {
		c := x.seekDue(ms, r)
		c.insert(r, 1, uint64(ms))
	}
}

func (x *hashEdit) dropDue(ms int64, r arena.Ref) {
	if ms != NoDeadline {
		c := x.seekDue(ms, r)
		c.remove()
	}
}

// setDeadline gives a field, if it is there, another deadline or none.
func (x *hashEdit) setDeadline(name []byte, ms int64) {
	if x.large() {
		if c, found := x.ks.seekNamed(&x.tree, Hash(x.ks.seed, name), name, blockString); found {
			r, _, _, _ := c.item()
			if f := fieldAt(x.ks.a, r); f.Deadline != ms {
				f.Deadline = ms
				x.putLarge(&f)
			}
		}
		return
	}
	at, end, found := findField(x.flat, name)
	if !found {
		return
	}
	f, _ := cutField(x.flat[at:end])
	if f.Deadline == ms {
		return
	}
	f.Deadline = ms
	if size := f.size(); len(x.flat)-(end-at)+size > maxInline {
		x.enlarge() // copies the fields: f still reads the scratch
		x.putLarge(&f)
	} else {
		x.flat = resize(x.flat, at, end, size)
		overwriteDeadline(x.flat[at:at+size], &f)
	}
}

// overwriteDeadline gives the field written in b, whose length is already the new one, its deadline.
func overwriteDeadline(b []byte, f *Field) {
	at := stringSize(len(f.Name))
	if f.Deadline == NoDeadline {
		b[at] &^= 1
		return
	}
	b[at] |= 1
	le.PutUint64(b[len(b)-deadlineLen:], uint64(f.Deadline))
}

// remove takes a field out, if it is there.
func (x *hashEdit) remove(name []byte) {
	if x.large() {
		c, found := x.ks.seekNamed(&x.tree, Hash(x.ks.seed, name), name, blockString)
		if !found {
			return
		}
		r, _, _, _ := c.item()
		x.dropDue(fieldAt(x.ks.a, r).Deadline, r)
		c.remove()
		x.ks.freeValue(r)
		x.w[hashCount]--
		return
	}
	if at, end, found := findField(x.flat, name); found {
		x.flat = resize(x.flat, at, end, 0)
	}
}

// end puts the hash back into its record, which may be new or go, and sets the hint bits.
func (x *hashEdit) end(hint byte) (c Change) {
	ks, was := x.ks, x.r
	next := NoDeadline
	if x.large() {
		if c := x.dues.begin(); c.depth > 0 {
			_, _, ms, _ := c.item()
			next = int64(ms)
		}
		x.w[hashRoot], x.w[hashDues] = uint64(x.tree.root), uint64(x.dues.root)
		x.w[hashBytes] += uint64(ks.bytes - x.bytes)
		if x.w[hashCount] == 0 {
			ks.drop(x.h, x.r)
			return Change{Removed: 1}
		}
		x.w[hashNext] = uint64(next)
	} else {
		if x.next != NoDeadline || x.dated {
			next = nextOf(x.flat)
		}
		ks.scratch = x.flat[:0]
		if x.r = ks.setFlat(x.h, x.r, x.key, TypeHash, x.flat); x.r == 0 {
			if was != 0 {
				c.Removed = 1
			}
			return c
		}
		if next != NoDeadline {
			ks.a.Tail(x.r)[offFlags] |= flagFields
		}
	}
	ks.moveFields(x.next, was, next, x.r)
	if x.more(ks.Limits.HashEntries) {
		hint |= hintLarge
	}
	if hint != 0 {
		ks.setHint(x.r, hint)
	}
	return c
}

// more reports whether the hash has more than n fields.
func (x *hashEdit) more(n int) bool {
	if x.large() {
		return int(x.w[hashCount]) > n
	}
	return len(x.flat) > minField*n && countFields(x.flat) > n
}

// moveFields moves a hash in the index of field deadlines from one earliest deadline and record to another.
func (ks *Keyspace) moveFields(oldMS int64, old arena.Ref, ms int64, r arena.Ref) {
	if !ks.bulk {
		ks.fields.change(oldMS, old, ms, r)
	}
}

// fieldDeadline returns the earliest deadline of a field of the record, NoDeadline if it has none.
func fieldDeadline(a *arena.Arena, r arena.Ref) int64 {
	b := a.Tail(r)
	if Type(b[offFlags]&typeMask) != TypeHash || b[offFlags]&(flagFields|flagOwn) == 0 {
		return NoDeadline
	}
	h := hashValue(valueAt(a, r))
	return h.NextDeadline()
}

func (ks *Keyspace) foldHSet(e *effect.Effect) (c Change, err error) {
	pairs := e.Args[1:]
	if len(pairs)%2 != 0 {
		return c, fail(e, "a field without a value")
	}
	hint := byte(0)
	if len(pairs)/2 > ks.Limits.HashEntries {
		hint = hintLarge
	}
	for _, a := range pairs {
		if !fits(e.Args[0], len(a)) {
			return c, fail(e, "too long")
		}
		if len(a) > ks.Limits.HashValue {
			hint = hintLarge
		}
	}
	var x hashEdit
	if !x.begin(ks, e.Args[0]) {
		return c, fail(e, wrongType)
	}
	created := x.r == 0
	for i := 0; i < len(pairs); i += 2 {
		x.put(&Field{Name: pairs[i], Value: pairs[i+1]})
	}
	c = x.end(hint)
	if created {
		c.Created = 1
	}
	return c, nil
}

func (ks *Keyspace) foldHDel(e *effect.Effect) (c Change, err error) {
	var x hashEdit
	if !x.begin(ks, e.Args[0]) {
		return c, fail(e, wrongType)
	}
	if x.r == 0 {
		return c, nil
	}
	for _, name := range e.Args[1:] {
		x.remove(name)
	}
	return x.end(0), nil
}

// fieldsArg returns the names behind "FIELDS n".
func fieldsArg(args [][]byte) (names [][]byte, ok bool) {
	n, ok := parseInt(args[1])
	const word = "fields"
	return args[2:], ok && n == int64(len(args)-2) && bytes.EqualFold(args[0], []byte(word))
}

func (ks *Keyspace) foldHPExpireAt(e *effect.Effect) (Change, error) {
	ms, ok := parseDeadline(e.Args[1])
	if !ok {
		return Change{}, fail(e, "deadline")
	}
	return ks.foldFieldDeadlines(e, e.Args[2:], ms)
}

func (ks *Keyspace) foldHPersist(e *effect.Effect) (Change, error) {
	return ks.foldFieldDeadlines(e, e.Args[1:], NoDeadline)
}

func (ks *Keyspace) foldFieldDeadlines(e *effect.Effect, args [][]byte, ms int64) (c Change, err error) {
	names, ok := fieldsArg(args)
	if !ok {
		return c, fail(e, "FIELDS")
	}
	var x hashEdit
	if !x.begin(ks, e.Args[0]) {
		return c, fail(e, wrongType)
	}
	if x.r == 0 {
		return c, nil
	}
	x.dated = ms != NoDeadline
	for _, name := range names {
		x.setDeadline(name, ms)
	}
	hint := byte(0)
	if ms != NoDeadline {
		hint = hintFields
	}
	return x.end(hint), nil
}
