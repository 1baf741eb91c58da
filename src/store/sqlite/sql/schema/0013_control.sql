-- 0013_control.sql - orders to workers and what these tell of themselves, schema version 13
--
-- A row is made by the first of either and goes with its worker. src/queue/control_store.h says what the fields are.

CREATE TABLE control (
    worker INTEGER PRIMARY KEY,           -- worker.num
    wish   INTEGER NOT NULL DEFAULT 0,    -- enum lade_worker_order, 0 = none
    asked  INTEGER NOT NULL DEFAULT 0,    -- how often for stacks
    made   INTEGER NOT NULL DEFAULT 0,    -- up to which asking `stacks` answers
    about  BLOB NOT NULL DEFAULT x'',
    stacks BLOB NOT NULL DEFAULT x'',
    at     INTEGER NOT NULL DEFAULT 0     -- of the stacks, ms
) STRICT;
CREATE TRIGGER control_of_gone AFTER DELETE ON worker BEGIN
    DELETE FROM control WHERE worker = OLD.num;
END;
