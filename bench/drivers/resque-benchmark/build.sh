#!/bin/sh
# Builds redis-performance/resque-benchmark at its version 0.1.2 into $OUT. It is in no registry: LADE_RESQUE_BENCHMARK may name a clone
# of its public repository (a path or an address). Its own lock file decides what Cargo takes.
set -eu
commit=56c1456
from=${LADE_RESQUE_BENCHMARK:-https://github.com/redis-performance/resque-benchmark}

rm -rf "$OUT/source"
if ! git clone --quiet "$from" "$OUT/source"; then
    echo "resque-benchmark: $from cannot be cloned; set LADE_RESQUE_BENCHMARK to a clone of its repository" >&2
    exit 1
fi
git -C "$OUT/source" checkout --quiet "$commit"
cd "$OUT/source"
CARGO_TARGET_DIR="$OUT/target" cargo build --quiet --release --locked
cp "$OUT/target/release/resque-bench" "$OUT/resque-bench"
