// Package migrate takes data over from Redis and Valkey: from RDB files, from append-only files, and from a running server as its replica.
//
// Whatever the source, what enters is commands: RESTORE for a value of an RDB file (with its deadline as a time), and the commands
// of an append-only file or of a primary as they stand there. They go through the rows and planners of client commands into the
// log of a new directory (Dir), or over the wire to a running server (Server). Nothing else changes state.
//
//	source  -> groups of commands -> target.apply: one group of frames each
//	RDB     128 keys or 1 MiB a group, cause restore
//	AOF     one group a command, or a MULTI ... EXEC
//	primary the same; its clock decides what expires: nothing is deleted but by its DEL
//
// Files are read twice: the first pass changes nothing and finds whatever is wrong with them. A new directory begins with generations of cause restore whose
// parent is 1:0, which is no cursor of kevy's; while it has no snapshot it refuses to be opened, and the first one is taken when the base is
// complete: half an import can't be taken for a whole one.
package migrate
