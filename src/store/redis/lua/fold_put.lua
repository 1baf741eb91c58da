-- fold_put.lua - a whole flow that can be folded (fold.lua), in a queue that is there, keeps no events and has no bound
--
-- KEYS  <ns>:queues, meta
-- ARGV  client, number of the call, repeated (0|1), ms the answer is remembered, id, fresh (0|1), steps, cancel siblings (0|1),
--       queue, name, head of the states, level, first steps, envelopes as those of a pack
-- Answers 0, 1 when the id is known, or 2: nothing was done, the general op must do it. The answer is remembered as by flow_put.
local function op_fold_put(keys, argv)
    begin()
    local P, ns, id, n, level, first = prefix(keys[2]), sub(keys[1], 1, -7), argv[5], argv[7], argv[12], tonumber(argv[13])
    local token, F, name = ns .. 'flowput:' .. argv[1], ns .. 'flow:' .. id, id .. '~'
    if argv[3] == '1' then
        ops.drain_flows(ns)
        if call('GET', token) == argv[2] or call('GET', P .. 'put:' .. argv[1]) == argv[2] then
            return 0
        end
    end
    if argv[6] ~= '1' and FOLD.is_known(ns, id) then
        return 1
    end
    local meta = call('HMGET', keys[2], 'v', 'levels', 'paused', 'ev', 'enqueued', 'xr', 'max')
    check_format(meta[1])
    local v = tonumber(meta[1])
    if not v or v < 3 or meta[4] or meta[7] then
        return 2
    end
    if call('HEXISTS', P .. 'pack', name) == 1 then
        return 2 -- jobs of a flow that was removed
    end
    local drained, levels = 0, meta[2] or ''
    if call('LLEN', P .. 'in') > 1 then
        drained, levels = drain(P, levels)
        local counted = call('HMGET', keys[2], 'enqueued', 'xr')
        meta[5], meta[6] = counted[1], counted[2]
    end
    add_levels(P, levels, {[level] = true})
    local last = call('ZRANGE', ns .. 'flows', -1, -1, 'WITHSCORES')[2]
    call('RPUSH', P .. 'ready:' .. level, name .. '0+' .. first) -- refuses a foreign key itself
    local ms, rest = format('%.0f', now), n - first
    call('HSET', P .. 'pack', name, argv[11] .. ':0 ' .. first .. ' r' .. ms .. ';' ..
                                    (rest > 0 and first .. ' ' .. rest .. ' w;' or ''))
    call('SET', bodies_key(P, name), argv[14])
    call('SET', F .. ':p', n .. ' ' .. argv[8] .. ' ' .. ms .. ' ' .. argv[9] .. ' ' .. argv[10])
    call('ZADD', ns .. 'flows', format('%.0f', max(now_us, (tonumber(last) or 0) + 1)), id)
    call('HSET', keys[2], 'enqueued', format('%.0f', (meta[5] or 0) + first), 'xr', format('%.0f', (meta[6] or 0) + first - 1), 'v', FORMAT)
    call('SADD', ns .. 'flowin', argv[9])
    call('SET', token, argv[2], 'PX', argv[4])
    if not meta[3] then
        ring(P, drained + first)
    end
    return 0
end
