/*
 * sql.h - every statement of the store, by name
 *
 * A connection prepares each when it is first used and keeps it. Binds are numbered in the order of the text; RUN is
 * the column list that ls_sqlite_run_read reads.
 */
#ifndef LADE_SQLITE_SQL_H
#define LADE_SQLITE_SQL_H

#define LS_SQLITE_RUN "job, n, queue, state, rank, pos, level, at, worker, flags, reason, key"
#define LS_SQLITE_QUEUE                                                                   \
    "num, paused, next, scheduled, ready, active, retrying, completed, dead, cancelled, " \
    "total_enqueued, total_completed, total_failed, total_dead, name, events, gated, "    \
    "max_jobs, on_full, max_bytes, bytes, hall, mates"

#define LS_SQLITE_FLOW                                                                \
    "num, id, name, state, steps, nodes, open, failed, siblings, created, finished, " \
    "parts, results"

#define LS_SQLITE_KEY \
    "num, place, at, ready, active, waiting, away, ended, paused, until, tat, lim, name"

#define LS_SQLITE_SCHEDULE "id, state, due, revision, spec, memo"

#define LS_SQLITE_STATEMENTS(X)                                                                    \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(BEGIN_READ, "BEGIN")                                                                         \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(PAGES, "PRAGMA page_count")                                                                  \
    /* queues */                                                                                   \
    X(QUEUE_GET, "SELECT " LS_SQLITE_QUEUE " FROM queue WHERE name = ?1")                          \
    X(QUEUE_BY_NUM, "SELECT " LS_SQLITE_QUEUE " FROM queue WHERE num = ?1")                        \
    X(QUEUE_ADD, "INSERT INTO queue (name, next) VALUES (?1, ?2)")                                 \
    X(QUEUE_SET,                                                                                   \
      "UPDATE queue SET paused = ?2, next = ?3, scheduled = ?4, ready = ?5, active = ?6, "         \
      "retrying = ?7, completed = ?8, dead = ?9, cancelled = ?10, total_enqueued = ?11, "          \
      "total_completed = ?12, total_failed = ?13, total_dead = ?14, gated = ?15, "                 \
      "hall = ?16, mates = ?17 WHERE num = ?1")                                                    \
    X(QUEUE_DEL, "DELETE FROM queue WHERE num = ?1")                                               \
    X(QUEUE_NAMES, "SELECT name FROM queue ORDER BY name")                                         \
    X(QUEUE_ALL, "SELECT " LS_SQLITE_QUEUE " FROM queue ORDER BY num")                             \
    /* jobs */                                                                                     \
    X(JOB_LAST, "SELECT seq FROM job ORDER BY seq DESC LIMIT 1")                                   \
    X(JOB_ADD, "INSERT INTO job (seq, queue, id, body, uniq) VALUES (?1, ?2, ?3, ?4, ?5) "         \
               "ON CONFLICT (id, queue) DO NOTHING")                                               \
    X(JOB_FEED, "INSERT OR IGNORE INTO job (seq, queue, id, body) "                                \
                "SELECT seq, ?2, id, body FROM lade_feed(?1)")                                     \
    X(JOB_KNOWN, "SELECT 1 FROM lade_feed(?1) AS f CROSS JOIN job "                                \
                 "ON job.queue = ?2 AND job.id = f.id LIMIT 1")                                    \
    X(JOB_SEQS, "SELECT seq FROM job WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq")                    \
    X(JOB_SEQ, "SELECT seq FROM job WHERE queue = ?1 AND id = ?2")                                 \
    X(JOB_IDS, "SELECT id FROM job WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq")                      \
    X(JOB_TAKE, "SELECT id, CASE WHEN length(body) <= ?3 THEN body END, history FROM job "         \
                "WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq")                                        \
    X(JOB_LOOK, "SELECT seq, id, body, history, result, uniq FROM job "                            \
                "WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq")                                        \
    X(JOB_HISTORY, "SELECT history FROM job WHERE seq = ?1")                                       \
    X(JOB_SET_HISTORY, "UPDATE job SET history = ?2 WHERE seq = ?1")                               \
    X(JOB_SET_RESULT, "UPDATE job SET result = ?2 WHERE seq = ?1")                                 \
    X(JOB_CLEAR_RESULT,                                                                            \
      "UPDATE job SET result = NULL WHERE seq BETWEEN ?1 AND ?2 AND result IS NOT NULL")           \
    X(JOB_SET_BODY, "UPDATE job SET body = ?2 WHERE seq = ?1")                                     \
    /* sheets of results */                                                                        \
    X(SHEET_ANY, "SELECT 1 FROM sheet LIMIT 1")                                                    \
    X(SHEET_ADD, "INSERT INTO sheet (job, n, data) VALUES (?1, ?2, ?3)")                           \
    X(SHEET_AT, "SELECT job, n, data FROM sheet WHERE job <= ?1 ORDER BY job DESC LIMIT 1")        \
    X(SHEET_DEL, "DELETE FROM sheet WHERE job BETWEEN ?1 AND ?2")                                  \
    X(SHEET_DEL_IN, "DELETE FROM sheet WHERE job BETWEEN ?1 AND ?2 AND job + n - 1 <= ?2")         \
    X(SHEET_LOOSE, "SELECT 0, s.job FROM sheet s WHERE NOT EXISTS "                                \
                   "(SELECT 1 FROM job j WHERE j.seq BETWEEN s.job AND s.job + s.n - 1)")          \
    X(SHEET_TWICE, "SELECT 0, a.job FROM sheet a JOIN sheet b ON b.job = "                         \
                   "(SELECT min(x.job) FROM sheet x WHERE x.job > a.job) "                         \
                   "WHERE b.job < a.job + a.n")                                                    \
    X(JOB_DEL, "DELETE FROM job WHERE seq BETWEEN ?1 AND ?2")                                      \
    X(JOB_ALL, "SELECT seq, queue FROM job ORDER BY seq")                                          \
    /* runs */                                                                                     \
    X(RUN_AT, "SELECT " LS_SQLITE_RUN " FROM run WHERE job <= ?1 ORDER BY job DESC LIMIT 1")       \
    X(RUN_FIRST, "SELECT " LS_SQLITE_RUN " FROM run WHERE queue = ?1 AND state = ?2 "              \
                 "ORDER BY rank, pos LIMIT 1")                                                     \
    X(RUN_FIRST_OF_RANK,                                                                           \
      "SELECT " LS_SQLITE_RUN " FROM run WHERE queue = ?1 AND state = ?2 AND rank = ?3 "           \
      "ORDER BY pos LIMIT 1")                                                                      \
    X(RUN_BEFORE, "SELECT " LS_SQLITE_RUN " FROM run WHERE queue = ?1 AND state = ?2 AND "         \
                  "(rank, pos) <= (?3, ?4) ORDER BY rank DESC, pos DESC LIMIT 1")                  \
    X(RUN_FROM, "SELECT " LS_SQLITE_RUN " FROM run WHERE queue = ?1 AND state = ?2 AND "           \
                "(rank, pos) >= (?3, ?4) ORDER BY rank, pos LIMIT 1")                              \
    X(RUN_OF_WORKER, "SELECT " LS_SQLITE_RUN " FROM run WHERE worker = ?1 ORDER BY job")           \
    X(RUN_ALL, "SELECT " LS_SQLITE_RUN " FROM run ORDER BY job")                                   \
    X(RUN_ADD,                                                                                     \
      "INSERT INTO run (" LS_SQLITE_RUN ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "      \
      "?11, ?12)")                                                                                 \
    X(RUN_DEL, "DELETE FROM run WHERE job = ?1")                                                   \
    X(RUN_SET_N, "UPDATE run SET n = ?2 WHERE job = ?1")                                           \
    X(RUN_SHIFT, "UPDATE run SET job = job + ?2, n = n - ?2, pos = pos + ?2 WHERE job = ?1")       \
    X(RUN_COUNTS, "SELECT state, sum(n) FROM run WHERE queue = ?1 GROUP BY state")                 \
    X(BOUND_SET,                                                                                   \
      "UPDATE queue SET max_jobs = ?2, on_full = ?3, max_bytes = ?4, bytes = ?5 WHERE num = ?1")   \
    X(BYTES_SET, "UPDATE queue SET bytes = ?2 WHERE num = ?1")                                     \
    X(BYTES_OF, "SELECT coalesce(sum(length(body)), 0) FROM job WHERE seq BETWEEN ?1 AND ?2")      \
    X(BYTES_ALL,                                                                                   \
      "SELECT coalesce(sum(length(body)), 0) FROM run JOIN job "                                   \
      "ON seq BETWEEN run.job AND run.job + n - 1 WHERE run.queue = ?1 AND state IN (0, 1, 3)")    \
    /* events */                                                                                   \
    X(EVENTS_SET, "UPDATE queue SET events = ?2 WHERE num = ?1")                                   \
    X(EVENT_LAST, "SELECT last FROM event WHERE queue = ?1 ORDER BY last DESC LIMIT 1")            \
    X(EVENT_FIRST, "SELECT last - n + 1 FROM event WHERE queue = ?1 ORDER BY last LIMIT 1")        \
    X(EVENT_ADD, "INSERT INTO event (queue, last, n, at, data) VALUES (?1, ?2, ?3, ?4, ?5)")       \
    X(EVENT_TRIM, "DELETE FROM event WHERE queue = ?1 AND last <= ?2")                             \
    X(EVENT_READ, "SELECT last, n, at, data FROM event WHERE queue = ?1 AND last > ?2 "            \
                  "ORDER BY last")                                                                 \
    X(EVENT_JOBS, "SELECT id, substr(body, 1, 160), substr(history, 1, 6) FROM job "               \
                  "WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq")                                      \
    X(EVENT_BAD, "SELECT q.num, q.name FROM queue q WHERE (q.events > 0) <> "                      \
                 "EXISTS (SELECT 1 FROM event e WHERE e.queue = q.num)")                           \
    X(EVENT_HOLE, "SELECT queue, last FROM (SELECT queue, last, last - n AS before, "              \
                  "lag(last) OVER (PARTITION BY queue ORDER BY last) AS prev FROM event) "         \
                  "WHERE prev IS NOT NULL AND prev <> before")                                     \
    /* what handlers said */                                                                       \
    X(NOTE_ANY, "SELECT 1 FROM note LIMIT 1")                                                      \
    X(NOTE_GET, "SELECT percent, at, text, lines FROM note WHERE job = ?1")                        \
    X(NOTE_SET, "INSERT OR REPLACE INTO note (job, percent, at, text, lines) "                     \
                "VALUES (?1, ?2, ?3, ?4, ?5)")                                                     \
    X(NOTE_DEL, "DELETE FROM note WHERE job BETWEEN ?1 AND ?2")                                    \
    X(NOTE_LOOSE, "SELECT 0, n.job FROM note n LEFT JOIN job j ON j.seq = n.job "                  \
                  "WHERE j.seq IS NULL")                                                           \
    X(LINE_ADD, "INSERT INTO line (job, num, at, text) VALUES (?1, ?2, ?3, ?4)")                   \
    X(LINE_TRIM, "DELETE FROM line WHERE job = ?1 AND num <= ?2")                                  \
    X(LINE_COUNT, "SELECT count(*) FROM line WHERE job = ?1")                                      \
    X(LINE_GET, "SELECT num, at, text FROM line WHERE job = ?1 ORDER BY num LIMIT ?3 OFFSET ?2")   \
    X(LINE_DEL, "DELETE FROM line WHERE job BETWEEN ?1 AND ?2")                                    \
    X(LINE_LOOSE, "SELECT 0, l.job FROM line l LEFT JOIN note n ON n.job = l.job "                 \
                  "WHERE n.job IS NULL")                                                           \
    /* results */                                                                                  \
    X(JOB_RESULT, "SELECT result FROM job WHERE seq = ?1")                                         \
    /* results with a time of their own */                                                         \
    X(APART_SET, "INSERT OR REPLACE INTO apart (queue, id, at, expires, data) "                    \
                 "VALUES (?1, ?2, ?3, ?4, ?5)")                                                    \
    X(APART_GET, "SELECT data FROM apart WHERE queue = ?1 AND id = ?2 AND expires > ?3 "           \
                 "AND ?4 IN (0, at)")                                                              \
    X(APART_DEL, "DELETE FROM apart WHERE queue = ?1 AND id = ?2")                                 \
    X(APART_DROP, "DELETE FROM apart WHERE queue = ?1")                                            \
    X(APART_OVER, "DELETE FROM apart WHERE num IN "                                                \
                  "(SELECT num FROM apart WHERE expires <= ?1 ORDER BY expires LIMIT ?2)")         \
    X(APART_LOOSE, "SELECT 0, a.id FROM apart a LEFT JOIN queue q ON q.num = a.queue "             \
                   "WHERE q.num IS NULL")                                                          \
    /* unique locks */                                                                             \
    X(LOCK_ANY, "SELECT 1 FROM lock LIMIT 1")                                                      \
    /* numbers and ids of jobs come again: its job has all three */                                \
    X(LOCK_GET, "SELECT id, expires, coalesce((SELECT seq FROM job WHERE seq = lock.job "          \
                "AND job.queue = lock.queue AND job.id = lock.id AND uniq = key), 0), "            \
                "until, first, trails FROM lock WHERE queue = ?1 AND key = ?2")                    \
    X(LOCK_SET,                                                                                    \
      "INSERT OR REPLACE INTO lock (queue, key, job, id, until, expires, first, trails) "          \
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                                   \
    X(LOCK_FREE, "DELETE FROM lock WHERE job BETWEEN ?1 AND ?2 AND until <> 2")                    \
    X(LOCK_FREE_START, "DELETE FROM lock WHERE job BETWEEN ?1 AND ?2 AND until = 1")               \
    X(LOCK_EXPIRED, "DELETE FROM lock WHERE (queue, key) IN "                                      \
                    "(SELECT queue, key FROM lock WHERE expires <= ?1 ORDER BY expires LIMIT ?2)") \
    X(LOCK_DEL_QUEUE, "DELETE FROM lock WHERE queue = ?1")                                         \
    X(LOCK_LOOSE, "SELECT l.queue, l.id FROM lock l LEFT JOIN job j ON j.seq = l.job "             \
                  "WHERE l.until <> 2 AND (j.seq IS NULL OR j.queue <> l.queue OR j.id <> l.id)")  \
    X(LOCK_ENDED, "SELECT l.queue, l.id FROM lock l JOIN run r "                                   \
                  "ON r.job = (SELECT max(x.job) FROM run x WHERE x.job <= l.job) "                \
                  "WHERE l.until <> 2 AND r.state >= 4")                                           \
    /* workers */                                                                                  \
    X(WORKER_GET, "SELECT num, lease_until, void FROM worker WHERE id = ?1")                       \
    X(WORKER_DEATH,                                                                                \
      "SELECT min(CASE void WHEN 1 THEN 0 ELSE lease_until + 1 END) FROM worker WHERE id <> ?1")   \
    X(WORKER_IS, "SELECT 1 FROM worker WHERE num = ?1 AND id = ?2")                                \
    X(WORKER_BY_NUM, "SELECT id, name, lease_until FROM worker WHERE num = ?1")                    \
    X(WORKER_ADD,                                                                                  \
      "INSERT INTO worker (id, name, queues, concurrency, started, seen, lease_until, void) "      \
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)")                                                    \
    X(WORKER_RENEW,                                                                                \
      "UPDATE worker SET name = ?2, queues = ?3, concurrency = ?4, started = ?5, seen = ?6, "      \
      "lease_until = ?7, void = 0 WHERE num = ?1")                                                 \
    X(CONTROL_GET, "SELECT wish, asked, made, about, stacks, at FROM control WHERE worker = ?1")   \
    X(CONTROL_ORDERS, "SELECT wish, asked FROM control WHERE worker = ?1")                         \
    X(CONTROL_WISH, "INSERT INTO control (worker, wish) VALUES (?1, ?2) "                          \
                    "ON CONFLICT (worker) DO UPDATE SET wish = ?2")                                \
    X(CONTROL_ASK, "INSERT INTO control (worker, asked) VALUES (?1, 1) "                           \
                   "ON CONFLICT (worker) DO UPDATE SET asked = asked + 1")                         \
    X(CONTROL_ABOUT, "INSERT INTO control (worker, about) VALUES (?1, ?2) "                        \
                     "ON CONFLICT (worker) DO UPDATE SET about = ?2")                              \
    X(CONTROL_STACKS, "INSERT INTO control (worker, stacks, made, at) VALUES (?1, ?2, ?3, ?4) "    \
                      "ON CONFLICT (worker) DO UPDATE SET stacks = ?2, made = ?3, at = ?4")        \
    X(WORKER_VOID, "UPDATE worker SET void = 1 WHERE num = ?1")                                    \
    X(WORKER_DEL, "DELETE FROM worker WHERE num = ?1")                                             \
    X(WORKER_DEAD,                                                                                 \
      "SELECT num, id, queues FROM worker WHERE (lease_until < ?1 OR void = 1) AND num > ?2 "      \
      "ORDER BY num LIMIT 1")                                                                      \
    X(WORKER_LIVE,                                                                                 \
      "SELECT num, id, name, queues, concurrency, started, seen, lease_until FROM worker "         \
      "WHERE lease_until >= ?1 AND void = 0 ORDER BY num")                                         \
    X(WORKER_HELD, "SELECT coalesce(sum(n), 0) FROM run WHERE worker = ?1")                        \
    X(WORKER_HAS, "SELECT 1 FROM run WHERE worker = ?1 LIMIT 1")                                   \
    X(WORKER_LOST, "SELECT r.queue, r.job FROM run r LEFT JOIN worker w ON w.num = r.worker "      \
                   "WHERE r.state = 2 AND w.num IS NULL")                                          \
    X(STOP_ADD, "INSERT INTO stop (worker, queue, id, fence) VALUES (?1, ?2, ?3, ?4)")             \
    X(STOP_GET, "SELECT num, queue, id, fence FROM stop WHERE worker = ?1 ORDER BY num LIMIT ?2")  \
    X(STOP_DEL, "DELETE FROM stop WHERE worker = ?1 AND num <= ?2")                                \
    X(STOP_DEL_ONE, "DELETE FROM stop WHERE worker = ?1 AND fence = ?2 AND queue = ?3")            \
    X(STOP_DEL_ALL, "DELETE FROM stop WHERE worker = ?1")                                          \
    X(STOP_LOOSE, "SELECT s.queue, s.id FROM stop s LEFT JOIN worker w ON w.num = s.worker "       \
                  "WHERE w.num IS NULL")                                                           \
    /* the dead by class */                                                                        \
    X(CLASS_GET, "SELECT num, n FROM dead_class WHERE queue = ?1 AND name = ?2")                   \
    X(CLASS_COUNT, "SELECT count(*) FROM dead_class WHERE queue = ?1 AND name <> 'other'")         \
    X(CLASS_ADD, "INSERT INTO dead_class (queue, name, kind, text, n, first, last) "               \
                 "VALUES (?1, ?2, ?3, ?4, 0, ?5, ?5)")                                             \
    X(CLASS_MORE, "UPDATE dead_class SET n = n + 1, last = ?2 WHERE num = ?1")                     \
    X(CLASS_LESS, "UPDATE dead_class SET n = n - ?2 WHERE num = ?1")                               \
    X(CLASS_DEL, "DELETE FROM dead_class WHERE num = ?1 AND n <= 0")                               \
    X(CLASS_ALL,                                                                                   \
      "SELECT c.name, c.kind, c.text, (SELECT j.id FROM death d JOIN job j ON j.seq = d.job "      \
      "WHERE d.class = c.num ORDER BY d.at DESC, d.job DESC LIMIT 1), c.n, c.first, c.last "       \
      "FROM dead_class c WHERE c.queue = ?1")                                                      \
    X(CLASS_WRONG, "SELECT c.queue, c.name FROM dead_class c "                                     \
                   "WHERE c.n <> (SELECT count(*) FROM death d WHERE d.class = c.num) OR c.n < 1") \
    X(DEATH_ADD, "INSERT INTO death (job, class, at) VALUES (?1, ?2, ?3)")                         \
    X(DEATH_CLASSES,                                                                               \
      "SELECT class, count(*) FROM death WHERE job BETWEEN ?1 AND ?2 GROUP BY class")              \
    X(DEATH_DEL, "DELETE FROM death WHERE job BETWEEN ?1 AND ?2")                                  \
    X(DEATH_AFTER, "SELECT job, at FROM death WHERE class = ?1 AND (at, job) > (?2, ?3) "          \
                   "ORDER BY at, job LIMIT ?4")                                                    \
    X(DEATH_LOOSE,                                                                                 \
      "SELECT c.queue, d.job FROM death d LEFT JOIN dead_class c ON c.num = d.class "              \
      "LEFT JOIN run r ON r.job = (SELECT max(x.job) FROM run x WHERE x.job <= d.job)"             \
      " WHERE c.num IS NULL OR r.job IS NULL OR r.state <> 5 OR r.queue <> c.queue "               \
      "OR d.job >= r.job + r.n OR d.at <> r.at")                                                   \
    X(DEATH_COUNT, "SELECT q.num, q.name FROM queue q WHERE q.dead <> "                            \
                   "(SELECT coalesce(sum(c.n), 0) FROM dead_class c WHERE c.queue = q.num)")       \
    /* keys */                                                                                     \
    X(GATE_GET, "SELECT lim, usual, v, free_at, free_until, tat, held, alone, calm "               \
                "FROM gate WHERE queue = ?1")                                                      \
    X(GATE_SET, "INSERT OR REPLACE INTO gate (queue, lim, usual, v, free_at, free_until, tat, "    \
                "held, alone, calm) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")             \
    X(GATE_DEL, "DELETE FROM gate WHERE queue = ?1")                                               \
    X(KEY_GET, "SELECT " LS_SQLITE_KEY " FROM job_key WHERE num = ?1")                             \
    X(KEY_FIND, "SELECT " LS_SQLITE_KEY " FROM job_key WHERE queue = ?1 AND name = ?2")            \
    X(KEY_ADD, "INSERT INTO job_key (queue, name, place, at, ready, active, waiting, away, "       \
               "ended, paused, until, tat) VALUES (?1, ?2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)")         \
    X(KEY_SET, "UPDATE job_key SET place = ?2, at = ?3, ready = ?4, active = ?5, waiting = ?6, "   \
               "away = ?7, ended = ?8, paused = ?9, until = ?10, tat = ?11, lim = ?12 "            \
               "WHERE num = ?1")                                                                   \
    X(KEY_DEL, "DELETE FROM job_key WHERE num = ?1")                                               \
    X(KEY_DEL_QUEUE, "DELETE FROM job_key WHERE queue = ?1")                                       \
    X(KEY_RING, "SELECT num FROM job_key WHERE queue = ?1 AND place = 1 "                          \
                "ORDER BY at, name LIMIT ?2")                                                      \
    X(KEY_HELD, "SELECT num FROM job_key WHERE queue = ?1 AND place >= 2 LIMIT ?2")                \
    X(KEY_RIPE, "SELECT num FROM job_key WHERE queue = ?1 AND place = 2 AND at <= ?2 "             \
                "ORDER BY at LIMIT ?3")                                                            \
    X(KEY_NEXT, "SELECT (SELECT at FROM job_key WHERE queue = ?1 AND place = 2 "                   \
                "ORDER BY at LIMIT 1), EXISTS (SELECT 1 FROM job_key WHERE queue = ?1 "            \
                "AND place = 1)")                                                                  \
    X(KEY_LOOSEN, "UPDATE job_key SET place = 1, at = 0 WHERE queue = ?1 AND place >= 2")          \
    X(KEY_TRIM, "DELETE FROM job_key WHERE num IN (SELECT num FROM job_key WHERE queue = ?1 "      \
                "AND ready + active + waiting + ended + paused = 0 AND until <= ?2 "               \
                "AND tat <= ?2 AND lim IS NULL LIMIT ?3)")                                         \
    X(KEY_AFTER, "SELECT " LS_SQLITE_KEY " FROM job_key WHERE queue = ?1 AND "                     \
                 "name > coalesce(?2, x'') ORDER BY name LIMIT ?3")                                \
    X(KEY_ALL, "SELECT " LS_SQLITE_KEY ", queue FROM job_key ORDER BY num")                        \
    X(KEY_SUMS, "SELECT key, sum(CASE state WHEN 1 THEN n ELSE 0 END), "                           \
                "sum(CASE state WHEN 2 THEN n ELSE 0 END), "                                       \
                "sum(CASE WHEN state IN (0, 3) THEN n ELSE 0 END), "                               \
                "sum(CASE WHEN state IN (0, 3) AND flags & 8 THEN n ELSE 0 END), "                 \
                "sum(CASE WHEN state >= 4 THEN n ELSE 0 END), min(queue), max(queue) "             \
                "FROM run WHERE key > 0 GROUP BY key ORDER BY key")                                \
    X(RUN_FIRST_OF_KEY, "SELECT " LS_SQLITE_RUN " FROM run WHERE queue = ?1 AND state = 1 AND "    \
                        "rank BETWEEN ?2 AND ?3 ORDER BY rank, pos LIMIT 1")                       \
    X(KEY_RULED, "SELECT 1 FROM job_key WHERE queue = ?1 AND (lim IS NOT NULL OR paused <> 0 OR "  \
                 "until > ?2 OR tat > ?2) LIMIT 1")                                                \
    X(HALL_NEW, "SELECT " LS_SQLITE_RUN " FROM run WHERE job >= (SELECT coalesce(max(job), 0) "    \
                "FROM run WHERE job <= ?2) AND job + n > ?2 AND queue = ?1 AND state = 1 "         \
                "AND key = -1 ORDER BY job")                                                       \
    X(HALL_LEVEL, "SELECT pos FROM run WHERE queue = ?1 AND state = 1 AND rank >= ?2 "             \
                  "AND level = ?3 ORDER BY rank, pos LIMIT 1")                                     \
    X(HALL_ACTIVE, "SELECT " LS_SQLITE_RUN " FROM run WHERE queue = ?1 AND state = 2 "             \
                   "AND key = -1 LIMIT 1")                                                         \
    X(HALL_SUMS, "SELECT sum(CASE state WHEN 1 THEN n ELSE 0 END), "                               \
                 "sum(CASE state WHEN 2 THEN n ELSE 0 END), "                                      \
                 "sum(CASE WHEN state IN (0, 3) THEN n ELSE 0 END) "                               \
                 "FROM run WHERE queue = ?1 AND key = -1")                                         \
    X(JOB_BODIES, "SELECT body FROM job WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq")                 \
    /* flows */                                                                                    \
    X(FLOW_ANY, "SELECT 1 FROM flow LIMIT 1")                                                      \
    X(FLOW_GET, "SELECT " LS_SQLITE_FLOW " FROM flow WHERE id = ?1")                               \
    X(FLOW_BELOW, "SELECT " LS_SQLITE_FLOW " FROM flow WHERE num < ?1 ORDER BY num DESC LIMIT ?2") \
    X(FLOW_ADD,                                                                                    \
      "INSERT INTO flow (id, name, state, steps, nodes, open, failed, siblings, created, "         \
      "finished, parts, results) VALUES (?1, ?2, 0, ?3, ?4, ?5, 0, ?6, ?7, 0, ?8, 0) "             \
      "ON CONFLICT (id) DO NOTHING")                                                               \
    X(FLOW_SET, "UPDATE flow SET state = ?2, open = ?3, failed = ?4, finished = ?5, "              \
                "results = ?6 WHERE num = ?1")                                                     \
    X(FLOW_DEL, "DELETE FROM flow WHERE num = ?1")                                                 \
    X(FLOW_DEL_PARTS, "DELETE FROM flow_part WHERE num BETWEEN ?1 AND ?2")                         \
    X(FLOW_DEL_MARKS, "DELETE FROM flow_mark WHERE num BETWEEN ?1 AND ?2")                         \
    X(FLOW_DEL_RESULTS, "DELETE FROM flow_result WHERE num BETWEEN ?1 AND ?2")                     \
    /* the second comparison is that of the index of ended ones, which is used only for such */    \
    X(FLOW_COUNT, "SELECT count(*) FROM flow WHERE state = ?1 AND state <> 0")                     \
    X(FLOW_OLDEST, "SELECT " LS_SQLITE_FLOW " FROM flow WHERE state = ?1 AND state <> 0 "          \
                   "ORDER BY finished LIMIT 1")                                                    \
    X(PART_ADD, "INSERT INTO flow_part (num, data) VALUES (?1, ?2)")                               \
    X(PART_AT, "SELECT num, data FROM flow_part WHERE num <= ?1 ORDER BY num DESC LIMIT 1")        \
    X(PART_ALL, "SELECT num, data FROM flow_part WHERE num BETWEEN ?1 AND ?2 ORDER BY num")        \
    X(MARK_ADD, "INSERT INTO flow_mark (num, data) VALUES (?1, ?2)")                               \
    X(MARK_GET, "SELECT data FROM flow_mark WHERE num = ?1")                                       \
    X(MARK_SET, "UPDATE flow_mark SET data = ?2 WHERE num = ?1")                                   \
    X(MARK_FEED, "INSERT OR REPLACE INTO flow_mark (num, data) "                                   \
                 "SELECT seq, body FROM lade_feed(?1)")                                            \
    X(RESULT_SET, "INSERT OR REPLACE INTO flow_result (num, result) VALUES (?1, ?2)")              \
    X(RESULT_GET, "SELECT result FROM flow_result WHERE num = ?1")                                 \
    X(RESULT_DEL, "DELETE FROM flow_result WHERE num = ?1")                                        \
    X(FLOW_LOOSE,                                                                                  \
      "SELECT num FROM flow_part WHERE num / 16384 NOT IN (SELECT num FROM flow) UNION ALL "       \
      "SELECT num FROM flow_mark WHERE num / 16384 NOT IN (SELECT num FROM flow) UNION ALL "       \
      "SELECT num FROM flow_result WHERE num / 16384 NOT IN (SELECT num FROM flow)")               \
    X(JOB_OF_FLOW, "SELECT id FROM job WHERE seq BETWEEN ?1 AND ?2 AND instr(id, '~') > 0")        \
    /* schedules */                                                                                \
    X(SCHEDULE_ANY, "SELECT 1 FROM schedule WHERE due > 0 LIMIT 1")                                \
    X(SCHEDULE_FULL, "SELECT count(*) FROM schedule")                                              \
    X(SCHEDULE_GET, "SELECT " LS_SQLITE_SCHEDULE " FROM schedule WHERE id = ?1")                   \
    X(SCHEDULE_FROM,                                                                               \
      "SELECT " LS_SQLITE_SCHEDULE " FROM schedule WHERE id > ?1 ORDER BY id LIMIT ?2")            \
    X(SCHEDULE_DUE, "SELECT " LS_SQLITE_SCHEDULE " FROM schedule WHERE due > 0 AND due <= ?1 "     \
                    "ORDER BY due, id LIMIT ?2")                                                   \
    X(SCHEDULE_NEXT, "SELECT due FROM schedule WHERE due > 0 ORDER BY due, id LIMIT 1 OFFSET ?1")  \
    X(SCHEDULE_REVISION, "SELECT revision FROM schedule WHERE id = ?1")                            \
    X(SCHEDULE_ADD, "INSERT INTO schedule (id, state, due, revision, spec, memo) "                 \
                    "VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                                             \
    X(SCHEDULE_SET, "UPDATE schedule SET state = ?2, due = ?3, revision = ?4, spec = ?5, "         \
                    "memo = ?6 WHERE id = ?1")                                                     \
    X(SCHEDULE_MOVE, "UPDATE schedule SET state = ?2, due = ?3, revision = ?4, memo = ?5 "         \
                     "WHERE id = ?1")                                                              \
    X(SCHEDULE_DEL, "DELETE FROM schedule WHERE id = ?1")                                          \
    X(SCHEDULE_ODD, "SELECT '', id FROM schedule WHERE (state = 0) <> (due > 0) OR revision < 1 "  \
                    "OR revision > (SELECT coalesce(max(revision), 0) FROM scheduler)")            \
    X(SCHEDULER_GET, "SELECT revision, holder, name, fence, until, seen FROM scheduler")           \
    X(SCHEDULER_SET,                                                                               \
      "INSERT INTO scheduler (num, revision, holder, name, fence, until, seen) "                   \
      "VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (num) DO UPDATE SET revision = ?1, "         \
      "holder = ?2, name = ?3, fence = ?4, until = ?5, seen = ?6")

enum ls_sqlite_sql {

#define NAME(name, text) LS_SQLITE_##name,
    LS_SQLITE_STATEMENTS(NAME)
#undef NAME
        LS_SQLITE_N_STATEMENTS
};

#endif
