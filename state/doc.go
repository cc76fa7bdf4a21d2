// Package state derives the keyspace of one shard by folding effects.
//
// Fold is the only way to change it, and it is pure: no clock, no randomness, no I/O. The same
// effects in the same order give the same keyspace on a primary, after a restart, on a replica and
// after a restore. Time is always a parameter of the caller.
//
// # Ownership
//
// A Keyspace belongs to the holder of its shard's lock: every method REQUIRES that lock. A View is
// frozen when it is taken and may be read without the lock by one or many goroutines; taking one
// and closing it REQUIRES the lock. Slices that leave the package (Entry.Key, Entry.Value, the
// arguments of callbacks) are read-only aliases: an Entry's are valid until the next Fold or until the
// lock is released, a View's until the view is closed.
package state
