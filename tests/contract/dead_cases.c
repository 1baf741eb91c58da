/* dead_cases.c - contract: the dead by class, and changes of jobs by who has seen them */
#include "contract.h"
#include "queue/dead_store.h"

static struct lq_death death_of(const char *name)
{
    return (struct lq_death){.name = lb_slice_str(name),
                             .kind = lb_slice_str(ct_format("kind-%s", name)),
                             .text = lb_slice_str(ct_format("text of %s", name))};
}

/* The only ready job of q dies of `name`. */
static void die_of(const char *name)
{
    struct lq_leased j = ct_take_one("w", "q");
    struct lq_settle it = ct_settling("q", &j, LQ_TO_DEAD);
    struct lq_death death = death_of(name);
    it.death = &death;
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    ct_step(2);
}

static void bury(const char *id, const char *name)
{
    ct_add("q", id);
    die_of(name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((const char *)((const struct lq_class *)a)->name.p,
                  (const char *)((const struct lq_class *)b)->name.p);
}

static struct lq_class_vec read_classes(void)
{
    struct lq_class_vec v = {0};
    lb_arena_init(&v.arena);
    int rc = ct.s->ops->classes(ct.s, "q", &v, &ct.err);
    assert_int_equal(rc, v.n > 0 ? LADE_DONE : LADE_EMPTY);
    if (v.n > 0)
        qsort(v.class_, v.n, sizeof(*v.class_), compare_names);
    return v;
}

/* "name:count name:count", by name. */
static const char *counts(void)
{
    struct lq_class_vec v = read_classes();
    const char *text = "";
    for (size_t i = 0; i < v.n; i++)
        text = ct_format("%s%s%s:%zu", text, i ? " " : "", (const char *)v.class_[i].name.p,
                         (size_t)v.class_[i].count);
    lb_arena_fini(&v.arena);
    return text;
}

static const char *list(const char *name, int64_t from_ms, size_t page)
{
    const char *text = "";
    lade_cursor cursor = {0};
    while (!cursor.done) {
        struct lq_row_vec rows = {0};
        lb_arena_init(&rows.arena);
        int rc = ct.s->ops->list_class(ct.s, "q", lb_slice_str(name), from_ms, &cursor, page, &rows,
                                       &ct.err);
        EXPECT(rows.n > 0 ? LADE_DONE : LADE_EMPTY, rc);
        assert_true(rows.n <= page);
        for (size_t i = 0; i < rows.n; i++) {
            assert_int_equal(rows.row[i].state, LADE_STATE_DEAD);
            text = ct_format("%s%s%s", text, *text ? " " : "", (const char *)rows.row[i].id.p);
        }
        lb_arena_fini(&rows.arena);
    }
    return text;
}

static int change(enum lq_change_verb verb, const char *id, int64_t died_ms, const char *body)
{
    struct lq_change it = {.id = lb_slice_str(id),
                           .died_ms = died_ms,
                           .body = body ? lb_slice_str(body) : (struct lb_slice){0}};
    int rc = lq_change(ct.s, "q", verb, &it, 1, &ct.err);
    assert_true(rc >= 0);
    assert_int_equal(rc, it.outcome);
    return rc;
}

static void each_death_counts_in_its_class(void **state)
{
    (void)state;
    ct_join("w", "q");
    assert_string_equal(counts(), "");
    bury("a", "x");
    bury("b", "y");
    bury("c", "x");
    assert_string_equal(counts(), "x:2 y:1");
    struct lq_class_vec v = read_classes();
    assert_string_equal(v.class_[0].kind.p, "kind-x");
    assert_string_equal(v.class_[0].text.p, "text of x");
    assert_string_equal(v.class_[0].sample.p, "c");
    assert_true(v.class_[0].first_ms < v.class_[0].last_ms);
    assert_int_equal(v.class_[0].first_ms, ct_row("q", "a")->finished_ms);
    assert_int_equal(v.class_[0].last_ms, ct_row("q", "c")->finished_ms);
    lb_arena_fini(&v.arena);
}

static void killed_jobs_are_of_the_class_killed(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a");
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "a"), LADE_DONE);
    ct_step(2);
    ct_add("q", "b");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "b"), LADE_DONE);
    struct lq_settle it = ct_settling("q", &j, LQ_TO_DEAD);
    struct lq_death death = death_of("x");
    it.death = &death; /* the operator's wish comes first */
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    assert_string_equal(counts(), "killed:2");
    assert_string_equal(list("killed", 0, 1), "a b");
}

static void whatever_leaves_the_dead_leaves_its_class(void **state)
{
    (void)state;
    size_t n = 0;
    ct_join("w", "q");
    for (int i = 0; i < 6; i++)
        bury(ct_format("a%d", i), i % 2 ? "x" : "y");
    assert_string_equal(counts(), "x:3 y:3");
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a0"), LADE_DONE);
    assert_string_equal(counts(), "x:3 y:2");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a1"), LADE_DONE);
    assert_string_equal(counts(), "x:2 y:2");
    EXPECT(LADE_MORE, ct.s->ops->redrive(ct.s, "q", 1, &n, &ct.err));
    assert_string_equal(counts(), "x:2 y:1");
    EXPECT(LADE_MORE, ct.s->ops->purge(ct.s, "q", LADE_STATE_DEAD, 2, &n, &ct.err));
    assert_string_equal(counts(), "x:1");
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_DEAD, 2, &n, &ct.err));
    assert_string_equal(counts(), "");
}

static void retention_leaves_the_classes_right(void **state)
{
    (void)state;
    ct.config.keep_dead.count = 2;
    ct_reopen();
    ct_join("w", "q");
    for (int i = 0; i < 5; i++)
        bury(ct_format("a%d", i), i < 3 ? "x" : "y");
    assert_string_equal(counts(), "y:2");
    assert_string_equal(list("y", 0, 10), "a3 a4");
}

static void class_lists_its_dead_by_age_in_pages(void **state)
{
    (void)state;
    ct_join("w", "q");
    for (int i = 0; i < 7; i++)
        bury(ct_format("a%d", i), i % 2 ? "x" : "y");
    assert_string_equal(list("y", 0, 1), "a0 a2 a4 a6");
    assert_string_equal(list("y", 0, 3), "a0 a2 a4 a6");
    assert_string_equal(list("y", 0, 100), "a0 a2 a4 a6");
    assert_string_equal(list("x", 0, 2), "a1 a3 a5");
    assert_string_equal(list("z", 0, 2), "");
    assert_string_equal(list("y", ct_row("q", "a4")->finished_ms, 1), "a4 a6");
}

/* More kinds of death than there may be classes: the rest is counted together, and nothing is lost. */
static void classes_beyond_the_bound_are_other(void **state)
{
    (void)state;

    enum { N = LQ_CLASSES_MAX + 30, STEP = 60 };
    struct lq_settle *it = lb_arena_alloc(&ct.arena, N * sizeof(*it));
    struct lq_death *death = lb_arena_alloc(&ct.arena, N * sizeof(*death));
    assert_true(it && death);
    ct_join("w", "q");
    ct_add_many("q", "a", N);
    for (size_t at = 0; at < N;) {
        size_t n = ct_take("w", "q", STEP);
        for (size_t i = 0; i < n; i++) {
            death[i] = death_of(ct_format("c%zu", at + i));
            it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_DEAD);
            it[i].death = &death[i];
        }
        EXPECT(0, lq_settle_take(ct.s, it, n, NULL, NULL, &ct.err));
        at += n;
    }
    struct lq_class_vec v = read_classes();
    size_t other = 0, sum = 0;
    for (size_t i = 0; i < v.n; i++) {
        sum += (size_t)v.class_[i].count;
        if (lb_slice_eq(v.class_[i].name, lb_slice_str(LQ_CLASS_OTHER)))
            other = (size_t)v.class_[i].count;
    }
    assert_int_equal(v.n, LQ_CLASSES_MAX + 1);
    assert_int_equal(other, 30);
    assert_int_equal(sum, N);
    lb_arena_fini(&v.arena);
    /* room for one more once a class is empty */
    ct_add("q", "last");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a0000"), LADE_DONE);
    die_of("new");
    assert_string_equal(list("new", 0, 10), "last");
}

/* change ----------------------------------------------------------------------------------------------------------- */

static void only_the_death_that_was_seen_is_moved(void **state)
{
    (void)state;
    ct_join("w", "q");
    bury("a", "x");
    int64_t died = ct_row("q", "a")->finished_ms;
    assert_int_equal(change(LQ_CHANGE_RETRY, "a", died + 1, NULL), LADE_WRONG_STATE);
    assert_int_equal(change(LQ_CHANGE_RETRY, "a", died, NULL), LADE_DONE);
    assert_int_equal(change(LQ_CHANGE_RETRY, "a", died, NULL), LADE_WRONG_STATE);
    die_of("x"); /* once more */
    assert_int_equal(change(LQ_CHANGE_RETRY, "a", died, NULL), LADE_WRONG_STATE);
    assert_int_equal(change(LQ_CHANGE_REMOVE, "a", died, NULL), LADE_WRONG_STATE);
    assert_int_equal(change(LQ_CHANGE_REMOVE, "a", ct_row("q", "a")->finished_ms, NULL), LADE_DONE);
    assert_int_equal(change(LQ_CHANGE_REMOVE, "a", died, NULL), LADE_NOT_FOUND);
    assert_string_equal(counts(), "");
}

static void edit_gives_a_waiting_or_dead_job_a_new_body(void **state)
{
    (void)state;

    static const enum lade_state may[] = {LADE_STATE_SCHEDULED, LADE_STATE_READY,
                                          LADE_STATE_RETRYING, LADE_STATE_DEAD,
                                          LADE_STATE_CANCELLED};

    ct_join("w", "q");
    for (size_t i = 0; i < LB_ARRAY_LEN(may); i++) {
        const char *id = ct_format("a%zu", i);
        (void)ct_bring("q", id, may[i]);
        assert_int_equal(change(LQ_CHANGE_EDIT, id, 0,
                                "\x01"
                                "4edited"),
                         LADE_DONE);
        assert_int_equal(ct_state("q", id), may[i]);
        assert_memory_equal(ct_row("q", id)->body.p,
                            "\x01"
                            "4edited",
                            9);
        if (may[i] == LADE_STATE_READY)
            assert_int_equal(ct_act("q", LADE_JOB_REMOVE, id), LADE_DONE);
    }
}

static void edit_leaves_active_and_completed_jobs_alone(void **state)
{
    (void)state;
    ct_join("w", "q");
    (void)ct_bring("q", "a", LADE_STATE_COMPLETED);
    assert_int_equal(change(LQ_CHANGE_EDIT, "a", 0,
                            "\x01"
                            "4edited"),
                     LADE_WRONG_STATE);
    (void)ct_bring("q", "b", LADE_STATE_ACTIVE);
    assert_int_equal(change(LQ_CHANGE_EDIT, "b", 0,
                            "\x01"
                            "4edited"),
                     LADE_WRONG_STATE);
    assert_int_equal(change(LQ_CHANGE_RETRY, "b", 0,
                            "\x01"
                            "4edited"),
                     LADE_WRONG_STATE);
    assert_memory_equal(ct_row("q", "b")->body.p,
                        "\x01"
                        "4b",
                        4);
    assert_int_equal(change(LQ_CHANGE_EDIT, "none", 0,
                            "\x01"
                            "4edited"),
                     LADE_NOT_FOUND);
}

static void retry_with_a_body_is_one_step(void **state)
{
    (void)state;
    ct_join("w", "q");
    bury("a", "x");
    assert_int_equal(change(LQ_CHANGE_RETRY, "a", 0,
                            "\x01"
                            "4mended"),
                     LADE_DONE);
    struct lq_leased j = ct_take_one("w", "q");
    assert_memory_equal(j.body.p,
                        "\x01"
                        "4mended",
                        9);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
}

/* A job that came with others, and that a store may keep as one with them. */
static void edit_of_one_of_a_batch_leaves_the_others(void **state)
{
    (void)state;
    static const char *const id[] = {"01HF7YAT000000000000000100", "01HF7YAT000000000000000101",
                                     "01HF7YAT000000000000000102"};
    struct lq_put item[3];
    ct_join("w", "q");
    for (size_t i = 0; i < 3; i++) {
        item[i] = ct_item("q", id[i]);
        item[i].fresh = true;
    }
    ct_put(item, 3);
    assert_int_equal(change(LQ_CHANGE_EDIT, id[1], 0,
                            "\x01"
                            "4edited"),
                     LADE_DONE);
    assert_int_equal(ct_count("q", LADE_STATE_READY), 3);
    assert_int_equal(ct_take("w", "q", 9), 3);
    for (size_t i = 0; i < 3; i++) {
        bool edited = strcmp((const char *)ct.got.job[i].id.p, id[1]) == 0;
        assert_memory_equal(ct.got.job[i].body.p + 2,
                            edited ? "edited" : (const char *)ct.got.job[i].id.p, 6);
    }
}

static const struct CMUnitTest tests[] = {
    CT_TEST(each_death_counts_in_its_class),
    CT_TEST(killed_jobs_are_of_the_class_killed),
    CT_TEST(whatever_leaves_the_dead_leaves_its_class),
    CT_TEST(retention_leaves_the_classes_right),
    CT_TEST(class_lists_its_dead_by_age_in_pages),
    CT_TEST(classes_beyond_the_bound_are_other),
    CT_TEST(only_the_death_that_was_seen_is_moved),
    CT_TEST(edit_gives_a_waiting_or_dead_job_a_new_body),
    CT_TEST(edit_leaves_active_and_completed_jobs_alone),
    CT_TEST(retry_with_a_body_is_one_step),
    CT_TEST(edit_of_one_of_a_batch_leaves_the_others),
};

CT_GROUP(ct_dead_group, tests);
