-- take.lua - ready -> active under a lease of this worker, from the lanes in order; due jobs are promoted first
--
-- KEYS  one meta for each lane
-- ARGV  worker, most, register when empty (0|1), was registered (0|1), longest body handed out, bytes of one answer,
--       number of the call, repeated (0|1), ms the answer is remembered
-- Answers {stale, now, next due or 0, then for each lane and level that gave: {lane, fence, ids, bodies, histories,
-- oversize indices}}
--
-- A worker that was registered as idle is taken off all lanes first. When it leaves jobs behind, it passes the bell on:
-- it may have been rung for a job of another lane than it took.
local worker, most, register, was_idle = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4] == '1'
local body_max, budget = tonumber(ARGV[5]), tonumber(ARGV[6])
local seq, again, ttl = ARGV[7], ARGV[8] == '1', ARGV[9]
local out = {0, now, 0}
local next_due

for lane = 1, #KEYS do
    local till = call('ZSCORE', prefix(KEYS[lane]) .. 'workers', worker)
    if not till or tonumber(till) < now then
        return {1, now, 0}
    end
end

-- What the call that is now repeated had taken, as far as it is still this worker's.
local function recall(P, lane, known)
    local number, fence, rest = match(known, '^(%d+) (%d+)(.*)$')
    if number ~= seq then
        return
    end
    local had, ids = {}, {}
    for id in string.gmatch(rest, '%z([^%z]+)') do
        had[#had + 1] = id
    end
    local leases = fetch('HMGET', P .. 'lease', had, 1, #had)
    for i = 1, #had do
        if leases[i] and match(leases[i], '^(%d+) .(%w+)') == fence and match(leases[i], '^%d+ .(%w+)') == worker then
            ids[#ids + 1] = had[i]
        end
    end
    if #ids == 0 then
        return
    end
    local bodies, _, over = bodies_of(P, ids, body_max, math.huge, true)
    local list = {}
    for i in pairs(over) do
        list[#list + 1] = i - 1
    end
    return {lane - 1, fence, ids, bodies, fetch('HMGET', P .. 'hist', ids, 1, #ids), list}
end

if again then
    for lane = 1, #KEYS do
        local P = prefix(KEYS[lane])
        local known = call('GET', P .. 'got:' .. worker)
        if known then
            out[#out + 1] = recall(P, lane, known)
        end
    end
    if #out > 3 then
        return out
    end
end

-- Leaves out ids without a body: nothing of such a job is there.
local function without_gaps(ids, bodies, over, n)
    local some, with, long, m = {}, {}, {}, 0
    for i = 1, n do
        if bodies[i] then
            m = m + 1
            some[m], with[m], long[m] = ids[i], bodies[i], over[i]
        end
    end
    return some, with, long, m
end

local function lease(P, lane, level, ids, meta)
    local bodies, n, over = bodies_of(P, ids, body_max, budget, meta[4])
    for i = #ids, n + 1, -1 do
        call('LPUSH', P .. 'ready:' .. level, ids[i])
        ids[i] = nil
    end
    local whole = true
    for i = 1, n do
        whole = whole and bodies[i]
        budget = budget - (bodies[i] and #bodies[i] or 0)
    end
    if not whole then
        ids, bodies, over, n = without_gaps(ids, bodies, over, n)
        if n == 0 then
            return 0
        end
    end
    meta.fence = meta.fence or format('%.0f', next_fence(meta[5]))
    local value = meta.fence .. ' ' .. level .. worker
    local kv = {}
    for i = 1, n do
        kv[2 * i - 1], kv[2 * i] = ids[i], value
    end
    open_leases(P)
    spread('HSET', P .. 'lease', kv, 1, 2 * n)
    release(P, ids, 1, n, true)
    forget_since(P, ids, 1, n)
    local hist, list = {}, {}
    if call('HLEN', P .. 'hist') > 0 then
        hist = fetch('HMGET', P .. 'hist', ids, 1, n)
    end
    for i in pairs(over) do
        list[#list + 1] = i - 1
    end
    out[#out + 1] = {lane - 1, meta.fence, ids, bodies, hist, list}
    return n
end

local function take(P, lane)
    local meta = call('HMGET', P .. 'meta', 'paused', 'levels', 'gr', 'big', 'fence', 'v')
    check_format(meta[6])
    if meta[1] or not meta[2] then
        return
    end
    local levels, ghosts = meta[2], tonumber(meta[3] or 0)
    local due = first_due(P)
    local promoted = 0
    if due and due <= now then
        promoted = promote(P, max(most, 100))
        due = first_due(P)
    end
    if due then
        next_due = min(next_due or due, due)
    end
    local n, from = 0, #out
    for i = 1, #levels do
        if most <= 0 or budget <= 0 then
            break
        end
        local level = sub(levels, i, i)
        local ids = pop(P, level, most, ghosts)
        if #ids > 0 then
            local got = lease(P, lane, level, ids, meta)
            n, most = n + got, most - got
        end
    end
    if n > 0 then
        call('HSET', P .. 'meta', 'fence', meta.fence)
        call('HINCRBY', P .. 'held', worker, n)
        local known = {seq .. ' ' .. meta.fence}
        for i = from + 1, #out do
            known[#known + 1] = table.concat(out[i][3], '\0')
        end
        call('SET', P .. 'got:' .. worker, table.concat(known, '\0'), 'PX', ttl)
    end
    if promoted > 0 and not was_idle then
        ring(P, count_ready(P, levels, 0))
    end
end

local function pass_the_bell(P)
    local meta = call('HMGET', P .. 'meta', 'paused', 'levels')
    if meta[2] and not meta[1] then
        ring(P, count_ready(P, meta[2], 0))
    end
end

for lane = 1, #KEYS do
    local P = prefix(KEYS[lane])
    if was_idle then
        call('SREM', P .. 'idle', worker)
        call('DEL', P .. 'bell:' .. worker)
    end
end
for lane = 1, #KEYS do
    take(prefix(KEYS[lane]), lane)
    if most <= 0 or budget <= 0 then
        break
    end
end
if was_idle then
    for lane = 1, #KEYS do
        pass_the_bell(prefix(KEYS[lane]))
    end
end
if #out == 3 then
    out[3] = next_due or 0
    if register then
        for lane = 1, #KEYS do
            call('SADD', prefix(KEYS[lane]) .. 'idle', worker)
        end
    end
end
return out
