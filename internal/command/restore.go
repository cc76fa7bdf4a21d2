package command

import (
	"errors"
	"math"

	"github.com/kevydb/kevy/internal/rdb"
	"github.com/kevydb/kevy/log/effect"
	"github.com/kevydb/kevy/state"
)

const (
	msgBusyKey     = "BUSYKEY Target key name already exists."
	msgRestoreTTL  = "ERR Invalid TTL value, must be >= 0"
	msgRestoreIdle = "ERR Invalid IDLETIME value, must be >= 0"
	msgRestoreFreq = "ERR Invalid FREQ value, must be >= 0 and <= 255"
	msgDumpVersion = "ERR DUMP payload version or checksum are wrong"
	msgDumpFormat  = "ERR Bad data format"
)

// restoreOptions are the options of RESTORE. idle and freq are -1 if not given.
type restoreOptions struct {
	replace, absolute bool
	idle, freq        int64
}

func parseRestore(args [][]byte) (o restoreOptions, bad errorText) {
	o.idle, o.freq = -1, -1
	for i := 0; i < len(args); i++ {
		more := i+1 < len(args)
		switch {
		case isWord(args[i], "replace"):
			o.replace = true
		case isWord(args[i], "absttl"):
			o.absolute = true
		case isWord(args[i], "idletime") && more && o.freq == -1:
			i++
			if o.idle, bad = intArg(args[i]); bad == "" && o.idle < 0 {
				bad = msgRestoreIdle
			}
		case isWord(args[i], "freq") && more && o.idle == -1:
			i++
			if o.freq, bad = intArg(args[i]); bad == "" && (o.freq < 0 || o.freq > 255) {
				bad = msgRestoreFreq
			}
		default:
			bad = msgSyntax
		}
		if bad != "" {
			return o, bad
		}
	}
	return o, ""
}

// planRestore plans RESTORE and RESTORE-ASKING: the effects that make the value that DUMP has written.
func planRestore(c *Ctx) {
	key := c.Args[1]
	o, bad := parseRestore(c.Args[4:])
	if bad == "" && !o.replace {
		if _, there := c.Peek(key); there {
			bad = msgBusyKey
		}
	}
	var ttl int64
	if bad == "" {
		if ttl, bad = intArg(c.Args[2]); bad == "" && ttl < 0 {
			bad = msgRestoreTTL
		}
	}
	if bad == "" && ttl > 0 && !o.absolute {
		if ttl > math.MaxInt64-c.Now {
			bad = expireTimeError(c.Cmd)
		}
		ttl += c.Now
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	v, err := rdb.Decode(c.Args[3])
	if err == nil && !restorable(&v) {
		err = rdb.ErrFormat
	}
	if err != nil {
		c.W.Error(restoreError(err))
		return
	}
	stays := ttl == 0 || ttl > c.Now || c.KeepExpired
	if !(v.Kind == rdb.String && stays) { // SET replaces any value by itself
		if _, _, there := c.find(key); there {
			c.Emit(effect.Del, key)
		}
	}
	if stays {
		r := restore{c: c, key: key}
		r.value(&v, ttl)
		c.noteAccess(o)
	}
	c.W.OK()
}

// noteAccess makes the last planned effect set the access clock or the counter, whichever maxmemory-policy goes by.
func (c *Ctx) noteAccess(o restoreOptions) {
	now := c.Now / 1000
	a := &Access{Seconds: uint32(now)}
	switch {
	case len(c.planned) == 0:
		return
	case c.LFU && o.freq >= 0:
		a.Freq = uint8(o.freq)
	case !c.LFU && o.idle >= 0:
		a.Seconds = uint32(max(1, now-min(o.idle, now)))
	default:
		return
	}
	c.mark(a)
}

func restoreError(err error) errorText {
	if errors.Is(err, rdb.ErrVersion) {
		return msgDumpVersion
	}
	return msgDumpFormat
}

// restorable reports whether folding can take a value.
func restorable(v *rdb.Value) bool {
	if len(v.Text) > state.MaxValue {
		return false
	}
	for _, b := range v.Items {
		if len(b) > state.MaxValue {
			return false
		}
	}
	for _, ms := range v.Deadlines {
		if ms > maxFieldDeadline {
			return false
		}
	}
	return v.Stream == nil || restorableStream(v.Stream)
}

func restorableStream(s *rdb.StreamValue) bool {
	for i := range s.Entries {
		size := 0
		for _, b := range s.Entries[i].Fields {
			size += len(b)
		}
		if size > state.MaxValue {
			return false
		}
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if len(g.Name) > state.MaxValue {
			return false
		}
		for _, k := range g.Consumers {
			if len(k.Name) > state.MaxValue {
				return false
			}
		}
	}
	return true
}

// Elements and bytes of an effect that makes a part of a value.
const (
	restoreElements = 512
	restoreBytes    = 1 << 20
)

// restore emits the effects that make a key.
type restore struct {
	c   *Ctx
	key []byte
}

// value emits the effects of a value, then its deadline unless ttl is 0.
func (r *restore) value(v *rdb.Value, ttl int64) {
	c := r.c
	switch v.Kind {
	case rdb.String:
		if ttl > 0 {
			c.Emit(effect.Set, r.key, v.Text, []byte("PXAT"), c.Int(ttl))
		} else {
			c.Emit(effect.Set, r.key, v.Text)
		}
		return
	case rdb.List:
		r.pieces(effect.RPush, v.Items, 1)
	case rdb.Set:
		r.pieces(effect.SAdd, v.Items, 1)
	case rdb.Hash:
		if !r.hash(v) {
			return
		}
	case rdb.ZSet:
		r.zset(v)
	case rdb.Stream:
		r.stream(v.Stream)
	}
	if ttl > 0 {
		c.Emit(effect.PExpireAt, r.key, c.Int(ttl))
	}
}

// pieces emits effects of bounded size over all items; width of them are an element.
func (r *restore) pieces(op effect.Op, items [][]byte, width int) {
	for len(items) > 0 {
		n, size := 0, 0
		for n < len(items) && n < restoreElements*width && size < restoreBytes {
			for _, b := range items[n : n+width] {
				size += len(b)
			}
			n += width
		}
		r.c.beginEffect()
		r.c.addArg(r.key)
		r.c.args = append(r.c.args, items[:n]...)
		r.c.emitOpen(r.c.ShardOf(r.key), op)
		items = items[n:]
	}
}

func (r *restore) zset(v *rdb.Value) {
	pairs := make([][]byte, 0, 2*len(v.Items))
	text := make([]byte, 0, 8*len(v.Items))
	for i, m := range v.Items {
		start := len(text)
		text = state.AppendScore(text, v.Scores[i])
		pairs = append(pairs, text[start:len(text):len(text)], m)
	}
	r.pieces(effect.ZAdd, pairs, 2)
}

// hash emits the fields whose deadline has not passed, then the deadlines; false if there are none.
func (r *restore) hash(v *rdb.Value) bool {
	d := dump{v: *v}
	if !r.c.KeepExpired {
		d.dropDue(r.c.Now)
	}
	if len(d.v.Items) == 0 {
		return false
	}
	r.pieces(effect.HSet, d.v.Items, 2)
	due := map[int64][][]byte{}
	for i, ms := range d.v.Deadlines {
		if ms > 0 {
			due[ms] = append(due[ms], d.v.Items[2*i])
		}
	}
	for _, ms := range sortedKeys(due) {
		for names := due[ms]; len(names) > 0; {
			n := min(len(names), restoreElements)
			args := append([][]byte{r.key, r.c.Int(ms), []byte("FIELDS"), r.c.Int(int64(n))}, names[:n]...)
			r.c.Emit(effect.HPExpireAt, args...)
			names = names[n:]
		}
	}
	return true
}
