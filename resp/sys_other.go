//go:build !linux

package resp

import "syscall"

// newEvents returns nil: there are no event loops on this system, connections have goroutines.
func newEvents(*Server) (backend, error) { return nil, nil }

// prepareSocket has nothing to do: package net sets the options of the sockets it accepts.
func prepareSocket(string, syscall.RawConn, *Config) error { return nil }
