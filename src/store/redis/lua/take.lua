-- take.lua - ready -> active under a lease of this worker, from the lanes in order; due jobs are promoted first
--
-- KEYS  one meta for each lane
-- ARGV  worker, most, register when empty (0|1), was registered (0|1), longest body handed out, bytes of one answer,
--       number of the call, repeated (0|1), ms the answer is remembered
-- Answers {stale, now, next due or 0, then in order: {lane, fence, ids, bodies, histories, oversize indices} or, of a pack,
-- {lane, fence, entry}, whose bodies the client fetches itself}
--
-- A worker that was registered as idle is taken off all lanes first. When it leaves jobs behind, it passes the bell on:
-- it may have been rung for a job of another lane than it took.
local CHAINED = 4000 -- the same of a step of a folded chain: those behind it may be run ahead
local TOLD = 1000 -- added to the lane of a queue with a stream of events: settles then come with theirs
local PACK_BYTES = 17000 -- no pack has more (LQ_PACK_BYTES)
local worker, most, was_idle, body_max, budget, seq, ttl, out, next_due -- of the call at hand
local carried -- what the worker has been leased by the same call before: {fence, known = entries}, or nil

local function answer_ids(P, lane, fence, ids, bodies, over)
    local hist, list = {}, {}
    if not plain and call('HLEN', P .. 'hist') > 0 then
        hist = fetch('HMGET', P .. 'hist', ids, 1, #ids)
    end
    for i in pairs(over) do
        list[#list + 1] = i - 1
    end
    for i = 1, telling and #ids or 0 do
        tell(EVENT.ACTIVE, ids[i], kind_of(bodies[i]), EVENT.attempt_of(hist[i]))
    end
    out[#out + 1] = {lane - 1 + (telling and TOLD or 0), fence, ids, bodies, hist, list}
end

-- What is left of a stretch of a pack: what is leased, and onto `loose` the ids that are in the pack no more.
local function recall_run(P, lane, fence, entry, loose)
    local from, to = read_entry(entry)
    local name, state = name_of(entry), 'a' .. fence .. ' ' .. worker
    local p, at = pack_at(P, name), from
    local v = p and p.v or {}
    for k = 1, #v, 3 do
        local a, b = max(v[k], from), min(v[k] + v[k + 1], to)
        if a < b and v[k + 2] == state then
            out[#out + 1] = {lane - 1, fence, entry_of(name, a, b)}
            for i = at, a - 1 do
                loose[#loose + 1] = id_at(name, i)
            end
            at = b
        end
    end
    for i = at, to - 1 do
        loose[#loose + 1] = id_at(name, i)
    end
end

-- What the call that is now repeated had taken, as far as it is still this worker's.
local function recall(P, lane, known)
    local number, fence, rest = match(known, '^(%d+) (%d+)(.*)$')
    if number ~= seq then
        return
    end
    local had, ids = {}, {}
    for entry in gmatch(rest, '%z([^%z]+)') do
        if is_run(entry) then
            recall_run(P, lane, fence, entry, had)
        else
            had[#had + 1] = entry
        end
    end
    local leases = fetch('HMGET', P .. 'lease', had, 1, #had)
    for i = 1, #had do
        if leases[i] and match(leases[i], '^(%d+) .(%w+)') == fence and match(leases[i], '^%d+ .(%w+)') == worker then
            ids[#ids + 1] = had[i]
        end
    end
    if #ids > 0 then
        local bodies, _, over = bodies_of(P, ids, body_max, huge, true)
        answer_ids(P, lane, fence, ids, bodies, over)
    end
    flush(P)
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

-- Leases those of ids whose bodies the budget allows: the others are taken out of the list. How many these are, how many jobs,
-- and the others.
local function lease_ids(P, lane, level, ids, meta)
    local bodies, n, over = bodies_of(P, ids, body_max, budget, meta[4])
    local covered, whole = n, true
    for i = 1, n do
        whole = whole and bodies[i]
        budget = budget - (bodies[i] and #bodies[i] or 0)
    end
    local left = {}
    for i = #ids, n + 1, -1 do
        left[i - n] = ids[i]
        ids[i] = nil
    end
    if not whole then
        ids, bodies, over, n = without_gaps(ids, bodies, over, n)
        if n == 0 then
            return covered, 0, left
        end
    end
    local value = meta.fence .. ' ' .. level .. worker
    local kv = {}
    for i = 1, n do
        kv[2 * i - 1], kv[2 * i] = ids[i], value
    end
    if not meta[10] then
        open_leases(P)
        call('HSET', P .. 'meta', 'open', 1)
        meta[10] = '1'
    end
    spread('HSET', P .. 'lease', kv, 1, 2 * n)
    release(P, ids, 1, n, true)
    forget_since(P, ids, 1, n)
    if meta.bytes then
        meta.bytes = meta.bytes + K.weigh(P, ids, 1, n)
    end
    local n_known = #meta.known
    for i = 1, n do
        meta.known[n_known + i] = ids[i]
    end
    answer_ids(P, lane, meta.fence, ids, bodies, over)
    return covered, n, left
end

local function lease_run(P, lane, run, meta)
    local p, from, to = run.p, run.from, run.to
    local entry = entry_of(p and p.name or run.name, from, to)
    if p then
        set_state(p, from, to, 'a' .. meta.fence .. ' ' .. worker)
    else
        FOLD.pending[run.name] = run.head .. from .. ' ' .. to - from .. ' a' .. meta.fence .. ' ' .. worker .. ';' .. run.tail
    end
    extra.a = extra.a + to - from
    if meta.bytes then
        meta.bytes = meta.bytes + K.weigh_run(P, p, from, to)
    end
    budget = budget - PACK_BYTES
    meta.known[#meta.known + 1] = entry
    local head = p and p.head or run.head
    local chained = head and byte(head) == 67 and not gate
    out[#out + 1] = {lane - 1 + (telling and TOLD or 0) + (chained and CHAINED or 0), meta.fence, entry}
    if p then
        tell_run(EVENT.ACTIVE, P, p, from, to, 1)
    end
    return to - from
end

-- What the budget did not allow goes back to the head.
local function give_back(P, level, jobs, from)
    for i = #jobs, from, -1 do
        local job = jobs[i]
        if type(job) == 'table' then
            extra.r = extra.r + job.to - job.from - 1
            job = entry_of(job.p and job.p.name or job.name, job.from, job.to)
        end
        call('LPUSH', P .. 'ready:' .. level, job)
    end
end

-- Leases popped jobs, in their order, until the budget is used up; one at least. How many.
local function lease(P, lane, level, jobs, packed, meta)
    local n, i = 0, 1
    meta.fence = meta.fence or format('%.0f', next_fence(meta[5]))
    if not packed then
        local _, got, left = lease_ids(P, lane, level, jobs, meta)
        give_back(P, level, left, 1)
        return got
    end
    while jobs[i] and budget > 0 do
        if type(jobs[i]) == 'table' then
            n = n + lease_run(P, lane, jobs[i], meta)
            i = i + 1
        else
            local ids, j = {}, i
            while type(jobs[j]) == 'string' do
                ids[#ids + 1] = jobs[j]
                j = j + 1
            end
            local covered, got = lease_ids(P, lane, level, ids, meta)
            i, n = i + covered, n + got
            if i < j then
                break
            end
        end
    end
    give_back(P, level, jobs, i)
    return n
end

-- Up to `limit` jobs without keys. How many.
local function take_free(P, lane, levels, ghosts, meta, limit)
    local n = 0
    for i = 1, #levels do
        if n >= limit or budget <= 0 then
            break
        end
        local level = sub(levels, i, i)
        local jobs, popped, packed = pop(P, level, limit - n, ghosts, not telling and not meta.bytes)
        if popped > 0 then
            n = n + lease(P, lane, level, jobs, packed, meta)
        end
    end
    return n
end

-- Leases the jobs that are in hand.
local function lease_hand(P, lane, meta)
    local hand = meta.hand
    if hand and #hand.ids > 0 then
        lease_ids(P, lane, hand.level, hand.ids, meta)
    end
    meta.hand = nil
end

-- Popped jobs into the hand, to be leased together: a lease for each turn would be most of its work.
local function take_in_hand(P, lane, popped, meta)
    for i = 1, #popped, 2 do
        local level = floor(popped[i + 1] / K.LEVEL)
        if not meta.hand or meta.hand.level ~= level then
            lease_hand(P, lane, meta)
            meta.hand = {level = level, ids = {}}
        end
        local ids = meta.hand.ids
        ids[#ids + 1] = popped[i]
    end
    return #popped / 2, #popped / 2
end

-- Up to n ready jobs of a key: how many were leased, and how many of its list were looked at.
local function take_key(P, lane, k, n, meta)
    local popped = call('ZPOPMIN', P .. 'kz:' .. k.key, n)
    local i, got, looked = 1, 0, 0
    meta.fence = meta.fence or format('%.0f', next_fence(meta[5]))
    if not meta[4] then -- no long bodies: all that is popped can be handed out
        return take_in_hand(P, lane, popped, meta)
    end
    while popped[i] and budget > 0 do
        local level, ids, j = floor(popped[i + 1] / K.LEVEL), {}, i
        while popped[j] and floor(popped[j + 1] / K.LEVEL) == level do
            ids[#ids + 1] = popped[j]
            j = j + 2
        end
        local covered, leased = lease_ids(P, lane, level, ids, meta)
        i, got, looked = i + 2 * covered, got + leased, looked + covered
        if i < j then
            break
        end
    end
    local back = {}
    for j = i, #popped, 2 do
        back[#back + 1], back[#back + 2] = popped[j + 1], popped[j]
    end
    spread('ZADD', P .. 'kz:' .. k.key, back, 1, #back)
    return got, looked
end

local function is_before(a, b)
    for i = 1, min(#a, #b) do
        local x, y = byte(a, i), byte(b, i)
        if x ~= y then
            return x < y
        end
    end
    return #a < #b
end

-- lq_key_turns of src/queue/limit.h
local function turns_of(at, stride, next, before)
    local ahead = next - at
    if ahead < 0 then
        return 1
    end
    return max(floor(ahead / stride) + ((ahead % stride ~= 0 or before) and 1 or 0), 1)
end

local function spend(at, n)
    gate.v, gate.tat, gate.dirty = max(gate.v, at), K.rate_spend(gate.lim, gate.tat, n), true
end

-- The key at the head of the ring has its turns. False when it may not run: then it is in the ring no more.
local function serve_head(P, lane, heads, has_free, limit, meta)
    local k = K.key_touch(K.key_at(heads[1]))
    local l = K.limit_of(k)
    local room, stride, at = K.key_room(k, l), K.stride_of(l), max(k.at, gate.v)
    if room <= 0 then
        K.place_key(k)
        return 0
    end
    local n = min(room, limit)
    if heads[3] then
        local next = tonumber(heads[4])
        n = min(n, turns_of(at, stride, next, (next - at) % stride == 0 and is_before(heads[1], heads[3])))
    end
    if has_free then
        n = min(n, turns_of(at, stride, gate.free_at, false))
    end
    local got, looked = take_key(P, lane, k, n, meta)
    K.key_count(k.key, 'ready', -looked)
    K.key_count(k.key, 'active', got)
    if got > 0 then
        spend(at + (got - 1) * stride, got)
        k.tat = K.rate_spend(l, k.tat, got)
        if k.ready > 0 then
            K.put_place(k, K.RING, at + got * stride)
        end
    end
    K.place_key(k)
    return got
end

local function serve_free(P, lane, heads, limit, levels, ghosts, meta)
    local n = limit
    if heads[1] then
        n = min(n, turns_of(gate.free_at, K.STRIDE, tonumber(heads[2]), true))
    end
    lease_hand(P, lane, meta)
    local got = take_free(P, lane, levels, ghosts, meta, n)
    if got > 0 then
        spend(gate.free_at + (got - 1) * K.STRIDE, got)
        gate.free_at = gate.free_at + got * K.STRIDE
    end
    return got, got == n
end

local function ripen(P)
    local ripe = call('ZRANGE', P .. 'ktime', '-inf', format('%.0f', now * 1000), 'BYSCORE', 'LIMIT', 0, SLICE)
    K.key_fetch(ripe)
    for i = 1, #ripe do
        K.key_touch(K.key_at(ripe[i]))
    end
    K.key_place()
end

-- The take of a queue with keys or limits: src/queue/limit.h. When nothing may run: when that changes by itself.
local function take_turns(P, lane, levels, ghosts, meta)
    local letters = match(levels, '%u*$')
    levels = sub(levels, 1, #levels - #letters)
    local apart = letters ~= '' and call('HGET', P .. 'meta', 'ka')
    if apart and K.take_apart(P, letters, SLICE, ghosts) == 0 then
        call('HDEL', P .. 'meta', 'ka')
    end
    ripen(P)
    local n_active = max(call('HLEN', P .. 'lease') - 1, 0) + tonumber(call('HGET', P .. 'meta', 'xa') or 0)
    local room, at = K.queue_room(n_active)
    local n_free, n = count_ready(P, levels, meta[3], meta[7]), 0
    local waits = n_free > 0 and gate.free_until > now * 1000
    local has_free = n_free > 0 and not waits
    if room > 0 and has_free and gate.free_at <= gate.v then
        gate.free_at, gate.dirty = gate.v + K.STRIDE, true
    end
    room = min(room, most)
    if room > 0 and letters ~= '' and not apart then
        n = take_free(P, lane, letters, ghosts, meta, room)
        if gate.lim.n > 0 and n > 0 then
            spend(gate.v, n)
        end
    end
    if room > n then
        K.key_fetch(call('ZRANGE', P .. 'kring', 0, min(room, SLICE) - 1))
    end
    local heads = call('ZRANGE', P .. 'kring', 0, 1, 'WITHSCORES')
    while n < room and budget > 0 and (heads[1] or has_free) do
        local got
        if has_free and (not heads[1] or gate.free_at <= tonumber(heads[2])) then
            got, has_free = serve_free(P, lane, heads, room - n, levels, ghosts, meta)
        else
            got = serve_head(P, lane, heads, has_free, room - n, meta)
        end
        n = n + got
        heads = call('ZRANGE', P .. 'kring', 0, 1, 'WITHSCORES')
    end
    lease_hand(P, lane, meta)
    gate.rings = max(gate.rings - n, 0)
    local soon = n_free > 0 and waits and gate.free_until or K.NEVER
    local timed = call('ZRANGE', P .. 'ktime', 0, 0, 'WITHSCORES')
    soon = min(soon, tonumber(timed[2] or K.NEVER))
    if heads[1] or has_free then
        soon = min(soon, at)
    end
    if soon < K.NEVER then
        next_due = min(next_due or huge, floor((soon + 999) / 1000))
    end
    return n
end

local function take(P, lane)
    local meta = call('HMGET', P .. 'meta', 'paused', 'levels', 'gr', 'big', 'fence', 'v', 'xr', 'gate', 'ev', 'open', 'max')
    check_format(meta[6])
    tell_begin(meta[9])
    if meta[1] or not (meta[2] or meta[8]) then
        return
    end
    local _, levels, keyed = drain(P, meta[2] or '')
    local ghosts = tonumber(meta[3] or 0)
    K.begin_behind(P, meta[8], keyed)
    local promoted = 0
    if call('EXISTS', P .. 'scheduled', P .. 'retrying') > 0 then
        local due = first_due(P)
        if due and due <= now then
            promoted = promote(P, max(most, 100))
            due = first_due(P)
        end
        if due then
            next_due = min(next_due or due, due)
        end
    end
    call('HLEN', P .. 'pack')
    look_plain(P)
    meta.known, meta.fence = carried and carried.known or {}, carried and carried.fence
    meta.bytes = K.max_bytes(meta[11]) and 0
    local n = gate and take_turns(P, lane, levels, ghosts, meta) or not gate and take_free(P, lane, levels, ghosts, meta, most)
    most = most - n
    if n > 0 then
        call('HSET', P .. 'meta', 'fence', meta.fence)
        call('HINCRBY', P .. 'held', worker, n)
        if meta[11] then
            K.add_bytes(P, -(meta.bytes or 0))
            heed(P, {'~'}) -- there is room
        end
        call('SET', P .. 'got:' .. worker, seq .. ' ' .. meta.fence .. '\0' .. concat(meta.known, '\0'), 'PX', ttl)
    end
    if promoted > 0 and not was_idle then
        ring(P, count_ready(P, levels, 0, call('HGET', P .. 'meta', 'xr'))) -- drain may have added to it
    end
    K.key_flush()
    if telling and n > 0 and count_ready(P, levels, call('HGET', P .. 'meta', 'gr'), meta[7]) +
        tonumber(call('HGET', P .. 'meta', 'kr') or 0) == 0 then
        tell(EVENT.DRAINED, '')
    end
    flush(P)
    tell_end(P)
end

function ops.pass_the_bell(P)
    local meta = call('HMGET', P .. 'meta', 'paused', 'levels', 'xr', 'kr')
    if (meta[2] or meta[4]) and not meta[1] then
        ring(P, count_ready(P, meta[2] or '', 0, meta[3]) + tonumber(meta[4] or 0))
    end
end

local function take_lanes(keys, register)
    for lane = 1, #keys do
        local P = prefix(keys[lane])
        if was_idle then
            call('SREM', P .. 'idle', worker)
            call('DEL', P .. 'bell:' .. worker)
        end
    end
    for lane = 1, most > 0 and #keys or 0 do -- none: it has enough of other slots, and is only taken off (op_take_slots.c)
        take(prefix(keys[lane]), lane)
        if most <= 0 or budget <= 0 then
            break
        end
    end
    if was_idle then
        for lane = 1, #keys do
            ops.pass_the_bell(prefix(keys[lane]))
        end
    end
    if #out == 3 then
        out[3] = next_due or 0
        if register then
            for lane = 1, #keys do
                call('SADD', prefix(keys[lane]) .. 'idle', worker)
            end
        end
    end
end

local function op_take(keys, argv, with)
    begin()
    carried = with
    worker, most, was_idle, body_max, budget = argv[1], tonumber(argv[2]), argv[4] == '1', tonumber(argv[5]), tonumber(argv[6])
    seq, ttl, next_due = argv[7], argv[9], nil
    for lane = 1, #keys do
        local till = call('ZSCORE', prefix(keys[lane]) .. 'workers', worker)
        if not till or tonumber(till) < now then
            return {1, now, 0}
        end
    end
    out = {0, now, 0}
    tell_begin(false)
    if argv[8] == '1' then
        for lane = 1, #keys do
            local P = prefix(keys[lane])
            local known = call('GET', P .. 'got:' .. worker)
            if known then
                recall(P, lane, known)
            end
        end
    end
    if #out == 3 then
        take_lanes(keys, argv[3] == '1')
    end
    local answer = out
    out = nil -- the library stays
    return answer
end
ops.take = op_take
