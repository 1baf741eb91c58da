/* resque W3: jobs of ActiveJob are worked by their own class, and written as Rails writes them. W26: jobs that run at once. */
#include "resque/rs_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lade/testing.h>

#include "base/base.h"

#define WRAPPER "{\"class\":\"ActiveJob::QueueAdapters::ResqueAdapter::JobWrapper\",\"args\":"

/* As Rails 6.1 has it, with a GlobalID and a hash of symbols. */
#define RAILS                                                                                 \
    WRAPPER                                                                                   \
    "[{\"job_class\":\"Mail::Send\",\"job_id\":\"2c7b1a0e-0b3f-4a39-8f5a-2a60d45b6f4d\","     \
    "\"provider_job_id\":null,\"queue_name\":\"default\",\"priority\":null,\"arguments\":[7," \
    "{\"_aj_globalid\":\"gid://app/User/1\"},{\"to\":\"a\",\"_aj_symbol_keys\":[\"to\"]}],"   \
    "\"executions\":2,\"exception_executions\":{},\"locale\":\"de\",\"timezone\":\"UTC\","    \
    "\"enqueued_at\":\"2026-11-30T09:57:20Z\"}]}"

static void push_raw(const char *entry)
{
    /* in single quotes an inline command takes all but ' and backslash as it is */
    char line[2048];
    (void)ask("SADD resque:queues default");
    (void)snprintf(line, sizeof(line), "RPUSH resque:queue:default '%s'", entry);
    assert_int_equal(ask_int(line), 1);
}

static lade_outcome keep(lade_job *job, void *ctx)
{
    char *seen = ctx;
    lade_bytes p = lade_job_payload(job);
    (void)snprintf(seen, 1024, "%s|%.*s|%s|%s|%s|%s", lade_job_kind(job), (int)p.size,
                   (const char *)p.data, lade_job_header(job, "job_id"),
                   lade_job_header(job, "executions"), lade_job_header(job, "locale"),
                   lade_job_header(job, "enqueued_at"));
    return LADE_OK;
}

/* resque W3: a C handler of the job's class gets its arguments, unwrapped, and what is no JSON of its own as ActiveJob has it. */
static void a_c_handler_gets_the_arguments_of_a_rails_job(void **state)
{
    (void)state;
    lade *q = NULL;
    lade_worker *w = NULL;
    lade_err err = {0};
    char seen[1024] = "";
    push_raw(RAILS);
    assert_int_equal(lade_open(&q, url_with(""), NULL, &err), 0);
    lade_worker_config config = {.drain = true, .concurrency = 1};
    assert_int_equal(lade_worker_open(&w, q, &config, &err), 0);
    assert_int_equal(lade_worker_handle(w, "Mail::Send", keep, seen), 0);
    assert_int_equal(lade_worker_run(w, &err), 0);
    lade_worker_close(w);
    lade_close(q);
    assert_string_equal(seen,
                        "Mail::Send|[7,{\"_aj_globalid\":\"gid://app/User/1\"},{\"to\":\"a\","
                        "\"_aj_symbol_keys\":[\"to\"]}]|2c7b1a0e-0b3f-4a39-8f5a-2a60d45b6f4d|2|de|"
                        "2026-11-30T09:57:20Z");
    assert_reply("GET resque:stat:processed", "\r\n1\r\n");
    assert_int_equal(ask_int("LLEN resque:failed"), 0);
}

/* resque W3, W8: a failure keeps the wrapper, so that resque-web retries the job of Rails. */
static void a_rails_job_that_fails_stays_one(void **state)
{
    (void)state;
    push_raw(RAILS);
    drain_at(url_with(""), "Mail::Send", "exit 3");
    assert_reply("LINDEX resque:failed 0", "\"payload\":" RAILS ",\"exception\":");
    push_raw(RAILS);
    drain_at(url_with(""), "Other", "true");
    assert_reply("LINDEX resque:failed 1", "uninitialized constant Mail::Send");
}

/* resque W3, W18: an envelope that is none is a failure that names the member and the rule. */
static void malformed_envelopes_fail_by_the_member_that_is_wrong(void **state)
{
    (void)state;

    static const struct {
        const char *args, *word;
    } cases[] = {
        {"[]", "args: must be an array of one object"},
        {"[{},{}]", "args: must be an array of one object"},
        {"[7]", "args: must be an array of one object"},
        {"null", "args: must be an array of one object"},
        {"[{\"arguments\":[]}]", "args[0].job_class: must be a string"},
        {"[{\"job_class\":\"\",\"arguments\":[]}]", "args[0].job_class: must be a string"},
        {"[{\"job_class\":\"A\"}]", "args[0].arguments: must be an array"},
        {"[{\"job_class\":\"A\",\"arguments\":{}}]", "args[0].arguments: must be an array"}};

    char entry[512], line[64];
    (void)ask("SADD resque:queues default");
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        (void)snprintf(entry, sizeof(entry), "RPUSH resque:queue:default '" WRAPPER "%s}'",
                       cases[i].args);
        (void)ask(entry);
    }
    drain_at(url_with(""), "A", "true");
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        (void)snprintf(line, sizeof(line), "LINDEX resque:failed %zu", i);
        assert_reply(line, cases[i].word);
        assert_reply(line, "\"payload\":" WRAPPER);
    }
    assert_int_equal(ask_int("LLEN resque:failed"), (int64_t)LB_ARRAY_LEN(cases));
}

/* resque W3: the bytes of Rails, with the id that the enqueue prints; and lade works them, too. */
static void an_enqueue_for_rails_has_the_bytes_of_rails(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-u", url_with("?jobs=active_job"), "-q", "mail", "--kind", "Mail::Send",
        "--payload", "[7, {\"_aj_globalid\":\"gid://app/User/1\"}]", "--quiet");
    assert_code(&r, 0);
    char id[64] = "", wanted[512];
    (void)snprintf(id, sizeof(id), "%.*s", (int)strcspn(r.out, "\n"), r.out);
    (void)snprintf(wanted, sizeof(wanted),
                   WRAPPER "[{\"job_class\":\"Mail::Send\",\"job_id\":\"%s\","
                           "\"provider_job_id\":null,\"queue_name\":\"mail\",\"priority\":null,"
                           "\"arguments\":[7,{\"_aj_globalid\":\"gid://app/User/1\"}],"
                           "\"executions\":0,\"exception_executions\":{},\"locale\":\"en\","
                           "\"timezone\":\"UTC\",\"enqueued_at\":\"20",
                   id);
    assert_reply("LINDEX resque:queue:mail 0", wanted);
    RUN(&r, "work", "-u", url_with(""), "-q", "mail", "--drain", "--kind", "Mail::Send", "--exec",
        "test \"$LADE_HEADER_QUEUE_NAME\" = mail");
    assert_code(&r, 0);
    assert_reply("GET resque:stat:processed", "\r\n1\r\n");
    assert_int_equal(ask_int("LLEN resque:failed"), 0);
    RUN(&r, "enqueue", "-u", url_with("?jobs=active"), "--kind", "K");
    assert_says(r.err, "jobs must be resque (the default) or active_job");
    run_free(&r);
}

static lade_outcome fails(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_job_error(job, "boom in %s", lade_job_queue(job));
    return LADE_RETRY;
}

/* resque W26: in the caller, with the arguments that a worker would have seen, and the server hears nothing of it. */
static void an_inline_job_runs_in_the_caller_and_touches_no_key(void **state)
{
    (void)state;
    lade *q = NULL;
    lade_worker *w = NULL;
    lade_err err = {0};
    lade_outcome said = LADE_DISCARD;
    char seen[1024] = "";
    assert_int_equal(lade_open(&q, url_with(""), NULL, &err), 0);
    assert_int_equal(lade_worker_open(&w, q, NULL, &err), 0);
    assert_int_equal(lade_worker_handle(w, "Mail::Send", keep, seen), 0);
    assert_int_equal(lade_worker_handle(w, "Fails", fails, NULL), 0);
    (void)ask("CONFIG RESETSTAT");
    lade_job_spec spec = {.kind = "Mail::Send", .payload = LADE_STR(" [ 1e30, \"a\" ] ")};
    assert_int_equal(lade_worker_inline(w, &spec, &said, &err), 0);
    assert_int_equal(said, LADE_OK);
    assert_int_equal(strncmp(seen, "Mail::Send|[1.0e+30,\"a\"]|", 25), 0);
    lade_job_spec bad = {.kind = "Fails", .queue = "q"};
    assert_int_equal(lade_worker_inline(w, &bad, &said, &err), 0);
    assert_int_equal(said, LADE_DEAD); /* it has one attempt */
    assert_string_equal(err.text, "boom in q");
    bad.kind = "Nobody";
    assert_int_equal(lade_worker_inline(w, &bad, &said, &err), LADE_NOT_FOUND);
    assert_says(err.text, "kind 'Nobody' has no handler");
    bad = (lade_job_spec){.kind = "Fails", .payload = LADE_STR("{}")};
    assert_int_equal(lade_worker_inline(w, &bad, &said, &err), -LADE_EINVAL);
    assert_says(err.text, "payload: must be a JSON array");
    bad = (lade_job_spec){.kind = "Fails", .priority = 1};
    assert_int_equal(lade_worker_inline(w, &bad, &said, &err), -LADE_EUNSUPPORTED);
    assert_int_equal(lade_worker_inline(w, NULL, &said, &err), -LADE_EINVAL);
    lade_worker_close(w);
    lade_close(q);
    assert_int_equal(ask_int("DBSIZE"), 0);
    static const char *const commands[] = {"sadd",    "rpush", "get", "set",
                                           "evalsha", "fcall", "lpop"};
    for (size_t i = 0; i < LB_ARRAY_LEN(commands); i++)
        assert_int_equal(calls_of(commands[i]), 0);
}

/* W26 on a store of lade's own: attempts are left, so a failure is one that would be retried. */
static void an_inline_job_of_another_store_has_attempts_left(void **state)
{
    (void)state;
    lade *q = NULL;
    lade_worker *w = NULL;
    lade_err err = {0};
    lade_outcome said = LADE_OK;
    size_t n = 1;
    assert_int_equal(lade_open(&q, "memory:", NULL, &err), 0);
    assert_int_equal(lade_worker_open(&w, q, NULL, &err), 0);
    assert_int_equal(lade_worker_handle(w, "Fails", fails, NULL), 0);
    lade_job_spec spec = {.kind = "Fails", .payload = LADE_STR("any"), .in = LADE_HOUR};
    assert_int_equal(lade_worker_inline(w, &spec, &said, &err), 0);
    assert_int_equal(said, LADE_RETRY);
    assert_string_equal(err.text, "boom in default");
    assert_int_equal(lade_test_count(q, NULL, NULL, LADE_STATE_READY, &n, &err), 0);
    assert_int_equal(n, 0);
    lade_worker_close(w);
    lade_close(q);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_c_handler_gets_the_arguments_of_a_rails_job),
        cmocka_unit_test(a_rails_job_that_fails_stays_one),
        cmocka_unit_test(malformed_envelopes_fail_by_the_member_that_is_wrong),
        cmocka_unit_test(an_enqueue_for_rails_has_the_bytes_of_rails),
        cmocka_unit_test(an_inline_job_runs_in_the_caller_and_touches_no_key),
        cmocka_unit_test(an_inline_job_of_another_store_has_attempts_left)};
    return kit_main(argc, argv, "resque active job", tests, LB_ARRAY_LEN(tests));
}
