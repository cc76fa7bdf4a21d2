package state

import "errors"

// Type is the type of a key's value.
type Type uint8

// The types. The numbers are part of the digest: never renumber.
const (
	TypeNone   Type = 0
	TypeString Type = 1
	TypeList   Type = 2
	TypeSet    Type = 3
	TypeZSet   Type = 4
	TypeHash   Type = 5
	TypeStream Type = 6
	// -- add new types here, at most 15 --
)

var typeNames = [...]string{
	TypeNone: "none", TypeString: "string", TypeList: "list", TypeSet: "set",
	TypeZSet: "zset", TypeHash: "hash", TypeStream: "stream",
}

// String returns Redis's name of the type.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "unknown"
}

// NoDeadline is the deadline of a key that does not expire. Deadlines are unix milliseconds and
// greater than zero.
const NoDeadline int64 = 0

// Limits a fold enforces.
const (
	// MaxValue is the longest string value and the longest key, in bytes.
	MaxValue = 512 << 20
)

// ErrFold is the class of effects that cannot be applied to this state: malformed arguments, an
// unknown verb, a value beyond MaxValue, a type that does not fit. The state is unchanged then.
var ErrFold = errors.New("state: effect cannot be applied")

// Change tells what a fold did to the set of keys.
type Change struct {
	Created int  // keys that did not exist before
	Removed int  // keys that no longer exist
	Flushed bool // the effect emptied the keyspace
}

// PrefixStats are the counts of live keys below a prefix.
type PrefixStats struct {
	Keys         int // live keys
	WithDeadline int // of these, keys with a deadline
}
