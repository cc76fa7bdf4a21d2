// Package feed is the change feed: FEED.SHARDS, FEED.TAIL, FEED.READ and FEED.INFO over the one
// reader of stored frames. It knows no positions of consumers: a cursor is all there is.
package feed
