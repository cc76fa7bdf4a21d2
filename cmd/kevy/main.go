// Command kevy is the server and its tools.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // could not start, or could not stop cleanly
	exitUsage  = 2 // a bad flag, variable or configuration file
	exitResync = 3 // feed tail: the cursor cannot be resumed
	exitFound  = 4 // verify: damage; diff: differences
)

const usage = `kevy is a Redis-compatible storage engine whose primary structure is its change log.

Usage: kevy [command] [flags]

Commands:
  serve      run the server (the default)
  feed tail  follow the change feed of a running server
  restore    make a data directory from another one as it was at a point
  import     take over the data of Redis or Valkey: RDB file, append-only file, running server
  log list   show generations, segments, snapshot sets and restorable points of a data directory
  log dump   print the frames of a data directory
  verify     check every checksum, link and snapshot set of a data directory
  diff       show which keys differ between two points of a data directory
  snapshot   list, create and prune snapshot sets
  bench      measure a server, or compare servers
  version    print the version
  help       print this text

kevy <command> --help lists a command's flags.

Exit codes:
  0  done; a server that stopped cleanly
  1  not done: the server could not start or not stop cleanly, a tool could not do what it was told
  2  a bad flag, environment variable or configuration file
  3  feed tail: FEEDRESYNC, the cursor cannot be resumed
  4  verify: damage was found; diff: the points differ
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs one command line.
func run(args []string, stdout, stderr io.Writer) int {
	name := "serve"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	} else if len(args) > 0 && (args[0] == "--version" || args[0] == "-v") {
		name = "version"
	}
	switch name {
	case "serve":
		return serve(args, stdout, stderr)
	case "feed":
		return feedCommand(args, stdout, stderr)
	case "restore":
		return restore(args, stdout, stderr)
	case "import":
		return importCommand(args, stdout, stderr)
	case "log":
		return logCommand(args, stdout, stderr)
	case "verify":
		return verify(args, stdout, stderr)
	case "diff":
		return diff(args, stdout, stderr)
	case "snapshot":
		return snapshotCommand(args, stdout, stderr)
	case "bench":
		return benchCommand(args, stdout, stderr)
	case "version":
		fmt.Fprintln(stdout, versionLine())
		return exitOK
	case "help":
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	fmt.Fprintf(stderr, "kevy: unknown command %q\n\n%s", name, usage)
	return exitUsage
}
