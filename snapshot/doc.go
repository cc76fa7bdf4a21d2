// Package snapshot writes and reads snapshot sets: a frozen view of every shard written as a
// compacted log, with the frames and the codec of package log, and the cursor it stands at in its
// header. Snapshot plus the frames from its cursor is the exact state at any later cursor.
//
// # File of one shard (little-endian), version 2
//
//	off size header (128 bytes)
//	  0   8  magic "kevysnap"
//	  8   4  format version = 2
//	 12   4  shard
//	 16   4  shards of the set
//	 20   4  zero
//	 24   8  set id; also the generation that the frames' checksums are bound to
//	 32   8  cursor: generation
//	 40   8  cursor: offset
//	 48   8  unix ms of the cursor
//	 56   8  hash seed of the directory
//	 64  60  zero
//	124   4  CRC32C of bytes 0..123
//	128   .  blocks (log/block.go), bound to the set id and the shard, without gaps. Their raw bytes, joined, are
//	         the frames that rebuild every key on an empty shard, in key order; offsets from 0. A frame may
//	         begin in one block and end in another.
//	end-40   footer: magic "kevyend\n", frames u64, keys u64, raw bytes u64, CRC32C of all bytes before the
//	         footer u32, CRC32C of the footer's first 36 bytes u32
//
// Version 1 had the frames as they are, without blocks; no released kevy has written it, and it is refused as ErrVersion.
//
// # Set
//
// DIR/snapshots/<id>/ holds shard-NN.snap for each shard and SET, a JSON document and a line
// "crc32c <8 hex>" over it. A set is written as tmp-<id>, synced throughout, and renamed: a directory without
// the prefix is whole. The manifest of the log names the newest set and is written last. A set that is
// removed gets the prefix back first, so at no time is a part of one taken for one.
package snapshot
