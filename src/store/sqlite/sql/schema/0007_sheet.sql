-- 0007_sheet.sql - results that were settled together lie together, schema version 7
--
-- n lengths of 4 bytes each, little endian, then as many results. A job's result is job.result, or else here: src/store/sqlite/sheet.h.

CREATE TABLE sheet (
    job  INTEGER PRIMARY KEY,  -- number of the first of n jobs
    n    INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;
