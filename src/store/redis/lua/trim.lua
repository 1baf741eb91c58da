-- trim.lua - completed | cancelled | dead -> gone, beyond age or number
--
-- KEYS  one meta for each lane
-- ARGV  most, then ms and number kept of the completed (and apart of the cancelled), and of the dead
-- Answers {removed, more (0|1)}.
local most, n, done_age, done_count -- of the call at hand

local function trim_set(P, set, age, count)
    local old = call('ZCOUNT', P .. set, '-inf', format('(%.0f', now - age))
    local over = max(old, call('ZCARD', P .. set) - count)
    if over > 0 and most > n then
        n = n + keep_set(P, set, call('ZCARD', P .. set) - over, most - n)
    end
    return call('ZCARD', P .. set) > count or call('ZCOUNT', P .. set, '-inf', format('(%.0f', now - age)) > 0
end

-- Of a stretch: how many are completed, and whether that is long enough ago.
local function look_at_run(P, entry, age)
    local p = pack_at(P, name_of(entry))
    local from, to = read_entry(entry)
    local v, n, old = p and p.v or {}, 0, true
    for k = 1, #v, 3 do
        local a, b = max(v[k], from), min(v[k] + v[k + 1], to)
        if a < b and byte(v[k + 2]) == DONE_BYTE then
            n = n + b - a
            old = tonumber(sub(v[k + 2], 2)) < now - age
        end
    end
    return n, old
end

-- How many of the completed are too old, as far as it needs to be known to remove `limit` of them.
local function count_old(P, age, limit)
    local at, old = 0, 0
    repeat
        local entries = call('LRANGE', P .. 'completed', at, at + 99)
        local fins = fetch('HMGET', P .. 'fin', entries, 1, #entries)
        for i = 1, #entries do
            local n, is_old = 0, true
            if is_run(entries[i]) then
                n, is_old = look_at_run(P, entries[i], age)
            elseif fins[i] and call('HEXISTS', P .. 'ghost', 'c' .. entries[i]) == 0 then
                n, is_old = 1, tonumber(match(fins[i], '^... (%d+) ')) < now - age
            end
            if n > 0 and not is_old then
                return old
            end
            old = old + n
        end
        at = at + 100
    until #entries < 100 or old >= limit or at > 10 * SLICE
    return old
end

local function trim_completed(P)
    local len = call('LLEN', P .. 'completed')
    if len == 0 then
        return false
    end
    local meta = call('HMGET', P .. 'meta', 'gc', 'xc')
    local ghosts = tonumber(meta[1] or 0)
    local count = len - ghosts + tonumber(meta[2] or 0)
    local over = max(count_old(P, done_age, most - n + 1), count - done_count)
    local gone = 0
    if over > 0 and most > n then
        gone = keep_completed(P, count, ghosts, count - over, most - n)
        n = n + gone
    end
    return over > gone
end

local function op_trim(keys, argv)
    begin()
    most, n = tonumber(argv[1]), 0
    done_age, done_count = tonumber(argv[2]), tonumber(argv[3])
    local dead_age, dead_count = tonumber(argv[4]), tonumber(argv[5])
    local more = false
    for lane = 1, #keys do
        local P = prefix(keys[lane])
        more = trim_completed(P) or more
        more = trim_set(P, 'cancelled', done_age, done_count) or more
        more = trim_set(P, 'dead', dead_age, dead_count) or more
        flush(P)
    end
    flow_begin(prefix(keys[1]))
    if call('EXISTS', flow_ns .. 'flows') == 1 then
        for state = 1, 3 do
            local age, count = state == 2 and dead_age or done_age, state == 2 and dead_count or done_count
            local _, left = keep_flows(state, count, now - age, most)
            more = more or left
        end
    end
    return {n, more and 1 or 0}
end
