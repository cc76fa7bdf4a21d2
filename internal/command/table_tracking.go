package command

// clientTrackingCommands are the subcommands of CLIENT for client-side caching.
var clientTrackingCommands = []*Command{
	{
		Name: "client|caching", Arity: 3,
		Flags: NoScript | Loading | Stale | Sentinel,
		Scope: ScopeNone,
		Group: "connection", Since: "6.0.0",
		Summary:    "Instructs the server whether to track the keys in the next request.",
		Complexity: "O(1)",
		Categories: "slow connection",
		Doc: []Arg{
			{Name: "mode", Type: "oneof", Args: []Arg{
				{Name: "yes", Type: "pure-token", Token: "YES"},
				{Name: "no", Type: "pure-token", Token: "NO"},
			}},
		},
	},
	{
		Name: "client|getredir", Arity: 2,
		Flags: NoScript | Loading | Stale | Sentinel,
		Scope: ScopeNone,
		Group: "connection", Since: "6.0.0",
		Summary:    "Returns the client ID to which the connection's tracking notifications are redirected.",
		Complexity: "O(1)",
		Categories: "slow connection",
	},
	{
		Name: "client|tracking", Arity: -3,
		Flags: NoScript | Loading | Stale | Sentinel,
		Scope: ScopeNone,
		Group: "connection", Since: "6.0.0",
		Summary:    "Controls server-assisted client-side caching for the connection.",
		Complexity: "O(1). Some options may introduce additional complexity.",
		Categories: "slow connection",
		Doc: []Arg{
			{Name: "status", Type: "oneof", Args: []Arg{
				{Name: "on", Type: "pure-token", Token: "ON"},
				{Name: "off", Type: "pure-token", Token: "OFF"},
			}},
			{Name: "client-id", Type: "integer", Token: "REDIRECT", Flags: []string{"optional"}},
			{Name: "prefix", Type: "string", Token: "PREFIX", Flags: []string{"optional", "multiple", "multiple_token"}},
			{Name: "BCAST", Type: "pure-token", Token: "BCAST", Flags: []string{"optional"}},
			{Name: "OPTIN", Type: "pure-token", Token: "OPTIN", Flags: []string{"optional"}},
			{Name: "OPTOUT", Type: "pure-token", Token: "OPTOUT", Flags: []string{"optional"}},
			{Name: "NOLOOP", Type: "pure-token", Token: "NOLOOP", Flags: []string{"optional"}},
		},
	},
	{
		Name: "client|trackinginfo", Arity: 2,
		Flags: NoScript | Loading | Stale | Sentinel,
		Scope: ScopeNone,
		Group: "connection", Since: "6.2.0",
		Summary:    "Returns information about server-assisted client-side caching for the connection.",
		Complexity: "O(1)",
		Categories: "slow connection",
	},
}
