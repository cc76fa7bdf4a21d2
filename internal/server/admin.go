package server

import (
	"context"
	"fmt"
	"time"

	"github.com/kevydb/kevy/internal/command"
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

// roleCommand answers ROLE: always a master, without replicas.
func roleCommand(s *session, _ [][]byte) {
	s.w.Array(3)
	s.w.BulkString("master")
	s.w.Uint(s.srv.replOffset())
	s.w.Array(0)
}

// replOffset is the number of frames appended in the current generations of all shards.
func (srv *Server) replOffset() uint64 {
	var n uint64
	for i := range srv.eng.Shards() {
		n += srv.eng.Dir().Log(i).Appended()
	}
	return n
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
	case !ok1:
		s.w.Error("ERR invalid first DB index")
	case !ok2:
		s.w.Error("ERR invalid second DB index")
	case first != 0 || second != 0:
		s.w.Error("ERR DB index is out of range")
	default:
		s.w.OK()
	}
}

// waitCommand is WAIT: there are no replicas to wait for, so it runs into its timeout.
func waitCommand(s *session, args [][]byte) {
	replicas, timeout, bad := command.ParseWait(args, time.Now().UnixMilli())
	if bad != "" {
		s.w.Error(bad)
		return
	}
	if replicas <= 0 || s.multi.running {
		s.w.Int(0)
		return
	}
	s.parkWait(func(ctx context.Context, w *resp.Writer) {
		sleepUntil(ctx, timeout)
		w.Int(0)
	})
}

// sleepUntil waits for the timeout in ms, 0 for ever, or the end of ctx.
func sleepUntil(ctx context.Context, timeout int64) {
	var end <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(time.Duration(min(timeout, 1<<43)) * time.Millisecond)
		defer t.Stop()
		end = t.C
	}
	select {
	case <-end:
	case <-ctx.Done():
	}
}

// waitaofCommand is WAITAOF: local counts this server's log when all that was appended before is
// durable.
func waitaofCommand(s *session, args [][]byte) {
	local, replicas, timeout, bad := command.ParseWaitAOF(args, time.Now().UnixMilli())
	if bad != "" {
		s.w.Error(bad)
		return
	}
	answer := func(w *resp.Writer, synced int64) {
		w.Array(2)
		w.Int(synced)
		w.Int(0)
	}
	logs := s.srv.behind()
	if s.multi.running || (len(logs) == 0 && replicas == 0) || (local == 0 && replicas == 0) {
		synced := int64(0)
		if len(logs) == 0 {
			synced = 1
		}
		answer(s.w, synced)
		return
	}
	s.parkWait(func(ctx context.Context, w *resp.Writer) {
		ctx, cancel := withTimeout(ctx, timeout)
		defer cancel()
		synced := int64(0)
		if waitDurable(ctx, logs) {
			synced = 1
		}
		if replicas > 0 {
			<-ctx.Done()
		}
		answer(w, synced)
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
