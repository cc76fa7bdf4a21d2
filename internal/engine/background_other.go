//go:build !linux

package engine

// inBackground runs fn. Threads have no priorities of their own here.
func inBackground(fn func(giveWay func())) { fn(func() {}) }
