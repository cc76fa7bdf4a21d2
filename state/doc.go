// Package state is the keyspace of one shard, derived from the change log by folding its effects.
//
// Fold is the only function that changes a Keyspace, and it is pure: no clock, no randomness, no
// I/O. A Keyspace is guarded by its owner's lock (the shard lock); a View is frozen and may be
// read by another goroutine while the keyspace goes on changing.
package state
