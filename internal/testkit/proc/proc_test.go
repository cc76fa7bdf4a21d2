package proc

import (
	"os"
	"strings"
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

func TestExplain(t *testing.T) {
	kevy, redis := ForTest(t), RedisForTest(t)
	text := kevy.Explain()
	for _, word := range []string{"thread ", "goroutine ", "epoll"} {
		if !strings.Contains(text, word) {
			t.Errorf("no %q of kevy in:\n%s", word, text)
		}
	}
	if !kevy.Exited() {
		t.Error("kevy goes on")
	}
	if text = redis.Explain(); !strings.Contains(text, "thread ") || redis.Exited() {
		t.Errorf("of redis-server, which must go on:\n%s", text)
	}
}
