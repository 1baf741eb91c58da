#!/bin/sh
# Builds the driver into $OUT; it has no dependencies.
set -eu
cd "$(dirname "$0")"
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$OUT/go-bench" .
