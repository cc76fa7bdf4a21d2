package gate

import (
	"maps"
	"strings"

	"github.com/kevydb/kevy/internal/rdb"
)

func init() { maps.Copy(examples, dumpExamples) }

// payload is what DUMP replies for a value, as a word of a script.
func payload(v rdb.Value) string {
	return "'" + strings.ReplaceAll(string(rdb.Append(nil, &v, false)), "\n", `\n`) + "'"
}

func texts(words string) (all [][]byte) {
	for w := range strings.FieldsSeq(words) {
		all = append(all, []byte(w))
	}
	return all
}

var (
	dumpedString = payload(rdb.Value{Text: []byte("v")})
	dumpedList   = payload(rdb.Value{Kind: rdb.List, Items: texts("a b a")})
	dumpedHash   = payload(rdb.Value{Kind: rdb.Hash, Items: texts("f 1 g 2"), Deadlines: []int64{start + 500, 0}})
	dumpedZSet   = payload(rdb.Value{Kind: rdb.ZSet, Items: texts("m n"), Scores: []float64{1, 2.5}})
	dumpedStream = payload(rdb.Value{Kind: rdb.Stream, Stream: &rdb.StreamValue{
		Entries: []rdb.Entry{{ID: rdb.ID{Ms: 1, Seq: 1}, Fields: texts("a b")}},
		Last:    rdb.ID{Ms: 2}, First: rdb.ID{Ms: 1, Seq: 1}, Added: 2,
		Groups: []rdb.Group{{Name: []byte("g"), Last: rdb.ID{Ms: 1, Seq: 1}, Read: 1, Consumers: []rdb.Consumer{
			{Name: []byte("c"), Pending: []rdb.Pending{{ID: rdb.ID{Ms: 1, Seq: 1}, Time: 5, Count: 2}}},
		}}},
	}})
)

var dumpExamples = map[string][][]string{
	"restore": {
		{"RESTORE a 0 " + dumpedString},
		{"RESTORE a 900 " + dumpedString},
		{"SET a 1 EX 9", "RESTORE a 0 " + dumpedString + " REPLACE"},
		{"SET a 1", "RESTORE a 0 " + dumpedList},
		{"SET a 1 EX 9", "RESTORE a 0 " + dumpedList + " REPLACE"},
		{"SET a 1", "RESTORE a 5 " + dumpedList + " REPLACE ABSTTL"},
		{"RESTORE a 5 " + dumpedList + " ABSTTL"},
		{"RESTORE a 900 " + dumpedHash},
		{"RESTORE a 900 " + dumpedHash, "tick 600", "RESTORE b 0 " + dumpedHash},
		{"RESTORE a 900 " + dumpedZSet},
		{"RESTORE a 900 " + dumpedStream + " IDLETIME 5"},
		{"SET a 1 PX 5", "tick 10", "RESTORE a 0 " + dumpedStream},
		{"RESTORE a 0 x"},
		{"MULTI ; RESTORE a 0 " + dumpedZSet + " ; ZADD a 5 x ; RESTORE a 0 " + dumpedHash + " REPLACE"},
	},
	"restore-asking": {{"RESTORE-ASKING a 900 " + dumpedList}},
}
