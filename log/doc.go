// Package log keeps the change log of each shard: frames of effects in segment files.
package log
