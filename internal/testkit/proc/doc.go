// Package proc runs real servers for tests: kevy built from this tree and Debian's redis-server,
// each on a free port of the loopback address, in its own directory. It ends only what it started.
//
// Packages that use it call Main from TestMain, which removes the built binary afterwards:
//
//	func TestMain(m *testing.M) { os.Exit(proc.Main(m)) }
//
// TESTKIT_KEVY names a binary to use instead of building one; TESTKIT_RACE=1 builds it with the race
// detector.
package proc
