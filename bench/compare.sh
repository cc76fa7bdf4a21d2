#!/bin/bash
# bench/compare.sh [flags] [peer...]
#   Builds kevy from this tree and runs it side by side with Debian's redis-server, if that is installed,
#   and with the given peers: name=path (valkey=/opt/valkey/bin/valkey-server; a name that begins with
#   kevy, such as kevy-old=/tmp/kevy, takes kevy's flags), or 'name=path word...' with {port} and {dir}
#   for a command line of its own; kevy=path and redis-server=path take those two's places. Prints one table of medians; only its ratios mean something, and only
#   server CPU per command survives a noisy machine.
# flags: --full (all cells, most of an hour; the quick selection takes three to four minutes)
#   --cells REGEXP (of all; --list prints their names)  --rounds 5  --time 800ms (of each run)  --json
# env: KEVY=path of a kevy binary to measure instead of building one
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
kevy=${KEVY:-}
if [ -z "$kevy" ]; then
  built=$(mktemp -d)
  trap 'rm -rf "$built"' EXIT
  kevy=$built/kevy
  (cd "$root" && go build -o "$kevy" ./cmd/kevy)
fi
"$kevy" bench compare "$@"
