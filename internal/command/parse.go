package command

import "math"

// parseInt reads a decimal integer as strictly as Redis: no plus sign, no leading zeros, no "-0",
// no spaces.
func parseInt(b []byte) (int64, bool) {
	if len(b) == 1 && b[0] == '0' {
		return 0, true
	}
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 19 || b[0] < '1' || b[0] > '9' {
		return 0, false
	}
	var v uint64 // 19 digits fit
	for _, d := range b {
		if d < '0' || d > '9' {
			return 0, false
		}
		v = v*10 + uint64(d-'0')
	}
	switch {
	case neg && v <= 1<<63:
		return -int64(v), true
	case !neg && v <= math.MaxInt64:
		return int64(v), true
	}
	return 0, false
}

// isWord reports whether an argument is an option's word, given in lower case.
func isWord(b []byte, lower string) bool { return equalFold(b, lower) }

// intArg is parseInt with Redis's error text.
func intArg(b []byte) (int64, errorText) {
	n, ok := parseInt(b)
	if !ok {
		return 0, msgNotInteger
	}
	return n, ""
}

// int32Arg reads an integer that Redis keeps in a C int.
func int32Arg(b []byte) (int64, errorText) {
	n, ok := parseInt(b)
	switch {
	case !ok:
		return 0, msgNotInteger
	case n < math.MinInt32 || n > math.MaxInt32:
		return 0, MsgIntRange
	}
	return n, ""
}

// dbArg reads a database number. There is one database.
func dbArg(b []byte) errorText {
	n, bad := int32Arg(b)
	switch {
	case bad != "":
		return bad
	case n != 0:
		return msgDBRange
	}
	return ""
}

// timeUnit is how a client spells a time.
type timeUnit uint8

const (
	unitSeconds timeUnit = iota
	unitMillis
)

// expiry is a deadline as a client gave it: relative to now or absolute, in its unit.
type expiry struct {
	set      bool
	absolute bool
	unit     timeUnit
	arg      []byte // the number as sent
}

// resolve returns the deadline in unix ms, for the SET family and GETEX: positive times only.
func (x expiry) resolve(c *Ctx) (int64, errorText) {
	ms, bad := intArg(x.arg)
	if bad != "" {
		return 0, bad
	}
	if ms <= 0 || (x.unit == unitSeconds && ms > math.MaxInt64/1000) {
		return 0, expireTimeError(c.Cmd)
	}
	if x.unit == unitSeconds {
		ms *= 1000
	}
	if !x.absolute {
		if ms > math.MaxInt64-c.Now {
			return 0, expireTimeError(c.Cmd)
		}
		ms += c.Now
	}
	return ms, ""
}

// resolveSigned is resolve for the EXPIRE family: times may be negative.
func (x expiry) resolveSigned(c *Ctx) (int64, errorText) {
	ms, bad := intArg(x.arg)
	if bad != "" {
		return 0, bad
	}
	if x.unit == unitSeconds {
		if ms > math.MaxInt64/1000 || ms < math.MinInt64/1000 {
			return 0, expireTimeError(c.Cmd)
		}
		ms *= 1000
	}
	if !x.absolute {
		if ms > math.MaxInt64-c.Now {
			return 0, expireTimeError(c.Cmd)
		}
		ms += c.Now
	}
	return ms, ""
}
