-- 0002_flow.sql - workflows, schema version 2
--
-- A flow is stored once, when it is enqueued. The numbers of its steps are flow.num * 16384 + the number within the flow, so
-- that all steps of a flow lie together. What never changes (step) lies apart from what changes (node): ending a step
-- rewrites some ten bytes, not its body. The job of a step has the id FLOW~NUMBER, and nothing else points here.

CREATE TABLE flow (
    num      INTEGER PRIMARY KEY,
    id       TEXT NOT NULL UNIQUE,
    name     TEXT NOT NULL,
    state    INTEGER NOT NULL,    -- enum lade_flow_state
    steps    INTEGER NOT NULL,    -- without on_failure
    nodes    INTEGER NOT NULL,    -- with it, as the last
    open     INTEGER NOT NULL,    -- last steps that have not passed
    failed   INTEGER NOT NULL,    -- steps that are down under the policy fail
    siblings INTEGER NOT NULL,    -- 1: cancel them when it fails
    created  INTEGER NOT NULL,
    finished INTEGER NOT NULL     -- 0 while it runs
) STRICT;
CREATE INDEX flow_ended ON flow (state, finished) WHERE state <> 0;

CREATE TABLE flow_step (
    num     INTEGER PRIMARY KEY,
    queue   TEXT NOT NULL,
    kind    TEXT NOT NULL,
    level   INTEGER NOT NULL,
    policy  INTEGER NOT NULL,    -- enum lade_flow_policy
    whn     INTEGER NOT NULL,    -- enum lq_when
    when_ms INTEGER NOT NULL,
    deps    BLOB,                -- numbers within the flow, 4 bytes each, little endian; in the order of inputs
    next    BLOB,                -- the steps that have it among their deps
    body    BLOB NOT NULL
) STRICT;

CREATE TABLE flow_node (
    num     INTEGER PRIMARY KEY,
    state   INTEGER NOT NULL,    -- enum lade_flow_step_state
    missing INTEGER NOT NULL,    -- deps that have not passed
    result  BLOB
) STRICT;
