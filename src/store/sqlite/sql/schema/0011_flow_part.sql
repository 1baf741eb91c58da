-- 0011_flow_part.sql - workflows in parts, schema version 11
--
-- What never changes of the nodes of a flow is one row for some dozen of them (flow_part), what changes three bytes for each, in
-- flow_mark under the part's number. The bytes: src/store/sqlite/flow_pack.h.
-- Numbers are flow.num * 16384 + the number within the flow, as before: here of a part's first node.
--
-- flow_step and flow_node are emptied into these by src/store/sqlite/flow_convert.c, which then drops them.

ALTER TABLE flow ADD COLUMN parts INTEGER NOT NULL DEFAULT 0;   -- rows of flow_part
ALTER TABLE flow ADD COLUMN results INTEGER NOT NULL DEFAULT 0; -- 1: flow_result has, or had, some of it

CREATE TABLE flow_part (
    num  INTEGER PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;

CREATE TABLE flow_mark (
    num  INTEGER PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;

CREATE TABLE flow_result (
    num    INTEGER PRIMARY KEY, -- of the node
    result BLOB NOT NULL
) STRICT;
