// Package archive keeps a copy of a data directory's history in an object store, while the directory is in use, and shows
// it as a directory to who reads.
//
// # What is in it
//
//	ARCHIVE                                    the manifest, JSON with a checksum: names every other object, its size and CRC32C
//	shard-NN/<segment>.sealed                  a segment that has ended, as it is on disk (log/sealed.go)
//	shard-NN/<segment>.seg.<from>-<to>         raw bytes of a segment: of the one that is being written, or too small to be sealed
//	snapshots/<id>/SET, shard-NN.snap          a snapshot set, as it is on disk
//
// The manifest has the hash seed, each shard's lineage, and where its log ends. So the archive is read without the
// directory it came from: FS shows it as one that was closed cleanly at that end, with a MANIFEST made of this one.
//
// # Invariants
//
//  1. The ends of all shards lie at one instant between groups (Source.Cut), durable: no group is in the archive in part, and nothing
//     that recovery could still cut.
//  2. Objects are written, read back and compared with their checksum before a manifest names them. Names are never reused for other
//     bytes of the same history.
//  3. An object goes only when the manifest has stopped naming it, Grace ago: who has read the manifest before can finish.
//  4. The directory drops no segment that is not whole in a published manifest (a floor of the log, durable).
//  5. An archive is continued only by a directory whose history it has: hash seed, and the end of each shard.
//
// A crash at any step leaves the old or the new manifest and perhaps objects that none names: the next pass takes those
// it would write again, after it has read them back, and removes the rest.
//
// # The segment being written
//
// Each pass adds what is new as a part. A new part takes the ones before it that are not larger with it, so their number grows
// with the logarithm of the passes, and so does how often a byte is sent. When the segment has ended it is sealed, at once, and
// the sealed file replaces the parts.
//
//	store.go, file.go, s3.go   where objects are
//	manifest.go                the manifest
//	archiver.go, status.go     passes, back-off, what INFO shows
//	ship.go, sets.go, keep.go  a pass: segments, snapshot sets, retention
//	fs.go, cache.go            reading
//	lost.go, rebuild.go        an archive that has lost its manifest
package archive
