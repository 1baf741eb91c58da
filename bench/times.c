#include "bench/times.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/mem.h"

/* Of a cell; lb_free. NULL when out of memory. */
static char *key_of(const struct bn_session *s, size_t row, size_t c)
{
    const struct bn_row *r = &s->table->rows[row];
    char *params = json_dumps(r->params, JSON_COMPACT | JSON_SORT_KEYS);
    size_t size = 512 + (params ? strlen(params) : 0);
    char *key = params ? lb_malloc(size) : NULL;
    if (key)
        (void)snprintf(key, size, "%.100s|%.200s|%s|%.100s", s->table->name, r->label, params,
                       bn_session_column(s, c));
    free(params);
    return key;
}

void bn_times_load(struct bn_session *s, const char *path)
{
    json_t *all = json_load_file(path, 0, NULL);
    for (size_t row = 0; all && row < s->table->n_rows; row++) {
        for (size_t c = 0; c < s->n_contenders; c++) {
            char *key = key_of(s, row, c);
            const json_t *v = key ? json_object_get(all, key) : NULL;
            if (json_is_number(v) && json_number_value(v) > 0)
                bn_session_cell(s, row, c)->last_wall_s = json_number_value(v);
            lb_free(key);
        }
    }
    json_decref(all);
}

void bn_times_save(const struct bn_session *s, const char *path)
{
    json_t *all = json_load_file(path, 0, NULL);
    if (!json_is_object(all)) {
        json_decref(all);
        all = json_object();
    }
    for (size_t row = 0; all && row < s->table->n_rows; row++) {
        for (size_t c = 0; c < s->n_contenders; c++) {
            const struct bn_cell *cell = bn_session_cell(s, row, c);
            char *key = key_of(s, row, c);
            if (key && cell->last_wall_s > 0 && !cell->why_not[0])
                (void)json_object_set_new(all, key, json_real(cell->last_wall_s));
            lb_free(key);
        }
    }
    (void)json_dump_file(all, path, JSON_INDENT(0) | JSON_SORT_KEYS | JSON_REAL_PRECISION(4));
    json_decref(all);
}
