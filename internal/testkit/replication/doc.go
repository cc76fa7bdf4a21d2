// Package replication tests servers that follow each other as processes: killed, cut off, forked and put together again, on the loopback
// address and as hosts on a network of their own (testkit/netns), where packets are lost and late.
//
//	go test ./internal/testkit/replication -run TestNetwork -replication.rounds 200 -timeout 1h
//	go test ./internal/testkit/replication -run TestSentinel -sentinel.kills 50 -timeout 25m
//
// run 200 rounds and 50 kills instead of a few (for rounds, REPLICATION_ROUNDS in the environment is the default, which counts for the other tests under load as well).
package replication
