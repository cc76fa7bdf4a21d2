// Package engine ties log and keyspace together: shards and their locks, routing, groups over
// several shards, the durability policy, expiry, snapshots and recovery.
//
// # Ownership
//
//	who                       alone writes                                  may read              talks by
//	holder of a shard's lock  that shard's keyspace, log append position,   all of the shard      the lock
//	                          deadline index, watch lists, waiters' queues
//	committer (per log)       files' sync state, durable watermark          appended watermark    watermarks
//	connection                its request reader, reply buffer, session     -                     takes shard locks for one command
//	snapshotter               temporary snapshot files                      a frozen View         handed over
//	log readers               own cursor and file handles                   below the watermark   OnAdvance
//	expirer                   nothing; takes shard locks like a client      next deadlines        a wake-up channel
//
// # Lock order
//
//	shard locks by ascending shard number, then a Waiter's mu, then txns.mu, then a log's own locks.
//
// Nothing waits for a disk while it holds a shard lock, except FLUSHALL (which begins a new
// generation) and the repair after a failed write.
//
// # The life of a write
//
//  1. lock the shards of the command's keys
//  2. log and fold a DEL (cause expired) for each of its keys that is due
//  3. plan: effects and reply
//  4. append the effects as one group to the log, fold the same effects
//  5. serve the clients that wait for keys just changed: for each of them 2 to 4
//  6. unlock; the ticket remembers what must be safe before the reply leaves
//  7. once per turn: Settle flushes (everysec, no) or kicks the group commit (always)
package engine
