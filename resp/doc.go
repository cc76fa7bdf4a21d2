// Package resp is the Redis protocol: a bounded, resumable request reader, replies in RESP2 and
// RESP3, and the event loops that carry connections. It knows nothing of commands.
//
// # Turns
//
// A loop works in turns: it runs the commands of all connections that have input, then what other
// goroutines asked for, then Handler.EndTurn, then sends all replies. A connection takes a bounded part of
// a turn. Nothing in a turn waits: a command that must wait parks its connection, and EndTurn holds the
// replies that may not leave yet. Everything of a connection is owned by its loop; other goroutines reach
// it only by tasks in the loop's mailbox (Resume, Release, Post, Close).
//
// Two backends move the bytes and share all else: event loops over epoll, and a pair of goroutines for each
// connection, for TLS and for systems without epoll.
//
// # Why the loops are as they are
//
// Server CPU in us per command, redis-benchmark -c 50 -d 64, SET, medians of alternating runs on 2 busy
// cores, a handler that does next to nothing (TestServeForBenchmark):
//
//	                                          -P 1   -P 16
//	redis-server 7.0.15                       7.0    0.75
//	edge triggered, one loop (this package)   6.6    0.44
//	level triggered                           6.8    0.44
//	two loops                                 9.0    0.57
//	without loop.yield                        7.5    0.46
//	epoll_wait(0) before a waiting one        7.1    0.47
//
// A thread locked to the loop, waiting up to 1 ms without telling the scheduler, and recvfrom and sendto
// instead of read and write made no difference beyond the noise. Nothing is allocated in the steady state, so
// the garbage collector's settings do not matter here.
package resp
