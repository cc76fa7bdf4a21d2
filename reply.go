package kevy

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Error is an error reply of a command, in Redis's words: the code first ("WRONGTYPE Operation
// against ...").
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

// wireError makes an error whose text is a reply one that is an Error.
func wireError(err error) error {
	if err == nil || errors.Is(err, ErrClosed) {
		return err
	}
	return Error(err.Error())
}

var errReply = errors.New("kevy: malformed reply")

// parseReply decodes the first RESP value of b: string for simple and bulk strings, int64, nil,
// []any, and Error for an error reply.
func parseReply(b []byte) (v any, rest []byte, err error) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(line) == 0 {
		return nil, nil, errReply
	}
	switch body := line[1:]; line[0] {
	case '+':
		return string(body), rest, nil
	case '-':
		return Error(body), rest, nil
	case ':':
		n, err := strconv.ParseInt(string(body), 10, 64)
		if err != nil {
			if u, uerr := strconv.ParseUint(string(body), 10, 64); uerr == nil {
				return u, rest, nil
			}
		}
		return n, rest, err
	case '$':
		return parseBulk(body, rest)
	case '*':
		return parseArray(body, rest)
	}
	return nil, nil, fmt.Errorf("%w: %q", errReply, line[0])
}

func parseBulk(size, rest []byte) (any, []byte, error) {
	n, err := strconv.Atoi(string(size))
	if err == nil && n < 0 {
		return nil, rest, nil
	}
	if err != nil || n > len(rest)-2 {
		return nil, nil, errReply
	}
	return string(rest[:n]), rest[n+2:], nil
}

func parseArray(size, rest []byte) (any, []byte, error) {
	n, err := strconv.Atoi(string(size))
	if err != nil || n > len(rest) {
		return nil, nil, errReply
	}
	if n < 0 {
		return nil, rest, nil
	}
	list := make([]any, n)
	for i := range list {
		if list[i], rest, err = parseReply(rest); err != nil {
			return nil, nil, err
		}
	}
	return list, rest, nil
}
