package command

// scriptingCommands are the rows of the group "scripting". A table row says everything about its command, so
// this file is as long as the facts are.
var scriptingCommands = []*Command{
	{
		Name: "function", Arity: -2,
		Scope: ScopeNone,
		Group: "scripting", Since: "7.0.0",
		Summary:    "A container for function commands.",
		Complexity: "Depends on subcommand.",
		Categories: "slow",
		Sub: []*Command{
			{
				Name: "function|flush", Arity: -2,
				Flags: Write | NoScript,
				Scope: ScopeNone,
				Group: "scripting", Since: "7.0.0",
				Summary:    "Deletes all libraries and functions.",
				Complexity: "O(N) where N is the number of functions deleted",
				Categories: "write slow scripting",
				Tips:       []string{"request_policy:all_shards", "response_policy:all_succeeded"},
				Doc: []Arg{
					{Name: "flush-type", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
						{Name: "async", Type: "pure-token", Token: "ASYNC"},
						{Name: "sync", Type: "pure-token", Token: "SYNC"},
					}},
				},
			},
		},
	},
}
