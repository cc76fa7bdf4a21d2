package command

// memoryCommands are the subcommands of MEMORY that concern the whole server.
var memoryCommands = []*Command{
	{
		Name: "memory|doctor", Arity: 2,
		Scope: ScopeNone,
		Group: "server", Since: "4.0.0",
		Summary:    "Outputs a memory problems report.",
		Complexity: "O(1)",
		Categories: "slow",
		Tips:       []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"},
	},
	{
		Name: "memory|help", Arity: 2,
		Flags: Loading | Stale,
		Scope: ScopeNone,
		Group: "server", Since: "4.0.0",
		Summary:    "Returns helpful text about the different subcommands.",
		Complexity: "O(1)",
		Categories: "slow",
	},
	{
		Name: "memory|malloc-stats", Arity: 2,
		Scope: ScopeNone,
		Group: "server", Since: "4.0.0",
		Summary:    "Returns the allocator statistics.",
		Complexity: "Depends on how much memory is allocated, could be slow",
		Categories: "slow",
		Tips:       []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"},
	},
	{
		Name: "memory|purge", Arity: 2,
		Scope: ScopeNone,
		Group: "server", Since: "4.0.0",
		Summary:    "Asks the allocator to release memory.",
		Complexity: "Depends on how much memory is allocated, could be slow",
		Categories: "slow",
		Tips:       []string{"request_policy:all_shards", "response_policy:all_succeeded"},
	},
	{
		Name: "memory|stats", Arity: 2,
		Scope: ScopeNone,
		Group: "server", Since: "4.0.0",
		Summary:    "Returns details about memory usage.",
		Complexity: "O(1)",
		Categories: "slow",
		Tips:       []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"},
	},
}
