#!/bin/sh
# Builds the driver into $OUT; the three Rust drivers of table `currency` share what they depend on.
set -eu
cd "$(dirname "$0")/../rustkit"
CARGO_TARGET_DIR="$OUT/../rustkit" cargo build --quiet --release --locked -p tokio-tuned-bench
cp "$OUT/../rustkit/release/tokio-tuned-bench" "$OUT/tokio-tuned-bench"
