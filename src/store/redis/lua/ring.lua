-- ring.lua - joined behind head.lua where workers are woken

-- Wakes up to n idle workers that are alive, by their bells.
local function ring_at(P, n, now)
    n = min(n, SLICE)
    while n > 0 do
        local idle = call('SPOP', P .. 'idle', n)
        if #idle == 0 then
            return
        end
        for i = 1, #idle do
            local w = idle[i]
            local till = call('ZSCORE', P .. 'workers', w)
            if till and tonumber(till) >= now then
                call('RPUSH', P .. 'bell:' .. w, '1')
                call('PEXPIRE', P .. 'bell:' .. w, 60000)
                n = n - 1
            end
        end
    end
end
