package rdb

import (
	"encoding/binary"
	"math"
	"strconv"
)

// A stream's value, numbers as lengths are written unless a size is given:
//
//	stream   = number of nodes | nodes | entries | last ID | [first ID | greatest deleted ID | entries added] |
//	           number of groups | groups
//	node     = ID as a string of 16 bytes, big-endian | listpack as a string
//	group    = name | last ID | [entries read] | pending: number, of each ID (16 bytes), time (8), deliveries |
//	           number of consumers | consumers
//	consumer = name | seen (8) | [active (8)] | pending: number, IDs (16 bytes each)
//
// An ID is two numbers. The brackets came with versions 2 (seen and active: 3) of the type. The listpack of a node:
//
//	listpack = live entries | deleted ones | n, number of names | n names | 0 | entries
//	entry    = flags | ms and number less those of the node | values, if the names are those of the node, or
//	           number of names, names and values in turns | number of elements
const (
	entryDeleted = 1
	entrySame    = 2 // has the names of the node

	nodeEntries = 100
	nodeBytes   = 4096
)

func (r *reader) id() ID { return ID{r.length(), r.length()} }

// rawID reads an ID of 16 bytes.
func (r *reader) rawID() (id ID) {
	if b := r.take(16); b != nil {
		id = ID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
	}
	return id
}

func (r *reader) stream(t byte) *StreamValue {
	s := &StreamValue{}
	for n := r.count(2); n > 0 && !r.bad; n-- {
		r.node(s)
	}
	if n := r.length(); n != uint64(len(s.Entries)) {
		r.fail()
	}
	s.Last = r.id()
	s.Added = int64(len(s.Entries))
	if t == typeStream {
		if len(s.Entries) > 0 {
			s.First = s.Entries[0].ID
		}
	} else {
		s.First, s.Gone = r.id(), r.id()
		s.Added = r.signed()
	}
	if n := len(s.Entries); s.Added < 0 || n > 0 && s.Last.Less(s.Entries[n-1].ID) {
		r.fail()
	}
	names := map[string]bool{}
	for n := r.count(5); n > 0 && !r.bad; n-- {
		g := r.group(t, s)
		if names[string(g.Name)] {
			r.fail()
		}
		names[string(g.Name)] = true
		s.Groups = append(s.Groups, g)
	}
	return s
}

// node reads a node's entries.
func (r *reader) node(s *StreamValue) {
	key := reader{b: r.text()}
	base := key.rawID()
	p := items{all: r.listpack(nil, r.text())}
	if key.bad || len(key.b) > 0 {
		r.fail()
	}
	live, deleted := p.number(), p.number()
	names := p.take(p.number())
	if p.number() != 0 || live < 0 || deleted < 0 {
		p.fail()
	}
	for len(p.all) > 0 && !p.bad {
		flags := p.number()
		id := ID{base.Ms + uint64(p.number()), base.Seq + uint64(p.number())}
		fields := p.fields(flags&entrySame != 0, names)
		p.number() // of elements, for reading backwards
		if flags&entryDeleted != 0 {
			deleted--
			continue
		}
		live--
		last := ID{}
		if n := len(s.Entries); n > 0 {
			last = s.Entries[n-1].ID
		}
		if !last.Less(id) || len(fields) == 0 {
			p.fail()
		}
		s.Entries = append(s.Entries, Entry{ID: id, Fields: fields})
	}
	if p.bad || live != 0 || deleted != 0 {
		r.fail()
	}
}

// items are the elements of a listpack, still to be read.
type items struct {
	all [][]byte
	bad bool
}

func (p *items) fail() { p.all, p.bad = nil, true }

func (p *items) take(n int64) [][]byte {
	if n < 0 || n > int64(len(p.all)) {
		p.fail()
		return nil
	}
	out := p.all[:n]
	p.all = p.all[n:]
	return out
}

func (p *items) number() int64 {
	b := p.take(1)
	if b == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(b[0]), 10, 64)
	if err != nil {
		p.fail()
	}
	return n
}

// fields reads the fields and values of an entry.
func (p *items) fields(same bool, names [][]byte) [][]byte {
	if !same {
		n := p.number()
		if n < 0 || n > math.MaxInt32 {
			p.fail()
			return nil
		}
		return p.take(2 * n)
	}
	out := make([][]byte, 0, min(2*len(names), 2*len(p.all)))
	for i, value := range p.take(int64(len(names))) {
		out = append(out, names[i], value)
	}
	return out
}

// readUpTo returns how many entries there were up to an ID, -1 if nobody can tell. REQUIRES: nothing was deleted but at
// the beginning.
func (s *StreamValue) readUpTo(id ID) int64 {
	n := int64(len(s.Entries))
	switch {
	case s.Added == 0:
		return 0
	case n == 0 && !s.Last.Less(id), id == s.Last:
		return s.Added
	case s.Last.Less(id):
		return -1
	case id.Less(s.First):
		return s.Added - n
	case id == s.First:
		return s.Added - n + 1
	}
	return -1
}

func (r *reader) group(t byte, s *StreamValue) (g Group) {
	g.Name, g.Last = r.text(), r.id()
	g.Read = -1
	if t != typeStream {
		g.Read = r.signed()
	} else {
		g.Read = s.readUpTo(g.Last)
	}
	if g.Read < -1 {
		r.fail()
	}
	pending := map[ID]Pending{}
	for n := r.count(25); n > 0 && !r.bad; n-- {
		p := Pending{ID: r.rawID(), Time: int64(r.uint64()), Count: r.signed()}
		pending[p.ID] = p
	}
	names := map[string]bool{}
	for n := r.count(10); n > 0 && !r.bad; n-- {
		c := Consumer{Name: r.text(), Seen: int64(r.uint64())}
		c.Active = c.Seen
		if t == typeStream3 {
			c.Active = int64(r.uint64())
		}
		if names[string(c.Name)] {
			r.fail()
		}
		names[string(c.Name)] = true
		for k := r.count(16); k > 0 && !r.bad; k-- {
			p, ok := pending[r.rawID()]
			if !ok { // unknown, or another consumer's
				r.fail()
			}
			delete(pending, p.ID)
			c.Pending = append(c.Pending, p)
		}
		g.Consumers = append(g.Consumers, c)
	}
	if len(pending) > 0 { // nobody's
		r.fail()
	}
	return g
}
