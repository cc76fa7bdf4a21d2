package command

// The effects of RESTORE of what has no line break; more in dump_test.go.
func init() {
	effectCases = append(effectCases, []effectCase{
		{"", "RESTORE k 0 x", "", "-" + msgDumpVersion + "\r\n"},
		{"", "RESTORE k -1 x", "", "-" + msgRestoreTTL + "\r\n"},
		{"SET k v", "RESTORE k -1 x", "", "-" + msgBusyKey + "\r\n"},
		{"", "RESTORE k 0 x IDLETIME -1", "", "-" + msgRestoreIdle + "\r\n"},
		{"", "RESTORE k 0 x FREQ 256", "", "-" + msgRestoreFreq + "\r\n"},
		{"", "RESTORE k 0 x FREQ 1 IDLETIME 1", "", "-" + msgSyntax + "\r\n"},
		{"", "RESTORE-ASKING k 0 x", "", "-" + msgDumpVersion + "\r\n"},
	}...)
}
