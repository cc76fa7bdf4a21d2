package oracle

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// TestSync has the tools that ask a server for its data by SYNC ask kevy: redis-cli --rdb and --functions-rdb, whose files a redis-server loads, and
// --replica, which shows the writes that come.
func TestSync(t *testing.T) {
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("no redis-cli")
	}
	srv := proc.ForTest(t, "--shards", "3")
	kevy := emptied(t, "kevy", srv)
	play(t, kevy, 930)
	c, dir := kevy.conns[1], t.TempDir()
	if _, err := c.Must("FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\nredis.register_function('f', function() return 1 end)"); err != nil {
		t.Fatal(err)
	}
	for mode, keys := range map[string]bool{"--rdb": true, "--functions-rdb": false} {
		file := mode[2:] + ".rdb"
		if out, err := exec.Command(cli, "-p", strconv.Itoa(srv.Port), mode, filepath.Join(dir, file)).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", mode, err, out)
		}
		redis, err := proc.RedisForTest(t, "--dir", dir, "--dbfilename", file).Dial()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(redis.Close)
		if got, err := redis.Must("FUNCTION", "LIST"); err != nil || !strings.Contains(got.String(), "lib") {
			t.Errorf("%s: libraries: %s, %v", mode, got.String(), err)
		}
		if keys {
			equal(t, "DUMP of all keys of the file", func() (want, got []string) { return dumps(t, redis), dumps(t, c) })
		} else if got, err := redis.Must("DBSIZE"); err != nil || got.Text() != "0" {
			t.Errorf("%s: %s keys, %v", mode, got.String(), err)
		}
	}
	watchWrites(t, cli, srv.Port, c)
	until(t, "the tools are gone", func() string {
		if got := field(t, c, "connected_slaves"); got != "0" {
			return got
		}
		return ""
	})
}

// watchWrites has redis-cli --replica show writes of c.
func watchWrites(t *testing.T, cli string, port int, c *wire.Conn) {
	t.Helper()
	tail := exec.Command(cli, "-p", strconv.Itoa(port), "--replica")
	out, err := tail.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tail.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = tail.Process.Kill(), tail.Wait() }()
	var over atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 1; !over.Load(); n++ {
			if _, err := c.Must("SET", "seen", strconv.Itoa(n)); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	last, seen := 0, 0
	for in := bufio.NewScanner(out); seen < 20 && in.Scan(); {
		n := 0
		if _, err := fmt.Sscanf(in.Text(), `"SET","seen","%d"`, &n); err != nil {
			continue // what redis-cli itself says
		}
		if seen++; last > 0 && n != last+1 {
			t.Errorf("write %d follows %d", n, last)
		}
		last = n
	}
	over.Store(true)
	writer.Wait()
	if seen < 20 {
		t.Errorf("--replica has shown %d writes", seen)
	}
}
