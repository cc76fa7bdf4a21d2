// Package compare runs kevy and other servers side by side: each is started with like settings, all are
// driven in turn (A B C, C B A, ...) with the same commands, and medians are put into one table.
//
// redis-benchmark drives what it can, bench.Load the rest (Zipf's law, mixes). Servers run on free
// ports of 127.0.0.1 with their data in a temporary directory; only processes started here are ended.
package compare
