-- room.lua - in front of ops that ask how many jobs wait in a queue
--
-- meta.max is how many may, and how many bytes (weigh.lua), nil while there is no bound (src/queue/bound.h); meta.block is there when an enqueue shall wait. Who waits
-- for room stands in waits under "~", which is no id (heed.lua).
local function waiting_in(P)
    local meta, n = call('HMGET', P .. 'meta', 'levels', 'gr', 'xr', 'kr'), 0
    local levels = meta[1] or ''
    for i = 1, #levels do
        n = n + call('LLEN', P .. 'ready:' .. sub(levels, i, i))
    end
    return n - tonumber(meta[2] or 0) + tonumber(meta[3] or 0) + tonumber(meta[4] or 0) + call('ZCARD', P .. 'scheduled') +
        call('ZCARD', P .. 'retrying')
end

-- Whether n more jobs of so many bytes fit; max: meta.max, or nil.
local function fits(P, max, n, bytes)
    if not max or n == 0 then
        return true
    end
    local most = K.max_bytes(max)
    if most and tonumber(call('HGET', P .. 'meta', 'wb') or 0) + bytes > most then
        return false
    end
    most = K.max_jobs(max)
    return most == huge or waiting_in(P) + n <= most
end
