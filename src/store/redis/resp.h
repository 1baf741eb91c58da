/*
 * resp.h - the Redis serialization protocol, versions 2 and 3: bytes in, values out, no input or output
 *
 * Three parts, each usable alone:
 *   scan     finds where a reply ends while its bytes arrive, and checks every byte of its form and all limits
 *   cursor   walks a reply that scan has found complete; values point into the buffer, nothing is copied or allocated
 *   command  writes a command as an array of bulk strings into an lb_buf
 *
 * Thread safety: none; one owner at a time.
 */
#ifndef LADE_STORE_REDIS_RESP_H
#define LADE_STORE_REDIS_RESP_H

#include <lade/base.h>

#include "base/buf.h"
#include "base/slice.h"

/* scan ----------------------------------------------------------------------------------------------------------- */

#define LS_REDIS_DEPTH_MAX 16      /* arrays within arrays, attributes included */
#define LS_REDIS_LINE_MAX  65536   /* simple strings, errors, numbers */
#define LS_REDIS_ITEMS_MAX 4194304 /* values of one reply */

enum ls_redis_scanned {
    LS_REDIS_SCAN_DONE = 0, /* one whole reply: it ends at scan.at */
    LS_REDIS_SCAN_MORE = 1, /* well-formed so far; call again with more bytes */
    LS_REDIS_SCAN_BAD = 2   /* malformed or over a limit; scan.why says what. Final */
};

/*
 * Keeps its place between calls, so that each byte is looked at once however small the pieces are (the bytes of a
 * bulk string not at all). `at` counts from the start of the reply; the buffer may move between calls, its content not.
 */
struct ls_redis_scan {
    size_t at; /* bytes done with; after DONE the length of the reply */
    size_t
        body; /* bytes of the current bulk string, its CRLF included, that must be there; 0 = none */
    size_t seen;      /* of the current line, bytes searched for its end */
    size_t reply_max; /* bytes of one reply */
    uint32_t items;
    uint32_t depth;
    uint32_t left[LS_REDIS_DEPTH_MAX + 1]; /* values still to come, each level */
    bool verbatim;                         /* the current bulk string is one */
    const char *why;
    bool over; /* BAD, and the reason is a limit of ours */
};

/* reply_max bounds bytes of one whole reply and so each bulk string in it. */
void ls_redis_scan_init(struct ls_redis_scan *s, size_t reply_max);
/* p and n: everything from the start of the reply. After DONE or BAD: ls_redis_scan_init before the next reply. */
enum ls_redis_scanned ls_redis_scan(struct ls_redis_scan *s, const uint8_t *p, size_t n);
/* Bytes surely missing after MORE, at least 1: how much to make room for, bounded by what the caller wants to give. */
size_t ls_redis_scan_missing(const struct ls_redis_scan *s, size_t n);

/* cursor --------------------------------------------------------------------------------------------------------- */

enum ls_redis_type {
    LS_REDIS_NONE = 0, /* nothing left */
    LS_REDIS_SIMPLE,   /* +OK        bytes */
    LS_REDIS_ERROR,    /* -ERR or !  bytes */
    LS_REDIS_INT,      /* :1         integer */
    LS_REDIS_BULK,     /* $          bytes */
    LS_REDIS_VERBATIM, /* =          bytes, without the "txt:" */
    LS_REDIS_ARRAY,    /* *          n values follow */
    LS_REDIS_SET,      /* ~          n values follow */
    LS_REDIS_PUSH,     /* >          n values follow */
    LS_REDIS_MAP,      /* %          n values follow: twice the number of pairs */
    LS_REDIS_NULL,     /* _ $-1 *-1 */
    LS_REDIS_DOUBLE,   /* ,          bytes as sent: "1.5", "inf", "-inf", "nan" */
    LS_REDIS_BOOL,     /* #          integer 0 or 1 */
    LS_REDIS_BIG       /* (          bytes as sent */
};

struct ls_redis_value {
    enum ls_redis_type type;
    struct lb_slice bytes; /* into the reply; p is never NULL for a type that has bytes */
    int64_t integer;
    size_t n;
};

/*
 * Over exactly one reply that scan called DONE. Attributes are skipped. The readers never leave the reply; one that
 * meets another type than it is for, or the end, sets `bad`, and everything after it gives zero or empty. So a
 * decoder reads straight on and looks at `bad` once, before it uses anything:
 *
 *     size_t n = ls_redis_read_array(&c);
 *     for (size_t i = 0; i < n; i++)
 *         job[i] = (struct x){.id = ls_redis_read_bytes(&c), .fence = ls_redis_read_int(&c)};
 *     if (c.bad) ...
 *
 * (n is bounded by the bytes of the reply, but is the server's word: bound your own memory before you loop.)
 */
struct ls_redis_cursor {
    const uint8_t *p, *end;
    bool bad;
};

struct ls_redis_cursor ls_redis_cursor(struct lb_slice reply);
/* Type of the next value without taking it. */
enum ls_redis_type ls_redis_peek(struct ls_redis_cursor *c);
/* The next value of any type; containers are entered: their values follow. NONE at the end or when bad. */
struct ls_redis_value ls_redis_read(struct ls_redis_cursor *c);
/* Integer; also a bulk or simple string that is a decimal number (HGET), and a bool. */
int64_t ls_redis_read_int(struct ls_redis_cursor *c);
/* Bulk, simple or verbatim string; null is bad. */
struct lb_slice ls_redis_read_bytes(struct ls_redis_cursor *c);
/* The same, and null gives {NULL, 0}. */
struct lb_slice ls_redis_read_bytes_or_null(struct ls_redis_cursor *c);
/* Enters an array, set, push or map; null counts as empty. How many values follow (twice the pairs of a map). */
size_t ls_redis_read_array(struct ls_redis_cursor *c);
/* Passes over the next value with all that is in it. */
void ls_redis_skip(struct ls_redis_cursor *c);

/* command -------------------------------------------------------------------------------------------------------- */

/*
 * One command being written. Arguments are counted as they come and the count is put in front by `end`; a hint with
 * the right number of digits makes that free, any other moves the bytes once. Out of memory shows in out->failed.
 */
struct ls_redis_cmd {
    struct lb_buf *out;
    size_t at;     /* where the command starts */
    size_t digits; /* room left for the count */
    size_t n;      /* arguments so far, the name included */
};

/* args_hint: how many arguments will come, the command's name included; any number is correct. */
void ls_redis_cmd_begin(struct ls_redis_cmd *cmd, struct lb_buf *out, size_t args_hint);
void ls_redis_cmd_end(struct ls_redis_cmd *cmd);

void ls_redis_arg(struct ls_redis_cmd *cmd, const void *p, size_t n);
/* An argument of n bytes that the caller writes before the next one; NULL when out of memory. */
uint8_t *ls_redis_arg_room(struct ls_redis_cmd *cmd, size_t n);
void ls_redis_arg_slice(struct ls_redis_cmd *cmd, struct lb_slice s);
void ls_redis_arg_str(struct ls_redis_cmd *cmd, const char *s);
/* Decimal text. */
void ls_redis_arg_int(struct ls_redis_cmd *cmd, int64_t v);
void ls_redis_arg_u64(struct ls_redis_cmd *cmd, uint64_t v);

#endif
