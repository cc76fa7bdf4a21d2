package log

import (
	"errors"
	"fmt"

	"github.com/kevydb/kevy/log/effect"
)

// groupMaker is a Log or an Encoder.
type groupMaker interface {
	Begin(timeMS int64, cause FrameCause, txn, mask uint64)
	Append(e *effect.Effect)
}

// bridged is a group that a generation begins in the midst of: one frame on each shard before that, and one on those of mask behind it.
type bridged struct {
	txns   [2]uint64 // of the two parts
	mask   uint64
	timeMS int64
	second [MaxShards]string // values
}

func (m *model) newBridged() *bridged {
	b := &bridged{mask: uint64(1 + m.rng.IntN(1<<m.shards-1)), timeMS: int64(1000 + m.n)}
	if m.shards > 1 {
		b.txns = [2]uint64{m.txn + 1, m.txn + 2}
		m.txn += 2
	}
	return b
}

// before appends the first part and takes note of both, and of where the generations begin.
func (m *model) before(d *Dir, b *bridged, forks []int) {
	for i := range m.shards {
		l := d.Log(i)
		m.n++
		v := fmt.Sprintf("%d-%d", m.n, i)
		l.Begin(b.timeMS, ByClient, b.txns[0], 1<<m.shards-1)
		l.Append(set("k", v))
		l.End()
		m.hist[i] = append(m.hist[i], item{v, b.txns[0], true})
		forks[i] = len(m.hist[i])
		if b.has(i) {
			b.second[i] = v + "-behind"
			m.hist[i] = append(m.hist[i], item{b.second[i], b.txns[1], true})
			m.bridged = append(m.bridged, [2]string{v, b.second[i]})
		}
	}
}

func (b *bridged) has(shard int) bool { return b.mask&(1<<shard) != 0 }

// behind makes the second part of a shard; it is still to be ended.
func (b *bridged) behind(shard int, to groupMaker) {
	to.Begin(b.timeMS, ByClient, b.txns[1], b.mask)
	to.Append(set("k", b.second[shard]))
}

// bridge begins a generation amid a group. Segments may be due to roll, and the process may end, before the second part is appended.
func (m *model) bridge(d *Dir) error {
	for i := range m.shards {
		if err := d.Log(i).Reserve(1000); err != nil {
			return err
		}
	}
	b, forks := m.newBridged(), make([]int, m.shards)
	err := d.BridgeGeneration(CauseFlush, &Bridge{
		Before: func() { m.before(d, b, forks) },
		After: func(i int, enc *Encoder) {
			if b.has(i) {
				b.behind(i, enc)
				enc.End()
			}
		},
	})
	if err != nil {
		return err
	}
	m.forks = forks
	for range m.rng.IntN(3) {
		l := d.Log(m.rng.IntN(m.shards))
		if err := l.roll(); err != nil && !errors.Is(err, errUnsettled) {
			return err
		}
	}
	if m.amid = m.rng.IntN(4) == 0; m.amid {
		return errStop
	}
	for i := range m.shards {
		if b.has(i) {
			l := d.Log(i)
			b.behind(i, l)
			l.End()
		}
	}
	return nil
}
