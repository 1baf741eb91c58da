-- inbox.lua - joined behind ring.lua: fresh plain jobs that were put by one native command
--
-- P in is a list whose first element is "", so that RPUSHX tells whether the queue is there and knows of it. Behind it, of each
-- put: "+<client><number of the call>", then id and body of each job, in front of which "=<key>" where it has one. Such a job is put; it is ready, behind all that its
-- level's list has. Ops that move ready jobs empty the inbox first, those that only look read it. A put that finds it long has it
-- emptied (inbox.c), so that it stays short though nobody works.
--
-- A flow that can be folded (fold.lua) lies there as "~<id> <steps> <cancel siblings> <head> <first steps> <queue> <name>" and the envelopes
-- of all its steps, as those of a pack; it is there, too, and its first steps are ready. Whoever looks for a flow by its id, or for all,
-- empties the inboxes of the queues in <ns>:flowin before (ops.drain_flows).
--
-- The answer of such a put is remembered when the inbox is emptied: a repeat empties it before it asks what is remembered.
local sort_letters, add_levels, drain, look_into_inbox -- and ops.drain_flows
do
local INBOX_MS = 180000 -- LS_REDIS_MEMORY_MS

-- What its first elements are: {id, body, id, body, ...}, by level {id, id, ...}, the tokens by client, how many these were, whether there
-- may be more, the flows or nil, and {id, body, key, id, ...} or nil. Nil when it is empty.
local function read_inbox(P, from)
    local all = call('LRANGE', P .. 'in', from, from + SLICE - 1)
    local n = #all
    if n == 0 then
        return
    end
    local kv, k, lists, tokens, at, flows, keyed = {}, 0, {}, {}, 1, nil, nil
    while at <= n do
        local e = all[at]
        local c = byte(e)
        if c == 43 then
            tokens[sub(e, 2, 27)] = sub(e, 28)
            at = at + 1
        elseif at == n or c == 61 and at + 2 > n then
            n = at - 1 -- what belongs to it is behind what was read
        elseif c == 61 then
            keyed = keyed or {}
            local m = #keyed
            keyed[m + 1], keyed[m + 2], keyed[m + 3] = all[at + 1], all[at + 2], sub(e, 2)
            at = at + 3
        else
            local body, level = all[at + 1], nil
            if c == 126 then
                local f = {bodies = body}
                f.id, f.n, f.sib, f.head, f.first, f.queue, f.name = match(e, '^~(%S+) (%d+) (%d) (%S+) (%d+) (%S+) (.*)$')
                flows = flows or {}
                flows[#flows + 1] = f
                e, level = f.id .. '~0+' .. f.first, sub(f.head, 3, 3)
            else
                level = sub(body, 2, 2)
                kv[k + 1], kv[k + 2] = e, body
                k = k + 2
            end
            local ids = lists[level]
            if ids then
                ids[#ids + 1] = e
            else
                lists[level] = {e}
            end
            at = at + 2
        end
    end
    return kv, lists, tokens, n, #all == SLICE, flows, keyed
end

function sort_letters(text)
    local sorted = {}
    for c in gmatch(text, '.') do
        sorted[#sorted + 1] = c
    end
    sort(sorted)
    return concat(sorted)
end

-- Notes levels of these lists as in use; in_use: those before. Returns all.
function add_levels(P, in_use, lists)
    local all = in_use
    for level in pairs(lists) do
        if not find(all, level, 1, true) then
            all = all .. level
        end
    end
    if all ~= in_use then
        all = sort_letters(all)
        call('HSET', P .. 'meta', 'levels', all)
    end
    return all
end

-- Records of flows, all but their entries in the lists; how many jobs these are.
local function file_flows(P, flows)
    local ns, time = ops.slots and P or match(P, '^(.*:){[^{}]*}:$'), call('TIME')
    local ms = time[1] .. sub('00000' .. time[2], -6, -4)
    local score = time[1] * 1000000 + time[2]
    local last = call('ZRANGE', ns .. 'flows', '-1', '-1', 'WITHSCORES')[2]
    score = max(score, last and tonumber(last) + 1 or 0)
    local states, records, order, jobs = {}, {}, {}, 0
    for i = 1, #flows do
        local f, k = flows[i], 2 * i
        local rest = f.n - f.first
        states[k - 1] = f.id .. '~'
        states[k] = f.head .. ':0 ' .. f.first .. ' r' .. ms .. ';' .. (rest > 0 and f.first .. ' ' .. rest .. ' w;' or '')
        order[k - 1], order[k] = format('%.0f', score + i - 1), f.id
        k = 4 * i
        records[k - 3], records[k - 2] = P .. 'b:' .. f.id .. '~', f.bodies
        records[k - 1], records[k] = ns .. 'flow:' .. f.id .. ':p', f.n .. ' ' .. f.sib .. ' ' .. ms .. ' ' .. f.queue .. ' ' .. f.name
        jobs = jobs + f.first
    end
    call('HSET', P .. 'pack', unpack(states)) -- refuses a foreign key itself
    call('ZADD', ns .. 'flows', unpack(order))
    for i = 1, #records, SLICE do
        call('MSET', unpack(records, i, min(i + SLICE - 1, #records)))
    end
    if jobs > #flows then
        call('HINCRBY', P .. 'meta', 'xr', jobs - #flows)
    end
    return jobs
end

-- Empties it into the lists. in_use: meta.levels. Returns how many jobs that were, the levels in use now, and whether some had keys: then the gate
-- of the queue may be another (K.begin_behind). Nil when these need a script that has more (company.lua): then the inbox has what it had.
function drain(P, in_use)
    local jobs, had_keys = 0, false
    repeat
        local kv, lists, tokens, n, more, flows, keyed = read_inbox(P, 1)
        if not kv then
            break
        elseif keyed and not ops.join then
            return
        end
        local some = #kv / 2 + (flows and file_flows(P, flows) or 0) + (keyed and #keyed / 3 or 0)
        if kv[1] then
            call('HSET', P .. 'jobs', unpack(kv))
        end
        for level, ids in pairs(lists) do
            call('RPUSH', P .. 'ready:' .. level, unpack(ids))
        end
        in_use = add_levels(P, in_use or '', lists)
        if keyed then
            in_use, had_keys = ops.join(P, keyed, in_use), true
        end
        jobs = jobs + some
        call('HINCRBY', P .. 'meta', 'enqueued', some)
        for client, number in pairs(tokens) do
            call('SET', P .. 'put:' .. client, number, 'PX', INBOX_MS)
        end
        if more then
            call('LTRIM', P .. 'in', n, -1)
            call('LSET', P .. 'in', 0, '')
        else
            call('LTRIM', P .. 'in', 0, 0)
        end
    until not more
    return jobs, in_use, had_keys
end

-- So that what is asked of flows by their ids can be answered.
function ops.drain_flows(ns)
    local queues = ops.slots and {''} or call('SMEMBERS', ns .. 'flowin')
    for i = 1, #queues do
        local P = ops.slots and ns or ns .. '{' .. queues[i] .. '}:'
        if call('LLEN', P .. 'in') > 1 then
            drain(P, call('HGET', P .. 'meta', 'levels'))
        end
    end
end

-- For those who only look: bodies by id, ids by level in their order, and how many; nil when it is empty.
function look_into_inbox(P)
    local from, bodies, all, jobs = 1, {}, {}, 0
    repeat
        local kv, lists, _, n, more, flows, keyed = read_inbox(P, from)
        if not kv then
            break
        end
        for k = 1, keyed and #keyed or 0, 3 do
            local level = sub(keyed[k + 1], 2, 2)
            lists[level] = lists[level] or {}
            lists[level][#lists[level] + 1] = keyed[k]
            kv[#kv + 1], kv[#kv + 2] = keyed[k], keyed[k + 1]
        end
        for k = 1, #kv, 2 do
            bodies[kv[k]] = kv[k + 1]
        end
        local steps = {}
        for i = 1, flows and #flows or 0 do
            local f, at = flows[i], 0
            local ids = {}
            for k = 0, f.first - 1 do
                local to = struct.unpack('<I4', f.bodies, 9 + 4 * k)
                ids[k + 1] = f.id .. '~' .. k
                bodies[ids[k + 1]] = sub(f.bodies, 9 + 4 * f.n + at, 7 + 4 * f.n + to)
                at = to
            end
            steps[f.id .. '~0+' .. f.first] = ids
            jobs = jobs + f.first
        end
        for level, ids in pairs(lists) do
            all[level] = all[level] or {}
            local list = all[level]
            for k = 1, #ids do
                local of = steps[ids[k]] or {ids[k]}
                for j = 1, #of do
                    list[#list + 1] = of[j]
                end
            end
        end
        from, jobs = from + n, jobs + #kv / 2
    until not more
    if jobs > 0 then
        return bodies, all, jobs
    end
end
end
