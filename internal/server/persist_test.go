package server

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
)

// save sets the save rules.
func (c *client) save(rules string) {
	c.t.Helper()
	if r, err := c.Do("CONFIG", "SET", "save", rules); err != nil || show(&r) != "+OK" {
		c.t.Errorf("CONFIG SET save %q: %s %v", rules, show(&r), err)
	}
}

// TestStopWritesOnSaveError: while the last snapshot has failed and there are save rules, writes and PING are refused
// everywhere, reads are not; the next good snapshot, or the setting, ends that.
func TestStopWritesOnSaveError(t *testing.T) {
	ffs := faultfs.New(vfs.NewMem())
	s := start(t, testOptions{fs: ffs})
	c := s.client()
	const misconf = "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.*"
	c.want("SET k v", "+OK")
	ffs.Inject(faultfs.OnPath(".snap", faultfs.FailFrom(faultfs.OpSync, 1, nil)))
	c.want("SAVE", "-ERR snapshot failed: *")
	c.want("SET k v", "+OK") // nobody has asked for snapshots
	c.save("3600 1")
	c.want("SET k w", misconf)
	c.want("PING", misconf)
	c.want("GET k", "v")
	c.want("MULTI", "+OK")
	c.want("SET k w", misconf)
	c.want("EXEC", "-EXECABORT Transaction discarded because of previous errors.")
	c.want("EVAL return(redis.call('set',KEYS[1],'w')) 1 k", "-MISCONF Redis is configured*")
	c.want("EVAL return(redis.call('get',KEYS[1])) 1 k", "v")
	for field, want := range map[string]string{
		"rdb_last_bgsave_status": "err", "aof_last_bgrewrite_status": "ok", "snapshot_failures": "1", "snapshot_last_id": "",
	} {
		if got := c.field("persistence", field); got != want {
			t.Errorf("%s:%s, want %s", field, got, want)
		}
	}
	if got := c.field("persistence", "snapshot_error"); !strings.Contains(got, "injected") {
		t.Errorf("snapshot_error:%s", got)
	}
	c.want("CONFIG SET stop-writes-on-bgsave-error no", "+OK")
	c.want("SET k w", "+OK")
	c.want("CONFIG SET stop-writes-on-bgsave-error yes", "+OK")
	c.want("SET k x", misconf)
	ffs.Inject(nil)
	c.want("BGSAVE", "+Background saving started")
	eventually(t, "writes again", func() bool { return c.do("SET k x") == "+OK" })
	if got := c.field("persistence", "snapshot_last_age_sec"); got == "-1" {
		t.Error("no age of the snapshot")
	}
}

// slowSnapshots makes snapshots wait until done is called.
func slowSnapshots(ffs *faultfs.FS) (began *atomic.Bool, done func()) {
	began = new(atomic.Bool)
	wait := make(chan struct{})
	ffs.Inject(faultfs.OnPath(".snap", func(op faultfs.Op) error {
		if op.Kind == faultfs.OpWriteAt {
			began.Store(true)
			<-wait
		}
		return nil
	}))
	return began, func() { ffs.Inject(nil); close(wait) }
}

// TestSavesExclude: what SAVE, BGSAVE and BGREWRITEAOF say while another snapshot is being written, as Redis does.
func TestSavesExclude(t *testing.T) {
	ffs := faultfs.New(vfs.NewMem())
	s := start(t, testOptions{fs: ffs})
	c := s.client()
	c.want("SET k v", "+OK")
	began, done := slowSnapshots(ffs)
	c.want("BGREWRITEAOF", "+Background append only file rewriting started")
	eventually(t, "a rewrite", began.Load)
	c.want("BGREWRITEAOF", "-ERR Background append only file rewriting already in progress")
	c.want("BGSAVE", "-ERR Another child process is active (AOF?): can't BGSAVE right now.*")
	if got := c.field("persistence", "aof_rewrite_in_progress") + c.field("persistence", "rdb_bgsave_in_progress"); got != "10" {
		t.Errorf("in progress: %s", got)
	}
	if got := c.field("persistence", "current_save_keys_total"); got != "1" {
		t.Errorf("current_save_keys_total:%s", got)
	}
	c.want("BGSAVE SCHEDULE", "+Background saving scheduled")
	done()
	ended := func(n int) func() bool {
		return func() bool { st := s.eng.SaveStatus(); return st.Count == n && !st.Running }
	}
	eventually(t, "both", ended(2))
	began, done = slowSnapshots(ffs)
	c.want("BGSAVE", "+Background saving started")
	eventually(t, "a snapshot", began.Load)
	for _, cmd := range []string{"BGSAVE", "SAVE", "BGSAVE SCHEDULE"} {
		c.want(cmd, "-ERR Background save already in progress")
	}
	c.want("BGREWRITEAOF", "+Background append only file rewriting scheduled")
	if got := c.field("persistence", "aof_rewrite_scheduled"); got != "1" {
		t.Errorf("aof_rewrite_scheduled:%s", got)
	}
	done()
	eventually(t, "four", ended(4))
	c.want("MULTI", "+OK")
	c.want("BGSAVE", "+QUEUED")
	c.want("BGREWRITEAOF", "+QUEUED")
	c.want("EXEC", "*[+Background saving scheduled +Background append only file rewriting scheduled]")
	eventually(t, "six", ended(6))
}

// TestShutdownSaves: SHUTDOWN takes a snapshot when it is told to or there are save rules, not with NOSAVE, and does not
// end when that fails, unless forced.
func TestShutdownSaves(t *testing.T) {
	for args, c := range map[string]struct {
		rules      string
		fails      bool
		ends, save bool
	}{
		"":             {ends: true},
		"SAVE":         {ends: true, save: true},
		"NOSAVE":       {rules: "900 1", ends: true},
		" ":            {rules: "900 1", ends: true, save: true},
		"SAVE NOW":     {fails: true},
		"  ":           {rules: "900 1", fails: true},
		"SAVE FORCE":   {fails: true, ends: true},
		"NOSAVE FORCE": {fails: true, ends: true},
	} {
		t.Run(args+c.rules, func(t *testing.T) {
			ffs := faultfs.New(vfs.NewMem())
			s := start(t, testOptions{fs: ffs, set: map[string]string{"save": c.rules}})
			cl := s.client()
			cl.want("SET k v", "+OK")
			if c.fails {
				ffs.Inject(faultfs.OnPath(".snap", faultfs.FailFrom(faultfs.OpSync, 1, nil)))
			}
			line := strings.TrimSpace("SHUTDOWN " + args)
			if !c.ends {
				cl.want(line, "-ERR Errors trying to SHUTDOWN. Check logs.")
				select {
				case <-s.StopRequested():
					t.Error("it ends all the same")
				default:
				}
				return
			}
			cl.send(line)
			select {
			case <-s.StopRequested():
			case <-time.After(10 * time.Second):
				t.Fatal("it does not end")
			}
			if n := s.eng.SaveStatus().Count; (n == 1) != c.save {
				t.Errorf("%d snapshots were taken", n)
			}
		})
	}
}

// TestSaveAtSignal: shutdown-on-sigterm decides about the snapshot at a signal.
func TestSaveAtSignal(t *testing.T) {
	for words, want := range map[string]int{"default": 1, "save": 1, "nosave": 0, "nosave force": 0} {
		s := start(t, testOptions{set: map[string]string{"save": "900 1", "shutdown-on-sigterm": words}})
		s.client().want("SET k v", "+OK")
		if err := s.SaveAtSignal("shutdown-on-sigterm"); err != nil {
			t.Error(err)
		}
		if n := s.eng.SaveStatus().Count; n != want {
			t.Errorf("%s: %d snapshots, want %d", words, n, want)
		}
	}
}

// TestConfiguredSnapshots: what CONFIG SET says takes effect at once.
func TestConfiguredSnapshots(t *testing.T) {
	s := start(t, testOptions{})
	c := s.client()
	c.want("CONFIG GET save", "*[save ]")
	c.save("3600 1 300 100")
	c.want("CONFIG GET save", "*[save 3600 1 300 100]")
	c.want("CONFIG SET save 3600", "-ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters")
	c.save("")
	c.want("SET k "+strings.Repeat("x", 20<<10), "+OK")
	c.want("CONFIG SET auto-aof-rewrite-min-size 10kb", "+OK")
	eventually(t, "a snapshot by growth", func() bool { return s.eng.SaveStatus().ByKind[engine.RewriteLog].Count == 1 })
	c.want("CONFIG SET snapshot-keep 0", "-ERR*")
	c.want("SNAPSHOT.PRUNE KEEP 0", "-ERR invalid KEEP*")
	c.want("SNAPSHOT.PRUNE KEEP", "-ERR syntax error")
	c.want("SNAPSHOT.PRUNE DRYRUN", "*[*[id *")
	c.save("1 1")
	c.want("SET k v", "+OK")
	eventually(t, "a snapshot by rule", func() bool { return s.eng.SaveStatus().ByKind[engine.SaveData].Count == 1 })
}
