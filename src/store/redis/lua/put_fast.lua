-- put_fast.lua - the usual put, before anything else is set up: packs of one level, of one queue that is there, nobody idle
--
-- What put.lua would do, with as few calls as can be: all that is made for every call (functions, values) costs as much as
-- the work. Any doubt is left to it. What is written first refuses a foreign key itself; the others were read.
if #KEYS == 2 and ARGV[3] == '0' and ARGV[6] == '0' and ARGV[8] == 'p' and ARGV[9] == '1' then
    local level, m = ARGV[10], tonumber(ARGV[11])
    local P = sub(KEYS[2], 1, -5)
    local meta = call('HMGET', KEYS[2], 'v', 'levels', 'paused', 'enqueued', 'xr')
    local usual = tonumber(meta[1]) == FORMAT and meta[2] and find(meta[2], level, 1, true) and m <= SLICE / 4 and
                  call('EXISTS', P .. 'idle') == 0
    local seen = {}
    for i = 12 + m, 11 + 3 * m, 2 do
        usual = usual and not seen[ARGV[i]] and call('HEXISTS', P .. 'jobs', ARGV[i]) == 0
        seen[ARGV[i]] = true
    end
    if usual then
        call('RPUSH', P .. 'ready:' .. level, unpack(ARGV, 12, 11 + m))
        call('HSET', P .. 'jobs', unpack(ARGV, 12 + m, 11 + 3 * m))
        call('HSET', KEYS[2], 'enqueued', (meta[4] or 0) + ARGV[5], 'xr', (meta[5] or 0) + ARGV[5] - m)
        call('SET', P .. 'put:' .. ARGV[1], ARGV[2], 'PX', ARGV[4])
        return {}
    end
end
