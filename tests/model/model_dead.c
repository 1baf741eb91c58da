/* model_dead.c - classes of deaths and changes of jobs, on both sides */
#include <stdlib.h>
#include <string.h>

#include "model_ops.h"
#include "queue/dead_store.h"

/* One of a few, or none: then the class is named as the reason. */
const struct lq_death *tm_draw_death(struct world *w)
{
    static const char *const name[] = {"c0", "c1", "c2", "c3", "c4", "c5"};
    if (tm_chance(w, 20))
        return NULL;
    struct lq_death *d = tm_alloc(w, sizeof(*d));
    const char *is = name[tm_below(w, LB_ARRAY_LEN(name))];
    *d = (struct lq_death){.name = lb_slice_str(is),
                           .kind = lb_slice_str(is),
                           .text = lb_slice_str("what it died of")};
    return d;
}

/* When a dead job of the model's died, of each side; false when it is not dead. */
static bool find_death(struct world *w, const char *queue, struct lb_slice id, int64_t *died)
{
    bool dead = true;
    for (int i = 0; i < N_SIDES; i++) {
        struct lq_row_vec rows = {0};
        lade_err err = {0};
        int rc = w->s[i]->ops->get(w->s[i], queue, id, &rows, &err);
        dead = dead && rc == 0 && rows.row[0].state == LADE_STATE_DEAD;
        died[i] = dead ? rows.row[0].finished_ms : 1;
        lb_arena_fini(&rows.arena);
    }
    return dead;
}

void tm_op_change(struct world *w)
{
    struct lq_change it[N_SIDES][3];
    enum lq_change_verb verb = (enum lq_change_verb)tm_below(w, LQ_CHANGE_REMOVE + 1);
    const char *queue = tm_queue((int)tm_below(w, N_QUEUES));
    size_t n = verb == LQ_CHANGE_EDIT ? 1 + tm_below(w, 3) : 1;
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    if (!w->s[STORE]->ops->change)
        return;
    tm_trace(w, "change %d in %s", (int)verb, queue);
    for (size_t i = 0; i < n; i++) {
        struct lb_slice id = lb_slice_str(tm_draw_id(w));
        int64_t died[N_SIDES] = {0};
        bool dead = find_death(w, queue, id, died);
        bool seen = tm_chance(w, dead ? 70 : 20), wrong = tm_chance(w, 15);
        for (int s = 0; s < N_SIDES; s++)
            it[s][i] = (struct lq_change){.id = id, .died_ms = seen ? died[s] + wrong : 0};
        tm_trace(w, " %s%s", (const char *)id.p, seen ? wrong ? "!" : "+" : "");
        if (verb == LQ_CHANGE_EDIT || tm_chance(w, 30)) {
            struct lq_row_vec rows = {0};
            struct lb_slice old = {0};
            if (w->s[MODEL]->ops->get(w->s[MODEL], queue, id, &rows, &err[0]) == 0)
                old = lb_slice_of(rows.row[0].body);
            it[MODEL][i].body = it[STORE][i].body = tm_draw_edit(w, old);
            lb_arena_fini(&rows.arena);
        }
    }
    for (int s = 0; s < N_SIDES; s++)
        rc[s] = lq_change(w->s[s], queue, verb, it[s], n, &err[s]);
    tm_same_result(w, "change", rc, err);
    for (size_t i = 0; i < n && !w->failure[0]; i++)
        tm_same(w, "outcome of a change", it[MODEL][i].outcome, it[STORE][i].outcome);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((const char *)((const struct lq_class *)a)->name.p,
                  (const char *)((const struct lq_class *)b)->name.p);
}

/* The ids of a class in its order, as one string; false when a side failed. */
static const char *list_class(struct world *w, int side, const char *queue, struct lb_slice name)
{
    lade_cursor cursor = {0};
    lade_err err = {0};
    char *text = tm_alloc(w, 30 * 40);
    size_t n = 0;
    text[0] = 0;
    for (int k = 0; !cursor.done && k < 100; k++) {
        struct lq_row_vec rows = {0};
        int rc = w->s[side]->ops->list_class(w->s[side], queue, name, 0, &cursor, 1 + w->at % 7,
                                             &rows, &err);
        if (rc < 0)
            tm_fail(w, "list of a class: %s", err.text);
        for (size_t i = 0; rc >= 0 && i < rows.n && n < 1000; i++)
            n += (size_t)snprintf(text + n, 1200 - n, "%s ", (const char *)rows.row[i].id.p);
        lb_arena_fini(&rows.arena);
        if (rc < 0)
            return text;
    }
    return text;
}

static void compare_class(struct world *w, const char *queue, const struct lq_class *m,
                          const struct lq_class *s)
{
    tm_same_bytes(w, "class", m->name, s->name);
    tm_same_bytes(w, "kind of a class", m->kind, s->kind);
    tm_same_bytes(w, "text of a class", m->text, s->text);
    tm_same_bytes(w, "sample of a class", m->sample, s->sample);
    tm_same(w, "count of a class", (int64_t)m->count, (int64_t)s->count);
    if (w->exact) {
        tm_same(w, "first of a class", m->first_ms, s->first_ms);
        tm_same(w, "last of a class", m->last_ms, s->last_ms);
    }
    if (!w->failure[0])
        tm_same_bytes(w, "jobs of a class", lb_slice_str(list_class(w, MODEL, queue, m->name)),
                      lb_slice_str(list_class(w, STORE, queue, s->name)));
}

void tm_compare_classes(struct world *w, const char *queue)
{
    struct lq_class_vec v[N_SIDES] = {0};
    lade_err err = {0};
    int rc[N_SIDES] = {0};
    if (!w->s[STORE]->ops->classes)
        return;
    for (int i = 0; i < N_SIDES; i++) {
        rc[i] = w->s[i]->ops->classes(w->s[i], queue, &v[i], &err);
        if (rc[i] < 0)
            tm_fail(w, "classes: %s", err.text);
        if (v[i].n > 0)
            qsort(v[i].class_, v[i].n, sizeof(*v[i].class_), compare_names);
    }
    tm_same(w, "number of classes", (int64_t)v[MODEL].n, (int64_t)v[STORE].n);
    for (size_t i = 0; i < v[MODEL].n && !w->failure[0]; i++)
        compare_class(w, queue, &v[MODEL].class_[i], &v[STORE].class_[i]);
    for (int i = 0; i < N_SIDES; i++)
        lb_arena_fini(&v[i].arena);
}
