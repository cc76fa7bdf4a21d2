// Package config turns flags, environment, a TOML file and defaults into one Config.
//
// One table (Keys) drives all of it: each row names a key as Redis spells it ("tcp-keepalive"),
// from which follow its flag (--tcp-keepalive), its environment variable (KEVY_TCP_KEEPALIVE) and
// its place in the file (tcp_keepalive, or enabled in [feed] for "feed-enabled"); and its kind,
// default, bounds and whether CONFIG SET may change it. Precedence: flag > environment > file >
// default. Reading is strict: an unknown key, flag or variable and a bad value are errors that
// name the key and where it was given.
//
// Rows marked Compat are Redis parameters that clients and test suites set and read back. They are
// stored and reported, with Redis's defaults; nothing in kevy acts on them (docs/compatibility.md names them).
package config
