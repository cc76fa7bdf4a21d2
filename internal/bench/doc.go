// Package bench is the load generator behind kevy bench: what redis-benchmark cannot do (a mix of
// reads and writes, Zipf's law, the change feed, open views), measured from the client's side and, for
// servers on this machine, by the CPU time the kernel charged to the server.
//
// It is a client only: it speaks RESP over loopback TCP to kevy or any other Redis-compatible server
// and imports nothing of kevy, so that no shortcut can creep into a comparison.
//
//	Load     GET, SET, INCR, MSET or a mix; uniform, Zipf or each key in turn
//	Drain    FEED.READ as fast as it goes, with a probe of what the socket allows
//	Latency  from the write's reply to the frame's arrival
//	Filter   FEED.READ PREFIX with few frames that match
//	Writers  the write rate with consumers following, and without the feed
//	View     write latency while a snapshot is being written
//
// Every run is bounded by a count or a time. Latencies are those of whole pipelines: from before the
// first byte is sent until the last reply is read, counted once for each command.
//
// Server CPU is utime + stime of /proc/PID/stat, in steps of 10 ms: it survives a noisy machine better
// than rates do, and runs should take a second or so.
package bench
