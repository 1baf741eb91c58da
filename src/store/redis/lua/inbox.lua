-- inbox.lua - joined behind ring.lua: fresh plain jobs that were put by one native command
--
-- P in is a list whose first element is "", so that RPUSHX tells whether the queue is there and knows of it. Behind it, of each
-- put: "+<client><number of the call>", then id and body of each job. Such a job is put; it is ready, behind all that its
-- level's list has. Ops that move ready jobs empty the inbox first, those that only look read it. A put that finds it long has it
-- emptied (op_put.c), so that it stays short though nobody works.
--
-- The answer of such a put is remembered when the inbox is emptied: a repeat empties it before it asks what is remembered.
local sort_letters, add_levels, drain, look_into_inbox
do
local INBOX_MS = 180000 -- LS_REDIS_MEMORY_MS

-- What its first elements are: {id, body, id, body, ...}, by level {id, id, ...}, the tokens by client, how many these were, and
-- whether there may be more. Nil when it is empty.
local function read_inbox(P, from)
    local all = call('LRANGE', P .. 'in', from, from + SLICE - 1)
    local n = #all
    if n == 0 then
        return
    end
    local kv, k, lists, tokens, at = {}, 0, {}, {}, 1
    while at <= n do
        local e = all[at]
        if byte(e) == 43 then
            tokens[sub(e, 2, 27)] = sub(e, 28)
            at = at + 1
        elseif at == n then
            n = n - 1 -- its body is behind what was read
        else
            local body = all[at + 1]
            local level = sub(body, 2, 2)
            local ids = lists[level]
            if ids then
                ids[#ids + 1] = e
            else
                lists[level] = {e}
            end
            kv[k + 1], kv[k + 2] = e, body
            k, at = k + 2, at + 2
        end
    end
    return kv, lists, tokens, n, #all == SLICE
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

-- Empties it into the lists. in_use: meta.levels. Returns how many jobs that were, and the levels in use now.
function drain(P, in_use)
    local jobs = 0
    repeat
        local kv, lists, tokens, n, more = read_inbox(P, 1)
        if not kv then
            break
        end
        if kv[1] then
            call('HSET', P .. 'jobs', unpack(kv))
        end
        for level, ids in pairs(lists) do
            call('RPUSH', P .. 'ready:' .. level, unpack(ids))
        end
        in_use = add_levels(P, in_use or '', lists)
        jobs = jobs + #kv / 2
        call('HINCRBY', P .. 'meta', 'enqueued', #kv / 2)
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
    return jobs, in_use
end

-- For those who only look: bodies by id, ids by level in their order, and how many; nil when it is empty.
function look_into_inbox(P)
    local from, bodies, all, jobs = 1, {}, {}, 0
    repeat
        local kv, lists, _, n, more = read_inbox(P, from)
        if not kv then
            break
        end
        for k = 1, #kv, 2 do
            bodies[kv[k]] = kv[k + 1]
        end
        for level, ids in pairs(lists) do
            all[level] = all[level] or {}
            for k = 1, #ids do
                all[level][#all[level] + 1] = ids[k]
            end
        end
        from, jobs = from + n, jobs + #kv / 2
    until not more
    if jobs > 0 then
        return bodies, all, jobs
    end
end
end
