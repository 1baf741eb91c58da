-- apart.lua - company of keys -> turns of their own, a slice at a time (company.lua)
--
-- KEYS  meta
-- ARGV  cursor, "0" first, jobs at most of the ready ones
-- Answers the cursor to go on with, "" at the end. No others join for the next second.
local function free_active(P, name, states)
    local p = byte(states) == KEYED_BYTE and find(states, ' a', 1, true) and pack_at(P, name)
    local v = p and p.v or {}
    for k = 1, #v, 3 do
        local fence, w = match(v[k + 2], '^a(%d+) (%w+)$')
        for place = v[k], fence and v[k] + v[k + 1] - 1 or -1 do
            local level = level_of(extract(P, p, place, v[k + 2]))
            call('HSET', P .. 'lease', id_at(name, place), fence .. ' ' .. level .. w)
        end
    end
end

local function op_apart(keys, argv)
    begin()
    local P = prefix(keys[1])
    local meta = call('HMGET', keys[1], 'v', 'levels', 'gate')
    check_format(meta[1])
    K.key_open(P, meta[3])
    local cursor = argv[1]
    call('HSET', keys[1], 'ks', format('%.0f', now + 1000))
    if K.take_apart(P, match(meta[2] or '', '%u*$'), tonumber(argv[2])) == 0 then
        local step = call('HSCAN', P .. 'pack', cursor, 'COUNT', 100)
        open_leases(P)
        for i = 1, #step[2], 2 do
            free_active(P, step[2][i], step[2][i + 1])
        end
        cursor = step[1] == '0' and '' or step[1]
    end
    K.key_flush()
    flush(P)
    return cursor
end
