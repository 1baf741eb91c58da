/*
 * migrate.c - from an empty file, or an older schema, to this version's
 *
 * `PRAGMA application_id` says that a file is lade's, `PRAGMA user_version` which schema it has. Both are set in the
 * transaction that makes the tables, so that a file is either wholly ours or still empty. Each entry of `steps` leads
 * from its index to the next version; a new version appends a file sql/schema/NNNN_what.sql and an entry.
 */
#include "store/sqlite/migrate.h"

#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "rt/seam.h"

extern const char ls_sqlite_schema_0001[], ls_sqlite_schema_0002[], ls_sqlite_schema_0003[],
    ls_sqlite_schema_0004[], ls_sqlite_schema_0005[], ls_sqlite_schema_0006[],
    ls_sqlite_schema_0007[], ls_sqlite_schema_0008[], ls_sqlite_schema_0009[],
    ls_sqlite_schema_0010[], ls_sqlite_schema_0011[], ls_sqlite_schema_0012[],
    ls_sqlite_schema_0013[];

static const char *const steps[] = {
    ls_sqlite_schema_0001, ls_sqlite_schema_0002, ls_sqlite_schema_0003, ls_sqlite_schema_0004,
    ls_sqlite_schema_0005, ls_sqlite_schema_0006, ls_sqlite_schema_0007, ls_sqlite_schema_0008,
    ls_sqlite_schema_0009, ls_sqlite_schema_0010, ls_sqlite_schema_0011, ls_sqlite_schema_0012,
    ls_sqlite_schema_0013};

#define FLOW_PARTS 11 /* the version whose step takes more than its SQL */

_Static_assert(LB_ARRAY_LEN(steps) == LS_SQLITE_SCHEMA, "one step for each version");

struct state {
    int64_t application;
    int64_t version;
    int64_t objects; /* tables and indexes */
};

static int look(struct ls_sqlite_db *db, struct state *st, lade_err *err)
{
    int rc = ls_sqlite_db_int(db, "PRAGMA application_id", &st->application, "open", err);
    if (rc == 0)
        rc = ls_sqlite_db_int(db, "PRAGMA user_version", &st->version, "open", err);
    if (rc == 0)
        rc = ls_sqlite_db_int(db, "SELECT count(*) FROM sqlite_schema", &st->objects, "open", err);
    return rc;
}

static int judge(struct ls_sqlite_db *db, const struct state *st, lade_err *err)
{
    bool empty = st->application == 0 && st->version == 0 && st->objects == 0;
    if (st->application != LS_SQLITE_APPLICATION_ID && !empty)
        return lb_fail(err, LADE_EFOREIGN, "open",
                       "%s is a SQLite database of something else; give lade a file of its own",
                       db->path);
    if (st->version > LS_SQLITE_SCHEMA)
        return lb_fail(err, LADE_EFORMAT, "open",
                       "%s has schema %lld from a newer lade, this one knows %d; upgrade lade",
                       db->path, (long long)st->version, LS_SQLITE_SCHEMA);
    return 0;
}

/* Asks once; BUSY comes at once here when another process opens the new file too, so the caller repeats it. */
static int ask_wal(struct ls_sqlite_db *db, char mode[16], lade_err *err)
{
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db->h, "PRAGMA journal_mode = WAL", -1, &st, NULL) != SQLITE_OK)
        return ls_sqlite_db_fail(db, "open", err);
    int rc = 0;
    if (sqlite3_step(st) == SQLITE_ROW)
        (void)snprintf(mode, 16, "%s", (const char *)sqlite3_column_text(st, 0));
    else
        rc = ls_sqlite_db_fail(db, "open", err);
    (void)sqlite3_finalize(st);
    return rc;
}

/* SQLite answers with the mode it could reach, which on some file systems is another one. */
static int set_wal(struct ls_sqlite_db *db, lade_err *err)
{
    char mode[16] = "";
    int rc = ask_wal(db, mode, err);
    while (rc == -LADE_EBUSY && lb_clock_mono() < db->busy_deadline) {
        lr_sleep_until(lb_clock_mono() + LADE_MILLISECOND);
        rc = ask_wal(db, mode, err);
    }
    if (rc == 0 && strcmp(mode, "wal") != 0)
        rc = lb_fail(err, LADE_EUNSUPPORTED, "open",
                     "%s: the file system cannot do WAL (journal mode is '%s'); use a local disk",
                     db->path, mode);
    return rc;
}

static int climb(struct ls_sqlite_db *db, lade_err *err)
{
    struct state st = {0};
    char sql[96];
    int rc = look(db, &st, err); /* again: another process may have been faster */
    if (rc == 0)
        rc = judge(db, &st, err);
    for (int64_t v = st.version; rc == 0 && v < LS_SQLITE_SCHEMA; v++) {
        rc = ls_sqlite_db_exec(db, steps[v], "open", err);
        if (rc == 0 && v + 1 == FLOW_PARTS)
            rc = ls_sqlite_flow_convert(db, err);
    }
    if (rc < 0 || st.version == LS_SQLITE_SCHEMA)
        return rc;
    (void)snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d",
                   LS_SQLITE_APPLICATION_ID, LS_SQLITE_SCHEMA);
    return ls_sqlite_db_exec(db, sql, "open", err);
}

/* One snapshot for the three answers: another process may be making the file just now. */
static int look_once(struct ls_sqlite_db *db, struct state *st, lade_err *err)
{
    int rc = ls_sqlite_db_exec(db, "BEGIN", "open", err);
    if (rc < 0)
        return rc;
    rc = look(db, st, err);
    if (!sqlite3_get_autocommit(db->h))
        (void)sqlite3_exec(db->h, "ROLLBACK", NULL, NULL, NULL); /* nothing was written */
    return rc;
}

int ls_sqlite_migrate(struct ls_sqlite_db *db, lade_err *err)
{
    struct state st = {0};
    int rc = look_once(db, &st, err);
    if (rc == 0)
        rc = judge(db, &st, err);
    if (rc == 0 && st.objects == 0) {
        char sql[40];
        (void)snprintf(sql, sizeof(sql), "PRAGMA page_size = %d", LS_SQLITE_PAGE);
        rc = ls_sqlite_db_exec(db, sql, "open", err); /* of a new file; else it does nothing */
    }
    if (rc == 0)
        rc = set_wal(db, err);
    if (rc < 0 || st.version == LS_SQLITE_SCHEMA)
        return rc;
    rc = ls_sqlite_db_exec(db, "BEGIN IMMEDIATE", "open", err);
    if (rc < 0)
        return rc;
    rc = climb(db, err);
    if (rc == 0)
        rc = ls_sqlite_db_exec(db, "COMMIT", "open", err);
    if (rc < 0 && !sqlite3_get_autocommit(db->h))
        (void)sqlite3_exec(db->h, "ROLLBACK", NULL, NULL, NULL); /* the first failure is told */
    return rc;
}
