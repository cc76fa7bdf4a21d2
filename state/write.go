package state

import "github.com/kevydb/kevy/internal/arena"

// The functions of this file change one record. They decide between writing in place and moving:
//
//   - A record an open view may see is never written; its successor takes its places in index and order.
//   - A record that no longer fits its block, or would leave more than half of it empty, moves.
//   - A value beyond maxInline has a block of its own, which the record's successor takes over. Nobody
//     reads a value beyond the length its record had, so appending in place is right even if a view
//     sees the block.

// set makes value the key's value and returns how many keys it created.
func (ks *Keyspace) set(key, value []byte, deadline int64) int {
	h := Hash(ks.seed, key)
	r := ks.idx.find(h, key)
	if r == 0 {
		ks.create(h, key, value, deadline, byte(TypeString))
		return 1
	}
	b := ks.a.Tail(r)
	if b[offFlags] == byte(TypeString) && deadline == NoDeadline && len(value) <= maxInline && !ks.a.Shared(r) {
		at := headLen + len(key)
		if n, size := at+len(value), arena.Class(b[offClass]).Size(); n <= size && n > size/2 {
			copy(b[at:], value)
			le.PutUint16(b[offValLen:], uint16(len(value)))
			ks.access.note(b, ks.access.now)
			return 0
		}
	}
	ks.overwrite(h, r, b, value, deadline)
	return 0
}

// overwrite is set on an existing record, the general case.
func (ks *Keyspace) overwrite(h uint64, r arena.Ref, b, value []byte, deadline int64) {
	c := content{kind: byte(TypeString), deadline: deadline, value: value}
	kind, block := Type(b[offFlags]&typeMask), ks.detach(r, b)
	if kind != TypeString {
		ks.overwriteCollection(h, r, b, kind, block, &c)
		return
	}
	if len(value) > maxInline {
		c.value, c.ownLen = nil, len(value)
		if block != 0 && !ks.a.Shared(block) {
			if size := ks.a.Capacity(block); len(value) <= size && len(value) > size/2 {
				c.own = block
			}
		}
		if c.own == 0 {
			c.own = ks.newValue(len(value))
		}
		copy(ks.a.Bytes(c.own, len(value)), value)
	}
	n := ks.rewrite(h, r, b, &c)
	ks.access.note(ks.a.Tail(n), ks.access.now)
	if block != 0 && block != c.own {
		ks.freeValue(block)
	}
}

// overwriteCollection puts a string in the place of a collection.
func (ks *Keyspace) overwriteCollection(h uint64, r arena.Ref, b []byte, kind Type, block arena.Ref, c *content) {
	if v := c.value; len(v) > maxInline {
		c.value, c.own, c.ownLen = nil, ks.newValue(len(v)), len(v)
		copy(ks.a.Bytes(c.own, len(v)), v)
	}
	if kind == TypeHash {
		ks.moveFields(fieldDeadline(ks.a, r), r, NoDeadline, 0)
	}
	n := ks.rewrite(h, r, b, c)
	b = ks.a.Tail(n)
	b[offHint] = 0
	ks.access.note(b, ks.access.now)
	ks.discard(kind, block)
}

// create adds a record.
func (ks *Keyspace) create(h uint64, key, value []byte, deadline int64, kind byte) arena.Ref {
	c := content{kind: kind, deadline: deadline, key: key, value: value}
	if len(value) > maxInline {
		c.value, c.own, c.ownLen = nil, ks.newValue(len(value)), len(value)
		copy(ks.a.Bytes(c.own, len(value)), value)
	}
	return ks.add(h, &c)
}

// add puts a new record into the index, the order and the deadlines.
func (ks *Keyspace) add(h uint64, c *content) arena.Ref {
	r := ks.alloc(c, c.size())
	ks.idx.insert(h, r)
	if ks.bulk {
		ks.arrived.add(ks.a, c.key, r)
	} else {
		ks.ord.insert(c.key, r)
		ks.dl.change(NoDeadline, 0, c.deadline, r)
	}
	return r
}

// alloc makes a new record in a block of at least size bytes.
func (ks *Keyspace) alloc(c *content, size int) arena.Ref {
	r := ks.a.Alloc(size)
	b := ks.a.Bytes(r, c.size())
	clear(b[:headLen])
	b[offClass] = byte(arena.ClassOf(size))
	ks.access.fresh(b)
	c.put(b)
	ks.bytes += int64(capacity(ks.a, r, b))
	return r
}

// rewrite gives record r, whose bytes are b, the content c; the key stays. The caller owns what becomes of
// the old value's own block.
func (ks *Keyspace) rewrite(h uint64, r arena.Ref, b []byte, c *content) arena.Ref {
	return ks.rewriteRoom(h, r, b, c, 0)
}

// rewriteRoom is rewrite with room for the value to grow, if the record has to move.
func (ks *Keyspace) rewriteRoom(h uint64, r arena.Ref, b []byte, c *content, room int) arena.Ref {
	c.key = keyOf(ks.a, r)
	oldMS := deadlineOf(b)
	size, have := c.size(), capacity(ks.a, r, b)
	if size <= have && (size > have/2 || c.own != 0) && !ks.a.Shared(r) {
		ks.putInPlace(r, b, c)
		if !ks.bulk {
			ks.dl.change(oldMS, r, c.deadline, r)
		}
		return r
	}
	n := ks.alloc(c, size+room)
	nb := ks.a.Tail(n)
	copy(nb[offAccess:headLen], b[offAccess:headLen])
	nb[offFreq], nb[offHint] = b[offFreq], b[offHint]
	ks.idx.replace(h, r, n)
	if ks.bulk {
		ks.arrived.move(r, n)
	} else {
		ks.ord.replace(c.key, r, n)
		ks.dl.change(oldMS, r, c.deadline, n)
	}
	ks.bytes -= int64(have)
	ks.a.Free(r)
	return n
}

// putInPlace writes c over its own record. If the key moves with the deadline before it, a value that
// may lie in the record is taken out of the way first.
func (ks *Keyspace) putInPlace(r arena.Ref, b []byte, c *content) {
	if len(b) < c.size() {
		b = ks.a.Bytes(r, c.size())
	}
	if (b[offFlags]^c.flags())&flagDeadline != 0 {
		ks.scratch = append(ks.scratch[:0], c.value...)
		c.value = ks.scratch
	}
	c.put(b)
}

// setDeadline changes the deadline of a key, if it exists.
func (ks *Keyspace) setDeadline(key []byte, ms int64) {
	h := Hash(ks.seed, key)
	r := ks.idx.find(h, key)
	if r == 0 {
		return
	}
	b := ks.a.Tail(r)
	old := deadlineOf(b)
	if old == ms {
		return
	}
	if old != NoDeadline && ms != NoDeadline && !ks.a.Shared(r) {
		le.PutUint64(b[headLen:], uint64(ms))
		if !ks.bulk {
			ks.dl.change(old, r, ms, r)
		}
		return
	}
	c := content{kind: b[offFlags] & (typeMask | flagRaw), deadline: ms}
	if b[offFlags]&flagOwn != 0 {
		c.own, c.ownLen = ks.own(r, b)
	} else {
		c.value = valueOf(ks.a, r)
	}
	next := fieldDeadline(ks.a, r)
	ks.moveFields(next, r, next, ks.rewrite(h, r, b, &c))
}

// patch writes data at off into the string value of a record, zeros before it where the value was shorter.
func (ks *Keyspace) patch(h uint64, r arena.Ref, off int, data []byte) {
	b := ks.a.Tail(r)
	c := content{kind: b[offFlags]&typeMask | flagRaw, deadline: deadlineOf(b)}
	old := valueOf(ks.a, r)
	n := max(len(old), off+len(data))
	if b[offFlags]&flagOwn != 0 {
		block, _ := ks.own(r, b)
		c.own, c.ownLen = block, n
		if n > ks.a.Capacity(block) || off < len(old) && ks.a.Shared(block) {
			c.own = ks.newValue(n + n/4*min(1, n-len(old)))
			copy(ks.a.Bytes(c.own, n), old)
		}
		patchBytes(ks.a.Bytes(c.own, n), len(old), off, data)
		ks.rewrite(h, r, b, &c)
		if c.own != block {
			ks.freeValue(block)
		}
		return
	}
	if n > maxInline {
		c.own, c.ownLen = ks.newValue(n+n/4), n
		v := ks.a.Bytes(c.own, n)
		copy(v, old)
		patchBytes(v, len(old), off, data)
		ks.rewrite(h, r, b, &c)
		return
	}
	ks.patchInline(h, r, b, old, n, off, data, &c)
}

// patchInline is patch of a value that stays in its record.
func (ks *Keyspace) patchInline(h uint64, r arena.Ref, b, old []byte, n, off int, data []byte, c *content) {
	at := valueStart(b)
	if at+n <= capacity(ks.a, r, b) && !ks.a.Shared(r) {
		b = ks.a.Bytes(r, at+n)
		patchBytes(b[at:], len(old), off, data)
		b[offFlags] |= flagRaw
		le.PutUint16(b[offValLen:], uint16(n))
		return
	}
	v := append(ks.scratch[:0], old...)
	v = append(v, make([]byte, n-len(old))...)
	copy(v[off:], data)
	ks.scratch, c.value = v, v
	ks.rewriteRoom(h, r, b, c, min(n/4, maxInline-n))
}

// patchBytes writes data at off into v, whose first old bytes are the value so far.
func patchBytes(v []byte, old, off int, data []byte) {
	if old < off {
		clear(v[old:off])
	}
	copy(v[off:], data)
}

// own returns the value's own block and length. REQUIRES: flagOwn.
func (ks *Keyspace) own(r arena.Ref, b []byte) (block arena.Ref, n int) {
	at := valueStart(b)
	return ownValue(ks.a.Bytes(r, at+ownLen)[at:])
}

func (ks *Keyspace) newValue(n int) arena.Ref {
	r := ks.a.Alloc(n)
	ks.bytes += int64(ks.a.Capacity(r))
	return r
}

func (ks *Keyspace) freeValue(r arena.Ref) {
	ks.bytes -= int64(ks.a.Capacity(r))
	ks.a.Free(r)
}
