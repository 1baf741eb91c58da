#!/bin/sh
# install_test.sh BUILD CC CMAKE SANITIZE: installs the build into a folder of its own, moves that folder, and builds and
# runs a program against it in each of the four ways users have: pkg-config and find_package, shared and static. Then the same
# with the component `rt` alone, which must do without everything else.
set -eu
build=$1 cc=$2 cmake=$3 sanitize=$4
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# The library is built with sanitizers in the test build; then the program must bring their runtime.
flags=
[ -z "$sanitize" ] || flags="-fsanitize=$sanitize"

# has PREFIX FILE...
has() {
    prefix=$1
    shift
    for f in "$@"; do
        [ -e "$prefix/$f" ] || { echo "not installed: $f"; exit 1; }
    done
}

# use PREFIX PACKAGE PROGRAM.C: by pkg-config
use_pkg_config() {
    export PKG_CONFIG_PATH="$1/lib/pkgconfig"
    # shellcheck disable=SC2046,SC2086 # flags are lists of words
    "$cc" $flags "$here/$3" -o "$tmp/shared" $(pkg-config --cflags --libs "$2")
    LD_LIBRARY_PATH="$1/lib" "$tmp/shared"
    static=$(pkg-config --static --cflags --libs "$2" | sed -E 's/-l(lade(-rt)?)( |$)/-l:lib\1.a\3/g')
    # shellcheck disable=SC2086
    "$cc" $flags "$here/$3" -o "$tmp/static" $static
    "$tmp/static"
    echo "pkg-config $2: shared and static run"
}

# use_cmake PREFIX PROGRAM.C FIND SHARED STATIC
use_cmake() {
    rm -rf "$tmp/user"
    mkdir "$tmp/user"
    cp "$here/$2" "$tmp/user/program.c"
    cat >"$tmp/user/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES C)
find_package($3)
add_executable(shared program.c)
target_link_libraries(shared PRIVATE $4)
add_executable(static program.c)
target_link_libraries(static PRIVATE $5)
CMAKE
    "$cmake" -S "$tmp/user" -B "$tmp/user/build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" \
        -DCMAKE_PREFIX_PATH="$1" >>"$tmp/log" 2>&1 || return 1
    "$cmake" --build "$tmp/user/build" >>"$tmp/log" 2>&1 || return 1
    "$tmp/user/build/shared"
    "$tmp/user/build/static"
    echo "find_package($3): shared and static run"
}
must() {
    "$@" || { cat "$tmp/log"; exit 1; }
}

"$cmake" --install "$build" --prefix "$tmp/first" >"$tmp/log"
mv "$tmp/first" "$tmp/all"
all=$tmp/all
has "$all" include/lade/lade.h include/lade/base.h include/lade/rt.h lib/liblade.so lib/liblade.a lib/liblade-rt.so \
    lib/liblade-rt.a bin/lade
PKG_CONFIG_PATH="$all/lib/pkgconfig" pkg-config --modversion lade >"$tmp/version"
"$all/bin/lade" version | grep -F "$(cat "$tmp/version")" || { echo "lade version and lade.pc differ"; exit 1; }
use_pkg_config "$all" lade header_test.c
must use_cmake "$all" header_test.c "lade 0.1 REQUIRED" lade::lade lade::static
use_pkg_config "$all" lade-rt rt_header_test.c

"$cmake" --install "$build" --prefix "$tmp/second" --component rt >"$tmp/log"
mv "$tmp/second" "$tmp/rt"
rt=$tmp/rt
has "$rt" include/lade/rt.h lib/liblade-rt.so lib/liblade-rt.a lib/pkgconfig/lade-rt.pc
for f in include/lade/lade.h lib/liblade.so lib/liblade.a bin/lade lib/pkgconfig/lade.pc; do
    [ ! -e "$rt/$f" ] || { echo "component rt brings $f"; exit 1; }
done
use_pkg_config "$rt" lade-rt rt_header_test.c
must use_cmake "$rt" rt_header_test.c "lade 0.1 REQUIRED COMPONENTS rt" lade::rt lade::rt-static
if use_cmake "$rt" header_test.c "lade 0.1 REQUIRED" lade::lade lade::static; then
    echo "find_package(lade) takes the runtime alone for all of lade"
    exit 1
fi
if readelf -d "$rt/lib/liblade-rt.so" | grep -E 'NEEDED.*(sqlite|ssl|crypto|lade)'; then
    echo "liblade-rt needs the libraries above"
    exit 1
fi
