//go:build invariants || race

package arena

// poisoned: freed blocks are overwritten, so that a use after free shows.
const poisoned = true
