/*
 * R30: the protocols with asymmetric fences, in all interleavings
 *
 * Each protocol is a few instructions for two or three threads over shared words. Stores go into a buffer of the thread and reach
 * memory at any later time, in order (as x86 and, for these single-word protocols, release stores elsewhere do). A read-modify-write
 * empties the own buffer first; a heavy fence empties everybody's; a light fence is nothing, as in the program. All
 * reachable states are visited. Wrong is: two threads inside at once, and a state in which somebody waits and nobody can move.
 * To show that the checker sees such things, each protocol is also run with its heavy fence taken out, or with one instruction
 * changed for a likely mistake, and must then fail.
 */
#include "rt_rig.h"

enum op { STORE, LOAD, CAS, XCHG, HEAVY, AWAIT, IF, GOTO, ENTER, LEAVE, END };

struct ins {
    enum op op;
    uint8_t word, a, b,
        to; /* IF: register == a ? to : next; CAS: register = 1 when word was a and is b now */
};

#define THREADS 3
#define WORDS   6
#define BUFFER  4

struct state {
    uint8_t mem[WORDS];

    struct {
        uint8_t pc, reg, inside, n;
        uint8_t word[BUFFER], value[BUFFER];
    } t[THREADS];
};

struct model {
    const struct ins *code[THREADS];
    int threads;
    bool with_heavy;
    bool (*end_is_right)(
        const struct state *); /* of a state in which all have ended; may be NULL */
    struct state *seen;        /* open addressing */
    bool *used;
    size_t size, n;
    const char *wrong;
};

static uint64_t hash_of(const struct state *s)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < sizeof(*s); i++)
        h = (h ^ ((const unsigned char *)s)[i]) * UINT64_C(1099511628211);
    return h;
}

/* True when it is new. */
static bool remember(struct model *m, const struct state *s)
{
    for (size_t i = hash_of(s) % m->size;; i = (i + 1) % m->size) {
        if (!m->used[i]) {
            m->used[i] = true;
            m->seen[i] = *s;
            m->n++;
            return true;
        }
        if (memcmp(&m->seen[i], s, sizeof(*s)) == 0)
            return false;
    }
}

static uint8_t read_word(const struct state *s, int t, uint8_t word)
{
    for (int i = s->t[t].n; i-- > 0;) {
        if (s->t[t].word[i] == word)
            return s->t[t].value[i];
    }
    return s->mem[word];
}

static void flush_one(struct state *s, int t)
{
    s->mem[s->t[t].word[0]] = s->t[t].value[0];
    s->t[t].n--;
    for (int i = 0; i < BUFFER - 1; i++) {
        s->t[t].word[i] = s->t[t].word[i + 1];
        s->t[t].value[i] = s->t[t].value[i + 1];
    }
    s->t[t].word[BUFFER - 1] = s->t[t].value[BUFFER - 1] = 0;
}

static void flush(struct state *s, int t)
{
    while (s->t[t].n > 0)
        flush_one(s, t);
}

static void count_inside(struct model *m, const struct state *s)
{
    int inside = 0;
    for (int i = 0; i < m->threads; i++)
        inside += s->t[i].inside;
    if (inside > 1)
        m->wrong = "two inside at once";
}

/* One instruction of thread t; false when it cannot move. */
static bool step(struct model *m, struct state *s, int t)
{
    const struct ins *i = &m->code[t][s->t[t].pc];
    uint8_t next = (uint8_t)(s->t[t].pc + 1);
    switch (i->op) {
    case STORE:
        if (s->t[t].n == BUFFER)
            return false;
        s->t[t].word[s->t[t].n] = i->word;
        s->t[t].value[s->t[t].n++] = i->a;
        break;
    case LOAD:
        s->t[t].reg = read_word(s, t, i->word);
        break;
    case CAS:
        flush(s, t);
        s->t[t].reg = s->mem[i->word] == i->a;
        if (s->t[t].reg)
            s->mem[i->word] = i->b;
        break;
    case XCHG:
        flush(s, t);
        s->t[t].reg = s->mem[i->word];
        s->mem[i->word] = i->a;
        break;
    case HEAVY:
        for (int k = 0; m->with_heavy && k < m->threads; k++)
            flush(s, k);
        break;
    case AWAIT:
        if (read_word(s, t, i->word) != i->a)
            return false;
        break;
    case IF:
        next = s->t[t].reg == i->a ? i->to : next;
        break;
    case GOTO:
        next = i->to;
        break;
    case ENTER:
        s->t[t].inside = 1;
        count_inside(m, s);
        break;
    case LEAVE:
        s->t[t].inside = 0;
        break;
    case END:
        return false;
    }
    s->t[t].pc = next;
    return true;
}

static bool has_ended(const struct model *m, const struct state *s)
{
    for (int i = 0; i < m->threads; i++) {
        if (m->code[i][s->t[i].pc].op != END)
            return false;
    }
    return true;
}

/* Depth first with a stack of states of our own. */
static const char *explore(struct model *m, const struct state *start)
{
    m->size = 1 << 18;
    m->seen = calloc(m->size, sizeof(*m->seen));
    m->used = calloc(m->size, sizeof(*m->used));
    struct state *todo = calloc(m->size, sizeof(*todo));
    size_t n = 0;
    m->wrong = NULL;
    todo[n++] = *start;
    (void)remember(m, start);
    while (n > 0 && !m->wrong && m->n < m->size / 2) {
        struct state s = todo[--n];
        bool moved = false;
        for (int t = 0; t < m->threads; t++) {
            struct state next = s;
            if (step(m, &next, t)) {
                moved = true;
                if (remember(m, &next))
                    todo[n++] = next;
            }
            if (s.t[t].n == 0)
                continue;
            next = s;
            flush_one(&next, t);
            moved = true;
            if (remember(m, &next))
                todo[n++] = next;
        }
        if (!moved && !has_ended(m, &s))
            m->wrong = "somebody waits for ever";
        else if (!moved && m->end_is_right && !m->end_is_right(&s))
            m->wrong = "a wrong end";
    }
    assert_true(m->n < m->size / 2); /* all of it was visited */
    free(m->seen);
    free(m->used);
    free(todo);
    return m->wrong;
}

static void check(const struct ins *a, const struct ins *b, const struct ins *c,
                  const struct state *start)
{
    struct model m = {.code = {a, b, c}, .threads = c ? 3 : 2, .with_heavy = true};
    const char *wrong = explore(&m, start);
    if (wrong)
        fail_msg("%s", wrong);
    m = (struct model){.code = {a, b, c}, .threads = c ? 3 : 2, .with_heavy = false};
    assert_non_null(explore(&m, start)); /* the fence is needed, and the checker sees it */
}

/* runq.h: owner against thief. Words: 0 busy, 1 thief, 2 the thieves' lock. */
static void r30_owner_and_thief_are_never_in_the_queue_together(void **state)
{
    (void)state;
    static const struct ins owner[] = {
        {STORE, 0, 1, 0, 0}, /* 0 */
        {LOAD, 1, 0, 0, 0},  {IF, 0, 0, 0, 6},    {STORE, 0, 0, 0, 0},
        {AWAIT, 1, 0, 0, 0}, {GOTO, 0, 0, 0, 0},  {ENTER, 0, 0, 0, 0}, /* 6 */
        {LEAVE, 0, 0, 0, 0}, {STORE, 0, 0, 0, 0}, {END, 0, 0, 0, 0},
    };
    static const struct ins thief[] = {
        {CAS, 2, 0, 1, 0},   {IF, 0, 0, 0, 9}, /* another thief is at it: give up */
        {STORE, 1, 1, 0, 0}, {HEAVY, 0, 0, 0, 0}, {AWAIT, 0, 0, 0, 0}, {ENTER, 0, 0, 0, 0},
        {LEAVE, 0, 0, 0, 0}, {STORE, 1, 0, 0, 0}, {STORE, 2, 0, 0, 0}, {END, 0, 0, 0, 0},
    };
    struct state start = {0};
    check(owner, thief, NULL, &start);
    check(owner, thief, thief, &start);
}

/* mutex.c: unlock against a lock that parks. Words: 0 owner, 1 waiters, 2 the waiter's claim (0 waiting), 3 woken. */
static void r30_an_unlock_and_a_lock_that_parks_do_not_miss_each_other(void **state)
{
    (void)state;
    static const struct ins unlock[] = {
        {STORE, 0, 0, 0, 0}, {LOAD, 1, 0, 0, 0},  {IF, 0, 0, 0, 6},  {CAS, 2, 0, 1, 0},
        {IF, 0, 0, 0, 6},    {STORE, 3, 1, 0, 0}, {END, 0, 0, 0, 0},
    };
    static const struct ins lock[] = {
        {STORE, 1, 1, 0, 0}, {HEAVY, 0, 0, 0, 0}, {CAS, 0, 0, 2, 0},
        {IF, 0, 1, 0, 7},    {AWAIT, 3, 1, 0, 0}, /* parked */
        {CAS, 0, 0, 2, 0},   {IF, 0, 0, 0, 9},    /* woken: it is free (nobody else wants it) */
        {CAS, 2, 0, 1, 0},   {IF, 0, 0, 0, 10}, /* 7: got it at once; withdraw, or take the wake-up */
        {END, 0, 0, 0, 0},   {AWAIT, 3, 1, 0, 0}, {END, 0, 0, 0, 0},
    };
    struct state start = {.mem = {1}};
    check(unlock, lock, NULL, &start);
}

/* sched.c: a push against a watcher that goes to sleep. Words: 0 queue, 1 watched, 2 kicked. */
static void r30_a_push_and_a_worker_that_goes_to_sleep_do_not_miss_each_other(void **state)
{
    (void)state;
    static const struct ins pusher[] = {
        {STORE, 0, 1, 0, 0}, {LOAD, 1, 0, 0, 0},  {IF, 0, 1, 0, 6},  {XCHG, 1, 1, 0, 0},
        {IF, 0, 1, 0, 6},    {STORE, 2, 1, 0, 0}, {END, 0, 0, 0, 0},
    };
    static const struct ins watcher[] = {
        {STORE, 1, 0, 0, 0}, {HEAVY, 0, 0, 0, 0}, {LOAD, 0, 0, 0, 0},
        {IF, 0, 1, 0, 5},    {AWAIT, 2, 1, 0, 0}, {END, 0, 0, 0, 0},
    };
    struct state start = {.mem = {0, 1}};
    check(pusher, watcher, NULL, &start);
    check(pusher, watcher, pusher, &start);
}

/* park.c: a task that parks against a cancel. Words: 0 mark, 1 ticket (1 waiting, 2 claimed), 2 ready. */
static void r30_a_cancel_and_a_task_that_parks_do_not_miss_each_other(void **state)
{
    (void)state;
    static const struct ins parker[] = {
        {STORE, 1, 1, 0, 0}, {LOAD, 0, 0, 0, 0},  {IF, 0, 0, 0, 5},  {CAS, 1, 1, 2, 0},
        {IF, 0, 1, 0, 6},    {AWAIT, 2, 1, 0, 0}, {END, 0, 0, 0, 0},
    };
    static const struct ins canceller[] = {
        {STORE, 0, 1, 0, 0}, {HEAVY, 0, 0, 0, 0}, {CAS, 1, 1, 2, 0},
        {IF, 0, 0, 0, 5},    {STORE, 2, 1, 0, 0}, {END, 0, 0, 0, 0},
    };
    struct state start = {0};
    struct model m = {.code = {parker, canceller}, .threads = 2, .with_heavy = true};
    assert_null(explore(&m, &start));
    /* lr_fiber_cancel marks by a read-modify-write, which on x86 is fence enough for its own side; the parker's is not. */
    m = (struct model){.code = {parker, canceller}, .threads = 2, .with_heavy = false};
    assert_non_null(explore(&m, &start));
}

/* Runs a protocol, and then the same with one instruction of one thread replaced: that must be found wrong. */
static void check_with_mutant(struct model m, const struct state *start, int thread, size_t at,
                              struct ins instead)
{
    struct ins mutant[32] = {0};
    m.with_heavy = true;
    const char *wrong = explore(&m, start);
    if (wrong)
        fail_msg("%s", wrong);
    size_t n = 0;
    do {
        mutant[n] = m.code[thread][n];
    } while (m.code[thread][n++].op != END || n <= at);
    mutant[at] = instead;
    m.code[thread] = mutant;
    m.n = 0;
    assert_non_null(explore(&m, start));
}

/*
 * chan.c: a receiver that parks with a deadline, a sender, and the deadline (or a cancel, which claims the same way).
 * Words: 0 the channel's lock, 1 values in the ring, 2 a receiver is in the list, 3 its ticket (0 waiting, 1 claimed),
 * 4 how its wait ended (1 value, 2 deadline), 5 it is ready. The receiver begins with its node in the list.
 */
static bool value_is_in_one_place(const struct state *s)
{
    bool has_it = s->mem[4] == 1;
    return has_it + s->mem[1] == 1 && s->mem[2] == 0;
}

static void r30_a_hand_over_and_a_deadline_exclude_each_other(void **state)
{
    (void)state;
    static const struct ins receiver[] = {
        {AWAIT, 5, 1, 0, 0}, {LOAD, 4, 0, 0, 0}, {IF, 0, 1, 0, 7}, /* it has the value */
        {CAS, 0, 0, 1, 0},   {IF, 0, 0, 0, 3},   {STORE, 2, 0, 0, 0},
        {STORE, 0, 0, 0, 0}, {END, 0, 0, 0, 0},
    };
    static const struct ins sender[] = {
        {CAS, 0, 0, 1, 0},   {IF, 0, 0, 0, 0},    {LOAD, 2, 0, 0, 0},
        {IF, 0, 0, 0, 10}, /* nobody: into the ring */
        {STORE, 2, 0, 0, 0}, {CAS, 3, 0, 1, 0},   {IF, 0, 0, 0, 10},
        {STORE, 4, 1, 0, 0}, {STORE, 5, 1, 0, 0}, {GOTO, 0, 0, 0, 11},
        {STORE, 1, 1, 0, 0}, /* 10 */
        {STORE, 0, 0, 0, 0}, {END, 0, 0, 0, 0},
    };
    static const struct ins deadline[] = {
        {CAS, 3, 0, 1, 0},   {IF, 0, 0, 0, 4},  {STORE, 4, 2, 0, 0},
        {STORE, 5, 1, 0, 0}, {END, 0, 0, 0, 0},
    };
    struct state start = {.mem = {0, 0, 1}};
    struct model m = {
        .code = {receiver, sender, deadline}, .threads = 3, .end_is_right = value_is_in_one_place};
    /* A deadline that ends the wait without claiming it. */
    check_with_mutant(m, &start, 2, 1, (struct ins){IF, 0, 9, 0, 4});
    /* A sender that hands over without claiming. */
    check_with_mutant(m, &start, 1, 6, (struct ins){IF, 0, 9, 0, 10});
}

/* chan.c: close against a sender about to park. Words: 0 lock, 1 closed, 2 in the list, 3 ready. */
static void r30_a_close_and_a_sender_about_to_park_do_not_miss_each_other(void **state)
{
    (void)state;
    static const struct ins sender[] = {
        {CAS, 0, 0, 1, 0},  {IF, 0, 0, 0, 0},    {LOAD, 1, 0, 0, 0},
        {IF, 0, 1, 0, 7},   {STORE, 2, 1, 0, 0}, {STORE, 0, 0, 0, 0},
        {GOTO, 0, 0, 0, 9}, {STORE, 0, 0, 0, 0}, /* 7: refused */
        {END, 0, 0, 0, 0},  {AWAIT, 3, 1, 0, 0}, {END, 0, 0, 0, 0},
    };
    static const struct ins closer[] = {
        {CAS, 0, 0, 1, 0},   {IF, 0, 0, 0, 0},    {STORE, 1, 1, 0, 0},
        {LOAD, 2, 0, 0, 0},  {IF, 0, 0, 0, 7},    {STORE, 2, 0, 0, 0},
        {STORE, 3, 1, 0, 0}, {STORE, 0, 0, 0, 0}, {END, 0, 0, 0, 0},
    };
    struct state start = {0};
    struct model m = {.code = {sender, closer}, .threads = 2};
    check_with_mutant(m, &start, 1, 1,
                      (struct ins){IF, 0, 9, 0, 0}); /* a closer that takes no lock */
}

/*
 * switch.h: a task that parks on one worker and is woken and run by another. Words: 0 ticket (1 waiting, 2 claimed), 1 `go`: 1 =
 * its registers are saved. "Inside" is: on its stack.
 */
static void r30_a_task_is_never_on_two_workers(void **state)
{
    (void)state;
    static const struct ins first[] = {
        {ENTER, 0, 0, 0, 0}, {STORE, 0, 1, 0, 0}, /* from here on it may be woken */
        {LEAVE, 0, 0, 0, 0}, {STORE, 1, 1, 0, 0}, {END, 0, 0, 0, 0},
    };
    static const struct ins second[] = {
        {CAS, 0, 1, 2, 0},   {IF, 0, 0, 0, 6},    {AWAIT, 1, 1, 0, 0}, {STORE, 1, 0, 0, 0},
        {ENTER, 0, 0, 0, 0}, {LEAVE, 0, 0, 0, 0}, {END, 0, 0, 0, 0},
    };
    struct state start = {0};
    struct model m = {.code = {first, second, second}, .threads = 3};
    check_with_mutant(m, &start, 1, 2,
                      (struct ins){GOTO, 0, 0, 0, 3}); /* does not wait for the registers */
}

/*
 * core.h, housekeep: a worker that elides locks and a foreign thread that wants one. Words: 0 wanted, 1 somebody elides, 2 the
 * lock. The worker goes round twice; its own flag is in its code: before and after it has answered.
 */
static void r30_elision_is_over_before_another_thread_takes_a_lock(void **state)
{
    (void)state;
    static const struct ins worker[] = {
        {ENTER, 0, 0, 0, 0}, {LEAVE, 0, 0, 0, 0}, {LOAD, 0, 0, 0, 0},
        {IF, 0, 0, 0, 0}, /* not wanted: again */
        {STORE, 1, 0, 0, 0}, {CAS, 2, 0, 1, 0},   {IF, 0, 0, 0, 5},
        {ENTER, 0, 0, 0, 0}, {LEAVE, 0, 0, 0, 0}, {STORE, 2, 0, 0, 0},
        {END, 0, 0, 0, 0},
    };
    static const struct ins foreign[] = {
        {STORE, 0, 1, 0, 0}, {AWAIT, 1, 0, 0, 0}, {CAS, 2, 0, 1, 0},   {IF, 0, 0, 0, 2},
        {ENTER, 0, 0, 0, 0}, {LEAVE, 0, 0, 0, 0}, {STORE, 2, 0, 0, 0}, {END, 0, 0, 0, 0},
    };
    struct state start = {.mem = {0, 1}};
    struct model m = {.code = {worker, foreign}, .threads = 2};
    check_with_mutant(m, &start, 1, 1, (struct ins){GOTO, 0, 0, 0, 2}); /* does not wait */
}

/*
 * poller.c, net.c: a task got EAGAIN, then an edge comes, then it parks. Words: 0 lock, 1 ready, 2 in the list, 3 woken.
 */
static void r30_an_edge_between_eagain_and_the_park_is_seen(void **state)
{
    (void)state;
    static const struct ins reader[] = {
        {CAS, 0, 0, 1, 0},   {IF, 0, 0, 0, 0},    {LOAD, 1, 0, 0, 0},
        {IF, 0, 1, 0, 7},    {STORE, 2, 1, 0, 0}, {STORE, 0, 0, 0, 0},
        {GOTO, 0, 0, 0, 10}, {STORE, 1, 0, 0, 0}, /* 7: tries again */
        {STORE, 0, 0, 0, 0}, {END, 0, 0, 0, 0},   {AWAIT, 3, 1, 0, 0},
        {END, 0, 0, 0, 0},
    };
    static const struct ins deliver[] = {
        {CAS, 0, 0, 1, 0},   {IF, 0, 0, 0, 0},    {LOAD, 2, 0, 0, 0},
        {IF, 0, 0, 0, 7},    {STORE, 2, 0, 0, 0}, {STORE, 3, 1, 0, 0},
        {GOTO, 0, 0, 0, 8},  {STORE, 1, 1, 0, 0}, /* 7: kept for later */
        {STORE, 0, 0, 0, 0}, {END, 0, 0, 0, 0},
    };
    struct state start = {0};
    struct model m = {.code = {reader, deliver}, .threads = 2};
    check_with_mutant(
        m, &start, 1, 7,
        (struct ins){STORE, 1, 0, 0, 0}); /* an edge that nobody waited for is dropped */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r30_owner_and_thief_are_never_in_the_queue_together),
        cmocka_unit_test(r30_an_unlock_and_a_lock_that_parks_do_not_miss_each_other),
        cmocka_unit_test(r30_a_push_and_a_worker_that_goes_to_sleep_do_not_miss_each_other),
        cmocka_unit_test(r30_a_cancel_and_a_task_that_parks_do_not_miss_each_other),
        cmocka_unit_test(r30_a_hand_over_and_a_deadline_exclude_each_other),
        cmocka_unit_test(r30_a_close_and_a_sender_about_to_park_do_not_miss_each_other),
        cmocka_unit_test(r30_a_task_is_never_on_two_workers),
        cmocka_unit_test(r30_elision_is_over_before_another_thread_takes_a_lock),
        cmocka_unit_test(r30_an_edge_between_eagain_and_the_park_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
