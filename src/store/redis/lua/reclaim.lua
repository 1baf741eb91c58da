-- reclaim.lua - active -> active: leases of dead incarnations pass to this worker under new fences
--
-- KEYS  <ns>:workers, then one meta for each lane
-- ARGV  worker, most, longest body handed out, bytes of one answer, number of the call, repeated (0|1), ms the answer is
--       remembered
-- Answers {stale, more, then for each lane: {lane, fence, ids, bodies, histories, oversize indices, formers,
-- begun (0|1)}}. more: leases of dead incarnations may be left.
--
-- An incarnation whose time is over is condemned (until = -1) when it is met, and forgotten once it holds nothing. Its
-- leases are found by a scan over those of single jobs and then over the packs, which goes on at the next call after SCAN_MAX
-- of them; nothing is scanned while nobody is dead. A reclaimed job leaves its pack: its crash is about to be recorded.
local SCAN_MAX = 50000
local worker, most, body_max, budget, seq, ttl, out -- of the call at hand

local function answer(P, lane, fence, ids, formers, begun)
    local bodies, _, over = bodies_of(P, ids, body_max, huge, true)
    local list = {}
    for i in pairs(over) do
        list[#list + 1] = i - 1
    end
    for i = 1, #ids do
        bodies[i] = bodies[i] or ''
        budget = budget - #bodies[i]
    end
    local hist = fetch('HMGET', P .. 'hist', ids, 1, #ids)
    for i = 1, telling and #ids or 0 do
        tell(EVENT.STALLED, ids[i], kind_of(bodies[i]), EVENT.attempt_of(hist[i]), 0, formers[i])
    end
    out[#out + 1] = {lane - 2 + (telling and 1000 or 0), fence, ids, bodies, hist, list, formers, begun}
end

-- Remembered: number, fence, then for each lease: id, former, begun.
local function recall(P, lane, known)
    local had = cmsgpack.unpack(known)
    if had[1] ~= seq then
        return
    end
    local ids, formers, begun = {}, {}, {}
    for i = 3, #had, 3 do
        local fence, w = match(call('HGET', P .. 'lease', had[i]) or '', '^(%d+) .(%w+)')
        if fence == had[2] and w == worker then
            ids[#ids + 1], formers[#formers + 1], begun[#begun + 1] = had[i], had[i + 1], had[i + 2]
        end
    end
    if #ids > 0 then
        answer(P, lane, had[2], ids, formers, begun)
    end
end

-- Condemns the dead of a lane, forgets those that hold nothing; the others with what they hold, or nil.
local function bury(P, all_workers)
    local all = call('ZRANGE', P .. 'workers', '-inf', '(' .. now, 'BYSCORE', 'LIMIT', 0, 100)
    local dead, holds = {}, 0
    for i = 1, #all do
        local w = all[i]
        local held = tonumber(call('HGET', P .. 'held', w) or 0)
        if held > 0 then
            call('ZADD', P .. 'workers', -1, w)
            call('SREM', P .. 'idle', w)
            dead[w] = held
            holds = holds + held
        else
            forget_worker(P, w)
        end
        call('HDEL', all_workers, w)
    end
    if #all > 0 then
        local meta = call('HMGET', P .. 'meta', 'levels', 'paused', 'xr', 'kr')
        if (meta[1] or meta[4]) and not meta[2] then
            ring(P, count_ready(P, meta[1] or '', 0, meta[3]) + tonumber(meta[4] or 0))
        end
    end
    return dead, holds
end

local function move(P, lane, found)
    local fence = format('%.0f', next_fence(call('HGET', P .. 'meta', 'fence')))
    local ids, formers, begun, kv, known = {}, {}, {}, {}, {seq, fence}
    K.let_go_keys()
    for i = 1, #found do
        local f = found[i]
        if f.p then
            f.level = level_of(extract(P, f.p, f.place, f.state))
        end
        ids[i], formers[i], begun[i] = f.id, f.former, f.begun and 1 or 0
        kv[2 * i - 1], kv[2 * i] = f.id, fence .. ' ' .. f.level .. worker
        known[3 * i], known[3 * i + 1], known[3 * i + 2] = f.id, f.former, begun[i]
    end
    K.key_flush()
    open_leases(P)
    spread('HSET', P .. 'lease', kv, 1, #kv)
    call('HSET', P .. 'meta', 'fence', fence)
    call('HINCRBY', P .. 'held', worker, #found)
    call('SET', P .. 'won:' .. worker, cmsgpack.pack(known), 'PX', ttl)
    answer(P, lane, fence, ids, formers, begun)
end

-- What a scan over the leases of a lane found, and how far it may go.
local function new_search(dead, holds)
    return {found = {}, seen = {}, dead = dead, holds = holds, looked = 0, size = 0, full = false}
end

-- False when there is no room for one more.
local function add_found(s, f, size)
    if #s.found >= most or s.size >= budget then
        s.full = true
        return false
    end
    s.found[#s.found + 1] = f
    s.size = s.size + min(size, body_max)
    s.holds = s.holds - 1
    return true
end

local function visit_lease(P, s, id, lease)
    local level, former, mark = match(lease, '^%d+ (.)(%w+)(!?)$')
    if former and s.dead[former] and not s.seen[id] and
       add_found(s, {id = id, former = former, level = level, begun = mark == '!'}, call('HSTRLEN', P .. 'jobs', id)) then
        s.seen[id] = true
    end
end

local function visit_pack(P, s, name)
    local p = name ~= '' and not s.seen[name] and pack_at(P, name)
    local v = p and p.v or {}
    for k = 1, #v, 3 do
        local former = match(v[k + 2], '^a%d+ (%w+)$')
        if former and s.dead[former] then
            for place = v[k], v[k] + v[k + 1] - 1 do
                local f = {id = id_at(name, place), former = former, p = p, place = place, state = v[k + 2]}
                if not add_found(s, f, #body_of(P, p, place)) then
                    return
                end
            end
        end
    end
    s.seen[name] = true
end

-- Goes on with the scan of a hash; the cursor is kept in meta. True when it has been seen from beginning to end.
local function scan(P, s, hash, field, visit)
    local began = call('HGET', P .. 'meta', field) or '0'
    local cursor = began
    repeat
        local step = call('HSCAN', P .. hash, cursor, 'COUNT', 500)
        local all = step[2]
        for i = 1, #all, 2 do
            if not s.full then
                visit(P, s, all[i], all[i + 1])
            end
        end
        if not s.full then
            cursor = step[1]
        end
        s.looked = s.looked + #all / 2
    until s.full or s.holds <= 0 or s.looked >= SCAN_MAX or cursor == '0'
    if cursor == '0' or s.holds <= 0 then
        call('HDEL', P .. 'meta', field)
    else
        call('HSET', P .. 'meta', field, cursor)
    end
    return cursor == '0' and began == '0' and not s.full
end

local function reclaim(P, lane, all_workers)
    local dead, holds = bury(P, all_workers)
    if holds == 0 then
        return
    end
    call('HLEN', P .. 'pack')
    local s = new_search(dead, holds)
    local whole = scan(P, s, 'lease', 'scan', visit_lease)
    if not s.full and s.holds > 0 and s.looked < SCAN_MAX then
        whole = scan(P, s, 'pack', 'scanp', visit_pack) and whole
    else
        whole = false
    end
    most = most - #s.found
    if whole then
        for w in pairs(dead) do
            dead[w] = 0 -- a whole scan: what it did not find is not there
        end
        s.holds = 0
    end
    local n = {}
    for i = 1, #s.found do
        local former = s.found[i].former
        n[former] = (n[former] or 0) + 1
    end
    for w, held in pairs(dead) do
        if held == 0 or call('HINCRBY', P .. 'held', w, n[w] and -n[w] or 0) <= 0 then
            forget_worker(P, w)
        end
    end
    if s.holds > 0 then
        out[2] = 1
    end
    if #s.found > 0 then
        tell_begin(call('HEXISTS', P .. 'meta', 'ev') == 1)
        move(P, lane, s.found)
    end
    flush(P)
    tell_end(P)
end

local function op_reclaim(keys, argv)
    begin()
    worker, most, body_max, budget = argv[1], tonumber(argv[2]), tonumber(argv[3]), tonumber(argv[4])
    seq, ttl, out = argv[5], argv[7], {0, 0}
    tell_begin(false)
    for lane = 2, #keys do
        local till = call('ZSCORE', prefix(keys[lane]) .. 'workers', worker)
        if not till or tonumber(till) < now then
            return {1, 0}
        end
    end
    if argv[6] == '1' then
        for lane = 2, #keys do
            local P = prefix(keys[lane])
            local known = call('GET', P .. 'won:' .. worker)
            if known then
                recall(P, lane, known)
            end
        end
    end
    for lane = 2, #out == 2 and #keys or 1 do
        if most <= 0 then
            out[2] = 1
            break
        end
        reclaim(prefix(keys[lane]), lane, keys[1])
    end
    local answer = out
    out = nil -- the library stays
    return answer
end
