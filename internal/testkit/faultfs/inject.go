package faultfs

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// ErrInjected is the error that injectors use when they are given none.
var ErrInjected = errors.New("faultfs: injected")

// Injector decides whether an operation fails: with the error it returns, and without being done,
// except for Close and for errors made by Short. It is called concurrently if the file system is.
type Injector func(op Op) error

// shortError is made by Short.
type shortError struct{ err error }

func (e *shortError) Error() string { return fmt.Sprintf("faultfs: short: %v", e.err) }
func (e *shortError) Unwrap() error { return e.err }

// Short makes a WriteAt that fails with the result write the first half before; other operations
// fail as with err.
func Short(err error) error { return &shortError{orInjected(err)} }

// FailNth fails the nth operation of a kind (1: the next one) and no other. A nil err is ErrInjected.
func FailNth(kind OpKind, n int, err error) Injector {
	return countdown(kind, n, func(left int64) bool { return left == 0 }, err)
}

// FailFrom fails the nth operation of a kind (1: the next one) and all later ones of that kind.
// A nil err is ErrInjected.
func FailFrom(kind OpKind, n int, err error) Injector {
	return countdown(kind, n, func(left int64) bool { return left <= 0 }, err)
}

// FailNthWrite fails the nth operation that is a write of any kind. A nil err is ErrInjected.
func FailNthWrite(n int, err error) Injector {
	var seen atomic.Int64
	return func(op Op) error {
		if op.Kind.IsWrite() && seen.Add(1) == int64(n) {
			return orInjected(err)
		}
		return nil
	}
}

func countdown(kind OpKind, n int, fails func(left int64) bool, err error) Injector {
	var left atomic.Int64
	left.Store(int64(n))
	return func(op Op) error {
		if op.Kind == kind && fails(left.Add(-1)) {
			return orInjected(err)
		}
		return nil
	}
}

// OnPath passes only operations on to inject whose path contains part.
func OnPath(part string, inject Injector) Injector {
	return func(op Op) error {
		if strings.Contains(op.Path, part) {
			return inject(op)
		}
		return nil
	}
}

// Any asks all injectors; the first error counts.
func Any(injectors ...Injector) Injector {
	return func(op Op) error {
		var first error
		for _, inject := range injectors {
			if err := inject(op); first == nil {
				first = err
			}
		}
		return first
	}
}

func orInjected(err error) error {
	if err == nil {
		return ErrInjected
	}
	return err
}
