package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	peer "github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

const (
	msgMigrateKeys    = "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string"
	msgMigrateGroup   = "ERR MIGRATE is not allowed in a transaction: it waits for another server"
	msgMigrateConnect = "IOERR error or timeout connecting to the client"
	msgMigrateIO      = "IOERR error or timeout talking to target instance"
	msgMigrateBusy    = "ERR the keys changed again and again while they were sent: the target instance may have older values, nothing was deleted here"

	// migrateTries is how often keys are sent that change meanwhile.
	migrateTries = 10
)

// migration is MIGRATE. The keys are sent without a lock held; they are deleted only if they are still what was sent,
// otherwise they are sent again.
type migration struct {
	srv            *Server
	addr, db       string
	limit          time.Duration // of the connecting, and of each command
	copy, replace  bool
	user, password string
	keys           [][]byte

	target *peer.Conn
	sent   map[string]bool // the target has a value of ours
}

// parseMigrate reads MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH password | AUTH2 user password]
// [KEYS key ...]. What it returns aliases nothing.
func parseMigrate(args [][]byte) (m migration, bad string) {
	m = migration{addr: net.JoinHostPort(string(args[1]), string(args[2])), sent: make(map[string]bool)}
	m.keys = cloneArgs(args[3:4])
options:
	for i := 6; i < len(args); i++ {
		switch more := len(args) - 1 - i; {
		case isName(args[i], "copy"):
			m.copy = true
		case isName(args[i], "replace"):
			m.replace = true
		case isName(args[i], "auth") && more >= 1:
			m.user, m.password = "", string(args[i+1])
			i++
		case isName(args[i], "auth2") && more >= 2:
			m.user, m.password = string(args[i+1]), string(args[i+2])
			i += 2
		case isName(args[i], "keys"):
			if len(args[3]) > 0 {
				return m, msgMigrateKeys
			}
			m.keys = cloneArgs(args[i+1:])
			break options
		default:
			return m, msgSyntax
		}
	}
	ms, ok1 := parseInt(args[5])
	db, ok2 := parseInt(args[4])
	if !ok1 || !ok2 {
		return m, msgNotInteger
	}
	if ms <= 0 {
		ms = 1000
	}
	m.limit, m.db = time.Duration(min(ms, 1<<31))*time.Millisecond, strconv.FormatInt(db, 10)
	return m, ""
}

func migrateCommand(s *session, args [][]byte) {
	m, bad := parseMigrate(args)
	switch {
	case bad != "":
		s.w.Error(bad)
		return
	case s.multi.running:
		s.w.Error(msgMigrateGroup)
		return
	}
	m.srv = s.srv
	s.startJob(jobRuns, func(j *job) {
		defer m.close()
		m.run(&j.w, &j.ticket)
	})
}

func (m *migration) close() {
	if m.target != nil {
		m.target.Close()
	}
}

// run moves the keys and replies. What it deletes is added to t.
func (m *migration) run(w *resp.Writer, t *engine.Ticket) {
	for range migrateTries {
		done, err := m.try(t)
		var refused peer.Error
		var kept notDeletedError
		switch {
		case errors.As(err, &kept):
			w.Error(string(kept))
			return
		case errors.As(err, &refused):
			w.Error("ERR Target instance replied with error: " + string(refused))
			return
		case errors.Is(err, errConnect):
			w.Error(msgMigrateConnect)
			return
		case err != nil:
			w.Error(msgMigrateIO)
			return
		case done && len(m.sent) == 0:
			w.Simple("NOKEY")
			return
		case done:
			w.OK()
			return
		}
	}
	w.Error(msgMigrateBusy)
}

// notDeletedError is why keys that the target has were not deleted here: the words of a reply.
type notDeletedError string

// Error implements error.
func (e notDeletedError) Error() string { return string(e) }

var errConnect = errors.New("server: the target of MIGRATE can't be reached")

// try sends the keys once and deletes those that the target has; done is false if one has changed meanwhile. After
// an error of the target the keys that it took before are deleted all the same.
func (m *migration) try(t *engine.Ticket) (done bool, err error) {
	watch := m.srv.eng.NewWatch()
	defer watch.Clear()
	for _, key := range m.keys {
		watch.Add(key)
	}
	var took [][]byte
	for _, key := range m.keys {
		var there bool
		if there, err = m.send(key); err != nil {
			break
		}
		if there {
			took = append(took, key)
		}
	}
	if m.copy || len(took) == 0 {
		return true, err
	}
	done, kept := m.remove(took, watch, t)
	if err == nil {
		err = kept
	}
	return done, err
}

// send makes the target have what the key holds; there is false if that is nothing.
func (m *migration) send(key []byte) (there bool, err error) {
	// The deadline is asked for first: if it changes before the value is read, the watch tells.
	deadline := strings.Trim(string(m.srv.ask([]byte("pexpiretime"), key)), ":\r\n")
	payload, there := bulkBytes(m.srv.ask([]byte("dump"), key))
	if !there {
		if m.sent[string(key)] { // it went after we had sent it
			return false, m.do([]byte("DEL"), key)
		}
		return false, nil
	}
	if deadline == "-1" || deadline == "-2" { // none, or it came between
		deadline = "0"
	}
	args := [][]byte{[]byte("RESTORE"), key, []byte(deadline), payload, []byte("ABSTTL")}
	if m.replace || m.sent[string(key)] {
		args = append(args, []byte("REPLACE"))
	}
	if err := m.do(args...); err != nil {
		return false, err
	}
	m.sent[string(key)] = true
	return true, nil
}

// do runs a command at the target, connecting first if need be.
func (m *migration) do(args ...[]byte) error {
	if m.target == nil {
		if err := m.connect(); err != nil {
			return err
		}
	}
	text := make([]string, len(args))
	for i, a := range args {
		text[i] = string(a)
	}
	_, err := m.target.Do(m.limit, text...)
	return err
}

func (m *migration) connect() error {
	ctx, cancel := context.WithTimeout(m.srv.ctx, m.limit)
	defer cancel()
	target, err := peer.Dial(ctx, m.addr)
	if err != nil {
		return fmt.Errorf("%w: %w", errConnect, err)
	}
	m.target = target
	if err := target.Login(m.limit, m.user, m.password); err != nil {
		return err
	}
	_, err = target.Do(m.limit, "SELECT", m.db)
	return err
}

// remove deletes the keys unless a watched one has changed; it reports whether none has.
func (m *migration) remove(keys [][]byte, watch *engine.Watch, t *engine.Ticket) (done bool, err error) {
	c := m.srv.takeCtx()
	defer m.srv.giveCtx(c)
	w := resp.Writer{}
	c.W, c.NoTouch = &w, true
	queue := []engine.Queued{{Cmd: command.Lookup([]byte("del")), Args: append([][]byte{[]byte("DEL")}, keys...)}}
	done = m.srv.eng.Exec(c, queue, watch, t, func(*command.Ctx) {})
	// EXEC's reply, or DEL's in it: the log takes nothing, or this server has become a replica.
	if text, bad := bytes.CutPrefix(bytes.TrimPrefix(w.Buf, []byte("*1\r\n")), []byte("-")); bad {
		err = notDeletedError(bytes.TrimRight(text, "\r\n"))
	}
	return done, err
}

// bulkBytes returns the bytes of a bulk reply; ok is false for null and all others.
func bulkBytes(reply []byte) (text []byte, ok bool) {
	r := reply
	if len(r) < 2 || r[0] != '$' || r[1] == '-' {
		return nil, false
	}
	for i := range r {
		if r[i] == '\n' {
			return r[i+1 : len(r)-2], true
		}
	}
	return nil, false
}
