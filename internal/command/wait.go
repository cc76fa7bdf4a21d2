package command

import "math"

// ParseWait reads WAIT numreplicas timeout; timeout is in ms, 0 for ever. bad is an error reply, or "".
func ParseWait(args [][]byte, now int64) (replicas, timeout int64, bad string) {
	if replicas, bad = intArg(args[1]); bad != "" {
		return 0, 0, bad
	}
	timeout, bad = timeoutArg(args[2], now)
	return replicas, timeout, bad
}

// ParseWaitAOF reads WAITAOF numlocal numreplicas timeout.
func ParseWaitAOF(args [][]byte, now int64) (local, replicas, timeout int64, bad string) {
	if local, bad = intArg(args[1]); bad != "" {
		return 0, 0, 0, bad
	}
	if local < 0 || local > 1 {
		return 0, 0, 0, MsgZeroOrOne
	}
	if replicas, bad = intArg(args[2]); bad == "" && replicas < 0 {
		bad = msgNotPositive
	}
	if bad != "" {
		return 0, 0, 0, bad
	}
	timeout, bad = timeoutArg(args[3], now)
	return local, replicas, timeout, bad
}

// timeoutArg reads a timeout in ms.
func timeoutArg(b []byte, now int64) (int64, errorText) {
	ms, ok := parseInt(b)
	switch {
	case !ok:
		return 0, msgTimeoutInt
	case ms < 0:
		return 0, msgTimeoutNeg
	case ms > math.MaxInt64-now:
		return 0, msgTimeoutRange
	}
	return ms, ""
}
