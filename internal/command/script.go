package command

import "bytes"

// scriptKeys finds the keys of EVAL script numkeys key... and its like; there may be none.
func scriptKeys(args [][]byte, pos []int) ([]int, bool) {
	if len(args) < 3 {
		return pos, false
	}
	n, ok := parseInt(args[2])
	if !ok || n < 0 || n > int64(len(args)-3) {
		return pos, false
	}
	for i := range int(n) {
		pos = append(pos, 3+i)
	}
	return pos, true
}

// MatchFold reports whether s matches a pattern as KEYS has them, whatever the case of letters.
func MatchFold(pattern, s []byte) bool { return glob(bytes.ToLower(pattern), bytes.ToLower(s)) }
