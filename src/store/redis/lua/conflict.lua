-- conflict.lua - an enqueue that finds its unique key held, and wants more than to be told; in front of put.lua
--
-- P uf has of such keys since when they are held, whether by a trailing job (0|1), and the holder: it says nothing when another
-- job holds the key by now.
local function is_waiting(P, id)
    if call('HEXISTS', P .. 'fin', id) == 1 or call('HEXISTS', P .. 'lease', id) == 1 then
        return nil
    end
    local score, state = call('ZSCORE', P .. 'scheduled', id), 'scheduled'
    if not score then
        score, state = call('ZSCORE', P .. 'retrying', id), 'retrying'
    end
    if score then
        return state, floor(tonumber(score))
    end
    return call('HEXISTS', P .. 'jobs', id) == 1 and 'ready' or nil
end

local function want_conflicts(P)
    for _, hash in ipairs({'fin', 'lease', 'ghost', 'since', 'uk', 'uf'}) do
        call('HLEN', P .. hash)
    end
    for _, set in ipairs({'scheduled', 'retrying', 'ttl'}) do
        call('ZCARD', P .. set)
    end
    for level = 0, 8 do
        want(P .. 'ready:' .. level, 'list')
    end
end

local function note_lock(P, key, first, trails, id)
    call('HSET', P .. 'uf', key, format('%.0f %d ', first, trails) .. id)
end

-- Keys that ran out by themselves leave this behind.
local function forget_locks(P)
    if call('HLEN', P .. 'uf') > 0 then
        local old = call('ZRANGE', P .. 'ttl', '-inf', now, 'BYSCORE', 'LIMIT', 0, SLICE)
        spread('HDEL', P .. 'uf', old, 1, #old)
    end
    call('ZREMRANGEBYSCORE', P .. 'ttl', '-inf', now)
end

local function due_of(sp)
    if not sp or sp.kind == '0' then
        return nil
    end
    local due = tonumber(sp.ms) + (sp.kind == '1' and now or 0)
    return due > now and due or nil
end

-- Puts a job that stands nowhere where it waits; gives what to ring for: jobs ready, when the next is due.
local function settle_in(p, id, level, due, key, goes_first)
    local P = p.P
    if due and due > now then
        local was = first_due(P)
        call('ZADD', P .. 'scheduled', due + level / 16, id)
        if key then
            K.key_count(key, 'waiting', 1)
        end
        return due < (was or huge) and 1 or 0
    end
    if key then
        K.key_ready(P, {level, id, key, goes_first})
    else
        p.lists[level] = p.lists[level] or {}
        call('RPUSH', P .. 'ready:' .. level, id)
    end
    note_since(P, {id}, 1, 1)
    EVENT.tell_apart(P, EVENT.WAITING, id)
    return 1
end

local function become(p, item, holder, state, due)
    local P, level = p.P, level_of(item.body)
    local old = call('HGET', P .. 'jobs', holder)
    local was = level_of(old)
    call('HSET', P .. 'jobs', holder, item.body)
    if K.max_bytes(p.meta[7]) then
        K.add_bytes(P, #item.body - #old)
    end
    if state == 'ready' and level == was and not (due and due > now) then
        return 0
    end
    local key, goes_first = p.keyed and gate and call('HGET', P .. 'key', holder) or nil, false
    if state == 'ready' then
        if key then
            call('ZREM', P .. 'kz:' .. key, holder)
            K.key_count(key, 'ready', -1)
        else
            haunt(P, was, holder)
        end
        forget_since(P, {holder}, 1, 1)
    else
        call('ZREM', P .. state, holder)
        if key then
            K.key_count(key, 'waiting', -1)
            goes_first = K.comes_back(P, holder, key)
        end
    end
    return settle_in(p, holder, level, due, key, goes_first)
end

-- One more job, at the end of the window, which goes on from there as this job's.
local function trail(p, item, due)
    local P, sp, id = p.P, item.sp, item.id
    local till = due + tonumber(sp.ttl)
    call('HSET', P .. 'jobs', id, item.body)
    call('SET', P .. 'u:' .. sp.key, id, 'PX', max(till - now, 1))
    call('ZADD', P .. 'ttl', till, sp.key)
    set_fields(P .. 'uk', {id, '2' .. sp.key}, 1, 2)
    note_lock(P, sp.key, due, 1, id)
    call('HINCRBY', P .. 'meta', 'enqueued', 1)
    if K.max_bytes(p.meta[7]) then
        K.add_bytes(P, #item.body)
    end
    return settle_in(p, id, level_of(item.body), due)
end

-- Decides about one; gives its outcome (0 added, 1 duplicate, 9 replaced), the holder, and what to ring for.
local function meet(p, item)
    local P, sp = p.P, item.sp
    local holder = call('GET', P .. 'u:' .. sp.key)
    if not holder then -- cannot be: it was there in this very step
        return 1, item.id, 0
    end
    local first, trails, of = match(call('HGET', P .. 'uf', sp.key) or '', '^(%d+) (%d) (.*)$')
    if of ~= holder then
        first, trails = nil, '0'
    end
    local state, at
    if sub(call('HGET', P .. 'uk', holder) or '', 2) == sp.key then -- else another has the id of the holder, which is gone
        state, at = is_waiting(P, holder)
    end
    if sp.mode == 't' then
        local till = call('ZSCORE', P .. 'ttl', sp.key)
        if till and not (trails == '1' and state) then
            return 0, '', trail(p, item, tonumber(till))
        end
        if not till or trails ~= '1' then
            return 1, holder, 0
        end
        return 9, holder, become(p, item, holder, state, at)
    end
    if not state then
        return 1, holder, 0
    end
    local due = due_of(sp)
    if sp.bound > 0 then
        due = min(due or now, (first and tonumber(first) or now) + sp.bound)
    end
    return 9, holder, become(p, item, holder, state, due)
end
