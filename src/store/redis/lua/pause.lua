-- pause.lua - pauses or resumes one queue, which is made when it is not there
--
-- KEYS  <ns>:queues, meta
-- ARGV  paused (0|1)
local function op_pause(keys, argv)
    begin()
    local P = prefix(keys[2])
    local meta = call('HMGET', P .. 'meta', 'v', 'levels', 'gr', 'xr', 'kr', 'paused', 'ev')
    check_format(meta[1])
    call('SADD', keys[1], match(P, '{([^}]*)}:$'))
    if not meta[1] then
        make_queue(P)
    end
    tell_begin(meta[7])
    if (argv[1] == '1') ~= (meta[6] and true or false) then
        tell(argv[1] == '1' and EVENT.PAUSED or EVENT.RESUMED, '')
    end
    tell_end(P)
    if argv[1] == '1' then
        call('HSET', P .. 'meta', 'paused', now)
    else
        call('HDEL', P .. 'meta', 'paused')
        ring(P, count_ready(P, meta[2] or '', meta[3], meta[4]) + tonumber(meta[5] or 0))
        if first_due(P) then
            ring(P, 1)
        end
    end
    return 0
end
