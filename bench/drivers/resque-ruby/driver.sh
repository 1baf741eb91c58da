#!/bin/sh
# Ruby Resque is neither in this tree nor in Debian: a checkout of resque/resque v3.0.0 is named by RESQUE_DIR, and Debian has what it
# needs: ruby ruby-redis ruby-redis-namespace ruby-multi-json ruby-mono-logger.
command -v ruby >/dev/null || { echo "ruby is not installed (see bench/drivers/resque-ruby/driver.sh)" >&2; exit 2; }
[ -n "${RESQUE_DIR-}" ] || { echo "RESQUE_DIR names no checkout of resque/resque" >&2; exit 2; }
[ -f "$RESQUE_DIR/lib/resque.rb" ] || { echo "RESQUE_DIR=$RESQUE_DIR has no lib/resque.rb" >&2; exit 2; }
exec ruby -W0 -I "$RESQUE_DIR/lib" "$(dirname "$0")/resque_ruby.rb" "$@"
