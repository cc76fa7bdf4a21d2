#!/bin/bash
# snapshot.sh [rounds] [keys]: time of BGSAVE and of loading what it wrote, kevy and redis-server in turn, on the same keys with
# values of 64 bytes, half of them random bytes and half hexadecimal digits. KEVY names the binary, PORT the first of two ports.
set -eu
rounds=${1:-5} keys=${2:-1000000} kevy=${KEVY:-kevy} pk=${PORT:-21731} pr=$((${PORT:-21731} + 1))
dir=$(mktemp -d) kpid= rpid=
trap 'kill $kpid $rpid 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
mkdir "$dir/redis"
now() { echo $(($(date +%s%N) / 1000000)); }
awaitPong() { until [ "$(redis-cli -p "$1" ping 2>/dev/null)" = PONG ]; do sleep 0.01; done; }
startKevy() { "$kevy" --port "$pk" --dir "$dir/kevy" --auto-aof-rewrite-percentage 0 >>"$dir/kevy.log" 2>&1 & kpid=$!; awaitPong "$pk"; }
startRedis() { redis-server --port "$pr" --bind 127.0.0.1 --dir "$dir/redis" --save "" --appendonly no >>"$dir/redis.log" 2>&1 & rpid=$!; awaitPong "$pr"; }
bgsave() {
	local from; from=$(now)
	redis-cli -p "$2" bgsave >/dev/null
	while redis-cli -p "$2" info persistence | grep -q rdb_bgsave_in_progress:1; do sleep 0.005; done
	echo "$1 BGSAVE $(($(now) - from)) ms"
}
stopBoth() { redis-cli -p "$pk" shutdown nosave; redis-cli -p "$pr" shutdown nosave; wait $kpid $rpid; }

startKevy; startRedis
python3 -c '
import os, sys
for i in range(int(sys.argv[1])):
    k = b"user:%012d" % i
    v = os.urandom(32).hex().encode() if i % 2 else os.urandom(64)
    sys.stdout.buffer.write(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$64\r\n%s\r\n" % (len(k), k, v))' "$keys" >"$dir/fill"
for p in $pk $pr; do redis-cli -p "$p" --pipe <"$dir/fill" >/dev/null; done
for _ in $(seq "$rounds"); do bgsave kevy "$pk"; bgsave redis "$pr"; done
du -b "$dir"/kevy/snapshots/*/shard-*.snap "$dir/redis/dump.rdb" | tail -3
stopBoth
for _ in $(seq "$rounds"); do
	startKevy; startRedis
	while redis-cli -p "$pr" ping | grep -q LOADING; do sleep 0.01; done
	echo "kevy load $(grep -o 'took=[^ ]*' "$dir/kevy.log" | tail -1)"
	echo "redis load $(grep -o 'DB loaded from disk: .*' "$dir/redis.log" | tail -1)"
	stopBoth
done
