package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func init() {
	maps.Copy(examples, hashExamples)
	for _, name := range []string{"rename", "copy", "del", "expire"} {
		examples[name] = slices.Concat(examples[name], hashGeneric[name])
	}
	sequences = append(sequences, hashSequences...)
}

// manyFields is an HSET that makes a large hash.
var manyFields = func() string {
	var b strings.Builder
	b.WriteString("HSET a")
	for i := range 300 {
		fmt.Fprintf(&b, " field:%d %d", i, i)
	}
	return b.String()
}()

var hashExamples = map[string][][]string{
	"hset": {
		{"HSET a f 1 g 2"},
		{"HSET a f 1", "HSET a f 2 f 3"},
		{manyFields, "HSET a field:7 x new y"},
		{"HSET a f 1", "HPEXPIREAT a now+50 FIELDS 1 f", "HSET a f 2"},
		{"SET a x", "HSET a f 1"},
		{"HSET a f 1", "EXPIRE a 9", "HSET a g 2"},
		{"HSET a f 1", "PEXPIRE a 5", "tick 10", "HSET a g 2"},
		{"HSET a f 1 g 2", "HPEXPIREAT a now+5 FIELDS 1 f", "tick 10", "HSET a h 3"},
	},
	"hmset":        {{"HMSET a f 1 g 2"}},
	"hsetnx":       {{"HSETNX a f 1"}, {"HSET a f 1", "HSETNX a f 2"}},
	"hdel":         {{"HSET a f 1 g 2", "HDEL a f x f"}, {"HSET a f 1", "HDEL a f"}, {manyFields, "HDEL a field:1 field:299"}, {"HDEL a f"}},
	"hincrby":      {{"HINCRBY a f 5"}, {"HSET a f 5", "HPEXPIREAT a now+500 FIELDS 1 f", "HINCRBY a f 1"}, {"HSET a f x", "HINCRBY a f 1"}},
	"hincrbyfloat": {{"HINCRBYFLOAT a f 0.1"}, {"HSET a f 5", "HPEXPIREAT a now+500 FIELDS 1 f", "HINCRBYFLOAT a f 1e2"}},
	"hexpire":      {{"HSET a f 1 g 2", "HEXPIRE a 100 FIELDS 2 f x"}, {"HSET a f 1", "HEXPIRE a 0 FIELDS 1 f"}, {"HEXPIRE a 1 FIELDS 1 f"}},
	"hpexpire":     {{manyFields, "HPEXPIRE a 100 FIELDS 2 field:1 field:2"}, {manyFields, "HPEXPIRE a 5 FIELDS 1 field:1", "tick 10", "HPEXPIRE a 5 FIELDS 1 field:1"}},
	"hexpireat":    {{"HSET a f 1", "HEXPIREAT a 99999999999 FIELDS 1 f"}, {"HSET a f 1", "HEXPIREAT a 9999999999 NX FIELDS 1 f"}},
	"hpexpireat":   {{"HSET a f 1 g 2", "HPEXPIREAT a now+7 FIELDS 1 f"}, {"HSET a f 1", "HPEXPIREAT a now+0 FIELDS 1 f"}},
	"hpersist": {
		{"HSET a f 1 g 2", "HPEXPIREAT a now+70 FIELDS 1 f", "HPERSIST a FIELDS 2 f g"},
		{manyFields, "HPEXPIREAT a now+70 FIELDS 2 field:3 field:4", "HPERSIST a FIELDS 1 field:3"},
	},
	"hgetex": {
		{"HSET a f 1 g 2", "HGETEX a EX 10 FIELDS 2 f x"},
		{"HSET a f 1", "HGETEX a PXAT 5 FIELDS 1 f"},
		{"HSET a f 1", "HEXPIRE a 9 FIELDS 1 f", "HGETEX a PERSIST FIELDS 1 f"},
		{"HSET a f 1", "HGETEX a FIELDS 1 f"},
	},
	"hsetex": {
		{"HSETEX a EX 10 FIELDS 2 f 1 g 2"},
		{"HSETEX a FIELDS 1 f 1"},
		{"HSET a f 1", "HSETEX a FNX FIELDS 1 f 2"},
		{"HSET a f 1", "HEXPIRE a 9 FIELDS 1 f", "HSETEX a KEEPTTL FIELDS 2 f 2 g 3"},
		{"HSET a f 1 g 2", "HSETEX a PXAT 5 FIELDS 1 f 2"},
	},
	"hgetdel": {{"HSET a f 1 g 2", "HGETDEL a FIELDS 2 f x"}, {"HSET a f 1", "HGETDEL a FIELDS 1 f"}, {"HGETDEL a FIELDS 1 f"}},
}

// hashGeneric are examples of generic commands on hashes.
var hashGeneric = map[string][][]string{
	"rename": {{"HSET a f 1 g 2", "HPEXPIREAT a now+70 FIELDS 1 f", "EXPIRE a 5", "SET b x", "RENAME a b"}, {manyFields, "RENAME a c"}},
	"copy":   {{"HSET a f 1 g 2", "HPEXPIREAT a now+70 FIELDS 2 f g", "COPY a b"}, {manyFields, "HSET b f 1", "COPY a b REPLACE"}},
	"del":    {{manyFields, "HPEXPIREAT a now+70 FIELDS 1 field:1", "DEL a"}},
	"expire": {{"HSET a f 1 g 2", "HPEXPIREAT a now+70 FIELDS 1 f", "EXPIRE a 100"}},
}

var hashSequences = [][]string{
	{"HSET a f 1 g 2 h 3", "HPEXPIREAT a now+5 FIELDS 2 f g", "tick 10", "HGETALL a", "HLEN a"},
	{"HSET a f 1", "HPEXPIREAT a now+5 FIELDS 1 f", "tick 10", "EXISTS a", "SET b 1"},
	{"HSET a f 1 g 2", "HPEXPIREAT a now+5 FIELDS 1 f", "tick 10", "MULTI ; HINCRBY a f 1 ; HSET a x 1 ; HDEL a g"},
	{"HSET a f 1", "HPEXPIREAT a now+5 FIELDS 1 f", "SET a x", "tick 10", "GET a"},
	{"MULTI ; HSET a f 1 ; HINCRBY a f 5 ; HEXPIRE a 10 FIELDS 1 f ; RENAME a b ; HDEL b f", "SET c 1"},
	{manyFields, "HPEXPIREAT a now+5 FIELDS 3 field:1 field:2 field:3", "HDEL a field:1", "HSET a field:2 x", "tick 10", "HLEN a", "COPY a b"},
}
