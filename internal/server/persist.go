package server

import (
	"errors"
	"time"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

func lastSaveCommand(s *session, _ [][]byte) { s.w.Int(s.srv.eng.LastSave()) }

// saveError words an engine error for a reply.
func saveError(err error) string {
	if errors.Is(err, engine.ErrSaving) || errors.Is(err, engine.ErrNoDirectory) {
		return err.Error()
	}
	return "ERR snapshot failed: " + err.Error()
}

func saveCommand(s *session, _ [][]byte) {
	s.parkRun(func(w *resp.Writer) {
		s.srv.rewriting.Store(false)
		if err := s.srv.eng.Save(); err != nil {
			w.Error(saveError(err))
			return
		}
		w.OK()
	})
}

// bgsaveCommand is BGSAVE [SCHEDULE]: scheduled, it waits for the snapshot under way.
func bgsaveCommand(s *session, args [][]byte) {
	schedule := len(args) == 2 && isName(args[1], "schedule")
	if len(args) > 2 || (len(args) == 2 && !schedule) {
		s.w.Error(msgSyntax)
		return
	}
	s.background("Background saving started", "Background saving scheduled", schedule, false)
}

// bgrewriteaofCommand is BGREWRITEAOF: a snapshot, and the log segments it makes unneeded dropped.
func bgrewriteaofCommand(s *session, _ [][]byte) {
	s.background("Background append only file rewriting started",
		"Background append only file rewriting scheduled", true, true)
}

// background starts a snapshot; rewrite says which command's name INFO shows it under. Inside a transaction, which holds the shard locks that a snapshot
// needs for a moment, it starts when the transaction is over.
func (s *session) background(started, scheduled string, schedule, rewrite bool) {
	if s.multi.running {
		s.w.Simple(scheduled)
		s.onLoop(func() { s.srv.saveSoon(rewrite) })
		return
	}
	s.parkRun(func(w *resp.Writer) {
		err := s.srv.bgsave(rewrite)
		switch {
		case err == nil:
			w.Simple(started)
		case errors.Is(err, engine.ErrSaving) && schedule:
			s.srv.saveSoon(rewrite)
			w.Simple(scheduled)
		default:
			w.Error(saveError(err))
		}
	})
}

// bgsave starts a snapshot and remembers under which name.
func (srv *Server) bgsave(rewrite bool) error {
	err := srv.eng.BGSave()
	if err == nil {
		srv.rewriting.Store(rewrite)
	}
	return err
}

// saveSoon starts a snapshot as soon as none runs.
func (srv *Server) saveSoon(rewrite bool) {
	srv.jobs.Add(1)
	srv.scheduled.Add(1)
	go func() {
		defer srv.jobs.Done()
		defer srv.scheduled.Add(-1)
		for {
			err := srv.bgsave(rewrite)
			if !errors.Is(err, engine.ErrSaving) {
				if err != nil {
					srv.log.Error("scheduled snapshot failed", "error", err)
				}
				return
			}
			select {
			case <-time.After(cronPeriod):
			case <-srv.ctx.Done():
				return
			}
		}
	}()
}

// shutdownOptions is a parsed SHUTDOWN.
type shutdownOptions struct{ save, nosave, now, force, abort bool }

func parseShutdown(args [][]byte) (o shutdownOptions, ok bool) {
	for _, a := range args[1:] {
		switch {
		case isName(a, "save"):
			o.save = true
		case isName(a, "nosave"):
			o.nosave = true
		case isName(a, "now"):
			o.now = true
		case isName(a, "force"):
			o.force = true
		case isName(a, "abort"):
			o.abort = true
		default:
			return o, false
		}
	}
	others := o.save || o.nosave || o.now || o.force
	return o, (!o.abort || !others) && (!o.save || !o.nosave)
}

// shutdownCommand is SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]. The log is always brought to
// disk; SAVE takes a snapshot as well. The client gets no reply but the end of its connection.
func shutdownCommand(s *session, args [][]byte) {
	o, ok := parseShutdown(args)
	switch {
	case !ok:
		s.w.Error(msgSyntax)
		return
	case o.abort:
		s.w.Error("ERR No shutdown in progress.")
		return
	}
	if text := s.srv.scripts.rt.Busy(s.srv.busyLimit()); text != "" && !o.nosave {
		s.w.Error(text)
		return
	}
	s.parkRun(func(w *resp.Writer) {
		if o.save {
			if err := s.srv.eng.Save(); err != nil && !o.force {
				s.srv.log.Error("SHUTDOWN SAVE: snapshot failed, going on", "error", err)
				w.Error("ERR Errors trying to SHUTDOWN. Check logs.")
				return
			}
		}
		s.srv.log.Info("shutdown asked for by a client", "addr", s.conn.RemoteAddr())
		select {
		case s.srv.stop <- StopRequest{Save: o.save}:
		default: // one is enough
		}
		s.conn.Close()
	})
}
