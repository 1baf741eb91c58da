-- weigh.lua - joined behind keys.lua: the bytes of the jobs that wait, in queues that are bounded in bytes
--
-- meta.max is then "jobs bytes" (jobs 0: no bound on those), else "jobs"; meta.wb is how many bytes wait, which is kept while there is such
-- a bound: what makes a job wait, ends its waiting or gives it another body says so here. Other files find it all in K.
do
function K.max_bytes(max)
    return max and tonumber(match(max, ' (%d+)$'))
end

function K.max_jobs(max)
    local n = tonumber(match(max, '^%d+'))
    return n > 0 and n or huge
end

function K.add_bytes(P, n)
    if n ~= 0 then
        call('HINCRBY', P .. 'meta', 'wb', format('%.0f', n))
    end
end

-- The bytes of jobs with records of their own.
function K.weigh(P, ids, a, b)
    local n = 0
    for i = a, b do
        n = n + call('HSTRLEN', P .. 'jobs', ids[i])
    end
    return n
end

-- Of [from, to) of a pack.
function K.weigh_run(P, p, from, to)
    local first, key = p.v[1], bodies_key(P, p.name)
    local last = struct.unpack('<I4', call('GETRANGE', key, 4 + 4 * (to - first), 7 + 4 * (to - first)))
    local before = 0
    if from > first then
        before = struct.unpack('<I4', call('GETRANGE', key, 4 + 4 * (from - first), 7 + 4 * (from - first)))
    end
    return last - before - (to - from)
end

-- Of what pop gave.
function K.weigh_popped(P, popped)
    local n = 0
    for i = 1, #popped do
        local job = popped[i]
        n = n + (type(job) == 'table' and K.weigh_run(P, job.p, job.from, job.to) or call('HSTRLEN', P .. 'jobs', job))
    end
    return n
end

-- Of all that wait; nothing is in the inbox. It looks at all jobs of the queue.
function K.weigh_all(P)
    local ids, n = call('HKEYS', P .. 'jobs'), 0
    for a = 1, #ids, SLICE do
        local b = min(a + SLICE - 1, #ids)
        local fin, lease = fetch('HMGET', P .. 'fin', ids, a, b), fetch('HMGET', P .. 'lease', ids, a, b)
        for i = a, b do
            if not fin[i - a + 1] and not lease[i - a + 1] then
                n = n + call('HSTRLEN', P .. 'jobs', ids[i])
            end
        end
    end
    local names = call('HKEYS', P .. 'pack')
    for i = 1, #names do
        local p = names[i] ~= '' and pack_at(P, names[i])
        local v = p and p.v or {}
        for k = 1, #v, 3 do
            if byte(v[k + 2]) == READY_BYTE then
                n = n + K.weigh_run(P, p, v[k], v[k] + v[k + 1])
            end
        end
        packs = {}
    end
    return n
end
end
