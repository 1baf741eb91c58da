-- purge.lua - jobs of one state, never active -> gone
--
-- KEYS  meta
-- ARGV  state, most
-- Answers {removed, more (0|1)}.

-- Tells the flows of those jobs that they are gone, those that are of one.
local function tell(P, ids)
    flow_begin(P)
    for i = 1, #ids do
        if type(ids[i]) == 'string' and find(ids[i], '~', 1, true) then
            flow_ended(ids[i], '4')
        end
    end
end

local function op_purge(keys, argv)
    begin()
    local P = prefix(keys[1])
    local state, most = argv[1], tonumber(argv[2])
    local meta = call('HMGET', P .. 'meta', 'v', 'levels', 'gr', 'gc', 'xr', 'xc')
    check_format(meta[1])
    local n = 0
    heed_all(P) -- they look when this is done
    if state == 'ready' then
        local levels, ghosts = meta[2] or '', tonumber(meta[3] or 0)
        for i = 1, #levels do
            while n < most do
                local popped, got = pop(P, sub(levels, i, i), min(most - n, SLICE), ghosts)
                if got == 0 then
                    break
                end
                drop_popped(P, popped)
                tell(P, popped)
                n = n + got
            end
        end
        local left = count_ready(P, levels, call('HGET', P .. 'meta', 'gr'), meta[5])
        flush(P)
        flow_flush()
        return {n, left > 0 and 1 or 0}
    elseif state == 'completed' then
        local count = call('LLEN', P .. 'completed') - tonumber(meta[4] or 0) + tonumber(meta[6] or 0)
        n = keep_completed(P, count, tonumber(meta[4] or 0), 0, most)
        flush(P)
        return {n, count > n and 1 or 0}
    end
    local ids = {}
    if state == 'scheduled' or state == 'retrying' then
        ids = call('ZRANGE', P .. state, 0, most - 1)
    end
    n = keep_set(P, state, 0, most)
    tell(P, ids)
    flow_flush()
    return {n, call('ZCARD', P .. state) > 0 and 1 or 0}
end
