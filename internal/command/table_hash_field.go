package command

// hashFieldCommands are the commands of Redis 7.4 and 8.0 on deadlines of hash fields.
var hashFieldCommands = []*Command{
	{
		Name: "hexpire", Arity: -6,
		Flags:    Write | DenyOOM | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "hash", Since: "7.4.0",
		Summary:    "Set expiry for hash field using relative time to expire (seconds)",
		Complexity: "O(N) where N is the number of specified fields",
		Categories: "write hash fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "update"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "seconds", Type: "integer"},
			{Name: "condition", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
				{Name: "nx", Type: "pure-token", Token: "NX"},
				{Name: "xx", Type: "pure-token", Token: "XX"},
				{Name: "gt", Type: "pure-token", Token: "GT"},
				{Name: "lt", Type: "pure-token", Token: "LT"},
			}},
			{Name: "fields", Type: "block", Token: "FIELDS", Args: []Arg{
				{Name: "numfields", Type: "integer"},
				{Name: "field", Type: "string", Flags: []string{"multiple"}},
			}},
		},
		Plan:    planHExpire,
		Effects: "HPEXPIREAT key ms FIELDS n field...; HDEL key field... for a time in the past",
	},
	{
		Name: "hpexpire", Arity: -6,
		Flags:    Write | DenyOOM | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "hash", Since: "7.4.0",
		Summary:    "Set expiry for hash field using relative time to expire (milliseconds)",
		Complexity: "O(N) where N is the number of specified fields",
		Categories: "write hash fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "update"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "milliseconds", Type: "integer"},
			{Name: "condition", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
				{Name: "nx", Type: "pure-token", Token: "NX"},
				{Name: "xx", Type: "pure-token", Token: "XX"},
				{Name: "gt", Type: "pure-token", Token: "GT"},
				{Name: "lt", Type: "pure-token", Token: "LT"},
			}},
			{Name: "fields", Type: "block", Token: "FIELDS", Args: []Arg{
				{Name: "numfields", Type: "integer"},
				{Name: "field", Type: "string", Flags: []string{"multiple"}},
			}},
		},
		Plan:    planHPExpire,
		Effects: "HPEXPIREAT key ms FIELDS n field...; HDEL key field... for a time in the past",
	},
	{
		Name: "hexpireat", Arity: -6,
		Flags:    Write | DenyOOM | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "hash", Since: "7.4.0",
		Summary:    "Set expiry for hash field using an absolute Unix timestamp (seconds)",
		Complexity: "O(N) where N is the number of specified fields",
		Categories: "write hash fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "update"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "unix-time-seconds", Type: "unix-time"},
			{Name: "condition", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
				{Name: "nx", Type: "pure-token", Token: "NX"},
				{Name: "xx", Type: "pure-token", Token: "XX"},
				{Name: "gt", Type: "pure-token", Token: "GT"},
				{Name: "lt", Type: "pure-token", Token: "LT"},
			}},
			{Name: "fields", Type: "block", Token: "FIELDS", Args: []Arg{
				{Name: "numfields", Type: "integer"},
				{Name: "field", Type: "string", Flags: []string{"multiple"}},
			}},
		},
		Plan:    planHExpireAt,
		Effects: "HPEXPIREAT key ms FIELDS n field...; HDEL key field... for a time in the past",
	},
	{
		Name: "hpexpireat", Arity: -6,
		Flags:    Write | DenyOOM | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "hash", Since: "7.4.0",
		Summary:    "Set expiry for hash field using an absolute Unix timestamp (milliseconds)",
		Complexity: "O(N) where N is the number of specified fields",
		Categories: "write hash fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "update"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "unix-time-milliseconds", Type: "unix-time"},
			{Name: "condition", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
				{Name: "nx", Type: "pure-token", Token: "NX"},
				{Name: "xx", Type: "pure-token", Token: "XX"},
				{Name: "gt", Type: "pure-token", Token: "GT"},
				{Name: "lt", Type: "pure-token", Token: "LT"},
			}},
			{Name: "fields", Type: "block", Token: "FIELDS", Args: []Arg{
				{Name: "numfields", Type: "integer"},
				{Name: "field", Type: "string", Flags: []string{"multiple"}},
			}},
		},
		Plan:    planHPExpireAt,
		Effects: "HPEXPIREAT key ms FIELDS n field...; HDEL key field... for a time in the past",
	},
	{
		Name: "httl", Arity: -5,
		Flags:    ReadOnly | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "hash", Since: "7.4.0",
		Summary:    "Returns the TTL in seconds of a hash field.",
		Complexity: "O(N) where N is the number of specified fields",
		Categories: "read hash fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "fields", Type: "block", Token: "FIELDS", Args: []Arg{
				{Name: "numfields", Type: "integer"},
				{Name: "field", Type: "string", Flags: []string{"multiple"}},
			}},
		},
		Plan: planHTTL,
	},
	{
		Name: "hpttl", Arity: -5,
		Flags:    ReadOnly | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "hash", Since: "7.4.0",
		Summary:    "Returns the TTL in milliseconds of a hash field.",
		Complexity: "O(N) where N is the number of specified fields",
		Categories: "read hash fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "fields", Type: "block", Token: "FIELDS", Args: []Arg{
				{Name: "numfields", Type: "integer"},
				{Name: "field", Type: "string", Flags: []string{"multiple"}},
			}},
		},
		Plan: planHPTTL,
	},
	{
		Name: "hexpiretime", Arity: -5,
		Flags:    ReadOnly | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "hash", Since: "7.4.0",
		Summary:    "Returns the expiration time of a hash field as a Unix timestamp, in seconds.",
		Complexity: "O(N) where N is the number of specified fields",
		Categories: "read hash fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "fields", Type: "block", Token: "FIELDS", Args: []Arg{
				{Name: "numfields", Type: "integer"},
				{Name: "field", Type: "string", Flags: []string{"multiple"}},
			}},
		},
		Plan: planHExpireTime,
	},
	{
		Name: "hpexpiretime", Arity: -5,
		Flags:    ReadOnly | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "hash", Since: "7.4.0",
		Summary:    "Returns the expiration time of a hash field as a Unix timestamp, in msec.",
		Complexity: "O(N) where N is the number of specified fields",
		Categories: "read hash fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "fields", Type: "block", Token: "FIELDS", Args: []Arg{
				{Name: "numfields", Type: "integer"},
				{Name: "field", Type: "string", Flags: []string{"multiple"}},
			}},
		},
		Plan: planHPExpireTime,
	},
	{
		Name: "hpersist", Arity: -5,
		Flags:    Write | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "hash", Since: "7.4.0",
		Summary:    "Removes the expiration time for each specified field",
		Complexity: "O(N) where N is the number of specified fields",
		Categories: "write hash fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "update"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "fields", Type: "block", Token: "FIELDS", Args: []Arg{
				{Name: "numfields", Type: "integer"},
				{Name: "field", Type: "string", Flags: []string{"multiple"}},
			}},
		},
		Plan:    planHPersist,
		Effects: "HPERSIST key FIELDS n field...",
	},
	{
		Name: "hgetex", Arity: -5,
		Flags:    Write | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "hash", Since: "8.0.0",
		Summary:    "Get the value of one or more fields of a given hash key, and optionally set their expiration.",
		Complexity: "O(N) where N is the number of specified fields",
		Categories: "write hash fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "access", "update"}, BeginIndex: 1, Step: 1, Notes: "RW and UPDATE because it changes the TTL"},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "expiration", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
				{Name: "seconds", Type: "integer", Token: "EX"},
				{Name: "milliseconds", Type: "integer", Token: "PX"},
				{Name: "unix-time-seconds", Type: "unix-time", Token: "EXAT"},
				{Name: "unix-time-milliseconds", Type: "unix-time", Token: "PXAT"},
				{Name: "persist", Type: "pure-token", Token: "PERSIST"},
			}},
			{Name: "fields", Type: "block", Token: "FIELDS", Args: []Arg{
				{Name: "numfields", Type: "integer"},
				{Name: "field", Type: "string", Flags: []string{"multiple"}},
			}},
		},
		Plan:    planHGetEx,
		Effects: "HPEXPIREAT key ms FIELDS n field..., or HPERSIST key FIELDS n field...; HDEL key field... for a time in the past",
	},
	{
		Name: "hsetex", Arity: -6,
		Flags:    Write | DenyOOM | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "hash", Since: "8.0.0",
		Summary:    "Set the value of one or more fields of a given hash key, and optionally set their expiration.",
		Complexity: "O(N) where N is the number of fields being set.",
		Categories: "write hash fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "update"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "condition", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
				{Name: "fnx", Type: "pure-token", Token: "FNX"},
				{Name: "fxx", Type: "pure-token", Token: "FXX"},
			}},
			{Name: "expiration", Type: "oneof", Flags: []string{"optional"}, Args: []Arg{
				{Name: "seconds", Type: "integer", Token: "EX"},
				{Name: "milliseconds", Type: "integer", Token: "PX"},
				{Name: "unix-time-seconds", Type: "unix-time", Token: "EXAT"},
				{Name: "unix-time-milliseconds", Type: "unix-time", Token: "PXAT"},
				{Name: "keepttl", Type: "pure-token", Token: "KEEPTTL"},
			}},
			{Name: "fields", Type: "block", Token: "FIELDS", Args: []Arg{
				{Name: "numfields", Type: "integer"},
				{Name: "data", Type: "block", Flags: []string{"multiple"}, Args: []Arg{
					{Name: "field", Type: "string"},
					{Name: "value", Type: "string"},
				}},
			}},
		},
		Plan:    planHSetEx,
		Effects: "HSET key field value..., and HPEXPIREAT key ms FIELDS n field...; HDEL key field... for a time in the past",
	},
	{
		Name: "hgetdel", Arity: -5,
		Flags:    Write | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "hash", Since: "8.0.0",
		Summary:    "Returns the value of a field and deletes it from the hash.",
		Complexity: "O(N) where N is the number of specified fields",
		Categories: "write hash fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "access", "delete"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "fields", Type: "block", Token: "FIELDS", Args: []Arg{
				{Name: "numfields", Type: "integer"},
				{Name: "field", Type: "string", Flags: []string{"multiple"}},
			}},
		},
		Plan:    planHGetDel,
		Effects: "HDEL key field...",
	},
}
