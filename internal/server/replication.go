package server

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/internal/migrate"
	"github.com/kevydb/kevy/internal/replica"
	"github.com/kevydb/kevy/resp"
)

// replication is what a server has to do with others of its kind.
type replication struct {
	source *replica.Source
	stock  *migrate.Replica // follows sources that are no kevy

	least, maxLag atomic.Int64 // min-replicas-to-write and min-replicas-max-lag (s)
	serveStale    atomic.Bool  // replica-serve-stale-data

	mu       sync.Mutex // held while the role changes
	follower atomic.Pointer[replica.Follower]
	stopped  bool
	former   atomic.Pointer[former]

	over failover
}

// former is the history that a server followed before it was promoted: its id, and the offset at which that was.
type former struct {
	id string
	at uint64
}

// initReplication prepares for followers. What the configuration names is followed from Serve on.
func (srv *Server) initReplication() {
	srv.repl.source = replica.NewSource(srv.eng, srv.eng.FS(), srv.replID, srv.checkReplicas)
	srv.repl.stock = migrate.NewReplica(srv.eng, srv.log)
	if err := srv.repl.source.Recall(); err != nil {
		srv.log.Warn("replication: where replicas that are no kevy were can't be read: they will be copied again", "error", err)
	}
	if srv.eng.Following() {
		srv.setGate(gateFollower, true)
	}
}

// replID is the id of the history that the server has: its source's, if it follows one.
func (srv *Server) replID() string {
	if f := srv.repl.follower.Load(); f != nil {
		if id := f.Status().SourceID; id != "" {
			return id
		}
	}
	return srv.ids.replID()
}

// replicate begins to follow the server at host and port. again: it did so already.
func (srv *Server) replicate(host, port string) (again bool, err error) {
	r := &srv.repl
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return false, errStopping
	}
	if f := r.follower.Load(); f != nil {
		if st := f.Status(); st.Host == host && st.Port == port && !f.Stopped() {
			return true, nil
		}
		f.Stop()
	}
	return false, srv.beginFollowing(host, port, nil)
}

// beginFollowing follows host and port, which are to take over first if over says so, and shows that. REQUIRES: r.mu; whatever was followed is not any more.
func (srv *Server) beginFollowing(host, port string, over *replica.TakeOver) error {
	if err := srv.follow(host, port, over); err != nil {
		return err
	}
	srv.configured(host + " " + port)
	srv.checkReplicas()
	srv.log.Info("replication: following", "source", net.JoinHostPort(host, port))
	return nil
}

// follow has a follower of host and port, in the place of one that has stopped. REQUIRES: r.mu.
func (srv *Server) follow(host, port string, over *replica.TakeOver) error {
	srv.setGate(gateFollower, true)
	f, err := replica.Follow(replica.Options{
		Engine: srv.eng, Host: host, Port: port, ID: srv.ids.run, Logger: srv.log, OnChange: srv.checkStale, Stock: srv.repl.stock.Follow, Dial: srv.dialSource,
		TakeOver: over,
		Login: func() (user, password string) {
			user, _ = srv.config().Get("masteruser")
			password, _ = srv.config().Get("masterauth")
			return user, password
		},
		Announce: srv.announced,
		Timeout:  srv.replTimeout,
	})
	if err != nil {
		srv.setGate(gateFollower, srv.eng.Following())
		return err
	}
	srv.repl.follower.Store(f)
	srv.repl.source.Dismiss()
	srv.checkStale()
	return nil
}

// replTimeout is after what silence a link counts as dead, on either side.
func (srv *Server) replTimeout() time.Duration {
	return time.Duration(srv.number("repl-timeout")) * time.Second
}

// number returns a setting that is a number, or a size in bytes.
func (srv *Server) number(name string) int64 {
	var n atomic.Int64
	setNumber(srv.config(), name, &n)
	return n.Load()
}

// rememberStreams keeps the streams of stock replicas for the next start. REQUIRES: nothing uses the engine any more.
func (srv *Server) rememberStreams() {
	if err := srv.repl.source.Remember(); err != nil {
		srv.log.Warn("replication: where replicas that are no kevy are can't be kept: they will be copied again", "error", err)
	}
}

// forgetStreams forgets the streams of stock replicas that have been away for repl-backlog-ttl (0: for ever).
func (srv *Server) forgetStreams() {
	if s := srv.number("repl-backlog-ttl"); s > 0 {
		srv.repl.source.ForgetStreams(time.Duration(s) * time.Second)
	}
}

// cutSilent closes the links of replicas that have sent nothing for too long.
func (srv *Server) cutSilent() {
	for _, addr := range srv.repl.source.CutSilent(srv.replTimeout()) {
		srv.log.Warn("replication: a replica has been silent for repl-timeout: its link is closed", "replica", addr)
	}
}

// announced is the address at which others reach this server.
func (srv *Server) announced() (host, port string) {
	cfg := srv.config()
	host, _ = cfg.Get("replica-announce-ip")
	port, _ = cfg.Get("replica-announce-port")
	if port == "0" {
		n := cfg.Port
		if cfg.TLSReplication && cfg.TLSPort != 0 {
			n = cfg.TLSPort
		}
		port = strconv.FormatInt(n, 10)
	}
	return host, port
}

// promote ends the following. If no generation can begin, the server follows as before.
func (srv *Server) promote() error {
	srv.repl.mu.Lock()
	defer srv.repl.mu.Unlock()
	return srv.promoteLocked()
}

// promoteLocked is promote. REQUIRES: r.mu.
func (srv *Server) promoteLocked() error {
	r := &srv.repl
	f := r.follower.Load()
	switch {
	case r.stopped:
		return errStopping
	case f == nil && !srv.eng.Following():
		return nil
	case f != nil:
		f.Stop()
	}
	was := &former{srv.replID(), srv.offsetAt(srv.repl.source.Tails())}
	if err := srv.eng.Promote(); err != nil {
		if f != nil {
			st := f.Status()
			err = errors.Join(err, srv.follow(st.Host, st.Port, nil))
		}
		return err
	}
	srv.ids.changeReplID()
	r.former.Store(was)
	r.follower.Store(nil)
	srv.setGate(gateFollower|gateStale, false)
	srv.configured("")
	srv.checkReplicas()
	srv.log.Info("replication: this server follows no other any more: a new generation has begun")
	return nil
}

// configured keeps what is followed in the configuration, for CONFIG GET and REWRITE.
func (srv *Server) configured(text string) {
	srv.cfgMu.Lock()
	defer srv.cfgMu.Unlock()
	k, _ := config.Lookup("replicaof")
	next := srv.config().Clone()
	if next.Set(k, text) == nil {
		srv.cfg.Store(next)
	}
}

// startReplication follows what the configuration names.
func (srv *Server) startReplication() {
	text, _ := srv.config().Get("replicaof")
	if host, port, ok := config.SplitReplicaOf(text); ok {
		if _, err := srv.replicate(host, port); err != nil {
			srv.log.Error("replication can't begin: writes are refused all the same", "source", text, "error", err)
			srv.setGate(gateFollower, true)
		}
	}
}

// stopReplication ends the following; the role stays.
func (srv *Server) stopReplication() {
	srv.repl.mu.Lock()
	defer srv.repl.mu.Unlock()
	srv.repl.stopped = true
	if f := srv.repl.follower.Load(); f != nil {
		f.Stop()
		if err := srv.repl.stock.Remember(); err != nil {
			srv.log.Warn("replication: where this server is in its source's stream can't be kept: it will be copied again", "error", err)
		}
	}
}

// checkReplicas refuses writes, or allows them again, for the number of replicas that are near enough.
func (srv *Server) checkReplicas() {
	r := &srv.repl
	least, lag := r.least.Load(), r.maxLag.Load()
	refuse := least > 0 && lag > 0 && r.follower.Load() == nil &&
		int64(r.source.Good(time.Duration(lag)*time.Second)) < least
	srv.setGate(gateReplicas, refuse)
}

// checkStale refuses reads while the link is down and stale data is not to be served.
func (srv *Server) checkStale() {
	f := srv.repl.follower.Load()
	srv.setGate(gateStale, f != nil && !srv.repl.serveStale.Load() && !f.Status().Up)
}

// applyReplication puts the settings of replication into force that are not asked for when they are needed.
func (srv *Server) applyReplication(cfg *config.Config) {
	r := &srv.repl
	setNumber(cfg, "min-replicas-to-write", &r.least)
	setNumber(cfg, "min-replicas-max-lag", &r.maxLag)
	stale, _ := cfg.Get("replica-serve-stale-data")
	r.serveStale.Store(stale == "yes")
	srv.checkReplicas()
	srv.checkStale()
}

func registerReplication(r registry) {
	r["replicaof"] = replicaofCommand
	r["slaveof"] = replicaofCommand
	r["failover"] = failoverCommand
	r["repl.takeover"] = replTakeOverCommand
	r["psync"] = psyncCommand
	r["sync"] = syncCommand
	r["replconf"] = replconfCommand
	r["repl.hello"] = replHelloCommand
	r["repl.snapshot"] = func(s *session, args [][]byte) {
		args = cloneArgs(args)
		s.onLink(func(w *resp.Writer, k *replica.Link) { replyDocument(w)(k.Offer(args[1:])) })
	}
	r["repl.fetch"] = func(s *session, args [][]byte) {
		args = cloneArgs(args)
		s.onLink(func(w *resp.Writer, k *replica.Link) { replyDocument(w)(k.Fetch(args[1:])) })
	}
	r["repl.pull"] = replPullCommand
	r["repl.freeze"] = replFreezeCommand
	r["prefix.digest"] = digestCommand
	r["repl.check"] = replCheckCommand
	r["repl.ack"] = func(s *session, args [][]byte) {
		if err := s.srv.repl.source.Ack(args); err != nil {
			s.w.Error(err.Error())
			return
		}
		s.servesReplica()
		s.w.OK()
	}
}

const msgNoLink = "ERR REPL.HELLO comes first on this connection"

// onLink runs fn off the loop with the session's link.
func (s *session) onLink(fn func(*resp.Writer, *replica.Link)) {
	k := s.link
	if k == nil {
		s.w.Error(msgNoLink)
		return
	}
	s.parkRun(func(w *resp.Writer) { k.Serve(false, func() { fn(w, k) }) })
}

func replyDocument(w *resp.Writer) func([]byte, error) {
	return func(b []byte, err error) {
		if err != nil {
			w.Error(errorReply(err))
			return
		}
		w.Bulk(b)
	}
}

// errorReply words an error as a reply, with a code in front.
func errorReply(err error) string {
	text := strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' {
			return ' '
		}
		return r
	}, err.Error())
	if code, _, _ := strings.Cut(text, " "); code == "" || strings.ToUpper(code) != code {
		return "ERR " + text
	}
	return text
}

// msgNoMasterLink is what a follower is told that asks for a history which may have to be taken back yet. (It would be taken back as far itself,
// and once more later, when what leads there is gone.)
const msgNoMasterLink = "NOMASTERLINK Can't SYNC while not connected with my master"

func replHelloCommand(s *session, args [][]byte) {
	if f := s.srv.repl.follower.Load(); f != nil && (f.Stopped() || !f.Status().Up) {
		s.w.Error(msgNoMasterLink)
		return
	}
	host, _, err := net.SplitHostPort(s.conn.RemoteAddr())
	if err != nil {
		host = "127.0.0.1" // a unix socket
	}
	k, b, err := s.srv.repl.source.Hello(args, host, s.conn.Close)
	if err != nil {
		s.w.Error(errorReply(err))
		return
	}
	if s.link != nil {
		s.link.Close()
	}
	s.link = k
	s.servesReplica()
	s.w.Bulk(b)
}

// servesReplica notes that the connection is a replica's: it is none of the normal clients, and no pause concerns it.
func (s *session) servesReplica() {
	if !s.replica {
		s.replica = true
		s.conn.SetIdleExempt(true)
		s.setInfo(func(i *clientInfo) { i.replica = true })
	}
}

func replCheckCommand(s *session, args [][]byte) {
	args = cloneArgs(args)
	s.onLink(func(w *resp.Writer, _ *replica.Link) {
		sums, err := s.srv.repl.source.Check(args[1:])
		if err != nil {
			w.Error(errorReply(err))
			return
		}
		w.Array(len(sums))
		for _, n := range sums {
			w.Int(n)
		}
	})
}

func replPullCommand(s *session, args [][]byte) {
	k := s.link
	if k == nil {
		s.w.Error(msgNoLink)
		return
	}
	args = cloneArgs(args)
	s.parkWait(func(ctx context.Context, w *resp.Writer) { k.Serve(true, func() { k.Pull(ctx, args[1:], w) }) })
}

// replicaofCommand is REPLICAOF host port | NO ONE. What takes long happens behind the reply.
func replicaofCommand(s *session, args [][]byte) {
	srv := s.srv
	if srv.repl.over.state() != noFailover {
		s.w.Error("ERR REPLICAOF not allowed while failing over.")
		return
	}
	if isName(args[1], "no") && isName(args[2], "one") {
		s.changeRole(func() (string, error) { return "OK", srv.promote() })
		return
	}
	host, port := string(args[1]), string(args[2])
	if n, ok := parseInt(args[2]); !ok || n < 0 || n > 65535 || host == "" {
		s.w.Error("ERR Invalid master port")
		return
	}
	s.changeRole(func() (string, error) {
		again, err := srv.replicate(host, port)
		if again {
			return "OK Already connected to specified master", nil
		}
		return "OK", err
	})
}

// changeRole runs change, which takes the shards' locks, off the loop. In a transaction that holds such locks it runs when that is
// over, and what comes of it stands in the log.
func (s *session) changeRole(change func() (string, error)) {
	if s.multi.running && s.multi.locks {
		s.w.OK()
		s.onLoop(func() {
			if _, err := change(); err != nil {
				s.srv.log.Error("REPLICAOF in a transaction failed", "error", err)
			}
		})
		return
	}
	s.parkRun(func(w *resp.Writer) {
		text, err := change()
		if err != nil {
			w.Error(errorReply(err))
			return
		}
		w.Simple(text)
	})
}
