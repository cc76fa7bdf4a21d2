package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/command"
)

// latencySamples is the number of samples kept of an event.
const latencySamples = 160

// latencyMonitor is LATENCY: what took longer than latency-monitor-threshold.
type latencyMonitor struct {
	threshold atomic.Int64 // ms, 0: off

	mu     sync.Mutex
	events map[string]*latencyEvent
}

// latencyEvent are the newest samples of an event, at most one a second.
type latencyEvent struct {
	samples []latencySample // oldest first
	most    int64           // ms
}

type latencySample struct{ at, ms int64 }

// add notes that an event took ms at a time in unix seconds.
func (m *latencyMonitor) add(event string, at, ms int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.events[event]
	if e == nil {
		if m.events == nil {
			m.events = make(map[string]*latencyEvent)
		}
		e = &latencyEvent{}
		m.events[event] = e
	}
	e.most = max(e.most, ms)
	if n := len(e.samples); n > 0 && e.samples[n-1].at == at {
		e.samples[n-1].ms = max(e.samples[n-1].ms, ms)
		return
	}
	e.samples = append(e.samples, latencySample{at, ms})
	if over := len(e.samples) - latencySamples; over > 0 {
		e.samples = append(e.samples[:0], e.samples[over:]...)
	}
}

// reset forgets events, all if none is named, and returns how many that were.
func (m *latencyMonitor) reset(names [][]byte) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(names) == 0 {
		n = len(m.events)
		clear(m.events)
		return n
	}
	for _, name := range names {
		if _, has := m.events[string(name)]; has {
			delete(m.events, string(name))
			n++
		}
	}
	return n
}

// event returns a copy of an event's samples.
func (m *latencyMonitor) event(name string) (e latencyEvent, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.events[name]; p != nil {
		return latencyEvent{slices.Clone(p.samples), p.most}, true
	}
	return e, false
}

func (m *latencyMonitor) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.events))
}

var latencyHelp = []string{
	"DOCTOR", "    Return a human readable latency analysis report.",
	"GRAPH <event>", "    Return an ASCII latency graph for the <event> class.",
	"HISTORY <event>", "    Return time-latency samples for the <event> class.",
	"LATEST", "    Return the latest latency samples for all events.",
	"RESET [<event> ...]", "    Reset latency data of one or more <event> classes.",
	"    (default: reset all data for all event classes)",
	"HISTOGRAM [COMMAND ...]",
	"    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
	"    If no commands are specified then all histograms are replied.",
}

func registerLatency(r registry) {
	r["latency|help"] = func(s *session, args [][]byte) { command.ReplyHelp(s.w, args[0], latencyHelp) }
	r["latency|reset"] = func(s *session, args [][]byte) { s.w.Int(int64(s.srv.latency.reset(args[2:]))) }
	r["latency|latest"] = latencyLatest
	r["latency|history"] = latencyHistory
	r["latency|graph"] = latencyGraph
	r["latency|doctor"] = latencyDoctor
	r["latency|histogram"] = latencyHistogram
}

func latencyLatest(s *session, _ [][]byte) {
	m, w := &s.srv.latency, s.w
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Array(len(m.events))
	for _, name := range slices.Sorted(maps.Keys(m.events)) {
		e := m.events[name]
		last := e.samples[len(e.samples)-1]
		w.Array(4)
		w.BulkString(name)
		w.Int(last.at)
		w.Int(last.ms)
		w.Int(e.most)
	}
}

func latencyHistory(s *session, args [][]byte) {
	e, _ := s.srv.latency.event(string(args[2]))
	s.w.Array(len(e.samples))
	for _, p := range e.samples {
		s.w.Array(2)
		s.w.Int(p.at)
		s.w.Int(p.ms)
	}
}

// latencyGraph draws a row of bars: one column for each sample, four lines high, and how long ago it was below.
func latencyGraph(s *session, args [][]byte) {
	e, ok := s.srv.latency.event(string(args[2]))
	if !ok {
		s.w.Error("ERR No samples available for event '" + string(args[2]) + "'")
		return
	}
	low, high := e.samples[0].ms, e.samples[0].ms
	for _, p := range e.samples {
		low, high = min(low, p.ms), max(high, p.ms)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s - high %d ms, low %d ms (all time high %d ms)\n", args[2], high, low, e.most)
	b.WriteString(strings.Repeat("-", 80) + "\n")
	now := time.Now().Unix()
	shown := e.samples[max(0, len(e.samples)-80):]
	const lines = 4
	for line := lines; line > 0; line-- {
		for _, p := range shown {
			height := int64(lines)
			if high > low {
				height = 1 + (p.ms-low)*(lines-1)/(high-low)
			}
			if height >= int64(line) {
				b.WriteByte('#')
			} else {
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "\nfrom %d to %d seconds ago\n", now-shown[0].at, now-shown[len(shown)-1].at)
	s.w.Verbatim("txt", b.String())
}

func latencyDoctor(s *session, _ [][]byte) {
	m := &s.srv.latency
	var b strings.Builder
	names := m.names()
	switch {
	case len(names) == 0 && m.threshold.Load() == 0:
		b.WriteString("I'm sorry, Dave, I can't do that. Latency monitoring is disabled in this Redis instance. " +
			"You may use \"CONFIG SET latency-monitor-threshold <milliseconds>.\" in order to enable it.\n")
	case len(names) == 0:
		fmt.Fprintf(&b, "Dave, no latency spike above %d ms has been observed. Lower latency-monitor-threshold to see more.\n",
			m.threshold.Load())
	default:
		b.WriteString("Dave, I have observed latency spikes in this Redis instance:\n\n")
		for i, name := range names {
			e, _ := m.event(name)
			if len(e.samples) == 0 {
				continue
			}
			sum := int64(0)
			for _, p := range e.samples {
				sum += p.ms
			}
			fmt.Fprintf(&b, "%d. %s: %d latency spikes (average %dms, worst all time event %dms).\n",
				i+1, name, len(e.samples), sum/int64(len(e.samples)), e.most)
		}
		b.WriteString("\nSLOWLOG GET shows the commands that took long; look at the disk if appendfsync is always.\n")
	}
	s.w.Verbatim("txt", b.String())
}

// latencyHistogram is LATENCY HISTOGRAM [command ...]: of all commands with samples, or of those named.
func latencyHistogram(s *session, args [][]byte) {
	var rows []*command.Command
	if len(args) == 2 {
		rows = command.All()
	}
	for _, name := range args[2:] {
		row := command.Lookup(name)
		if row == nil {
			if container, sub, ok := strings.Cut(string(name), "|"); ok {
				if c := command.Lookup([]byte(container)); c != nil {
					row = c.Subcommand([]byte(sub))
				}
			}
		}
		if row != nil {
			rows = append(append(rows, row), row.Sub...)
		}
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(row *command.Command) bool {
		return s.srv.stats.rows[row.ID].latency.Load() == nil
	})
	w := s.w
	w.Map(len(rows))
	for _, row := range rows {
		calls, steps := s.srv.stats.rows[row.ID].latency.Load().cumulative()
		w.BulkString(row.Name)
		w.Map(2)
		w.BulkString("calls")
		w.Uint(calls)
		w.BulkString("histogram_usec")
		w.Map(len(steps))
		for _, p := range steps {
			w.Uint(p[0])
			w.Uint(p[1])
		}
	}
}
