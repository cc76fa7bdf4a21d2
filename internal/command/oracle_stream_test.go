package command

import "regexp"

// pendingEntry is an entry in the reply of XPENDING up to its idle time.
var pendingEntry = regexp.MustCompile(`(\*4\r\n\$\d+\r\n\d+-\d+\r\n\$\d+\r\n[^\r]*\r\n:)\d+`)

// maskIdle takes the idle times out of the reply of XPENDING: two servers do not measure the same.
func maskIdle(s string) string { return pendingEntry.ReplaceAllString(s, "${1}0") }
