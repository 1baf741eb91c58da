#include "event_kit.h"

void ct_events_on(const char *queue, uint32_t cap)
{
    EXPECT(0, lq_events_set(ct.s, queue, cap, &ct.err));
}

lade_events_info ct_events_info(const char *queue)
{
    lade_events_info info = {0};
    EXPECT(0, ct.s->ops->events_get(ct.s, queue, &info, &ct.err));
    return info;
}

static const char *show_one(const struct lq_ev *e)
{
    const char *type = lade_event_type_name(e->type);
    const char *s = ct_format("%s%s%.*s", type ? type : "?", e->job.n > 0 ? ":" : "", (int)e->job.n,
                              (const char *)e->job.p);
    if (e->attempt > 0)
        s = ct_format("%s/%u", s, e->attempt);
    if (e->reason.n > 0)
        s = ct_format("%s(%.*s)", s, (int)e->reason.n, (const char *)e->reason.p);
    return s;
}

/* All events behind `after`, read `page` at a time; asserts that they are numbered without holes and that time does not go back. */
const char *ct_events_from(const char *queue, uint64_t after, size_t page)
{
    const char *all = "";
    int64_t at_ms = 0;
    for (;;) {
        struct lq_event_vec got = {0};
        int rc = ct.s->ops->event_read(ct.s, queue, after, page, &got, &ct.err);
        if (rc == LADE_EMPTY) {
            lb_arena_fini(&got.arena);
            return all;
        }
        EXPECT(0, rc);
        bool sound = got.n > 0;
        if (after == 0)
            after = got.after;
        for (size_t i = 0; i < got.n; i++) {
            sound = sound && got.event[i].id == ++after && got.event[i].at_ms >= at_ms;
            at_ms = got.event[i].at_ms;
            all = ct_format("%s%s%s", all, *all ? " " : "", show_one(&got.event[i]));
        }
        lb_arena_fini(&got.arena);
        assert_true(sound);
    }
}

const char *ct_events(const char *queue)
{
    return ct_events_from(queue, 0, 100);
}

/* A batch as a client makes it, which a store may keep as one: `n` fresh jobs of these ids. */
const char *ct_pack_id(size_t place)
{
    static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    return ct_format("01HF7YAT0000000000000001%c%c", digit[place / 32], digit[place % 32]);
}

void ct_add_pack(size_t n, const char *const *kind)
{
    struct lq_put item[128];
    for (size_t i = 0; i < n; i++) {
        const char *k = kind[i % 2];
        const char *body = ct_format("\x01"
                                     "4\x93%c%s%c",
                                     (int)(0xa0 + strlen(k)), k, 0xc0);
        item[i] = ct_item("q", ct_pack_id(i));
        item[i].body = lb_slice_str(body);
        item[i].fresh = true;
    }
    ct_put(item, n);
}
