#!/bin/sh
# lade beside real Ruby Resque: ruby_test.sh LADE SOURCE_DIR
# Needs ruby with redis, redis-namespace, multi_json and mono_logger, and in RESQUE_DIR a checkout of resque/resque v3.0.0. More is run
# with sinatra and rack (resque-web), activejob, rufus-scheduler and in SCHEDULER_DIR a checkout of resque/resque-scheduler 5.0.0.
set -eu
lade=$1
here=$2
missing=
command -v ruby >/dev/null || missing="ruby"
for lib in redis redis-namespace multi_json mono_logger; do
    [ -n "$missing" ] || ruby -e "require '$lib'" 2>/dev/null || missing="the Ruby library $lib"
done
[ -n "$missing" ] || [ -f "${RESQUE_DIR:-}/lib/resque.rb" ] || missing="a checkout of resque/resque v3.0.0 in RESQUE_DIR"
if [ -n "$missing" ]; then
    echo "NOT RUN, for want of $missing: resque W1 W2 W3 W4 W5 W6 W7 W8 W9 W10 W11 W13 W15 W18 W24 W25 beside real Ruby Resque."
    echo "What lade writes is held byte by byte by resque/rs_*_test and resque/resque_test."
    exit 0
fi
dir=$(mktemp -d)
redis-server --port 0 --unixsocket "$dir/socket" --save "" --appendonly no --dir "$dir" >"$dir/log" 2>&1 &
server=$!
trap 'kill $server; wait $server 2>/dev/null || true; rm -rf "$dir"' EXIT
tries=0
until [ -S "$dir/socket" ] || [ $tries -eq 600 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
RUBYLIB="$RESQUE_DIR/lib" ruby -W0 "$here/ruby_interop.rb" "$lade" "$dir/socket" "$dir"
RUBYLIB="$RESQUE_DIR/lib${SCHEDULER_DIR:+:$SCHEDULER_DIR/lib}" ruby -W0 "$here/ruby_more.rb" "$lade" "$dir/socket" "$dir"
