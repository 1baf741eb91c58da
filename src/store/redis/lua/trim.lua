-- trim.lua - completed | cancelled | dead -> gone, beyond age or number
--
-- KEYS  one meta for each lane
-- ARGV  most, then ms and number kept of the completed (and apart of the cancelled), and of the dead
-- Answers {removed, more (0|1)}.
local most, n = tonumber(ARGV[1]), 0
local done_age, done_count = tonumber(ARGV[2]), tonumber(ARGV[3])
local dead_age, dead_count = tonumber(ARGV[4]), tonumber(ARGV[5])

local function trim_set(P, set, age, count)
    local old = call('ZCOUNT', P .. set, '-inf', format('(%.0f', now - age))
    local over = max(old, call('ZCARD', P .. set) - count)
    if over > 0 and most > n then
        n = n + keep_set(P, set, call('ZCARD', P .. set) - over, most - n)
    end
    return call('ZCARD', P .. set) > count or call('ZCOUNT', P .. set, '-inf', format('(%.0f', now - age)) > 0
end

-- How many true entries at the head of the completed are too old, looking at no more than `limit` entries.
local function count_old(P, age, limit)
    local ids = call('LRANGE', P .. 'completed', 0, limit - 1)
    local fins = fetch('HMGET', P .. 'fin', ids, 1, #ids)
    local old = 0
    for i = 1, #ids do
        local state, at = match(fins[i] or '', '^(.).. (%d+) ')
        if state == 'c' and tonumber(at) >= now - age and call('HEXISTS', P .. 'ghost', 'c' .. ids[i]) == 0 then
            return old
        end
        if state == 'c' and call('HEXISTS', P .. 'ghost', 'c' .. ids[i]) == 0 then
            old = old + 1
        end
    end
    return old
end

local function trim_completed(P)
    local len = call('LLEN', P .. 'completed')
    if len == 0 then
        return false
    end
    local ghosts = tonumber(call('HGET', P .. 'meta', 'gc') or 0)
    local alive = len - ghosts
    local old = count_old(P, done_age, min(most - n + 1, 10 * SLICE))
    local over = max(old, alive - done_count)
    if over > 0 and most > n then
        local gone = keep_completed(P, len, ghosts, alive - over, most - n)
        n = n + gone
        return over > gone
    end
    return over > 0
end

local more = false
for lane = 1, #KEYS do
    local P = prefix(KEYS[lane])
    more = trim_completed(P) or more
    more = trim_set(P, 'cancelled', done_age, done_count) or more
    more = trim_set(P, 'dead', dead_age, dead_count) or more
end
return {n, more and 1 or 0}
