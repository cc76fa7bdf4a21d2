#!/bin/bash
# docs/drill.sh [kevy]
#   The recovery drill of contract 7: snapshot S + the frames from S's cursor = the exact state.
#   A server takes writes while it takes a snapshot set and goes on after it. The set alone is
#   restored into a fresh directory; the frames that FEED.READ serves from the cursor in each shard's
#   header on are run against it. Then both servers must agree: PREFIX.STATS, PREFIX.DIGEST, every
#   key, value and deadline. Last, a restore to the latest frame must agree without any replay.
#   Needs redis-cli (apt-get install redis-tools). Ends only what it started.
set -u
cd "$(dirname "$0")/.." || exit 2
KEVY=$(realpath "${1:-./kevy}")
WORK=$(mktemp -d)
SHARDS=4
CURSOR_AT=32 # where a snapshot header holds generation and offset (DESIGN.md)
PORT=$((20000 + RANDOM % 15000))
PIDS=() CHECKS=0 FAILED=0

cleanup() {
  [ ${#PIDS[@]} -gt 0 ] && kill -9 "${PIDS[@]}" 2>/dev/null
  wait 2>/dev/null
  rm -rf "$WORK"
}
trap cleanup EXIT

die() { echo "drill: $*"; tail -n 20 "$WORK"/*.log; exit 1; }

check() {
  CHECKS=$((CHECKS + 1))
  if [ "$1" = "$2" ]; then
    printf 'ok    %s\n' "$3"
  else
    FAILED=$((FAILED + 1))
    printf 'FAIL  %s\n--- expected\n%.2000s\n--- got\n%.2000s\n---\n' "$3" "$1" "$2"
  fi
}

# server NAME: starts kevy on $WORK/NAME; sets NAME_PORT by echoing nothing, in $LAST_PORT
server() {
  PORT=$((PORT + 1 + RANDOM % 50))
  "$KEVY" serve --bind 127.0.0.1 --port $PORT --dir "$WORK/$1" --shards $SHARDS >"$WORK/$1.log" 2>&1 &
  PIDS+=($!)
  for _ in $(seq 200); do
    [ "$(redis-cli -p $PORT PING 2>/dev/null)" = PONG ] && { LAST_PORT=$PORT; return; }
    sleep 0.05
  done
  die "server $1 does not answer"
}

# load FIRST LAST: commands over all verbs of the core, as lines for redis-cli
load() {
  awk -v a="$1" -v b="$2" 'BEGIN {
    srand(a)
    for (i = a; i <= b; i++) {
      k = "user:" int(rand() * 2000); o = "order:" int(rand() * 500); r = int(rand() * 16)
      if (r < 4) print "SET", k, "v" i
      else if (r < 6) print "INCR", "counter:" int(rand() * 50)
      else if (r < 7) print "SET", k, "\"two words " i "\"", "EX", 5000 + i
      else if (r < 8) print "APPEND", o, "-" i
      else if (r < 9) print "SETRANGE", o, int(rand() * 40), "x" i
      else if (r < 10) print "MSET", k, "m" i, o, "m" i, "z:" i % 100, "m" i
      else if (r < 11) print "EXPIRE", k, 4000 + i
      else if (r < 12) print "PERSIST", k
      else if (r < 13) print "DEL", k, o
      else if (r < 14) { print "SET", "tmp:" i, "r" i; print "RENAME", "tmp:" i, k }
      else if (r < 15) { print "MULTI"; print "INCRBY", "counter:a", 2; print "SET", k, "tx" i; print "APPEND", "log", "."; print "EXEC" }
      else if (i % 5 == 0) print "SET", "brief:" i, "x", "PX", 300
      else print "INCRBYFLOAT", "float:" i % 20, "0.5"
    }
  }'
}

# keyspace PORT FILE: every key with value and deadline, sorted
keyspace() {
  redis-cli -p "$1" --no-raw KEYS '*' | sed -E 's/^ *[0-9]+\) //' | sort >"$2.keys"
  awk '{print "ECHO", $0; print "GET", $0; print "PEXPIRETIME", $0}' "$2.keys" |
    redis-cli -p "$1" --no-raw | paste - - - >"$2"
}

echo "== a server with $SHARDS shards takes writes"
server a; A=$LAST_PORT
load 1 20000 | redis-cli -p "$A" >/dev/null
check PONG "$(redis-cli -p "$A" PING)" "alive, $(redis-cli -p "$A" DBSIZE) keys"

echo "== a snapshot set is taken while writes go on"
load 20001 40000 | redis-cli -p "$A" >"$WORK/during.out" &
WRITER=$!
sleep 0.2
check 'Background saving started' "$(redis-cli -p "$A" BGSAVE)" "BGSAVE"
wait $WRITER
for _ in $(seq 200); do
  SET=$(ls "$WORK/a/snapshots" 2>/dev/null | grep -E '^[0-9a-f]{16}$' | tail -1)
  [ -n "$SET" ] && [ -s "$WORK/a/snapshots/$SET/SET" ] && break
  sleep 0.05
done
[ -n "$SET" ] || die "no snapshot set was published"
load 40001 50000 | redis-cli -p "$A" >/dev/null
sleep 0.5 # the brief keys have gone, and their DEL frames are in the log

# the cursors, from each snapshot file's header: generation and offset, little-endian u64
AT=() GENS=() OFFS=()
for ((i = 0; i < SHARDS; i++)); do
  read -r g o < <(od -An -t u8 -j "$CURSOR_AT" -N 16 "$WORK/a/snapshots/$SET/$(printf 'shard-%02d.snap' "$i")")
  GENS+=("$g") OFFS+=("$o") AT+=(--at "$g:$o")
  read -r tg to < <(redis-cli -p "$A" FEED.TAIL "$i" | paste - -)
  check "$tg" "$g" "shard $i: the header's cursor $g:$o is in the current generation, tail $to"
  check yes "$([ "$o" -gt 0 ] && [ "$o" -lt "$to" ] && echo yes)" "shard $i: frames were written before and after the snapshot"
done

echo "== the set alone goes into a fresh directory"
"$KEVY" restore --from "$WORK/a" --to "$WORK/b" "${AT[@]}" >"$WORK/restore.log" 2>&1 || die "restore failed"
cat "$WORK/restore.log"
server b; B=$LAST_PORT

echo "== the frames from the header's cursor on are replayed"
TOTAL=0
for ((i = 0; i < SHARDS; i++)); do
  g=${GENS[i]} o=${OFFS[i]}
  while :; do
    redis-cli -p "$A" --json FEED.READ "$i" "$g" "$o" COUNT 4096 >"$WORK/batch"
    next=$(sed -E 's/^\[[0-9]+,([0-9]+),.*/\1/' "$WORK/batch")
    [[ $next =~ ^[0-9]+$ ]] || die "FEED.READ answers $(cat "$WORK/batch")"
    grep -oE '\["[A-Z]+"[^]]*\]' "$WORK/batch" | sed -E 's/^\[//; s/\]$//; s/","/" "/g' >"$WORK/commands"
    n=$(wc -l <"$WORK/commands")
    [ "$n" -eq $((next - o)) ] || die "shard $i: $n frames from $o to $next"
    [ "$n" -eq 0 ] && break
    redis-cli -p "$B" <"$WORK/commands" | grep -E '^(ERR|WRONGTYPE|MISCONF)' && die "a frame was refused"
    TOTAL=$((TOTAL + n)) o=$next
  done
done
echo "$TOTAL frames replayed"

echo "== both servers agree"
for p in '' user: order: counter: z: nosuch; do
  check "$(redis-cli -p "$A" PREFIX.STATS "$p")" "$(redis-cli -p "$B" PREFIX.STATS "$p")" "PREFIX.STATS '$p'"
  check "$(redis-cli -p "$A" PREFIX.DIGEST "$p")" "$(redis-cli -p "$B" PREFIX.DIGEST "$p")" "PREFIX.DIGEST '$p'"
done
keyspace "$A" "$WORK/keys-a"
keyspace "$B" "$WORK/keys-b"
check "$(redis-cli -p "$A" DBSIZE)" "$(wc -l <"$WORK/keys-a" | tr -d ' ')" "every key was read"
check '' "$(diff "$WORK/keys-a" "$WORK/keys-b" | head -20)" "every key, value and deadline"

echo "== a restore to the latest frame agrees as it is"
"$KEVY" restore --from "$WORK/a" --to "$WORK/c" --latest >"$WORK/restore2.log" 2>&1 || die "restore failed"
server c; C=$LAST_PORT
keyspace "$C" "$WORK/keys-c"
check "$(redis-cli -p "$A" PREFIX.DIGEST '')" "$(redis-cli -p "$C" PREFIX.DIGEST '')" "PREFIX.DIGEST ''"
check '' "$(diff "$WORK/keys-a" "$WORK/keys-c" | head -20)" "every key, value and deadline"

printf '\ndrill: %d passed, %d failed\n' $((CHECKS - FAILED)) "$FAILED"
[ "$FAILED" -eq 0 ]
