package server

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// redisFields are the fields of INFO by section that libraries and Redis's own tests read.
var redisFields = map[string]string{
	"server":      "redis_version redis_mode os arch_bits multiplexing_api process_id run_id tcp_port uptime_in_seconds uptime_in_days hz configured_hz lru_clock executable config_file kevy_version",
	"clients":     "connected_clients maxclients client_recent_max_input_buffer client_recent_max_output_buffer blocked_clients tracking_clients clients_in_timeout_table",
	"memory":      "used_memory used_memory_human used_memory_rss used_memory_peak used_memory_peak_perc used_memory_overhead used_memory_startup used_memory_dataset used_memory_lua maxmemory maxmemory_human maxmemory_policy mem_fragmentation_ratio mem_allocator lazyfree_pending_objects lazyfreed_objects total_system_memory",
	"persistence": "loading async_loading rdb_changes_since_last_save rdb_bgsave_in_progress rdb_last_save_time rdb_last_bgsave_status rdb_last_bgsave_time_sec aof_enabled aof_rewrite_in_progress aof_rewrite_scheduled aof_last_bgrewrite_status aof_last_write_status aof_current_size",
	"stats":       "total_connections_received total_commands_processed instantaneous_ops_per_sec total_net_input_bytes total_net_output_bytes rejected_connections expired_keys evicted_keys keyspace_hits keyspace_misses total_forks total_error_replies unexpected_error_replies acl_access_denied_auth",
	"replication": "role connected_slaves master_replid master_repl_offset second_repl_offset repl_backlog_active",
	"cpu":         "used_cpu_sys used_cpu_user used_cpu_sys_children used_cpu_user_children",
	"cluster":     "cluster_enabled",
	"feed":        "feed_enabled feed_shards feed_buffer_size shard0 shard1",
}

func TestInfoFields(t *testing.T) {
	c := start(t, testOptions{}).client()
	c.want("SET k v EX 100", "+OK")
	all := c.do("INFO everything")
	for section, fields := range redisFields {
		text := c.do("INFO " + section)
		if !strings.HasPrefix(strings.ToLower(text), "# "+section+"\r\n") {
			t.Errorf("INFO %s begins with %.20q", section, text)
		}
		for f := range strings.FieldsSeq(fields) {
			if !strings.Contains(text, "\r\n"+f+":") || !strings.Contains(all, "\r\n"+f+":") {
				t.Errorf("INFO %s has no %s", section, f)
			}
		}
	}
	line := regexp.MustCompile(`^(# \w+|[\w|.]+:.*|)$`)
	for l := range strings.SplitSeq(all, "\r\n") {
		if !line.MatchString(l) {
			t.Errorf("line %q", l)
		}
	}
	if got := c.field("keyspace", "db0"); got != "keys=1,expires=1,avg_ttl=0" {
		t.Errorf("db0:%s", got)
	}
}

func TestInfoSections(t *testing.T) {
	c := start(t, testOptions{}).client()
	titles := func(args string) string {
		var out []string
		for l := range strings.Lines(c.do("INFO" + args)) {
			if strings.HasPrefix(l, "#") {
				out = append(out, strings.ToLower(strings.TrimSpace(l[2:])))
			}
		}
		return strings.Join(out, " ")
	}
	const standard = "server clients memory persistence stats replication cpu modules errorstats cluster feed keyspace"
	for args, want := range map[string]string{
		"":                      standard,
		" default":              standard,
		" all":                  "server clients memory persistence stats replication cpu modules commandstats errorstats latencystats cluster feed keyspace",
		" CPU sentinel":         "cpu",
		" cpu memory":           "memory cpu",
		" commandstats default": "server clients memory persistence stats replication cpu modules commandstats errorstats cluster feed keyspace",
		" nope":                 "",
	} {
		if got := titles(args); got != want {
			t.Errorf("INFO%s: %s\nwant %s", args, got, want)
		}
	}
}

func TestCommandStats(t *testing.T) {
	c := start(t, testOptions{}).client()
	fit := func(section, field, pattern string) {
		t.Helper()
		if got := c.field(section, field); !regexp.MustCompile("^" + pattern + "$").MatchString(got) {
			t.Errorf("%s:%s, want %s", field, got, pattern)
		}
	}
	const us = `usec=\d+,usec_per_call=[\d.]+`
	c.want("CONFIG RESETSTAT", "+OK")
	for range 40 {
		c.do("SET a x")
	}
	c.do("SET a")
	c.do("INCR a")
	c.do("NOPE")
	c.do("AUTH k")
	c.do("GET a")
	c.do("GET nokey")
	c.do("KEYS *")
	fit("commandstats", "cmdstat_set", `calls=40,`+us+`,rejected_calls=1,failed_calls=0`)
	fit("commandstats", "cmdstat_incr", `calls=1,`+us+`,rejected_calls=0,failed_calls=1`)
	fit("commandstats", "cmdstat_auth", `calls=1,`+us+`,rejected_calls=0,failed_calls=1`)
	fit("commandstats", "cmdstat_keys", `calls=1,`+us+`,rejected_calls=0,failed_calls=0`)
	fit("latencystats", "latency_percentiles_usec_set", `p50=[\d.]+,p99=[\d.]+,p99\.9=[\d.]+`)
	fit("errorstats", "errorstat_ERR", "count=4")
	fit("stats", "total_error_replies", "4")
	fit("stats", "keyspace_hits", "1")
	fit("stats", "keyspace_misses", "1")
	c.do("MULTI")
	c.do("SET a b")
	c.do("AUTH x")
	c.do("INCR a")
	c.do("EXEC")
	c.do("EXEC")
	fit("commandstats", "cmdstat_exec", `calls=2,`+us+`,rejected_calls=0,failed_calls=1`)
	fit("commandstats", "cmdstat_set", `calls=41,`+us+`,rejected_calls=1,failed_calls=0`)
	fit("commandstats", "cmdstat_incr", `calls=2,`+us+`,rejected_calls=0,failed_calls=2`)
	fit("commandstats", "cmdstat_auth", `calls=2,`+us+`,rejected_calls=0,failed_calls=2`)
	fit("errorstats", "errorstat_ERR", "count=7")
	c.do("MULTI")
	c.do("SET a")
	c.do("EXEC")
	fit("errorstats", "errorstat_EXECABORT", "count=1")
	c.want("CONFIG RESETSTAT", "+OK")
	fit("errorstats", "errorstat_ERR", "")
	fit("commandstats", "cmdstat_set", "")
}

// TestMeasuredTimes: what a command took is at least what it surely takes, and at most what the client has waited.
func TestMeasuredTimes(t *testing.T) {
	c := start(t, testOptions{}).client()
	began := time.Now()
	c.want("DEBUG SLEEP 0.05", "+OK")
	waited := float64(time.Since(began).Microseconds())
	measured := func(section, field, format string, most float64) {
		t.Helper()
		var us float64
		if _, err := fmt.Sscanf(c.field(section, field), format, &us); err != nil || us < 50_000 || us > most {
			t.Errorf("%s: %v us (%v), want 50000 to %v", field, us, err, most)
		}
	}
	measured("commandstats", "cmdstat_debug", "calls=1,usec=%f,", waited)
	c.want("CONFIG SET latency-tracking-info-percentiles 0", "+OK")
	measured("latencystats", "latency_percentiles_usec_debug", "p0=%f", waited*(1+1.0/subBuckets)+1) // the end of a bucket
}

// TestLazyFreed: large values that are freed off the request path are counted, small ones are not; CONFIG RESETSTAT
// sets the engine's counters to zero too.
func TestLazyFreed(t *testing.T) {
	c := start(t, testOptions{}).client()
	for _, key := range []string{"large", "small"} {
		c.want("XADD "+key+" 1-1 f v", "1-1")
	}
	for i := range 40 {
		line := strings.Builder{}
		for k := range 500 {
			fmt.Fprintf(&line, " member%d", 500*i+k)
		}
		c.want("SADD set"+line.String(), ":500")
	}
	c.want("UNLINK small large set", ":3")
	eventually(t, "freed", func() bool { return c.field("memory", "lazyfreed_objects") == "1" })
	if n := c.field("memory", "lazyfree_pending_objects"); n != "0" {
		t.Errorf("pending: %s", n)
	}
	c.want("SET k v PX 1", "+OK")
	eventually(t, "expired", func() bool { return c.field("stats", "expired_keys") == "1" })
	c.want("CONFIG RESETSTAT", "+OK")
	if n := c.field("memory", "lazyfreed_objects") + c.field("stats", "expired_keys"); n != "00" {
		t.Errorf("after RESETSTAT: %s", n)
	}
}

func TestHistogram(t *testing.T) {
	for _, ns := range []uint64{0, 1, 15, 16, 17, 31, 32, 1000, 123456, 1e9, 1 << 40} {
		i := bucketOf(ns)
		if top := bucketTop(i); top < ns || float64(top) > float64(ns)*1.07+1 {
			t.Errorf("%d ns: bucket %d ends at %d", ns, i, top)
		}
	}
	var h histogram
	for i := range 1000 {
		h.add(time.Duration(i) * time.Microsecond)
	}
	for p, want := range map[float64]float64{0: 0, 50: 500, 99: 990, 100: 999} {
		if got := h.percentile(p); got < want*0.93 || got > want*1.07+1 {
			t.Errorf("p%v = %v, want about %v", p, got, want)
		}
	}
	h.add(1 << 62)
	h.add(-5)
}

func TestConfigCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kevy.toml")
	if err := os.WriteFile(file, []byte("# mine\nmaxclients = 100 # few\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, testOptions{file: file, set: map[string]string{"maxclients": "100"}})
	c := s.client()
	for _, x := range [][2]string{
		{"CONFIG GET maxclients", "*[maxclients 100]"},
		{"CONFIG GET MAXclients timeout nope", "*[MAXclients 100 timeout 0]"},
		{"CONFIG GET slave-pri* replica-pri*", "*[replica-priority 100 slave-priority 100]"},
		{"CONFIG GET hash-max-ziplist-*", "*[hash-max-ziplist-entries 512 hash-max-ziplist-value 64]"},
		{"CONFIG GET nope", "*[]"},
		{"CONFIG SET timeout", "-ERR wrong number of arguments for 'config|set' command"},
		{"CONFIG SET timeout 1 hz", "-ERR syntax error"},
		{"CONFIG SET timeout 7 hz x", "-ERR CONFIG SET failed (possibly related to argument 'hz') - argument couldn't be parsed into an integer"},
		{"CONFIG GET timeout", "*[timeout 0]"},
		{"CONFIG SET nope 1", "-ERR Unknown option or number of arguments for CONFIG SET - 'nope'"},
		{"CONFIG SET daemonize yes", "-ERR CONFIG SET failed (possibly related to argument 'daemonize') - can't set immutable config"},
		{"CONFIG SET maxclients 50 hz 20", "+OK"},
		{"CONFIG REWRITE", "+OK"},
		{"CONFIG RESETSTAT", "+OK"},
		{"CONFIG HELP", "*[+CONFIG <subcommand>*"},
		{"CONFIG SET appendfsync always", "+OK"},
		{"SET a 1", "+OK"},
		{"CONFIG SET proto-max-bulk-len 1mb client-query-buffer-limit 2mb", "+OK"},
		{"CONFIG SET appendfsync everysec loglevel debug client-output-buffer-limit", "-ERR syntax error"},
	} {
		c.want(x[0], x[1])
	}
	data, err := os.ReadFile(file)
	if err != nil || string(data) != "# mine\nmaxclients = 50 # few\nhz = 20\n" {
		t.Errorf("rewritten file %q, %v", data, err)
	}
	if got, closed := s.raw("*2\r\n$4\r\nECHO\r\n$1048577\r\n"); !strings.Contains(got, "invalid bulk length") || !closed {
		t.Errorf("proto-max-bulk-len: %q %v", got, closed)
	}
	start(t, testOptions{}).client().want("CONFIG REWRITE", "-ERR The server is running without a config file")
}

func TestRequirePassAtRunTime(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	c.want("CONFIG SET requirepass foo", "+OK")
	c.want("PING", "+PONG") // as in Redis, those connected stay authenticated
	d := s.client()
	d.want("PING", "-NOAUTH Authentication required.")
	d.want("AUTH foo", "+OK")
	d.want("PING", "+PONG")
	c.want("CONFIG SET requirepass", "-ERR wrong number of arguments for 'config|set' command")
}

func TestMaxClients(t *testing.T) {
	s := start(t, testOptions{set: map[string]string{"maxclients": "2"}})
	c := s.client()
	c.want("PING", "+PONG")
	d := s.client()
	d.want("PING", "+PONG")
	if got, closed := s.raw(""); got != "-ERR max number of clients reached\r\n" || !closed {
		t.Errorf("third client: %q %v", got, closed)
	}
	if got := c.field("stats", "rejected_connections"); got != "1" {
		t.Errorf("rejected_connections:%s", got)
	}
	c.want("CONFIG SET maxclients 3", "+OK")
	s.client().want("PING", "+PONG")
}
