package server

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

func (r *report) server() {
	srv, cfg := r.srv, r.cfg
	up := int64(r.now.Sub(srv.stats.start) / time.Second)
	executable, _ := os.Executable()
	hz, _ := cfg.Get("hz")
	r.fields(
		"redis_version", RedisVersion, "redis_git_sha1", "00000000", "redis_git_dirty", 0,
		"redis_build_id", buildID(srv.opt.Commit), "redis_mode", "standalone",
		"kevy_version", srv.opt.Version, "os", osName(), "arch_bits", 32<<(^uint(0)>>63),
		"monotonic_clock", "POSIX clock_gettime", "multiplexing_api", pollAPI,
		"atomicvar_api", "go", "gcc_version", "0.0.0", "go_version", runtime.Version(),
		"process_id", os.Getpid(), "process_supervised", "no", "run_id", srv.ids.run,
		"tcp_port", cmp.Or(cfg.Port, cfg.TLSPort), "server_time_usec", r.now.UnixMicro(),
		"uptime_in_seconds", up, "uptime_in_days", up/86400,
		"hz", hz, "configured_hz", hz, "lru_clock", r.now.Unix()&(1<<24-1),
		"executable", executable, "config_file", cfg.File, "io_threads_active", 0,
		"event_loops", srv.rs.Loops(), "shards", srv.eng.Shards(),
	)
	if at := srv.ports.tcp.shown.Load(); at != nil {
		fmt.Fprintf(&r.b, "listener0:name=tcp%s\r\n", *at)
	}
	if cfg.UnixSocket != "" {
		fmt.Fprintf(&r.b, "listener1:name=unix,bind=%s\r\n", cfg.UnixSocket)
	}
	if at := srv.ports.tls.shown.Load(); at != nil {
		fmt.Fprintf(&r.b, "listener2:name=tls%s\r\n", *at)
	}
}

func buildID(commit string) string {
	if commit == "" {
		return "0000000000000000"
	}
	return commit
}

func osName() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return runtime.GOOS
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " +
		unix.ByteSliceToString(u.Machine[:])
}

func (r *report) clients() {
	var in, out int
	for _, s := range r.srv.clients.all() {
		i := s.info()
		in, out = max(in, i.queryUsed+i.queryFree), max(out, i.output)
	}
	r.fields(
		"connected_clients", r.srv.clients.len(), "cluster_connections", 0, "maxclients", r.cfg.MaxClients,
		"client_recent_max_input_buffer", in, "client_recent_max_output_buffer", out,
		"blocked_clients", r.srv.blocked.Load(),
	)
	r.field("tracking_clients", r.srv.tracking.clients.Load())
	r.fields("clients_in_timeout_table", r.stats.WaitTimed, "total_blocking_keys", r.stats.WaitedKeys, "total_blocking_keys_on_nokey", r.stats.WaitedAnyChange)
}

func (r *report) memory() {
	used := r.srv.memory.note(r.stats.UsedBytes)
	peak, startup, total := r.srv.memory.figures()
	rss := residentBytes()
	heap := readMetric("/memory/classes/heap/objects:bytes")
	active := heap + readMetric("/memory/classes/heap/unused:bytes")
	resident := active + readMetric("/memory/classes/heap/free:bytes")
	overhead := max(0, used-r.stats.UsedBytes)
	r.fields(
		"used_memory", used, "used_memory_human", human(used),
		"used_memory_rss", rss, "used_memory_rss_human", human(rss),
		"used_memory_peak", peak, "used_memory_peak_human", human(peak),
		"used_memory_peak_perc", percent(used, peak),
		"used_memory_overhead", overhead, "used_memory_startup", startup,
		"used_memory_dataset", r.stats.UsedBytes,
		"used_memory_dataset_perc", percent(r.stats.UsedBytes, max(1, used-startup)),
		"allocator_allocated", heap, "allocator_active", active, "allocator_resident", resident,
		"total_system_memory", total, "total_system_memory_human", human(total),
	)
	scripts, libraries, functions, cached := r.srv.scripts.rt.Memory()
	r.zeros("used_memory_lua", "used_memory_vm_eval")
	r.fields(
		"used_memory_lua_human", human(0), "used_memory_scripts_eval", cached,
		"number_of_cached_scripts", scripts, "number_of_functions", functions, "number_of_libraries", libraries,
	)
	r.zeros("used_memory_vm_functions", "used_memory_vm_total")
	r.field("used_memory_vm_total_human", human(0))
	r.zeros("used_memory_functions")
	r.fields(
		"used_memory_scripts", cached, "used_memory_scripts_human", human(cached),
		"maxmemory", r.cfg.MaxMemory, "maxmemory_human", human(r.cfg.MaxMemory),
		"maxmemory_policy", r.cfg.MaxMemoryPolicy,
		"allocator_frag_ratio", ratio(active, heap), "allocator_frag_bytes", active-heap,
		"allocator_rss_ratio", ratio(resident, active), "allocator_rss_bytes", resident-active,
		"rss_overhead_ratio", ratio(rss, resident), "rss_overhead_bytes", rss-resident,
		"mem_fragmentation_ratio", ratio(rss, used), "mem_fragmentation_bytes", rss-used,
	)
	r.zeros("mem_not_counted_for_evict", "mem_replication_backlog", "mem_total_replication_buffers", "mem_clients_slaves")
	r.field("mem_clients_normal", r.srv.memory.clients.Load())
	r.zeros("mem_cluster_links", "mem_aof_buffer")
	r.field("mem_allocator", "go-arena")
	r.zeros("active_defrag_running")
	r.fields("lazyfree_pending_objects", r.stats.LazyPending, "lazyfreed_objects", r.stats.LazyFreed)
}

func (r *report) text(key string) string {
	t, _ := r.cfg.Get(key)
	return t
}

func (r *report) cpu() {
	var self, children unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &self)
	_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &children)
	show := func(t unix.Timeval) string { return fmt.Sprintf("%d.%06d", t.Sec, t.Usec) }
	r.fields(
		"used_cpu_sys", show(self.Stime), "used_cpu_user", show(self.Utime),
		"used_cpu_sys_children", show(children.Stime), "used_cpu_user_children", show(children.Utime),
	)
}

func (r *report) cluster() { r.field("cluster_enabled", 0) }

func (r *report) keyspace() {
	if r.stats.Keys > 0 {
		fmt.Fprintf(&r.b, "db0:keys=%d,expires=%d,avg_ttl=0\r\n", r.stats.Keys, r.stats.Expires)
	}
}
