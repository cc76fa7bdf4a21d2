package snapshot

import (
	"fmt"
	"slices"
	"time"
)

// Keep says which sets stay.
type Keep struct {
	Count int           // so many of the newest; the newest always stays
	Time  time.Duration // all that are not older
	// LogTime and LogBytes are the window of the log within which every point must stay restorable; see Window.
	LogTime  time.Duration
	LogBytes int64
}

// thin is into how many parts the sets within the log's window divide it: more of them would only make
// restores shorter.
const thin = 8

// Candidate is a set whose fate is to be decided.
type Candidate struct {
	Set
	InUse bool // the manifest names it
	// Reachable says that the log from the set's cursors on is on disk; LogBytes is how long that is on the shard
	// where it is shortest.
	Reachable bool
	LogBytes  int64
}

// Decision is what becomes of one set, and why.
type Decision struct {
	ID     string `json:"id"`
	TimeMS int64  `json:"time_ms"`
	Keys   uint64 `json:"keys"`
	Bytes  int64  `json:"bytes"`
	Keep   bool   `json:"keep"`
	Reason string `json:"reason"`
}

// Plan decides about each candidate, in their order; carrying it out a second time changes nothing. window is the index
// of the set where the restorable window begins: the log from its cursors on is needed. -1: no window is asked for,
// or no set leads into it. short: the window asked for begins before that set; so whatever log there is before it is
// needed too, if something leads into that.
//
// REQUIRES: sets are in the order of their ids.
func Plan(sets []Candidate, k Keep, nowMS int64) (plan []Decision, window int, short bool) {
	window, short = windowStart(sets, k, nowMS)
	last := int64(0) // time of the newest set kept for the window
	for i := range sets {
		s := &sets[i]
		age := time.Duration(nowMS-s.TimeMS) * time.Millisecond
		d := Decision{ID: s.ID, TimeMS: s.TimeMS, Keys: s.Keys(), Bytes: s.Bytes(), Keep: true}
		switch {
		case s.InUse:
			d.Reason = "the next start loads it"
		case i >= len(sets)-max(k.Count, 1):
			d.Reason = fmt.Sprintf("one of the newest %d", max(k.Count, 1))
		case k.Time > 0 && age <= k.Time:
			d.Reason = "not older than " + k.Time.String()
		case window >= 0 && i == window:
			d.Reason = "the window of the log begins with it"
		case window >= 0 && i > window && s.Reachable && (s.TimeMS-last)*thin >= nowMS-sets[window].TimeMS:
			d.Reason = "within the window of the log"
		default:
			d.Keep, d.Reason = false, "not needed"
		}
		if d.Keep && i >= window {
			last = s.TimeMS
		}
		plan = append(plan, d)
	}
	return plan, window, short
}

// windowStart returns the newest set that is as old as the window of the log must be; when there is none yet, the
// oldest from which the log is there, which is too short. -1: no window is asked for.
func windowStart(sets []Candidate, k Keep, nowMS int64) (window int, short bool) {
	if k.LogTime <= 0 && k.LogBytes <= 0 {
		return -1, false
	}
	for i, s := range slices.Backward(sets) {
		old := nowMS-s.TimeMS >= k.LogTime.Milliseconds() && s.LogBytes >= k.LogBytes
		if s.Reachable && old {
			return i, false
		}
	}
	return slices.IndexFunc(sets, func(s Candidate) bool { return s.Reachable }), true
}
