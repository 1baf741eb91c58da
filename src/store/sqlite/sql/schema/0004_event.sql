-- 0004_event.sql - events and what handlers say, schema version 4
--
-- A row of `event` holds all events that one transaction made in a queue, as queue/event.h tells; its key is the number of the last of
-- them. While the stream of a queue is on there is always a row, be it one without events, so that its numbers go on.

ALTER TABLE queue ADD COLUMN events INTEGER NOT NULL DEFAULT 0; -- events that its stream keeps; 0: it has none

CREATE TABLE event (
    queue INTEGER NOT NULL,
    last  INTEGER NOT NULL, -- number of the last event
    n     INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    data  BLOB NOT NULL,
    PRIMARY KEY (queue, last)
) STRICT, WITHOUT ROWID;

-- Jobs whose handlers said something.
CREATE TABLE note (
    job     INTEGER PRIMARY KEY, -- seq
    percent INTEGER NOT NULL,    -- -1: never said
    at      INTEGER NOT NULL,    -- when that was
    text    BLOB NOT NULL,
    lines   INTEGER NOT NULL     -- ever written
) STRICT;

CREATE TABLE line (
    job  INTEGER NOT NULL,
    num  INTEGER NOT NULL, -- from 1 on; the oldest are deleted
    at   INTEGER NOT NULL,
    text BLOB NOT NULL,
    PRIMARY KEY (job, num)
) STRICT, WITHOUT ROWID;
