package goredis

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

var listens = regexp.MustCompile(`(?m)^tcp_port:(\d+)\r$`)

// TestSentinel kills the primary; a client that asks sentinels for it goes on, and so does its subscriber.
func TestSentinel(t *testing.T) {
	sentinels := os.Getenv("KEVY_SENTINELS")
	if sentinels == "" {
		t.Skip("KEVY_SENTINELS is not set: test/clients/run goredis-sentinel sets it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "kevy", SentinelAddrs: strings.Fields(sentinels)})
	defer func() { _ = c.Close() }()
	news := c.Subscribe(ctx, "news")
	defer func() { _ = news.Close() }()

	// works writes until so many writes in a row have been acknowledged, and returns the port they went to.
	works := func(other string) (port string) {
		for row := 0; row < 50; {
			if ctx.Err() != nil {
				t.Fatalf("no %d writes in a row, besides those at port %s", 50, other)
			}
			err := c.Incr(ctx, "n").Err()
			info, err2 := c.Info(ctx, "server").Result()
			if m := listens.FindStringSubmatch(info); err == nil && err2 == nil && m != nil && m[1] != other {
				port, row = m[1], row+1
			} else {
				row = 0
			}
			time.Sleep(2 * time.Millisecond)
		}
		return port
	}
	first := works("")
	if n, err := c.Wait(ctx, 2, 10*time.Second).Result(); err != nil || n != 2 {
		t.Fatalf("WAIT 2: %d, %v", n, err)
	}
	before, err := c.Get(ctx, "n").Int()
	if err != nil {
		t.Fatal(err)
	}
	kill(t, first)
	second := works(first)
	if after, err := c.Get(ctx, "n").Int(); err != nil || after < before+50 {
		t.Errorf("%d after %d and 50 INCRs, %v", after, before, err)
	}
	for heard := false; !heard && ctx.Err() == nil; {
		if err := c.Publish(ctx, "news", "from "+second).Err(); err != nil {
			t.Fatal(err)
		}
		select {
		case m := <-news.Channel():
			heard = m.Payload == "from "+second
		case <-time.After(100 * time.Millisecond):
		}
	}
	if ctx.Err() != nil {
		t.Error("the subscriber hears nothing any more")
	}
}

// kill kills the server that listens on a port. KEVY_PIDS has port=pid pairs.
func kill(t *testing.T, port string) {
	t.Helper()
	for pair := range strings.FieldsSeq(os.Getenv("KEVY_PIDS")) {
		if at, text, _ := strings.Cut(pair, "="); at == port {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("KEVY_PIDS has no port %s", port)
}
