package command

// zsetBlockingCommands are the rows of the group "sorted-set" that wait for elements.
var zsetBlockingCommands = []*Command{
	{
		Name: "bzpopmin", Arity: -3,
		Flags:    Write | Fast | Blocking,
		FirstKey: 1, LastKey: -2, Step: 1,
		Group: "sorted-set", Since: "5.0.0",
		Summary:    "Removes and returns the member with the lowest score from one or more sorted sets. Blocks until a member is available otherwise. Deletes the sorted set if the last element was popped.",
		Complexity: "O(log(N)) with N being the number of elements in the sorted set.",
		Categories: "write sortedset fast blocking",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "access", "delete"}, BeginIndex: 1, LastKey: -2, Step: 1},
		},
		History: [][2]string{
			{"6.0.0", "`timeout` is interpreted as a double instead of an integer."},
		},
		Doc: []Arg{
			{Name: "key", Type: "key", Flags: []string{"multiple"}},
			{Name: "timeout", Type: "double"},
		},
		Plan:    planBZPopMin,
		Effects: "ZREM key member...; DEL key for many that are all",
	},
	{
		Name: "bzpopmax", Arity: -3,
		Flags:    Write | Fast | Blocking,
		FirstKey: 1, LastKey: -2, Step: 1,
		Group: "sorted-set", Since: "5.0.0",
		Summary:    "Removes and returns the member with the highest score from one or more sorted sets. Blocks until a member available otherwise.  Deletes the sorted set if the last element was popped.",
		Complexity: "O(log(N)) with N being the number of elements in the sorted set.",
		Categories: "write sortedset fast blocking",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "access", "delete"}, BeginIndex: 1, LastKey: -2, Step: 1},
		},
		History: [][2]string{
			{"6.0.0", "`timeout` is interpreted as a double instead of an integer."},
		},
		Doc: []Arg{
			{Name: "key", Type: "key", Flags: []string{"multiple"}},
			{Name: "timeout", Type: "double"},
		},
		Plan:    planBZPopMax,
		Effects: "ZREM key member...; DEL key for many that are all",
	},
	{
		Name: "bzmpop", Arity: -5,
		Flags: Write | Blocking | MovableKeys,
		Group: "sorted-set", Since: "7.0.0",
		Summary:    "Removes and returns a member by score from one or more sorted sets. Blocks until a member is available otherwise. Deletes the sorted set if the last element was popped.",
		Complexity: "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the sorted set, and M being the number of elements popped.",
		Categories: "write sortedset slow blocking",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "access", "delete"}, BeginIndex: 2, NumKeys: true},
		},
		Doc: []Arg{
			{Name: "timeout", Type: "double"},
			{Name: "numkeys", Type: "integer"},
			{Name: "key", Type: "key", Flags: []string{"multiple"}},
			{Name: "where", Type: "oneof", Args: []Arg{
				{Name: "min", Type: "pure-token", Token: "MIN"},
				{Name: "max", Type: "pure-token", Token: "MAX"},
			}},
			{Name: "count", Type: "integer", Token: "COUNT", Flags: []string{"optional"}},
		},
		Plan:    planBZMPop,
		Keys:    numberedKeys(2),
		Effects: "ZREM key member...; DEL key for many that are all",
	},
}
