#!/bin/bash
# bench/compare.sh [kevy]
#   Runs redis-benchmark against kevy and redis-server in turn, on this machine, with the log on
#   (redis-server: appendonly yes, appendfsync everysec), and prints requests per second and the
#   ratio kevy / redis. Numbers of one machine in one run: only the ratios mean something.
# env: RUNS=3  N=1000000 (requests per run, a fifth at -P 1)  TESTS="get set"  PIPELINES="1 16"
set -u
cd "$(dirname "$0")/.." || exit 2
KEVY=$(realpath "${1:-./kevy}")
RUNS=${RUNS:-3} N=${N:-1000000} TESTS=${TESTS:-"set get"} PIPELINES=${PIPELINES:-"1 16"}
WORK=$(mktemp -d)
KPORT=$((20000 + RANDOM % 10000)) RPORT=$((30000 + RANDOM % 10000))
"$KEVY" serve --bind 127.0.0.1 --port $KPORT --dir "$WORK/kevy" --appendfsync everysec ${FLAGS:-} >"$WORK/kevy.log" 2>&1 &
KPID=$!
mkdir "$WORK/redis"
redis-server --bind 127.0.0.1 --port $RPORT --dir "$WORK/redis" --save "" --appendonly yes --appendfsync everysec \
  --auto-aof-rewrite-percentage 0 >"$WORK/redis.log" 2>&1 &
RPID=$!
trap 'kill $KPID $RPID 2>/dev/null; wait 2>/dev/null; rm -rf "$WORK"' EXIT
for port in $KPORT $RPORT; do
  for _ in $(seq 100); do [ "$(redis-cli -p "$port" PING 2>/dev/null)" = PONG ] && break; sleep 0.1; done
  redis-benchmark -p "$port" -t set -n 1000000 -r 1000000 -d 64 -c 50 -P 16 -q >/dev/null # fill
done

# rps PORT TEST PIPELINE
rps() {
  local n=$N
  [ "$3" -eq 1 ] && n=$((N / 5))
  redis-benchmark -p "$1" -t "$2" -n "$n" -c 50 -r 1000000 -d 64 -P "$3" --csv 2>/dev/null | tail -1 | cut -d, -f2 | tr -d '"'
}

# median NUMBER...
median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

printf '# %s, %s cores, %s runs each, medians\n' "$(uname -m)" "$(nproc)" "$RUNS"
printf '%-6s %-4s %12s %12s %8s\n' test -P kevy redis ratio
for p in $PIPELINES; do
  for t in $TESTS; do
    k=() r=()
    for _ in $(seq "$RUNS"); do
      r+=("$(rps $RPORT "$t" "$p")")
      k+=("$(rps $KPORT "$t" "$p")")
    done
    mk=$(median "${k[@]}") mr=$(median "${r[@]}")
    printf '%-6s %-4s %12s %12s %8s\n' "$t" "$p" "$mk" "$mr" "$(awk -v a="$mk" -v b="$mr" 'BEGIN{printf "%.2f", a/b}')"
  done
done
