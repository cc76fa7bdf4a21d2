package server

import (
	"fmt"
	"sync"
	"time"

	"github.com/kevydb/kevy/internal/command"
)

// gateMonitor is a reason of the whole server for the slow path: someone watches.
const gateMonitor = 1 << 30

// monitors are the clients of MONITOR.
type monitors struct {
	mu   sync.Mutex
	list map[*session]struct{}
}

func monitorCommand(s *session, _ [][]byte) {
	if s.multi.running {
		s.w.Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
		return
	}
	s.srv.monitors.set(s, true)
	s.w.OK()
}

// set makes s a client of MONITOR, or ends that.
func (m *monitors) set(s *session, on bool) {
	if s.monitor == on {
		return
	}
	s.monitor = on
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list == nil {
		m.list = make(map[*session]struct{})
	}
	if on {
		m.list[s] = struct{}{}
	} else {
		delete(m.list, s)
	}
	s.srv.setGate(gateMonitor, len(m.list) > 0)
}

// monitored reports whether someone watches and the command may be shown.
func (srv *Server) monitored(cmd *command.Command) bool {
	if srv.gate.Load()&gateMonitor == 0 {
		return false
	}
	switch cmd.Name {
	case "eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro":
		return true // shown before what they call
	}
	return cmd.Flags&(command.SkipMonitor|command.Admin) == 0
}

// show sends a request to the clients of MONITOR. from is the client's address, or "lua".
func (m *monitors) show(cmd *command.Command, args [][]byte, from string) {
	now := time.Now().UnixMicro()
	line := fmt.Appendf(nil, "+%d.%06d [0 %s]", now/1e6, now%1e6, from)
	for _, a := range redacted(cmd, args) {
		line = append(line, ' ')
		line = appendQuoted(line, a)
	}
	line = append(line, "\r\n"...)
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.list {
		s.push(item{line, itemRaw})
	}
}

// appendQuoted appends a string as Redis shows it to people.
func appendQuoted(dst, s []byte) []byte {
	dst = append(dst, '"')
	for _, c := range s {
		switch c {
		case '\\', '"':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\a':
			dst = append(dst, `\a`...)
		case '\b':
			dst = append(dst, `\b`...)
		default:
			if c >= ' ' && c <= '~' {
				dst = append(dst, c)
			} else {
				dst = fmt.Appendf(dst, `\x%02x`, c)
			}
		}
	}
	return append(dst, '"')
}

// monitorAddr is how MONITOR shows the client.
func (s *session) monitorAddr() string {
	if i := s.info(); i.unix() {
		return "unix:" + s.srv.config().UnixSocket
	}
	return s.conn.RemoteAddr()
}
