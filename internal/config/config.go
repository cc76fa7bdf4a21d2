package config

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Config is the server's configuration. Fields are set through Set, which checks them.
type Config struct {
	Bind            []string // addresses to listen on; a leading "-" makes one optional
	Port            int64    // 0: no TCP
	UnixSocket      string   // path, empty: none
	UnixSocketPerm  int64    // file mode of the socket, 0: leave it to the umask
	TCPBacklog      int64
	TCPKeepalive    int64 // seconds, 0: off
	Timeout         int64 // seconds a client may be idle, 0: for ever
	MaxClients      int64
	ProtectedMode   bool
	RequirePass     string
	ACLFile         string
	Users           []string // "name rule ..." each
	TLSPort         int64
	TLSCert         string
	TLSKey          string
	TLSCACert       string
	TLSAuthClients  string
	TLSProtocols    string
	TLSReplication  bool
	MetricsPort     int64  // 0: none
	DebugCommand    string // who may use DEBUG: no, yes, local
	ProtoMaxBulkLen int64
	QueryBufLimit   int64        // bytes of one unfinished request
	OutputLimits    OutputLimits // client-output-buffer-limit
	DefaultRESP     int64        // protocol that connections begin with: 2 or 3
	Loops           int64        // event loops, 0: half the CPUs

	Dir         string
	Shards      int64 // used when the directory is created; 0: the number of CPUs, at most 16
	AppendFsync string
	Save        []SavePoint

	GrowthPercent    int64         // auto-aof-rewrite-percentage
	GrowthMin        int64         // auto-aof-rewrite-min-size, bytes
	SnapshotKeep     int64         // sets, the newest included
	SnapshotKeepTime time.Duration // age up to which all sets stay
	StopWrites       bool          // stop-writes-on-bgsave-error

	MaxMemory       int64
	MaxMemoryPolicy string

	ShutdownTimeout int64 // seconds

	LogLevel  string
	LogFormat string

	FeedEnabled    bool
	FeedBufferSize int64
	FeedRetention  string

	LogKeepBytes   int64
	LogKeepTime    time.Duration
	LogSealAfter   time.Duration
	LogSegmentSize int64

	ArchiveURL      string
	ArchiveInterval time.Duration
	ArchiveKeepTime time.Duration
	ArchiveKeepSets int64

	// File is the TOML file the configuration was read from, empty if none. Not a key.
	File string

	compat map[string]string // by key name: rows without a field
}

// SavePoint is one "after this many seconds, if this many changes" rule.
type SavePoint struct{ Seconds, Changes int64 }

// OutputLimit bounds the replies a client has not read: Hard bytes at any moment, Soft bytes for
// SoftSeconds. 0 means no bound.
type OutputLimit struct{ Hard, Soft, SoftSeconds int64 }

// OutputLimits are the bounds by class of client.
type OutputLimits struct{ Normal, Replica, PubSub OutputLimit }

// Default returns a Config with every key at its default.
func Default() *Config {
	c := &Config{compat: make(map[string]string)}
	for _, k := range Keys() {
		if err := c.Set(k, k.Default); err != nil {
			panic(fmt.Sprintf("config: default of %s: %v", k.Name, err)) // invariant: table tested
		}
	}
	return c
}

// Clone returns a deep copy.
func (c *Config) Clone() *Config {
	d := *c
	d.Bind = slices.Clone(c.Bind)
	d.Save = slices.Clone(c.Save)
	d.Users = slices.Clone(c.Users)
	d.compat = maps.Clone(c.compat)
	return &d
}

// Set parses text and stores it under k. The error is worded as Redis words it in CONFIG SET, and
// leaves c unchanged.
func (c *Config) Set(k *Key, text string) error {
	if k.field == nil {
		canonical, err := k.parseCompat(text)
		if err != nil {
			return err
		}
		c.compat[k.Name] = canonical
		return nil
	}
	return k.store(k.field(c), text)
}

// Text returns the value of k as CONFIG GET shows it.
func (c *Config) Text(k *Key) string {
	if k.field == nil {
		return c.compat[k.Name]
	}
	return k.format(k.field(c))
}

// Get returns the value of the key called name (any of its names), as CONFIG GET shows it.
func (c *Config) Get(name string) (string, bool) {
	k, ok := Lookup(name)
	if !ok {
		return "", false
	}
	return c.Text(k), true
}

// ShardCount is the number of shards of a new directory.
func (c *Config) ShardCount() int {
	if c.Shards > 0 {
		return int(c.Shards)
	}
	return min(runtime.NumCPU(), 16)
}

// LoopCount is the number of event loops.
func (c *Config) LoopCount() int {
	if c.Loops > 0 {
		return int(c.Loops)
	}
	return max(1, runtime.NumCPU()/2)
}

// Validate checks what concerns several keys; the error names one of them.
func (c *Config) Validate() error {
	if c.Port == 0 && c.TLSPort == 0 && c.UnixSocket == "" {
		return fmt.Errorf("port: 0 turns TCP off, so unixsocket or tls-port must be set")
	}
	if len(c.Bind) == 0 && c.UnixSocket == "" {
		return fmt.Errorf("bind: no address turns TCP off, so unixsocket must be set")
	}
	if c.Dir == "" {
		return fmt.Errorf("dir: must not be empty")
	}
	if len(c.Users) > 0 && c.ACLFile != "" {
		return fmt.Errorf("users: cannot be given together with aclfile: define users in one place only, " +
			"the ACL file or the configuration file")
	}
	if c.ArchiveInterval <= 0 {
		return fmt.Errorf("archive-interval: must be more than 0")
	}
	if strings.ContainsRune(c.UnixSocket, 0) {
		return fmt.Errorf("unixsocket: contains a zero byte")
	}
	return nil
}
