#!/bin/bash
# docs/tour.sh [kevy]
#   Plays kevy's main job against the real binary with redis-cli and compares every reply: start,
#   write, read the change feed, follow it, restart, resume, kill -9, FEEDRESYNC, FLUSHALL.
#   Needs redis-cli (apt-get install redis-tools). Ends only what it started.
set -u
cd "$(dirname "$0")/.." || exit 2
KEVY=$(realpath "${1:-./kevy}")
WORK=$(mktemp -d)
PORT=$((20000 + RANDOM % 12000)) # below the ports that the system gives to clients
PID= TAILPID= CHECKS=0 FAILED=0

cleanup() {
  [ -n "$TAILPID" ] && kill "$TAILPID" 2>/dev/null
  [ -n "$PID" ] && kill -9 "$PID" 2>/dev/null
  wait 2>/dev/null
  rm -rf "$WORK"
}
trap cleanup EXIT

cli() { redis-cli -p "$PORT" --no-raw "$@" 2>&1; }

# number REPLY: the digits of an integer reply
number() { grep -oE '[0-9]+' <<<"$1" | tail -1; }

start() {
  "$KEVY" serve --bind 127.0.0.1 --port "$PORT" --dir "$WORK/data" --shards 1 >>"$WORK/log" 2>&1 &
  PID=$!
  for _ in $(seq 200); do
    [ "$(cli PING)" = PONG ] && return
    kill -0 "$PID" 2>/dev/null || break
    sleep 0.05
  done
  echo "kevy does not answer:"; cat "$WORK/log"; exit 1
}

# tail_cursor: sets GEN and OFF from FEED.TAIL
tail_cursor() {
  GEN=$(redis-cli -p "$PORT" FEED.TAIL 0 | sed -n 1p)
  OFF=$(redis-cli -p "$PORT" FEED.TAIL 0 | sed -n 2p)
}

# want EXPECTED COMMAND...: runs the command and compares its reply. In it the current generation
# reads GEN, an earlier one OLD, and times in unix ms read MS.
want() {
  local expected=$1 got
  shift
  got=$(cli "$@" | sed -E "s/\b${GEN:-none}\b/GEN/g; s/\b${OLD:-none}\b/OLD/g; s/\b1[0-9]{12}\b/MS/g; s/[[:space:]]+$//")
  check "$expected" "$got" "$*"
}

check() {
  CHECKS=$((CHECKS + 1))
  if [ "$1" = "$2" ]; then
    printf 'ok    %s\n' "${3:0:100}"
  else
    FAILED=$((FAILED + 1))
    printf 'FAIL  %s\n--- expected\n%s\n--- got\n%s\n---\n' "$3" "$1" "$2"
  fi
}

title() { printf '\n== %s\n' "$1"; }

title "A server with one shard; any Redis client can talk to it"
start
want PONG PING
want '(integer) 1' FEED.SHARDS
tail_cursor
FIRST=$GEN
check 0 "$OFF" "a fresh consumer of an empty server starts at offset 0"

title "Writes become effects in the log: decided once, absolute, replayable"
want OK SET user:1 Ann
want OK SET user:2 Bob EX 1000
want '(integer) 1' INCR visits
want '(integer) 11' INCRBY visits 10
want OK MSET user:3 Cleo city Rome
want '(integer) 1' EXPIRE user:1 1000
want '(integer) 2' DEL user:3 city nosuch
want '(nil)' SET user:1 Eve NX
want '(integer) 0' DEL nosuch
want '"Ann"' GET user:1

title "FEED.READ serves them from a cursor: generation, next cursor, frames"
want '1) (integer) GEN
2) (integer) 7
3) 1) 1) (integer) 0
      2) 1) "SET"
         2) "user:1"
         3) "Ann"
   2) 1) (integer) 1
      2) 1) "SET"
         2) "user:2"
         3) "Bob"
         4) "PXAT"
         5) "MS"
   3) 1) (integer) 2
      2) 1) "SET"
         2) "visits"
         3) "1"
   4) 1) (integer) 3
      2) 1) "SET"
         2) "visits"
         3) "11"
   5) 1) (integer) 4
      2) 1) "MSET"
         2) "user:3"
         3) "Cleo"
         4) "city"
         5) "Rome"
   6) 1) (integer) 5
      2) 1) "PEXPIREAT"
         2) "user:1"
         3) "MS"
   7) 1) (integer) 6
      2) 1) "DEL"
         2) "user:3"
         3) "city"' FEED.READ 0 "$GEN" 0

title "A prefix filters single-key frames; others always pass, and the cursor is the same"
want '1) (integer) GEN
2) (integer) 7
3) 1) 1) (integer) 2
      2) 1) "SET"
         2) "visits"
         3) "1"
   2) 1) (integer) 3
      2) 1) "SET"
         2) "visits"
         3) "11"
   3) 1) (integer) 4
      2) 1) "MSET"
         2) "user:3"
         3) "Cleo"
         4) "city"
         5) "Rome"
   4) 1) (integer) 6
      2) 1) "DEL"
         2) "user:3"
         3) "city"' FEED.READ 0 "$GEN" 0 PREFIX vis
want '1) (integer) GEN
2) (integer) 2
3) 1) 1) (integer) 0
      2) 1) "SET"
         2) "user:1"
         3) "Ann"
   2) 1) (integer) 1
      2) 1) "SET"
         2) "user:2"
         3) "Bob"
         4) "PXAT"
         5) "MS"' FEED.READ 0 "$GEN" 0 COUNT 2 PREFIX user:
want '1) (integer) GEN
2) (integer) 7
3) (empty array)' FEED.READ 0 "$GEN" 7
want '(error) ERR feed cursor ahead of stream' FEED.READ 0 "$GEN" 8
want '(error) ERR shard out of range' FEED.TAIL 1
want '(error) ERR invalid COUNT' FEED.READ 0 "$GEN" 0 COUNT x
want '(error) ERR PREFIX requires a value' FEED.READ 0 "$GEN" 0 PREFIX
want "(error) ERR wrong number of arguments for 'feed.read' command" FEED.READ 0

title "PREFIX.STATS counts what begins with a prefix; PREFIX.DIGEST identifies it"
want '1) "keys"
2) (integer) 2
3) "expires"
4) (integer) 2' PREFIX.STATS user:
want '1) "keys"
2) (integer) 3
3) "expires"
4) (integer) 2' PREFIX.STATS ''
DIGEST=$(cli PREFIX.DIGEST '')

title "Follow the feed of the running server"
"$KEVY" feed tail --addr "127.0.0.1:$PORT" --from "$GEN:7" --prefix user: --json >"$WORK/tail" 2>"$WORK/tail.err" &
TAILPID=$!
want OK SET user:4 Dora
want OK SET other x
want '(integer) 4' APPEND user:4 ''
want '(integer) 5' APPEND user:4 h

# tailed N: waits until the follower has printed N lines
tailed() {
  for _ in $(seq 200); do
    [ "$(wc -l <"$WORK/tail")" -ge "$1" ] && break
    sleep 0.05
  done
  check "$1" "$(wc -l <"$WORK/tail" | tr -d ' ')" "kevy feed tail has printed $1 changes"
}
tailed 2
check '["SET","user:4","Dora"] ["APPEND","user:4","h"]' \
  "$(grep -oE '\["[A-Z]+"[^]]*\]' "$WORK/tail" | tr '\n' ' ' | sed 's/ $//')" "and these they are"

title "A clean restart keeps the cursor; consumers go on where they were"
tail_cursor
BEFORE=$GEN:$OFF
kill "$PID"; wait "$PID"; check 0 $? "SIGTERM: exit status 0"
start
tail_cursor
check "$BEFORE" "$GEN:$OFF" "generation and offset are the same"
check "$FIRST" "$GEN" "it is still the first generation"
want '"Dorah"' GET user:4
want '1) (integer) GEN
2) (integer) 10
3) 1) 1) (integer) 9
      2) 1) "APPEND"
         2) "user:4"
         3) "h"' FEED.READ 0 "$GEN" 8 PREFIX user:
want OK SET user:5 Emil
tailed 3
check '["SET","user:5","Emil"]' "$(tail -1 "$WORK/tail" | grep -oE '\["[A-Z]+"[^]]*\]')" "the follower came back by itself"

title "kill -9 loses nothing acknowledged, and says that history may have forked"
DIGEST=$(cli PREFIX.DIGEST '')
OLD=$GEN
kill -9 "$PID"; wait "$PID" 2>/dev/null
start
tail_cursor
check 0 "$OFF" "a new generation begins at offset 0"
check yes "$([ "$GEN" -gt "$OLD" ] && echo yes)" "and is greater than the old one"
want '"Emil"' GET user:5
check "$DIGEST" "$(cli PREFIX.DIGEST '')" "keys, values and deadlines are the same"
want '(error) FEEDRESYNC GEN 0' FEED.READ 0 "$OLD" 11
wait "$TAILPID"; check 3 $? "the follower was told so too, and ended with status 3"
TAILPID=
want OK SET after:crash 1
want '(error) FEEDRESYNC GEN 1' FEED.READ 0 "$OLD" 0
want '1) (integer) GEN
2) (integer) 1
3) 1) 1) (integer) 0
      2) 1) "SET"
         2) "after:crash"
         3) "1"' FEED.READ 0 "$GEN" 0
check "crash $OLD 11" "$(redis-cli -p "$PORT" FEED.INFO 0 | awk -v g="$GEN" '
  $0=="lineage"{in_l=1} in_l&&prev=="generation"{on=($0==g)} in_l&&on&&prev=="cause"{c=$0}
  in_l&&on&&prev=="parent_generation"{p=$0} in_l&&on&&prev=="parent_offset"{o=$0} {prev=$0}
  END{print c, p, o}')" "the lineage names cause, parent and fork"

title "FLUSHALL is the last frame of its generation"
OLD=$GEN
want OK FLUSHALL
tail_cursor
check 0 "$OFF" "the next generation begins at offset 0"
check yes "$([ "$GEN" -gt "$OLD" ] && echo yes)" "and is greater than the old one"
want '(error) FEEDRESYNC GEN 0' FEED.READ 0 "$OLD" 1
want '(integer) 0' DBSIZE
want '1) "keys"
2) (integer) 0
3) "expires"
4) (integer) 0' PREFIX.STATS ''

title "Expiry is a frame too, with its cause"
want OK SET brief x PX 60
sleep 0.3
want '(nil)' GET brief
want '1) (integer) GEN
2) (integer) 2
3) 1) 1) (integer) 1
      2) 1) "DEL"
         2) "brief"
      3) 1) "time"
         2) (integer) MS
         3) "cause"
         4) "expired"
         5) "group"
         6) 1) (integer) 1
            2) (integer) 1' FEED.READ 0 "$GEN" 1 WITHMETA BLOCK 2000

title "All types: relative and random commands are frames of their outcome, a script's are one group"
want '(integer) 5' HINCRBY hash n 5
want '(integer) 1' SADD set only
want '"only"' SPOP set
want '"2.5"' ZINCRBY zset 2.5 m
want '"MS-0"' XADD stream '*' f v
want '(integer) 2' EVAL "redis.call('RPUSH', KEYS[1], 'x') return redis.call('RPUSH', KEYS[1], ARGV[1])" 1 list y
want '1) (integer) GEN
2) (integer) 9
3) 1) 1) (integer) 2
      2) 1) "HSET"
         2) "hash"
         3) "n"
         4) "5"
   2) 1) (integer) 3
      2) 1) "SADD"
         2) "set"
         3) "only"
   3) 1) (integer) 4
      2) 1) "SREM"
         2) "set"
         3) "only"
   4) 1) (integer) 5
      2) 1) "ZADD"
         2) "zset"
         3) "2.5"
         4) "m"
   5) 1) (integer) 6
      2) 1) "XADD"
         2) "stream"
         3) "MS-0"
         4) "f"
         5) "v"
   6) 1) (integer) 7
      2) 1) "RPUSH"
         2) "list"
         3) "x"
   7) 1) (integer) 8
      2) 1) "RPUSH"
         2) "list"
         3) "y"' FEED.READ 0 "$GEN" 2

want '' SHUTDOWN
wait "$PID"; check 0 $? "SHUTDOWN: exit status 0"
PID=

printf '\ntour: %d passed, %d failed\n' $((CHECKS - FAILED)) "$FAILED"
[ "$FAILED" -eq 0 ] || { echo "--- log"; tail -30 "$WORK/log"; echo "--- feed tail"; cat "$WORK/tail" "$WORK/tail.err"; exit 1; }
