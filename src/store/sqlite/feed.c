#include "store/sqlite/feed.h"

#include <string.h>

#include "base/base.h"
#include "base/mem.h"

#define POINTER "lade_feed" /* the type of the bound pointer */

enum column { SEQ, ID, BODY, FEED };

struct cursor {
    sqlite3_vtab_cursor base;
    const struct ls_sqlite_feed *feed;
    size_t at;
};

static int connect_table(sqlite3 *h, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **error)
{
    (void)aux;
    (void)argc;
    (void)argv;
    (void)error;
    int rc = sqlite3_declare_vtab(h, "CREATE TABLE x (seq, id, body, feed HIDDEN)");
    if (rc != SQLITE_OK)
        return rc;
    *out = lb_calloc(1, sizeof(**out));
    return *out ? SQLITE_OK : SQLITE_NOMEM;
}

static int disconnect_table(sqlite3_vtab *table)
{
    lb_free(table);
    return SQLITE_OK;
}

/* The one plan there is: all rows of the feed that is given as argument. */
static int plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    for (int i = 0; i < info->nConstraint; i++) {
        if (info->aConstraint[i].iColumn == FEED && info->aConstraint[i].usable &&
            info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ) {
            info->aConstraintUsage[i].argvIndex = 1;
            info->aConstraintUsage[i].omit = 1;
            return SQLITE_OK;
        }
    }
    return SQLITE_CONSTRAINT;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
    (void)table;
    struct cursor *c = lb_calloc(1, sizeof(*c));
    if (!c)
        return SQLITE_NOMEM;
    *out = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *c)
{
    lb_free(c);
    return SQLITE_OK;
}

static int rewind_cursor(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                         sqlite3_value **argv)
{
    (void)number;
    (void)text;
    struct cursor *c = (struct cursor *)(void *)base;
    c->feed = argc == 1 ? sqlite3_value_pointer(argv[0], POINTER) : NULL;
    c->at = 0;
    return SQLITE_OK;
}

static int advance(sqlite3_vtab_cursor *base)
{
    ((struct cursor *)(void *)base)->at++;
    return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
    const struct cursor *c = (struct cursor *)(void *)base;
    return !c->feed || c->at >= c->feed->n;
}

static void read_pair(const struct ls_sqlite_pair *it, sqlite3_context *out, int column)
{
    if (column == SEQ)
        sqlite3_result_int64(out, it->num);
    if (column == BODY)
        sqlite3_result_blob64(out, it->data.p, it->data.n, SQLITE_STATIC);
}

static int read_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
    const struct cursor *c = (struct cursor *)(void *)base;
    if (c->feed->pair) {
        read_pair(&c->feed->pair[c->at], out, column);
        return SQLITE_OK;
    }
    const struct lq_put *it = &c->feed->it[c->at];
    if (column == SEQ)
        sqlite3_result_int64(out, c->feed->seq + (int64_t)c->at);
    if (column == ID)
        sqlite3_result_text64(out, (const char *)it->id.p, it->id.n, SQLITE_STATIC, SQLITE_UTF8);
    if (column == BODY)
        sqlite3_result_blob64(out, it->body.p, it->body.n, SQLITE_STATIC);
    return SQLITE_OK;
}

static int read_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)((struct cursor *)(void *)base)->at;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .iVersion = 1,
    .xConnect = connect_table, /* and no xCreate: it is there without CREATE VIRTUAL TABLE */
    .xBestIndex = plan,
    .xDisconnect = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = rewind_cursor,
    .xNext = advance,
    .xEof = is_at_end,
    .xColumn = read_column,
    .xRowid = read_rowid,
};

int ls_sqlite_feed_register(struct ls_sqlite_db *db, lade_err *err)
{
    if (sqlite3_create_module_v2(db->h, POINTER, &module, NULL, NULL) != SQLITE_OK)
        return ls_sqlite_db_fail(db, "open", err);
    return 0;
}

void ls_sqlite_feed_bind(sqlite3_stmt *st, int i, struct ls_sqlite_feed *feed)
{
    (void)sqlite3_bind_pointer(st, i, feed, POINTER, NULL);
}
