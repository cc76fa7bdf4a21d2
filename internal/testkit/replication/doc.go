// Package replication tests servers that follow each other as processes: killed, cut off, forked and put together again.
package replication
