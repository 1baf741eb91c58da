-- 0001_init.sql - the tables of schema version 1
--
-- A job is written once, in `job`, and stays there until it is gone. Where it is in its life says `run`: a run is a
-- stretch of jobs with consecutive numbers that share their state and lie beside each other in its order, so that a
-- batch moves from state to state as one row. The runs cover all jobs and never overlap: each job is in exactly one
-- state by construction.
--
-- Times are milliseconds since 1970 on the store's clock.

CREATE TABLE queue (
    num             INTEGER PRIMARY KEY,
    name            TEXT NOT NULL UNIQUE,
    paused          INTEGER NOT NULL DEFAULT 0,
    next            INTEGER NOT NULL,           -- next position, lease fence and order of ending
    scheduled       INTEGER NOT NULL DEFAULT 0, -- exact counts by state
    ready           INTEGER NOT NULL DEFAULT 0,
    active          INTEGER NOT NULL DEFAULT 0,
    retrying        INTEGER NOT NULL DEFAULT 0,
    completed       INTEGER NOT NULL DEFAULT 0,
    dead            INTEGER NOT NULL DEFAULT 0,
    cancelled       INTEGER NOT NULL DEFAULT 0,
    total_enqueued  INTEGER NOT NULL DEFAULT 0, -- since the queue was made
    total_completed INTEGER NOT NULL DEFAULT 0,
    total_failed    INTEGER NOT NULL DEFAULT 0,
    total_dead      INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE job (
    seq     INTEGER PRIMARY KEY,
    queue   INTEGER NOT NULL,
    id      TEXT NOT NULL,
    body    BLOB NOT NULL,
    history BLOB,            -- attempts so far; NULL for a job that never failed
    result  BLOB,            -- of a completed job
    uniq    BLOB             -- its unique key, whether it still holds it or not
) STRICT;
-- The id first: ids are time-ordered, so new ones go to the end whatever their queue, and comparing text first is
-- SQLite's fast path.
CREATE UNIQUE INDEX job_id ON job (id, queue);

CREATE TABLE run (
    job    INTEGER PRIMARY KEY, -- seq of the first job
    n      INTEGER NOT NULL,    -- jobs job .. job + n - 1
    queue  INTEGER NOT NULL,
    state  INTEGER NOT NULL,    -- enum lade_state
    rank   INTEGER NOT NULL,    -- ready: level; scheduled, retrying: when due; else 0
    pos    INTEGER NOT NULL,    -- of the first job within rank, the next has pos + 1; active: the fence
    level  INTEGER NOT NULL,
    at     INTEGER NOT NULL,    -- when it came into this state
    worker INTEGER,             -- active: the owner
    flags  INTEGER NOT NULL,    -- active: 1 begun, 2 to be killed, 4 to be cancelled
    reason INTEGER NOT NULL     -- dead: enum lq_reason
) STRICT;
CREATE INDEX run_order ON run (queue, state, rank, pos);
CREATE INDEX run_owner ON run (worker) WHERE worker IS NOT NULL;

-- Held unique keys.
CREATE TABLE lock (
    queue   INTEGER NOT NULL,
    key     BLOB NOT NULL,
    job     INTEGER NOT NULL, -- seq of the owner
    id      TEXT NOT NULL,    -- its id, which outlives it when the lock does
    until   INTEGER NOT NULL, -- enum lade_unique_until
    expires INTEGER NOT NULL,
    PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX lock_job ON lock (job);
CREATE INDEX lock_expires ON lock (expires);

CREATE TABLE worker (
    num         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE, -- the incarnation
    name        TEXT NOT NULL,
    queues      TEXT NOT NULL,        -- comma separated
    concurrency INTEGER NOT NULL,
    started     INTEGER NOT NULL,
    seen        INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    void        INTEGER NOT NULL      -- 1: left or reclaimed; it can not renew
) STRICT;

-- Jobs that an operator wants stopped, for the next renew of their worker.
CREATE TABLE stop (
    num    INTEGER PRIMARY KEY,
    worker INTEGER NOT NULL,
    queue  TEXT NOT NULL,
    id     TEXT NOT NULL,
    fence  INTEGER NOT NULL
) STRICT;
CREATE INDEX stop_worker ON stop (worker);
