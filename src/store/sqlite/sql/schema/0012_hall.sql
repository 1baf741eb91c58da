-- 0012_hall.sql - jobs of keys that wait as they came, schema version 12
--
-- A run whose key is -1 has jobs of several keys, which their envelopes tell; no row of job_key counts them. Ready ones stand at rank
-- 2^62 + virtual time * 16 + level. src/store/sqlite/hall.h says when jobs come there and when they are taken apart.

ALTER TABLE queue ADD COLUMN hall INTEGER NOT NULL DEFAULT 0;  -- such jobs that are ready
ALTER TABLE queue ADD COLUMN mates INTEGER NOT NULL DEFAULT 0; -- such jobs that are active
ALTER TABLE gate ADD COLUMN alone INTEGER NOT NULL DEFAULT 0; -- ready jobs of keys that stand by themselves
ALTER TABLE gate ADD COLUMN calm INTEGER NOT NULL DEFAULT 0;  -- none come to the hall before this time, ms
UPDATE gate SET alone = (SELECT coalesce(sum(ready), 0) FROM job_key WHERE job_key.queue = gate.queue);
UPDATE gate SET calm = 9223372036854775807; -- until a trim finds that no limit is left
