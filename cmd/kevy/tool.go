package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/kevydb/kevy/internal/history"
)

// newFlags returns an empty set of flags whose messages the caller prints.
func newFlags(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.Usage = func() {}
	fs.SortFlags = false
	fs.SetOutput(io.Discard)
	return fs
}

// tool is what the subcommands that work on directories have in common.
type tool struct {
	name   string // as in messages
	usage  string // with one %s for the flags
	stdout io.Writer
	stderr io.Writer
	json   bool
	meter  history.Meter
}

// parse reads the flags. When done is true the command ends with the code.
func (t *tool) parse(fs *pflag.FlagSet, args []string, check func() error) (done bool, code int) {
	fs.BoolVar(&t.json, "json", false, "print JSON")
	err := fs.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintf(t.stdout, t.usage, fs.FlagUsages())
		return true, exitOK
	}
	if err == nil {
		err = checkGiven(fs)
	}
	if err == nil {
		err = check()
	}
	if err != nil {
		fmt.Fprintf(t.stderr, "%s: %v\n", t.name, err)
		return true, exitUsage
	}
	return false, exitOK
}

// checkGiven refuses flags that were given without a value, as of a variable of the shell that is not set: without the flag the command would be another one.
func checkGiven(fs *pflag.FlagSet) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "prefix", "password": // all keys; none
		default:
			if err == nil && f.Value.Type() == "string" && f.Value.String() == "" {
				err = fmt.Errorf("--%s is empty", f.Name)
			}
		}
	})
	return err
}

// fail prints err and returns the exit code of a command that could not do what it was told to.
func (t *tool) fail(err error) int {
	fmt.Fprintf(t.stderr, "%s: %v\n", t.name, loginHint(err))
	return exitFailed
}

// print writes v as JSON, or text otherwise, and returns the exit code.
func (t *tool) print(v any, text func() []byte) int {
	var err error
	if t.json {
		enc := json.NewEncoder(t.stdout)
		enc.SetEscapeHTML(false)
		err = enc.Encode(v)
	} else {
		_, err = t.stdout.Write(text())
	}
	if err != nil {
		return t.fail(err)
	}
	return exitOK
}

// terminal returns w as a file if it is a terminal.
func terminal(w io.Writer) (f *os.File, ok bool) {
	if f, ok = w.(*os.File); !ok {
		return nil, false
	}
	fi, err := f.Stat()
	return f, err == nil && fi.Mode()&os.ModeCharDevice != 0
}

// watch shows on a terminal how far the meter is, until stop is called.
func (t *tool) watch() (stop func()) {
	f, ok := terminal(t.stderr)
	if !ok {
		return func() {}
	}
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		every := time.NewTicker(200 * time.Millisecond)
		defer every.Stop()
		p := progress{}
		for {
			select {
			case <-quit:
				fmt.Fprint(f, "\r\x1b[K")
				return
			case now := <-every.C:
				phase, done, total := t.meter.Read()
				fmt.Fprintf(f, "\r\x1b[K%s", p.line(now, phase, done, total))
			}
		}
	})
	return func() { close(quit); wg.Wait() }
}

// progress remembers when the present phase began.
type progress struct {
	phase string
	began time.Time
	first uint64
}

// line describes how far an operation is, at what rate it goes on, and when it will be done.
func (p *progress) line(now time.Time, phase string, done, total uint64) string {
	if phase != p.phase || done < p.first {
		*p = progress{phase, now, done}
	}
	s := phase
	if total > 0 {
		s = fmt.Sprintf("%s: %d of %d (%d%%)", phase, done, total, min(100, done*100/total))
	} else if done > 0 {
		s = fmt.Sprintf("%s: %d frames", phase, done)
	}
	took := now.Sub(p.began).Seconds()
	if took <= 0 || done == p.first {
		return s
	}
	rate := float64(done-p.first) / took
	s += fmt.Sprintf(", %.0f/s", rate)
	if total > done {
		s += fmt.Sprintf(", %s left", time.Duration(float64(total-done)/rate*float64(time.Second)).Round(time.Second))
	}
	return s
}
