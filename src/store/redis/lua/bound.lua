-- bound.lua - sets the bound of a queue, which makes the queue, or gives it
--
-- KEYS  <ns>:queues, meta
-- ARGV  most jobs, block (0|1), most bytes; none: gives it
-- Answers {} for a queue that is not there, or {most or 0, block or 0, most bytes or 0, bytes that wait or 0}.
local function op_bound(keys, argv)
    begin()
    local P = prefix(keys[2])
    local meta = call('HMGET', P .. 'meta', 'v', 'max', 'block', 'levels', 'wb')
    check_format(meta[1])
    if #argv == 0 then
        local bytes = K.max_bytes(meta[2]) or 0
        return meta[1] and {tonumber(match(meta[2] or '0', '^%d+')), tonumber(meta[3] or 0), bytes,
                            bytes > 0 and tonumber(meta[5] or 0) or 0} or {}
    end
    call('SADD', keys[1], match(P, '{([^}]*)}:$'))
    -- The format is raised for bytes: a program of an older one would take and not count them, and the queue stay full.
    if not meta[1] or (argv[3] ~= '0' and tonumber(meta[1]) ~= FORMAT) then
        make_queue(P, meta[1])
    end
    call('HDEL', P .. 'meta', 'max', 'block')
    if argv[1] ~= '0' or argv[3] ~= '0' then
        call('HSET', P .. 'meta', 'max', argv[3] == '0' and argv[1] or argv[1] .. ' ' .. argv[3])
        drain(P, meta[4]) -- and no inbox: each put asks for room
        call('DEL', P .. 'in')
    end
    if argv[3] == '0' then
        call('HDEL', P .. 'meta', 'wb')
    elseif not K.max_bytes(meta[2]) then
        call('HSET', P .. 'meta', 'wb', format('%.0f', K.weigh_all(P)))
    end
    if argv[2] ~= '0' then
        call('HSET', P .. 'meta', 'block', argv[2])
    end
    heed(P, {'~'})
    return {tonumber(argv[1]), tonumber(argv[2]), tonumber(argv[3]), 0}
end
