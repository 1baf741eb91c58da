-- count.lua - the numbers of one queue
--
-- KEYS  meta
-- Answers {} for a queue that is not there, or {now, scheduled, ready, active, retrying, completed, dead, cancelled, paused,
-- enqueued, completed ever, failed ever, dead ever, live workers, held, then of the first job of each ready list: id, and since when or 0}

-- The id of an entry that stands for a job, and since when it waits, or nil.
local function true_id(P, ghosts, level, entry)
    local plus = find(entry, '+', 1, true)
    if plus then -- of a pack: pack.lua
        local states = call('HGET', P .. 'pack', match(entry, '^[^~]*~') or sub(entry, 1, 24) .. '+')
        return states and sub(entry, 1, plus - 1), states and match(states, ' r(%d+);')
    end
    return (ghosts <= 0 or call('HEXISTS', P .. 'ghost', level .. entry) == 0) and entry
end

local function op_count(keys, argv)
    begin()
    local P = prefix(keys[1])
    local meta = call('HMGET', P .. 'meta', 'v', 'levels', 'gr', 'gc', 'paused', 'enqueued', 'completed', 'failed', 'dead', 'xr', 'xa', 'xc', 'kr', 'gate')
    if not meta[1] then
        return {}
    end
    check_format(meta[1])
    local levels, ghosts = meta[2] or '', tonumber(meta[3] or 0)
    local ready = 0
    for i = 1, #levels do
        ready = ready + call('LLEN', P .. 'ready:' .. sub(levels, i, i))
    end
    local _, inbox, n_inbox = look_into_inbox(P)
    n_inbox = n_inbox or 0
    local extra_ready, extra_active, extra_done = tonumber(meta[10] or 0), tonumber(meta[11] or 0), tonumber(meta[12] or 0)
    local out = {now, call('ZCARD', P .. 'scheduled'), ready - ghosts + extra_ready + tonumber(meta[13] or 0) + n_inbox,
                 max(call('HLEN', P .. 'lease') - 1, 0) + extra_active,
                 call('ZCARD', P .. 'retrying'), call('LLEN', P .. 'completed') - tonumber(meta[4] or 0) + extra_done,
                 call('ZCARD', P .. 'dead'), call('ZCARD', P .. 'cancelled'), meta[5] and 1 or 0,
                 tonumber(meta[6] or 0) + n_inbox, tonumber(meta[7] or 0), tonumber(meta[8] or 0), tonumber(meta[9] or 0),
                 call('ZCOUNT', P .. 'workers', now, '+inf'),
                 tonumber(match(meta[14] or '', '^%S+ %S+ %S+ %S+ (%S+)') or 0)}

    local turns = meta[14] and call('ZRANGE', P .. 'kring', 0, 0) or {}
    if meta[14] and not turns[1] then -- all are held: of some of them
        turns = call('ZRANGE', P .. 'ktime', 0, 31)
        for _, key in ipairs(call('ZRANGE', P .. 'kpark', 0, 31)) do
            turns[#turns + 1] = key
        end
    end
    for i = 1, #turns do
        local first = call('ZRANGE', P .. 'kz:' .. turns[i], 0, 0)[1]
        if first then
            out[#out + 1] = first
            out[#out + 1] = tonumber(call('HGET', P .. 'since', first) or 0)
        end
    end
    for i = 1, #levels do
        local level = sub(levels, i, i)
        local heads = call('LRANGE', P .. 'ready:' .. level, 0, 31)
        for j = 1, #heads do
            local id, since = true_id(P, ghosts, level, heads[j])
            if id then
                out[#out + 1] = id
                out[#out + 1] = tonumber(since or call('HGET', P .. 'since', id) or 0)
                break
            end
        end
    end
    for _, ids in pairs(inbox or {}) do
        out[#out + 1] = ids[1]
        out[#out + 1] = 0
    end
    return out
end
