package command

// The effects of bitmaps and HyperLogLogs.
func init() {
	effectCases = append(effectCases, []effectCase{
		{"", "SETBIT k 7 1", "SETBIT k 7 1", ":0\r\n"},
		{"", "SETBIT k 7 0", "SETBIT k 7 0", ":0\r\n"},
		{"SETBIT k 7 1", "SETBIT k 7 1", "", ":1\r\n"},
		{"SETBIT k 7 1", "SETBIT k 6 0", "", ":0\r\n"},
		{"SETBIT k 7 1", "SETBIT k 8 0", "SETBIT k 8 0", ":0\r\n"},
		{"RPUSH k 1", "SETBIT k 8 0", "", "-" + msgWrongType + "\r\n"},
		{"SET a abc;SET b abd", "BITOP AND c a b", "SET c ab`", ":3\r\n"},
		{"SET c abc", "BITOP OR c a b", "DEL c", ":0\r\n"},
		{"", "BITOP NOT c a", "", ":0\r\n"},
		{"", "BITFIELD k GET u8 0", "", "*1\r\n:0\r\n"},
		{"", "BITFIELD k SET u8 0 97 GET u8 0", "BITFIELD k SET u8 0 97", "*2\r\n:0\r\n:97\r\n"},
		{"SET k a", "BITFIELD k SET u8 0 97", "", "*1\r\n:97\r\n"},
		{"SET k a", "BITFIELD k INCRBY u8 #0 1 SET i4 4 -1", "BITFIELD k SET u8 0 98 SET i4 4 -1", "*2\r\n:98\r\n:2\r\n"},
		{"SET k a", "BITFIELD k SET u8 16 0", "BITFIELD k SET u1 23 0", "*1\r\n:0\r\n"},
		{"SET k a", "BITFIELD k OVERFLOW FAIL SET u4 0 99", "", "*1\r\n$-1\r\n"},
		{"SET k a", "BITFIELD k OVERFLOW FAIL SET u4 9 99", "BITFIELD k SET u1 12 0", "*1\r\n$-1\r\n"},
		{"", "BITFIELD k SET u8 4294967295 1", "", "-" + msgBitOffset + "\r\n"},
		{"", "PFADD k", "PFADD k", ":1\r\n"},
		{"", "PFADD k a b", "PFADD k a b", ":1\r\n"},
		{"PFADD k a b", "PFADD k b a", "", ":0\r\n"},
		{"SET k x", "PFADD k b", "", "-" + msgNotHLL + "\r\n"},
		{"SET k x", "PFMERGE k", "", "-" + msgNotHLL + "\r\n"},
		{"PFADD a x;PFADD k x y", "PFMERGE k a", "", "+OK\r\n"},
		{"PFADD a x;PFADD k x y", "PFMERGE k none", "", "+OK\r\n"},
		{"PFADD a x;PFADD k x y;PFDEBUG TODENSE k", "PFMERGE k a", "", "+OK\r\n"},
		{"PFADD k a;PFDEBUG TODENSE k", "PFDEBUG TODENSE k", "", ":0\r\n"},
		{"", "PFDEBUG TODENSE k", "", "-" + msgNoSuchKey + "\r\n"},
	}...)
}
