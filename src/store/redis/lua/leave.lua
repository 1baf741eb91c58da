-- leave.lua - an incarnation ends: forgotten where it holds nothing, else condemned, so that its leases are reclaimed
--
-- KEYS  <ns>:workers, then one meta for each lane
-- ARGV  worker
local function op_leave(keys, argv)
    begin()
    local worker = argv[1]
    call('HDEL', keys[1], worker)
    if not ops.slots or #keys == 1 then
        call('DEL', '{' .. keys[1] .. '}:' .. worker) -- renew.lua
    end
    for lane = 2, #keys do
        local P = prefix(keys[lane])
        if tonumber(call('HGET', P .. 'held', worker) or 0) > 0 then
            call('ZADD', P .. 'workers', -1, worker)
            call('SREM', P .. 'idle', worker)
        else
            forget_worker(P, worker)
        end
        local meta = call('HMGET', P .. 'meta', 'levels', 'paused', 'xr', 'kr')
        if (meta[1] or meta[4]) and not meta[2] then
            ring(P, count_ready(P, meta[1] or '', 0, meta[3]) + tonumber(meta[4] or 0))
        end
    end
    return 0
end
