#!/bin/sh
# user_builds_test.sh CC LIBLADE-RT.A INCLUDE SANITIZE: R29, r29_user_code_at_every_level: a user's program at each level of
# optimisation and with LTO, against the library as it was built.
set -eu
cc=$1 lib=$2 include=$3 sanitize=$4
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
[ -z "$sanitize" ] || sanitize="-fsanitize=$sanitize"
lto='-O2 -flto'
case $("$cc" --version) in
*clang*) lto=-Os ;; # its LTO needs a linker plugin that a machine with gcc has not always; scripts/rt-check builds has it
esac
for level in -O0 -O2 -O3 "$lto" '-O2 -fomit-frame-pointer'; do
    # shellcheck disable=SC2086 # lists of words
    "$cc" -std=gnu17 $level $sanitize -I "$include" "$here/rt_user.c" "$lib" -o "$tmp/user" -pthread
    "$tmp/user" || { echo "with $level: wrong"; exit 1; }
    echo "with $level: right"
done
