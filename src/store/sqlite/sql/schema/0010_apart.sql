-- 0010_apart.sql - results with a time of their own, schema version 10

CREATE TABLE apart (
    num     INTEGER PRIMARY KEY,
    queue   INTEGER NOT NULL,
    id      TEXT NOT NULL,    -- of the job, which may be gone
    at      INTEGER NOT NULL, -- when it completed
    expires INTEGER NOT NULL,
    data    BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX apart_id ON apart (id, queue);
CREATE INDEX apart_expires ON apart (expires);
