-- change.lua - another body for a job, or its retry or removal, by who has seen it; behind act.lua
--
-- KEYS  meta
-- ARGV  verb (0 edit, 1 retry, 2 remove), then of each job: id, ms it must have died at or 0, body or ""
-- Answers for each id 0 done, 1 not found, 2 wrong state.
local longest

-- In place: its pack's bodies, or its own record.
local function set_body(id, body, waits)
    longest = max(longest, #body)
    if bounded and waits then
        K.add_bytes(P, #body - (p and K.weigh_run(P, p, place, place + 1) or K.weigh(P, {id}, 1, 1)))
    end
    if not p then
        return call('HSET', P .. 'jobs', id, body)
    end
    local key = bodies_key(P, p.name)
    local all = call('GET', key)
    local first, n = struct.unpack('<I2I2', all)
    local k, ends, base, grown = place - first, {}, 8 + 4 * n, 0
    for i = 0, n - 1 do
        ends[i] = struct.unpack('<I4', all, 9 + 4 * i)
    end
    local from, to = k > 0 and ends[k - 1] or 0, ends[k]
    grown = #body + 1 - (to - from)
    local heads = {}
    for i = 0, n - 1 do
        heads[i + 1] = struct.pack('<I4', ends[i] + (i >= k and grown or 0))
    end
    call('SET', key, sub(all, 1, 8) .. concat(heads) .. sub(all, base + 1, base + from) .. body .. '\0' ..
         sub(all, base + to + 1))
end

local function change_one(id, died, body, edits)
    local state, level, where
    state, level, where, p, place, is = find_job(id)
    key, goes_first = gate and state and call('HGET', P .. 'key', id) or nil, false
    if not state then
        return ABSENT
    end
    if died ~= '0' and (state ~= 'd' or match(where, '^... (%d+) ') ~= died) then
        return WRONG
    end
    if edits then
        if state == 'a' or state == 'c' then
            return WRONG
        end
        set_body(id, body, state == 'r' or state == 's' or state == 't')
        return DONE, state
    end
    if verb == '3' then
        return remove(id, state, level, where), state
    end
    local outcome = retry(id, state, level)
    if outcome == DONE and body ~= '' then
        p = nil -- it has a record of its own now
        set_body(id, body, true)
    end
    return outcome, state
end

local function op_change(keys, argv)
    local items, edits, revived, out, flow_items = argv, argv[1] == '0', 0, {}, {}
    begin()
    P, verb, longest = prefix(keys[1]), argv[1] == '2' and '3' or '0', 0
    local meta = call('HMGET', P .. 'meta', 'v', 'paused', 'big', 'gate', 'ev', 'levels', 'max')
    check_format(meta[1])
    bounded = K.max_bytes(meta[7])
    K.begin_behind(P, meta[4], select(3, drain(P, meta[6])))
    tell_begin(meta[5])
    want_acts()
    for i = 2, #items, 3 do
        local outcome, was = change_one(items[i], items[i + 1], items[i + 2], edits)
        out[#out + 1] = outcome
        revived = revived + (outcome == DONE and argv[1] == '1' and 1 or 0)
        if outcome == DONE and not edits and find(items[i], '~', 1, true) then
            flow_items[#flow_items + 1] = {items[i], was}
        end
    end
    K.key_flush()
    flush(P)
    if longest > 65536 and longest > tonumber(meta[3] or 0) then
        call('HSET', P .. 'meta', 'big', longest)
    end
    tell_end(P)
    tell_acts(flow_items)
    if revived > 0 and not meta[2] then
        ring(P, revived)
    end
    return out
end
