package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/kevydb/kevy/internal/replica"
	"github.com/kevydb/kevy/resp"
)

// States of a failover, as INFO shows them.
const (
	noFailover      = "no-failover"
	failoverWaits   = "waiting-for-sync"
	failoverHandsOn = "failover-in-progress"
)

// takeOverWait is how long a replica that is asked to take over waits until it can.
const takeOverWait = 5 * time.Second

// failover is FAILOVER, on the server that is to be a replica. First writes are held back until a replica has everything. Then the server becomes a
// follower of that one, so that its log is closed, and asks it, before anything else, to take over at just the cursors where the log ends.
type failover struct {
	mu     sync.Mutex
	now    string                  // state; "": none
	cancel context.CancelCauseFunc // of the one under way
	done   chan struct{}           // closed at its end
}

var errFailoverAborted = errors.New("aborted by FAILOVER ABORT")

func (o *failover) state() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now == "" {
		return noFailover
	}
	return o.now
}

func (o *failover) set(state string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = state
}

// abort tells the failover that is under way to end, and returns what is closed then; nil if there is none.
func (o *failover) abort() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now == "" {
		return nil
	}
	o.cancel(errFailoverAborted)
	return o.done
}

// failoverOrder is a parsed FAILOVER.
type failoverOrder struct {
	abort      bool
	host, port string // empty: any replica
	force      bool
	timeout    time.Duration // 0: none
}

// parseFailover reads FAILOVER [TO host port] [FORCE] [TIMEOUT ms], in any order, or FAILOVER ABORT.
func parseFailover(args [][]byte) (o failoverOrder, bad string) {
	if len(args) == 2 && isName(args[1], "abort") {
		o.abort = true
		return o, ""
	}
	for i := 1; i < len(args); i++ {
		more := len(args) - 1 - i
		switch {
		case isName(args[i], "timeout") && more >= 1 && o.timeout == 0:
			ms, ok := parseInt(args[i+1])
			if !ok {
				return o, msgNotInteger
			}
			if ms <= 0 {
				return o, "ERR FAILOVER timeout must be greater than 0"
			}
			o.timeout = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
			i++
		case isName(args[i], "to") && more >= 2 && o.port == "":
			port, ok := parseInt(args[i+2])
			if !ok {
				return o, msgNotInteger
			}
			o.host, o.port = string(args[i+1]), strconv.FormatInt(port, 10)
			i += 2
		case isName(args[i], "force") && !o.force:
			o.force = true
		default:
			return o, msgSyntax
		}
	}
	return o, ""
}

// failoverCommand is FAILOVER. What it begins goes on behind the reply.
func failoverCommand(s *session, args [][]byte) {
	order, bad := parseFailover(args)
	if bad == "" && !order.abort {
		bad = s.srv.beginFailover(&order)
	}
	switch {
	case bad != "":
		s.w.Error(bad)
	case order.abort:
		s.abortFailover()
	default:
		s.w.OK()
	}
}

func (s *session) abortFailover() {
	done := s.srv.repl.over.abort()
	switch {
	case done == nil:
		s.w.Error("ERR No failover in progress.")
	case s.multi.running: // the end may need locks that the transaction has
		s.w.OK()
	default:
		s.parkRun(func(w *resp.Writer) {
			<-done
			w.OK()
		})
	}
}

// beginFailover begins what FAILOVER asks for, or returns the error that is its reply.
func (srv *Server) beginFailover(order *failoverOrder) (bad string) {
	o := &srv.repl.over
	o.mu.Lock()
	defer o.mu.Unlock()
	followers := slices.DeleteFunc(srv.repl.source.Followers(), func(f replica.FollowerInfo) bool { return !f.CanTakeOver() })
	at := slices.IndexFunc(followers, func(f replica.FollowerInfo) bool { return f.Is(order.host, order.port) })
	switch {
	case o.now != "":
		return "ERR FAILOVER already in progress."
	case srv.repl.follower.Load() != nil:
		return "ERR FAILOVER is not valid when server is a replica."
	case len(followers) == 0:
		return "ERR FAILOVER requires connected replicas."
	case order.force && (order.timeout == 0 || order.port == ""):
		return "ERR FAILOVER with force option requires both a timeout and target HOST and IP."
	case order.port != "" && at < 0:
		return "ERR FAILOVER target HOST and PORT is not a replica."
	case order.port != "" && followers[at].Acks == nil:
		return "ERR FAILOVER target replica is not online."
	}
	ctx, cancel := context.WithCancelCause(srv.ctx)
	o.now, o.cancel, o.done = failoverWaits, cancel, make(chan struct{})
	srv.pause.hold(true)
	srv.log.Info("failover: waiting until a replica has everything", "to", net.JoinHostPort(order.host, order.port), "timeout", order.timeout)
	srv.jobs.Go(func() {
		defer close(o.done)
		defer cancel(nil)
		if err := srv.failOver(ctx, order); err != nil {
			srv.log.Warn("failover: given up", "error", err)
		} else {
			srv.log.Info("failover: the replica is the primary now")
		}
		o.set("")
		srv.pause.hold(false)
	})
	return ""
}

// failOver waits for a replica, and hands over to it. After an error this server is a primary again, unless it is about to stop.
func (srv *Server) failOver(ctx context.Context, order *failoverOrder) error {
	to, force, err := srv.awaitReplica(ctx, order)
	if err != nil {
		return err
	}
	answer := make(chan error, 1)
	if err := srv.handOver(to, force, answer); err != nil {
		return err
	}
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil || errors.Is(err, errStopping) {
		return err
	}
	return errors.Join(err, srv.promote())
}

// awaitReplica waits for a replica that has everything. force: it need not have, as the time is over.
func (srv *Server) awaitReplica(ctx context.Context, order *failoverOrder) (to replica.FollowerInfo, force bool, err error) {
	if order.timeout > 0 {
		late := fmt.Errorf("no replica had everything within %s", order.timeout)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, order.timeout, late)
		defer cancel()
	}
	to, err = srv.repl.source.InStep(ctx, order.host, order.port)
	if err != nil && order.force && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return replica.FollowerInfo{Host: order.host, Port: order.port}, true, nil
	}
	return to, false, err
}

// handOver makes this server a follower of a replica, which is asked to take over first. answer gets what becomes of that.
func (srv *Server) handOver(to replica.FollowerInfo, force bool, answer chan<- error) error {
	r := &srv.repl
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return errStopping
	}
	if r.follower.Load() != nil {
		return errors.New("this server has become a replica meanwhile")
	}
	r.over.set(failoverHandsOn)
	srv.log.Info("failover: handing over", "to", net.JoinHostPort(to.Host, to.Port), "force", force)
	return srv.beginFollowing(to.Host, to.Port, &replica.TakeOver{ID: srv.ids.replID(), Force: force, Done: func(err error) { answer <- err }})
}

// replTakeOverCommand is REPL.TAKEOVER, on the replica that is to be the primary.
func replTakeOverCommand(s *session, args [][]byte) {
	o, err := replica.ParseTakeOver(args, s.srv.eng.Shards())
	if err != nil {
		s.w.Error(errorReply(err))
		return
	}
	from := s.conn.RemoteAddr()
	s.parkWait(func(ctx context.Context, w *resp.Writer) {
		if err := s.srv.takeOver(ctx, &o, from); err != nil {
			w.Error(errorReply(err))
			return
		}
		w.OK()
	})
}

// takeOver makes this server the primary, as the one it follows asks.
func (srv *Server) takeOver(ctx context.Context, o *replica.Order, from string) error {
	f := srv.repl.follower.Load()
	switch {
	case f == nil && o.Obeyed(srv.eng.Dir()):
		return nil
	case f == nil:
		return errors.New("ERR REPL.TAKEOVER can't be sent to a primary")
	}
	if err := srv.awaitOrder(ctx, f, o); err != nil {
		return err
	}
	srv.repl.mu.Lock()
	defer srv.repl.mu.Unlock()
	if srv.repl.follower.Load() != f {
		return errors.New("ERR this server follows another one meanwhile")
	}
	srv.log.Info("failover: taking over", "asked", from, "force", o.Force)
	return srv.promoteLocked()
}

// awaitOrder waits until the order can be obeyed: it is the source's, and the log ends where that of the source does, which is closed. A source that has been
// promoted itself has an id of which its replica hears only when it connects anew, and the last frames may be on their way.
func (srv *Server) awaitOrder(ctx context.Context, f *replica.Follower, o *replica.Order) error {
	ctx, cancel := context.WithTimeout(ctx, takeOverWait)
	defer cancel()
	for {
		var err error
		if f.Status().SourceID != o.ID {
			err = errors.New("ERR REPL.TAKEOVER comes from a server that this one does not follow")
		} else if have := srv.repl.source.Tails(); !o.Force && !slices.Equal(have, o.At) {
			err = fmt.Errorf("ERR this replica ends at %v, its source at %v", have, o.At)
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Millisecond):
		}
	}
}
