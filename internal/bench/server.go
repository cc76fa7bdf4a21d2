package bench

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Limits of starting and stopping a server; loading 10M keys takes a while.
const (
	startLimit = 2 * time.Minute
	stopLimit  = 30 * time.Second
)

// Command makes the command line, without the binary, of a server on a port of 127.0.0.1 with its
// data in dir.
type Command func(port int, dir string) []string

// KevyCommand is kevy's with the given further flags.
func KevyCommand(flags ...string) Command {
	return func(port int, dir string) []string {
		return append([]string{
			"serve", "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
			"--loglevel", "warning",
		}, flags...)
	}
}

// NoSnapshots are flags with which kevy, like redis-server, writes no snapshots of its own accord: a stretch of a few seconds holds one or none.
var NoSnapshots = []string{"--auto-aof-rewrite-percentage", "0"}

// Server is a server process that this package started, and ends.
type Server struct {
	Name string
	Addr string

	path    string
	command Command
	dir     string
	port    int
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	log     string        // file of what it prints
}

// Start starts the binary at path with its data in dir/data on a free port and waits until it
// answers.
func Start(name, path, dir string, command Command) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{
		Name: name, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		path: path, command: command, dir: filepath.Join(dir, "data"), port: port,
		log: filepath.Join(dir, "server.log"),
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	return s, s.launch()
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func (s *Server) launch() error {
	out, err := os.Create(s.log)
	if err != nil {
		return err
	}
	defer out.Close() // the process has its own descriptor
	s.cmd = exec.Command(s.path, s.command(s.port, s.dir)...)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KEVY_") })
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(s.cmd, s.ended)
	if err := s.waitReady(); err != nil {
		return errors.Join(err, s.Stop())
	}
	return nil
}

// waitReady waits until the server answers PING with PONG, not with LOADING.
func (s *Server) waitReady() error {
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if v, err := Ask(s.Addr, "PING"); err == nil && v == "PONG" {
			return nil
		}
		select {
		case <-s.ended:
			text, _ := os.ReadFile(s.log)
			return fmt.Errorf("bench: %s ended at its start: %.2000s", s.Name, text)
		default:
		}
	}
	return fmt.Errorf("bench: %s did not answer within %s", s.Name, startLimit)
}

// PID is the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop ends the server as SIGTERM does, or by force if that takes too long.
func (s *Server) Stop() error {
	if s.cmd == nil || s.cmd.Process == nil {
		return nil
	}
	select {
	case <-s.ended:
		return nil
	default:
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(stopLimit):
		_ = s.cmd.Process.Kill()
		<-s.ended
		return fmt.Errorf("bench: %s did not stop within %s", s.Name, stopLimit)
	}
}

// Restart stops the server and starts it again on the same data. It returns the time from the start
// of the process to its first PONG.
func (s *Server) Restart() (time.Duration, error) {
	if err := s.Stop(); err != nil {
		return 0, err
	}
	start := time.Now()
	err := s.launch()
	return time.Since(start), err
}

// Target is the server that a benchmark drives.
type Target struct {
	Addr string
	PID  int // 0: not on this machine

	server *Server // not nil: started for this benchmark
	dir    string
}

// Open returns the server at addr or, if addr is empty, starts kevy (the binary at path) with the
// flags on a free port and a temporary directory.
func Open(addr, path string, flags ...string) (*Target, error) {
	if addr != "" {
		return &Target{Addr: addr, PID: localPID(addr)}, nil
	}
	dir, err := os.MkdirTemp("", "kevy-bench-")
	if err != nil {
		return nil, err
	}
	s, err := Start("kevy", path, dir, KevyCommand(flags...))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Target{Addr: s.Addr, PID: s.PID(), server: s, dir: dir}, nil
}

// Close stops the server and removes its data if Open has started it.
func (t *Target) Close() error {
	if t.server == nil {
		return nil
	}
	return errors.Join(t.server.Stop(), os.RemoveAll(t.dir))
}
