package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Explain tells what a server is doing that does not answer, for a test's log: how busy the machine is, what each thread waits for, what the server
// has printed. A kevy prints the stacks of its goroutines, and ends.
func (s *Server) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %s, pid %d\n", filepath.Base(s.cmd.Path), s.Addr, s.Pid())
	for _, name := range []string{"/proc/loadavg", "/proc/pressure/io"} {
		if text, err := os.ReadFile(name); err == nil {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.TrimSpace(string(text)))
		}
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", s.Pid())) // the pattern is a good one
	for _, dir := range threads {
		fmt.Fprintf(&b, "thread %s: %s\n", filepath.Base(dir), threadState(dir))
	}
	if args := s.cmd.Args; len(args) > 1 && args[1] == "serve" {
		s.explained = true
		if err := s.cmd.Process.Signal(syscall.SIGQUIT); err == nil {
			select {
			case <-s.done:
			case <-time.After(startLimit):
			}
		}
	}
	return b.String() + s.Log()
}

// threadState says in what state a thread is, and in what function and stack of the kernel.
func threadState(dir string) string {
	stat, _ := os.ReadFile(filepath.Join(dir, "stat")) // it may have ended
	wchan, _ := os.ReadFile(filepath.Join(dir, "wchan"))
	stack, _ := os.ReadFile(filepath.Join(dir, "stack"))
	_, state, _ := strings.Cut(string(stat), ") ")
	state, _, _ = strings.Cut(state, " ")
	return fmt.Sprintf("%s in %s: %s", state, wchan, strings.Join(strings.Fields(string(stack)), " "))
}
