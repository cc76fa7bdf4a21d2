package command

// Flags are a command's properties, named and shown as in COMMAND INFO.
type Flags uint64

// The flags of Redis 7.2.
const (
	Write Flags = 1 << iota
	ReadOnly
	DenyOOM
	Admin
	PubSub
	NoScript
	Blocking
	Loading
	Stale
	SkipMonitor
	SkipSlowlog
	Asking
	Fast
	NoAuth
	MayReplicate
	Sentinel
	OnlySentinel
	NoMandatoryKeys
	Protected
	MovableKeys
	AllowBusy
	NoMulti
	NoAsyncLoading
	TouchesArbitraryKeys
	// Slow marks a command whose work grows with more than its arguments (KEYS, FEED.READ,
	// SAVE, ...): an event loop hands it to a goroutine. Not shown.
	Slow
)

// Scope says which shards a data command needs locked while it is planned.
type Scope uint8

// The scopes.
const (
	ScopeKeys Scope = iota // the shards of its keys
	ScopeAll               // every shard
	ScopeNone              // none: not a data command
)

// Command is one row of the table.
type Command struct {
	Name       string // lower-case; subcommands as "client|id"
	Arity      int    // as in COMMAND: negative means at least
	Flags      Flags
	FirstKey   int // position of the first key in the request, 0 if none
	LastKey    int // negative: from the end
	Step       int
	Scope      Scope
	Group      string // COMMAND DOCS group: "string", "generic", ...
	Since      string
	Summary    string
	Complexity string
	Categories string // ACL categories, space-separated, without @
	Tips       []string
	KeySpecs   []KeySpec
	Doc        []Arg // COMMAND DOCS arguments
	History    [][2]string
	DocFlags   []string // COMMAND DOCS: deprecated, syscmd
	// DeprecatedSince and ReplacedBy are set for deprecated commands.
	DeprecatedSince, ReplacedBy string
	// Sub are the subcommands of a container command.
	Sub []*Command

	// Plan is set for data commands: it runs under the shard locks. Commands without it are
	// handled by the server's session (by ID) and touch no keys.
	Plan func(*Ctx)
	// Keys, when set, finds the positions of the keys in the request instead of
	// FirstKey/LastKey/Step; a nil result with ok=false is a syntax error the planner will report.
	Keys func(args [][]byte, pos []int) ([]int, bool)
	// KeyFlags, when set, gives the flags of every key of this request: for commands whose key
	// specification says variable_flags.
	KeyFlags func(args [][]byte) []string
	// Effects names what a write command writes into the log: for docs/commands.md.
	Effects string
	// Differences from Redis, for docs/compatibility.md.
	Differences string
	// ID is the row's index in All(), set by the table: handlers hang on it.
	ID int

	parent *Command // the container, for subcommands
}

// KeySpec is one entry of COMMAND INFO's key specifications.
type KeySpec struct {
	Flags      []string
	BeginIndex int
	LastKey    int // relative to begin, as Redis's find_keys range
	Step       int
	Limit      int
	NumKeys    bool // find_keys is keynum: the number of keys stands at the beginning, the keys behind it
	Notes      string
	Keyword    string // begin_search keyword instead of index
	StartFrom  int
	Unknown    bool // shown as unknown; Keyword tells GETKEYSANDFLAGS the key behind it
}

// Arg is one argument in COMMAND DOCS.
type Arg struct {
	Name, Type, Token, Since string
	Display                  string // shown instead of Name, if set
	DeprecatedSince          string
	KeySpecIndex             int      // which key specification, for arguments of type key
	Flags                    []string // optional, multiple, multiple_token
	Args                     []Arg
}

// ArityOK reports whether a request of n arguments (name included) fits.
func (c *Command) ArityOK(n int) bool {
	if c.Arity >= 0 {
		return n == c.Arity
	}
	return n >= -c.Arity
}
