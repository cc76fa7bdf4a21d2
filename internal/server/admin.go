package server

import (
	"context"
	"fmt"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// timeCommand answers TIME. Within a transaction or a script time stands still.
func timeCommand(s *session, _ [][]byte) {
	us := time.Now().UnixMicro()
	if s.inGroup != nil {
		us = s.inGroup.Now * 1000
	}
	s.w.Array(2)
	s.w.BulkString(fmt.Sprint(us / 1e6))
	s.w.BulkString(fmt.Sprint(us % 1e6))
}

func lolwutCommand(s *session, args [][]byte) {
	for i := 1; i < len(args); i++ {
		if isName(args[i], "version") && i+1 < len(args) {
			if _, ok := parseInt(args[i+1]); !ok {
				s.w.Error(msgNotInteger)
				return
			}
			i++
		}
	}
	s.w.Verbatim("txt", "\n  append -> fold -> answer\n  the log is the database\n\nRedis ver. "+RedisVersion+
		" (kevy "+s.srv.opt.Version+")\n")
}

func swapdbCommand(s *session, args [][]byte) {
	first, ok1 := parseInt(args[1])
	second, ok2 := parseInt(args[2])
	switch {
	case !ok1 || !isInt32(first):
		s.w.Error("ERR invalid first DB index")
	case !ok2 || !isInt32(second):
		s.w.Error("ERR invalid second DB index")
	case first != 0 || second != 0:
		s.w.Error("ERR DB index is out of range")
	default:
		s.w.OK()
	}
}

// waitCommand is WAIT: it waits for replicas to have applied all that is in the log now.
func waitCommand(s *session, args [][]byte) {
	replicas, timeout, bad := command.ParseWait(args, time.Now().UnixMilli())
	src := s.srv.repl.source
	dismissed := src.Dismissed() // before the role is looked at
	switch {
	case s.srv.eng.Following():
		s.w.Error("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica " +
			"is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.")
		return
	case bad != "":
		s.w.Error(bad)
		return
	}
	to := src.Tails()
	if n := src.Reached(to, false); int64(n) >= replicas || s.multi.running {
		s.w.Int(int64(n))
		return
	}
	s.parkWait(func(ctx context.Context, w *resp.Writer) {
		ctx, cancel := withTimeout(ctx, timeout)
		defer cancel()
		n, ok := src.Await(ctx, dismissed, int(replicas), to, false)
		if !ok {
			w.Error(engine.Unblocked)
			return
		}
		w.Int(int64(n))
	})
}

// waitaofCommand is WAITAOF: local counts this server's log when all that was appended before is durable, and so do replicas
// for theirs.
func waitaofCommand(s *session, args [][]byte) {
	local, replicas, timeout, bad := command.ParseWaitAOF(args, time.Now().UnixMilli())
	src := s.srv.repl.source
	dismissed := src.Dismissed() // before the role is looked at
	switch {
	case s.srv.eng.Following():
		s.w.Error("ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just " +
			"local and are not propagated.")
		return
	case bad != "":
		s.w.Error(bad)
		return
	}
	answer := func(w *resp.Writer, synced bool, n int) {
		w.Array(2)
		w.Int(int64(bit(synced)))
		w.Int(int64(n))
	}
	to, logs := src.Tails(), s.srv.behind()
	n := src.Reached(to, true)
	if s.multi.running || (len(logs) == 0 || local == 0) && int64(n) >= replicas {
		answer(s.w, len(logs) == 0, n)
		return
	}
	s.parkWait(func(ctx context.Context, w *resp.Writer) {
		ctx, cancel := withTimeout(ctx, timeout)
		defer cancel()
		synced := waitDurable(ctx, logs)
		n, ok := src.Await(ctx, dismissed, int(replicas), to, true)
		if !ok {
			w.Error(engine.Unblocked)
			return
		}
		answer(w, synced, n)
	})
}

func withTimeout(ctx context.Context, ms int64) (context.Context, context.CancelFunc) {
	if ms == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(min(ms, 1<<43))*time.Millisecond)
}

// mark is a log and an offset in it.
type mark struct {
	log *log.Log
	to  log.Cursor
}

// behind returns the logs that are not durable up to their tails.
func (srv *Server) behind() (out []mark) {
	for i := range srv.eng.Shards() {
		l := srv.eng.Dir().Log(i)
		if to := l.Tail(); l.DurableTail() != to {
			out = append(out, mark{l, to})
		}
	}
	return out
}

// waitDurable makes the logs durable up to their marks; false if ctx ends first or a log fails.
func waitDurable(ctx context.Context, marks []mark) bool {
	for _, m := range marks {
		done := make(chan struct{})
		m.log.OnDurableTo(m.to, func() { close(done) })
		m.log.SyncThrough(m.to.Offset)
		select {
		case <-done:
		case <-ctx.Done():
			return false
		}
		if m.log.Err() != nil {
			return false
		}
	}
	return true
}
