package resp

import (
	"errors"
	"sync/atomic"
)

// Limits of the protocol that are fixed, as in Redis.
const (
	maxArguments  = 1 << 20   // elements of one request
	maxLine       = 64 << 10  // an inline request, or the digits of a length
	maxUnauthArgs = 10        // elements of a request before authentication
	maxUnauthBulk = 16 << 10  // bytes of an argument before authentication
	minMaxBulk    = 16 << 10  // the least value of Limits.MaxBulk
	maxHeld       = 1<<32 - 1 // offsets within one request are kept in 32 bits
)

// Defaults of Limits.
const (
	DefaultMaxBulk     = 512 << 20
	DefaultQueryBuffer = 1 << 30
)

// Limits bounds what one connection may make the server hold for its requests. The fields may be
// changed at any time from any goroutine. Zero means the default.
type Limits struct {
	// MaxBulk is the largest argument in bytes (Redis: proto-max-bulk-len); at least 16 KiB.
	MaxBulk atomic.Int64
	// QueryBuffer is the most bytes of unfinished requests (Redis: client-query-buffer-limit).
	QueryBuffer atomic.Int64
}

func (l *Limits) maxBulk() int64 {
	v := l.MaxBulk.Load()
	switch {
	case v == 0:
		return DefaultMaxBulk
	case v < minMaxBulk:
		return minMaxBulk
	}
	return min(v, maxHeld/2)
}

func (l *Limits) queryBuffer() int64 {
	v := l.QueryBuffer.Load()
	if v <= 0 {
		return DefaultQueryBuffer
	}
	return min(v, maxHeld)
}

// ErrIncomplete says that the buffered bytes hold no further complete request.
var ErrIncomplete = errors.New("resp: incomplete request")

// ErrQueryBuffer says that a client sent more bytes of unfinished requests than Limits.QueryBuffer.
var ErrQueryBuffer = errors.New("resp: query buffer limit exceeded")

// ProtocolError is a request that breaks the protocol. Its text is what Redis replies after "ERR ".
type ProtocolError struct{ msg string }

// Error returns "Protocol error: ...".
func (e *ProtocolError) Error() string { return "Protocol error: " + e.msg }

func isProtocolError(err error) bool {
	var pe *ProtocolError
	return errors.As(err, &pe)
}

// The protocol errors of Redis.
var (
	errBigCount     = &ProtocolError{"too big mbulk count string"}
	errCount        = &ProtocolError{"invalid multibulk length"}
	errUnauthCount  = &ProtocolError{"unauthenticated multibulk length"}
	errBigBulkCount = &ProtocolError{"too big bulk count string"}
	errBulk         = &ProtocolError{"invalid bulk length"}
	errUnauthBulk   = &ProtocolError{"unauthenticated bulk length"}
	errBigInline    = &ProtocolError{"too big inline request"}
	errQuotes       = &ProtocolError{"unbalanced quotes in request"}
)

func errExpectedBulk(got byte) error {
	return &ProtocolError{"expected '$', got '" + string([]byte{got}) + "'"}
}
