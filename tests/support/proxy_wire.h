/*
 * proxy_wire.h - as much RESP as the fault proxy needs: where messages end, and what a request says
 *
 * Written apart from the library's own codec on purpose: a mistake there must not hide behind the same one here.
 */
#ifndef LADE_TESTS_SUPPORT_PROXY_WIRE_H
#define LADE_TESTS_SUPPORT_PROXY_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#define TS_WIRE_BROKEN ((size_t)-1)

/* Bytes of the first whole message (RESP2 or RESP3, attributes included) in p[0..n); 0 = not whole yet, or
 * TS_WIRE_BROKEN. */
size_t ts_wire_message(const char *p, size_t n);

/* The arguments of a request, joined by blanks and cut, each at 128 bytes and at its first line end. */
void ts_wire_describe(const char *p, size_t n, char *out, size_t size);

/* The i-th argument of a request; NULL when there is none. */
const char *ts_wire_arg(const char *p, size_t n, size_t i, size_t *out);

/* Titles of the scripts seen in SCRIPT LOAD, by sha: the first line, or the last comment that names a file
 * ("-- take.lua - ..."). Those beyond the table stay nameless. */
#define TS_WIRE_SHA         40
#define TS_WIRE_SCRIPTS_MAX 128
#define TS_WIRE_LIBRARY \
    22 /* "lade_", 16 digits, "_": what stands before an op in the name of a function */

struct ts_wire_script {
    char sha[TS_WIRE_SHA + 1];
    char line[64];
};

struct ts_wire_scripts {
    struct ts_wire_script script[TS_WIRE_SCRIPTS_MAX];
    size_t n;
};

/* Describes a request; for EVALSHA the title of its script stands after the sha, for FCALL "-- OP.lua" before the name. Returns the number of the script
 * when the request loads one, to be given to ts_wire_loaded with the reply; else -1. `size` at least 512. */
int ts_wire_request(struct ts_wire_scripts *s, const char *p, size_t n, char *out, size_t size);
void ts_wire_loaded(struct ts_wire_scripts *s, int script, const char *reply, size_t n);

#endif
