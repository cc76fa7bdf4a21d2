package gate

import "maps"

func init() {
	maps.Copy(examples, bitExamples)
	sequences = append(sequences, bitSequences...)
}

var bitExamples = map[string][][]string{
	"setbit": {
		{"SETBIT a 7 1"},
		{"SETBIT a 7 0"},
		{"SET a x EX 9", "SETBIT a 100 1"},
		{"SETBIT a 7 1", "SETBIT a 7 1"},
		{"SETBIT a x 1"},
		{"SET a 1 PX 5", "tick 10", "SETBIT a 3 1"},
		{"RPUSH a 1", "SETBIT a 1 1"},
		{"SETBIT a 4294967296 1"},
	},
	"bitop": {
		{"SET a foobar", "SET b abc EX 9", "BITOP AND c a b"},
		{"SET a 1", "BITOP NOT a a"},
		{"SET c 1 EX 9", "BITOP OR c a b"},
		{"SET c 1 EX 9", "SET a x", "BITOP XOR c a"},
	},
	"bitfield": {
		{"BITFIELD a SET u8 0 255 GET u4 2"},
		{"SET a xyz EX 9", "BITFIELD a INCRBY i5 #3 7 SET u1 100 1"},
		{"BITFIELD a OVERFLOW FAIL SET u8 16 300"},
		{"SET a xyz", "BITFIELD a SET u8 0 120"},
		{"SET a 1 PX 5", "tick 10", "BITFIELD a INCRBY u8 0 1"},
		{"BITFIELD a GET u8 0"},
	},
	"pfadd": {
		{"PFADD a"},
		{"PFADD a x y z"},
		{"PFADD a x", "EXPIRE a 9", "PFADD a y"},
		{"PFADD a x", "PFADD a x"},
		{"PFADD a x", "PEXPIRE a 5", "tick 10", "PFADD a x"},
		{"SET a 1", "PFADD a x"},
	},
	"pfmerge": {{"PFADD a 1 2", "PFADD b 2 3", "PFMERGE c a b"}, {"PFMERGE a"}, {"PFADD a 1", "EXPIRE a 9", "PFADD b 2", "PFMERGE a b"}},
	"pfdebug": {{"PFADD a 1", "EXPIRE a 9", "PFDEBUG TODENSE a"}, {"PFADD a 1", "PFDEBUG DECODE a"}, {"PFADD a 1", "PFDEBUG TODENSE a", "PFADD a 2 3"}},
}

var bitSequences = [][]string{
	{"MULTI ; SETBIT a 9 1 ; BITFIELD a SET u8 3 77 INCRBY u8 3 1 ; BITOP NOT b a ; PFADD c 1 2 3 ; PFMERGE d c"},
}
