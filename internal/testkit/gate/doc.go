// Package gate is the equality gate: whatever write commands did, the live state, the restarted
// one, the one recovered after a kill, the folded feed, snapshot plus frames, and the restored directory have
// the same digest. Its tests are driven from the command table, so no write command can be
// forgotten.
package gate
