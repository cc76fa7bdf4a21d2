//go:build !linux

package netns

import "fmt"

func makeHost(*Host) error { return fmt.Errorf("%w: this is not Linux", ErrUnavailable) }

func (*Host) enter() error { return ErrUnavailable }

func onThread(f func() error) error { return f() }
