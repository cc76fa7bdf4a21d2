package server

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/command"
)

// What an entry of the slow log shows of a command at most.
const (
	slowlogArgs  = 32
	slowlogBytes = 128
)

// slowlog is SLOWLOG: the latest commands that took long.
type slowlog struct {
	threshold atomic.Int64 // microseconds; negative: off
	most      atomic.Int64 // entries

	mu      sync.Mutex
	entries []slowEntry // oldest first
	nextID  int64
}

type slowEntry struct {
	id         int64
	at         time.Time
	took       time.Duration
	args       []string
	addr, name string
}

// add logs a command that took long.
func (l *slowlog) add(e *slowEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id = l.nextID
	l.nextID++
	l.entries = append(l.entries, *e)
	l.trim()
}

// limit puts a new bound into force.
func (l *slowlog) limit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trim()
}

// trim keeps the newest entries. REQUIRES: l.mu held.
func (l *slowlog) trim() {
	if over := len(l.entries) - int(l.most.Load()); over > 0 {
		l.entries = append(l.entries[:0], l.entries[over:]...)
	}
}

func (l *slowlog) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// newest returns up to n entries, newest first; all if n is negative.
func (l *slowlog) newest(n int64) []slowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 || n > int64(len(l.entries)) {
		n = int64(len(l.entries))
	}
	out := make([]slowEntry, 0, n)
	for i := range n {
		out = append(out, l.entries[len(l.entries)-1-int(i)])
	}
	return out
}

func (l *slowlog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

// clipArgs returns what the slow log keeps of a request.
func clipArgs(args [][]byte) []string {
	n := min(len(args), slowlogArgs)
	out := make([]string, 0, n)
	for i := range n {
		switch {
		case i == slowlogArgs-1 && len(args) > slowlogArgs:
			out = append(out, fmt.Sprintf("... (%d more arguments)", len(args)-slowlogArgs+1))
		case len(args[i]) > slowlogBytes:
			out = append(out, fmt.Sprintf("%s... (%d more bytes)", args[i][:slowlogBytes], len(args[i])-slowlogBytes))
		default:
			out = append(out, string(args[i]))
		}
	}
	return out
}

// secretKeys are the parameters whose values are shown to nobody.
var secretKeys = map[string]bool{
	"requirepass": true, "masterauth": true, "masteruser": true, "tls-key-file-pass": true, "tls-client-key-file-pass": true,
}

// redacted returns a request without what must be kept secret: SLOWLOG and MONITOR show requests.
func redacted(cmd *command.Command, args [][]byte) [][]byte {
	var hide func(i int) bool
	switch cmd.Name {
	case "auth":
		hide = func(i int) bool { return i > 0 }
	case "acl|setuser", "acl|deluser", "acl|getuser":
		hide = func(i int) bool { return i > 1 }
	case "config|set":
		hide = func(i int) bool { return i > 2 && i%2 == 1 && secretKeys[strings.ToLower(string(args[i-1]))] }
	case "hello":
		hide = func(i int) bool {
			return i > 2 && isName(args[i-1], "auth") || i > 3 && isName(args[i-2], "auth")
		}
	case "migrate":
		hide = func(i int) bool {
			return i > 5 && (isName(args[i-1], "auth") || isName(args[i-1], "auth2") || isName(args[i-2], "auth2"))
		}
	default:
		return args
	}
	out := make([][]byte, len(args))
	for i := range args {
		out[i] = args[i]
		if hide(i) {
			out[i] = []byte("(redacted)")
		}
	}
	return out
}

// took notes how long a command took.
func (s *session) took(cmd *command.Command, args [][]byte, d time.Duration) {
	s.srv.stats.record(cmd.ID, d)
	if limit := s.srv.latency.threshold.Load(); limit > 0 && d >= time.Duration(limit)*time.Millisecond {
		event := "command"
		if cmd.Flags&command.Fast != 0 {
			event = "fast-command"
		}
		s.srv.latency.add(event, time.Now().Unix(), d.Milliseconds())
	}
	limit := s.srv.slow.threshold.Load()
	if limit < 0 || d < time.Duration(limit)*time.Microsecond || cmd.Flags&command.SkipSlowlog != 0 || args == nil {
		return
	}
	s.srv.slow.add(&slowEntry{
		at: time.Now(), took: d, args: clipArgs(redacted(cmd, args)), addr: s.conn.RemoteAddr(), name: s.info().name,
	})
}

var slowlogHelp = []string{
	"GET [<count>]", "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
	"    Entries are made of:",
	"    id, timestamp, time in microseconds, arguments array, client IP and port,", "    client name",
	"LEN", "    Return the length of the slowlog.",
	"RESET", "    Reset the slowlog.",
}

func registerSlowlog(r registry) {
	r["slowlog|help"] = func(s *session, args [][]byte) { command.ReplyHelp(s.w, args[0], slowlogHelp) }
	r["slowlog|len"] = func(s *session, _ [][]byte) { s.w.Int(int64(s.srv.slow.len())) }
	r["slowlog|reset"] = func(s *session, _ [][]byte) { s.srv.slow.reset(); s.w.OK() }
	r["slowlog|get"] = slowlogGet
}

func slowlogGet(s *session, args [][]byte) {
	count := int64(10)
	switch {
	case len(args) > 3:
		s.w.Error(command.SubcommandArgsError(args))
		return
	case len(args) == 3:
		var ok bool
		if count, ok = parseInt(args[2]); !ok || count < -1 {
			s.w.Error("ERR count should be greater than or equal to -1")
			return
		}
	}
	entries := s.srv.slow.newest(count)
	w := s.w
	w.Array(len(entries))
	for i := range entries {
		e := &entries[i]
		w.Array(6)
		w.Int(e.id)
		w.Int(e.at.Unix())
		w.Int(e.took.Microseconds())
		w.Array(len(e.args))
		for _, a := range e.args {
			w.BulkString(a)
		}
		w.BulkString(e.addr)
		w.BulkString(e.name)
	}
}
