package server

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

// maxScrapes is how many scrapes are answered at a time: while a script holds the shards they wait.
const maxScrapes = 4

// exporter serves what INFO shows, as far as it is numbers, to Prometheus: over HTTP, at /metrics of a port of its own. It
// implements prometheus.Collector.
type exporter struct {
	srv  *Server
	http http.Server
}

func (m *exporter) init(srv *Server) error {
	m.srv = srv
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(m); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	m.http.Handler, m.http.ReadHeaderTimeout, m.http.IdleTimeout = mux, 10*time.Second, 5*time.Minute
	return nil
}

// listen serves metrics on an address, until it is closed.
func (m *exporter) listen(network, addr string) (func(), error) {
	l, err := net.Listen(network, addr)
	if err != nil {
		return nil, err
	}
	m.srv.jobs.Go(func() {
		if err := m.http.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			m.srv.log.Error("metrics are not served any more", "address", addr, "error", err)
		}
	})
	return func() { l.Close() }, nil
}

// sample is a picture of the server.
type sample struct {
	srv     *Server
	stats   engine.Stats
	net     resp.Stats
	archive archive.Status
}

// metric is one row of a table of metrics.
type metric struct {
	desc    *prometheus.Desc
	kind    prometheus.ValueType
	archive bool // there is none without an archive
	value   func(x *sample) float64
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("kevy_"+name, help, labels, nil)
}

func gauge(name, help string, value func(x *sample) float64) metric {
	return metric{desc: describe(name, help), kind: prometheus.GaugeValue, value: value}
}

func counter(name, help string, value func(x *sample) float64) metric {
	return metric{desc: describe(name, help), kind: prometheus.CounterValue, value: value}
}

// plain are the metrics without labels.
var plain = append(append(serverMetrics(), storeMetrics()...), archiveMetrics()...)

func serverMetrics() []metric {
	return []metric{
		gauge("start_time_seconds", "When the server started, unix time.", func(x *sample) float64 { return float64(x.srv.stats.start.UnixMilli()) / 1000 }),
		gauge("connected_clients", "Clients connected.", func(x *sample) float64 { return float64(x.srv.clients.len()) }),
		gauge("blocked_clients", "Clients that wait for something.", func(x *sample) float64 { return float64(x.srv.blocked.Load()) }),
		counter("connections_total", "Connections accepted.", func(x *sample) float64 { return float64(x.net.Connections) }),
		counter("rejected_connections_total", "Connections refused.", func(x *sample) float64 { return float64(x.net.Rejected) }),
		counter("net_input_bytes_total", "Bytes received from clients.", func(x *sample) float64 { return float64(x.net.BytesIn) }),
		counter("net_output_bytes_total", "Bytes sent to clients.", func(x *sample) float64 { return float64(x.net.BytesOut) }),
		counter("commands_total", "Commands run, until CONFIG RESETSTAT.", func(x *sample) float64 { return float64(x.srv.stats.commands.Load()) }),
		counter("error_replies_total", "Error replies, until CONFIG RESETSTAT.", func(x *sample) float64 { return float64(x.srv.stats.errorReplies.Load()) }),
		counter("keyspace_hits_total", "Keys that reads found.", func(x *sample) float64 { return float64(x.srv.stats.hits.Load()) }),
		counter("keyspace_misses_total", "Keys that reads did not find.", func(x *sample) float64 { return float64(x.srv.stats.misses.Load()) }),
		counter("expired_keys_total", "Keys deleted at their deadline.", func(x *sample) float64 { return float64(x.stats.Expired) }),
		counter("evicted_keys_total", "Keys deleted for maxmemory.", func(x *sample) float64 { return float64(x.srv.eng.Evicted()) }),
		gauge("memory_used_bytes", "Memory that maxmemory limits.", func(x *sample) float64 { return float64(x.srv.memory.note(x.stats.UsedBytes)) }),
		gauge("memory_limit_bytes", "maxmemory; 0: none.", func(x *sample) float64 { return float64(x.srv.config().MaxMemory) }),
		gauge("memory_resident_bytes", "Memory of the process.", func(x *sample) float64 { return float64(residentBytes()) }),
		counter("feed_frames_total", "Frames that the change feed has delivered.", func(x *sample) float64 { _, _, n, _ := x.srv.feed.Counters(); return float64(n) }),
		counter("feed_resyncs_total", "Consumers of the feed told to rebuild.", func(x *sample) float64 { _, _, _, n := x.srv.feed.Counters(); return float64(n) }),
		gauge("following", "1: the server follows another one.", func(x *sample) float64 { return float64(bit(x.srv.eng.Following())) }),
		gauge("replicas", "Replicas connected.", func(x *sample) float64 { return float64(len(x.srv.repl.source.Followers())) }),
	}
}

func storeMetrics() []metric {
	return []metric{
		gauge("log_disk_full", "1: writes are refused until the disk has space.", func(x *sample) float64 { return float64(bit(x.stats.Disk.DiskFull)) }),
		gauge("log_failed", "1: the log takes no more writes.", func(x *sample) float64 { return float64(bit(x.stats.Err != nil)) }),
		gauge("log_bytes", "Bytes of the log on disk.", func(x *sample) float64 { return float64(x.stats.Disk.Bytes) }),
		gauge("log_segments", "Segments of the log on disk.", func(x *sample) float64 { return float64(x.stats.Disk.Segments) }),
		gauge("log_damaged_segments", "Segments in which damage has been found.", func(x *sample) float64 { return float64(x.stats.Disk.Damaged) }),
		counter("log_seal_failures_total", "Segments that could not be compressed.", func(x *sample) float64 { return float64(x.stats.Disk.SealFailures) }),
		gauge("snapshot_timestamp_seconds", "Time of the newest snapshot, unix time; the server's start if there is none.",
			func(x *sample) float64 { return float64(x.stats.Save.LastMS) / 1000 }),
		gauge("snapshot_running", "1: a snapshot is being written.", func(x *sample) float64 { return float64(bit(x.stats.Save.Running)) }),
		gauge("snapshot_failures", "Snapshots that have failed since the last good one.", func(x *sample) float64 { return float64(x.stats.Save.Failures) }),
		gauge("snapshot_sets", "Snapshot sets on disk.", func(x *sample) float64 { return float64(x.stats.Save.Sets) }),
		gauge("snapshot_sets_bytes", "Their bytes.", func(x *sample) float64 { return float64(x.stats.Save.SetBytes) }),
		gauge("log_bytes_since_snapshot", "Bytes of frames since the newest snapshot.", func(x *sample) float64 { return float64(x.stats.LogGrown) }),
	}
}

func archiveMetrics() []metric {
	rows := []metric{
		gauge("archive_lag_seconds", "Age of the oldest state that the archive lacks; 0: it has everything, -1: it has nothing.",
			func(x *sample) float64 { return max(-1, float64(x.archive.LagMS)/1000) }),
		gauge("archive_lag_bytes", "Bytes of frames that the archive lacks.", func(x *sample) float64 { return float64(x.archive.LagBytes) }),
		gauge("archive_bytes", "Bytes of the archive.", func(x *sample) float64 { return float64(x.archive.Bytes) }),
		counter("archive_sent_bytes_total", "Bytes sent to the archive.", func(x *sample) float64 { return float64(x.archive.Shipped) }),
		counter("archive_failures_total", "Passes of the archiver that failed.", func(x *sample) float64 { return float64(x.archive.Failures) }),
		gauge("archive_consecutive_failures", "Of these, since the last good one.", func(x *sample) float64 { return float64(x.archive.InRow) }),
		gauge("archive_success_timestamp_seconds", "Time of the last good pass, unix time; 0: none.",
			func(x *sample) float64 { return float64(x.archive.LastOK) / 1000 }),
	}
	for i := range rows {
		rows[i].archive = true
	}
	return rows
}

// Metrics with labels.
var (
	shardKeys    = describe("keys", "Keys.", "shard")
	shardExpires = describe("expiring_keys", "Keys with a deadline.", "shard")
	shardOffset  = describe("log_offset", "Offsets in the shard's generation: base (oldest that the feed serves), written, durable, visible, tail.", "shard", "mark")
	shardGen     = describe("log_generation", "The shard's generation.", "shard")
	calls        = describe("command_calls_total", "Calls of a command, until CONFIG RESETSTAT.", "command")
	failed       = describe("command_failed_calls_total", "Calls that replied an error.", "command")
)

// Describe implements prometheus.Collector.
func (m *exporter) Describe(ch chan<- *prometheus.Desc) {
	for i := range plain {
		ch <- plain[i].desc
	}
	for _, d := range []*prometheus.Desc{shardKeys, shardExpires, shardOffset, shardGen, calls, failed} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *exporter) Collect(ch chan<- prometheus.Metric) {
	x := &sample{srv: m.srv, stats: m.srv.eng.Stats(), net: m.srv.rs.Stats()}
	archived := m.srv.opt.Archive != nil
	if archived {
		x.archive = m.srv.opt.Archive()
	}
	emit := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	for i := range plain {
		if k := &plain[i]; archived || !k.archive {
			emit(k.desc, k.kind, k.value(x))
		}
	}
	for i := range x.stats.Shards {
		sh, name := &x.stats.Shards[i], strconv.Itoa(i)
		emit(shardKeys, prometheus.GaugeValue, float64(sh.Keys), name)
		emit(shardExpires, prometheus.GaugeValue, float64(sh.Expires), name)
		emit(shardGen, prometheus.GaugeValue, float64(sh.Cursor.Generation), name)
		for mark, off := range map[string]uint64{"base": sh.Base, "written": sh.Written, "durable": sh.Durable, "visible": sh.Visible, "tail": sh.Cursor.Offset} {
			emit(shardOffset, prometheus.GaugeValue, float64(off), name, mark)
		}
	}
	for _, row := range command.All() {
		if c := &m.srv.stats.rows[row.ID]; c.calls.Load() > 0 {
			emit(calls, prometheus.CounterValue, float64(c.calls.Load()), row.Name)
			emit(failed, prometheus.CounterValue, float64(c.failures.Load()), row.Name)
		}
	}
}
