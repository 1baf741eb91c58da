#!/bin/sh
# Builds the driver into $OUT; cargo says what it downloads.
set -eu
cd "$(dirname "$0")"
CARGO_TARGET_DIR="$OUT/target" cargo build --quiet --release --locked
cp "$OUT/target/release/chasquimq-bench" "$OUT/chasquimq-bench"
