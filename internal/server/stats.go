package server

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/command"
)

// maxErrorCodes bounds errorstats: clients can make up codes (EVAL, DEBUG ERROR).
const maxErrorCodes = 128

// stats are the counters behind INFO. Loops add to them once per turn.
type stats struct {
	start time.Time
	rows  []rowStats // by command id

	commands     atomic.Uint64
	errorReplies atomic.Uint64
	unexpected   atomic.Uint64
	authFailures atomic.Uint64
	hits, misses atomic.Uint64 // keys that reads found, and did not find
	tracking     atomic.Bool   // keep latency histograms

	mu     sync.Mutex
	errors map[string]uint64 // replies by error code

	rates rates
}

// rowStats are one command's counters. Times are of the calls that were measured: of pipelined ones a part.
type rowStats struct {
	calls, refused, failures atomic.Uint64
	samples, nanos           atomic.Uint64
	latency                  atomic.Pointer[histogram]
}

func newStats() *stats {
	st := &stats{start: time.Now(), rows: make([]rowStats, len(command.All())), errors: make(map[string]uint64)}
	st.tracking.Store(true)
	return st
}

// record adds one measured call.
func (st *stats) record(id int, d time.Duration) {
	r := &st.rows[id]
	r.samples.Add(1)
	r.nanos.Add(uint64(d))
	if !st.tracking.Load() {
		return
	}
	h := r.latency.Load()
	if h == nil {
		r.latency.CompareAndSwap(nil, new(histogram))
		h = r.latency.Load()
	}
	if h != nil {
		h.add(d)
	}
}

// usec estimates the time all calls took.
func (r *rowStats) usec() (total uint64, perCall float64) {
	n := r.samples.Load()
	if n == 0 {
		return 0, 0
	}
	perCall = float64(r.nanos.Load()) / float64(n) / 1000
	return uint64(perCall * float64(r.calls.Load())), perCall
}

// rejected counts a command that was refused before it ran.
func (st *stats) rejected(id int) { st.rows[id].refused.Add(1) }

// uncount takes a call back that has not run after all.
func (st *stats) uncount(id int) {
	if calls := &st.rows[id].calls; calls.Load() > 0 { // not if the counters were reset meanwhile
		calls.Add(^uint64(0))
	}
}

// failed counts a command whose reply is an error.
func (st *stats) failed(id int, reply []byte) {
	st.rows[id].failures.Add(1)
	st.errorReply(string(reply[1:min(len(reply), 64)]))
}

// errorReply counts an error reply, given without its "-".
func (st *stats) errorReply(text string) {
	code := text
	if i := bytes.IndexAny([]byte(text), " \r\n"); i >= 0 {
		code = text[:i]
	}
	st.errorReplies.Add(1)
	st.mu.Lock()
	defer st.mu.Unlock()
	if _, known := st.errors[code]; known || len(st.errors) < maxErrorCodes {
		st.errors[code]++
	}
}

// reset clears what CONFIG RESETSTAT clears.
func (st *stats) reset() {
	for i := range st.rows {
		r := &st.rows[i]
		for _, c := range []*atomic.Uint64{&r.calls, &r.refused, &r.failures, &r.samples, &r.nanos} {
			c.Store(0)
		}
		r.latency.Store(nil)
	}
	for _, c := range []*atomic.Uint64{&st.commands, &st.errorReplies, &st.unexpected, &st.authFailures, &st.hits, &st.misses} {
		c.Store(0)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	clear(st.errors)
	st.rates = rates{}
}
