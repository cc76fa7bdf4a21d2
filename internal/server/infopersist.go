package server

import (
	"strings"

	"github.com/kevydb/kevy/internal/engine"
)

// persistence is INFO's section in Redis's words. The log is what Redis calls the append-only file; a snapshot is
// both the RDB file and the rewritten AOF, named by what it was taken for.
func (r *report) persistence() {
	save := &r.stats.Save
	data, rewrite := &save.ByKind[engine.SaveData], &save.ByKind[engine.RewriteLog]
	saving := save.Running && save.Kind == engine.SaveData
	rewriting := save.Running && save.Kind == engine.RewriteLog
	processed, total := int64(0), int64(0)
	if save.Running {
		processed, total = save.Keys, save.KeysTotal
	}
	r.zeros("loading", "async_loading")
	r.fields(
		"current_cow_peak", r.stats.ViewBytes, "current_cow_size", r.stats.ViewBytes, "current_cow_size_age", 0,
		"current_fork_perc", fixed2(float64(processed)*100/float64(max(1, total))),
		"current_save_keys_processed", processed, "current_save_keys_total", total,
		"rdb_changes_since_last_save", r.stats.Dirty, "rdb_bgsave_in_progress", bit(saving),
		"rdb_last_save_time", save.LastMS/1000, "rdb_last_bgsave_status", okOrErr(data.Err),
		"rdb_last_bgsave_time_sec", secondsOr(data.Tried, data.TookMS),
		"rdb_current_bgsave_time_sec", secondsOr(saving, r.now.UnixMilli()-save.StartedMS),
		"rdb_saves", data.Count, "rdb_last_cow_size", 0, "rdb_last_load_keys_expired", 0,
		"rdb_last_load_keys_loaded", r.stats.Loaded, "aof_enabled", 1,
		"aof_rewrite_in_progress", bit(rewriting), "aof_rewrite_scheduled", bit(rewrite.Scheduled),
		"aof_last_rewrite_time_sec", secondsOr(rewrite.Tried, rewrite.TookMS),
		"aof_current_rewrite_time_sec", secondsOr(rewriting, r.now.UnixMilli()-save.StartedMS),
		"aof_last_bgrewrite_status", okOrErr(rewrite.Err), "aof_rewrites", rewrite.Count,
		"aof_rewrites_consecutive_failures", rewrite.Failures, "aof_last_write_status", okOrErr(r.stats.WriteErr()),
		"aof_last_cow_size", 0, "module_fork_in_progress", 0, "module_fork_last_cow_size", 0,
		"aof_current_size", save.BaseBytes+r.stats.LogGrown, "aof_base_size", save.BaseBytes,
	)
	r.zeros("aof_pending_rewrite", "aof_buffer_length", "aof_pending_bio_fsync", "aof_delayed_fsync")
	r.snapshots()
	r.log()
	r.archive()
	if err := r.stats.WriteErr(); err != nil {
		r.field("log_error", oneLine(err.Error()))
	}
}

// snapshots are kevy's own fields: whether backups go on, and how much is safe.
func (r *report) snapshots() {
	save := &r.stats.Save
	age, retry := int64(-1), int64(0)
	if save.LastID != "" {
		age = (r.now.UnixMilli() - save.LastMS) / 1000
	}
	if save.Failures > 0 {
		retry = max(0, save.RetryMS-r.now.UnixMilli()+999) / 1000
	}
	var durable []string
	for i := range r.stats.Shards {
		sh := &r.stats.Shards[i]
		c := sh.Cursor
		c.Offset = sh.Durable
		durable = append(durable, c.String())
	}
	r.fields(
		"snapshot_last_id", save.LastID, "snapshot_last_age_sec", age, "snapshot_last_keys", save.LastKeys,
		"snapshot_sets", save.Sets, "snapshot_sets_bytes", save.SetBytes, "snapshot_failures", save.Failures,
		"snapshot_retry_in_sec", retry, "log_bytes_since_snapshot", r.stats.LogGrown,
		"log_durable", strings.Join(durable, " "),
	)
	if err := save.LastErr(); err != nil {
		r.field("snapshot_error", oneLine(err.Error()))
	}
	if save.PruneError != nil {
		r.field("snapshot_prune_error", oneLine(save.PruneError.Error()))
	}
}

// log is what the log takes on disk, and what is wrong with it.
func (r *report) log() {
	disk := &r.stats.Disk
	r.fields(
		"log_bytes", disk.Bytes, "log_bytes_uncompressed", disk.RawBytes, "log_segments", disk.Segments,
		"log_sealed_segments", disk.Sealed, "log_oldest_time", disk.OldestMS,
		"log_damaged_segments", disk.Damaged, "log_seal_failures", disk.SealFailures,
	)
	if disk.LastDamage != nil {
		r.field("log_damage", oneLine(disk.LastDamage.Error()))
	}
}

// archive is how far the archive is behind, and why.
func (r *report) archive() {
	f := r.srv.opt.Archive
	r.field("archive_enabled", bit(f != nil))
	if f == nil {
		return
	}
	st := f()
	lag := st.LagMS
	if lag > 0 {
		lag = (lag + 999) / 1000
	}
	var ends []string
	for _, c := range st.Ends {
		ends = append(ends, c.String())
	}
	r.fields(
		"archive_place", oneLine(st.Place), "archive_lag_sec", lag, "archive_lag_bytes", st.LagBytes, "archive_cursors", strings.Join(ends, " "),
		"archive_time", st.CutMS/1000, "archive_segments", st.Segments, "archive_snapshot_sets", st.Sets, "archive_last_set", st.LastSet,
		"archive_bytes", st.Bytes, "archive_bytes_shipped", st.Shipped, "archive_last_success_time", st.LastOK/1000,
		"archive_status", okOrErr(st.Err), "archive_failures", st.Failures, "archive_consecutive_failures", st.InRow,
	)
	if st.Err != nil {
		r.field("archive_error", oneLine(st.Err.Error()))
	}
}

// secondsOr is a time in whole seconds, -1 if there is none.
func secondsOr(known bool, ms int64) int64 {
	if !known {
		return -1
	}
	return max(0, ms/1000)
}
