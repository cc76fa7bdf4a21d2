package gate

import "maps"

func init() { maps.Copy(examples, setExamples) }

// setExamples are the examples of the group "set".
var setExamples = map[string][][]string{
	"sadd": {
		{"SADD a 1"},
		{"SADD a 1 x 2 x"},
		{"SADD a 1", "SADD a 1"},
		{"SADD a 1 2", "EXPIRE a 100", "SADD a 2 3 y"},
		{"SET a v", "SADD a x"},
		{"SET a v PX 5", "tick 10", "SADD a x"},
		{"SADD a 9223372036854775807 -9223372036854775808 70000"},
	},
	"srem": {
		{"SREM a 1"},
		{"SADD a 1 2 x", "SREM a 1 x z x"},
		{"SADD a 1 x", "SREM a 1 x"},
		{"SADD a 1", "EXPIRE a 100", "SREM a 1"},
		{"SADD a 1 2 PX", "PEXPIRE a 5", "tick 10", "SREM a 1"},
	},
	"spop": {
		{"SPOP a"},
		{"SADD a 1", "SPOP a"},
		{"SADD a 1 2 3 x y z", "SPOP a"},
		{"SADD a 1 2 3 x y z", "SPOP a 3"},
		{"SADD a 1 2 x", "SPOP a 3"},
		{"SADD a 1 2 x", "SPOP a 0"},
		{"SADD a 1 2 3 4 5 6", "EXPIRE a 100", "SPOP a 2"},
	},
	"smove": {
		{"SADD a 1 2", "SADD b 2 3", "SMOVE a b 1"},
		{"SADD a 1 2", "SADD b 2 3", "SMOVE a b 2"},
		{"SADD a 1", "SMOVE a c 1"},
		{"SADD a 1", "SMOVE a c x"},
		{"SADD a 1", "SMOVE a a 1"},
		{"SADD a 1", "SADD d 5", "PEXPIRE d 5", "tick 10", "SMOVE a d 1"},
	},
	"sinterstore": {
		{"SADD a 1 2 x", "SADD b 2 x", "SINTERSTORE c a b"},
		{"SADD a 1 2 x", "SADD b 2 x", "SINTERSTORE a a b"},
		{"SADD a 1", "SET c v EX 100", "SINTERSTORE c a"},
		{"SADD a 1", "SET c v", "SINTERSTORE c a b"},
		{"SINTERSTORE c a"},
		{"SADD a 1", "SET c v PX 5", "tick 10", "SINTERSTORE c a"},
	},
	"sunionstore": {
		{"SADD a 1 2 x", "SADD b 2 y", "SUNIONSTORE c a b"}, {"SADD a 1 2 x", "SADD b 2 y", "EXPIRE b 100", "SUNIONSTORE b a b"}, {"SUNIONSTORE c a"},
	},
	"sdiffstore": {
		{"SADD a 1 2 x", "SADD b 2 y", "SDIFFSTORE c a b"}, {"SADD a 1 2 x", "SADD b 2 y", "SDIFFSTORE b a b"}, {"SADD a 1", "SDIFFSTORE a a a"},
	},
	"sort": {
		{"SADD a 3 1 2", "SORT a"},
		{"SADD a 3 1 2", "SORT a STORE b"},
		{"SADD a 3 1 2", "SORT a DESC STORE a"},
		{"SET b v", "SORT a STORE b"},
		{"SADD a 3 1 2", "SET w2 x EX 100", "SORT a BY nosort GET w* GET # STORE w2"},
		{"ZADD a 3 x 1 y", "SORT a ALPHA STORE d"},
		{"SADD a 3 1 2", "SET b v PX 5", "tick 10", "SORT a STORE b"},
	},
	"rename": append(examples["rename"], []string{"SADD a 1 2 x", "EXPIRE a 100", "SADD b 9", "RENAME a b"}),
	"copy":   append(examples["copy"], []string{"SADD a 1 2 x", "EXPIRE a 100", "SET b 9", "COPY a b REPLACE", "SADD b z"}),
}
