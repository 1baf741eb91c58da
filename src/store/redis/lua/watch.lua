-- watch.lua - looks at jobs and the events of one queue, and registers the waiter for what is not there yet
--
-- KEYS  meta
-- ARGV  waiter, then for each: what (0 end, 1 log, 2 events, 3 room), after, id or, of room, bytes
-- Answers for each 0 there, 1 no such job, 2 registered.
local function look(P, what, after, id, meta)
    if what == '2' then
        return meta[1] and meta[2] == after and 2 or 0
    elseif what == '3' then
        return fits(P, meta[3], tonumber(after), tonumber(id)) and 0 or 2
    end
    local state = state_of(P, id)
    if not state then
        return 1
    elseif state == 'c' or state == 'd' or state == 'x' then
        return 0
    elseif what == '1' then
        local _, _, lines = read_said(call('HGET', P .. 'said', id))
        return lines > tonumber(after) and 0 or 2
    end
    return 2
end

local function op_watch(keys, argv)
    begin()
    local P, w = prefix(keys[1]), argv[1]
    local out, kv = {}, {}
    local meta = call('HMGET', P .. 'meta', 'ev', 'evn', 'max')
    for i = 2, #argv, 3 do
        local found = look(P, argv[i], argv[i + 1], argv[i + 2], meta)
        out[#out + 1] = found
        if found == 2 then
            local id = argv[i] == '2' and '' or argv[i] == '3' and '~' or argv[i + 2]
            local had = call('HGET', P .. 'waits', id) or ''
            if not find(' ' .. had .. ' ', ' ' .. w .. ' ', 1, true) then
                kv[#kv + 1] = id
                kv[#kv + 1] = had == '' and w or had .. ' ' .. w
            end
        end
    end
    if #kv > 0 then
        spread('HSET', P .. 'waits', kv, 1, #kv)
        call('HSET', P .. 'meta', 'wt', 1)
    end
    call('PEXPIRE', P .. 'waits', 300000) -- a waiter that lives looks each minute
    flush(P)
    return out
end
