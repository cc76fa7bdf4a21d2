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

// migrateDoc are the arguments of MIGRATE.
var migrateDoc = []Arg{
	{Name: "host", Type: "string"},
	{Name: "port", Type: "integer"},
	{Name: "key-selector", Type: "oneof", Args: []Arg{
		{Name: "key", Type: "key"},
		{Name: "empty-string", Type: "pure-token", Token: ""},
	}},
	{Name: "destination-db", Type: "integer"},
	{Name: "timeout", Type: "integer"},
	{Name: "copy", Type: "pure-token", Token: "COPY", Since: "3.0.0", Flags: []string{"optional"}},
	{Name: "replace", Type: "pure-token", Token: "REPLACE", Since: "3.0.0", Flags: []string{"optional"}},
	{Name: "authentication", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
		{Name: "auth", Display: "password", Type: "string", Token: "AUTH", Since: "4.0.7"},
		{Name: "auth2", Type: "block", Token: "AUTH2", Since: "6.0.0", Args: []Arg{
			{Name: "username", Type: "string"},
			{Name: "password", Type: "string"},
		}},
	}},
	{Name: "keys", Display: "key", Type: "key", Token: "KEYS", KeySpecIndex: 1, Since: "3.0.6", Flags: []string{"optional", "multiple"}},
}

// migrateKeys finds the keys of MIGRATE: the third argument, or those behind KEYS if it is empty.
func migrateKeys(args [][]byte, pos []int) ([]int, bool) {
	for i := 6; i < len(args); i++ {
		switch {
		case isWord(args[i], "auth"):
			i++
		case isWord(args[i], "auth2"):
			i += 2
		case isWord(args[i], "keys") && len(args[3]) == 0:
			for k := i + 1; k < len(args); k++ {
				pos = append(pos, k)
			}
			return pos, true
		}
	}
	return append(pos, 3), true
}

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
		Name: "migrate", Arity: -6,
		Flags: Write | MovableKeys,
		Scope: ScopeNone, // its server talks to another one without a lock held
		Keys:  migrateKeys, FirstKey: 3, LastKey: 3, Step: 1,
		Group: "generic", Since: "2.6.0",
		Summary:    "Atomically transfers a key from one Redis instance to another.",
		Complexity: "This command actually executes a DUMP+DEL in the source instance, and a RESTORE in the target instance. See the pages of these commands for time complexity. Also an O(N) data transfer between the two instances is performed.",
		Categories: "keyspace write slow dangerous",
		Tips:       []string{"nondeterministic_output"},
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "access", "delete"}, BeginIndex: 3, Step: 1},
			{Flags: []string{"RW", "access", "delete", "incomplete"}, Keyword: "KEYS", StartFrom: -2, LastKey: -1, Step: 1},
		},
		History: [][2]string{
			{"3.0.0", "Added the `COPY` and `REPLACE` options."},
			{"3.0.6", "Added the `KEYS` option."},
			{"4.0.7", "Added the `AUTH` option."},
			{"6.0.0", "Added the `AUTH2` option."},
		},
		Doc:         migrateDoc,
		Effects:     "DEL key... of those that were moved; none with COPY",
		Differences: "The keys are sent without a lock held, sent again if they change meanwhile, and deleted (a `DEL` frame) when they have not. Not inside MULTI. Connections are not kept.",
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
