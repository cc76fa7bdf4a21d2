package server

import (
	"errors"
	"strings"

	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

func lastSaveCommand(s *session, _ [][]byte) { s.w.Int(s.srv.eng.LastSave()) }

// saveError words an engine error for a reply.
func saveError(err error) string {
	if errors.Is(err, engine.ErrSaving) || errors.Is(err, engine.ErrRewriting) || errors.Is(err, engine.ErrNoDirectory) {
		return err.Error()
	}
	return "ERR snapshot failed: " + err.Error()
}

// saveCommand is SAVE. As with Redis it is refused while BGSAVE runs, but not while the log is rewritten.
func saveCommand(s *session, _ [][]byte) {
	s.parkRun(func(w *resp.Writer) {
		err := s.srv.eng.Save()
		if errors.Is(err, engine.ErrRewriting) {
			err = s.srv.eng.SaveAfter()
		}
		if err != nil {
			w.Error(saveError(err))
			return
		}
		w.OK()
	})
}

const msgOtherSave = "ERR Another child process is active (AOF?): can't BGSAVE right now. " +
	"Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible."

// bgsaveCommand is BGSAVE [SCHEDULE]: scheduled, it waits for BGREWRITEAOF's snapshot to end.
func bgsaveCommand(s *session, args [][]byte) {
	schedule := len(args) == 2 && isName(args[1], "schedule")
	if len(args) > 2 || (len(args) == 2 && !schedule) {
		s.w.Error(msgSyntax)
		return
	}
	s.background(engine.SaveData, "Background saving", func(err error) string {
		switch {
		case !errors.Is(err, engine.ErrRewriting):
			return saveError(err)
		case schedule:
			return ""
		}
		return msgOtherSave
	})
}

// bgrewriteaofCommand is BGREWRITEAOF: a snapshot, and the log segments it makes unneeded dropped.
func bgrewriteaofCommand(s *session, _ [][]byte) {
	s.background(engine.RewriteLog, "Background append only file rewriting", func(err error) string {
		if errors.Is(err, engine.ErrSaving) {
			return ""
		}
		return saveError(err)
	})
}

// background starts a snapshot. When it can't, refusal says with which error; with none, it is to begin when the running
// one has ended. Inside a transaction, which holds the shard locks that a snapshot needs for a moment, it
// begins when the transaction is over.
func (s *session) background(kind engine.SaveKind, what string, refusal func(error) string) {
	eng := s.srv.eng
	if s.multi.running {
		s.w.Simple(what + " scheduled")
		eng.ScheduleSave(kind)
		return
	}
	s.parkRun(func(w *resp.Writer) {
		err := eng.BGSave(kind)
		if err == nil {
			w.Simple(what + " started")
			return
		}
		if text := refusal(err); text != "" {
			w.Error(text)
			return
		}
		eng.ScheduleSave(kind)
		w.Simple(what + " scheduled")
	})
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
// disk; SAVE takes a snapshot as well, which without SAVE and NOSAVE happens only when there are save rules. FORCE
// goes on when the snapshot fails. NOW has no meaning without replicas. The client gets no reply but the end of
// its connection.
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
		if err := s.srv.saveAtEnd(o); err != nil {
			w.Error("ERR Errors trying to SHUTDOWN. Check logs.")
			return
		}
		s.srv.log.Info("shutdown asked for by a client", "addr", s.conn.RemoteAddr())
		select {
		case s.srv.stop <- StopRequest{Save: o.save}:
		default: // one is enough
		}
		s.conn.Close()
	})
}

// saveAtEnd takes the snapshot that a shutdown asks for. The error means: do not shut down.
func (srv *Server) saveAtEnd(o shutdownOptions) error {
	if !o.save && (o.nosave || len(srv.config().Save) == 0) {
		return nil
	}
	err := srv.eng.SaveAfter()
	switch {
	case err == nil || errors.Is(err, engine.ErrNoDirectory):
		return nil
	case o.force:
		srv.log.Warn("snapshot before the shutdown failed; it was forced", "error", err)
		return nil
	}
	srv.log.Error("snapshot before the shutdown failed: the shutdown is called off", "error", err)
	return err
}

// SaveAtSignal takes the snapshot that shutdown-on-sigterm or shutdown-on-sigint asks for. The error means: do not
// stop.
func (srv *Server) SaveAtSignal(key string) error {
	text, _ := srv.config().Get(key)
	var args [][]byte
	for word := range strings.FieldsSeq(text) {
		if word != "default" {
			args = append(args, []byte(word))
		}
	}
	o, ok := parseShutdown(append([][]byte{nil}, args...))
	if !ok {
		srv.log.Warn("words that exclude each other", "key", key, "value", text)
		o = shutdownOptions{}
	}
	return srv.saveAtEnd(o)
}

// snapshotKeys are the keys of SnapshotPolicy, and stop-writes-on-bgsave-error.
var snapshotKeys = map[string]bool{
	"save": true, "auto-aof-rewrite-percentage": true, "auto-aof-rewrite-min-size": true, "snapshot-keep": true,
	"snapshot-keep-time": true, "log-keep-time": true, "log-keep-bytes": true, "stop-writes-on-bgsave-error": true,
}

// checkSnapshots refuses writes, or takes them again, as stop-writes-on-bgsave-error says: with save rules only, as
// without them nobody has asked for snapshots.
func (srv *Server) checkSnapshots() {
	cfg := srv.config()
	failed := cfg.StopWrites && len(cfg.Save) > 0 && srv.eng.SaveStatus().ByKind[engine.SaveData].Failures > 0
	srv.setGate(gateSnapshot, failed)
}

// SnapshotPolicy is what the configuration says about snapshots.
func SnapshotPolicy(cfg *config.Config) engine.SnapshotPolicy {
	p := engine.SnapshotPolicy{
		GrowthPercent: cfg.GrowthPercent, GrowthMin: cfg.GrowthMin,
		Keep: int(cfg.SnapshotKeep), KeepTime: cfg.SnapshotKeepTime,
		LogKeepTime: cfg.LogKeepTime, LogKeepBytes: cfg.LogKeepBytes,
	}
	for _, r := range cfg.Save {
		p.Rules = append(p.Rules, engine.SaveRule{Seconds: r.Seconds, Changes: r.Changes})
	}
	return p
}
