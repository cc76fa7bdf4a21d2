package kevy

import (
	"fmt"
	"strconv"
	"time"
)

// Commands are the reads and writes that a Store and a Tx share. On a Store each is an operation of
// its own; on a Tx all are one group.
type Commands struct {
	// run executes one command; reply is valid until read returns.
	run func(args [][]byte, read func(reply []byte) error) error
}

// Do runs any command by its name, as a client would, and returns its reply: string, int64,
// nil, []any. An error reply is returned as an Error. Arguments are strings, byte slices, integers,
// floats, booleans (1 or 0). Commands about a connection or a server (MULTI, SUBSCRIBE, INFO, CONFIG,
// SAVE) are errors: Update, Follow and Snapshot stand for some of them. Nothing waits: BLPOP and
// FEED.READ with BLOCK answer at once.
func (c Commands) Do(args ...any) (reply any, err error) {
	argv := make([][]byte, len(args))
	for i, a := range args {
		if argv[i], err = argument(a); err != nil {
			return nil, err
		}
	}
	return c.do(argv...)
}

func argument(a any) ([]byte, error) {
	switch v := a.(type) {
	case string:
		return []byte(v), nil
	case []byte:
		return v, nil
	case int:
		return strconv.AppendInt(nil, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(nil, v, 10), nil
	case uint64:
		return strconv.AppendUint(nil, v, 10), nil
	case float64:
		return strconv.AppendFloat(nil, v, 'g', -1, 64), nil
	case bool:
		if v {
			return []byte("1"), nil
		}
		return []byte("0"), nil
	}
	return nil, fmt.Errorf("kevy: an argument can't be a %T", a)
}

func (c Commands) do(args ...[]byte) (reply any, err error) {
	err = c.run(args, func(b []byte) error {
		if reply, _, err = parseReply(b); err != nil {
			return err
		}
		if e, ok := reply.(Error); ok {
			reply = nil
			return e
		}
		return nil
	})
	return reply, err
}

func (c Commands) integer(args ...[]byte) (int64, error) {
	v, err := c.do(args...)
	n, _ := v.(int64)
	return n, err
}

// bulk returns a copy of a bulk reply; ok is false for a null.
func (c Commands) bulk(args ...[]byte) (b []byte, ok bool, err error) {
	v, err := c.do(args...)
	s, ok := v.(string)
	return []byte(s), ok && err == nil, err
}

func num(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

func word(s string) []byte { return []byte(s) }

// Get returns a copy of the value of a string key; ok is false if there is none.
func (c Commands) Get(key string) (value []byte, ok bool, err error) {
	return c.bulk(word("GET"), word(key))
}

// Set stores a value; an earlier deadline of the key is gone.
func (c Commands) Set(key string, value []byte) error {
	_, err := c.do(word("SET"), word(key), value)
	return err
}

// SetEx stores a value that expires after ttl, at least a millisecond.
func (c Commands) SetEx(key string, value []byte, ttl time.Duration) error {
	_, err := c.do(word("SET"), word(key), value, word("PX"), num(ttl.Milliseconds()))
	return err
}

// SetNX stores a value if the key does not exist, and reports whether it did.
func (c Commands) SetNX(key string, value []byte) (stored bool, err error) {
	n, err := c.integer(word("SETNX"), word(key), value)
	return n == 1, err
}

// GetSet stores a value and returns the one before; ok is false if there was none.
func (c Commands) GetSet(key string, value []byte) (old []byte, ok bool, err error) {
	return c.bulk(word("GETSET"), word(key), value)
}

// GetDel removes a key and returns its value; ok is false if there was none.
func (c Commands) GetDel(key string) (old []byte, ok bool, err error) {
	return c.bulk(word("GETDEL"), word(key))
}

// MGet returns the values of keys; an element is nil where there is none.
func (c Commands) MGet(keys ...string) ([][]byte, error) {
	v, err := c.do(append([][]byte{word("MGET")}, words(keys)...)...)
	if err != nil {
		return nil, err
	}
	list, _ := v.([]any)
	values := make([][]byte, len(list))
	for i, x := range list {
		if s, ok := x.(string); ok {
			values[i] = []byte(s)
		}
	}
	return values, nil
}

// MSet stores pairs of key and value, all or nothing.
func (c Commands) MSet(pairs map[string][]byte) error {
	if len(pairs) == 0 {
		return nil
	}
	args := [][]byte{word("MSET")}
	for k, v := range pairs {
		args = append(args, word(k), v)
	}
	_, err := c.do(args...)
	return err
}

// Incr adds by to the integer value of a key and returns the sum.
func (c Commands) Incr(key string, by int64) (int64, error) {
	return c.integer(word("INCRBY"), word(key), num(by))
}

// Append appends to a string value and returns its new length in bytes.
func (c Commands) Append(key string, value []byte) (int64, error) {
	return c.integer(word("APPEND"), word(key), value)
}

// StrLen returns the length of a string value in bytes, 0 if there is none.
func (c Commands) StrLen(key string) (int64, error) {
	return c.integer(word("STRLEN"), word(key))
}

// GetRange returns the bytes start to end, both inclusive; negative counts from the end.
func (c Commands) GetRange(key string, start, end int64) ([]byte, error) {
	b, _, err := c.bulk(word("GETRANGE"), word(key), num(start), num(end))
	return b, err
}

// SetRange overwrites a part of a value, zero-padded, and returns its new length.
func (c Commands) SetRange(key string, offset int64, value []byte) (int64, error) {
	return c.integer(word("SETRANGE"), word(key), num(offset), value)
}

// Del removes keys and returns how many existed.
func (c Commands) Del(keys ...string) (int64, error) { return c.variadic("DEL", keys) }

// Exists returns how many of the keys exist; one named twice counts twice.
func (c Commands) Exists(keys ...string) (int64, error) { return c.variadic("EXISTS", keys) }

func (c Commands) variadic(name string, keys []string) (int64, error) {
	if len(keys) == 0 {
		return 0, nil
	}
	return c.integer(append([][]byte{word(name)}, words(keys)...)...)
}

// Expire makes a key expire after ttl (now, if ttl is not positive) and reports whether it exists.
func (c Commands) Expire(key string, ttl time.Duration) (bool, error) {
	n, err := c.integer(word("PEXPIRE"), word(key), num(ttl.Milliseconds()))
	return n == 1, err
}

// ExpireAt makes a key expire at a time and reports whether it exists.
func (c Commands) ExpireAt(key string, at time.Time) (bool, error) {
	n, err := c.integer(word("PEXPIREAT"), word(key), num(at.UnixMilli()))
	return n == 1, err
}

// Persist removes a key's deadline and reports whether it had one.
func (c Commands) Persist(key string) (bool, error) {
	n, err := c.integer(word("PERSIST"), word(key))
	return n == 1, err
}

// TTL returns the time a key has left: exists is false if there is no such key, expires is false if
// it has no deadline.
func (c Commands) TTL(key string) (left time.Duration, expires, exists bool, err error) {
	n, err := c.integer(word("PTTL"), word(key))
	if err != nil || n == -2 {
		return 0, false, false, err
	}
	if n == -1 {
		return 0, false, true, nil
	}
	return time.Duration(n) * time.Millisecond, true, true, nil
}

// Type returns the type of a key's value: "string", or "none" if there is no such key.
func (c Commands) Type(key string) (string, error) {
	v, err := c.do(word("TYPE"), word(key))
	s, _ := v.(string)
	return s, err
}

// Rename gives a key another name, replacing what had it.
func (c Commands) Rename(key, newKey string) error {
	_, err := c.do(word("RENAME"), word(key), word(newKey))
	return err
}

// Copy copies a value with its deadline and reports whether it did; an existing destination is
// replaced only with replace.
func (c Commands) Copy(src, dst string, replace bool) (bool, error) {
	args := [][]byte{word("COPY"), word(src), word(dst)}
	if replace {
		args = append(args, word("REPLACE"))
	}
	n, err := c.integer(args...)
	return n == 1, err
}

// Keys returns the keys that match a glob pattern. With a literal beginning ("user:*") it costs what it
// finds, otherwise the whole keyspace.
func (c Commands) Keys(pattern string) ([]string, error) {
	return c.list(word("KEYS"), word(pattern))
}

// DBSize returns the number of keys.
func (c Commands) DBSize() (int64, error) { return c.integer(word("DBSIZE")) }

// FlushAll removes all keys and begins a new generation of the change feed.
func (c Commands) FlushAll() error {
	_, err := c.do(word("FLUSHALL"))
	return err
}

// PrefixInfo counts live keys.
type PrefixInfo struct {
	Keys    int64 // live keys with the prefix
	Expires int64 // of these, keys with a deadline
}

// InfoPrefix counts the keys whose bytes start with prefix; its cost grows with the matches.
func (c Commands) InfoPrefix(prefix []byte) (PrefixInfo, error) {
	v, err := c.do(word("PREFIX.STATS"), prefix)
	list, _ := v.([]any)
	if err != nil || len(list) != 4 {
		return PrefixInfo{}, err
	}
	var p PrefixInfo
	p.Keys, _ = list[1].(int64)
	p.Expires, _ = list[3].(int64)
	return p, nil
}

// Digest returns how many keys start with prefix and an order-independent digest of these keys,
// their values and deadlines: equal digests mean equal state.
func (c Commands) Digest(prefix []byte) (keys int64, digest string, err error) {
	v, err := c.do(word("PREFIX.DIGEST"), prefix)
	list, _ := v.([]any)
	if err != nil || len(list) != 2 {
		return 0, "", err
	}
	keys, _ = list[0].(int64)
	digest, _ = list[1].(string)
	return keys, digest, nil
}

func words(keys []string) [][]byte {
	args := make([][]byte, len(keys))
	for i, k := range keys {
		args[i] = []byte(k)
	}
	return args
}
