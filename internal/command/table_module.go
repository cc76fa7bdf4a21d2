package command

// moduleCommands are the rows of MODULE: kevy loads none, but clients ask which there are.
var moduleCommands = []*Command{
	{
		Name: "module", Arity: -2,
		Scope: ScopeNone,
		Group: "server", Since: "4.0.0",
		Summary:    "A container for module commands.",
		Complexity: "Depends on subcommand.",
		Categories: "slow",
		Sub: []*Command{
			{
				Name: "module|help", Arity: 2,
				Flags: Loading | Stale,
				Scope: ScopeNone,
				Group: "server", Since: "5.0.0",
				Summary:    "Returns helpful text about the different subcommands.",
				Complexity: "O(1)",
				Categories: "slow",
			},
			{
				Name: "module|list", Arity: 2,
				Flags: Admin | NoScript,
				Scope: ScopeNone,
				Group: "server", Since: "4.0.0",
				Summary:     "Returns all loaded modules.",
				Complexity:  "O(N) where N is the number of loaded modules.",
				Categories:  "admin slow dangerous",
				Tips:        []string{"nondeterministic_output_order"},
				Differences: "Always empty: kevy has no modules.",
			},
			{
				Name: "module|load", Arity: -3,
				Flags: Admin | NoScript | NoAsyncLoading | Protected,
				Scope: ScopeNone,
				Group: "server", Since: "4.0.0",
				Summary:    "Loads a module.",
				Complexity: "O(1)",
				Categories: "admin slow dangerous",
				Doc: []Arg{
					{Name: "path", Type: "string"},
					{Name: "arg", Type: "string", Flags: []string{"optional", "multiple"}},
				},
				Differences: "Always refused, as Redis does with `enable-module-command no`.",
			},
			{
				Name: "module|loadex", Arity: -3,
				Flags: Admin | NoScript | NoAsyncLoading | Protected,
				Scope: ScopeNone,
				Group: "server", Since: "7.0.0",
				Summary:    "Loads a module using extended parameters.",
				Complexity: "O(1)",
				Categories: "admin slow dangerous",
				Doc: []Arg{
					{Name: "path", Type: "string"},
					{Name: "configs", Type: "block", Token: "CONFIG", Flags: []string{"optional", "multiple", "multiple_token"}, Args: []Arg{
						{Name: "name", Type: "string"},
						{Name: "value", Type: "string"},
					}},
					{Name: "args", Type: "string", Token: "ARGS", Flags: []string{"optional", "multiple"}},
				},
				Differences: "Always refused, as MODULE LOAD.",
			},
			{
				Name: "module|unload", Arity: 3,
				Flags: Admin | NoScript | NoAsyncLoading | Protected,
				Scope: ScopeNone,
				Group: "server", Since: "4.0.0",
				Summary:    "Unloads a module.",
				Complexity: "O(1)",
				Categories: "admin slow dangerous",
				Doc: []Arg{
					{Name: "name", Type: "string"},
				},
				Differences: "Always refused, as MODULE LOAD.",
			},
		},
	},
}
