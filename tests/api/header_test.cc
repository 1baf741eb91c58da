// The public header as C++17: a C++ program enqueues and works without a wrapper.
#include <lade/lade.h>
#include <lade/rt.h>

#include <string>

static lade_outcome resize(lade_job *job, void *ctx)
{
    lade_bytes payload = lade_job_payload(job);
    static_cast<std::string *>(ctx)->assign(static_cast<const char *>(payload.data), payload.size);
    return LADE_OK;
}

int main()
{
    lade *q = nullptr;
    lade_err err{};
    lade_options options{};
    options.timeout = 5 * LADE_SECOND;
    if (lade_open(&q, "memory:", &options, &err) < 0)
        return 1;
    lade_job_spec spec{};
    spec.kind = "resize";
    spec.payload = LADE_STR("{}");
    lade_id id{};
    int rc = lade_enqueue(q, &spec, &id, &err);
    lade_worker *w = nullptr;
    lade_worker_config config{};
    config.drain = true;
    std::string seen;
    if (rc == 0 && (rc = lade_worker_open(&w, q, &config, &err)) == 0) {
        rc = lade_worker_handle(w, "resize", resize, &seen);
        if (rc == 0)
            rc = lade_worker_run(w, &err);
        lade_worker_close(w);
    }
    lade_close(q);
    return rc == 0 && seen == "{}" ? 0 : 1;
}
