-- gather.lua - what a put by the inbox leaves to do: wakes workers for its jobs, empties an inbox that has become long
--
-- KEYS  meta
-- ARGV  jobs that workers are to be woken for; empty it (0|1)
-- Answers 1 when a worker was waiting, else 0.
local function op_gather(keys, argv)
    begin_bare()
    local P = sub(keys[1], 1, -5)
    local meta = call('HMGET', keys[1], 'levels', 'paused')
    if argv[2] == '1' then
        drain(P, meta[1])
    end
    if meta[2] or call('EXISTS', P .. 'idle') == 0 then
        return 0
    end
    local time = call('TIME')
    ring_at(P, tonumber(argv[1]), time[1] * 1000 + floor(time[2] / 1000))
    return 1
end
