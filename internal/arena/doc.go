// Package arena keeps blocks of bytes in mapped memory outside the Go heap.
//
// It is the only package with mapped memory and the only one of the keyspace with unsafe code. A
// block is named by a Ref, not by a pointer, so whatever holds refs is invisible to the collector.
//
//	Ref (40 bits)  = chunk (16) | page in the chunk (6) | unit in the page (12), counted in 16-byte units
//	chunk          = 4 MiB, mapped as a whole, 64 pages
//	span           = 1 to 16 pages of one chunk, carved into blocks of one size class
//	larger blocks  = mapped on their own, over as many consecutive chunk numbers as they need
//
// # Ownership
//
// Everything that allocates, frees, pins or counts REQUIRES the lock of the arena's owner. Reading a
// block (Tail, Bytes, Words) needs no lock as long as the block cannot be freed: the chunk table
// is fixed, and an entry is written before any ref into it exists.
//
// # Pins
//
// Pin freezes the blocks that exist: until the matching Unpin, Free of such a block is put off, and
// Shared reports that it must not be changed. Blocks allocated after the newest pin are not shared.
// This is all a frozen view needs. After Unpin the put-off frees are worked off a few at a time by
// the following calls, so that closing a view never stalls.
package arena
