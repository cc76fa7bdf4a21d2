// Package killloop kills a real kevy with SIGKILL at random moments under load, starts it again and
// checks what the contract promises: no acknowledged write is lost, no group is torn, nothing
// comes back that was deleted, the shard's generation is bumped, begins at offset 0 and its
// lineage says where it forked off, not before anything a consumer of the feed had seen. A clean
// stop keeps generation and offset and serves the same frames again.
//
//	go test ./internal/testkit/killloop -kill.rounds 100
//
// runs 100 rounds for each appendfsync policy (KILL_ROUNDS in the environment is the default).
package killloop
