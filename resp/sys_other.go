//go:build !linux

package resp

import (
	"syscall"
	"time"
)

// newEvents returns nil: there are no event loops on this system, connections have goroutines.
func newEvents(*Server) (backend, error) { return nil, nil }

// prepareSocket has nothing to do: package net and serveFrom set the options of accepted sockets.
func prepareSocket(string, syscall.RawConn, time.Duration) error { return nil }
