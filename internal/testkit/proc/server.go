package proc

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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// startLimit bounds the time from start to the first PONG.
const startLimit = 30 * time.Second

// Host is where servers run.
type Host interface {
	// IP returns the address at which others reach it.
	IP() string
	// Do runs f there: connections that it opens and processes that it starts are that host's.
	Do(f func() error) error
}

type loopback struct{}

func (loopback) IP() string              { return "127.0.0.1" }
func (loopback) Do(f func() error) error { return f() }

// Loopback is this machine, by its loopback address.
var Loopback Host = loopback{}

// Server is a running server process.
type Server struct {
	Addr string // host:port
	Port int
	Dir  string // its data directory

	host Host
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{} // closed when the process has ended
	err  error         // of Wait; read after done

	explained bool // Explain has printed the log
}

// logBuffer keeps the last part of what a server printed.
type logBuffer struct {
	mu sync.Mutex
	b  []byte
}

const logKeep = 64 << 10

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	if len(l.b) > 2*logKeep {
		l.b = append(l.b[:0], l.b[len(l.b)-logKeep:]...)
	}
	return len(p), nil
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}

// FreePort returns a port that nobody listened on a moment ago.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// StartKevy starts kevy on dir with the given further flags and waits until it answers.
func StartKevy(dir string, flags ...string) (*Server, error) {
	bin, err := Kevy()
	if err != nil {
		return nil, err
	}
	return startOnFreePort(dir, func(port int) *exec.Cmd { return kevyCommand(bin, Loopback, port, dir, flags) })
}

// StartKevyOn is StartKevy on a host and a port that the caller has chosen: for a server that comes back where it was.
func StartKevyOn(host Host, port int, dir string, flags ...string) (*Server, error) {
	bin, err := Kevy()
	if err != nil {
		return nil, err
	}
	return start(host, dir, port, kevyCommand(bin, host, port, dir, flags))
}

func kevyCommand(bin string, host Host, port int, dir string, flags []string) *exec.Cmd {
	args := []string{"serve", "--bind", host.IP(), "--port", strconv.Itoa(port), "--dir", dir}
	return exec.Command(bin, append(args, flags...)...)
}

// StartRedis starts redis-server without persistence and waits until it answers. One database, as
// kevy has; expired keys are removed at once, as kevy does.
func StartRedis(dir string, flags ...string) (*Server, error) {
	bin, err := Redis()
	if err != nil {
		return nil, err
	}
	return startOnFreePort(dir, func(port int) *exec.Cmd {
		args := []string{
			"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--databases", "1",
			"--save", "", "--appendonly", "no", "--hz", "500", "--active-expire-effort", "10",
			"--enable-debug-command", "yes", "--daemonize", "no",
		}
		return exec.Command(bin, append(args, flags...)...)
	})
}

// StartSentinel starts redis-sentinel on a port with a configuration file, which it rewrites, and waits until it answers.
func StartSentinel(port int, file string) (*Server, error) {
	bin, err := Sentinel()
	if err != nil {
		return nil, err
	}
	return start(Loopback, filepath.Dir(file), port, exec.Command(bin, file, "--bind", "127.0.0.1", "--port", strconv.Itoa(port)))
}

// startOnFreePort tries again when another process took the port between choosing and listening.
func startOnFreePort(dir string, command func(port int) *exec.Cmd) (*Server, error) {
	var last error
	for range 5 {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		s, err := start(Loopback, dir, port, command(port))
		if err == nil {
			return s, nil
		}
		last = err
		if !strings.Contains(strings.ToLower(err.Error()), "address already in use") {
			break
		}
	}
	return nil, last
}

// LaunchKevy starts kevy on dir and does not wait until it answers: for tests that kill it while it
// starts.
func LaunchKevy(dir string, flags ...string) (*Server, error) {
	bin, err := Kevy()
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	return launch(Loopback, dir, port, kevyCommand(bin, Loopback, port, dir, flags))
}

func start(host Host, dir string, port int, cmd *exec.Cmd) (*Server, error) {
	s, err := launch(host, dir, port, cmd)
	if err != nil {
		return nil, err
	}
	if err := s.waitReady(); err != nil {
		_ = s.Kill()
		return nil, err
	}
	return s, nil
}

func launch(host Host, dir string, port int, cmd *exec.Cmd) (*Server, error) {
	s := &Server{
		Addr: net.JoinHostPort(host.IP(), strconv.Itoa(port)),
		host: host,
		Port: port,
		Dir:  dir,
		cmd:  cmd,
		log:  &logBuffer{},
		done: make(chan struct{}),
	}
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.Dir = filepath.Dir(dir)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KEVY_") })
	if err := host.Do(cmd.Start); err != nil {
		return nil, fmt.Errorf("proc: %w", err)
	}
	go func() {
		s.err = cmd.Wait()
		close(s.done)
	}()
	return s, nil
}

func (s *Server) waitReady() error {
	end := time.Now().Add(startLimit)
	for time.Now().Before(end) {
		select {
		case <-s.done:
			return fmt.Errorf("proc: %s ended at its start: %w\n%s", s.cmd.Path, s.exitErr(), s.log)
		default:
		}
		if s.ping() {
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return fmt.Errorf("proc: %s did not answer within %s\n%s", s.cmd.Path, startLimit, s.log)
}

func (s *Server) exitErr() error {
	if s.err == nil {
		return errors.New("exit status 0")
	}
	return s.err
}

func (s *Server) ping() bool {
	c, err := s.Dial()
	if err != nil {
		return false
	}
	defer c.Close()
	r, err := c.Do("PING")
	return err == nil && r.Text() == "PONG"
}

// Dial opens a connection to the server, from its own host.
func (s *Server) Dial() (*wire.Conn, error) { return DialFrom(s.host, s.Addr) }

// DialFrom opens a connection to addr from a host.
func DialFrom(host Host, addr string) (c *wire.Conn, err error) {
	err = host.Do(func() (err error) { c, err = wire.Dial(addr); return err })
	return c, err
}

// Pid returns the process's id.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Log returns the last part of what the server printed.
func (s *Server) Log() string { return s.log.String() }

// Kill ends the server with SIGKILL and waits until it is gone.
func (s *Server) Kill() error {
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.done
	return nil
}

// Freeze stops the server's process where it is, and Thaw lets it go on.
func (s *Server) Freeze() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw ends a Freeze.
func (s *Server) Thaw() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

// Stop asks the server to end with SIGTERM, waits until it is gone and returns an error unless it
// exited with status 0.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.done:
	case <-time.After(startLimit):
		_ = s.Kill()
		return fmt.Errorf("proc: still running %s after SIGTERM\n%s", startLimit, s.log)
	}
	if s.err != nil {
		return fmt.Errorf("proc: after SIGTERM: %w\n%s", s.err, s.log)
	}
	return nil
}

// Exited reports whether the process has ended.
func (s *Server) Exited() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// ForTest starts a kevy in a directory of the test and kills it when the test ends.
func ForTest(t testing.TB, flags ...string) *Server {
	t.Helper()
	s, err := StartKevy(filepath.Join(t.TempDir(), "data"), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.KillAndCheck(t) })
	return s
}

// KillAndCheck kills the server and fails the test if its log tells of a panic or, with
// TESTKIT_RACE, of a data race.
func (s *Server) KillAndCheck(t testing.TB) {
	t.Helper()
	_ = s.Kill()
	if s.explained {
		return
	}
	for _, bad := range []string{"WARNING: DATA RACE", "panic: ", "\ngoroutine 1 "} {
		if strings.Contains(s.Log(), bad) {
			t.Errorf("the server's log says %q:\n%s", bad, s.Log())
			return
		}
	}
}

// RedisForTest starts a redis-server in a directory of the test and kills it when the test ends. It
// skips the test where redis-server is not installed, unless CI is set.
func RedisForTest(t testing.TB, flags ...string) *Server {
	t.Helper()
	s, err := StartRedis(t.TempDir(), flags...)
	if errors.Is(err, ErrNoRedis) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Kill() })
	return s
}
