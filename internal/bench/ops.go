package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Op is a kind of command.
type Op string

// The commands of Load. Those on one collection use one key, as redis-benchmark does.
const (
	Get    Op = "get"
	Set    Op = "set"
	Incr   Op = "incr"
	MSet   Op = "mset" // of 10 keys
	Mix    Op = "mix"  // GET and SET
	HSet   Op = "hset"
	LPush  Op = "lpush"
	LPop   Op = "lpop"   // LPUSH and LPOP in turn: the list keeps its length
	LRange Op = "lrange" // of 100 elements
	SAdd   Op = "sadd"
	SInter Op = "sinter" // of two sets of 100,000 integers that share a tenth
	ZAdd   Op = "zadd"
	ZRange Op = "zrange" // of 100 members
	ZRank  Op = "zrank"
	XAdd   Op = "xadd"
	Eval   Op = "eval" // of a script that reads one key
)

// Sizes of what there is to read.
const (
	collectionSize = 100_000
	fillBatch      = 500 // members a command
)

// op says what a kind of command sends.
type op struct {
	// requests are sent in turn; each placeholder becomes a key number.
	requests func(value string) [][]string
	// fill makes what the requests read.
	fill func(add func(args ...string))
}

const numbered = "key:" + placeholder

// msetKeys is how many keys an MSET takes, as in redis-benchmark.
const msetKeys = 10

var ops = map[Op]op{
	Get:  {requests: one("GET", numbered)},
	Set:  {requests: withValue("SET", numbered)},
	Incr: {requests: one("INCR", "counter:"+placeholder)},
	MSet: {requests: func(value string) [][]string {
		mset := []string{"MSET"}
		for range msetKeys {
			mset = append(mset, numbered, value)
		}
		return [][]string{mset}
	}},
	Mix:   {requests: func(value string) [][]string { return [][]string{{"GET", numbered}, {"SET", numbered, value}} }},
	HSet:  {requests: withValue("HSET", "myhash", "element:"+placeholder)},
	LPush: {requests: withValue("LPUSH", "mylist")},
	LPop:  {requests: func(value string) [][]string { return [][]string{{"LPUSH", "poplist", value}, {"LPOP", "poplist"}} }},
	LRange: {
		requests: one("LRANGE", "rangelist", "0", "99"),
		fill:     members("RPUSH", "rangelist", 0, func(i int) []string { return []string{"element:" + strconv.Itoa(i)} }),
	},
	SAdd: {requests: one("SADD", "myset", "element:"+placeholder)},
	SInter: {
		requests: one("SINTER", "ints:a", "ints:b"),
		fill: func(add func(args ...string)) {
			number := func(i int) []string { return []string{strconv.Itoa(i)} }
			members("SADD", "ints:a", 0, number)(add)
			members("SADD", "ints:b", collectionSize*9/10, number)(add)
		},
	},
	ZAdd:   {requests: one("ZADD", "myzset", placeholder, "element:"+placeholder)},
	ZRange: {requests: one("ZRANGE", "rangezset", "50000", "50099"), fill: fillZset("rangezset")},
	ZRank:  {requests: one("ZRANK", "rankzset", "element:"+placeholder), fill: fillZset("rankzset")},
	XAdd:   {requests: withValue("XADD", "mystream", "*", "field")},
	Eval:   {requests: one("EVAL", "return redis.call('get', KEYS[1])", "1", numbered)},
}

// Ops returns the kinds of commands, sorted.
func Ops() []Op {
	var out []Op
	for o := range ops {
		out = append(out, o)
	}
	slices.Sort(out)
	return out
}

func one(args ...string) func(string) [][]string {
	return func(string) [][]string { return [][]string{args} }
}

func withValue(args ...string) func(string) [][]string {
	return func(value string) [][]string { return [][]string{append(slices.Clip(args), value)} }
}

// members adds collectionSize members from number first on to a collection, many with each command.
func members(verb, key string, first int, member func(i int) []string) func(add func(args ...string)) {
	return func(add func(args ...string)) {
		for at := 0; at < collectionSize; at += fillBatch {
			args := []string{verb, key}
			for i := at; i < min(collectionSize, at+fillBatch); i++ {
				args = append(args, member(first+i)...)
			}
			add(args...)
		}
	}
}

func fillZset(key string) func(add func(args ...string)) {
	return members("ZADD", key, 0, func(i int) []string {
		return []string{strconv.Itoa(i), fmt.Sprintf("element:%0*d", keyDigits, i)}
	})
}

// Prepare makes what the commands of o read beyond the keys that Fill has made: once a server.
func Prepare(ctx context.Context, t *Target, o Op) error {
	fill := ops[o].fill
	if fill == nil {
		return nil
	}
	c, err := dial(t.Addr)
	if err != nil {
		return err
	}
	defer c.close()
	defer context.AfterFunc(ctx, c.close)()
	fill(func(args ...string) {
		if err != nil {
			return
		}
		c.out = appendCommand(c.out, args...)
		if err = c.send(); err == nil {
			err = c.skip()
		}
	})
	if err != nil {
		return fmt.Errorf("filling for %s: %w", o, err)
	}
	return nil
}

// templates returns the requests of o with values of size bytes.
func (o Op) templates(size int) []template {
	var out []template
	for _, args := range ops[o].requests(strings.Repeat("x", size)) {
		out = append(out, newTemplate(args...))
	}
	return out
}
