package command

// bitmapCommands are the rows of the group "bitmap".
var bitmapCommands = []*Command{
	{
		Name: "setbit", Arity: 4,
		Flags:    Write | DenyOOM,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "bitmap", Since: "2.2.0",
		Summary:    "Sets or clears the bit at offset of the string value. Creates the key if it doesn't exist.",
		Complexity: "O(1)",
		Categories: "write bitmap slow",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "access", "update"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "offset", Type: "integer"},
			{Name: "value", Type: "integer"},
		},
		Plan:    planSetBit,
		Effects: "SETBIT key offset bit",
	},
	{
		Name: "getbit", Arity: 3,
		Flags:    ReadOnly | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "bitmap", Since: "2.2.0",
		Summary:    "Returns a bit value by offset.",
		Complexity: "O(1)",
		Categories: "read bitmap fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "offset", Type: "integer"},
		},
		Plan: planGetBit,
	},
	{
		Name: "bitcount", Arity: -2,
		Flags:    ReadOnly,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "bitmap", Since: "2.6.0",
		Summary:    "Counts the number of set bits (population counting) in a string.",
		Complexity: "O(N)",
		Categories: "read bitmap slow",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, BeginIndex: 1, Step: 1},
		},
		History: [][2]string{
			{"7.0.0", "Added the `BYTE|BIT` option."},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "range", Type: "block", Flags: []string{"optional"}, Args: []Arg{
				{Name: "start", Type: "integer"},
				{Name: "end", Type: "integer"},
				{Name: "unit", Type: "oneof", Since: "7.0.0", Flags: []string{"optional"}, Args: []Arg{
					{Name: "byte", Type: "pure-token", Token: "BYTE"},
					{Name: "bit", Type: "pure-token", Token: "BIT"},
				}},
			}},
		},
		Plan: planBitCount,
	},
	{
		Name: "bitpos", Arity: -3,
		Flags:    ReadOnly,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "bitmap", Since: "2.8.7",
		Summary:    "Finds the first set (1) or clear (0) bit in a string.",
		Complexity: "O(N)",
		Categories: "read bitmap slow",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, BeginIndex: 1, Step: 1},
		},
		History: [][2]string{
			{"7.0.0", "Added the `BYTE|BIT` option."},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "bit", Type: "integer"},
			{Name: "range", Type: "block", Flags: []string{"optional"}, Args: []Arg{
				{Name: "start", Type: "integer"},
				{Name: "end-unit-block", Type: "block", Flags: []string{"optional"}, Args: []Arg{
					{Name: "end", Type: "integer"},
					{Name: "unit", Type: "oneof", Since: "7.0.0", Flags: []string{"optional"}, Args: []Arg{
						{Name: "byte", Type: "pure-token", Token: "BYTE"},
						{Name: "bit", Type: "pure-token", Token: "BIT"},
					}},
				}},
			}},
		},
		Plan: planBitPos,
	},
	{
		Name: "bitop", Arity: -4,
		Flags:    Write | DenyOOM,
		FirstKey: 2, LastKey: -1, Step: 1,
		Group: "bitmap", Since: "2.6.0",
		Summary:    "Performs bitwise operations on multiple strings, and stores the result.",
		Complexity: "O(N)",
		Categories: "write bitmap slow",
		KeySpecs: []KeySpec{
			{Flags: []string{"OW", "update"}, BeginIndex: 2, Step: 1},
			{Flags: []string{"RO", "access"}, BeginIndex: 3, LastKey: -1, Step: 1},
		},
		Doc: []Arg{
			{Name: "operation", Type: "oneof", Args: []Arg{
				{Name: "and", Type: "pure-token", Token: "AND"},
				{Name: "or", Type: "pure-token", Token: "OR"},
				{Name: "xor", Type: "pure-token", Token: "XOR"},
				{Name: "not", Type: "pure-token", Token: "NOT"},
			}},
			{Name: "destkey", Type: "key"},
			{Name: "key", Type: "key", KeySpecIndex: 1, Flags: []string{"multiple"}},
		},
		Plan:    planBitOp,
		Effects: "SET key value of the result; DEL key for an empty one",
	},
	{
		Name: "bitfield", Arity: -2,
		Flags:    Write | DenyOOM,
		FirstKey: 1, LastKey: 1, Step: 1, KeyFlags: bitfieldKeyFlags,
		Group: "bitmap", Since: "3.2.0",
		Summary:    "Performs arbitrary bitfield integer operations on strings.",
		Complexity: "O(1) for each subcommand specified",
		Categories: "write bitmap slow",
		KeySpecs: []KeySpec{
			{Flags: []string{"RW", "access", "update", "variable_flags"}, BeginIndex: 1, Step: 1, Notes: "This command allows both access and modification of the key"},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "operation", Type: "oneof", Flags: []string{"optional", "multiple"}, Args: []Arg{
				{Name: "get-block", Type: "block", Token: "GET", Args: []Arg{
					{Name: "encoding", Type: "string"},
					{Name: "offset", Type: "integer"},
				}},
				{Name: "write", Type: "block", Args: []Arg{
					{Name: "overflow-block", Type: "oneof", Token: "OVERFLOW", Flags: []string{"optional"}, Args: []Arg{
						{Name: "wrap", Type: "pure-token", Token: "WRAP"},
						{Name: "sat", Type: "pure-token", Token: "SAT"},
						{Name: "fail", Type: "pure-token", Token: "FAIL"},
					}},
					{Name: "write-operation", Type: "oneof", Args: []Arg{
						{Name: "set-block", Type: "block", Token: "SET", Args: []Arg{
							{Name: "encoding", Type: "string"},
							{Name: "offset", Type: "integer"},
							{Name: "value", Type: "integer"},
						}},
						{Name: "incrby-block", Type: "block", Token: "INCRBY", Args: []Arg{
							{Name: "encoding", Type: "string"},
							{Name: "offset", Type: "integer"},
							{Name: "increment", Type: "integer"},
						}},
					}},
				}},
			}},
		},
		Plan:    planBitField,
		Effects: "BITFIELD key SET type offset value..., of what was set",
	},
	{
		Name: "bitfield_ro", Arity: -2,
		Flags:    ReadOnly | Fast,
		FirstKey: 1, LastKey: 1, Step: 1,
		Group: "bitmap", Since: "6.0.0",
		Summary:    "Performs arbitrary read-only bitfield integer operations on strings.",
		Complexity: "O(1) for each subcommand specified",
		Categories: "read bitmap fast",
		KeySpecs: []KeySpec{
			{Flags: []string{"RO", "access"}, BeginIndex: 1, Step: 1},
		},
		Doc: []Arg{
			{Name: "key", Type: "key"},
			{Name: "get-block", Type: "block", Token: "GET", Flags: []string{"optional", "multiple", "multiple_token"}, Args: []Arg{
				{Name: "encoding", Type: "string"},
				{Name: "offset", Type: "integer"},
			}},
		},
		Plan: planBitField,
	},
}
