// Package pitr tests point-in-time recovery against a running server: workers write values of all types, with
// deadlines, eviction, scripts and groups over several shards, while the server takes snapshots, is flushed, stopped
// cleanly and killed with SIGKILL. Meanwhile cursors and times are recorded together with PREFIX.DIGEST, in one
// EXEC. Every one of them must be restored to exactly that digest: some from the directory in use, all at the end, and all once more from
// the archive alone.
//
//	go test ./internal/testkit/pitr -pitr.time 30m -pitr.points 200 -timeout 2h
package pitr
