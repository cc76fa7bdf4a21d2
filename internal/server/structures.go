package server

import (
	"strconv"

	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/state"
)

// limitKeys are the settings that say when OBJECT ENCODING calls a collection large.
var limitKeys = map[string]bool{
	"hash-max-listpack-entries": true, "hash-max-listpack-value": true,
	"set-max-intset-entries": true, "set-max-listpack-entries": true, "set-max-listpack-value": true,
	"zset-max-listpack-entries": true, "zset-max-listpack-value": true, "list-max-listpack-size": true,
	"stream-node-max-entries": true, "stream-node-max-bytes": true, "hll-sparse-max-bytes": true,
	"rdbcompression": true,
}

// Limits returns the bounds for OBJECT ENCODING that a configuration asks for.
func Limits(cfg *config.Config) state.Limits {
	n := func(name string) int {
		text, _ := cfg.Get(name)
		i, _ := strconv.Atoi(text) // config knows these as numbers
		return i
	}
	compress, _ := cfg.Get("rdbcompression")
	return state.Limits{
		PlainDump:   compress == "no",
		HashEntries: n("hash-max-listpack-entries"), HashValue: n("hash-max-listpack-value"),
		IntsetEntries: n("set-max-intset-entries"),
		SetEntries:    n("set-max-listpack-entries"), SetValue: n("set-max-listpack-value"),
		ZSetEntries: n("zset-max-listpack-entries"), ZSetValue: n("zset-max-listpack-value"),
		ListSize:      n("list-max-listpack-size"),
		StreamEntries: n("stream-node-max-entries"), StreamBytes: n("stream-node-max-bytes"),
		SparseBytes: n("hll-sparse-max-bytes"),
	}
}
