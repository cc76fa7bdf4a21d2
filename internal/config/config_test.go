package config

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func writeFile(t *testing.T, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "kevy.toml")
	if err := os.WriteFile(p, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return p
}

func load(t *testing.T, args, env []string) *Config {
	t.Helper()
	c, err := Load(args, env, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	c := load(t, nil, nil)
	want := map[string]string{
		"bind": "127.0.0.1", "port": "6379", "dir": "./kevy-data", "appendfsync": "everysec",
		"feed-enabled": "yes", "feed-buffer-size": "67108864", "feed-retention": "window",
		"proto-max-bulk-len": "536870912", "maxclients": "10000", "save": "", "databases": "1",
		"hash-max-ziplist-entries": "512", "unixsocketperm": "0", "log-keep-time": "0",
		"client-output-buffer-limit": "normal 1073741824 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
	}
	for name, text := range want {
		if got, ok := c.Get(name); !ok || got != text {
			t.Errorf("%s = %q, %v; want %q", name, got, ok, text)
		}
	}
	if n := c.LoopCount(); n < 1 {
		t.Errorf("LoopCount = %d", n)
	}
	if n := c.ShardCount(); n < 1 || n > 16 {
		t.Errorf("ShardCount = %d", n)
	}
}

// TestTable checks what the table promises: every row has a usable name in each source, its
// default parses, and setting a key to the text it shows changes nothing.
func TestTable(t *testing.T) {
	c := Default()
	seen := make(map[string]string)
	for _, k := range Keys() {
		if k.Help == "" {
			t.Errorf("%s: no help", k.Name)
		}
		if strings.ToLower(k.Name) != k.Name {
			t.Errorf("%s: not lower-case", k.Name)
		}
		for _, place := range []string{k.TOML(), k.Env()} {
			if other, twice := seen[place]; twice {
				t.Errorf("%s and %s share %s", k.Name, other, place)
			}
			seen[place] = k.Name
		}
		text := c.Text(k)
		if err := c.Set(k, text); err != nil {
			t.Errorf("%s: its own text %q: %v", k.Name, text, err)
		}
		if again := c.Text(k); again != text {
			t.Errorf("%s: %q became %q", k.Name, text, again)
		}
	}
}

func TestPrecedence(t *testing.T) {
	file := writeFile(t, "port = 1111\nmaxclients = 11\ntimeout = 1\nhz = 50\n")
	c := load(t, []string{"--config", file, "--port", "3333"},
		[]string{"KEVY_PORT=2222", "KEVY_MAXCLIENTS=22", "PATH=/bin"})
	if c.Port != 3333 || c.MaxClients != 22 || c.Timeout != 1 || c.TCPKeepalive != 300 {
		t.Errorf("port %d, maxclients %d, timeout %d, keepalive %d", c.Port, c.MaxClients, c.Timeout, c.TCPKeepalive)
	}
	if got, _ := c.Get("hz"); got != "50" {
		t.Errorf("hz = %s", got)
	}
	c = load(t, nil, []string{"KEVY_CONFIG=" + file})
	if c.Port != 1111 || c.File != file {
		t.Errorf("port %d from file %q", c.Port, c.File)
	}
}

func TestSpellings(t *testing.T) {
	for name, text := range map[string]string{
		"table":     "[feed]\nenabled = false\nfeed_buffer_size = \"32mb\"\nretention = \"log\"\n[log]\nkeep_bytes = \"1gb\"\nkeep_time = \"7d\"",
		"top level": "feed_buffer_size = 33554432\n[feed]\nenabled = \"no\"\nretention = \"log\"\n[log]\nkeep-bytes = 1073741824\nkeep-time = \"168h\"",
		"dotted":    "feed.enabled = false\nfeed.feed-buffer-size = \"32mb\"\nfeed.retention = \"log\"\nlog.keep_bytes = \"1gb\"\nlog.keep_time = 604800",
	} {
		t.Run(name, func(t *testing.T) {
			c := load(t, []string{"--config", writeFile(t, text)}, nil)
			if c.FeedEnabled || c.FeedBufferSize != 32<<20 || c.FeedRetention != "log" ||
				c.LogKeepBytes != 1<<30 || c.LogKeepTime.Hours() != 168 {
				t.Errorf("%+v", c)
			}
		})
	}
	c := load(t, []string{"--tcp_keepalive=7", "--feed-enabled=false", "--slave-priority", "3"}, nil)
	if c.TCPKeepalive != 7 || c.FeedEnabled {
		t.Errorf("keepalive %d, feed %v", c.TCPKeepalive, c.FeedEnabled)
	}
	if got, _ := c.Get("replica-priority"); got != "3" {
		t.Errorf("replica-priority = %s", got)
	}
	c = load(t, []string{"--feed_enabled", "no", "--protected-mode", "no", "--tls-replication", "--port", "1"}, nil)
	if c.FeedEnabled || c.ProtectedMode || !c.TLSReplication || c.Port != 1 {
		t.Errorf("feed %v, protected %v, tls %v, port %d", c.FeedEnabled, c.ProtectedMode, c.TLSReplication, c.Port)
	}
	c = load(t, []string{"--config", writeFile(t, "bind = [\"::1\", \"127.0.0.1\"]\nsave = [900, 1]\nunixsocketperm = 0o700\n")}, nil)
	if got, _ := c.Get("bind"); got != "::1 127.0.0.1" {
		t.Errorf("bind = %s", got)
	}
	if got, _ := c.Get("save"); got != "900 1" || c.UnixSocketPerm != 0o700 {
		t.Errorf("save = %s, perm %o", got, c.UnixSocketPerm)
	}
}

// TestWordsOfFlags: values of several words as redis-server takes them, and rules of save of several flags.
func TestWordsOfFlags(t *testing.T) {
	for _, tc := range []struct {
		args      string
		key, want string
	}{
		{"--replicaof 127.0.0.1 6379 --port 1", "replicaof", "127.0.0.1 6379"},
		{"--bind 127.0.0.1 -::1", "bind", "127.0.0.1 -::1"},
		{"--save 900 1 300 10", "save", "900 1 300 10"},
		{"--save 900 1 --port 1 --save 300 10", "save", "900 1 300 10"},
		{"--save 900 1 --save= --save 300 10", "save", "300 10"},
		{"--save 900 1 --save=", "save", ""},
		{"--protected-mode no --save=60\u00a01", "protected-mode", "no"},
		{"--latency-tracking-info-percentiles 50 90", "latency-tracking-info-percentiles", "50 90"},
	} {
		var args []string
		for a := range strings.SplitSeq(tc.args, " ") {
			args = append(args, strings.ReplaceAll(a, "\u00a0", " "))
		}
		c := load(t, args, nil)
		if got, _ := c.Get(tc.key); got != tc.want {
			t.Errorf("%s: %s = %q, want %q", tc.args, tc.key, got, tc.want)
		}
	}
	c := load(t, []string{"--user", "bob", "on", ">pw", "~*", "-@all", "--user", "eve off"}, nil)
	if want := []string{"bob on >pw ~* -@all", "eve off"}; !slices.Equal(c.Users, want) {
		t.Errorf("users %q, want %q", c.Users, want)
	}
}

func TestStrict(t *testing.T) {
	for name, tc := range map[string]struct {
		args, env []string
		file      string
		want      string // in the error
	}{
		"unknown flag":         {args: []string{"--prot", "1"}, want: "--prot"},
		"positional":           {args: []string{"x"}, want: `"x"`},
		"flag without value":   {args: []string{"--port"}, want: "--port"},
		"bad flag value":       {args: []string{"--port", "70000"}, want: "flag --port: argument must be between 0 and 65535"},
		"bad switch":           {args: []string{"--feed-enabled", "maybe"}, want: "flag --feed-enabled: argument must be 'yes' or 'no'"},
		"bad number":           {args: []string{"--port", "+1"}, want: "flag --port"},
		"fixed key as flag":    {args: []string{"--daemonize", "yes"}, want: `--daemonize (a parameter of Redis that is no setting here: daemonize is always "no")`},
		"fixed key in file":    {file: "databases = 16", want: `databases is always "1"`},
		"Redis's file":         {file: "port 6379", want: "no TOML"},
		"one word too many":    {args: []string{"--port", "1", "2"}, want: `"2"`},
		"several words":        {args: []string{"--replicaof", "host", "1", "2", "--port", "1"}, want: "flag --replicaof"},
		"unknown variable":     {env: []string{"KEVY_PROT=1"}, want: "KEVY_PROT"},
		"bad variable":         {env: []string{"KEVY_FEED_ENABLED=maybe"}, want: "KEVY_FEED_ENABLED: argument must be 'yes' or 'no'"},
		"kubernetes port":      {env: []string{"KEVY_PORT=tcp://10.0.0.1:6379"}, want: "enableServiceLinks"},
		"unknown key":          {file: "prot = 1", want: "unknown key prot"},
		"unknown in table":     {file: "[feed]\nport = 1", want: "unknown key feed.port"},
		"unknown table":        {file: "[fed]\nenabled = true", want: "[fed]"},
		"wrong type":           {file: "port = true", want: "port"},
		"wrong type float":     {file: "port = 1.5", want: "port"},
		"array for scalar":     {file: "port = [1]", want: "port"},
		"key twice":            {file: "port = 1\nport = 2", want: "port"},
		"two spellings":        {file: "feed_buffer_size = 1\n[feed]\nfeed_buffer_size = 2", want: "given twice"},
		"two names":            {file: "replica_priority = 1\nslave_priority = 2", want: "given twice"},
		"feed window too big":  {file: "[feed]\nfeed_buffer_size = \"2gb\"", want: "feed_buffer_size"},
		"feed window one over": {args: []string{"--feed-buffer-size", "1073741825"}, want: "feed-buffer-size"},
		"feed window negative": {args: []string{"--feed-buffer-size", "-1"}, want: "feed-buffer-size"},
		"syntax":               {file: "port = ", want: ".toml:1"},
		"nothing to listen on": {args: []string{"--port", "0"}, want: "unixsocket"},
		"no address":           {args: []string{"--bind", ""}, want: "unixsocket"},
		"no directory":         {args: []string{"--dir", ""}, want: "dir"},
		"policy":               {args: []string{"--appendfsync", "sometimes"}, want: "everysec, always, no"},
		"secret not shown":     {args: []string{"--maxclients", "0", "--requirepass", "hunter2"}, want: "maxclients"},
	} {
		t.Run(name, func(t *testing.T) {
			args := tc.args
			if tc.file != "" {
				args = append(args, "--config", writeFile(t, tc.file))
			}
			_, err := Load(args, tc.env, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want one with %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("secret in %v", err)
			}
		})
	}
	if _, err := Load([]string{"--config", "/nonexistent.toml"}, nil, io.Discard); err == nil {
		t.Error("a missing file is no error")
	}
	ok := []string{"KEVY_SERVICE_HOST=1.2.3.4", "KEVY_PORT_6379_TCP=tcp://1.2.3.4:6379", "KEVY_TEST_X=1", "KEVYX=1"}
	load(t, nil, ok)
}

func TestHelp(t *testing.T) {
	var out strings.Builder
	_, err := Load([]string{"--help"}, nil, &out)
	if err != ErrHelp { //nolint:errorlint // it is returned as it is
		t.Fatalf("error %v", err)
	}
	for _, word := range []string{"--port", "--feed-buffer-size", "--appendfsync", "--config", "--hash-max-listpack-entries"} {
		if !strings.Contains(out.String(), word) {
			t.Errorf("help lacks %s", word)
		}
	}
	if strings.Contains(out.String(), "--activedefrag") {
		t.Error("help lists parameters without effect")
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "100": 100, "1b": 1, "1k": 1000, "1KB": 1024, "2m": 2000000, "64mb": 64 << 20, "1Gb": 1 << 30, "3g": 3e9,
	} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("%s = %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "mb", "-1", "1.5gb", "1tb", " 1", "9223372036854775808", "9999999999gb"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("%q = %d", in, got)
		}
	}
}
