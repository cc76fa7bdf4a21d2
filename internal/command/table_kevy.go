package command

// prefixCommands look at all keys below a prefix.
var prefixCommands = []*Command{
	{
		Name: "prefix.stats", Arity: 2,
		Flags: ReadOnly | Slow,
		Scope: ScopeAll,
		Group: "prefix", Since: "1.0.0",
		Summary:    "Counts the live keys below a prefix, and those of them that expire.",
		Complexity: "O(N) with N being the number of keys that start with the prefix.",
		Categories: "keyspace read slow",
		Doc:        []Arg{{Name: "prefix", Type: "string"}},
		Plan:       planPrefixStats,
	},
	{
		Name: "prefix.digest", Arity: -2,
		Flags: ReadOnly | Slow,
		Scope: ScopeAll,
		Group: "prefix", Since: "1.0.0",
		Summary:    "Returns a digest of keys, values and deadlines below a prefix, independent of order and shards.",
		Complexity: "O(N) with N being the bytes of the keys and values below the prefix.",
		Categories: "keyspace read slow",
		Doc: []Arg{
			{Name: "prefix", Type: "string"},
			{Name: "at", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
				{Name: "cursors", Type: "pure-token", Token: "CURSORS"},
				{Name: "source", Type: "pure-token", Token: "SOURCE"},
				{Name: "cursor", Type: "block", Token: "AT", Flags: []string{"multiple"}, Args: []Arg{{Name: "generation", Type: "integer"}, {Name: "offset", Type: "integer"}}},
			}},
		},
		Plan: planPrefixDigest,
	},
}

// snapshotCommands look after snapshot sets beyond what SAVE, BGSAVE and LASTSAVE do.
var snapshotCommands = []*Command{
	{
		Name: "snapshot.prune", Arity: -1,
		Flags: Admin | NoScript | NoMulti | Slow,
		Scope: ScopeNone,
		Group: "server", Since: "1.0.0",
		Summary:    "Removes the snapshot sets that need not stay, and tells of each set whether it stays and why.",
		Complexity: "O(N) with N being the number of snapshot sets.",
		Categories: "admin slow dangerous",
		Doc: []Arg{
			{Name: "sets", Type: "integer", Token: "KEEP", Flags: []string{"optional"}},
			{Name: "dry-run", Type: "pure-token", Token: "DRYRUN", Flags: []string{"optional"}},
		},
	},
}

// feedCommands read the change log.
var feedCommands = []*Command{
	{
		Name: "feed.shards", Arity: 1,
		Flags: ReadOnly | Fast,
		Scope: ScopeNone,
		Group: "feed", Since: "1.0.0",
		Summary:    "Returns the number of shards, each with a change feed of its own.",
		Complexity: "O(1)",
		Categories: "read fast",
	},
	{
		Name: "feed.tail", Arity: 2,
		Flags: ReadOnly | Fast,
		Scope: ScopeNone,
		Group: "feed", Since: "1.0.0",
		Summary:    "Returns the cursor where a fresh consumer of a shard's feed starts.",
		Complexity: "O(1)",
		Categories: "read fast",
		Doc:        []Arg{{Name: "shard", Type: "integer"}},
	},
	{
		Name: "feed.read", Arity: -4,
		Flags: ReadOnly | Blocking | Slow,
		Scope: ScopeNone,
		Group: "feed", Since: "1.0.0",
		Summary:    "Returns frames of a shard's feed from a cursor on, and the cursor to go on from.",
		Complexity: "O(N) with N being the frames read.",
		Categories: "read slow blocking",
		Doc: []Arg{
			{Name: "shard", Type: "integer"},
			{Name: "generation", Type: "integer"},
			{Name: "offset", Type: "integer"},
			{Name: "count", Type: "integer", Token: "COUNT", Flags: []string{"optional"}},
			{Name: "prefix", Type: "string", Token: "PREFIX", Flags: []string{"optional", "multiple", "multiple_token"}},
			{Name: "milliseconds", Type: "integer", Token: "BLOCK", Flags: []string{"optional"}},
			{Name: "withmeta", Type: "pure-token", Token: "WITHMETA", Flags: []string{"optional"}},
			{Name: "lineage", Type: "pure-token", Token: "LINEAGE", Flags: []string{"optional"}},
		},
	},
	{
		Name: "feed.scan", Arity: -3,
		Flags: ReadOnly | Slow,
		Scope: ScopeAll, // inside a transaction; alone it locks one shard for as long as freezing takes
		Group: "feed", Since: "1.0.0",
		Summary:    "Returns keys of a shard in key order as frames that rebuild them, the cursor at which they are so, and the key to go on with.",
		Complexity: "O(N+log(M)) with N being the size of the keys returned and M the keys of the shard.",
		Categories: "read slow",
		Doc: []Arg{
			{Name: "shard", Type: "integer"},
			{Name: "start", Type: "string"},
			{Name: "count", Type: "integer", Token: "COUNT", Flags: []string{"optional"}},
			{Name: "prefix", Type: "string", Token: "PREFIX", Flags: []string{"optional", "multiple", "multiple_token"}},
		},
	},
	{
		Name: "feed.info", Arity: -1,
		Flags: ReadOnly,
		Scope: ScopeNone,
		Group: "feed", Since: "1.0.0",
		Summary:    "Returns what the log of a shard, or of every shard, holds and its lineage of generations.",
		Complexity: "O(N) with N being the generations shown.",
		Categories: "read slow",
		Doc:        []Arg{{Name: "shard", Type: "integer", Flags: []string{"optional"}}},
	},
}
