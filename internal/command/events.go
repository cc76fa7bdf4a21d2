package command

import (
	"slices"
	"strings"

	"github.com/kevydb/kevy/log/effect"
)

// EventClass is a class of keyspace notifications, or a set of them.
type EventClass uint32

// The classes of notify-keyspace-events.
const (
	EventKeyspace EventClass = 1 << iota // K: to __keyspace@0__:<key>
	EventKeyevent                        // E: to __keyevent@0__:<event>
	EventGeneric
	EventString
	EventList
	EventSet
	EventHash
	EventZSet
	EventExpired
	EventEvicted
	EventStream
	EventMiss
	EventNew
	EventModule
)

// eventLetters are the classes as notify-keyspace-events names them, in the order of the constants.
const eventLetters = "KEg$lshzxetmnd"

// ParseEventClasses reads notify-keyspace-events as CONFIG GET shows it.
func ParseEventClasses(s string) (c EventClass) {
	for _, r := range s {
		if r == 'A' {
			c |= ParseEventClasses("g$lshzxetd")
		} else if i := strings.IndexRune(eventLetters, r); i >= 0 {
			c |= 1 << i
		}
	}
	return c
}

// Touch is one effect on one key as a notification sees it: whose command it was, and whether the key was there
// before and after. Key is owned.
type Touch struct {
	Cmd             *Command
	Op              effect.Op
	Word            string // first argument of XGROUP
	Event           string // the planner's, if it named one
	Key             string
	Before, After   bool
	Expired, Evicts bool
	NewConsumer     bool // an XCLAIM that makes its consumer
	SetsDeadline    bool // a SET with a deadline that the key did not have
}

// Event is one keyspace notification.
type Event struct {
	Class EventClass
	Name  string
	Key   string
}

// overwrites are the commands that put a new key in the place of an old one: the key is new even so.
var overwrites = map[string]bool{"rename": true, "renamenx": true, "copy": true, "restore": true}

// readsToo are the writing commands that read keys, as Redis counts it: those that are not there are misses.
var readsToo = map[string]bool{
	"getset": true, "getdel": true, "getex": true, "copy": true, "sort": true, "bitop": true, "pfmerge": true,
	"sinterstore": true, "sunionstore": true, "sdiffstore": true, "zunionstore": true, "zinterstore": true, "zdiffstore": true,
	"zrangestore": true, "geosearchstore": true, "georadius": true, "georadiusbymember": true,
	"xreadgroup": true, "xclaim": true, "xautoclaim": true, "xack": true,
}

// Reads reports whether the keys that the command does not find are misses.
func (c *Ctx) Reads() bool {
	return c.Cmd.Flags&ReadOnly != 0 || readsToo[c.Cmd.Name] ||
		c.Cmd.Name == "set" && slices.ContainsFunc(c.Args[1:], func(arg []byte) bool { return isWord(arg, "get") })
}

// moves are the commands that pop an element and push it elsewhere.
var moves = map[string]bool{"lmove": true, "rpoplpush": true, "blmove": true, "brpoplpush": true}

// Events calls fn with the notifications of one command, in Redis's order, given all it did as SortTouches leaves it.
func Events(touches []Touch, fn func(Event)) {
	var from *Touch // of a RENAME, until it is told
	if len(touches) > 0 && renames(&touches[0]) {
		from, touches = &touches[0], touches[1:]
	}
	var last Event
	seen := make(map[string]bool, 4)
	for i := range touches {
		t := &touches[i]
		if t.Op == effect.Del && !t.Expired && !t.Evicts && touchedLater(touches[i+1:], t.Key) {
			seen[t.Key] = t.Before && t.Cmd != nil && !overwrites[t.Cmd.Name]
			continue // makes room for a new value
		}
		if t.After && !seen[t.Key] && (!t.Before || t.Cmd != nil && overwrites[t.Cmd.Name]) {
			fn(Event{EventNew, "new", t.Key})
		}
		if from != nil {
			fn(Event{EventGeneric, "rename_from", from.Key})
			from = nil
		}
		seen[t.Key] = true
		class, name := t.event()
		if ev := (Event{class, name, t.Key}); name != "" && (ev != last || t.Op == effect.MSet) {
			fn(ev)
			last = ev
		}
		if t.SetsDeadline {
			fn(Event{EventGeneric, "expire", t.Key})
		}
		if t.Before && !t.After && name != "del" && !t.Expired && !t.Evicts ||
			t.Expired && t.Op == effect.HDel && !t.After {
			fn(Event{EventGeneric, "del", t.Key})
		}
	}
}

// SortTouches puts the touches of one command into the order in which Redis tells of them. It may change the slice.
func SortTouches(touches []Touch) {
	n := len(touches)
	if n < 2 || touches[0].Cmd == nil {
		return
	}
	switch {
	case renames(&touches[n-1]): // the old name first
		last := touches[n-1]
		copy(touches[1:], touches)
		touches[0] = last
	case moves[touches[0].Cmd.Name]: // the push first
		pop := slices.IndexFunc(touches, func(t Touch) bool { return t.Op == effect.LPop || t.Op == effect.RPop })
		if pop >= 0 {
			first := touches[pop]
			copy(touches[pop:], touches[pop+1:])
			touches[n-1] = first
		}
	}
}

// renames reports whether a touch takes the old name of a RENAME.
func renames(t *Touch) bool {
	return t.Op == effect.Del && t.Cmd != nil && strings.HasPrefix(t.Cmd.Name, "rename") && !t.Expired
}

func touchedLater(touches []Touch, key string) bool {
	for i := range touches {
		if touches[i].Key == key {
			return true
		}
	}
	return false
}

// byCommand names the event of commands whatever effects they plan. A Del of these commands is the removal of all
// that the key held; of those that overwrite it is one because the deadline of the new value has passed.
var byCommand = map[string]Event{
	"rename": {EventGeneric, "rename_to", ""}, "renamenx": {EventGeneric, "rename_to", ""},
	"copy": {EventGeneric, "copy_to", ""}, "restore": {EventGeneric, "restore", ""},
	"append": {EventString, "append", ""}, "setrange": {EventString, "setrange", ""},
	"incr": {EventString, "incrby", ""}, "incrby": {EventString, "incrby", ""},
	"decr": {EventString, "incrby", ""}, "decrby": {EventString, "incrby", ""},
	"incrbyfloat": {EventString, "incrbyfloat", ""},
	"setbit":      {EventString, "setbit", ""}, "bitfield": {EventString, "setbit", ""},
	"pfadd": {EventString, "pfadd", ""}, "pfmerge": {EventString, "pfadd", ""},
	"ltrim":   {EventList, "ltrim", ""},
	"lpop":    {EventList, "lpop", ""},
	"rpop":    {EventList, "rpop", ""},
	"spop":    {EventSet, "spop", ""},
	"srem":    {EventSet, "srem", ""},
	"hincrby": {EventHash, "hincrby", ""}, "hincrbyfloat": {EventHash, "hincrbyfloat", ""},
	"zincrby": {EventZSet, "zincr", ""}, "zrem": {EventZSet, "zrem", ""},
	"zremrangebyscore": {EventZSet, "zremrangebyscore", ""},
	"zremrangebyrank":  {EventZSet, "zremrangebyrank", ""},
	"zremrangebylex":   {EventZSet, "zremrangebylex", ""},
	"zpopmin":          {EventZSet, "zpopmin", ""}, "zpopmax": {EventZSet, "zpopmax", ""},
	"bzpopmin": {EventZSet, "zpopmin", ""}, "bzpopmax": {EventZSet, "zpopmax", ""},
}

// byStore names the event of commands that store a result, where there is one.
var byStore = map[string]Event{
	"sort":        {EventList, "sortstore", ""},
	"bitop":       {EventString, "set", ""},
	"sinterstore": {EventSet, "sinterstore", ""}, "sunionstore": {EventSet, "sunionstore", ""},
	"sdiffstore":  {EventSet, "sdiffstore", ""},
	"zunionstore": {EventZSet, "zunionstore", ""}, "zinterstore": {EventZSet, "zinterstore", ""},
	"zdiffstore": {EventZSet, "zdiffstore", ""}, "zrangestore": {EventZSet, "zrangestore", ""},
	"geosearchstore": {EventZSet, "geosearchstore", ""},
	"georadius":      {EventZSet, "georadiusstore", ""}, "georadiusbymember": {EventZSet, "georadiusstore", ""},
}

// eventOf says what an effect is called that its command does not name.
var eventOf = map[effect.Op]Event{
	effect.Set: {EventString, "set", ""}, effect.MSet: {EventString, "set", ""},
	effect.Append: {EventString, "append", ""}, effect.SetRange: {EventString, "setrange", ""},
	effect.Del:   {EventGeneric, "del", ""},
	effect.LPush: {EventList, "lpush", ""}, effect.RPush: {EventList, "rpush", ""},
	effect.LPop: {EventList, "lpop", ""}, effect.RPop: {EventList, "rpop", ""},
	effect.LSet: {EventList, "lset", ""}, effect.LInsert: {EventList, "linsert", ""},
	effect.LRem: {EventList, "lrem", ""}, effect.LTrim: {EventList, "ltrim", ""},
	effect.HSet: {EventHash, "hset", ""}, effect.HDel: {EventHash, "hdel", ""},
	effect.HPExpireAt: {EventHash, "hexpire", ""}, effect.HPersist: {EventHash, "hpersist", ""},
	effect.SAdd: {EventSet, "sadd", ""}, effect.SRem: {EventSet, "srem", ""},
	effect.ZAdd: {EventZSet, "zadd", ""}, effect.ZRem: {EventZSet, "zrem", ""},
	effect.XAdd: {EventStream, "xadd", ""}, effect.XDel: {EventStream, "xdel", ""},
	effect.XTrim: {EventStream, "xtrim", ""},
}

// event returns what Redis calls the effect; the name is empty where Redis says nothing.
func (t *Touch) event() (EventClass, string) {
	switch {
	case t.Expired && t.Op == effect.HDel:
		return EventHash, "hexpired"
	case t.Expired:
		return EventExpired, "expired"
	case t.Evicts:
		return EventEvicted, "evicted"
	case t.Cmd == nil:
		return 0, ""
	}
	if t.Event != "" {
		return t.named()
	}
	if ev, ok := byStore[t.Cmd.Name]; ok && t.Op != effect.Del {
		return ev.Class, ev.Name
	}
	if ev, ok := byCommand[t.Cmd.Name]; ok && !(t.Op == effect.Del && overwrites[t.Cmd.Name]) {
		if t.Op == effect.HPExpireAt || t.Op == effect.PExpireAt && !overwrites[t.Cmd.Name] {
			return 0, "" // a deadline is kept
		}
		return ev.Class, ev.Name
	}
	switch t.Op {
	case effect.PExpireAt, effect.Persist:
		return t.deadlineEvent()
	case effect.XClaim:
		if t.NewConsumer {
			return EventStream, "xgroup-createconsumer"
		}
		return 0, ""
	case effect.XSetID:
		if t.Cmd.Name == "xsetid" {
			return EventStream, "xsetid"
		}
		return 0, ""
	case effect.XGroup:
		if t.Word == "SETID" && t.Cmd.Name != "xgroup|setid" {
			return 0, "" // the group's position moves on
		}
		return EventStream, "xgroup-" + strings.ToLower(t.Word)
	}
	ev := eventOf[t.Op]
	return ev.Class, ev.Name
}

// deadlineEvent is the event of a new deadline, or the end of one, where the command is about that.
func (t *Touch) deadlineEvent() (EventClass, string) {
	switch t.Cmd.Name {
	case "expire", "pexpire", "expireat", "pexpireat", "getex", "persist":
		if t.Op == effect.Persist {
			return EventGeneric, "persist"
		}
		return EventGeneric, "expire"
	}
	return 0, ""
}

// named is the event that the planner has named: its class is that of the effect.
func (t *Touch) named() (EventClass, string) {
	if ev, ok := byStore[t.Cmd.Name]; ok {
		return ev.Class, t.Event
	}
	switch t.Op {
	case effect.ZAdd, effect.ZRem:
		return EventZSet, t.Event
	case effect.Del:
		return namedRemoval[t.Event], t.Event
	}
	return eventOf[t.Op].Class, t.Event
}

// namedRemoval are the classes of events that planners name for the removal of a whole key.
var namedRemoval = map[string]EventClass{
	"zpopmin": EventZSet, "zpopmax": EventZSet, "zincr": EventZSet,
}

// nameEvent names the event of the planned effects, where the command's name does not say it.
func (c *Ctx) nameEvent(name string) {
	for i := range c.planned {
		c.planned[i].Event = name
	}
}
