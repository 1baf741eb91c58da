#include "key_kit.h"

#include <stdlib.h>
#include <string.h>

#include "queue/job.h"

#define WORDS_MAX 64

static bool dressed;

int ky_setup_dressed(void **state)
{
    int rc = ct_setup(state);
    dressed = true;
    return rc;
}

int ky_teardown_dressed(void **state)
{
    dressed = false;
    return ct_teardown(state);
}

void ky_dress(struct lq_put *put)
{
    struct lb_buf b;
    lade_job_spec spec = {.kind = "k",
                          .payload = {put->id.p, put->id.n},
                          .priority = LQ_LEVEL_DEFAULT - put->level,
                          .key = {put->key.p, put->key.n}};
    if (!dressed)
        return;
    lb_buf_init(&b);
    lq_job_encode(&b, &spec, 1700000000000);
    struct lb_mut body = lb_arena_copy(&ct.arena, b.p, b.n);
    LB_CHECK(body.p);
    put->body = lb_slice_of(body);
    lb_buf_fini(&b);
}

static size_t split(const char *text, char **word)
{
    char *copy = lb_arena_strdup(&ct.arena, text), *rest = NULL;
    size_t n = 0;
    LB_CHECK(copy);
    for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        LB_CHECK(n < WORDS_MAX);
        word[n++] = w;
    }
    return n;
}

void ky_add(const char *queue, const char *jobs)
{
    char *word[WORDS_MAX];
    struct lq_put put[WORDS_MAX];
    size_t n = split(jobs, word);
    for (size_t i = 0; i < n; i++) {
        char *key = strchr(word[i], ':');
        if (key)
            *key++ = 0;
        put[i] = ct_item(queue, word[i]);
        put[i].key = lb_slice_str(key);
        ky_dress(&put[i]);
    }
    ct_put(put, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(put[i].outcome, LADE_DONE);
}

void ky_add_many(const char *queue, const char *prefix, const char *key, size_t n)
{
    struct lq_put *put = lb_arena_alloc(&ct.arena, n * sizeof(*put));
    LB_CHECK(put);
    for (size_t i = 0; i < n; i++) {
        put[i] = ct_item(queue, ct_format("%s%04zu", prefix, i));
        put[i].key = lb_slice_str(key);
        ky_dress(&put[i]);
    }
    ct_put(put, n);
}

void ky_limit(const char *queue, const char *key, struct lq_limit limit)
{
    EXPECT(0, lq_limit_set(ct.s, queue, LADE_LIMIT_KEY, lb_slice_str(key), &limit, &ct.err));
}

void ky_usual(const char *queue, struct lq_limit limit)
{
    EXPECT(0, lq_limit_set(ct.s, queue, LADE_LIMIT_KEYS, lb_slice_str(""), &limit, &ct.err));
}

void ky_pause(const char *queue, const char *key, bool paused)
{
    EXPECT(0, lq_key_pause(ct.s, queue, lb_slice_str(key), paused, &ct.err));
}

const char *ky_show(const char *queue)
{
    struct lq_key_row_vec rows = {0};
    lade_cursor cursor = {0};
    const char *text = "";
    while (!cursor.done) {
        int rc = ct.s->ops->key_list(ct.s, queue, &cursor, 100, &rows, &ct.err);
        assert_true(rc == LADE_DONE || rc == LADE_EMPTY);
    }
    for (size_t i = 0; i < rows.n; i++) {
        const struct lq_key_row *r = &rows.row[i];
        const char *why = lade_key_hold_name(r->hold);
        text = ct_format("%s%s%.*s %d/%d/%d%s%s", text, i ? ", " : "", (int)r->key.n,
                         (const char *)r->key.p, (int)r->ready, (int)r->active, (int)r->waiting,
                         *why ? " " : "", why);
    }
    lb_arena_fini(&rows.arena);
    return text;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

const char *ky_sorted(const char *words)
{
    char *word[WORDS_MAX];
    const char *text = "";
    size_t n = split(words, word);
    if (n > 0)
        qsort((void *)word, n, sizeof(*word), compare_words);
    for (size_t i = 0; i < n; i++)
        text = ct_format("%s%s%s", text, i ? " " : "", word[i]);
    return text;
}
