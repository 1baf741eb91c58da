#!/bin/sh
# Builds the driver into $OUT; go says what it downloads.
set -eu
cd "$(dirname "$0")"
CGO_ENABLED=0 go build -mod=readonly -trimpath -buildvcs=false -o "$OUT/asynq-bench" .
