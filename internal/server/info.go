package server

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

// report builds INFO's text.
type report struct {
	b     strings.Builder
	srv   *Server
	cfg   *config.Config
	now   time.Time
	stats engine.Stats
	net   resp.Stats
}

// section is one part of INFO.
type section struct {
	name, title string
	write       func(*report)
	byDefault   bool
	inAll       bool
}

// sections are in the order in which INFO shows them.
var sections = []section{
	{"server", "Server", (*report).server, true, true},
	{"clients", "Clients", (*report).clients, true, true},
	{"memory", "Memory", (*report).memory, true, true},
	{"persistence", "Persistence", (*report).persistence, true, true},
	{"stats", "Stats", (*report).counters, true, true},
	{"replication", "Replication", (*report).replication, true, true},
	{"cpu", "CPU", (*report).cpu, true, true},
	{"modules", "Modules", func(*report) {}, true, true},
	{"commandstats", "Commandstats", (*report).commandStats, false, true},
	{"errorstats", "Errorstats", (*report).errorStats, true, true},
	{"latencystats", "Latencystats", (*report).latencyStats, false, true},
	{"cluster", "Cluster", (*report).cluster, true, true},
	{"feed", "Feed", (*report).feed, true, true},
	{"keyspace", "Keyspace", (*report).keyspace, true, true},
}

// chosen returns the sections that the arguments of INFO name. Unknown names are ignored.
func chosen(args [][]byte) []section {
	want := make(map[string]bool)
	byDefault, all := len(args) == 0, false
	for _, a := range args {
		switch name := strings.ToLower(string(a)); name {
		case "default":
			byDefault = true
		case "all", "everything":
			all = true
		default:
			want[name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(sections), func(s section) bool {
		shown := want[s.name] || (byDefault && s.byDefault) || (all && s.inAll)
		return !shown
	})
}

// heldStats returns the engine's picture for a command inside a transaction or script, which holds the shard locks.
func (s *session) heldStats() engine.Stats {
	if s.multi.stats != nil {
		return *s.multi.stats
	}
	return s.srv.eng.StatsInside()
}

func infoCommand(s *session, args [][]byte) {
	r := &report{srv: s.srv, cfg: s.srv.config(), now: time.Now(), net: s.srv.rs.Stats()}
	if s.multi.running {
		r.stats = s.heldStats()
	} else {
		r.stats = s.srv.eng.Stats()
	}
	for i, part := range chosen(args[1:]) {
		if i > 0 {
			r.b.WriteString("\r\n")
		}
		r.b.WriteString("# " + part.title + "\r\n")
		part.write(r)
	}
	s.w.Verbatim("txt", r.b.String())
}

// field writes one line.
func (r *report) field(name string, value any) { fmt.Fprintf(&r.b, "%s:%v\r\n", name, value) }

// fields writes name, value pairs.
func (r *report) fields(pairs ...any) {
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&r.b, "%s:%v\r\n", pairs[i], pairs[i+1])
	}
}

// zeros writes fields of Redis that are always 0 here.
func (r *report) zeros(names ...string) {
	for _, name := range names {
		r.field(name, 0)
	}
}

func fixed2(f float64) string { return fmt.Sprintf("%.2f", f) }

func percent(part, whole int64) string {
	if whole <= 0 {
		return "0.00%"
	}
	return fixed2(float64(part)*100/float64(whole)) + "%"
}

func ratio(a, b int64) string {
	if b <= 0 {
		return "0.00"
	}
	return fixed2(float64(a) / float64(b))
}

// human shows bytes as Redis does: 918.77K.
func human(n int64) string {
	units := []string{"B", "K", "M", "G", "T", "P"}
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	f, unit := float64(n), 0
	for f >= 1024 && unit < len(units)-1 {
		f /= 1024
		unit++
	}
	return fixed2(f) + units[unit]
}

func bit(on bool) int {
	if on {
		return 1
	}
	return 0
}

func okOrErr(err error) string {
	if err != nil {
		return "err"
	}
	return "ok"
}
