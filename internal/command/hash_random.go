package command

import (
	"math"

	"github.com/kevydb/kevy/resp"
	"github.com/kevydb/kevy/state"
)

// maxDraws bounds how many fields HRANDFIELD draws with repetition: what such a reply takes is the client's
// wish alone.
const maxDraws = 1 << 26

// planHRandField plans HRANDFIELD key [count [WITHVALUES]].
func planHRandField(c *Ctx) {
	if len(c.Args) > 2 {
		planHRandFields(c)
		return
	}
	h, found, ok := readHash(c, c.Args[1])
	switch {
	case !ok:
	case !found:
		c.W.Null()
	default:
		d := newDraw(c, &h)
		f := d.at(d.index())
		c.W.Bulk(f.Name)
	}
}

func planHRandFields(c *Ctx) {
	n, bad := intArg(c.Args[2])
	values := len(c.Args) == 4
	switch {
	case bad != "":
		c.W.Error(bad)
		return
	case n == math.MinInt64:
		c.W.Error(msgLongRange)
		return
	case len(c.Args) > 4 || values && !isWord(c.Args[3], "withvalues"):
		c.W.Error(msgSyntax)
		return
	case values && (n < math.MinInt64/2+1 || n > math.MaxInt64/2):
		c.W.Error(msgOutOfRange)
		return
	}
	h, found, ok := readHash(c, c.Args[1])
	switch {
	case !ok:
	case !found || n == 0:
		c.W.Array(0)
	case n < -maxDraws:
		c.W.Error(msgOutOfRange)
	default:
		d := newDraw(c, &h)
		d.reply(n, values)
	}
}

// draw picks fields at random. If the hash hides some, it works on a list of the others.
type draw struct {
	h    *hash
	list []state.Field
	n    int
	rnd  uint64
	w    *resp.Writer
}

func newDraw(c *Ctx, h *hash) draw {
	d := draw{h: h, n: h.Len(), rnd: c.Rand, w: c.W}
	if h.hiding {
		h.each(func(f *state.Field) { d.list = append(d.list, *f) })
		d.n = len(d.list)
	}
	return d
}

func (d *draw) at(i int) state.Field {
	if d.h.hiding {
		return d.list[i]
	}
	return d.h.At(i)
}

// below returns a number from 0 to n-1.
func (d *draw) below(n int) int {
	d.rnd = mix(d.rnd)
	return int(d.rnd % uint64(n))
}

// index returns the place of a field.
func (d *draw) index() int { return d.below(d.n) }

// reply writes n fields, each at most once, or -n with repetition.
func (d *draw) reply(n int64, values bool) {
	count := int(min(n, int64(d.n)))
	if n < 0 {
		count = int(-n)
	}
	if values && !d.w.RESP3() {
		d.w.Array(2 * count)
	} else {
		d.w.Array(count)
	}
	switch {
	case n < 0 || n == 1:
		for range count {
			d.write(d.at(d.index()), values)
		}
	case count == d.n:
		d.h.each(func(f *state.Field) { d.write(*f, values) })
	case count > d.n/3 || d.n <= 128:
		d.sample(count, values)
	default:
		d.pick(count, values)
	}
}

// sample walks over all fields and takes each with the probability that leaves count of them.
func (d *draw) sample(count int, values bool) {
	left := d.n
	d.h.each(func(f *state.Field) {
		if count > 0 && d.below(left) < count {
			d.write(*f, values)
			count--
		}
		left--
	})
}

// pick draws count different places, few of many (Floyd's algorithm).
func (d *draw) pick(count int, values bool) {
	taken := make(map[int]struct{}, count)
	for top := d.n - count; top < d.n; top++ {
		i := d.below(top + 1)
		if _, again := taken[i]; again {
			i = top
		}
		taken[i] = struct{}{}
		d.write(d.at(i), values)
	}
}

func (d *draw) write(f state.Field, values bool) {
	if values && d.w.RESP3() {
		d.w.Array(2)
	}
	d.w.Bulk(f.Name)
	if values {
		d.w.Bulk(f.Value)
	}
}
