#!/bin/sh
# install_test.sh BUILD CC CMAKE SANITIZE: installs the build into a folder of its own, moves that folder, and builds and
# runs a program against it in each of the four ways users have: pkg-config and find_package, shared and static.
set -eu
build=$1 cc=$2 cmake=$3 sanitize=$4
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

"$cmake" --install "$build" --prefix "$tmp/first" >"$tmp/log"
mv "$tmp/first" "$tmp/moved"
prefix=$tmp/moved
for f in include/lade/lade.h include/lade/base.h lib/liblade.so lib/liblade.a bin/lade; do
    [ -e "$prefix/$f" ] || { echo "not installed: $f"; exit 1; }
done
# The library is built with sanitizers in the test build; then the program must bring their runtime.
flags=
[ -z "$sanitize" ] || flags="-fsanitize=$sanitize"

export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
"$prefix/bin/lade" version | grep -F "$(pkg-config --modversion lade)" ||
    { echo "lade version and lade.pc differ"; exit 1; }
# shellcheck disable=SC2046,SC2086 # flags are lists of words
"$cc" $flags "$here/header_test.c" -o "$tmp/shared" $(pkg-config --cflags --libs lade)
LD_LIBRARY_PATH="$prefix/lib" "$tmp/shared"
static=$(pkg-config --static --cflags --libs lade | sed 's/-llade/-l:liblade.a/')
# shellcheck disable=SC2086
"$cc" $flags "$here/header_test.c" -o "$tmp/static" $static
"$tmp/static"
echo "pkg-config: shared and static run"

mkdir "$tmp/user"
cp "$here/header_test.c" "$tmp/user"
cat >"$tmp/user/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES C)
find_package(lade 0.1 REQUIRED)
add_executable(shared header_test.c)
target_link_libraries(shared PRIVATE lade::lade)
add_executable(static header_test.c)
target_link_libraries(static PRIVATE lade::static)
CMAKE
"$cmake" -S "$tmp/user" -B "$tmp/user/build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" \
    -DCMAKE_PREFIX_PATH="$prefix" >>"$tmp/log" || { cat "$tmp/log"; exit 1; }
"$cmake" --build "$tmp/user/build" >>"$tmp/log" || { cat "$tmp/log"; exit 1; }
"$tmp/user/build/shared"
"$tmp/user/build/static"
echo "find_package: shared and static run"
