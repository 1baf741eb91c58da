/*
 * rb_server.h - the one connection that prepares, looks and cleans
 *
 * What it may touch: the queues' lists, our members of `queues`, and keys of our own names; see rb_safe_check.
 *
 * Thread safety: the main thread.
 */
#ifndef LADE_RESQUE_BENCH_RB_SERVER_H
#define LADE_RESQUE_BENCH_RB_SERVER_H

#include "resque/resque_id.h"
#include "resque_bench/rb.h"
#include "store/redis/conn.h"

#define RB_PREFILL_PIPELINE 1000
#define RB_PATIENCE         (30 * LADE_SECOND)
#define RB_HELD_MAX         100000    /* entries of others that we may hold */
#define RB_HELD_BYTES_MAX   268435456 /* and their bytes */

/* An entry that is not ours, to be given back. */
struct rb_held {
    size_t queue;
    size_t n;
    uint8_t bytes[];
};

struct rb_server {
    const struct rb_options *o;
    struct ls_redis_url url;
    struct rq_keys keys;
    struct rq_host host;
    struct ls_redis_conn *conn;
    bool reached;
    bool db_given;    /* by flag or URL */
    char *node;       /* of a cluster, the host that we were sent to; NULL */
    int64_t patience; /* ns that one call may take */

    char version[64];   /* "redis 7.0.15" */
    char (*queue)[224]; /* names */
    bool *added;        /* queue i was not in `queues` before we put it there */
    size_t n_queues;

    struct rb_held **held;
    size_t n_held, held_cap;
    size_t held_bytes;

    int64_t put_at; /* wall ns of the first job of this run; 0 = none yet */
};

/* Parses the URL with all that is put on top of it. No connection. */
LADE_CHECKED int rb_server_init(struct rb_server *s, const struct rb_options *o, lade_err *err);
void rb_server_fini(struct rb_server *s);
/* "redis://user:****@host:6379/13"; never a password. */
void rb_server_url_text(const struct rb_server *s, char *out, size_t size);
LADE_CHECKED int rb_server_connect(struct rb_server *s, lade_err *err);
/* Writes the URL's text for messages anew. */
void rb_server_describe(struct rb_server *s);
/* On a Redis Cluster: goes to the node that has the keys of this run, or says why there is none. Nothing elsewhere. */
LADE_CHECKED int rb_cluster_enter(struct rb_server *s, lade_err *err);

/* "redis-7.0.15", cleaned. */
void rb_server_tag(const struct rb_server *s, char *out, size_t size);

/* Everything that must be so before anything is written: descriptors, clients, queues empty, no workers, flushdb. */
LADE_CHECKED int rb_safe_check(struct rb_server *s, lade_err *err);

/* FLUSHDB where that is asked for, else takes out what an earlier trial left and sets aside what is not ours. */
LADE_CHECKED int rb_server_clear(struct rb_server *s, lade_err *err);
/* SADD and RPUSH of n jobs; -LADE_ECLOSED when interrupted. */
LADE_CHECKED int rb_server_prefill(struct rb_server *s, uint64_t n, lade_err *err);
/* Sum of LLEN. */
LADE_CHECKED int rb_server_backlog(struct rb_server *s, int64_t *out, lade_err *err);
void rb_server_look(struct rb_server *s, struct rb_server_state *out);
/* Gives back what is held, removes what is ours. Says what it could not do on stderr. */
void rb_server_clean(struct rb_server *s);

/* Keeps an entry that is not ours. False: too many. */
bool rb_server_hold(struct rb_server *s, size_t queue, struct lb_slice entry);

/*
 * Appends a key of worker `number` of this run: kind + "<host>-<suffix>:bench.<number>:<queue>". The id is not registered, so no Ruby
 * worker looks for it, and its suffix is drawn at random, so that it is nobody else's.
 */
#define RB_OWN_WORKER   "worker:"
#define RB_OWN_INFLIGHT "inflight:"
#define RB_OWN_COUNT    "stat:processed:"
#define RB_OWN_ALL      "stat:processed:all:"
void rb_own_key(const struct rb_server *s, struct lb_buf *out, const char *kind, size_t number);

/* The URL of the same server for lade_open; it holds the password. -LADE_EUNSUPPORTED when it cannot be written as one. */
LADE_CHECKED int rb_server_lade_url(const struct rb_server *s, char *out, size_t size,
                                    lade_err *err);
/* The namespace of this run for lade's own queue, and its removal: by SCAN, 1,000 keys a step. */
void rb_server_native_ns(const struct rb_server *s, char *out, size_t size);
LADE_CHECKED int rb_server_remove_native(struct rb_server *s, lade_err *err);

/* One job into a command or a buffer. */
void rb_job_write(struct lb_buf *out, const struct rb_options *o, uint64_t index, int64_t wall_ns);

enum rb_entry {
    RB_OURS,
    RB_FOREIGN, /* a job, but not one of this run */
    RB_BROKEN   /* no job, or without its time */
};

/* Reads an entry: its number and the time it was put. */
enum rb_entry rb_job_read(const struct rb_server *s, struct lb_slice entry, uint64_t *index,
                          int64_t *wall_ns);

#endif
