package bench

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Progress shows on a terminal what is being done. A nil Progress shows nothing.
type Progress struct {
	w io.Writer
}

// NewProgress returns a Progress on f, or nil if f is no terminal.
func NewProgress(f *os.File) *Progress {
	fi, err := f.Stat()
	if err != nil || fi.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return &Progress{w: f}
}

// Say shows a line in place of the last one.
func (p *Progress) Say(format string, args ...any) {
	if p != nil {
		fmt.Fprintf(p.w, "\r\x1b[K"+format, args...)
	}
}

// Clear removes the line.
func (p *Progress) Clear() { p.Say("") }

// Watch shows how far some work is until stop is called, which also removes the line.
func (p *Progress) Watch(what string, state func() string) (stop func()) {
	if p == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(200 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				p.Say("%s: %s", what, state())
			case <-done:
				p.Clear()
				return
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}
