#!/bin/sh
# Builds the driver into $OUT; the three Rust drivers of table `currency` share what they depend on.
set -eu
cd "$(dirname "$0")/../rustkit"
CARGO_TARGET_DIR="$OUT/../rustkit" cargo build --quiet --release --locked -p crossbeam-bench
cp "$OUT/../rustkit/release/crossbeam-bench" "$OUT/crossbeam-bench"
