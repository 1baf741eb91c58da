/*
 * rs_kit.h - the real lade on a private redis-server, as a producer and a worker of Resque
 *
 * Thread safety: the main thread only.
 */
#ifndef LADE_TESTS_RESQUE_RS_KIT_H
#define LADE_TESTS_RESQUE_RS_KIT_H

#include "resque/rb_kit.h"

#define WAIT (INT64_C(120) * 1000 * 1000 * 1000)

/* resque+unix:// of the server and a tail, "?mode=strict"; a file in the test's folder. Both valid until the next call. */
const char *url_with(const char *tail);
const char *path_in_dir(const char *name);

void enqueue_at(const char *url, const char *kind, const char *payload);
void enqueue_job(const char *kind, const char *payload);
/* Runs what is there to its end. */
void drain_at(const char *url, const char *kind, const char *command);
/* A worker whose `command` runs jobs of the kind Sleep; those of Ok end well. */
void start_worker(struct ts_proc *p, const char *url, const char *slots, const char *command,
                  const char *const *env);
/* TERM; its exit code. */
int end_worker(struct ts_proc *p);

/* The reply to the line has `wanted` in it. */
void assert_reply(const char *line, const char *wanted);
/* The content of a file of the test's folder is `wanted`. */
void assert_file(const char *name, const char *wanted);
void touch(const char *name);
size_t lines_of(const char *name);
/* Of a command, since the server's start or CONFIG RESETSTAT; scripts' too. */
int64_t calls_of(const char *command);

#endif
