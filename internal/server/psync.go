package server

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/replica"
	"github.com/kevydb/kevy/resp"
)

// stockReplica is what a replica that is a stock Redis says of itself before PSYNC.
type stockReplica struct {
	host, port string
	eof        bool // it takes a copy without a length
	psync2     bool // it knows that a stream has an id when it goes on
	copyOnly   bool // it wants a copy and no stream

	noKeys, noFunctions bool // its copy is to have none
	stream              *replica.Stock
}

const (
	msgFiltered = "ERR Filtered replica requires EOF capability"
	// streamAhead is how many bytes at most wait for a replica's socket before more is made.
	streamAhead = 4 << 20
	streamPoll  = 2 * time.Millisecond
)

// unbounded are the bounds of a connection to which nothing is sent that its client has not taken what came before.
var unbounded resp.OutputBounds

// replconfCommand is REPLCONF option value ... A replica sends it before PSYNC, and what it has applied afterwards, for which there is no reply.
func replconfCommand(s *session, args [][]byte) {
	if len(args)%2 == 0 {
		s.w.Error(msgSyntax)
		return
	}
	for i := 1; i < len(args); i += 2 {
		value := string(args[i+1])
		switch {
		case isName(args[i], "listening-port"):
			if _, ok := parseInt(args[i+1]); !ok {
				s.w.Error(msgNotInteger)
				return
			}
			s.stock.port = value
		case isName(args[i], "ip-address"):
			if bad := badAnnounced(value); bad != "" {
				s.w.Error(bad)
				return
			}
			s.stock.host = value
		case isName(args[i], "capa"):
			s.stock.eof = s.stock.eof || isName(args[i+1], "eof")
			s.stock.psync2 = s.stock.psync2 || isName(args[i+1], "psync2")
		case isName(args[i], "rdb-only"):
			n, ok := parseInt(args[i+1])
			switch {
			case !ok:
				s.w.Error(msgNotInteger)
				return
			case n < 0 || n > 1:
				s.w.Error(command.MsgZeroOrOne)
				return
			}
			s.stock.copyOnly = n == 1
		case isName(args[i], "rdb-filter-only"):
			noFunctions := true
			for part := range strings.FieldsSeq(value) {
				if !strings.EqualFold(part, "functions") {
					s.w.Error("ERR Unsupported rdb-filter-only option: " + part)
					return
				}
				noFunctions = false
			}
			s.stock.noKeys, s.stock.noFunctions = true, noFunctions
		case isName(args[i], "ack"):
			if n, ok := parseInt(args[i+1]); ok && s.stock.stream != nil {
				s.stock.stream.Ack(n)
			}
			return
		case isName(args[i], "getack"):
			return
		default:
			s.w.Error("ERR Unrecognized REPLCONF option: " + string(args[i]))
			return
		}
	}
	s.w.OK()
}

// maxHost is how long the address of a replica is at most.
const maxHost = 255

// badAnnounced returns what is wrong with the address that a replica gives itself. INFO shows it in a line of fields.
func badAnnounced(host string) string {
	switch {
	case len(host) > maxHost:
		return fmt.Sprintf("ERR REPLCONF ip-address provided by replica instance is too long: %d bytes", len(host))
	case strings.ContainsFunc(host, replica.NoAddress):
		return "ERR REPLCONF ip-address provided by replica instance is no address"
	}
	return ""
}

// psyncCommand is PSYNC replicationid offset: a stock Redis follows.
func psyncCommand(s *session, args [][]byte) {
	offset, ok := parseInt(args[2])
	switch {
	case s.stock.stream != nil: // as Redis: it is being served
	case len(args) > 3 && isName(args[3], "failover"):
		s.w.Error(failoverRefusal(s.srv.repl.follower.Load() != nil))
	case s.srv.linkDown():
		s.w.Error(msgNoMasterLink)
	case !ok:
		s.w.Error(msgNotInteger)
	default:
		s.serveStock(replica.StockOptions{Replid: string(args[1]), Offset: offset - 1, PSync2: s.stock.psync2})
	}
}

// syncCommand is SYNC: a copy, and the stream behind it, for tools such as redis-cli --rdb.
func syncCommand(s *session, _ [][]byte) {
	switch {
	case s.stock.stream != nil: // as Redis: it is being served
	case s.srv.linkDown():
		s.w.Error(msgNoMasterLink)
	default:
		s.serveStock(replica.StockOptions{Replid: "?", Sync: true})
	}
}

// linkDown reports whether this server is to follow another one and does not.
func (srv *Server) linkDown() bool {
	f := srv.repl.follower.Load()
	return f != nil && (f.Stopped() || !f.Status().Up)
}

// serveStock serves a replica that is no kevy until it goes. What o lacks the replica has said before.
func (s *session) serveStock(o replica.StockOptions) {
	srv := s.srv
	if s.stock.noKeys && !s.stock.eof {
		s.w.Error(msgFiltered)
		return
	}
	host, _, err := net.SplitHostPort(s.conn.RemoteAddr())
	if err != nil {
		host = "127.0.0.1" // a unix socket
	}
	ctx, cancel := context.WithCancel(srv.ctx)
	o.Host, o.Port, o.ID = cmp.Or(s.stock.host, host), cmp.Or(s.stock.port, "0"), randomHex()
	o.EOF, o.CopyOnly, o.NoKeys, o.NoFunctions = s.stock.eof, s.stock.copyOnly, s.stock.noKeys, s.stock.noFunctions
	o.Timeout, o.Backlog, o.Send = srv.replTimeout(), srv.number("repl-backlog-size"), s.streamTo(ctx)
	k := srv.repl.source.NewStock(o)
	s.stock.stream = k
	if s.link != nil {
		s.link.Close()
	}
	s.link = k.Link()
	s.link.OnClose(cancel)
	s.servesReplica()
	s.conn.SetOutputBounds(&unbounded)
	addr := net.JoinHostPort(o.Host, o.Port)
	srv.log.Info("replication: a replica that is no kevy asks", "replica", addr, "stream", o.Replid, "offset", o.Offset+1, "copy only", o.CopyOnly)
	srv.jobs.Go(func() {
		err := k.Serve(ctx)
		if err == nil {
			s.conn.Post(s.conn.CloseAfterReply)
			return
		}
		if ctx.Err() == nil {
			srv.log.Warn("replication: a replica that is no kevy is served no more", "replica", addr, "error", err)
		}
		s.conn.Close()
	})
}

// failoverRefusal is the answer to a stock Redis that wants this server to take over from it: then it gives its failover up. A server that has a history of its own
// can't go on in that of a Redis.
func failoverRefusal(follows bool) string {
	if !follows {
		return "ERR PSYNC FAILOVER can't be sent to a master."
	}
	return "ERR PSYNC FAILOVER is not for a kevy: REPLICAOF NO ONE promotes it"
}

// streamTo returns what hands bytes to the session's client and waits until it has taken most of them. It fails when ctx ends, and when the client neither takes nor
// says anything for as long as repl-timeout.
func (s *session) streamTo(ctx context.Context) func([]byte) error {
	return func(b []byte) error {
		left, moved := len(b), time.Now()
		for first := true; ; first = false {
			told := make(chan struct{})
			s.conn.Post(func() {
				if first {
					s.conn.W.Buf = append(s.conn.W.Buf, b...)
				}
				n := s.conn.OutputPending()
				if n < left {
					moved = time.Now()
				} else if last := s.conn.LastActive(); last.After(moved) {
					moved = last
				}
				left = n
				close(told)
			})
			select {
			case <-told:
			case <-ctx.Done(): // the connection may have closed: then nothing is posted
				return context.Cause(ctx)
			}
			switch limit := s.srv.replTimeout(); {
			case left < streamAhead:
				return nil
			case time.Since(moved) > limit:
				return fmt.Errorf("nothing was taken for %s", limit)
			}
			select {
			case <-time.After(streamPoll):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}
