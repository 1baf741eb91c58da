#include "cli/exec.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/exec_input.h"

#define KILL_AFTER  (5 * LADE_SECOND)
#define LINGER      LADE_SECOND /* for a grandchild to close stdout after the handler ended */
#define GROUP_STEP  (20 * LADE_MILLISECOND)  /* how often a stopped group is looked at */
#define CANCEL_STEP (200 * LADE_MILLISECOND) /* how often cancel is asked without a descriptor */
#define STDERR_TAIL 4096
#define READ_SIZE   (64U << 10)
#define NOTES_FD    3 /* of the handler: exec.h */
#define N_PIPES     4

extern char **environ;

/* One run of one job. */
struct run {
    lade_job *job;
    const struct cli_exec *exec;
    pid_t pid;
    int pid_fd;
    int in, out, err, notes; /* our ends; -1 when closed */
    lade_bytes payload;
    struct cli_exec_inputs inputs;
    size_t n_sent;
    struct lb_buf result;
    bool result_too_big;
    char tail[STDERR_TAIL]; /* ring of what stderr said last */
    uint64_t n_stderr;
    char note
        [LADE_LOG_LINE_MAX]; /* a line of NOTES_FD that has no end yet; what is longer is dropped */
    size_t n_note;
    const char *stopped; /* why we sent TERM, or NULL */
    int64_t kill_at;     /* LB_FOREVER until TERM was sent */
    bool has_ended;
    bool is_reaped;  /* only once stopped, see look_for_group */
    bool group_gone; /* nothing is left of the process group */
    int64_t linger_until;
    siginfo_t status;
};

/* ---- the environment of the child ---- */

/* "LADE_HEADER_TRACE_ID=value" of trace-id. */
static void add_header(struct lb_buf *text, const lade_header *h)
{
    lb_buf_add_str(text, "LADE_HEADER_");
    for (const char *p = h->name; *p; p++)
        lb_buf_add_byte(text,
                        isalnum((unsigned char)*p) ? (uint8_t)toupper((unsigned char)*p) : '_');
    lb_buf_add_fmt(text, "=%s", h->value);
    lb_buf_add_byte(text, 0);
}

static size_t add_job_variables(struct lb_buf *text, const lade_job *job)
{
    lb_buf_add_fmt(text, "LADE_JOB_ID=%s", lade_job_id(job));
    lb_buf_add_byte(text, 0);
    lb_buf_add_fmt(text, "LADE_KIND=%s", lade_job_kind(job));
    lb_buf_add_byte(text, 0);
    lb_buf_add_fmt(text, "LADE_QUEUE=%s", lade_job_queue(job));
    lb_buf_add_byte(text, 0);
    lb_buf_add_fmt(text, "LADE_ATTEMPT=%d", lade_job_attempt(job));
    lb_buf_add_byte(text, 0);
    lb_buf_add_fmt(text, "LADE_MAX_ATTEMPTS=%d", lade_job_max_attempts(job));
    lb_buf_add_byte(text, 0);
    lb_buf_add_fmt(text, "LADE_FENCE=%llu", (unsigned long long)lade_job_fence(job));
    lb_buf_add_byte(text, 0);
    lb_buf_add_fmt(text, "LADE_NOTES_FD=%d", NOTES_FD);
    lb_buf_add_byte(text, 0);
    size_t n = lade_job_n_headers(job);
    for (size_t i = 0; i < n; i++) {
        lade_header h = lade_job_header_at(job, i);
        add_header(text, &h);
    }
    return 7 + n;
}

/* A worker may itself be run by a job: what that one was told is not passed on. */
static bool is_job_variable(const char *variable)
{
    static const char *const names[] = {
        "LADE_JOB_ID=", "LADE_KIND=",   "LADE_QUEUE=",        "LADE_ATTEMPT=",
        "LADE_FENCE=",  "LADE_HEADER_", "LADE_MAX_ATTEMPTS=", "LADE_NOTES_FD=",
        "LADE_FLOW=",   "LADE_INPUT=",  "LADE_INPUTS=",       "LADE_INPUTS_FILE="};

    for (size_t i = 0; i < LB_ARRAY_LEN(names); i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

/* Ours and the job's, as execve wants it; NULL when out of memory. *text keeps the strings. */
static char **make_environment(struct lb_buf *text, const struct run *r)
{
    size_t n_ours = 0;
    size_t n = 0;
    while (environ[n_ours])
        n_ours++;
    size_t n_job = add_job_variables(text, r->job);
    n_job += cli_exec_inputs_variables(&r->inputs, text, r->job);
    char **env = text->failed ? NULL : lb_malloc((n_ours + n_job + 1) * sizeof(*env));
    if (!env)
        return NULL;
    for (size_t i = 0; i < n_ours; i++) {
        if (!is_job_variable(environ[i]))
            env[n++] = environ[i];
    }
    for (size_t i = 0, at = 0; i < n_job; i++) {
        env[n++] = (char *)text->p + at;
        at += strlen((char *)text->p + at) + 1;
    }
    env[n] = NULL;
    return env;
}

/* ---- starting ---- */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* In the child: to numbers that nothing else is given. */
static bool move_away(int first, int all, int out[2])
{
    out[0] = fcntl(first, F_DUPFD_CLOEXEC, CLI_EXEC_INPUTS_FD + 1);
    out[1] = fcntl(all, F_DUPFD_CLOEXEC, CLI_EXEC_INPUTS_FD + 1);
    return out[0] >= 0 && out[1] >= 0;
}

/*
 * A signal that comes between fork and exec must not find the worker's handlers, which would swallow it: the job would
 * run on after its TERM. What is ignored stays so (nohup).
 */
static void take_default_signals(void)
{
    static const int caught[] = {SIGTERM, SIGINT,  SIGQUIT, SIGHUP,  SIGTSTP,
                                 SIGUSR1, SIGUSR2, SIGCONT, SIGCHLD, SIGPIPE};

    struct sigaction now;
    sigset_t none;
    for (size_t i = 0; i < LB_ARRAY_LEN(caught); i++) {
        bool is_ignored = sigaction(caught[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN;
        if (!is_ignored || caught[i] == SIGPIPE)
            (void)signal(caught[i], SIG_DFL);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child, between fork and exec: only async-signal-safe calls. Signals are blocked. */
static _Noreturn void become_handler(const struct run *r, const int theirs[N_PIPES], pid_t parent,
                                     char **env)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)r->exec->command, NULL};
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* The worker may have died before prctl: then nobody would send the signal. */
    if (getppid() != parent)
        _exit(126);
    (void)cli_guard_announce(r->exec->guard, getpid());
    int inputs[2] = {-1, -1};
    bool has_inputs = r->inputs.first >= 0;
    if (has_inputs && !move_away(r->inputs.first, r->inputs.all, inputs))
        _exit(126);
    /* In this order: the last may take the place of one before it. Onto itself it would stay close-on-exec. */
    for (int i = 0; i < N_PIPES; i++) {
        if (theirs[i] == i ? fcntl(i, F_SETFD, 0) < 0 : dup2(theirs[i], i) < 0)
            _exit(126);
    }
    if (has_inputs &&
        (dup2(inputs[0], CLI_EXEC_INPUT_FD) < 0 || dup2(inputs[1], CLI_EXEC_INPUTS_FD) < 0))
        _exit(126);
    take_default_signals();
    (void)execve("/bin/sh", argv, env);
    _exit(126);
}

static bool open_pipes(struct run *r, int theirs[N_PIPES])
{
    int *const ours[N_PIPES] = {&r->in, &r->out, &r->err, &r->notes};
    int p[2];
    for (int i = 0; i < N_PIPES; i++) {
        if (pipe2(p, O_CLOEXEC) != 0)
            return false;
        theirs[i] = i == 0 ? p[0] : p[1];
        *ours[i] = i == 0 ? p[1] : p[0];
        /* Only our end: the two ends of a pipe have flags of their own. */
        if (fcntl(i == 0 ? p[1] : p[0], F_SETFL, O_NONBLOCK) != 0)
            return false;
    }
    return true;
}

/* Starts the process. False, with errno, when the system has no room for it. */
static bool start_handler(struct run *r)
{
    int theirs[N_PIPES] = {-1, -1, -1, -1};
    struct lb_buf text;
    pid_t parent = getpid();
    lb_buf_init(&text);
    char **env = make_environment(&text, r);
    bool ok = env && open_pipes(r, theirs);
    if (ok) {
        sigset_t every, before;
        (void)sigfillset(&every);
        (void)pthread_sigmask(SIG_SETMASK, &every, &before);
        r->pid = fork();
        if (r->pid == 0)
            become_handler(r, theirs, parent, env);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* which leaves errno alone */
        ok = r->pid > 0;
    }
    int errnum = env ? errno : ENOMEM;
    if (ok) {
        /* Both sides set it, so that it is set whichever runs first; after exec it is refused, and done. */
        (void)setpgid(r->pid, r->pid);
        r->pid_fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
    }
    for (int i = 0; i < N_PIPES; i++)
        close_fd(&theirs[i]);
    lb_free(env);
    lb_buf_fini(&text);
    errno = errnum;
    return ok;
}

/* ---- running ---- */

static void send_payload(struct run *r)
{
    const char *p = r->payload.data;
    while (r->n_sent < r->payload.size) {
        ssize_t n = write(r->in, p + r->n_sent, r->payload.size - r->n_sent);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break; /* EPIPE: a handler need not read its input */
        r->n_sent += (size_t)n;
    }
    close_fd(&r->in);
}

/* One read. True when there may be more now. */
static bool read_fd(int *fd, char *buf, size_t *n)
{
    ssize_t got = 0;
    do {
        got = read(*fd, buf, READ_SIZE);
    } while (got < 0 && errno == EINTR);
    *n = got > 0 ? (size_t)got : 0;
    if (got == 0 || (got < 0 && errno != EAGAIN))
        close_fd(fd);
    return got > 0;
}

static void stop_handler(struct run *r, const char *why)
{
    if (r->stopped)
        return;
    r->stopped = why;
    r->kill_at = lb_deadline_in(KILL_AFTER);
    (void)kill(-r->pid, SIGTERM);
    /* A stopped process would not see TERM. */
    (void)kill(-r->pid, SIGCONT);
}

static void take_stdout(struct run *r)
{
    char buf[READ_SIZE];
    size_t n = 0;
    if (r->out < 0)
        return;
    (void)read_fd(&r->out, buf, &n);
    if (!r->result_too_big)
        lb_buf_add(&r->result, buf, n);
    if (r->result.n > LADE_RESULT_MAX || r->result.failed) {
        r->result_too_big = true;
        stop_handler(r, "result too big");
        lb_buf_fini(&r->result);
        lb_buf_init(&r->result);
    }
}

static void take_stderr(struct run *r)
{
    char buf[READ_SIZE];
    size_t n = 0;
    if (r->err < 0)
        return;
    (void)read_fd(&r->err, buf, &n);
    for (size_t i = n > STDERR_TAIL ? n - STDERR_TAIL : 0; i < n; i++)
        r->tail[(r->n_stderr + i) % STDERR_TAIL] = buf[i];
    r->n_stderr += n;
}

/* "progress 40 half way" is progress; all else is a line of the log. */
static void take_line(struct run *r)
{
    static const char word[] = "progress ";
    char *text = r->note;
    if (r->n_note == 0)
        return;
    if (r->n_note < sizeof(r->note)) {
        text[r->n_note] = 0;
        char *number = text + sizeof(word) - 1, *end = number;
        long percent = strncmp(text, word, sizeof(word) - 1) == 0 ? strtol(number, &end, 10) : 0;
        if (end > number && (*end == 0 || *end == ' ')) {
            percent = LB_MAX(-1L, LB_MIN(percent, 101L));
            (void)lade_job_progress(r->job, (int)percent, *end == ' ' ? end + 1 : NULL);
            r->n_note = 0;
            return;
        }
    }
    (void)lade_job_log_bytes(r->job, (lade_bytes){text, r->n_note});
    r->n_note = 0;
}

/* What was written to NOTES_FD. True when there may be more. */
static bool take_notes(struct run *r)
{
    char buf[READ_SIZE];
    size_t n = 0;
    if (r->notes < 0)
        return false;
    bool more = read_fd(&r->notes, buf, &n);
    for (size_t i = 0; i < n; i++) {
        if (buf[i] == '\n')
            take_line(r);
        else if (r->n_note < sizeof(r->note))
            r->note[r->n_note++] = buf[i];
    }
    return more;
}

/* Notices the end without reaping, so that the process group's number stays ours until the group is killed. */
static void look_for_end(struct run *r)
{
    siginfo_t s = {0};
    int rc = 0;
    if (r->has_ended)
        return;
    do {
        rc = waitid(P_PID, (id_t)r->pid, &s, WEXITED | WNOHANG | WNOWAIT);
    } while (rc < 0 && errno == EINTR);
    if (rc == 0 && s.si_pid == r->pid) {
        r->status = s;
        r->has_ended = true;
        r->linger_until = lb_deadline_in(LINGER);
        close_fd(&r->in);
    }
}

/*
 * A stopped handler's group may live on when its first process has ended. That one is reaped here, for a zombie counts
 * as a member; the group's number cannot be given out again while any member is left, and once none is left nothing is
 * sent to it any more.
 */
static void look_for_group(struct run *r)
{
    siginfo_t s;
    if (!r->stopped || !r->has_ended || r->group_gone)
        return;
    while (!r->is_reaped && waitid(P_PID, (id_t)r->pid, &s, WEXITED) < 0 && errno == EINTR)
        ;
    r->is_reaped = true;
    r->group_gone = kill(-r->pid, 0) != 0 && errno == ESRCH;
}

/* When an ended handler's pipes, and its group when it was stopped, are waited for no longer. */
static int64_t end_of_linger(const struct run *r)
{
    return r->stopped && r->kill_at != LB_FOREVER ? r->kill_at : r->linger_until;
}

static const char *reason_of_cancel(const lade_job *job)
{
    return lade_job_time_left(job) <= 0 ? "timed out" : "told to stop";
}

static int poll_timeout(const struct run *r, int cancel_fd)
{
    int64_t until = r->has_ended ? end_of_linger(r) : r->kill_at;
    int64_t step = LB_FOREVER;
    if (r->group_gone)
        return 0;
    if (r->has_ended && r->stopped)
        step = lb_deadline_in(GROUP_STEP);
    if (!r->has_ended && ((cancel_fd < 0 && !r->stopped) || r->pid_fd < 0))
        step = lb_deadline_in(CANCEL_STEP);
    until = LB_MIN(until, step);
    if (until == LB_FOREVER)
        return -1;
    int64_t left = until - lb_clock_mono();
    return left > 0 ? (int)LB_MIN(lb_ms_up(left), INT64_C(60000)) : 0;
}

/* True when nothing more is to be waited for; n_events is what poll found. */
static bool is_over(const struct run *r, int n_events)
{
    if (!r->has_ended)
        return false;
    if (lb_clock_mono() >= end_of_linger(r))
        return true;
    bool is_closed = r->out < 0 && r->err < 0;
    return r->stopped ? r->group_gone && (is_closed || n_events == 0) : is_closed;
}

/*
 * Pumps the pipes until the process has ended and they are closed, or stay open for too long. One that was stopped has
 * until its KILL for its whole group to end.
 */
static void run_handler(struct run *r)
{
    int cancel_fd = lade_job_cancel_fd(r->job);
    for (;;) {
        struct pollfd fds[6] = {
            {.fd = r->in, .events = POLLOUT},
            {.fd = r->out, .events = POLLIN},
            {.fd = r->err, .events = POLLIN},
            {.fd = r->has_ended ? -1 : r->pid_fd, .events = POLLIN},
            {.fd = r->stopped || r->has_ended ? -1 : cancel_fd, .events = POLLIN},
            {.fd = r->notes, .events = POLLIN},
        };
        int rc = poll(fds, LB_ARRAY_LEN(fds), poll_timeout(r, cancel_fd));
        if (rc < 0 && errno != EINTR && errno != EAGAIN)
            stop_handler(r, "poll failed");
        if (r->in >= 0 && (rc > 0 && fds[0].revents))
            send_payload(r);
        if (rc > 0 && fds[1].revents)
            take_stdout(r);
        if (rc > 0 && fds[2].revents)
            take_stderr(r);
        if (rc > 0 && fds[5].revents)
            (void)take_notes(r);
        look_for_end(r);
        if (!r->has_ended && lade_job_cancelled(r->job))
            stop_handler(r, reason_of_cancel(r->job));
        if (!r->has_ended && lb_clock_mono() >= r->kill_at) {
            (void)kill(-r->pid, SIGKILL);
            r->kill_at = LB_FOREVER;
        }
        /* What the last member wrote before it ended is read in one more round. */
        bool was_gone = r->group_gone;
        look_for_group(r);
        if (is_over(r, was_gone ? rc : 1))
            break;
    }
}

/* Ends what is left of the group, then lets the number go. */
static void end_handler(struct run *r)
{
    siginfo_t s;
    if (!r->group_gone)
        (void)kill(-r->pid, SIGKILL);
    (void)cli_guard_forget(r->exec->guard, r->pid);
    while (!r->is_reaped && waitid(P_PID, (id_t)r->pid, &s, WEXITED) < 0 && errno == EINTR)
        ;
}

/* ---- judging ---- */

/* "exit 3: the end of stderr", at most LADE_ERROR_TEXT_MAX bytes. */
static void tell_error(struct run *r, const char *what)
{
    struct lb_buf text;
    lb_buf_init(&text);
    lb_buf_add_str(&text, what);
    uint64_t have = LB_MIN(r->n_stderr, (uint64_t)STDERR_TAIL);
    while (have > 0 && isspace((unsigned char)r->tail[(r->n_stderr - 1) % STDERR_TAIL])) {
        have--;
        r->n_stderr--;
    }
    if (have > 0)
        lb_buf_add_str(&text, ": ");
    have = LB_MIN(have, LADE_ERROR_TEXT_MAX - (uint64_t)LB_MIN(text.n, (size_t)256));
    for (uint64_t i = r->n_stderr - have; i < r->n_stderr; i++)
        lb_buf_add_byte(&text, (uint8_t)r->tail[i % STDERR_TAIL]);
    if (text.failed)
        lade_job_error(r->job, "%s", what);
    else
        lade_job_error_bytes(r->job, (lade_bytes){text.p, text.n});
    lb_buf_fini(&text);
}

static lade_outcome outcome_of_code(int code)
{
    switch (code) {
    case 0:
        return LADE_OK;
    case 100:
        return LADE_DEAD;
    case 101:
        return LADE_DISCARD;
    case 102:
        return LADE_CANCEL;
    case 103:
        return LADE_SNOOZE;
    default:
        return LADE_RETRY;
    }
}

static lade_outcome keep_result(struct run *r)
{
    if (r->result.n == 0)
        return LADE_OK;
    int rc = lade_job_result(r->job, (lade_bytes){r->result.p, r->result.n});
    if (rc == 0)
        return LADE_OK;
    lade_job_error(r->job, "result: %s", lade_result_name(rc));
    return LADE_RETRY;
}

static lade_outcome judge(struct run *r)
{
    char what[160];
    bool exited = r->status.si_code == CLD_EXITED;
    int code = r->status.si_status;
    lade_outcome outcome = exited ? outcome_of_code(code) : LADE_RETRY;
    if (r->result_too_big) {
        (void)snprintf(
            what, sizeof(what),
            "stdout is over %u bytes, the limit of a result; write big results elsewhere",
            LADE_RESULT_MAX);
        outcome = LADE_RETRY;
    } else if (exited && code == 0 && !r->stopped) {
        return keep_result(r);
    } else if (exited) {
        (void)snprintf(what, sizeof(what), "%s%sexit %d", r->stopped ? r->stopped : "",
                       r->stopped ? ", " : "", code);
        outcome = outcome == LADE_OK ? LADE_RETRY : outcome;
    } else {
        (void)snprintf(what, sizeof(what), "%s%skilled by SIG%s", r->stopped ? r->stopped : "",
                       r->stopped ? ", " : "", sigabbrev_np(code) ? sigabbrev_np(code) : "?");
    }
    tell_error(r, what);
    return outcome;
}

lade_outcome cli_exec_run(lade_job *job, void *ctx)
{
    struct run r = {.job = job,
                    .exec = ctx,
                    .pid_fd = -1,
                    .in = -1,
                    .out = -1,
                    .err = -1,
                    .notes = -1,
                    .kill_at = LB_FOREVER,
                    .payload = lade_job_payload(job)};
    lade_outcome outcome = LADE_RETRY;
    lb_buf_init(&r.result);
    if (!cli_exec_inputs_open(&r.inputs, job)) {
        /* the job has the reason */
    } else if (start_handler(&r)) {
        run_handler(&r);
        end_handler(&r);
        for (int i = 0; i < 64 && take_notes(&r);
             i++) /* what was written last; a pipe holds 64 KiB */
            ;
        take_line(&r);
        outcome = judge(&r);
    } else {
        char buf[96];
        lade_job_error(job, "cannot start the handler: %s", strerror_r(errno, buf, sizeof(buf)));
    }
    cli_exec_inputs_close(&r.inputs);
    close_fd(&r.pid_fd);
    close_fd(&r.in);
    close_fd(&r.out);
    close_fd(&r.err);
    close_fd(&r.notes);
    lb_buf_fini(&r.result);
    return outcome;
}
