package gate

import "maps"

func init() {
	maps.Copy(examples, streamExamples)
	sequences = append(sequences, streamSequences...)
}

const (
	xadd1, xadd2, xadd3 = "XADD a 1-1 f 1", "XADD a 1-2 f 2 g x", "XADD a 1-3 h 3"
	xgroup              = "XGROUP CREATE a g 0"
	xread               = "XREADGROUP GROUP g c COUNT 2 STREAMS a >"
)

var streamExamples = map[string][][]string{
	"xadd": {
		{"XADD a * f v"},
		{"XADD a 5 f v g 12345"},
		{xadd1, "XADD a 1-* f v"},
		{xadd1, xadd2, "XADD a MAXLEN 1 * f v"},
		{xadd1, "XADD a MINID 9 2-1 f v"},
		{"XADD a NOMKSTREAM * f v"},
		{xadd1, "XADD a 1-1 f v"},
		{"SET a 1", "XADD a * f v"},
		{xadd1, "PEXPIRE a 5", "tick 10", "XADD a * f v"},
		{xadd1, "EXPIRE a 100", "XADD a * f v"},
		{"XADD a MAXLEN 0 * f v"},
	},
	"xdel":   {{xadd1, xadd2, "XDEL a 1-1 9-9"}, {xadd1, "XDEL a 1-1"}, {"XDEL a 1-1"}},
	"xtrim":  {{xadd1, xadd2, xadd3, "XTRIM a MAXLEN 1"}, {xadd1, xadd2, "XTRIM a MINID 9-9"}, {xadd1, "XTRIM a MAXLEN ~ 0"}},
	"xsetid": {{xadd1, "XSETID a 5-5"}, {xadd1, "XSETID a 5-5 ENTRIESADDED 10 MAXDELETEDID 3-3"}, {"XSETID a 1-1"}},
	"xgroup|create": {
		{"XGROUP CREATE a g $ MKSTREAM"},
		{xadd1, "XGROUP CREATE a g $ ENTRIESREAD 1"},
		{xadd1, xgroup, xgroup},
		{xgroup},
		{"SET a 1 PX 5", "tick 10", "XGROUP CREATE a g $ MKSTREAM"},
	},
	"xgroup|setid":          {{xadd1, xgroup, "XGROUP SETID a g $ ENTRIESREAD 1"}, {xadd1, xgroup, "XGROUP SETID a g 0"}},
	"xgroup|destroy":        {{xadd1, xgroup, xread, "XGROUP DESTROY a g"}, {xadd1, "XGROUP DESTROY a g"}},
	"xgroup|createconsumer": {{xadd1, xgroup, "XGROUP CREATECONSUMER a g c", "XGROUP CREATECONSUMER a g c"}},
	"xgroup|delconsumer":    {{xadd1, xadd2, xgroup, xread, "XGROUP DELCONSUMER a g c"}, {xadd1, xgroup, "XGROUP DELCONSUMER a g c"}},
	"xreadgroup": {
		{xadd1, xadd2, xadd3, xgroup, xread},
		{xadd1, xgroup, xread, "tick 10", "XREADGROUP GROUP g c STREAMS a 0"},
		{xadd1, xgroup, "XREADGROUP GROUP g c NOACK STREAMS a >"},
		{xadd1, xgroup, xread, "XDEL a 1-1", "XREADGROUP GROUP g c STREAMS a 0"},
		{xadd1, "XADD b 1-1 f v", xgroup, "XGROUP CREATE b g 0", "XREADGROUP GROUP g c STREAMS a b > >"},
		{xread},
	},
	"xack": {{xadd1, xadd2, xgroup, xread, "XACK a g 1-1 9-9"}, {xadd1, xgroup, "XACK a g 1-1"}, {"XACK a g 1-1"}},
	"xclaim": {
		{xadd1, xadd2, xgroup, xread, "XCLAIM a g d 0 1-1 1-2"},
		{xadd1, xgroup, "XCLAIM a g d 0 1-1 FORCE LASTID 1-1"},
		{xadd1, xadd2, xgroup, xread, "XDEL a 1-1", "XCLAIM a g d 0 1-1 1-2 JUSTID TIME 5"},
		{xadd1, xgroup, "XCLAIM a g d 0 1-1"},
	},
	"xautoclaim": {{xadd1, xadd2, xgroup, xread, "XDEL a 1-2", "XAUTOCLAIM a g d 0 0"}, {xadd1, xgroup, "XAUTOCLAIM a g d 0 0"}},
}

var streamSequences = [][]string{
	{xadd1, xadd2, xadd3, xgroup, xread, "XDEL a 1-2", "COPY a b", "RENAME a c", "XREADGROUP GROUP g d STREAMS b >", "DEL c"},
	{"MULTI ; XADD a * f 1 ; XADD a * f 2 ; XGROUP CREATE a g 0 ; XREADGROUP GROUP g c STREAMS a > ; XTRIM a MAXLEN 1"},
	{xadd1, "EXPIRE a 100", "XTRIM a MAXLEN 0", "RENAME a b", "XADD b * f v", "SET b 1"},
}
