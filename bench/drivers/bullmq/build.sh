#!/bin/sh
# Puts the program and the packages of the lock file into $OUT. PACKAGE: the folder of package.json, this one if not set.
set -eu
cd "$(dirname "$0")"
package=${PACKAGE:-.}

cp ./*.mjs "$OUT/"
if ! cmp -s "$package/package-lock.json" "$OUT/installed.json"; then
    echo "bullmq: npm packages of $(sed -n 's/.*"bullmq": "\(.*\)".*/bullmq \1/p' "$package/package.json")"
    rm -f "$OUT/installed.json"
    cp "$package/package.json" "$package/package-lock.json" "$OUT/"
    (cd "$OUT" && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error >npm.log 2>&1) || {
        cat "$OUT/npm.log" >&2
        exit 1
    }
    cp "$package/package-lock.json" "$OUT/installed.json"
fi
