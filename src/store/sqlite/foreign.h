/*
 * foreign.h - ops in a transaction of the user's, on the user's own connection to the file
 *
 * The same code as for the store's own transactions runs on another connection. What differs: tables are named with the schema under
 * which that connection knows the file, so that its own tables of the same names are never touched; the op stands in a
 * SAVEPOINT, so that one that fails leaves the user's transaction as it was; the commit is the user's. Whom to wake is
 * kept until ls_sqlite_foreign_committed, and should that be forgotten, the next renewal of each worker finds the jobs.
 *
 * Nothing in the store outlives a transaction but its prepared statements, so other connections may write at any time.
 *
 * Thread safety: the connection is the caller's alone during the call; the store is any thread's.
 */
#ifndef LADE_SQLITE_FOREIGN_H
#define LADE_SQLITE_FOREIGN_H

#include <sqlite3.h>

#include "base/buf.h"
#include "queue/store.h"

/* Parts of ops, as the op of that name; all or nothing, within what is open on h. `s` must be a SQLite store: EINVAL if not. */
LADE_CHECKED int ls_sqlite_foreign_put(struct lq_store *s, sqlite3 *h, const char *schema,
                                       struct lq_put *put, size_t n, lade_err *err);
LADE_CHECKED int ls_sqlite_foreign_settle(struct lq_store *s, sqlite3 *h, const char *schema,
                                          struct lq_settle *it, lade_err *err);
/* `make` gets the history that the job has within the transaction and adds the new one to `out`; it->outcome is what it returns. */
typedef int (*ls_sqlite_make_history)(void *ctx, struct lb_slice old, struct lb_buf *out);
LADE_CHECKED int ls_sqlite_foreign_note(struct lq_store *s, sqlite3 *h, const char *schema,
                                        struct lq_note *it, ls_sqlite_make_history make, void *ctx,
                                        lade_err *err);
/* Wakes whom the ops on h since the last call have work for. */
void ls_sqlite_foreign_committed(struct lq_store *s, sqlite3 *h);

#endif
