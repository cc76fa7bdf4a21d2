package command

// transactionCommands are the rows of the group "transaction". A table row says everything about its command, so
// this file is as long as the facts are.
var transactionCommands = []*Command{
	{
		Name: "multi", Arity: 1,
		Flags: NoScript | Loading | Stale | Fast | AllowBusy,
		Scope: ScopeNone,
		Group: "transactions", Since: "1.2.0",
		Summary:    "Starts a transaction.",
		Complexity: "O(1)",
		Categories: "fast transaction",
	},
	{
		Name: "exec", Arity: 1,
		Flags: NoScript | Loading | Stale | SkipSlowlog,
		Scope: ScopeNone,
		Group: "transactions", Since: "1.2.0",
		Summary:    "Executes all commands in a transaction.",
		Complexity: "Depends on commands in the transaction",
		Categories: "slow transaction",
	},
	{
		Name: "discard", Arity: 1,
		Flags: NoScript | Loading | Stale | Fast | AllowBusy,
		Scope: ScopeNone,
		Group: "transactions", Since: "2.0.0",
		Summary:    "Discards a transaction.",
		Complexity: "O(N), when N is the number of queued commands",
		Categories: "fast transaction",
	},
	{
		Name: "watch", Arity: -2,
		Flags:    NoScript | Loading | Stale | Fast | AllowBusy,
		FirstKey: 1, LastKey: -1, Step: 1,
		Scope: ScopeNone,
		Group: "transactions", Since: "2.2.0",
		Summary:    "Monitors changes to keys to determine the execution of a transaction.",
		Complexity: "O(1) for every key.",
		Categories: "fast transaction",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO"}, BeginIndex: 1, LastKey: -1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key", Flags: []string{"multiple"}},
		},
	},
	{
		Name: "unwatch", Arity: 1,
		Flags: NoScript | Loading | Stale | Fast | AllowBusy,
		Scope: ScopeNone,
		Group: "transactions", Since: "2.2.0",
		Summary:    "Forgets about watched keys of a transaction.",
		Complexity: "O(1)",
		Categories: "fast transaction",
	},
}
