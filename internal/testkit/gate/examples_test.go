package gate

// examples has, for every write command of the table, scripts that end with that command. Each line of a
// script is one command; "now+N" is the clock plus N ms. The gate fails when a write command is missing.
var examples = map[string][][]string{
	"set": {
		{"SET a 1"},
		{"SET a 1", "SET a 2 EX 100"},
		{"SET a 1 PX 5", "SET a 2 KEEPTTL"},
		{"SET a 1 EX 9", "SET a 2"},
		{"SET a 1 NX", "SET a 2 NX"},
		{"SET a 1 XX"},
		{"SET a 1 PXAT now+500 GET"},
		{"SET a 1 PXAT 5"},
		{`SET a ""`},
	},
	"setnx":       {{"SETNX a 1"}, {"SET a 1", "SETNX a 2"}},
	"setex":       {{"SETEX a 100 v"}},
	"psetex":      {{"PSETEX a 100 v"}},
	"getset":      {{"GETSET a 1"}, {"SET a 1 EX 50", "GETSET a 2"}},
	"getdel":      {{"GETDEL a"}, {"SET a 1", "GETDEL a"}},
	"getex":       {{"SET a 1", "GETEX a EX 10"}, {"SET a 1 EX 10", "GETEX a PERSIST"}, {"SET a 1", "GETEX a PXAT 5"}, {"SET a 1", "GETEX a"}},
	"append":      {{"APPEND a x"}, {"SET a 1 EX 9", "APPEND a x"}, {`APPEND a ""`}, {"SET a 1 PX 5", "tick 10", "APPEND a x"}},
	"setrange":    {{"SETRANGE a 3 x"}, {"SET a hello EX 9", "SETRANGE a 1 ipp"}, {`SETRANGE a 5 ""`}},
	"incr":        {{"INCR a"}, {"SET a 41 EX 9", "INCR a"}, {"SET a x", "INCR a"}, {"SET a 41 PX 5", "tick 10", "INCR a"}},
	"decr":        {{"DECR a"}},
	"incrby":      {{"INCRBY a 5"}},
	"decrby":      {{"DECRBY a 5"}},
	"incrbyfloat": {{"INCRBYFLOAT a 1.5"}, {"SET a 10.5 EX 9", "INCRBYFLOAT a 0.1"}},
	"mset":        {{"MSET a 1 b 2 c 3 d 4"}, {"SET a 1 EX 9", "MSET a 2 a 3"}},
	"msetnx":      {{"MSETNX a 1 b 2 c 3"}, {"SET b 1", "MSETNX a 1 b 2"}},
	"del":         {{"DEL a"}, {"MSET a 1 b 2 c 3", "DEL a b nope a"}},
	"unlink":      {{"MSET a 1 b 2 c 3", "UNLINK a c"}},
	"rename":      {{"SET a 1", "RENAME a b"}, {"SET a 1 EX 9", "SET b 2", "RENAME a b"}, {"SET a 1", "RENAME a a"}, {"MSET a 1 c 3", "RENAME a c"}, {"SET a 1", "SET b 2 EX 9", "RENAME a b"}},
	"renamenx":    {{"SET a 1 EX 9", "RENAMENX a b"}, {"MSET a 1 b 2", "RENAMENX a b"}},
	"copy":        {{"SET a 1 EX 9", "COPY a b"}, {"MSET a 1 b 2", "COPY a b"}, {"MSET a 1 b 2", "COPY a b REPLACE"}},
	"move":        {{"SET a 1", "MOVE a 0"}},
	"expire":      {{"SET a 1", "EXPIRE a 100"}, {"SET a 1", "EXPIRE a -1"}, {"EXPIRE a 1"}, {"SET a 1 EX 9", "EXPIRE a 5 GT"}, {"SET a 1 EX 9", "EXPIRE a 50 XX"}},
	"pexpire":     {{"SET a 1", "PEXPIRE a 100"}},
	"expireat":    {{"SET a 1", "EXPIREAT a 99999999999"}, {"SET a 1", "EXPIREAT a 1"}},
	"pexpireat":   {{"SET a 1", "PEXPIREAT a now+7"}, {"SET a 1", "PEXPIREAT a now+0"}},
	"persist":     {{"SET a 1 EX 9", "PERSIST a"}, {"SET a 1", "PERSIST a"}},
	"flushall":    {{"FLUSHALL"}, {"MSET a 1 b 2 c 3", "FLUSHALL"}, {"SET a 1", "FLUSHALL", "SET b 1"}},
	"flushdb":     {{"MSET a 1 b 2", "FLUSHDB", "SET a 3"}},
}

// sequences are scripts over several commands: groups, expiry, flushes between.
var sequences = [][]string{
	{"MULTI ; SET a 1 ; INCR a ; APPEND a x ; DEL b ; MSET c 1 d 2 e 3"},
	{"SET a 1 PX 5", "tick 10", "MULTI ; GET a ; SET b 1 ; INCR a"},
	{"MULTI ; SET a 1 ; FLUSHALL ; SET b 2"},
	{"SET a 1 PX 5", "SET b 1 PX 6", "tick 10", "GET a", "EXISTS b"},
	{"MSET a 1 b 2 c 3 d 4 e 5 f 6", "RENAME a b", "COPY b c REPLACE", "DEL b", "RENAME c a", "EXPIRE a 10", "tick 20000", "SET a 9"},
}
