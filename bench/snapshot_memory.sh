#!/bin/bash
# snapshot_memory.sh [keys]: resident set of kevy over five snapshots, while a tenth of the keys is written anew during each. Values of 64
# bytes. KEVY names the binary, PORT the port.
set -eu
keys=${1:-1000000} kevy=${KEVY:-kevy} port=${PORT:-21951}
dir=$(mktemp -d) kpid=
trap 'kill $kpid 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
"$kevy" --port "$port" --dir "$dir/data" --auto-aof-rewrite-percentage 0 >"$dir/log" 2>&1 & kpid=$!
until [ "$(redis-cli -p "$port" ping 2>/dev/null)" = PONG ]; do sleep 0.05; done
sets() { # STEP: SETs of every STEP-th key
	python3 -c '
import os, sys
keys, step = int(sys.argv[1]), int(sys.argv[2])
for i in range(0, keys, step):
    k = b"user:%012d" % (i * 7919 % keys)
    sys.stdout.buffer.write(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$64\r\n%s\r\n" % (len(k), k, os.urandom(64)))' "$keys" "$1"
}
resident() { awk '/VmRSS/ {print $2}' "/proc/$kpid/status"; }
saving() { redis-cli -p "$port" info persistence | grep -q rdb_bgsave_in_progress:1; }
sets 1 >"$dir/fill"; sets 10 >"$dir/tenth"
redis-cli -p "$port" --pipe <"$dir/fill" >/dev/null
sleep 2
start=$(resident)
echo "start: $start KB"
for n in 1 2 3 4 5; do
	redis-cli -p "$port" bgsave >/dev/null
	redis-cli -p "$port" --pipe <"$dir/tenth" >/dev/null & writer=$!
	peak=0
	while kill -0 $writer 2>/dev/null || saving; do
		now=$(resident)
		[ "$now" -le "$peak" ] || peak=$now
	done
	sleep 1
	now=$(resident)
	echo "snapshot $n: at most $peak KB (+$(((peak - start) * 100 / start))%), then $now KB (+$(((now - start) * 100 / start))%)"
done
