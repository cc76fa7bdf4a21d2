// Package effect is the vocabulary of the change log: the canonical, deterministic outcomes of
// writes, each spelled as a plain Redis command.
//
// An effect never depends on a clock, on randomness, on conditions or on settings: folding the
// same effects in the same order gives the same state on a primary, a replica, a restart and a
// restore. The payload of a frame is the effect's argv in RESP ("*3\r\n$3\r\nSET\r\n..."), which is
// what FEED.READ, replicas and `redis-cli --pipe` want, so serving a frame is a copy.
package effect
