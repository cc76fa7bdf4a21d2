// Package history reads data directories as what they are: a history. It finds the points that can be
// restored, makes keyspaces of them, compares and checks them. The directory read may be in use, a
// copy, or any other vfs.FS; it is never written to and needs no lock.
//
// # Model
//
// The history of a shard is a chain of generations, each with frames up to where the next one forks
// off. A Cursor has a position in it: the number of frames before it since the chain's beginning.
// Cursors of equal position (the end of a generation, and the start of the next) name one state.
//
// A base is a state that needs no frames: a snapshot set, or the empty store before the very first frame. A
// point can be restored if the frames from a base to it are on disk, in every shard. Which base leads to a
// point is decided by positions, never by the time or name of a file.
//
// # Points in time
//
// The time of a frame is in milliseconds and never decreases within a shard. The point of a time T has the
// frames whose time is T or earlier. The point before a named frame has, in its shard and in those that
// share its group, what was before that group; in other shards the frames of earlier milliseconds. In both, a
// group over several shards with a part outside is outside altogether, and with it what follows it in its
// shards. Explicit cursors are taken as they are; groups that they tear are reported.
//
//	open.go   a directory, its bases and its damage
//	chain.go  positions
//	point.go, clock.go, pattern.go  points as people name them
//	scan.go   which frames belong to a point
//	plan.go   from which base, over which frames
//	build.go  the keyspaces of a point
//	rebuilt.go  a directory that has lost its MANIFEST
//	restore.go, list.go, dump.go, verify.go, diff.go  the tools
package history
