// Package s3 starts a real S3 server on this machine, for tests: versitygw over a directory. It is built from the Go
// module proxy on first use, or taken from where TESTKIT_S3 says.
package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// module is what is built, at a fixed version.
const module = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"

// Keys of the server's only user; Start puts them into the environment.
const (
	accessKey = "kevytest"
	secretKey = "kevytest-secret"
	bucket    = "archive"
)

var binary = sync.OnceValues(func() (string, error) {
	if b := os.Getenv("TESTKIT_S3"); b != "" {
		return filepath.Abs(b)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "kevy-testkit", filepath.Base(module))
	bin := filepath.Join(dir, "versitygw")
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "install", module)
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
})

// Server is a server that runs until its test ends.
type Server struct {
	Dir  string // the bucket's objects are files below it
	Addr string
	cmd  *exec.Cmd
}

// Start starts a server with an empty bucket and sets the credentials in the environment. Where versitygw can't be had
// the test is skipped, unless CI is set: there it fails.
func Start(t *testing.T) *Server {
	t.Helper()
	bin, err := binary()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no S3 server to test against: %s can't be built: %v", module, err)
		}
		t.Skipf("no S3 server to test against: %s can't be built: %v", module, err)
	}
	root := t.TempDir()
	s := &Server{Dir: filepath.Join(root, bucket)}
	if err := os.Mkdir(s.Dir, 0o750); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	if s.Addr, err = freeAddr(); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(bin, "--port", s.Addr, "--access", accessKey, "--secret", secretKey, "--quiet", "posix", root)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	if err := s.wait(); err != nil {
		t.Fatal(err)
	}
	return s
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// wait waits until the server answers.
func (s *Server) wait() error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		r, err := http.Get("http://" + s.Addr + "/")
		if err == nil {
			return r.Body.Close()
		}
		if time.Now().After(deadline) {
			return errors.Join(errors.New("versitygw does not answer"), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// URL is that of an archive in the bucket.
func (s *Server) URL(prefix string) string {
	return fmt.Sprintf("s3://%s/%s?endpoint=http://%s&region=us-east-1", bucket, prefix, s.Addr)
}

// Path is the file of an object.
func (s *Server) Path(prefix, name string) string { return filepath.Join(s.Dir, prefix, name) }

// Stop ends the server. Stopping twice is allowed.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
