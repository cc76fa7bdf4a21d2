package command

import (
	"slices"
	"strconv"

	"github.com/kevydb/kevy/internal/rdb"
	"github.com/kevydb/kevy/log/effect"
)

// planDump plans DUMP. It replies a key's value as an RDB file would have it, made of the effects that would
// rebuild it.
func planDump(c *Ctx) {
	e, ok := c.Lookup(c.Args[1])
	if !ok {
		c.W.Null()
		return
	}
	var d dump
	c.Shards[c.ShardOf(c.Args[1])].Rebuild(e, d.add)
	d.dropDue(c.Now)
	c.W.Bulk(rdb.Append(nil, &d.v, c.Shards[0].Limits.PlainDump))
}

// Dump makes the record of an RDB file of the effects that rebuild a key (state.View.Rebuild). Its zero value is one for the next key.
type Dump struct {
	Key      []byte
	Deadline int64 // unix ms, 0: none
	d        dump
}

// Add takes an effect, and copies what it needs.
func (d *Dump) Add(e *effect.Effect) {
	own := effect.Effect{Op: e.Op, Args: make([][]byte, len(e.Args))}
	for i, a := range e.Args {
		own.Args[i] = append([]byte{}, a...)
	}
	a := own.Args
	d.Key = a[e.Op.KeyAt()]
	switch {
	case e.Op == effect.PExpireAt:
		d.Deadline, _ = parseInt(a[1])
	case e.Op == effect.Set && len(a) == 4: // key value PXAT ms
		d.Deadline, _ = parseInt(a[3])
	}
	d.d.add(own)
}

// Value returns the value.
func (d *Dump) Value() *rdb.Value { return &d.d.v }

// dump collects the effects that rebuild a key.
type dump struct {
	v      rdb.Value
	fields map[string]int // of a hash: the places of fields in v.Deadlines
}

// add adds what an effect does to a new key.
func (d *dump) add(e effect.Effect) {
	a := e.Args[1:]
	switch e.Op {
	case effect.Set:
		d.v = rdb.Value{Kind: rdb.String, Text: a[0]}
	case effect.RPush:
		d.v.Kind, d.v.Items = rdb.List, append(d.v.Items, a...)
	case effect.SAdd:
		d.v.Kind, d.v.Items = rdb.Set, append(d.v.Items, a...)
	case effect.HSet:
		d.v.Kind, d.v.Items = rdb.Hash, append(d.v.Items, a...)
	case effect.HPExpireAt:
		d.addDeadlines(a)
	case effect.ZAdd:
		d.v.Kind = rdb.ZSet
		for i := 0; i+1 < len(a); i += 2 {
			score, _ := strconv.ParseFloat(string(a[i]), 64)
			d.v.Scores = append(d.v.Scores, score)
			d.v.Items = append(d.v.Items, a[i+1])
		}
	case effect.XAdd, effect.XTrim, effect.XSetID, effect.XGroup, effect.XClaim:
		d.addStream(e)
	}
}

// addDeadlines adds HPEXPIREAT key ms FIELDS n field...
func (d *dump) addDeadlines(a [][]byte) {
	if d.fields == nil {
		d.fields = make(map[string]int, len(d.v.Items)/2)
		for i := 0; i < len(d.v.Items); i += 2 {
			d.fields[string(d.v.Items[i])] = i / 2
		}
		d.v.Deadlines = make([]int64, len(d.v.Items)/2)
	}
	ms, _ := parseInt(a[0])
	for _, name := range a[3:] {
		d.v.Deadlines[d.fields[string(name)]] = ms
	}
}

func dumpID(b []byte) rdb.ID {
	id, _ := streamIDArg(b, 0)
	return rdb.ID(id)
}

func (d *dump) addStream(e effect.Effect) {
	d.v.Kind = rdb.Stream
	if d.v.Stream == nil {
		d.v.Stream = &rdb.StreamValue{}
	}
	s, a := d.v.Stream, e.Args[1:]
	switch e.Op {
	case effect.XAdd:
		s.Entries = append(s.Entries, rdb.Entry{ID: dumpID(a[0]), Fields: slices.Clone(a[1:])})
	case effect.XTrim: // the entry that made an empty stream
		s.Entries = nil
	case effect.XSetID:
		s.Last, s.Gone = dumpID(a[0]), dumpID(a[4])
		s.Added, _ = parseInt(a[2])
		if len(s.Entries) > 0 {
			s.First = s.Entries[0].ID
		}
	case effect.XGroup:
		a = a[1:] // behind the key
		if string(e.Args[0]) == "CREATE" {
			g := rdb.Group{Name: a[0], Last: dumpID(a[1])}
			g.Read, _ = parseInt(a[3])
			s.Groups = append(s.Groups, g)
			return
		}
		g := &s.Groups[len(s.Groups)-1]
		g.Consumers = append(g.Consumers, rdb.Consumer{Name: a[1]})
	case effect.XClaim:
		g := &s.Groups[len(s.Groups)-1]
		k := &g.Consumers[len(g.Consumers)-1]
		n := len(a) - 8 // where the options begin
		ms, _ := parseInt(a[n+1])
		count, _ := parseInt(a[n+3])
		for _, id := range a[3:n] {
			k.Pending = append(k.Pending, rdb.Pending{ID: dumpID(id), Time: ms, Count: count})
		}
		k.Seen = max(k.Seen, ms)
	}
}

// dropDue leaves out the fields whose deadline has passed.
func (d *dump) dropDue(now int64) {
	n := 0
	for i, ms := range d.v.Deadlines {
		if ms > 0 && ms <= now {
			continue
		}
		d.v.Deadlines[n] = ms
		d.v.Items[2*n], d.v.Items[2*n+1] = d.v.Items[2*i], d.v.Items[2*i+1]
		n++
	}
	if d.v.Deadlines != nil {
		d.v.Deadlines, d.v.Items = d.v.Deadlines[:n], d.v.Items[:2*n]
	}
}
