package oracle

import (
	"bytes"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/testkit/proc"
)

// TestDumpRunsOnRedis runs random streams on kevy, each after a FLUSHALL, and pipes kevy log dump --format resp of the
// directory in use into a stock redis-server with redis-cli --pipe: keys, values and deadlines must be the same.
func TestDumpRunsOnRedis(t *testing.T) {
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("redis-cli is not installed (apt-get install redis-tools)")
	}
	bin, err := proc.Kevy()
	if err != nil {
		t.Fatal(err)
	}
	srv := proc.ForTest(t, "--shards", strconv.Itoa(feedShards), "--appendfsync", "no")
	redis := proc.RedisForTest(t)
	kevy, stock := &Target{Name: "kevy", Addr: srv.Addr}, &Target{Name: "redis-server", Addr: redis.Addr}
	t.Cleanup(kevy.Close)
	t.Cleanup(stock.Close)
	for s := range uint64(4) {
		for _, target := range []*Target{kevy, stock} {
			if err := target.reset(); err != nil {
				t.Fatal(err)
			}
		}
		for _, st := range NewGen(s + 100).Stream(streamLen) {
			if _, err := kevy.run(st); err != nil {
				t.Fatalf("seed %d: %v", s, err)
			}
			time.Sleep(st.Sleep)
		}
		want := keyspace(t, kevy.conns[1])
		dump := exec.Command(bin, "log", "dump", srv.Dir, "--format", "resp")
		frames, err := dump.Output()
		if err != nil {
			t.Fatal(err)
		}
		pipe := exec.Command(cli, "-p", strconv.Itoa(redis.Port), "--pipe")
		pipe.Stdin = bytes.NewReader(frames)
		out, err := pipe.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "errors: 0") {
			t.Fatalf("seed %d: redis-cli --pipe: %v\n%s", s, err, out)
		}
		if got := keyspace(t, stock.conns[1]); !slices.Equal(want, got) {
			t.Fatalf("seed %d: kevy holds\n%s\nits dump makes\n%s", s, strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
		t.Logf("seed %d: %d bytes dumped, %d keys", s, len(frames), len(want))
	}
}
