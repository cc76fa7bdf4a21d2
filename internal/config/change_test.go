package config

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestChange(t *testing.T) {
	for name, tc := range map[string]struct {
		pairs []Pair
		err   string
	}{
		"one":           {pairs: []Pair{{"maxmemory", "10000001"}}},
		"several":       {pairs: []Pair{{"maxmemory", "1mb"}, {"repl-backlog-size", "10000002"}, {"save", "3000 5"}}},
		"unknown":       {pairs: []Pair{{"maxmemory", "1"}, {"nope", "2"}}, err: "ERR Unknown option or number of arguments for CONFIG SET - 'nope'"},
		"immutable":     {pairs: []Pair{{"daemonize", "yes"}}, err: "ERR CONFIG SET failed (possibly related to argument 'daemonize') - can't set immutable config"},
		"restart only":  {pairs: []Pair{{"loops", "1"}}, err: "ERR CONFIG SET failed (possibly related to argument 'loops') - can't set immutable config"},
		"as it is":      {pairs: []Pair{{"port", "6379"}, {"feed-buffer-size", "64mb"}}},
		"fact as it is": {pairs: []Pair{{"daemonize", "no"}, {"dbfilename", "dump.rdb"}}},
		"addresses":     {pairs: []Pair{{"bind", strings.Repeat("-a ", 17)}}, err: "ERR CONFIG SET failed (possibly related to argument 'bind') - Too many bind addresses specified."},
		"duplicate":     {pairs: []Pair{{"maxmemory", "1"}, {"maxmemory", "2"}}, err: "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - duplicate parameter"},
		"alias twice":   {pairs: []Pair{{"replica-priority", "1"}, {"slave-priority", "2"}}, err: "ERR CONFIG SET failed (possibly related to argument 'slave-priority') - duplicate parameter"},
		"alias":         {pairs: []Pair{{"HASH-max-ziplist-value", "x"}}, err: "ERR CONFIG SET failed (possibly related to argument 'hash-max-ziplist-value') - argument must be a memory value"},
		"percent":       {pairs: []Pair{{"maxmemory", "10000001"}, {"maxmemory-clients", "200%"}, {"client-query-buffer-limit", "invalid"}}, err: "ERR CONFIG SET failed (possibly related to argument 'maxmemory-clients') - percentage argument must be less or equal to 100"},
		"memory":        {pairs: []Pair{{"maxmemory", "bla"}}, err: "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value"},
		"integer":       {pairs: []Pair{{"timeout", "1x"}}, err: "ERR CONFIG SET failed (possibly related to argument 'timeout') - argument couldn't be parsed into an integer"},
		"range":         {pairs: []Pair{{"hz", "-1"}}, err: "ERR CONFIG SET failed (possibly related to argument 'hz') - argument must be between 0 and 2147483647 inclusive"},
		"bool":          {pairs: []Pair{{"latency-tracking", "maybe"}}, err: "ERR CONFIG SET failed (possibly related to argument 'latency-tracking') - argument must be 'yes' or 'no'"},
		"enum":          {pairs: []Pair{{"appendfsync", "x"}}, err: "ERR CONFIG SET failed (possibly related to argument 'appendfsync') - argument(s) must be one of the following: everysec, always, no"},
		"save":          {pairs: []Pair{{"save", "3000"}}, err: "ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters"},
		"limits":        {pairs: []Pair{{"client-output-buffer-limit", "normal 1 2"}}, err: "ERR CONFIG SET failed (possibly related to argument 'client-output-buffer-limit') - Wrong number of arguments in buffer limit configuration."},
		"limits class":  {pairs: []Pair{{"client-output-buffer-limit", "master 1 2 3"}}, err: "ERR CONFIG SET failed (possibly related to argument 'client-output-buffer-limit') - Invalid client class specified in buffer limit configuration."},
		"log stays on":  {pairs: []Pair{{"appendonly", "no"}}, err: "ERR CONFIG SET failed (possibly related to argument 'appendonly') - argument(s) must be one of the following: yes"},
		"percentiles":   {pairs: []Pair{{"latency-tracking-info-percentiles", "10.0 50.0 101.0"}}, err: "ERR CONFIG SET failed (possibly related to argument 'latency-tracking-info-percentiles') - latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"},
		"signal choice": {pairs: []Pair{{"shutdown-on-sigint", "save nosave"}}, err: "ERR CONFIG SET failed (possibly related to argument 'shutdown-on-sigint') - shutdown options SAVE and NOSAVE can't be used simultaneously"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Default()
			before := dump(c)
			next, _, err := c.Change(tc.pairs)
			if got := errText(err); got != tc.err {
				t.Fatalf("error %q\n want %q", got, tc.err)
			}
			if after := dump(c); after != before {
				t.Error("the old configuration changed")
			}
			if err != nil && next != nil {
				t.Error("a configuration along with an error")
			}
		})
	}
}

// TestWithin: some numbers are shown within bounds, whatever was set.
func TestWithin(t *testing.T) {
	for _, x := range [][3]string{
		{"hz", "0", "1"}, {"hz", "1000", "500"}, {"hz", "77", "77"}, {"repl-backlog-size", "1", "16384"}, {"repl-backlog-size", "1gb", "1073741824"},
	} {
		next, _, err := Default().Change([]Pair{{x[0], x[1]}})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := next.Get(x[0]); got != x[2] {
			t.Errorf("%s %s is shown as %s, want %s", x[0], x[1], got, x[2])
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func dump(c *Config) string {
	var b strings.Builder
	for _, k := range Keys() {
		b.WriteString(k.Name + "=" + c.Text(k) + "\n")
	}
	return b.String()
}

func TestChangeReports(t *testing.T) {
	c := Default()
	next, changed, err := c.Change([]Pair{{"timeout", "0"}, {"CLIENT-OUTPUT-BUFFER-LIMIT", "replica 2mb 1mb 5"}, {"notify-keyspace-events", "KEA"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range changed {
		names = append(names, k.Name)
	}
	if !slices.Equal(names, []string{"client-output-buffer-limit", "notify-keyspace-events"}) {
		t.Errorf("changed: %v", names)
	}
	if got := next.OutputLimits.Replica; got != (OutputLimit{2 << 20, 1 << 20, 5}) || next.OutputLimits.Normal.Hard != 1<<30 {
		t.Errorf("limits %v", next.OutputLimits)
	}
	if events, err := parseEvents("nKg$"); err != nil || events != "g$nK" {
		t.Errorf("classes of events: %q, %v", events, err)
	}
	if got, _ := next.Get("notify-keyspace-events"); got != "AKE" {
		t.Errorf("events %q", got)
	}
}

func TestMatch(t *testing.T) {
	match := func(p, n string) bool { ok, _ := path.Match(p, n); return ok }
	got := Match([]string{"maxmemory", "*max-ziplist-entries", "MAXMEMORY", "nope", "key-load*", "slave-priority"}, match)
	if got := Match([]string{"MaxMemory", "maxmemor?"}, match); !slices.Equal(got, []string{"MaxMemory"}) {
		t.Errorf("a name as it was asked for: %v", got)
	}
	want := []string{"hash-max-ziplist-entries", "maxmemory", "slave-priority", "zset-max-ziplist-entries"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if got := Match([]string{"key-load-delay"}, match); len(got) != 1 {
		t.Errorf("hidden by its name: %v", got)
	}
}

func TestRewrite(t *testing.T) {
	p := writeFile(t, `# main port
port = 1234   # keep me
bind = [
  "127.0.0.1", # v4
  "::1",
]
requirepass = 'x"y'

[feed]
# the feed
enabled = true
`)
	c := load(t, []string{"--config", p, "--maxclients", "77"}, nil)
	next, _, err := c.Change([]Pair{
		{"timeout", "9"}, {"requirepass", "a\"b\\\n"}, {"save", "900 1"}, {"appendfsync", "always"}, {"hz", "20"},
	})
	if err != nil {
		t.Fatal(err)
	}
	next.LogKeepBytes = 1 << 20
	next.Bind = []string{"10.0.0.1"}
	next.FeedEnabled = false
	if err := next.Rewrite(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# main port\nport = 1234   # keep me\n", "bind = \"10.0.0.1\"\n", "# the feed\nenabled = false\n",
		"timeout = 9\n", "maxclients = 77\n", "\n[log]\nkeep_bytes = 1048576\n", `requirepass = "a\"b\\\u000A"`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %q in\n%s", want, data)
		}
	}
	again := load(t, []string{"--config", p}, nil)
	if dump(again) != dump(next) {
		t.Errorf("read back differs:\n%s", data)
	}
	if fi, err := os.Stat(p); err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	if err := again.Rewrite(); err != nil {
		t.Fatal(err)
	}
	if same, err := os.ReadFile(p); err != nil || string(same) != string(data) {
		t.Errorf("a second rewrite changed the file: %v\n%s", err, same)
	}
}

func TestRewriteRefusesWhatItCannotWrite(t *testing.T) {
	p := writeFile(t, "requirepass = \"x\"\n")
	c := load(t, []string{"--config", p}, nil)
	c.RequirePass = "\xff\xfe" // TOML has no bytes that are not UTF-8
	if err := c.Rewrite(); err == nil {
		t.Error("no error")
	}
	if data, err := os.ReadFile(p); err != nil || string(data) != "requirepass = \"x\"\n" {
		t.Errorf("file is %q, %v", data, err)
	}
}
