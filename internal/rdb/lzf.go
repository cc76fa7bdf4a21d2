package rdb

import "sync"

// Facts of LZF: a byte below 32 is followed by one more literals than it says; any other begins a reference, 3 bits of
// length (7: a byte more follows) and 13 bits of distance. What follows finds the references that Redis finds, so that
// compressed strings are the same to the byte.
const (
	lzfTable    = 1 << 16
	lzfLiterals = 32      // literals of one run at most
	lzfDistance = 1 << 13 // of a reference at most
	lzfMatch    = 264     // bytes of a reference at most
)

// lzfMatcher remembers where three bytes were seen last. Entries below base are of former strings.
type lzfMatcher struct {
	seen [lzfTable]uint32
	base uint32
}

var lzfMatchers = sync.Pool{New: func() any { return &lzfMatcher{base: 1} }}

// pack compresses in. It returns nil if that does not save at least four bytes and one.
func pack(in []byte) []byte {
	if len(in) <= 4 || len(in) > 1<<31 {
		return nil
	}
	m := lzfMatchers.Get().(*lzfMatcher)
	defer lzfMatchers.Put(m)
	if uint64(m.base)+uint64(len(in)) >= 1<<32 {
		*m = lzfMatcher{base: 1}
	}
	p := packer{m: m, in: in, room: len(in) - 4, out: make([]byte, 1, len(in))}
	ok := p.run()
	m.base += uint32(len(in))
	if !ok {
		return nil
	}
	return p.out
}

// packer is one compression. out always ends with a run: the byte of its length, and its literals so far.
type packer struct {
	m        *lzfMatcher
	in, out  []byte
	at       int // position in in
	literals int // of the open run
	room     int // what out may hold
}

func (p *packer) run() bool {
	last := len(p.in) - 2
	for p.at < last {
		ref := p.note(p.at)
		if ref <= 0 || p.at-ref-1 >= lzfDistance || string(p.in[ref:ref+3]) != string(p.in[p.at:p.at+3]) {
			if len(p.out) >= p.room {
				return false
			}
			p.literal()
			continue
		}
		need := 4 + len(p.out)
		if p.literals == 0 {
			need--
		}
		if need >= p.room {
			return false
		}
		p.reference(ref)
		if p.at >= last {
			break
		}
		p.note(p.at - 2)
		p.note(p.at - 1)
	}
	if len(p.out)+3 > p.room {
		return false
	}
	for p.at < len(p.in) {
		p.literal()
	}
	p.endRun()
	return true
}

// note remembers the three bytes at a position and returns where they, or others of the same hash, were seen
// before: -1 for nowhere.
func (p *packer) note(at int) (before int) {
	h := uint32(p.in[at])<<16 | uint32(p.in[at+1])<<8 | uint32(p.in[at+2])
	slot := &p.m.seen[(h>>8-h*5)%lzfTable]
	before = -1
	if *slot >= p.m.base {
		before = int(*slot - p.m.base)
	}
	*slot = p.m.base + uint32(at)
	return before
}

func (p *packer) literal() {
	p.out = append(p.out, p.in[p.at])
	p.at++
	if p.literals++; p.literals == lzfLiterals {
		p.endRun()
		p.begin()
	}
}

// endRun writes the length of the open run; one without literals goes.
func (p *packer) endRun() {
	if p.literals == 0 {
		p.out = p.out[:len(p.out)-1]
		return
	}
	p.out[len(p.out)-p.literals-1] = byte(p.literals - 1)
}

func (p *packer) begin() {
	p.literals = 0
	p.out = append(p.out, 0)
}

// reference writes that the bytes at ref come again, as many as there are.
func (p *packer) reference(ref int) {
	distance, n := p.at-ref-1, p.matching(ref)-2
	p.endRun()
	high := byte(distance >> 8)
	if n < 7 {
		p.out = append(p.out, high|byte(n)<<5, byte(distance))
	} else {
		p.out = append(p.out, high|7<<5, byte(n-7), byte(distance))
	}
	p.begin()
	p.at += n + 2
}

// matching counts the bytes that are the same at ref and here, of which three are. Where more than 18 are left the first 18 are
// compared whatever the bound, as in Redis.
func (p *packer) matching(ref int) int {
	bound := min(len(p.in)-p.at-2, lzfMatch)
	n := 2
	if bound > 16 {
		for n < 18 {
			if n++; p.in[ref+n] != p.in[p.at+n] {
				return n
			}
		}
	}
	for n++; n < bound && p.in[ref+n] == p.in[p.at+n]; {
		n++
	}
	return n
}
