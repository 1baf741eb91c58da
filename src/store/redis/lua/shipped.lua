-- shipped.lua - messages that were applied go
--
-- KEYS  meta of the sender
-- ARGV  destination, number of the last that was applied
-- Answers how many are left.
local function op_shipped(keys, argv)
    begin_bare()
    local P, last = sub(keys[1], 1, -5), tonumber(argv[2])
    local key = P .. 'out:' .. argv[1]
    repeat
        local some = call('LRANGE', key, 0, 99)
        local n = 0
        while some[n + 1] and tonumber(match(some[n + 1], '^%d+')) <= last do
            n = n + 1
        end
        if n > 0 then
            call('LPOP', key, n)
        end
    until n < 100
    local left = call('LLEN', key)
    if left == 0 then
        call('ZREM', P .. 'outs', argv[1])
    end
    return left
end
