package log

import "time"

const maxGeneration = 1<<53 - 1 // exact in a JavaScript number

// generationEpoch is 2024-01-01 UTC in unix ms.
const generationEpoch = 1704067200000

// newGeneration makes the identity of a generation: (ms since 2024) << 12 | 12 random bits, and in
// any case greater than last.
func newGeneration(nowMS int64, random, last uint64) uint64 {
	g := uint64(max(nowMS-generationEpoch, 0))<<12 | random&0xfff
	if g <= last {
		g = last + 1 + random&0xfff
	}
	return max(g, 1)
}

// Lineage is one generation of a shard and where it came from.
type Lineage struct {
	Generation   uint64 `json:"generation"`
	Cause        Cause  `json:"cause"`
	Parent       uint64 `json:"parent"`        // generation it forked off, 0: none
	ParentOffset uint64 `json:"parent_offset"` // tail of the parent as far as it is part of this history
	TimeMS       int64  `json:"time_ms"`       // unix ms of its beginning
	// Earlier is how many frames the history has before the parent generation; known of the oldest one on record alone.
	Earlier uint64 `json:"earlier,omitempty"`
}

func unixMS() int64 { return time.Now().UnixMilli() }
