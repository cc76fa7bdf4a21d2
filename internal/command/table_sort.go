package command

// sortCommands are SORT and SORT_RO, of the group "generic". Any key may be one that their elements name.
var sortCommands = []*Command{
	{
		Name: "sort", Arity: -2,
		Flags:    Write | DenyOOM | MovableKeys | Slow,
		FirstKey: 1, LastKey: 1, Step: 1,
		Scope: ScopeAll,
		Group: "generic", Since: "1.0.0",
		Summary:    "Sorts the elements in a list, a set, or a sorted set, optionally storing the result.",
		Complexity: "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number of returned elements. When the elements are not sorted, complexity is O(N).",
		Categories: "write set sortedset list slow dangerous",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, BeginIndex: 1, Step: 1},
			{Flags: []string{"RO", "access"}, Unknown: true, Notes: "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of the key we sort"},
			{Flags: []string{"OW", "update"}, Unknown: true, Keyword: "STORE", StartFrom: 2, Notes: "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere in the argument array"},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "by-pattern", Type: "pattern", KeySpecIndex: 1, Token: "BY", Display: "pattern", Flags: []string{"optional"}},
			{Name: "limit", Type: "block", Token: "LIMIT", Flags: []string{"optional"}, Args: []Arg{
				{Name: "offset", Type: "integer"},
				{Name: "count", Type: "integer"},
			}},
			{Name: "get-pattern", Type: "pattern", KeySpecIndex: 1, Token: "GET", Display: "pattern", Flags: []string{"optional", "multiple", "multiple_token"}},
			{Name: "order", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
				{Name: "asc", Type: "pure-token", Token: "ASC"},
				{Name: "desc", Type: "pure-token", Token: "DESC"},
			}},
			{Name: "sorting", Type: "pure-token", Token: "ALPHA", Flags: []string{"optional"}},
			{Name: "destination", Type: "key", KeySpecIndex: 2, Token: "STORE", Flags: []string{"optional"}},
		},
		Plan:    planSort,
		Keys:    sortKeys,
		Effects: "DEL destination; RPUSH destination element..., with STORE",
	},
	{
		Name: "sort_ro", Arity: -2,
		Flags:    ReadOnly | MovableKeys | Slow,
		FirstKey: 1, LastKey: 1, Step: 1,
		Scope: ScopeAll,
		Group: "generic", Since: "7.0.0",
		Summary:    "Returns the sorted elements of a list, a set, or a sorted set.",
		Complexity: "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number of returned elements. When the elements are not sorted, complexity is O(N).",
		Categories: "read set sortedset list slow dangerous",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, BeginIndex: 1, Step: 1},
			{Flags: []string{"RO", "access"}, Unknown: true, Notes: "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of the key we sort"},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "by-pattern", Type: "pattern", KeySpecIndex: 1, Token: "BY", Display: "pattern", Flags: []string{"optional"}},
			{Name: "limit", Type: "block", Token: "LIMIT", Flags: []string{"optional"}, Args: []Arg{
				{Name: "offset", Type: "integer"},
				{Name: "count", Type: "integer"},
			}},
			{Name: "get-pattern", Type: "pattern", KeySpecIndex: 1, Token: "GET", Display: "pattern", Flags: []string{"optional", "multiple", "multiple_token"}},
			{Name: "order", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
				{Name: "asc", Type: "pure-token", Token: "ASC"},
				{Name: "desc", Type: "pure-token", Token: "DESC"},
			}},
			{Name: "sorting", Type: "pure-token", Token: "ALPHA", Flags: []string{"optional"}},
		},
		Plan: planSortRO,
	},
}
