-- flow_put.lua - a whole flow, with the jobs of its first steps; or nothing when its id is known
--
-- KEYS  <ns>:queues
-- ARGV  client, number of the call, repeated (0|1), ms the answer is remembered, id, name, cancel siblings (0|1), nodes,
--       steps, last steps, fresh (0|1): nobody can know the id; for each node: s, deps or "", body (s: see flow.lua)
-- Answers 0, 1 when the id is known, or 3 when too many messages wait for one of its queues. The answer is remembered for a repeat, as by put.
local OUT_MAX = 100000 -- messages that wait for one queue

-- In slots (head.lua): the queues of its n steps that lie elsewhere; nil when nobody ships what waits for one of them.
local function far_of(argv, n)
    local far = {}
    for i = 0, ops.slots and n - 1 or -1 do
        local queue = match(argv[12 + 3 * i], '^%d+ %-?%d+ (%S+)')
        if not far[queue] and FOLD.is_far(flow_ns, queue) then
            if call('LLEN', flow_ns .. 'out:' .. queue) >= OUT_MAX then
                return
            end
            far[#far + 1], far[queue] = queue, true
        end
    end
    return far
end

local function op_flow_put(keys, argv)
    begin()
    flow_ns = sub(keys[1], 1, -7)
    local client, seq, again, ttl = argv[1], argv[2], argv[3] == '1', argv[4]
    local id, n, steps = argv[5], tonumber(argv[8]), tonumber(argv[9])
    local token = flow_ns .. 'flowput:' .. client
    local F = flow_ns .. 'flow:' .. id
    if again and call('GET', token) == seq then
        return 0
    end
    if argv[11] ~= '1' and FOLD.is_known(flow_ns, id) then
        return 1
    end
    call('SCARD', keys[1])
    local last = call('ZRANGE', flow_ns .. 'flows', -1, -1, 'WITHSCORES')[2]
    local states, kv, at, far = {}, {}, 12, far_of(argv, n)
    if not far then
        return 3
    end
    for i = 0, n - 1 do
        local s, deps, body = argv[at], argv[at + 1], argv[at + 2]
        local k = #kv
        kv[k + 1], kv[k + 2], kv[k + 3], kv[k + 4] = 's' .. i, s, 'b' .. i, body
        if deps ~= '' then
            kv[k + 5], kv[k + 6] = 'd' .. i, deps
            local _, commas = string.gsub(deps, ',', ',')
            if commas > 0 then
                kv[k + 7], kv[k + 8] = 'w' .. i, commas + 1
            end
        end
        local first = i < steps and deps == ''
        local level, when, ms, queue = match(s, '^(%d)(%d)%d (%-?%d+) (%S+)')
        states[i + 1] = first and '1' or '0'
        if first then
            local due = when ~= '0' and tonumber(ms) + (when == '1' and now or 0)
            due = due and due > now and due
            if far[queue] then
                ops.out(flow_ns, queue, {'put', id .. '~' .. i, level, due or 0, body})
            else
                gather(FOLD.lane_of(flow_ns, queue), queue, id .. '~' .. i, level, due, body)
            end
        end
        at = at + 3
    end
    spread('HSET', F, kv, 1, #kv)
    call('HSET', F, 'name', argv[6], 'state', 0, 'n', n, 'steps', steps, 'open', argv[10], 'failed', 0, 'sib', argv[7],
         'at', now, 'till', 0)
    if far[1] then
        call('HSET', F, 'far', concat(far, ' '))
    end
    call('SET', F .. ':s', concat(states))
    call('ZADD', flow_ns .. 'flows', format('%.0f', max(now_us, (tonumber(last) or 0) + 1)), id)
    put_gathered()
    call('SET', token, seq, 'PX', ttl)
    return 0
end
