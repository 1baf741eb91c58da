-- packs_put.lua - the usual put: fresh plain jobs, in packs or alone, of one level of one queue that is there
--
-- KEYS  meta
-- ARGV  client, number of the call, ms the answer is remembered, n jobs, level, m, then m times: entry of the ready list, and of a
--       pack the size of its bodies and its stretches, else "" and the body
-- Answers 1, or 0 when anything is unusual: then nothing was done, and the client asks the general script.
--
-- The bodies of packs were sent in front of this as plain commands, to keys that end by themselves unless they are taken
-- here; so they pass through no Lua string. A repeat after a lost answer goes to the general one as well.

-- Does it. meta: v, levels, paused, enqueued, xr; of company also xk at its place, and kp where that changes (company_put.lua). 0 as above.
local function file_packs(P, argv, meta, kp)
    local level, m = argv[5], tonumber(argv[6])
    local idle = not meta[3] and call('EXISTS', P .. 'idle') == 1
    local entries, states, jobs, packed = {}, {}, {}, {}
    local seen = {}
    for i = 7, 4 + 3 * m, 3 do
        local entry, size = argv[i], argv[i + 1]
        entries[#entries + 1] = entry
        if size == '' then
            jobs[#jobs + 1] = entry
            jobs[#jobs + 1] = argv[i + 2]
        else
            local name = sub(entry, 1, 24) .. '+'
            local key = P .. 'b:' .. name
            if seen[name] or call('HEXISTS', P .. 'pack', name) == 1 or call('STRLEN', key) ~= tonumber(size) then
                return 0
            end
            seen[name] = true
            states[#states + 1] = name
            states[#states + 1] = argv[i + 2]
            packed[#packed + 1] = key
        end
    end
    if #jobs > 0 then
        call('HLEN', P .. 'jobs')
    end
    call('RPUSH', P .. 'ready:' .. level, unpack(entries)) -- refuses a foreign key itself
    if #states > 0 then
        call('HSET', P .. 'pack', unpack(states))
    end
    if #jobs > 0 then
        call('HSET', P .. 'jobs', unpack(jobs))
    end
    for i = 1, #packed do
        call('PERSIST', packed[i])
    end
    local n = argv[4]
    local enqueued, more = format('%d', (meta[4] or 0) + n), format('%d', (meta[5] or 0) + n - m) -- as text: numbers go by a dear printf
    if level < 'A' then
        call('HSET', P .. 'meta', 'enqueued', enqueued, 'xr', more)
    elseif kp then
        call('HSET', P .. 'meta', 'enqueued', enqueued, 'xr', more, 'xk', format('%d', (meta[12] or 0) + n), 'kp', kp)
    else
        call('HSET', P .. 'meta', 'enqueued', enqueued, 'xr', more, 'xk', format('%d', (meta[12] or 0) + n))
    end
    call('SET', P .. 'put:' .. argv[1], argv[2], 'PX', argv[3])
    if idle then
        local time = call('TIME')
        ring_at(P, tonumber(argv[4]), time[1] * 1000 + floor(time[2] / 1000))
    end
    return 1
end
ops.file_packs = file_packs

local function op_packs_put(keys, argv)
    begin_bare()
    local P = sub(keys[1], 1, -5)
    if call('LLEN', P .. 'in') > 1 and not drain(P, call('HGET', keys[1], 'levels')) then -- comes first
        return 0
    end
    local meta = call('HMGET', keys[1], 'v', 'levels', 'paused', 'enqueued', 'xr', 'ev', 'max')
    if tonumber(meta[1]) ~= FORMAT or not meta[2] or not find(meta[2], argv[5], 1, true) or meta[6] or meta[7] then
        return 0
    end
    return file_packs(P, argv, meta)
end
