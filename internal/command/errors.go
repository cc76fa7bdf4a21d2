package command

import "bytes"

// Error texts, byte for byte those of Redis 7.2, that other packages reply with too.
const (
	// MsgTooLong refuses what would make a string longer than any may be.
	MsgTooLong = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	// MsgIntRange refuses what is no int of C.
	MsgIntRange = "ERR value is out of range, value must between -2147483648 and 2147483647"
	// MsgZeroOrOne refuses what is a number, but neither 0 nor 1.
	MsgZeroOrOne = "ERR value is out of range, value must between 0 and 1"
)

// Error texts, byte for byte those of Redis 7.2.
const (
	msgSyntax       = "ERR syntax error"
	msgWrongType    = "WRONGTYPE Operation against a key holding the wrong kind of value"
	msgNotInteger   = "ERR value is not an integer or out of range"
	msgNotFloat     = "ERR value is not a valid float"
	msgLongRange    = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
	msgNotPositive  = "ERR value is out of range, must be positive"
	msgNoKey        = "ERR no such key"
	msgSameObject   = "ERR source and destination objects are the same"
	msgDBRange      = "ERR DB index is out of range"
	msgOverflow     = "ERR increment or decrement would overflow"
	msgDecrOverflow = "ERR decrement would overflow"
	msgNaN          = "ERR increment would produce NaN or Infinity"
	msgOffset       = "ERR offset is out of range"
	msgCursor       = "ERR invalid cursor"
	msgExpireNX     = "ERR NX and XX, GT or LT options at the same time are not compatible"
	msgExpireGTLT   = "ERR GT and LT options at the same time are not compatible"
	msgLCSType      = "ERR The specified keys must contain string values"
	msgLCSBoth      = "ERR If you want both the length and indexes, please just use IDX."
	msgLCSMemory    = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
	msgTimeoutNeg   = "ERR timeout is negative"
	msgTimeoutRange = "ERR timeout is out of range"
	msgTimeoutFloat = "ERR timeout is not a float or out of range"
	msgTimeoutInt   = "ERR timeout is not an integer or out of range"

	msgFreqNotLFU = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. " +
		"Please note that when switching between policies at runtime LRU and LFU data will take " +
		"some time to adjust."
	msgIdleLFU = "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that " +
		"when switching between policies at runtime LRU and LFU data will take some time to adjust."
)

// errorText is a reply text that is known to be an error ("ERR ..."); "" means none.
type errorText = string

// expireTimeError is the text for a deadline that cannot be.
func expireTimeError(c *Command) errorText {
	return "ERR invalid expire time in '" + c.Name + "' command"
}

// unsupportedOption is the text for a word the EXPIRE family does not know. The word ends it, so
// line breaks at its end are dropped, as Redis does.
func unsupportedOption(word []byte) errorText {
	return "ERR Unsupported option " + string(bytes.TrimRight(clip(word, len(word)), "\r\n"))
}
