//go:build !invariants && !race

package arena

// poisoned: freed blocks keep their bytes.
const poisoned = false
