package command

// hyperloglogCommands are the rows of the group "hyperloglog".
var hyperloglogCommands = []*Command{
	{
		Name: "pfadd", Arity: -2,
		Flags:    Write | DenyOOM | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "hyperloglog", Since: "2.8.9",
		Summary:    "Adds elements to a HyperLogLog key. Creates the key if it doesn't exist.",
		Complexity: "O(1) to add every element.",
		Categories: "write hyperloglog fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "insert"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "element", Type: "string", Flags: []string{"optional", "multiple"}},
		},
		Plan:    planPFAdd,
		Effects: "PFADD key element..., when a register changed; SET key value [PXAT ms] if hll-sparse-max-bytes is not the default",
	},
	{
		Name: "pfcount", Arity: -2,
		Flags:    ReadOnly | MayReplicate,
		FirstKey: 1, LastKey: -1, Step: 1,
		Group: "hyperloglog", Since: "2.8.9",
		Summary:    "Returns the approximated cardinality of the set(s) observed by the HyperLogLog key(s).",
		Complexity: "O(1) with a very small average constant time when called with a single key. O(N) with N being the number of keys, and much bigger constant times, when called with multiple keys.",
		Categories: "read hyperloglog slow",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "access"}, BeginIndex: 1, LastKey: -1, Step: 1, Notes: "RW because it may change the internal representation of the key, and propagate to replicas"},
		},
		Doc: []Arg{
			{Name: "key", Type: "key", Flags: []string{"multiple"}},
		},
		Plan: planPFCount,
	},
	{
		Name: "pfmerge", Arity: -2,
		Flags:    Write | DenyOOM,
		FirstKey: 1, LastKey: -1, Step: 1,
		Group: "hyperloglog", Since: "2.8.9",
		Summary:    "Merges one or more HyperLogLog values into a single key.",
		Complexity: "O(N) to merge N HyperLogLogs, but with high constant times.",
		Categories: "write hyperloglog slow",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "access", "insert"}, BeginIndex: 1, Step: 1},
			{Flags: []string{"RO", "access"}, BeginIndex: 2, LastKey: -1, Step: 1},
		},
		Doc: []Arg{
			{Name: "destkey", Type: "key"},
			{Name: "sourcekey", Type: "key", KeySpecIndex: 1, Flags: []string{"optional", "multiple"}},
		},
		Plan:    planPFMerge,
		Effects: "SET key value [PXAT ms]",
	},
	{
		Name: "pfdebug", Arity: 3,
		Flags:    Write | DenyOOM | Admin,
		FirstKey: 2, LastKey: 2, Step: 1,
		Group: "hyperloglog", Since: "2.8.9",
		Summary:    "Internal commands for debugging HyperLogLog values.",
		Complexity: "N/A",
		Categories: "write hyperloglog admin slow dangerous",
		DocFlags:   []string{"syscmd"},
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "access"}, BeginIndex: 2, Step: 1},
		},
		Doc: []Arg{
			{Name: "subcommand", Type: "string"},
			{Name: "key", Type: "key"},
		},
		Plan:    planPFDebug,
		Effects: "SET key value [PXAT ms], for TODENSE",
	},
	{
		Name: "pfselftest", Arity: 1,
		Flags: Admin,
		Scope: ScopeNone,
		Group: "hyperloglog", Since: "2.8.9",
		Summary:    "An internal command for testing HyperLogLog values.",
		Complexity: "N/A",
		Categories: "hyperloglog admin slow dangerous",
		DocFlags:   []string{"syscmd"},
		KeySpecs:   []KeySpec{},
		Doc:        []Arg{},
		Plan:       planPFSelfTest,
	},
}
