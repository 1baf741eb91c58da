-- 0005_key.sql - keys and limits, schema version 5
--
-- A ready job of a key stands in the order of READY at rank key * 16 + level; jobs without one are key 0, as before. What the
-- numbers mean says src/queue/limit.h.

ALTER TABLE run ADD COLUMN key INTEGER NOT NULL DEFAULT 0;    -- job_key.num; all jobs of a run have the same
ALTER TABLE queue ADD COLUMN gated INTEGER NOT NULL DEFAULT 0; -- 1: has or had keys or limits; gate has a row

CREATE TABLE gate (
    queue      INTEGER PRIMARY KEY,
    lim        TEXT NOT NULL,    -- of the whole queue: concurrency count period_ms burst weight order
    usual      TEXT NOT NULL,    -- the default of its keys
    v          INTEGER NOT NULL, -- virtual time of the last turn
    free_at    INTEGER NOT NULL, -- virtual time of the jobs without a key
    free_until INTEGER NOT NULL, -- these are paused until then, microseconds
    tat        INTEGER NOT NULL, -- when the queue's bucket is full again, microseconds
    held       INTEGER NOT NULL  -- ready jobs of the keys that are at 2 or 3
) STRICT;

CREATE TABLE job_key (
    num     INTEGER PRIMARY KEY,
    queue   INTEGER NOT NULL,
    name    BLOB NOT NULL,
    place   INTEGER NOT NULL,    -- 0 nothing ready, 1 in the ring, 2 waits for a time, 3 waits for a slot or an operator
    at      INTEGER NOT NULL,    -- 1: virtual time; 2: microseconds
    ready   INTEGER NOT NULL,    -- exact counts of its jobs
    active  INTEGER NOT NULL,
    waiting INTEGER NOT NULL,    -- scheduled and retrying
    away    INTEGER NOT NULL,    -- of these, those that were active before
    ended   INTEGER NOT NULL,    -- completed, dead, cancelled
    paused  INTEGER NOT NULL,
    until   INTEGER NOT NULL,    -- paused until then, microseconds
    tat     INTEGER NOT NULL,
    lim     TEXT                 -- its own limit
) STRICT;
CREATE UNIQUE INDEX job_key_name ON job_key (queue, name);
CREATE INDEX job_key_ring ON job_key (queue, at, name) WHERE place = 1;
CREATE INDEX job_key_timed ON job_key (queue, at) WHERE place = 2;
