-- list_class.lua - the ids of one page of the dead of a class, oldest first
--
-- KEYS  meta
-- ARGV  class, from ms, most, place "score id" or ""
-- Answers {end reached (0|1), id, place, id, place, ...}. Of `other` it first takes in up to a slice of what died before there
-- were classes, the oldest first.
local function adopt(P)
    local n = 0
    local counts = call('HVALS', P .. 'dn')
    for i = 1, #counts do
        n = n + tonumber(counts[i])
    end
    if call('ZCARD', P .. 'dead') <= n then
        return
    end
    local all = call('ZRANGE', P .. 'dead', 0, SLICE - 1, 'WITHSCORES')
    for i = 1, #all, 2 do
        local fin = call('HGET', P .. 'fin', all[i])
        if fin and match(fin, '^d.. %d+ $') then
            call('HSET', P .. 'fin', all[i], fin .. K.OTHER)
            call('HSETNX', P .. 'di', K.OTHER, all[i + 1] .. ' \0')
            call('HINCRBY', P .. 'dn', K.OTHER, 1)
            call('HSET', P .. 'dl', K.OTHER, all[i + 1])
            call('ZADD', P .. 'dz:' .. K.OTHER, all[i + 1], all[i])
        end
    end
end

local function op_list_class(keys, argv)
    begin()
    local P, class, most, place = prefix(keys[1]), argv[1], tonumber(argv[3]), argv[4]
    check_format(call('HGET', P .. 'meta', 'v'))
    if class == K.OTHER then
        adopt(P)
    end
    local key, out = P .. 'dz:' .. class, {0}
    local score, id = match(place, '^(%S+) (.*)$')
    local at
    if score then
        local rank = call('ZRANK', key, id)
        at = rank and call('ZSCORE', key, id) == score and rank + 1
    end
    local skips = score and not at
    at = at or call('ZCOUNT', key, '-inf', '(' .. (score or argv[2]))
    local all
    repeat
        all = call('ZRANGE', key, at, at + SLICE - 1, 'WITHSCORES')
        for i = 1, #all, 2 do
            if not (skips and all[i + 1] == score and all[i] <= id) then
                if #out >= 2 * most then
                    return out
                end
                out[#out + 1] = all[i]
                out[#out + 1] = all[i + 1] .. ' ' .. all[i]
            end
        end
        at = at + SLICE
    until #all < 2 * SLICE
    out[1] = 1
    return out
end
