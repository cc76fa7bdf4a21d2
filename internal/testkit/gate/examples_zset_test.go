package gate

import "maps"

func init() { maps.Copy(examples, zsetExamples) }

var zsetExamples = map[string][][]string{
	"zadd": {
		{"ZADD a 1 x 2.5 y"},
		{"ZADD a 1 x", "ZADD a GT CH 5 x 0 y"},
		{"ZADD a 1 x", "ZADD a XX INCR 2 x"},
		{"ZADD a 1 x", "EXPIRE a 100", "ZADD a inf y -0 z"},
		{"ZADD a 1 x", "PEXPIRE a 5", "tick 10", "ZADD a 2 y"},
		{"SET a 1", "ZADD a 1 x"},
		{"ZADD a 1 x", "ZADD a NX 2 x 3 y 4 y"},
	},
	"zincrby":           {{"ZINCRBY a 1.5 x"}, {"ZADD a 1 x", "ZINCRBY a -0.1 x"}, {"ZADD a inf x", "ZINCRBY a -inf x"}},
	"zrem":              {{"ZADD a 1 x 2 y", "ZREM a x x z"}, {"ZADD a 1 x", "ZREM a x"}, {"ZREM a x"}},
	"zremrangebyrank":   {{"ZADD a 1 x 2 y 3 z", "ZREMRANGEBYRANK a 0 1"}, {"ZADD a 1 x", "ZREMRANGEBYRANK a 0 -1"}},
	"zremrangebyscore":  {{"ZADD a 1 x 2 y 3 z", "ZREMRANGEBYSCORE a (1 +inf"}},
	"zremrangebylex":    {{"ZADD a 1 x 1 y 1 z", "ZREMRANGEBYLEX a [y +"}},
	"zpopmin":           {{"ZADD a 1 x 2 y", "ZPOPMIN a"}, {"ZADD a 1 x 2 y", "ZPOPMIN a 9"}, {"ZPOPMIN a"}},
	"zpopmax":           {{"ZADD a 1 x 2 y", "ZPOPMAX a"}},
	"zmpop":             {{"ZADD b 1 x 2 y", "ZMPOP 2 a b MAX COUNT 3"}, {"ZMPOP 2 a b MIN"}},
	"zrangestore":       {{"ZADD a 1 x 2 y", "SET b 1", "ZRANGESTORE b a 0 0"}, {"ZADD a 1 x 2 y", "ZRANGESTORE a a 1 2 BYSCORE REV"}, {"ZADD b 1 x", "ZRANGESTORE b a 0 -1"}},
	"zunionstore":       {{"ZADD a 1 x 2 y", "ZADD b 3 y", "ZUNIONSTORE c 2 a b WEIGHTS 2 0.5"}, {"ZADD a 1 x", "ZUNIONSTORE a 2 a a"}},
	"zinterstore":       {{"ZADD a 1 x 2 y", "ZADD b 3 y", "ZINTERSTORE a 2 a b AGGREGATE MAX"}, {"SET c 1", "ZINTERSTORE c 1 a"}},
	"zdiffstore":        {{"ZADD a 1 x 2 y", "ZADD b 3 y", "EXPIRE b 100", "ZDIFFSTORE b 2 a b"}},
	"geoadd":            {{"GEOADD a 13.361389 38.115556 x 15.087269 37.502669 y"}, {"GEOADD a 1 2 x", "GEOADD a CH XX 2 3 x"}},
	"geosearchstore":    {{"GEOADD a 1 2 x 1.1 2 y", "GEOSEARCHSTORE b a FROMMEMBER x BYRADIUS 100 km STOREDIST"}, {"ZADD b 1 x", "GEOSEARCHSTORE b a FROMLONLAT 1 2 BYBOX 1 1 m"}},
	"georadius":         {{"GEOADD a 1 2 x 1.1 2 y", "GEORADIUS a 1 2 100 km STORE a"}, {"GEORADIUS a 1 2 100 km"}},
	"georadiusbymember": {{"GEOADD a 1 2 x 1.1 2 y", "GEORADIUSBYMEMBER a x 100 km STOREDIST b"}},
	"bzpopmin":          {{"ZADD a 1 x 2 y", "BZPOPMIN b a 0"}},
	"bzpopmax":          {{"ZADD a 1 x 2 y", "BZPOPMAX b a 0"}},
	"bzmpop":            {{"ZADD a 1 x 2 y", "BZMPOP 0 2 b a MAX COUNT 5"}},
}
