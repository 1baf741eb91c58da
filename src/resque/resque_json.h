/*
 * resque_json.h - JSON as Ruby writes it, read and written without a tree
 *
 * Resque compares jobs byte by byte (LREM), so whoever adds or removes one must write what Ruby's generator writes: no blanks,
 * UTF-8 as it is, '/' unescaped, floats as Float#to_s has them (1.0e+30), integers of any size.
 *
 * Thread safety: all functions; no state.
 */
#ifndef LADE_RESQUE_JSON_H
#define LADE_RESQUE_JSON_H

#include <lade/base.h>

#include "base/buf.h"

#define RQ_JSON_DEPTH 100 /* as Ruby's max_nesting */

/* A place in a text. Every function below stops for good at the first byte that is not JSON: `bad` is set then. */
struct rq_json {
    const uint8_t *p, *end;
    bool bad;
};

struct rq_json rq_json(struct lb_slice text);
/* The next byte that is not blank, without taking it; 0 at the end. */
uint8_t rq_json_peek(struct rq_json *r);
/* Takes one whole value and gives its bytes. Checks all of it, UTF-8 included. */
struct lb_slice rq_json_value(struct rq_json *r);
/*
 * Walks an object or array:
 *     if (rq_json_enter(&r, '{'))
 *         while (rq_json_next(&r, '}'))
 *             name = rq_json_name(&r), value = rq_json_value(&r);
 */
bool rq_json_enter(struct rq_json *r, uint8_t open);
bool rq_json_next(struct rq_json *r, uint8_t close);
/* A member's name with its quotes, and the colon behind it. */
struct lb_slice rq_json_name(struct rq_json *r);
/* Nothing but blanks is left, and nothing was bad. */
bool rq_json_done(struct rq_json *r);

/* Whether `raw`, a string with its quotes, says `text`. */
bool rq_json_is(struct lb_slice raw, const char *text);
/* Appends what a string (with its quotes) says, as UTF-8. False when it is none, or has half a surrogate pair. */
bool rq_json_unquote(struct lb_buf *out, struct lb_slice raw);
/* An integer that int64 holds. False for anything else. */
bool rq_json_int(struct lb_slice raw, int64_t *out);

bool rq_utf8_is_valid(struct lb_slice text);
/* Appends text as a JSON string as Ruby writes it. False, and nothing is appended, when it is not UTF-8. */
bool rq_json_quote(struct lb_buf *out, struct lb_slice text);
/* The same for bytes of any kind: what is not UTF-8 becomes U+FFFD. */
void rq_json_quote_lossy(struct lb_buf *out, struct lb_slice bytes);
/* Float#to_s; false when it is not finite, which JSON cannot say. */
bool rq_json_float(struct lb_buf *out, double v);
/*
 * Appends one JSON value (with blanks around it, perhaps) as Ruby would write it after reading it. 0; -LADE_EINVAL: not JSON, not
 * UTF-8, deeper than RQ_JSON_DEPTH, or a float beyond what a double holds; out is as it was.
 */
LADE_CHECKED int rq_json_rewrite(struct lb_buf *out, struct lb_slice text, lade_err *err);

#endif
