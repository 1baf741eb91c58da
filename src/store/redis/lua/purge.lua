-- purge.lua - jobs of one state, never active -> gone
--
-- KEYS  meta
-- ARGV  state, most
-- Answers {removed, more (0|1)}.

-- Tells the flows of those jobs that they are gone, those that are of one.
local function tell(P, ids)
    flow_begin(P)
    for i = 1, #ids do
        local job = ids[i]
        if type(job) == 'string' and find(job, '~', 1, true) then
            flow_ended(job, '4')
        elseif type(job) == 'table' and byte(job.p.name, -1) == 126 then
            for place = job.from, job.to - 1 do
                flow_ended(id_at(job.p.name, place), '4')
            end
        end
    end
end

-- Ready jobs of keys, at most so many; how many.
local function purge_keyed(P, most, bounded)
    local n = 0
    for _, set in ipairs({'kring', 'ktime', 'kpark'}) do
        local keys = most > n and call('ZRANGE', P .. set, 0, SLICE) or {}
        for i = 1, #keys do
            local popped, ids = most > n and call('ZPOPMIN', P .. 'kz:' .. keys[i], min(most - n, SLICE)) or {}, {}
            for j = 1, #popped, 2 do
                ids[#ids + 1] = popped[j]
            end
            K.add_bytes(P, bounded and -K.weigh(P, ids, 1, #ids) or 0)
            drop(P, ids, 1, #ids)
            K.key_count(keys[i], 'ready', -#ids)
            n = n + #ids
        end
    end
    return n
end

local function op_purge(keys, argv)
    begin()
    local P = prefix(keys[1])
    local state, most = argv[1], tonumber(argv[2])
    local meta = call('HMGET', P .. 'meta', 'v', 'levels', 'gr', 'gc', 'xc', 'gate', 'max')
    check_format(meta[1])
    local n, bounded = 0, K.max_bytes(meta[7])
    heed_all(P) -- they look when this is done
    local levels, keyed = meta[2] or '', false
    if state == 'ready' then
        keyed = select(3, drain(P, levels))
        levels = call('HGET', P .. 'meta', 'levels') or ''
    end
    K.begin_behind(P, meta[6], keyed)
    if state == 'ready' then
        local ghosts = tonumber(meta[3] or 0)
        for i = 1, #levels do
            while n < most do
                local popped, got = pop(P, sub(levels, i, i), min(most - n, SLICE), ghosts)
                if got == 0 then
                    break
                end
                K.add_bytes(P, bounded and -K.weigh_popped(P, popped) or 0)
                drop_popped(P, popped, false, sub(levels, i, i))
                tell(P, popped)
                n = n + got
            end
        end
        local now_are = call('HMGET', P .. 'meta', 'gr', 'xr') -- groups of the inbox count there since drain
        local left = count_ready(P, levels, now_are[1], now_are[2])
        if gate then
            n = n + purge_keyed(P, most - n, bounded)
            K.key_flush()
            left = left + tonumber(call('HGET', P .. 'meta', 'kr') or 0)
        end
        flush(P)
        flow_flush()
        return {n, left > 0 and 1 or 0}
    elseif state == 'completed' then
        local count = call('LLEN', P .. 'completed') - tonumber(meta[4] or 0) + tonumber(meta[5] or 0)
        n = keep_completed(P, count, tonumber(meta[4] or 0), 0, most)
        flush(P)
        return {n, count > n and 1 or 0}
    end
    local ids = {}
    if state == 'scheduled' or state == 'retrying' then
        ids = call('ZRANGE', P .. state, 0, most - 1)
        K.add_bytes(P, bounded and -K.weigh(P, ids, 1, #ids) or 0)
    end
    if gate and #ids > 0 then
        local keys = K.keys_of(P, ids, 1, #ids)
        for i = 1, #keys do
            if keys[i] then
                K.key_count(keys[i], 'waiting', -1)
                K.comes_back(P, ids[i], keys[i])
            end
        end
        K.key_flush()
    end
    n = keep_set(P, state, 0, most)
    tell(P, ids)
    flow_flush()
    return {n, call('ZCARD', P .. state) > 0 and 1 or 0}
end
