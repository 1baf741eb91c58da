/*
 * sqlite.h - jobs in your own SQLite transaction
 *
 * When the queue is an SQLite file and your rows lie in the same file, a job can be part of your transaction: it is there when
 * your rows are there, and not when they are not, whatever dies when.
 *
 *     sqlite3_exec(db, "BEGIN IMMEDIATE; INSERT INTO orders ...", ...);
 *     rc = lade_sqlite_enqueue(q, db, NULL, &(lade_job_spec){.kind = "ship", .payload = ...}, NULL, &err);
 *     sqlite3_exec(db, rc < 0 ? "ROLLBACK" : "COMMIT", ...);
 *     lade_sqlite_committed(q, db);      // wakes workers
 *
 * and in a handler the rows it writes, the record that it wrote them and the job's completion are one commit:
 *
 *     sqlite3_exec(db, "BEGIN IMMEDIATE; INSERT INTO shipments ...", ...);
 *     if (lade_sqlite_complete(job, db, NULL, &err) != 0)
 *         sqlite3_exec(db, "ROLLBACK", ...);     // LADE_STALE: somebody else has the job now
 *     else
 *         sqlite3_exec(db, "COMMIT", ...);
 *     return LADE_OK;
 *
 * The connection is yours, opened by you on the file that lade opened (made by lade_open; make your own tables in it), or with that
 * file ATTACHed: `schema` is the name under which the connection knows it, NULL is "main". lade's tables are named in
 * docs/format.md; yours must have other names when they are in the same schema. Both must use the same libsqlite3.
 *
 * One file. SQLite commits a transaction over several files in WAL mode file by file, so that a crash between them leaves one
 * committed and the other not (https://www.sqlite.org/lang_attach.html). All that is said here of one commit holds for tables in the
 * queue's own file. With a file of yours as main and the queue ATTACHed, yours is committed first: a crash then may leave your rows without
 * the job, or an effect without its record.
 *
 * Locks. SQLite has one writer: BEGIN IMMEDIATE with a sqlite3_busy_timeout on your connection, keep such transactions short, well below a worker's
 * lease, and call nothing of lade that writes on another connection (lade_enqueue, lade_effect) while one is open: it would wait
 * for you. Workers of all processes wait meanwhile.
 *
 * Threads. Each function may be called from any thread that may use `db`, and uses it alone until it returns.
 */
#ifndef LADE_SQLITE_H
#define LADE_SQLITE_H

#include <sqlite3.h>

#include <lade/lade.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * As lade_enqueue, in what is open on db; without a transaction in a commit of its own. Either the whole job is written or nothing,
 * and the transaction goes on in either case. *id (may be NULL) as there. Workers find the job when you have committed and called
 * lade_sqlite_committed, or else when they next renew (by default within 7.5 s).
 * Returns 0 or LADE_DUPLICATE. Failures: EINVAL (also: q is no SQLite store, schema is another file), ETOOBIG, EBUSY (another
 * connection writes, or wrote after your transaction began to read: roll back and begin again), ENOSPACE, EACCESS, ENOMEM.
 */
LADE_API LADE_CHECKED int lade_sqlite_enqueue(lade *q, sqlite3 *db, const char *schema,
                                              const lade_job_spec *spec, lade_id *id,
                                              lade_err *err);

/*
 * Completes the handler's job, with the result that lade_job_result was given, under its fence, in what is open on db. When that is
 * committed the job is completed, and what the handler then returns changes nothing: return LADE_OK. When it is rolled back, this
 * call has not been, and what the handler returns counts.
 * Returns 0, or LADE_STALE when the lease was lost or the job was ended from elsewhere: roll back. Failures as lade_sqlite_enqueue.
 * A job that an operator has cancelled or killed meanwhile is completed all the same. The handler's own call only.
 */
LADE_API LADE_CHECKED int lade_sqlite_complete(lade_job *job, sqlite3 *db, const char *schema,
                                               lade_err *err);

/*
 * As lade_effect (effect.h), in what is open on db: the effect, rows of yours in the same transaction, and its record are
 * committed together, so that it is had exactly once. lade_effect_done of this run does not see it; the next attempt's does.
 * Returns 0, or LADE_DUPLICATE, LADE_FULL or LADE_STALE as lade_effect: then roll back. Failures as lade_sqlite_enqueue. The handler's own call only.
 */
LADE_API LADE_CHECKED int lade_sqlite_effect(lade_job *job, sqlite3 *db, const char *schema,
                                             const char *key, lade_bytes value, lade_err *err);

/*
 * After your commit: wakes the workers, of all processes, that the calls on db since the last time have work for. Costs next to
 * nothing when there is none; harmless after a rollback. Call it before db is closed. NULL does nothing.
 */
LADE_API void lade_sqlite_committed(lade *q, sqlite3 *db);

#ifdef __cplusplus
}
#endif

#endif
