package command

// streamCommands are the rows of the group "stream" but for consumer groups.
var streamCommands = []*Command{
	{
		Name: "xadd", Arity: -5,
		Flags:    Write | DenyOOM | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "stream", Since: "5.0.0",
		Summary:    "Appends a new message to a stream. Creates the key if it doesn't exist.",
		Complexity: "O(1) when adding a new entry, O(N) when trimming where N being the number of entries evicted.",
		Categories: "write stream fast",
		Tips:       []string{"nondeterministic_output"},
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "update"}, BeginIndex: 1, Step: 1, Notes: "UPDATE instead of INSERT because of the optional trimming feature"},
		},
		History: [][2]string{
			{"6.2.0", "Added the `NOMKSTREAM` option, `MINID` trimming strategy and the `LIMIT` option."},
			{"7.0.0", "Added support for the `<ms>-*` explicit ID form."},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "nomkstream", Type: "pure-token", Token: "NOMKSTREAM", Since: "6.2.0", Flags: []string{"optional"}},
			{Name: "trim", Type: "block", Flags: []string{"optional"}, Args: []Arg{
				{Name: "strategy", Type: "oneof", Args: []Arg{
					{Name: "maxlen", Type: "pure-token", Token: "MAXLEN"},
					{Name: "minid", Type: "pure-token", Token: "MINID", Since: "6.2.0"},
				}},
				{Name: "operator", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
					{Name: "equal", Type: "pure-token", Token: "="},
					{Name: "approximately", Type: "pure-token", Token: "~"},
				}},
				{Name: "threshold", Type: "string"},
				{Name: "count", Type: "integer", Token: "LIMIT", Since: "6.2.0", Flags: []string{"optional"}},
			}},
			{Name: "id-selector", Type: "oneof", Args: []Arg{
				{Name: "auto-id", Type: "pure-token", Token: "*"},
				{Name: "id", Type: "string"},
			}},
			{Name: "data", Type: "block", Flags: []string{"multiple"}, Args: []Arg{
				{Name: "field", Type: "string"},
				{Name: "value", Type: "string"},
			}},
		},
		Plan:        planXAdd,
		Effects:     "XADD key id field value..., and XTRIM key MINID = id if entries go",
		Differences: "Nodes for ~ have at most 100 entries, and are counted by entries alone.",
	},
	{
		Name: "xlen", Arity: 2,
		Flags:    ReadOnly | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "stream", Since: "5.0.0",
		Summary:    "Return the number of messages in a stream.",
		Complexity: "O(1)",
		Categories: "read stream fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
		},
		Plan: planXLen,
	},
	{
		Name: "xrange", Arity: -4,
		Flags:    ReadOnly,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "stream", Since: "5.0.0",
		Summary:    "Returns the messages from a stream within a range of IDs.",
		Complexity: "O(N) with N being the number of elements being returned. If N is constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1).",
		Categories: "read stream slow",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, BeginIndex: 1, Step: 1},
		},
		History: [][2]string{
			{"6.2.0", "Added exclusive ranges."},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "start", Type: "string"},
			{Name: "end", Type: "string"},
			{Name: "count", Type: "integer", Token: "COUNT", Flags: []string{"optional"}},
		},
		Plan: planXRange,
	},
	{
		Name: "xrevrange", Arity: -4,
		Flags:    ReadOnly,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "stream", Since: "5.0.0",
		Summary:    "Returns the messages from a stream within a range of IDs in reverse order.",
		Complexity: "O(N) with N being the number of elements returned. If N is constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1).",
		Categories: "read stream slow",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, BeginIndex: 1, Step: 1},
		},
		History: [][2]string{
			{"6.2.0", "Added exclusive ranges."},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "end", Type: "string"},
			{Name: "start", Type: "string"},
			{Name: "count", Type: "integer", Token: "COUNT", Flags: []string{"optional"}},
		},
		Plan: planXRevRange,
	},
	{
		Name: "xread", Arity: -4,
		Flags: Blocking | ReadOnly | MovableKeys,
		Group: "stream", Since: "5.0.0",
		Summary:    "Returns messages from multiple streams with IDs greater than the ones requested. Blocks until a message is available otherwise.",
		Categories: "read stream slow blocking",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, Keyword: "STREAMS", StartFrom: 1, LastKey: -1, Step: 1, Limit: 2},
		},
		Doc: []Arg{
			{Name: "count", Type: "integer", Token: "COUNT", Flags: []string{"optional"}},
			{Name: "milliseconds", Type: "integer", Token: "BLOCK", Flags: []string{"optional"}},
			{Name: "streams", Type: "block", Token: "STREAMS", Args: []Arg{
				{Name: "key", Type: "key", Flags: []string{"multiple"}},
				{Name: "id", Type: "string", Flags: []string{"multiple"}},
			}},
		},
		Keys: streamKeys,
		Plan: planXRead,
	},
	{
		Name: "xdel", Arity: -3,
		Flags:    Write | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "stream", Since: "5.0.0",
		Summary:    "Returns the number of messages after removing them from a stream.",
		Complexity: "O(1) for each single item to delete in the stream, regardless of the stream size.",
		Categories: "write stream fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "delete"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "id", Type: "string", Flags: []string{"multiple"}},
		},
		Plan:    planXDel,
		Effects: "XDEL key id...",
	},
	{
		Name: "xtrim", Arity: -4,
		Flags:    Write,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "stream", Since: "5.0.0",
		Summary:    "Deletes messages from the beginning of a stream.",
		Complexity: "O(N), with N being the number of evicted entries. Constant times are very small however, since entries are organized in macro nodes containing multiple entries that can be released with a single deallocation.",
		Categories: "write stream slow",
		Tips:       []string{"nondeterministic_output"},
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "delete"}, BeginIndex: 1, Step: 1},
		},
		History: [][2]string{
			{"6.2.0", "Added the `MINID` trimming strategy and the `LIMIT` option."},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "trim", Type: "block", Args: []Arg{
				{Name: "strategy", Type: "oneof", Args: []Arg{
					{Name: "maxlen", Type: "pure-token", Token: "MAXLEN"},
					{Name: "minid", Type: "pure-token", Token: "MINID", Since: "6.2.0"},
				}},
				{Name: "operator", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
					{Name: "equal", Type: "pure-token", Token: "="},
					{Name: "approximately", Type: "pure-token", Token: "~"},
				}},
				{Name: "threshold", Type: "string"},
				{Name: "count", Type: "integer", Token: "LIMIT", Since: "6.2.0", Flags: []string{"optional"}},
			}},
		},
		Plan:        planXTrim,
		Effects:     "XTRIM key MINID = id",
		Differences: "Nodes for ~ have at most 100 entries, and are counted by entries alone.",
	},
	{
		Name: "xsetid", Arity: -3,
		Flags:    Write | DenyOOM | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "stream", Since: "5.0.0",
		Summary:    "An internal command for replicating stream values.",
		Complexity: "O(1)",
		Categories: "write stream fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "update"}, BeginIndex: 1, Step: 1},
		},
		History: [][2]string{
			{"7.0.0", "Added the `entries_added` and `max_deleted_entry_id` arguments."},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "last-id", Type: "string"},
			{Name: "entries-added", Type: "integer", Token: "ENTRIESADDED", Since: "7.0.0", Flags: []string{"optional"}},
			{Name: "max-deleted-id", Type: "string", Token: "MAXDELETEDID", Since: "7.0.0", Flags: []string{"optional"}},
		},
		Plan:    planXSetID,
		Effects: "XSETID key id ENTRIESADDED n MAXDELETEDID id",
	},
	{
		Name: "xinfo", Arity: -2,
		Scope: ScopeNone,
		Group: "stream", Since: "5.0.0",
		Summary:    "A container for stream introspection commands.",
		Complexity: "Depends on subcommand.",
		Categories: "slow",
		Sub: []*Command{
			{
				Name: "xinfo|consumers", Arity: 4,
				Flags:    ReadOnly,
				FirstKey: 2, LastKey: 2, Step: 1,
				Group: "stream", Since: "5.0.0",
				Summary:    "Returns a list of the consumers in a consumer group.",
				Complexity: "O(1)",
				Categories: "read stream slow",
				Tips:       []string{"nondeterministic_output"},
				KeySpecs: []KeySpec{
					{Flags: []string{"RO", "access"}, BeginIndex: 2, Step: 1},
				},
				History: [][2]string{
					{"7.2.0", "Added the `inactive` field."},
				},
				Doc: []Arg{
					{Name: "key", Type: "key"},
					{Name: "group", Type: "string"},
				},
				Plan:        planXInfoConsumers,
				Differences: "idle and inactive count from the start of the server for what happened before it.",
			},
			{
				Name: "xinfo|groups", Arity: 3,
				Flags:    ReadOnly,
				FirstKey: 2, LastKey: 2, Step: 1,
				Group: "stream", Since: "5.0.0",
				Summary:    "Returns a list of the consumer groups of a stream.",
				Complexity: "O(1)",
				Categories: "read stream slow",
				KeySpecs: []KeySpec{
					{Flags: []string{"RO", "access"}, BeginIndex: 2, Step: 1},
				},
				History: [][2]string{
					{"7.0.0", "Added the `entries-read` and `lag` fields"},
				},
				Doc: []Arg{
					{Name: "key", Type: "key"},
				},
				Plan: planXInfoGroups,
			},
			{
				Name: "xinfo|help", Arity: 2,
				Flags: Loading | Stale,
				Scope: ScopeNone,
				Group: "stream", Since: "5.0.0",
				Summary:    "Returns helpful text about the different subcommands.",
				Complexity: "O(1)",
				Categories: "stream slow",
				Plan:       planXInfoHelp,
			},
			{
				Name: "xinfo|stream", Arity: -3,
				Flags:    ReadOnly,
				FirstKey: 2, LastKey: 2, Step: 1,
				Group: "stream", Since: "5.0.0",
				Summary:    "Returns information about a stream.",
				Complexity: "O(1)",
				Categories: "read stream slow",
				KeySpecs: []KeySpec{
					{Flags: []string{"RO", "access"}, BeginIndex: 2, Step: 1},
				},
				History: [][2]string{
					{"6.0.0", "Added the `FULL` modifier."},
					{"7.0.0", "Added the `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag` fields"},
					{"7.2.0", "Added the `active-time` field, and changed the meaning of `seen-time`."},
				},
				Doc: []Arg{
					{Name: "key", Type: "key"},
					{Name: "full-block", Type: "block", Flags: []string{"optional"}, Args: []Arg{
						{Name: "full", Type: "pure-token", Token: "FULL"},
						{Name: "count", Type: "integer", Token: "COUNT", Flags: []string{"optional"}},
					}},
				},
				Plan:        planXInfoStream,
				Differences: "Node counts are those of kevy; seen-time is not kept over a restart.",
			},
		},
	},
}
