-- settle.lua - active -> completed | retrying | scheduled | ready | dead | cancelled | gone, for n leases of one queue
--
-- KEYS  meta
-- ARGV  client, tag of the answer, repeated (0|1), ms the answer is remembered, completed kept, dead kept,
--       n ids, groups, n special, n doubtful tags, n runs; the doubtful tags; the ids; for each group of ids with one fence: fence,
--       length; for each run: id of its first, n, fence, results as pack.lua keeps them (completed jobs whose ids follow each other;
--       to n are added 10000 when all of them but the last go on, 20000 when the last does: settle.h);
--       for each special of the ids: index, to, delay ms (of a completed one: how long its result is kept apart from it, or 0), reason, failed (0|1), history given (0|1), history, result,
--       class, kind and text of a death with NULs between, or ""
-- Answers the indices that are stale, those of jobs in runs counted on behind the ids; and as -1 - index those that were to go on and
-- do not. No two items have the same id and fence. Runs are settled first: what goes on may end otherwise.
--
-- What was settled is remembered under client and tag. A repeat of this call, or a later call of a client whose earlier
-- one (a doubtful tag) ended without an answer, so learns that the lease is gone because it settled it.
local function read_special(argv, at, n)
    local special = {}
    for _ = 1, n do
        special[tonumber(argv[at + 1])] = {to = argv[at + 2], delay = argv[at + 3], reason = argv[at + 4],
                                           failed = argv[at + 5] == '1', history = argv[at + 6] == '1' and argv[at + 7],
                                           result = argv[at + 8], death = argv[at + 9]}
        at = at + 9
    end
    return special
end

-- Completed jobs; ghosts and extra_done: meta.gc and xc of before; n_kept: entries of before.
local function write_done(n_kept, ghosts, extra_done)
    call('HINCRBY', P .. 'meta', 'completed', n_done + n_in_packs)
    if keep_done <= 0 then
        return drop(P, done, 1, n_done)
    end
    release(P, done, 1, n_done, false)
    spread('RPUSH', P .. 'completed', entries, 1, n_entries)
    local count = n_kept - ghosts + extra_done + n_done + n_in_packs
    keep_completed(P, count, ghosts, keep_done, n_done + n_in_packs + SLICE)
end

local look_at_keys, write_ends
do
-- Jobs of keys to the head of theirs; the others.
local function hand_back_keyed(level, list)
    local plain, back = {}, {}
    for i = 1, #list do
        if keyed[list[i]] then
            local n = #back
            back[n + 1], back[n + 2], back[n + 3], back[n + 4] = level, list[i], keyed[list[i]], true
        else
            plain[#plain + 1] = list[i]
        end
    end
    K.key_ready(P, back)
    return plain
end

-- Those of keys keep their place: list is score, id, and so on.
local function delay_keyed(list)
    local away = {}
    for i = 2, #list, 2 do
        if keyed[list[i]] then
            K.key_count(keyed[list[i]], 'waiting', 1)
            K.key_count(keyed[list[i]], 'away', 1)
            away[#away + 1] = list[i]
        end
    end
    spread('SADD', P .. 'kaway', away, 1, #away)
end

local function throttle_all(list)
    if not gate then
        K.key_open(P, false)
    end
    if tonumber(call('HGET', P .. 'meta', 'xk') or 0) > 0 then
        call('HSET', P .. 'meta', 'ka', 1) -- company.lua
    end
    for i = 1, #list do
        K.throttle(keyed and keyed[list[i][1]], list[i][2])
    end
end

-- All settled jobs leave their keys' active ones.
function look_at_keys()
    local keys = K.keys_of(P, settled, 1, n_settled)
    keyed = {}
    for i = 1, #keys do
        if keys[i] then
            keyed[settled[i]] = keys[i]
            K.key_count(keys[i], 'active', -1)
        end
    end
    if gate.lim.c > 0 then
        gate.rings = gate.rings + n_settled + n_in_packs
    end
end

-- They wait again.
local function weigh_back(e)
    local ids = {}
    for _, list in ipairs({e.retrying, e.scheduled}) do
        for i = 2, #list, 2 do
            ids[#ids + 1] = list[i]
        end
    end
    local n = K.weigh(P, ids, 1, #ids)
    for _, list in pairs(e.ready) do
        n = n + K.weigh(P, list, 1, #list)
    end
    K.add_bytes(P, n)
end

function write_ends(keep_dead, paused, was_due)
    local e = ends
    if e.n_dead > 0 then
        call('HINCRBY', P .. 'meta', 'dead', e.n_dead)
    end
    if e.n_failed > 0 then
        call('HINCRBY', P .. 'meta', 'failed', e.n_failed)
    end
    release(P, e.ended, 1, #e.ended, false)
    spread('ZADD', P .. 'dead', e.dead, 1, #e.dead)
    spread('ZADD', P .. 'cancelled', e.cancelled, 1, #e.cancelled)
    if #e.dead > 0 then
        keep_set(P, 'dead', keep_dead, #e.dead + SLICE)
    end
    if #e.cancelled > 0 then
        keep_set(P, 'cancelled', keep_done, #e.cancelled + SLICE)
    end
    drop(P, e.gone, 1, #e.gone)
    spread('ZADD', P .. 'retrying', e.retrying, 1, #e.retrying)
    spread('ZADD', P .. 'scheduled', e.scheduled, 1, #e.scheduled)
    for level, list in pairs(e.ready) do
        note_since(P, list, 1, #list)
        list = keyed and hand_back_keyed(level, list) or list
        spread('LPUSH', P .. 'ready:' .. level, list, 1, #list)
    end
    if #e.retrying + #e.scheduled + e.n_ready > 0 and K.max_bytes(call('HGET', P .. 'meta', 'max')) then
        weigh_back(e)
    end
    if keyed then
        delay_keyed(e.retrying)
        delay_keyed(e.scheduled)
    end
    if e.throttled then
        throttle_all(e.throttled)
    end
    for k = 1, e.apart and #e.apart or 0 do -- rows.lua reads it
        call('SET', P .. 't:' .. e.apart[k][1], now .. ' ' .. e.apart[k][3], 'PX', e.apart[k][2])
    end
    if not paused then
        ring(P, e.n_ready > 0 and e.n_ready or e.soonest and e.soonest < (was_due or huge) and 1 or 0)
    end
end
end

local function reset(argv, n_special, n_doubtful)
    keep_done = tonumber(argv[5])
    known_key, tags, known = P .. 'set:' .. argv[1] .. ':', nil, nil
    stale, held, settled, done, entries, fin, remembered, records = {}, {}, {}, {}, {}, {}, {}, {}
    n_settled, n_done, n_fin, n_in_packs, n_entries = 0, 0, 0, 0, 0
    n_begun = 0
    ends = n_special > 0 and new_ends() or nil
    if argv[3] == '1' or n_doubtful > 0 then
        tags = {argv[3] == '1' and argv[2] or nil}
        for i = 1, n_doubtful do
            tags[#tags + 1] = argv[11 + i]
        end
    end
end

-- The library stays, so what may be large goes with the call. Gives its answer.
local function let_go()
    local answer = stale
    stale, settled, done, entries, fin, remembered, known, ends, keyed = nil, nil, nil, nil, nil, nil, nil, nil, nil
    details, heeded, extracted = nil, nil, nil
    return answer
end

-- They lie behind all else, from argv[at + 1] on: two for each id, one for each run.
local function read_details(argv, ids_at, n, at, n_runs, on)
    tell_begin(on)
    details = nil
    if on and #argv > at then
        details = {runs = {}}
        for k = 1, n do
            details[argv[ids_at + k]] = {argv[at + 2 * k - 1], argv[at + 2 * k]}
        end
        for k = 1, n_runs do
            details.runs[k] = argv[at + 2 * n + k]
        end
    end
end

-- carried: what the caller has settled already, to be remembered with this.
local function op_settle(keys, argv, carried)
    begin()
    P = prefix(keys[1])
    local n, n_groups, n_special, n_doubtful = tonumber(argv[7]), tonumber(argv[8]), tonumber(argv[9]), tonumber(argv[10])
    local n_runs = tonumber(argv[11])
    local ids_at = 11 + n_doubtful
    local groups_at = ids_at + n
    local runs_at = groups_at + 2 * n_groups
    reset(argv, n_special, n_doubtful)
    remembered = carried or remembered
    local special = read_special(argv, runs_at + 4 * n_runs, n_special)

    -- Reads all that will be written, so that a foreign key stops us here.
    local leases = fetch('HMGET', P .. 'lease', argv, ids_at + 1, ids_at + n)
    local meta = call('HMGET', P .. 'meta', 'v', 'paused', 'gc', 'xc', 'wt', 'gate', 'ev')
    check_format(meta[1])
    heeded = meta[5] and {} or nil
    K.key_begin(P, meta[6])
    keyed = nil
    read_details(argv, ids_at, n, runs_at + 4 * n_runs + 9 * n_special, n_runs, meta[7])
    extracted = not telling and not note_end and {} or nil
    call('HLEN', P .. 'jobs')
    call('HLEN', P .. 'held')
    local n_kept = call('LLEN', P .. 'completed')
    local was_due
    if n_special > 0 or note_end then
        has_marks = call('HLEN', P .. 'mark') > 0
        call('HLEN', P .. 'fin')
        call('HLEN', P .. 'hist')
        was_due = first_due(P)
        call('ZCARD', P .. 'dead')
        call('ZCARD', P .. 'cancelled')
    else
        look_plain(P)
        has_marks = not plain and call('HLEN', P .. 'mark') > 0
    end

    local i = n
    for run = runs_at + 1, runs_at + 4 * n_runs, 4 do
        local number = tonumber(argv[run + 1])
        local n_jobs, on, said = number % 10000, floor(number / 10000), details and details.runs[(run - runs_at + 3) / 4]
        if said and n_jobs == 1 then -- for one with a record of its own
            details[argv[run]] = {'', said}
        end
        if on > 0 then
            settle_ahead(i, argv[run], n_jobs, argv[run + 2], argv[run + 3], said, on % 2 == 1, on >= 2)
        else
            settle_run(i, argv[run], n_jobs, argv[run + 2], argv[run + 3], said)
        end
        i = i + n_jobs
    end
    i = 0
    for group = groups_at + 1, groups_at + 2 * n_groups, 2 do
        local size = tonumber(argv[group + 1])
        settle_group(argv, ids_at, i, size, argv[group], leases, special)
        i = i + size
    end
    if n_settled + n_in_packs == 0 then
        if carried then
            call('SET', known_key .. argv[2], concat(remembered, '\0'), 'PX', argv[4])
        end
        return let_go()
    end

    if gate then
        look_at_keys()
    end
    spread('HSET', P .. 'fin', fin, 1, n_fin) -- the first write; refuses a foreign key itself
    spread('HSET', P .. 'jobs', extracted or {}, 1, extracted and #extracted or 0)
    spread('HDEL', P .. 'lease', settled, 1, n_settled)
    for worker, k in pairs(held) do
        if k ~= 0 then
            call('HINCRBY', P .. 'held', worker, -k)
        end
    end
    if has_marks then
        spread('HDEL', P .. 'mark', settled, 1, n_settled)
    end
    if ends then
        set_fields(P .. 'hist', ends.hist, 1, #ends.hist)
    end
    if n_done + n_in_packs > 0 then
        write_done(n_kept, tonumber(meta[3] or 0), tonumber(meta[4] or 0))
    end
    if ends then
        write_ends(tonumber(argv[6]), meta[2], was_due)
    end
    K.key_flush()
    flush(P)
    tell_end(P)
    if heeded then
        heed(P, settled)
        heed(P, heeded)
    end
    if n_begun > 0 then
        call('HINCRBY', P .. 'meta', 'enqueued', n_begun)
    end
    if note_end then
        tell_flows(P)
        flow_retain(keep_done, tonumber(argv[6]))
    end
    call('SET', known_key .. argv[2], concat(remembered, '\0'), 'PX', argv[4])
    return let_go()
end
ops[note_end and 'flow_settle' or 'settle'] = op_settle
