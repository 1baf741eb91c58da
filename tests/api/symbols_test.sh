#!/bin/sh
# symbols_test.sh LIBLADE.SO LIBLADE.A LIBLADE-RT.SO LIBLADE-RT.A SEAM.H: each library exports what its headers declare, all of
# it and nothing else; liblade-rt also what rt/seam.h declares, in the shared library under a version that says it is private.
set -eu
header=$(dirname "$0")/../../include/lade
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Functions that the headers declare with LADE_API.
declared() {
    cat "$@" | tr '\n' ' ' | grep -oE 'LADE_API[^;(]*\(' | grep -oE 'lade_[a-z_0-9]+ *\($' | tr -d ' (' | sort -u
}
shared() {
    nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | sed 's/@@*/ /' | grep "$2" | sed 's/ .*//' | sort -u
}
static() {
    nm --defined-only --extern-only "$1" | awk 'NF == 3 {print $3}' | sort -u
}

rt="$header/base.h $header/rt.h"
others=$(ls "$header"/*.h | grep -v -e '/base\.h$' -e '/rt\.h$')
# shellcheck disable=SC2086 # lists of words
{
    declared $others >"$tmp/lade.api"
    declared $rt >"$tmp/rt.api"
}
grep -oE '\blr_[a-z_]+\(' "$5" | tr -d '(' | sort -u >"$tmp/seam.api"
sort -u "$tmp/rt.api" "$tmp/seam.api" >"$tmp/rt-all.api"

status=0
check() { # what it exports, what it should, which
    [ -s "$2" ] || { echo "no declarations for $3"; status=1; }
    diff "$2" "$1" >"$tmp/diff" && return
    echo "$3 (>) does not export what the headers (<) declare:"
    cat "$tmp/diff"
    status=1
}
shared "$1" '' >"$tmp/got" && check "$tmp/got" "$tmp/lade.api" liblade.so
static "$2" >"$tmp/got" && check "$tmp/got" "$tmp/lade.api" liblade.a
shared "$3" 'LADE_RT_[0-9]' >"$tmp/got" && check "$tmp/got" "$tmp/rt.api" liblade-rt.so
shared "$3" 'LADE_RT_PRIVATE' >"$tmp/got" && check "$tmp/got" "$tmp/seam.api" "liblade-rt.so, private"
static "$4" >"$tmp/got" && check "$tmp/got" "$tmp/rt-all.api" liblade-rt.a
echo "$(wc -l <"$tmp/lade.api") public functions of liblade, $(wc -l <"$tmp/rt.api") of liblade-rt"
exit $status
