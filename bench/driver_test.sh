#!/bin/sh
# Every table that lade itself can run, as small as it goes: its own driver does each scenario right on both stores, and the report
# has a figure in each cell. argv: lade-bench, a folder to write to.
# chronos 72
set -eu
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 1' HUP INT TERM
"$1" run chronos,chasqui,idle,growth,durable,stores,resque-work,currency --peers none --profile quick --repeats 1 --warmup 0 --scale 0.05 \
    --set seconds=1 --set wakes=3 --set settle-ms=1 --set n=200 --set every_us=1000 --deadline 300 --out "$out" >"$out/log" 2>&1 || {
    grep -v '^[|#-]' "$out/log"
    exit 1
}
status=0
for table in chronos chasqui idle growth durable stores resque-work currency; do
    # Whatever does not run must be lade's own word for it.
    bad=$(grep -h ',failed,\|,not_reached,' "$out/$table/summary.csv" || true)
    missing=$(grep -h ',not_run,' "$out/$table/summary.csv" | grep -v '"\(chain\|group\) 10","lade-redis"\|,"raw-redis",\|-events",\|jobs a call.*-strict",' || true)
    [ -z "$bad$missing" ] || { echo "$table: $bad$missing"; status=1; }
    grep -q ',ok,' "$out/$table/summary.csv" || { echo "$table: no figure"; status=1; }
done
exit $status
