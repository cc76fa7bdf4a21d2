package gate

import "maps"

// The examples of lists. A blocking command finds something, or answers at once in the gate's store.
func init() {
	long := "RPUSH l 1 2 3 4 5 6 7 8 9 a b c d e f 1 2 3 4 5"
	maps.Copy(examples, map[string][][]string{
		"lpush":      {{"LPUSH l a"}, {"LPUSH l a b c", "LPUSH l d e"}, {"LPUSH l a", "PEXPIRE l 500", "LPUSH l b"}, {"LPUSH l a", "PEXPIRE l 5", "tick 10", "LPUSH l b"}, {"SET l 1", "LPUSH l a"}},
		"rpush":      {{"RPUSH l a"}, {"RPUSH l a b c", "RPUSH l d e"}, {`RPUSH l ""`}},
		"lpushx":     {{"LPUSHX l a"}, {"RPUSH l a", "LPUSHX l b c"}},
		"rpushx":     {{"RPUSHX l a"}, {"RPUSH l a", "RPUSHX l b c"}},
		"lpop":       {{"LPOP l"}, {"RPUSH l a", "LPOP l"}, {long, "LPOP l 7"}, {long, "LPOP l 0"}, {long, "EXPIRE l 9", "LPOP l"}, {long, "LPOP l 100"}},
		"rpop":       {{"RPOP l 2"}, {"RPUSH l a", "RPOP l 1"}, {long, "RPOP l 7"}, {long, "RPOP l"}},
		"lset":       {{"LSET l 0 x"}, {long, "LSET l 3 x"}, {long, "LSET l -1 x"}, {long, "LSET l 100 x"}},
		"linsert":    {{"LINSERT l BEFORE a b"}, {long, "LINSERT l BEFORE 3 x"}, {long, "LINSERT l after 5 x"}, {long, "LINSERT l AFTER nope x"}},
		"lrem":       {{"LREM l 0 a"}, {long, "LREM l 0 1"}, {long, "LREM l 1 2"}, {long, "LREM l -1 3"}, {long, "LREM l 5 4"}, {"RPUSH l a a", "LREM l 0 a"}, {long, "LREM l 0 nope"}},
		"ltrim":      {{"LTRIM l 0 1"}, {long, "LTRIM l 2 -3"}, {long, "LTRIM l 0 4"}, {long, "LTRIM l -4 -1"}, {long, "LTRIM l 5 2"}, {long, "LTRIM l 0 -1"}},
		"lmove":      {{"LMOVE l m LEFT RIGHT"}, {long, "LMOVE l m LEFT RIGHT"}, {long, "LMOVE l l RIGHT LEFT"}, {"RPUSH l a", "EXPIRE l 9", "LMOVE l l RIGHT LEFT"}, {"RPUSH l a", "LMOVE l c RIGHT RIGHT"}},
		"rpoplpush":  {{"RPOPLPUSH l m"}, {long, "RPUSH m z", "RPOPLPUSH l m"}, {long, "RPOPLPUSH l l"}},
		"lmpop":      {{"LMPOP 2 l m LEFT"}, {long, "LMPOP 2 m l RIGHT COUNT 3"}, {long, "LMPOP 1 l LEFT COUNT 100"}},
		"blpop":      {{"BLPOP l 0"}, {long, "BLPOP m l 0"}, {"RPUSH l a", "BLPOP l 0.5"}},
		"brpop":      {{"BRPOP l 0"}, {long, "BRPOP m l 1"}},
		"blmove":     {{"BLMOVE l m LEFT RIGHT 0"}, {long, "BLMOVE l m LEFT RIGHT 0"}},
		"brpoplpush": {{"BRPOPLPUSH l m 0"}, {long, "BRPOPLPUSH l m 0"}},
		"blmpop":     {{"BLMPOP 0 2 l m LEFT"}, {long, "BLMPOP 0 2 m l RIGHT COUNT 4"}},
	})
	sequences = append(sequences,
		[]string{long, "RENAME l m", "COPY m l", "LPOP m 3", "COPY m l REPLACE", "EXPIRE l 10", "tick 20000", "RPUSH l a"},
		[]string{long, "MULTI ; LPUSH l x ; LMOVE l m LEFT RIGHT ; RPOP l 2 ; LTRIM l 1 5 ; BLPOP m 0"},
		[]string{long, "SET l 5", "DEL l", "RPUSH l a b", "SET m 1", "RENAME l m"},
	)
}
