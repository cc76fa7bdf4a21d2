package server

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kevydb/kevy/internal/acl"
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/pubsub"
)

// counters is the section Stats.
func (r *report) counters() {
	st, base := r.srv.stats, r.srv.netBase.Load()
	st.mu.Lock()
	ops, in, out := st.rates.commands.perSecond(), st.rates.in.perSecond(), st.rates.out.perSecond()
	st.mu.Unlock()
	full, resumed, refused := r.srv.repl.source.Counters()
	r.fields(
		"total_connections_received", r.net.Connections-base.Connections,
		"total_commands_processed", st.commands.Load(), "instantaneous_ops_per_sec", int64(ops),
		"total_net_input_bytes", r.net.BytesIn-base.BytesIn,
		"total_net_output_bytes", r.net.BytesOut-base.BytesOut,
		"total_net_repl_input_bytes", 0, "total_net_repl_output_bytes", 0,
		"instantaneous_input_kbps", fixed2(in/1024), "instantaneous_output_kbps", fixed2(out/1024),
		"instantaneous_input_repl_kbps", "0.00", "instantaneous_output_repl_kbps", "0.00",
		"rejected_connections", r.net.Rejected-base.Rejected,
		"sync_full", full, "sync_partial_ok", resumed, "sync_partial_err", refused,
		"expired_keys", r.stats.Expired, "expired_stale_perc", "0.00",
	)
	r.zeros("expired_time_cap_reached_count", "expire_cycle_cpu_milliseconds")
	exceeded, current := r.srv.memory.exceededTimes()
	r.fields("evicted_keys", r.srv.eng.Evicted(), "evicted_clients", r.srv.evictor.evicted.Load(),
		"total_eviction_exceeded_time", exceeded.Milliseconds(), "current_eviction_exceeded_time", current.Milliseconds())
	r.fields("keyspace_hits", st.hits.Load(), "keyspace_misses", st.misses.Load())
	hub := r.srv.hub
	r.fields("pubsub_channels", hub.Len(pubsub.Channel), "pubsub_patterns", hub.Len(pubsub.Pattern),
		"pubsubshard_channels", hub.Len(pubsub.Shard), "latest_fork_usec", r.stats.Save.Held.Microseconds())
	r.field("total_forks", r.stats.Save.Count)
	r.zeros("migrate_cached_sockets", "slave_expires_tracked_keys", "active_defrag_hits",
		"active_defrag_misses", "active_defrag_key_hits", "active_defrag_key_misses",
		"total_active_defrag_time", "current_active_defrag_time")
	keys, items, prefixes := r.srv.tracking.figures()
	r.fields("tracking_total_keys", keys, "tracking_total_items", items, "tracking_total_prefixes", prefixes)
	r.fields("unexpected_error_replies", st.unexpected.Load(), "total_error_replies", st.errorReplies.Load())
	r.zeros("dump_payload_sanitizations", "total_reads_processed", "total_writes_processed",
		"io_threaded_reads_processed", "io_threaded_writes_processed", "reply_buffer_shrinks",
		"reply_buffer_expands", "eventloop_cycles", "eventloop_duration_sum", "eventloop_duration_cmd_sum",
		"instantaneous_eventloop_cycles_per_sec", "instantaneous_eventloop_duration_usec")
	r.field("acl_access_denied_auth", st.authFailures.Load())
	denied := &r.srv.access.denied
	r.fields("acl_access_denied_cmd", denied[acl.DeniedCommand].Load(), "acl_access_denied_key", denied[acl.DeniedKey].Load(),
		"acl_access_denied_channel", denied[acl.DeniedChannel].Load())
}

func (r *report) commandStats() {
	for _, row := range command.All() {
		c := &r.srv.stats.rows[row.ID]
		calls, refused, failures := c.calls.Load(), c.refused.Load(), c.failures.Load()
		if calls == 0 && refused == 0 && failures == 0 {
			continue
		}
		total, perCall := c.usec()
		fmt.Fprintf(&r.b, "cmdstat_%s:calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d\r\n",
			row.Name, calls, total, perCall, refused, failures)
	}
}

func (r *report) errorStats() {
	st := r.srv.stats
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, code := range slices.Sorted(maps.Keys(st.errors)) {
		fmt.Fprintf(&r.b, "errorstat_%s:count=%d\r\n", safeName(code), st.errors[code])
	}
}

// safeName keeps what would break INFO's format out of a name.
func safeName(s string) string {
	return strings.Map(func(c rune) rune {
		switch c {
		case '#', ':', '\n', '\r':
			return '_'
		}
		return c
	}, s)
}

func oneLine(s string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(s) }

func (r *report) latencyStats() {
	var percentiles []float64
	for p := range strings.FieldsSeq(r.text("latency-tracking-info-percentiles")) {
		f, err := strconv.ParseFloat(p, 64)
		if err == nil {
			percentiles = append(percentiles, f)
		}
	}
	if !r.srv.stats.tracking.Load() {
		return
	}
	for _, row := range command.All() {
		h := r.srv.stats.rows[row.ID].latency.Load()
		if h == nil {
			continue
		}
		parts := make([]string, 0, len(percentiles))
		for _, p := range percentiles {
			parts = append(parts, fmt.Sprintf("p%s=%.3f", strconv.FormatFloat(p, 'f', -1, 64), h.percentile(p)))
		}
		fmt.Fprintf(&r.b, "latency_percentiles_usec_%s:%s\r\n", row.Name, strings.Join(parts, ","))
	}
}

// feed is kevy's own section: the change feed, one line per shard.
func (r *report) feed() {
	reading, blocked, frames, resyncs := r.srv.feed.Counters()
	r.fields(
		"feed_enabled", bit(r.cfg.FeedEnabled), "feed_shards", len(r.stats.Shards),
		"feed_buffer_size", r.cfg.FeedBufferSize, "feed_retention", r.cfg.FeedRetention,
		"feed_reading", reading, "feed_blocked", blocked, "feed_frames_served", frames,
		"feed_resyncs", resyncs, "appendfsync", r.stats.Policy,
	)
	for i := range r.stats.Shards {
		sh := &r.stats.Shards[i]
		fmt.Fprintf(&r.b, "shard%d:generation=%d,base=%d,tail=%d,written=%d,visible=%d,durable=%d,"+
			"retained_bytes=%d,oldest_time=%d,keys=%d,expires=%d\r\n",
			i, sh.Cursor.Generation, sh.Base, sh.Cursor.Offset, sh.Written, sh.Visible, sh.Durable,
			sh.Retained, sh.OldestMS, sh.Keys, sh.Expires)
	}
}
