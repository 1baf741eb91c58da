-- 0006_schedule.sql - schedules, schema version 6
--
-- A record is two blobs of the engine's (spec: what was set; memo: what has happened), and what the store has to know of it:
-- whether it fires and when it is due. `scheduler` has one row, made with the first schedule: who leads, and the last
-- revision that was given to a record.

CREATE TABLE schedule (
    num      INTEGER PRIMARY KEY,
    id       TEXT NOT NULL UNIQUE,
    state    INTEGER NOT NULL,    -- enum lade_schedule_state
    due      INTEGER NOT NULL,    -- > 0 when it is active (0)
    revision INTEGER NOT NULL,
    spec     BLOB NOT NULL,
    memo     BLOB NOT NULL
) STRICT;
CREATE INDEX schedule_due ON schedule (due, id) WHERE due > 0;

CREATE TABLE scheduler (
    num      INTEGER PRIMARY KEY CHECK (num = 1),
    revision INTEGER NOT NULL,
    holder   TEXT NOT NULL,       -- "" = nobody leads
    name     TEXT NOT NULL,
    fence    INTEGER NOT NULL,
    until    INTEGER NOT NULL,    -- the lease
    seen     INTEGER NOT NULL     -- when a leader last looked
) STRICT;
