-- apart.lua - company of keys -> turns of their own, a slice at a time (company.lua)
--
-- KEYS  meta
-- ARGV  cursor, "0" first, jobs at most of the ready ones; "l<cursor>" goes on with the leases of those in no packs
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

local function free_leased(P, id, lease)
    local fence, level, rest = match(lease, '^(%d+) (%u)(.*)$')
    if fence and id ~= '' then
        K.leave_active(P, id)
        call('HSET', P .. 'lease', id, fence .. ' ' .. byte(level) - 65 .. rest)
    end
end

local function op_apart(keys, argv)
    begin()
    local P = prefix(keys[1])
    local meta = call('HMGET', keys[1], 'v', 'levels', 'gr')
    check_format(meta[1])
    call('HSET', keys[1], 'ks', format('%.0f', now + 1000))
    local _, levels = drain(P, meta[2] or '')
    K.key_open(P)
    local cursor = argv[1]
    if K.take_apart(P, match(levels, '%u*$'), tonumber(argv[2]), tonumber(meta[3] or 0)) > 0 then
        cursor = argv[1]
    elseif byte(cursor) == 108 then
        local step = call('HSCAN', P .. 'lease', sub(cursor, 2), 'COUNT', 100)
        for i = 1, #step[2], 2 do
            free_leased(P, step[2][i], step[2][i + 1])
        end
        cursor = step[1] == '0' and '' or 'l' .. step[1]
    else
        local step = call('HSCAN', P .. 'pack', cursor, 'COUNT', 100)
        open_leases(P)
        for i = 1, #step[2], 2 do
            free_active(P, step[2][i], step[2][i + 1])
        end
        cursor = step[1] == '0' and 'l0' or step[1]
    end
    K.key_flush()
    flush(P)
    return cursor
end
