-- later_put.lua - the usual put of jobs that are due later: fresh, without unique key and key, of one queue that is there
--
-- KEYS  meta
-- ARGV  client, number of the call, ms the answer is remembered, then for each job: id, body, ms, from now (1) or since 1970 (2)
-- Answers 1, or 0 when anything is unusual: then nothing was done, and the client asks the general script. So does a repeat.
local function op_later_put(keys, argv)
    begin()
    local P = prefix(keys[1])
    if call('LLEN', P .. 'in') > 1 and not drain(P, call('HGET', keys[1], 'levels')) then -- comes first: its puts have lower numbers
        return 0
    end
    local meta = call('HMGET', keys[1], 'v', 'levels', 'paused', 'enqueued', 'ev', 'max')
    if meta[1] ~= '4' and meta[1] ~= '3' or not meta[2] or meta[5] or meta[6] then
        return 0
    end
    local kv, due, n, head = {}, {}, 0, huge
    for i = 4, #argv, 4 do
        local id, body, at = argv[i], argv[i + 1], tonumber(argv[i + 2]) + (argv[i + 3] == '1' and now or 0)
        local level = level_of(body)
        if at <= now or not find(meta[2], level, 1, true) then
            return 0
        end
        kv[n + 1], kv[n + 2] = id, body
        due[n + 1], due[n + 2] = at + level / 16, id
        n, head = n + 2, min(head, at)
    end
    local idle = not meta[3] and call('EXISTS', P .. 'idle') == 1
    local was = idle and first_due(P)
    call('HLEN', P .. 'jobs')
    spread('ZADD', P .. 'scheduled', due, 1, n) -- refuses a foreign key itself
    spread('HSET', P .. 'jobs', kv, 1, n)
    call('HSET', keys[1], 'enqueued', format('%d', (meta[4] or 0) + n / 2))
    call('SET', P .. 'put:' .. argv[1], argv[2], 'PX', argv[3])
    if idle and head < (was or huge) then
        ring(P, 1)
    end
    return 1
end
