-- renew.lua - registers an incarnation in all its lanes, or keeps it alive; fetches what operators want stopped
--
-- KEYS  <ns>:workers, then one meta for each lane; in slots (head.lua) one lane's crew and meta, or <ns>:workers alone
-- ARGV  worker, lease ms, first (0|1), description, most stops, what it tells ('' as before), stacks ('' none), which asking they answer,
--       then the stops that the last answer had: lane, text
-- Answers {0, 1 stale, 2 when there are schedules; ms until the lease of another worker ends or -1, ms until a job is due or -1, wish, asked,
-- then lane, text, lane, text, ...}.
-- {<ns>:workers}:<id>, so in the slot of <ns>:workers, has orders to the worker and what it tells: wish, asked; about, stacks, made, at
-- (src/queue/control_store.h). The call that has <ns>:workers brings and takes them.
-- A stop stays until the next renew names it, so that a lost answer loses none.

-- Of a marked job only while it is still under that lease; a removed one has none.
local function is_due(P, text)
    local fence, kind, id = match(text, '^(%d+) (.) (.*)$')
    return kind == 'r' or match(call('HGET', P .. 'lease', id) or '', '^%d+') == fence
end

local function op_renew(keys, argv)
    begin()
    local worker, lease, first, most = argv[1], tonumber(argv[2]), argv[3] == '1', tonumber(argv[5])
    call('HLEN', keys[1])
    for lane = 2, #keys do
        local till = call('ZSCORE', prefix(keys[lane]) .. 'workers', worker)
        if not first and (not till or tonumber(till) < 0) then
            return {1, -1, -1, 0, 0}
        end
    end
    for i = 9, #argv, 2 do
        call('LREM', prefix(keys[tonumber(argv[i]) + 2]) .. 'stop:' .. worker, 1, argv[i + 1])
    end
    local schedules = ops.slots and 0 or call('ZCARD', sub(keys[1], 1, -8) .. '{~schedules}:due')
    local record = (not ops.slots or #keys == 1) and '{' .. keys[1] .. '}:' .. worker
    local orders = record and call('HMGET', record, 'wish', 'asked') or {}
    local out = {schedules > 0 and 2 or 0, -1, -1, tonumber(orders[1] or 0), tonumber(orders[2] or 0)}
    local death, due
    for lane = 2, #keys do
        local P = prefix(keys[lane])
        call('ZADD', P .. 'workers', now + lease, worker)
        if call('LLEN', P .. 'in') > 1 and call('EXISTS', P .. 'idle') == 1 and call('HEXISTS', P .. 'meta', 'paused') == 0 then
            ring(P, 1) -- for a put that died before it woke somebody
        end
        local first = first_due(P)
        due = first and min(due or first, first) or due
        local first_two = call('ZRANGE', P .. 'workers', 0, 1, 'WITHSCORES')
        for i = 1, #first_two, 2 do
            if first_two[i] ~= worker then
                death = min(death or huge, tonumber(first_two[i + 1]))
            end
        end
        if most > 0 then
            local stops = call('LRANGE', P .. 'stop:' .. worker, 0, most - 1)
            for i = 1, #stops do
                if is_due(P, stops[i]) then
                    out[#out + 1] = lane - 2
                    out[#out + 1] = stops[i]
                    most = most - 1
                else
                    call('LREM', P .. 'stop:' .. worker, 1, stops[i])
                end
            end
        end
    end
    if death then
        out[2] = max(death + 1 - now, 0)
    end
    if due then
        out[3] = max(due - now, 0)
    end
    if record then
        if argv[6] ~= '' then
            call('HSET', record, 'about', argv[6])
        end
        if argv[7] ~= '' then
            call('HSET', record, 'stacks', argv[7], 'made', argv[8], 'at', now)
        end
        call('PEXPIRE', record, 2 * lease + 3600000) -- one that renews late, and was nobody's meanwhile, finds it
    end
    call('HSET', keys[1], worker, (now + lease) .. ' ' .. now .. ' ' .. argv[4])
    return out
end
