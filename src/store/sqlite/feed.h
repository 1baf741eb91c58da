/*
 * feed.h - a batch of puts as a table that SQL can read
 *
 *     INSERT ... SELECT seq, ?2, id, body FROM lade_feed(?1)
 *
 * One statement then inserts the whole batch. Binding, stepping and resetting one statement for each job costs as much
 * as the insert itself (11k against 6k instructions a job).
 */
#ifndef LADE_SQLITE_FEED_H
#define LADE_SQLITE_FEED_H

#include "queue/store.h"
#include "store/sqlite/db.h"

/* Of other tables: columns seq and body. */
struct ls_sqlite_pair {
    int64_t num;
    struct lb_slice data;
};

struct ls_sqlite_feed {
    const struct lq_put *it;
    size_t n;
    int64_t seq;                       /* of the first; the next has one more */
    const struct ls_sqlite_pair *pair; /* instead of `it` and seq; NULL: not */
};

/* Makes the table known to a connection. */
LADE_CHECKED int ls_sqlite_feed_register(struct ls_sqlite_db *db, lade_err *err);
/* Binds a feed, which must stay until the statement is reset. */
void ls_sqlite_feed_bind(sqlite3_stmt *st, int i, struct ls_sqlite_feed *feed);

#endif
