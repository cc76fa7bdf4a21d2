package command

// restoreDoc are the arguments of RESTORE and of RESTORE-ASKING, restoreHistory their history.
var (
	restoreDoc = []Arg{
		{Name: "key", Type: "key"},
		{Name: "ttl", Type: "integer"},
		{Name: "serialized-value", Type: "string"},
		{Name: "replace", Type: "pure-token", Token: "REPLACE", Since: "3.0.0", Flags: []string{"optional"}},
		{Name: "absttl", Type: "pure-token", Token: "ABSTTL", Since: "5.0.0", Flags: []string{"optional"}},
		{Name: "seconds", Type: "integer", Token: "IDLETIME", Since: "5.0.0", Flags: []string{"optional"}},
		{Name: "frequency", Type: "integer", Token: "FREQ", Since: "5.0.0", Flags: []string{"optional"}},
	}
	restoreHistory = [][2]string{
		{"3.0.0", "Added the `REPLACE` modifier."},
		{"5.0.0", "Added the `ABSTTL` modifier."},
		{"5.0.0", "Added the `IDLETIME` and `FREQ` options."},
	}
)

const (
	restoreComplexity = "O(1) to create the new key and additional O(N*M) to reconstruct the serialized value, where N is the number of Redis objects composing the value and M their average size. For small string values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1). However for sorted set values the complexity is O(N*M*log(N)) because inserting values into sorted sets is O(log(N))."
	restoreEffects    = "DEL key, if it was there; SET key value [PXAT ms], or the effects of COPY for other types"
)

// dumpCommands are the rows about values in the format of RDB files.
var dumpCommands = []*Command{
	{
		Name: "dump", Arity: 2,
		Flags:    ReadOnly,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "generic", Since: "2.6.0",
		Summary:    "Returns a serialized representation of the value stored at a key.",
		Complexity: "O(1) to access the key and additional O(N*M) to serialize it, where N is the number of Redis objects composing the value and M their average size. For small string values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1).",
		Categories: "keyspace read slow",
		Tips:       []string{"nondeterministic_output"},
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, BeginIndex: 1, Step: 1},
		},
		Doc:         []Arg{{Name: "key", Type: "key"}},
		Plan:        planDump,
		Differences: "Values are written in the plain encoding of their type and in version 10 of the format, which servers from Redis 7.0 on read (version 12 for hashes with deadlines of fields).",
	},
	{
		Name: "restore", Arity: -4,
		Flags:    Write | DenyOOM,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "generic", Since: "2.6.0",
		Summary:    "Creates a key from the serialized representation of a value.",
		Complexity: restoreComplexity,
		Categories: "keyspace write slow dangerous",
		KeySpecs: []KeySpec{
			{Flags: []string{"OW", "update"}, BeginIndex: 1, Step: 1},
		},
		History: restoreHistory,
		Doc:     restoreDoc,
		Plan:    planRestore,
		Effects: restoreEffects,
	},
	{
		Name: "restore-asking", Arity: -4,
		Flags:    Write | DenyOOM | Asking,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "server", Since: "3.0.0",
		Summary:    "An internal command for migrating keys in a cluster.",
		Complexity: restoreComplexity,
		Categories: "keyspace write slow dangerous",
		DocFlags:   []string{"syscmd"},
		KeySpecs: []KeySpec{
			{Flags: []string{"OW", "update"}, BeginIndex: 1, Step: 1},
		},
		History: restoreHistory,
		Doc:     restoreDoc,
		Plan:    planRestore,
		Effects: restoreEffects,
	},
}
