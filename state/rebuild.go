package state

import (
	"strconv"

	"github.com/kevydb/kevy/log/effect"
)

// Rebuild calls f with the effects that rebuild the keyspace on an empty one, key by key in key
// order, until f returns false; last marks the last effect of a key. The effect is valid until f
// returns.
func (v *View) Rebuild(f func(e *effect.Effect, last bool) bool) {
	var args [4][]byte
	var num [20]byte
	args[2] = []byte("PXAT")
	v.AscendFrom(nil, func(key, value []byte, deadline int64) bool {
		args[0], args[1] = key, value
		e := effect.Effect{Op: effect.Set, Args: args[:2]}
		if deadline != NoDeadline {
			args[3] = strconv.AppendInt(num[:0], deadline, 10)
			e.Args = args[:4]
		}
		return f(&e, true)
	})
}
