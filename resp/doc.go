// Package resp is the Redis protocol: a bounded, resumable request reader, replies in RESP2 and
// RESP3, and the event loops that carry connections. It knows nothing of commands.
package resp
