package kevy

import "strconv"

// HSet sets fields of a hash and returns how many are new.
func (c Commands) HSet(key string, fields map[string][]byte) (int64, error) {
	if len(fields) == 0 {
		return 0, nil
	}
	args := [][]byte{word("HSET"), word(key)}
	for f, v := range fields {
		args = append(args, word(f), v)
	}
	return c.integer(args...)
}

// HGet returns a copy of a field's value; ok is false if there is none.
func (c Commands) HGet(key, field string) (value []byte, ok bool, err error) {
	return c.bulk(word("HGET"), word(key), word(field))
}

// HGetAll returns all fields of a hash.
func (c Commands) HGetAll(key string) (map[string][]byte, error) {
	list, err := c.list(word("HGETALL"), word(key))
	fields := make(map[string][]byte, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		fields[list[i]] = []byte(list[i+1])
	}
	return fields, err
}

// HDel removes fields and returns how many there were.
func (c Commands) HDel(key string, fields ...string) (int64, error) {
	return c.keyed("HDEL", key, words(fields))
}

// HLen returns the number of fields of a hash.
func (c Commands) HLen(key string) (int64, error) { return c.integer(word("HLEN"), word(key)) }

// HIncr adds by to the integer value of a field and returns the sum.
func (c Commands) HIncr(key, field string, by int64) (int64, error) {
	return c.integer(word("HINCRBY"), word(key), word(field), num(by))
}

// LPush puts elements before a list, the last one first, and returns the list's length.
func (c Commands) LPush(key string, elements ...[]byte) (int64, error) {
	return c.keyed("LPUSH", key, elements)
}

// RPush puts elements behind a list and returns its length.
func (c Commands) RPush(key string, elements ...[]byte) (int64, error) {
	return c.keyed("RPUSH", key, elements)
}

// LPop takes the first element; ok is false if the list is empty.
func (c Commands) LPop(key string) (element []byte, ok bool, err error) {
	return c.bulk(word("LPOP"), word(key))
}

// RPop takes the last element; ok is false if the list is empty.
func (c Commands) RPop(key string) (element []byte, ok bool, err error) {
	return c.bulk(word("RPOP"), word(key))
}

// LLen returns the length of a list.
func (c Commands) LLen(key string) (int64, error) { return c.integer(word("LLEN"), word(key)) }

// LIndex returns an element by position, negative from the end; ok is false if there is none.
func (c Commands) LIndex(key string, i int64) (element []byte, ok bool, err error) {
	return c.bulk(word("LINDEX"), word(key), num(i))
}

// LRange returns the elements start to stop, both inclusive, negative from the end.
func (c Commands) LRange(key string, start, stop int64) ([][]byte, error) {
	list, err := c.list(word("LRANGE"), word(key), num(start), num(stop))
	return words(list), err
}

// LTrim keeps the elements start to stop only.
func (c Commands) LTrim(key string, start, stop int64) error {
	_, err := c.do(word("LTRIM"), word(key), num(start), num(stop))
	return err
}

// SAdd adds members to a set and returns how many are new.
func (c Commands) SAdd(key string, members ...string) (int64, error) {
	return c.keyed("SADD", key, words(members))
}

// SRem removes members and returns how many there were.
func (c Commands) SRem(key string, members ...string) (int64, error) {
	return c.keyed("SREM", key, words(members))
}

// SHas reports whether a set has a member.
func (c Commands) SHas(key, member string) (bool, error) {
	n, err := c.integer(word("SISMEMBER"), word(key), word(member))
	return n == 1, err
}

// SCard returns the number of members of a set.
func (c Commands) SCard(key string) (int64, error) { return c.integer(word("SCARD"), word(key)) }

// SMembers returns the members of a set in no particular order.
func (c Commands) SMembers(key string) ([]string, error) {
	return c.list(word("SMEMBERS"), word(key))
}

// SInter returns the members that all sets have.
func (c Commands) SInter(keys ...string) ([]string, error) {
	return c.list(append([][]byte{word("SINTER")}, words(keys)...)...)
}

// Scored is a member of a sorted set.
type Scored struct {
	Member string
	Score  float64
}

// ZAdd adds members to a sorted set or changes their scores, and returns how many are new.
func (c Commands) ZAdd(key string, members ...Scored) (int64, error) {
	var args [][]byte
	for _, m := range members {
		args = append(args, score(m.Score), word(m.Member))
	}
	return c.keyed("ZADD", key, args)
}

func score(f float64) []byte { return strconv.AppendFloat(nil, f, 'g', -1, 64) }

// ZRem removes members and returns how many there were.
func (c Commands) ZRem(key string, members ...string) (int64, error) {
	return c.keyed("ZREM", key, words(members))
}

// ZIncr adds by to a member's score and returns the sum.
func (c Commands) ZIncr(key, member string, by float64) (float64, error) {
	b, _, err := c.bulk(word("ZINCRBY"), word(key), score(by), word(member))
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(string(b), 64)
}

// ZScore returns a member's score; ok is false if there is no such member.
func (c Commands) ZScore(key, member string) (f float64, ok bool, err error) {
	b, ok, err := c.bulk(word("ZSCORE"), word(key), word(member))
	if err != nil || !ok {
		return 0, false, err
	}
	f, err = strconv.ParseFloat(string(b), 64)
	return f, err == nil, err
}

// ZRank returns a member's position by score, from 0; ok is false if there is no such member.
func (c Commands) ZRank(key, member string) (rank int64, ok bool, err error) {
	v, err := c.do(word("ZRANK"), word(key), word(member))
	rank, ok = v.(int64)
	return rank, ok, err
}

// ZCard returns the number of members of a sorted set.
func (c Commands) ZCard(key string) (int64, error) { return c.integer(word("ZCARD"), word(key)) }

// ZRange returns the members at the positions start to stop, both inclusive, negative from the end.
func (c Commands) ZRange(key string, start, stop int64) ([]Scored, error) {
	return c.scored(word("ZRANGE"), word(key), num(start), num(stop), word("WITHSCORES"))
}

// ZRangeByScore returns the members with scores from lo to hi, both inclusive.
func (c Commands) ZRangeByScore(key string, lo, hi float64) ([]Scored, error) {
	return c.scored(word("ZRANGE"), word(key), score(lo), score(hi), word("BYSCORE"), word("WITHSCORES"))
}

func (c Commands) scored(args ...[]byte) ([]Scored, error) {
	list, err := c.list(args...)
	out := make([]Scored, 0, len(list)/2)
	for i := 0; i+1 < len(list) && err == nil; i += 2 {
		m := Scored{Member: list[i]}
		m.Score, err = strconv.ParseFloat(list[i+1], 64)
		out = append(out, m)
	}
	return out, err
}

// Entry is an entry of a stream.
type Entry struct {
	ID     string
	Fields []string // field, value, field, value ...
}

// XAdd appends an entry to a stream with the ID "*" or a given one, and returns its ID.
func (c Commands) XAdd(key, id string, fields ...string) (string, error) {
	args := append([][]byte{word("XADD"), word(key), word(id)}, words(fields)...)
	b, _, err := c.bulk(args...)
	return string(b), err
}

// XLen returns the number of entries of a stream.
func (c Commands) XLen(key string) (int64, error) { return c.integer(word("XLEN"), word(key)) }

// XRange returns up to count entries from one ID to another, both inclusive; "-" and "+" are the
// smallest and the largest.
func (c Commands) XRange(key, from, to string, count int64) ([]Entry, error) {
	v, err := c.do(word("XRANGE"), word(key), word(from), word(to), word("COUNT"), num(count))
	list, _ := v.([]any)
	var out []Entry
	for _, x := range list {
		pair, ok := x.([]any)
		if !ok || len(pair) != 2 {
			return nil, errReply
		}
		e := Entry{}
		e.ID, _ = pair[0].(string)
		fields, _ := pair[1].([]any)
		e.Fields = texts(fields)
		out = append(out, e)
	}
	return out, err
}

// XDel removes entries and returns how many there were.
func (c Commands) XDel(key string, ids ...string) (int64, error) {
	return c.keyed("XDEL", key, words(ids))
}

// keyed runs a command of a key and at least one more argument that replies an integer; without
// further arguments it does nothing.
func (c Commands) keyed(name, key string, args [][]byte) (int64, error) {
	if len(args) == 0 {
		return 0, nil
	}
	return c.integer(append([][]byte{word(name), word(key)}, args...)...)
}

// list runs a command that replies an array of strings.
func (c Commands) list(args ...[]byte) ([]string, error) {
	v, err := c.do(args...)
	items, _ := v.([]any)
	return texts(items), err
}

func texts(items []any) []string {
	out := make([]string, len(items))
	for i, x := range items {
		out[i], _ = x.(string)
	}
	return out
}
