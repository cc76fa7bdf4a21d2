package server

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

var memoryHelp = []string{
	"DOCTOR", "    Return memory problems reports.",
	"MALLOC-STATS", "    Return internal statistics report from the memory allocator.",
	"PURGE", "    Attempt to purge dirty pages for reclamation by the allocator.",
	"STATS", "    Return information about the memory usage of the server.",
	"USAGE <key> [SAMPLES <count>]", "    Return memory in bytes used by <key> and its value. Nested values are",
	"    sampled up to <count> times (default: 5, 0 means sample all).",
}

func registerMemory(r registry) {
	r["memory|help"] = func(s *session, args [][]byte) { command.ReplyHelp(s.w, args[0], memoryHelp) }
	r["memory|doctor"] = memoryDoctor
	r["memory|malloc-stats"] = memoryMallocStats
	r["memory|purge"] = func(s *session, _ [][]byte) {
		s.parkRun(func(w *resp.Writer) { debug.FreeOSMemory(); w.OK() })
	}
	r["memory|stats"] = memoryStats
}

// engineStats is the picture of the engine; inside a transaction the one taken before it.
func (s *session) engineStats() engine.Stats {
	if s.multi.running {
		return s.srv.eng.StatsInside()
	}
	return s.srv.eng.Stats()
}

func memoryDoctor(s *session, _ [][]byte) {
	used := s.srv.memory.last()
	peak, _, _ := s.srv.memory.figures()
	text := "Hi Sam, I can't find any memory issue in your instance. I can only account for what occurs on this base.\n"
	switch {
	case used < 5<<20:
		text = "Hi Sam, this instance is empty or is using very little memory, my issue detector can't be used in " +
			"these conditions. Please, leave for your mission on Earth and fill it with some data. The new Sam and I " +
			"will be back to our programming as soon as I finished rebooting.\n"
	case peak > used*3/2:
		text = fmt.Sprintf("Sam, I detected a memory issue in this instance:\n\n * Peak memory: it used %s at its peak and "+
			"uses %s now. What is free again is reused for new keys; MEMORY PURGE gives it back to the system.\n",
			human(peak), human(used))
	}
	s.w.Verbatim("txt", text)
}

func memoryMallocStats(s *session, _ [][]byte) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.w.Verbatim("txt", fmt.Sprintf("Go heap: %d bytes in %d objects, %d idle, %d released, next collection at %d, "+
		"%d collections\nResident: %d\n", m.HeapAlloc, m.HeapObjects, m.HeapIdle, m.HeapReleased, m.NextGC, m.NumGC,
		residentBytes()))
}

// last returns the memory in use at the last look.
func (m *memory) last() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// memoryStats is MEMORY STATS, with Redis's names.
func memoryStats(s *session, _ [][]byte) {
	st := s.engineStats()
	used := s.srv.memory.note(st.UsedBytes)
	peak, startup, _ := s.srv.memory.figures()
	rss := residentBytes()
	heap := readMetric("/memory/classes/heap/objects:bytes")
	active := heap + readMetric("/memory/classes/heap/unused:bytes")
	resident := active + readMetric("/memory/classes/heap/free:bytes")
	perKey := int64(0)
	if st.Keys > 0 {
		perKey = st.UsedBytes / int64(st.Keys)
	}
	w := s.w
	w.Map(28)
	ints := func(pairs ...any) {
		for i := 0; i+1 < len(pairs); i += 2 {
			w.BulkString(pairs[i].(string))
			w.Int(pairs[i+1].(int64))
		}
	}
	double := func(name string, f float64) { w.BulkString(name); w.Double(f) }
	zero := int64(0)
	ints("peak.allocated", peak, "total.allocated", used, "startup.allocated", startup, "replication.backlog", zero,
		"clients.slaves", zero, "clients.normal", zero, "cluster.links", zero, "aof.buffer", zero, "lua.caches", zero,
		"functions.caches", zero)
	w.BulkString("db.0")
	w.Map(3)
	ints("overhead.hashtable.main", zero, "overhead.hashtable.expires", zero, "overhead.hashtable.slot-to-keys", zero)
	ints("overhead.total", max(0, used-st.UsedBytes), "keys.count", int64(st.Keys), "keys.bytes-per-key", perKey,
		"dataset.bytes", st.UsedBytes)
	double("dataset.percentage", share(st.UsedBytes, used-startup)*100)
	double("peak.percentage", share(used, peak)*100)
	ints("allocator.allocated", heap, "allocator.active", active, "allocator.resident", resident)
	double("allocator-fragmentation.ratio", share(active, heap))
	ints("allocator-fragmentation.bytes", active-heap)
	double("allocator-rss.ratio", share(resident, active))
	ints("allocator-rss.bytes", resident-active)
	double("rss-overhead.ratio", share(rss, resident))
	ints("rss-overhead.bytes", rss-resident)
	double("fragmentation", share(rss, used))
	ints("fragmentation.bytes", rss-used)
}

func share(a, b int64) float64 {
	if b <= 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// noCluster answers everything about clusters, as Redis with cluster-enabled no.
func noCluster(s *session, _ [][]byte) { s.w.Error("ERR This instance has cluster support disabled") }

func registerCluster(r registry) {
	for _, row := range command.All() {
		if row.Group == "cluster" {
			r[row.Name] = noCluster
		}
	}
	delete(r, "cluster") // without a subcommand
}
