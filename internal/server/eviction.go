package server

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/internal/engine"
)

// evictionKeys are the settings that say which keys go when memory is short.
var evictionKeys = map[string]bool{
	"maxmemory-policy": true, "maxmemory-samples": true, "maxmemory-eviction-tenacity": true,
	"lfu-log-factor": true, "lfu-decay-time": true,
}

// eviction returns what a configuration asks for.
func eviction(cfg *config.Config) engine.Eviction {
	n := func(name string) int {
		text, _ := cfg.Get(name)
		i, _ := strconv.Atoi(text) // config knows these as numbers
		return i
	}
	scope, by, _ := strings.Cut(cfg.MaxMemoryPolicy, "-")
	return engine.Eviction{
		Volatile: scope == "volatile",
		By: map[string]engine.EvictBy{
			"lru": engine.EvictIdle, "lfu": engine.EvictFrequency, "random": engine.EvictRandom, "ttl": engine.EvictDeadline,
		}[by],
		Samples:   n("maxmemory-samples"),
		Slice:     evictionSlice(n("maxmemory-eviction-tenacity")),
		LogFactor: n("lfu-log-factor"), DecayTime: n("lfu-decay-time"),
	}
}

// evictionSlice is how long one command may evict, by maxmemory-eviction-tenacity: up to 10 it grows evenly to half a
// millisecond, then by 15% a step; 100 has no bound.
func evictionSlice(tenacity int) time.Duration {
	const step = 50 * time.Microsecond
	switch {
	case tenacity <= 10:
		return max(1, time.Duration(tenacity)*step)
	case tenacity < 100:
		return time.Duration(float64(10*step) * math.Pow(1.15, float64(tenacity-10)))
	}
	return 0
}
