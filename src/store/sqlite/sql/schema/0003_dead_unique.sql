-- 0003_dead_unique.sql - the dead by class, and what replacing and trailing need of a held key; schema version 3
--
-- Only dead jobs have a row in `death`. It and the count of its class change in the step that moves the job.

CREATE TABLE dead_class (
    num   INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    name  TEXT NOT NULL,       -- fingerprint, reason, or 'other'
    kind  TEXT NOT NULL,       -- of the death that made it, for show
    text  BLOB NOT NULL,
    n     INTEGER NOT NULL,    -- exact; a class without a job is deleted
    first INTEGER NOT NULL,    -- deaths since it was made
    last  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX dead_class_name ON dead_class (queue, name);

CREATE TABLE death (
    job   INTEGER PRIMARY KEY, -- seq
    class INTEGER NOT NULL,
    at    INTEGER NOT NULL
) STRICT;
CREATE INDEX death_order ON death (class, at, job);

-- What died before there were classes.
INSERT INTO dead_class (queue, name, kind, text, n, first, last)
SELECT queue, 'other', '', x'', sum(n), min(at), max(at) FROM run WHERE state = 5 GROUP BY queue;
INSERT INTO death (job, class, at)
SELECT j.seq, c.num, r.at FROM run r
JOIN job j ON j.seq BETWEEN r.job AND r.job + r.n - 1
JOIN dead_class c ON c.queue = r.queue WHERE r.state = 5;

ALTER TABLE lock ADD COLUMN first INTEGER NOT NULL DEFAULT 0;  -- when it was taken, or its window begins
ALTER TABLE lock ADD COLUMN trails INTEGER NOT NULL DEFAULT 0; -- 1: the holder is a trailing job
-- A key until done or start is held as long as its job is in those states.
UPDATE lock SET expires = 9223372036854775807 WHERE until <> 2;
