/* conn_rig.h - what the tests of the connection share: a connection, and calls given as lines of words */
#ifndef LADE_STORE_REDIS_CONN_RIG_H
#define LADE_STORE_REDIS_CONN_RIG_H

#include "store/redis/conn.h"
#include "store/redis/script.h"

struct rig {
    struct ls_redis_url url;
    struct ls_redis_conn_config config;
    struct ls_redis_conn *c;
    lade_err err;
    unsigned encoded, repeats; /* of the last call */
};

/* A config of zeros gets the name "lade" and one second to connect. Main thread only: asserts. */
void rig_open(struct rig *r, const char *url, const struct ls_redis_conn_config *config);
void rig_close(struct rig *r);

/* Calls n lines, "SET key value", each a command. */
int rig_run_all(struct rig *r, const char *const *line, size_t n, bool once, int64_t timeout);
int rig_run(struct rig *r, const char *line, int64_t timeout);
/* rig_run with 5 s, which must succeed. */
void rig_must(struct rig *r, const char *line);

void rig_expect(struct rig *r, size_t i, const char *text);
int64_t rig_int(struct rig *r, size_t i);
/* Reply 0 as a string with a NUL, cut to size. */
const char *rig_text(struct rig *r, char *out, size_t size);

#endif
