package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// ErrNoRedis says that there is no redis-server on this machine.
var ErrNoRedis = errors.New("proc: redis-server is not installed (apt-get install redis-server)")

// ErrNoSentinel says that there is no redis-sentinel on this machine.
var ErrNoSentinel = errors.New("proc: redis-sentinel is not installed (apt-get install redis-sentinel)")

var built struct {
	sync.Mutex
	dir, binary string
	err         error
}

// Main runs a package's tests and removes the binary that Kevy built for them.
func Main(m *testing.M) int {
	code := m.Run()
	built.Lock()
	defer built.Unlock()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	return code
}

// Kevy returns the path of the kevy binary, which it builds on first use.
func Kevy() (string, error) {
	if b := os.Getenv("TESTKIT_KEVY"); b != "" {
		return filepath.Abs(b)
	}
	built.Lock()
	defer built.Unlock()
	if built.binary == "" && built.err == nil {
		built.err = build()
	}
	return built.binary, built.err
}

func build() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kevy-bin-")
	if err != nil {
		return err
	}
	built.dir = dir
	bin := filepath.Join(dir, "kevy")
	args := []string{"build", "-o", bin}
	if os.Getenv("TESTKIT_RACE") == "1" {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/kevy")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("proc: building kevy: %w\n%s", err, out)
	}
	built.binary = bin
	return nil
}

// moduleRoot finds the tree this file was compiled from, or else the tree around the working
// directory.
func moduleRoot() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Dir(file)
	if strings.HasPrefix(file, "github.com/") { // built with -trimpath
		wd, err := os.Getwd()
		if err != nil {
			return "", err
		}
		dir = wd
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("proc: no go.mod above %s", dir)
		}
	}
}

// Redis returns the path of redis-server, or ErrNoRedis.
func Redis() (string, error) {
	p, err := exec.LookPath("redis-server")
	if err != nil {
		return "", ErrNoRedis
	}
	return p, nil
}

// Sentinel returns the path of redis-sentinel, or ErrNoSentinel.
func Sentinel() (string, error) {
	p, err := exec.LookPath("redis-sentinel")
	if err != nil {
		return "", ErrNoSentinel
	}
	return p, nil
}
