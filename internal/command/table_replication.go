package command

// replicationCommands make a server follow another one, and serve those that follow.
var replicationCommands = []*Command{
	{
		Name: "replicaof", Arity: 3,
		Flags: Admin | NoScript | Stale | NoAsyncLoading,
		Scope: ScopeNone,
		Group: "server", Since: "5.0.0",
		Summary:     "Configures a server as replica of another, or promotes it to a master.",
		Complexity:  "O(1)",
		Categories:  "admin slow dangerous",
		Doc:         replicaofDoc,
		Differences: "the source must be a kevy with as many shards",
	},
	{
		Name: "slaveof", Arity: 3,
		Flags: Admin | NoScript | Stale | NoAsyncLoading,
		Scope: ScopeNone,
		Group: "server", Since: "1.0.0",
		Summary:         "Sets a Redis server as a replica of another, or promotes it to being a master.",
		Complexity:      "O(1)",
		Categories:      "admin slow dangerous",
		DocFlags:        []string{"deprecated"},
		DeprecatedSince: "5.0.0", ReplacedBy: "`REPLICAOF`",
		Doc:         replicaofDoc,
		Differences: "as for REPLICAOF",
	},
	{
		Name: "repl.hello", Arity: 6,
		Flags: Admin | NoScript | NoMulti,
		Scope: ScopeNone,
		Group: "server", Since: "1.0.0",
		Summary:    "An internal command: begins to serve a replica.",
		Complexity: "O(N) with N being the number of generations on record.",
		Categories: "admin slow dangerous",
		Doc: []Arg{
			{Name: "format", Type: "integer"}, {Name: "shards", Type: "integer"}, {Name: "id", Type: "string"},
			{Name: "port", Type: "integer"}, {Name: "ip", Type: "string"},
		},
		DocFlags: []string{"syscmd"},
	},
	{
		Name: "repl.snapshot", Arity: -1,
		Flags: Admin | NoScript | NoMulti | SkipSlowlog,
		Scope: ScopeNone,
		Group: "server", Since: "1.0.0",
		Summary:    "An internal command: offers a snapshot set, none of those named, to a replica.",
		Complexity: "O(N) with N being the bytes of all keys and values, when a set has to be written.",
		Categories: "admin slow dangerous",
		Doc:        []Arg{{Name: "set", Type: "string", Flags: []string{"optional", "multiple"}}},
		DocFlags:   []string{"syscmd"},
	},
	{
		Name: "repl.fetch", Arity: 4,
		Flags: Admin | NoScript | NoMulti | SkipSlowlog,
		Scope: ScopeNone,
		Group: "server", Since: "1.0.0",
		Summary:    "An internal command: returns a piece of the snapshot set that is offered.",
		Complexity: "O(N) with N being the bytes returned.",
		Categories: "admin slow dangerous",
		Doc:        []Arg{{Name: "shard", Type: "integer"}, {Name: "position", Type: "integer"}, {Name: "bytes", Type: "integer"}},
		DocFlags:   []string{"syscmd"},
	},
	{
		Name: "repl.pull", Arity: -5,
		Flags: Admin | NoScript | NoMulti | SkipSlowlog,
		Scope: ScopeNone,
		Group: "server", Since: "1.0.0",
		Summary:    "An internal command: returns frames as they are in the log, or waits for some.",
		Complexity: "O(N) with N being the bytes returned.",
		Categories: "admin slow dangerous",
		Doc: []Arg{
			{Name: "bytes", Type: "integer"}, {Name: "milliseconds", Type: "integer"},
			{Name: "cursor", Type: "block", Flags: []string{"multiple"}, Args: []Arg{{Name: "generation", Type: "integer"}, {Name: "offset", Type: "integer"}}},
		},
		DocFlags: []string{"syscmd"},
	},
	{
		Name: "repl.ack", Arity: -5,
		Flags: Admin | NoScript | NoMulti | SkipSlowlog | Fast,
		Scope: ScopeNone,
		Group: "server", Since: "1.0.0",
		Summary:    "An internal command: says how far a replica has come.",
		Complexity: "O(1)",
		Categories: "admin fast dangerous",
		Doc: []Arg{
			{Name: "id", Type: "string"},
			{
				Name: "shard", Type: "block", Flags: []string{"multiple"},
				Args: []Arg{{Name: "generation", Type: "integer"}, {Name: "applied", Type: "integer"}, {Name: "durable", Type: "integer"}},
			},
		},
		DocFlags: []string{"syscmd"},
	},
}

var replicaofDoc = []Arg{{
	Name: "args", Type: "oneof",
	Args: []Arg{
		{Name: "host-port", Type: "block", Args: []Arg{{Name: "host", Type: "string"}, {Name: "port", Type: "integer"}}},
		{Name: "no-one", Type: "block", Args: []Arg{{Name: "no", Type: "pure-token", Token: "NO"}, {Name: "one", Type: "pure-token", Token: "ONE"}}},
	},
}}
