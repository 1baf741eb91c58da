-- 0008_bound.sql - how many jobs may wait in a queue, schema version 8

ALTER TABLE queue ADD COLUMN max_jobs INTEGER NOT NULL DEFAULT 0; -- ready, scheduled and retrying ones together; 0: no bound
ALTER TABLE queue ADD COLUMN on_full INTEGER NOT NULL DEFAULT 0;  -- enum lade_on_full
