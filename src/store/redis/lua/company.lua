-- company.lua - joined behind job.lua: jobs of keys that wait as they came
--
-- While nothing else of a queue is ready and no key is on record (no limit, weight, pause, bucket or job that stands by itself), the jobs of one put are
-- packs like jobs without keys, whatever their keys: in the lists ready:A to ready:I for levels 0 to 8, which are served before all that comes
-- later. Their states have a "k" in front (pack.lua). co counts what came of each key since these lists were empty: at most
-- LQ_TURN_JOBS. Where one leaves its pack its envelope tells its key (FOLD.leave_company). meta.xk is how many wait or run so; meta.ks until when no
-- others join; meta.ka that the next take has to take them apart first.
--
-- Those that came by the inbox (inbox.lua) are no packs but have records of their own, without one of their key; of a lease of such a job the level is the
-- letter, too.
do
local TURN = 16 -- LQ_TURN_JOBS

-- The level of a lease, and whether the job is in company.
function K.level_in(lease)
    local level = match(lease, '^%d+ (.)')
    if level >= 'A' then
        return tostring(byte(level) - 65), true
    end
    return level, false
end

-- An active job with a record of its own leaves company.
function K.leave_active(P, id)
    FOLD.leave_company(P, id, call('HGET', P .. 'jobs', id) or '', 'a')
end

-- It is settled: it leaves unless it has completed.
function K.mate_settled(P, id, completed)
    if completed then
        K.less_company(1)
    else
        K.leave_active(P, id)
    end
end

-- How many of list[1..] ({id, body, key, ...}), which are behind each other, may come to company, and as pairs how many of their keys co then has.
local function admit(P, list, company)
    local ask, at, n_of = {}, {}, {}
    for i = 3, #list, 3 do
        local key = list[i]
        if not at[key] then
            ask[#ask + 1] = key
            at[key], n_of[key] = #ask, 0
        end
    end
    local was = company and fetch('HMGET', P .. 'co', ask, 1, #ask) or {}
    local kv, good = {}, 0
    for i = 3, #list, 3 do
        local key = list[i]
        local n = n_of[key] + (was[at[key]] or 0)
        if n >= TURN then
            break
        end
        n_of[key], good = n_of[key] + 1, i
        kv[2 * at[key] - 1], kv[2 * at[key]] = key, format('%d', n + 1)
    end
    return good, kv
end

-- These, of which co has kv then, come to company. The levels in use.
local function welcome(P, list, n, kv, meta, company, levels)
    if not company or call('EXISTS', P .. 'co') == 0 then
        ops.open_counts(P)
    end
    spread('HSET', P .. 'co', kv, 1, #kv)
    local lists = {}
    for i = 2, n, 3 do
        local level = sub('ABCDEFGHI', level_of(list[i]) + 1, level_of(list[i]) + 1)
        local ids = lists[level]
        if not ids then
            ids = {}
            lists[level] = ids
            levels = ops.open_company(P, nil, meta[1], meta[2], levels, level)
            meta[2] = true
        end
        ids[#ids + 1] = list[i - 1]
    end
    for level, ids in pairs(lists) do
        spread('RPUSH', P .. 'ready:' .. level, ids, 1, #ids)
    end
    call('HINCRBY', P .. 'meta', 'xk', format('%d', n / 3))
    if not company then
        call('HSET', P .. 'meta', 'kp', format('%d', (match(meta[7] or '', '^%d+') or 1) + 1))
    end
    return levels
end

-- Those from `from` on get turns of their own.
local function line_up(P, list, from)
    local kv, keys, ready = {}, {}, {}
    K.key_open(P)
    for i = from, #list, 3 do
        local k, n = #kv, #ready
        kv[k + 1], kv[k + 2], keys[#keys + 1] = list[i], list[i + 2], list[i + 2]
        ready[n + 1], ready[n + 2], ready[n + 3], ready[n + 4] = level_of(list[i + 1]), list[i], list[i + 2], false
    end
    set_fields(P .. 'key', kv, 1, #kv)
    K.key_fetch(keys)
    K.key_ready(P, ready)
    K.key_place()
    gate.rings = 0 -- who empties the inbox has all to do with it
    K.key_flush()
end

-- Jobs of keys out of the inbox, {id, body, key, id, ...}: to company, or to turns of their own. Nothing of keys is in the hands of the caller. The levels in
-- use.
function ops.join(P, list, levels)
    local time = call('TIME')
    now_us = time[1] * 1000000 + time[2]
    now = floor(now_us / 1000)
    local meta = call('HMGET', P .. 'meta', 'v', 'gate', 'klim', 'ks', 'ev', 'max', 'kp')
    local open = tonumber(meta[1]) == FORMAT and not (meta[3] or meta[5] or meta[6]) and tonumber(meta[4] or 0) <= now
    local alone, company, kv, n = false, false, {}, 0
    if open then
        alone, company = ops.look_around(P, levels or '')
    end
    local jobs, good = {}, 0
    for i = 1, #list, 3 do
        n = #jobs
        jobs[n + 1], jobs[n + 2] = list[i], list[i + 1]
    end
    if alone then
        good, kv = admit(P, list, company)
    end
    spread('HSET', P .. 'jobs', jobs, 1, #jobs)
    if good > 0 then
        levels = welcome(P, list, good, kv, meta, company, levels)
    end
    if good < #list then
        line_up(P, list, good + 1)
    end
    return levels
end

-- Up to n ready ones get places of their own, in their order; ghosts: meta.gr. How many.
function K.take_apart(P, letters, n, ghosts)
    local done = 0
    for at = 1, #letters do
        local letter, list = sub(letters, at, at), {}
        local popped = done < n and pop(P, letter, n - done, ghosts) or {}
        for i = 1, #popped do
            local job = popped[i]
            local jobs, keys = {}, {}
            if type(job) == 'string' then
                local key = K.key_of(call('HGET', P .. 'jobs', job) or '') or ''
                local k = #list
                list[k + 1], list[k + 2], list[k + 3], list[k + 4] = byte(letter) - 65, job, key, false
                set_fields(P .. 'key', {job, key}, 1, 2)
                K.less_company(1)
                done = done + 1
            end
            for place = job.from or 0, job.from and job.to - 1 or -1 do
                local id, body = id_at(job.p.name, place), body_of(P, job.p, place)
                local key, k = K.key_of(body), #jobs -- the put has looked: there is one
                jobs[k + 1], jobs[k + 2], keys[k + 1], keys[k + 2] = id, body, id, key
                k = #list
                list[k + 1], list[k + 2], list[k + 3], list[k + 4] = byte(letter) - 65, id, key, false
                done = done + 1
            end
            spread('HSET', P .. 'jobs', jobs, 1, #jobs)
            set_fields(P .. 'key', keys, 1, #keys)
        end
        K.drop_packed(P, popped)
        K.key_ready(P, list)
    end
    return done
end
end
