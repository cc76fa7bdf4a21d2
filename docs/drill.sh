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
PORT=$((20000 + RANDOM % 12000)) # below the ports that the system gives to clients
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

# load FIRST LAST: commands over all types, as lines for redis-cli
load() {
  awk -v a="$1" -v b="$2" 'BEGIN {
    srand(a)
    for (i = a; i <= b; i++) {
      k = "user:" int(rand() * 2000); o = "order:" int(rand() * 500); r = int(rand() * 32)
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
      else if (r < 16) print "INCRBYFLOAT", "float:" i % 20, "0.5"
      else if (r < 18) print "HSET", "hash:" i % 60, "f" i, i, "g" i % 7, "\"a b\""
      else if (r < 19) { print "HINCRBY", "hash:" i % 60, "n", i % 9; print "HDEL", "hash:" i % 60, "f" i - 60 }
      else if (r < 20) { print "HSET", "fields:" i % 9, "f" i, "x"; print "HPEXPIRE", "fields:" i % 9, i % 2 ? 300 : 9000000, "FIELDS 1", "f" i }
      else if (r < 22) print i % 2 ? "LPUSH" : "RPUSH", "list:" i % 40, i, "e" i
      else if (r < 23) print i % 3 ? "LMOVE list:" i % 40 " list:" i % 13 " LEFT RIGHT" : "LPOP list:" i % 40 " 3"
      else if (r < 25) print "SADD", "set:" i % 30, i, i * 3, "m" i
      else if (r < 26) print i % 2 ? "SPOP set:" i % 30 " 2" : "SUNIONSTORE set:all set:1 set:2"
      else if (r < 28) print "ZADD", "zset:" i % 30, int(rand() * 1000) / 8, "m" i, i % 50, "n" i % 70
      else if (r < 29) print i % 2 ? "ZPOPMIN zset:" i % 30 : "ZINCRBY zset:" i % 30 " 2.5 n" i % 70
      else if (r < 30) print "XADD", "stream:" i % 12, i % 3 ? "*" : "MAXLEN ~ 200 *", "f", i
      else if (r < 31 && i % 9 == 0) print "XGROUP CREATE stream:" i % 12 " g 0 MKSTREAM"
      else if (r < 31) print "XREADGROUP GROUP g c COUNT 3 STREAMS stream:" i % 12 " >"
      else if (i % 4 == 0) print "SETBIT", "bits:" i % 5, i % 999, i % 2
      else if (i % 4 == 1) print "PFADD", "hll:" i % 5, i, i + 1
      else if (i % 4 == 2) print i % 8 == 2 ? "COPY list:" i % 40 " user:" i " REPLACE" : "RENAME set:" i % 30 " set:" i % 29
      else print "EVAL \"redis.call(\047RPUSH\047,KEYS[1],ARGV[1]) redis.call(\047SADD\047,KEYS[2],ARGV[1])\" 2 list:" i % 40 " set:" i % 30, i
    }
  }'
}

# keyspace PORT FILE: every key with its type, value and deadline on one line, sorted
keyspace() {
  local sha
  sha=$(redis-cli -p "$1" SCRIPT LOAD '
    local k, v = KEYS[1]
    local t = redis.call("TYPE", k).ok
    local function sorted(flat, step)
      local items = {}
      for i = 1, #flat, step do items[#items + 1] = table.concat({flat[i], step == 2 and flat[i + 1] or nil}, "=") end
      table.sort(items)
      return table.concat(items, ",")
    end
    if t == "string" then v = redis.call("GET", k)
    elseif t == "list" then v = table.concat(redis.call("LRANGE", k, 0, -1), ",")
    elseif t == "set" then v = sorted(redis.call("SMEMBERS", k), 1)
    elseif t == "hash" then v = sorted(redis.call("HGETALL", k), 2)
    elseif t == "zset" then v = table.concat(redis.call("ZRANGE", k, 0, -1, "WITHSCORES"), ",")
    elseif t == "stream" then
      v = cjson.encode(redis.call("XRANGE", k, "-", "+")) .. cjson.encode(redis.call("XINFO", "GROUPS", k))
      for _, g in ipairs(redis.call("XINFO", "GROUPS", k)) do
        for _, e in ipairs(redis.call("XPENDING", k, g[2], "-", "+", 100000)) do v = v .. e[1] .. e[2] .. e[4] .. " " end
      end
    end
    return t .. " " .. tostring(redis.call("PEXPIRETIME", k)) .. " " .. #v .. " " .. redis.sha1hex(v) .. " " .. v:sub(1, 200)')
  redis-cli -p "$1" --no-raw KEYS '*' | sed -E 's/^ *[0-9]+\) //' | sort >"$2.keys"
  awk -v sha="$sha" '{print "ECHO", $0; print "EVALSHA", sha, 1, $0}' "$2.keys" |
    redis-cli -p "$1" --no-raw | paste - - >"$2"
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
for p in '' user: order: counter: hash: fields: list: set: zset: stream: bits: hll: nosuch; do
  check "$(redis-cli -p "$A" PREFIX.STATS "$p")" "$(redis-cli -p "$B" PREFIX.STATS "$p")" "PREFIX.STATS '$p'"
  check "$(redis-cli -p "$A" PREFIX.DIGEST "$p")" "$(redis-cli -p "$B" PREFIX.DIGEST "$p")" "PREFIX.DIGEST '$p'"
done
keyspace "$A" "$WORK/keys-a"
keyspace "$B" "$WORK/keys-b"
check "$(redis-cli -p "$A" DBSIZE)" "$(wc -l <"$WORK/keys-a" | tr -d ' ')" "every key was read"
check 'hash list set stream string zset ' "$(awk -F'\t' '{sub(/^"/, "", $2); split($2, w, " "); print w[1]}' "$WORK/keys-a" | sort -u | tr '\n' ' ')" "of all types"
check '' "$(diff "$WORK/keys-a" "$WORK/keys-b" | head -20)" "every key, value and deadline"

echo "== a restore to the latest frame agrees as it is"
"$KEVY" restore --from "$WORK/a" --to "$WORK/c" --latest >"$WORK/restore2.log" 2>&1 || die "restore failed"
server c; C=$LAST_PORT
keyspace "$C" "$WORK/keys-c"
check "$(redis-cli -p "$A" PREFIX.DIGEST '')" "$(redis-cli -p "$C" PREFIX.DIGEST '')" "PREFIX.DIGEST ''"
check '' "$(diff "$WORK/keys-a" "$WORK/keys-c" | head -20)" "every key, value and deadline"

printf '\ndrill: %d passed, %d failed\n' $((CHECKS - FAILED)) "$FAILED"
[ "$FAILED" -eq 0 ]
