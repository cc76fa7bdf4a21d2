package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"time"

	"github.com/kevydb/kevy/internal/replica"
	"github.com/kevydb/kevy/resp"
)

// stockReplica is what a replica that is a stock Redis says of itself before PSYNC.
type stockReplica struct {
	host, port string
	eof        bool // it takes a copy without a length
	stream     *replica.Stock
}

const (
	msgNoEOF = "ERR this server sends its copy without a length: the replica has to say REPLCONF capa eof (Redis 4.0 and later do)"
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
			if n, ok := parseInt(args[i+1]); !ok || n < 0 || n > 65535 {
				s.w.Error(msgNotInteger)
				return
			}
			s.stock.port = value
		case isName(args[i], "ip-address"):
			if len(value) > 255 {
				s.w.Error("ERR REPLCONF ip-address provided by replica instance is too long: " + value[:255])
				return
			}
			s.stock.host = value
		case isName(args[i], "capa"):
			s.stock.eof = s.stock.eof || value == "eof"
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

// psyncCommand is PSYNC replicationid offset: a stock Redis follows. It always gets a full copy.
func psyncCommand(s *session, _ [][]byte) {
	srv := s.srv
	switch f := srv.repl.follower.Load(); {
	case s.stock.stream != nil:
		return // as Redis: it is being served
	case f != nil && (f.Stopped() || !f.Status().Up):
		s.w.Error(msgNoMasterLink)
		return
	case !s.stock.eof:
		s.w.Error(msgNoEOF)
		return
	}
	host, _, err := net.SplitHostPort(s.conn.RemoteAddr())
	if err != nil {
		host = "127.0.0.1" // a unix socket
	}
	if s.stock.host != "" {
		host = s.stock.host
	}
	if s.stock.port == "" {
		s.stock.port = "0"
	}
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails
	ctx, cancel := context.WithCancel(srv.ctx)
	k := srv.repl.source.NewStock(host, s.stock.port, id[:], s.streamTo(ctx))
	s.stock.stream = k
	if s.link != nil {
		s.link.Close()
	}
	s.link = k.Link()
	s.link.OnClose(cancel)
	s.servesReplica()
	s.conn.SetOutputBounds(&unbounded)
	addr := net.JoinHostPort(host, s.stock.port)
	srv.log.Info("replication: a replica that is no kevy gets a full copy", "replica", addr)
	go func() {
		err := k.Serve(ctx, srv.replTimeout())
		if ctx.Err() == nil {
			srv.log.Warn("replication: a replica that is no kevy is served no more", "replica", addr, "error", err)
		}
		s.conn.Close()
	}()
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
