// Package log keeps the change log of a store: for each shard a run of frames, one per effect, in
// segment files. Everything else is derived from it. DESIGN.md has the formats and the recovery
// procedure; frame.go, header.go, mark.go and manifest.go draw what they decode.
//
// # Model
//
// A frame has a Cursor: the generation it belongs to and its offset there, counted from 0 without
// holes. A group is the frames of one command or transaction: all of it survives a crash or none. A
// group over several shards has a part in the log of each, found by its transaction id.
//
// A log has four watermarks, offsets of its current generation:
//
//	durable <= written <= appended     visible <= written
//
//	append side (the shard's lock):   Reserve; Begin, Append..., End    into the buffer
//	any goroutine:                    Flush: swap the buffer, one WriteAt, advance written
//	committer (one per log):          Sync: Flush, fsync, advance durable, leave the mark
//	                                  reserve space ahead, roll segments, retry when the disk was full
//	readers (any number):             see frames below visible, or below written
//
// so that a request path is
//
//	lock shard
//	if err := l.Reserve(size); err != nil { refuse }
//	l.Begin(now, log.ByClient, 0, 0); l.Append(e)...; next := l.End()
//	fold
//	unlock shard
//	l.Flush()                          // everysec, no: and reply
//	l.OnDurable(next, reply); l.SyncThrough(next)   // always
//
// A new generation begins after a crash, with FLUSHALL, and whenever else what is on disk may differ
// from what was acknowledged. It is the child of the one before: its lineage says at which offset of
// the parent it forks off, and a reader may follow.
//
// # Invariants
//
//	L1  Frames in a generation are contiguous. The checksum of a frame binds it to its shard,
//	    generation and offset, segments are linked by number, size and last checksum, and Reader and
//	    recovery check all of it: damage is an error with a place, never a gap.
//	L2  Only the newest segment of a shard can have an unclean tail, and only it is ever cut. A
//	    segment ends only after it is durable, and after every group over several shards that it
//	    depends on is durable on all of them.
//	L3  Nothing is visible beyond what the policy promises: durable under always, written otherwise,
//	    and never beyond the hold. Watermarks never fall within a generation.
//	L4  After the first write or fsync that failed the log takes nothing more, and never tries that
//	    fsync again: Err is sticky. A full disk is no failure: frames that were admitted wait in the
//	    buffer, new ones are refused by Reserve, and both go on when there is space.
//	L5  An unknown format version is ErrVersion, never ErrCorrupt.
//
// # Files
//
//	frame.go, encoder.go, stream.go   the frame: encoded and decoded nowhere else
//	header.go, segment.go             segment files
//	manifest.go, mark.go              what the directory knows about them
//	log.go, writer.go, committer.go   one shard's log
//	watermark.go, window.go           what readers may see, who waits for it, what the feed serves
//	reader.go                         the one reader
//	block.go, sealed.go, sealer.go    sealed segments: the format and its making
//	unseal.go, filter.go              reading them, in order and by prefix
//	seal.go, plan.go, retention.go    what happens to segments that have ended
//	open.go, recover.go, groups.go    recovery
//	dir.go, readonly.go, stats.go     the directory
package log
