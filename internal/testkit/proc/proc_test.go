package proc

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestRedisStartsAndStops(t *testing.T) {
	s := RedisForTest(t)
	c, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r, err := c.Must("ECHO", "hello"); err != nil || r.Text() != "hello" {
		t.Fatalf("got %q, %v", r.Raw, err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if !s.Exited() {
		t.Error("still running after Stop")
	}
}

func TestStartFailureShowsTheLog(t *testing.T) {
	if _, err := Redis(); err != nil {
		t.Skip(err)
	}
	_, err := StartRedis(t.TempDir(), "--no-such-option", "1")
	if err == nil {
		t.Fatal("started with an unknown option")
	}
	t.Log(err)
}
