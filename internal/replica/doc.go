// Package replica lets a store follow another one: a Source serves the log of a store to others, a Follower makes a store's log that of another.
//
// # Protocol
//
// The follower asks, over ordinary connections, authenticated as any client; the source answers. So a slow follower holds up nobody, and
// neither side holds more than one reply's frames. Two connections: one for the frames, one for the acknowledgements.
//
//	REPL.HELLO format shards id port ip    -> bulk: JSON of Hello
//	REPL.CHECK (generation offset)...      -> *n: the checksum of the frame before each cursor, -1 when it is not there (any more)
//	REPL.SNAPSHOT [set | +set ...]         -> bulk: JSON of Offer, of a set that is none of those named, and one of those with + if it will do
//	REPL.FETCH shard position bytes        -> bulk: a piece of the offered set's file; empty at its end
//	REPL.PULL bytes milliseconds (generation offset)...
//	  -> *2
//	     *1+4n  the source's clock (unix ms), for each shard its generation and tail, and a cut: for each shard a generation and an offset
//	     *k     parts: *9 shard, generation, cause, parent, parent offset, time (of the generation), offset of the first frame,
//	            offset behind the last, bulk: raw frames
//	  generation 0: this shard is left out
//	  waits, at most so long, while there is nothing, neither frames nor a newer cut; -NOFRAMES when the frames at a cursor are not there (any more)
//	REPL.ACK id (generation applied durable cut-generation cut-offset)...  -> +OK; on the second connection
//	REPL.FREEZE prefix                     -> *2n: a generation and an offset for each shard, the end of the log now: the source computes
//	                                          the digest of the state there, for PREFIX.DIGEST prefix AT
//
// When the source is to be a replica and a replica the primary (FAILOVER), the source becomes a follower, so that its log is closed, and asks first:
//
//	REPL.TAKEOVER id EXACT|FORCE (generation offset)...  -> +OK when the other one is the primary
//
// id is the history's, the cursors are the ends of the log of who asks. With EXACT the other one must come to just these; a promotion that has been
// done there is not done again.
//
// A part is of one generation. The first part of a generation may be empty: it says that the generation has begun. Parts end behind
// whole groups, unless a group is larger than maxReply.
//
// # Cuts
//
// Each shard is a stream of its own, so of two followers each may be ahead on a shard, and neither has all that the other has. What a follower is counted
// for, and compared by, are cuts (Source.cut): the source takes them one after the other, so of two cuts one is before the other on every shard. A follower
// acknowledges the newest one that its logs hold wholly. WAIT counts it for what is within that; its offset, which Sentinel compares, is the number of frames in
// it. So the follower with the greatest offset has all that any other was counted for. A follower that has followers hands on the cut that it holds: there is
// one order of all of them. A source that has been promoted goes on with cuts that begin with all that it has, and so with the one it held.
//
// # Where a follower goes on
//
// It compares the lineages of both sides, shard by shard (compare). When its tail is part of the source's history, it asks for the frames from there. When it
// is not, its log is taken back to where the histories part, and what is behind that is kept aside (Engine.Rewind); or, when there is no common
// generation, the last frame that both have is not the same (proof.go), or that state cannot be had, a snapshot set is fetched and takes the place of everything (Engine.Bootstrap). Frames are never merged.
package replica
