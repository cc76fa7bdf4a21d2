// Package crashfs is a file system in memory whose power can fail. It keeps what has been synced
// apart from what has only been written, and makes copies of itself as they could be found
// afterwards:
//
//	CrashClone, Crash   power failure: all that was synced, and a random part of the rest
//	KillClone           end of the process: everything written, synced or not (and what was not
//	                    synced can still be lost by a later power failure of the clone)
//	TruncateClone       as KillClone, with one file cut
//
// The model of a power failure:
//
//   - File.Sync makes the bytes and the size of the file durable, SyncDir the entries of one
//     directory. Neither does the work of the other.
//   - Bytes: each sector (512 bytes) of a file returns as it was after any one of the writes to it
//     since the last Sync, or as before all of them, whatever the other sectors do.
//   - Size: as after any of the writes and truncations since the last Sync, or amid a write that
//     extends the file. Where the size survives and the bytes do not there are zeros.
//     A truncation that survives does so with its size: what it cut off does not return.
//   - Entries: each name of a directory returns as after any of the changes to it, whatever the other
//     names do. A renamed file can be found under both names but not under neither; a renamed
//     directory is found under one of them.
//   - Often a crash is plain: in a third of the cases each nothing or everything unsynced survives
//     (drawn once for all entries and for the bytes and the size of each file).
//
// All choices come from the random source, in a fixed order: the same operations and the same seed
// give the same clone.
package crashfs
