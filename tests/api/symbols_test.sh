#!/bin/sh
# symbols_test.sh LIBLADE.SO LIBLADE.A: both export the public API, all of it and nothing else.
set -eu
header=$(dirname "$0")/../../include/lade
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Functions that the headers declare with LADE_API.
cat "$header"/*.h | tr '\n' ' ' | grep -oE 'LADE_API[^;(]*\(' | grep -oE 'lade_[a-z_0-9]+ *\($' | tr -d ' (' | sort -u >"$tmp/api"
nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort -u >"$tmp/shared"
nm --defined-only --extern-only "$2" | awk 'NF == 3 {print $3}' | sort -u >"$tmp/static"

status=0
for lib in shared static; do
    if ! diff "$tmp/api" "$tmp/$lib" >"$tmp/diff"; then
        echo "the $lib library (>) does not export what the header (<) declares:"
        cat "$tmp/diff"
        status=1
    fi
done
[ -s "$tmp/api" ] || status=1
echo "$(wc -l <"$tmp/api") public functions"
exit $status
