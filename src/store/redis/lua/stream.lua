-- stream.lua - turns the stream of a queue's events on, to another length, or off; the queue is made when it is not there
--
-- KEYS  <ns>:queues, meta
-- ARGV  how many it keeps, 0: off
local function op_stream(keys, argv)
    begin()
    local P = prefix(keys[2])
    local meta = call('HMGET', P .. 'meta', 'v', 'ev', 'levels')
    check_format(meta[1])
    want(P .. 'ev', 'stream')
    call('SADD', keys[1], match(P, '{([^}]*)}:$'))
    if not meta[1] then
        make_queue(P)
    end
    if argv[1] == '0' then
        call('DEL', P .. 'ev')
        call('HDEL', P .. 'meta', 'ev', 'evn')
    else
        if not meta[2] then
            local base = format('%.0f', now * 1000) -- numbers are not given twice
            call('DEL', P .. 'ev')
            call('XADD', P .. 'ev', base .. '-0', 'd', '', 'a', format('%.0f', now))
            call('HSET', P .. 'meta', 'evn', base)
        end
        call('HSET', P .. 'meta', 'ev', argv[1])
        drain(P, meta[3]) -- and no inbox: each put says what it did
        call('DEL', P .. 'in')
    end
    heed_one(P, '')
    return 0
end
