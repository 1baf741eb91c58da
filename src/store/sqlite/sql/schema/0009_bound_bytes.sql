-- 0009_bound_bytes.sql - how many bytes the jobs that wait in a queue may have, schema version 9

ALTER TABLE queue ADD COLUMN max_bytes INTEGER NOT NULL DEFAULT 0; -- of ready, scheduled and retrying jobs together; 0: no bound
ALTER TABLE queue ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;     -- that wait now, exact while max_bytes is not 0
