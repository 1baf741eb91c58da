-- keys.lua - joined behind pack.lua: keys of jobs, their places, and whose turn it is (src/queue/limit.h says what it all means)
--
-- meta.gate is "v free_at free_until tat held epoch" of a queue that has or had keys or limits, lim and klim are its limit and the
-- default of its keys, kr the ready jobs of keys. What a key has, keys[key] tells:
--
--     ready active waiting away paused until tat place at held epoch|own limit
--
-- Its ready jobs are the zset kz:<key>, score = level * 2^45 + 2^44 + or - a number that grows (kseq). kring holds the keys that may
-- run, ktime those that wait for a time, kpark those that wait for a slot or an operator; knames all of them, for listings.
-- When the default limit changes all of ktime and kpark go to kring at 0 in one command, and the epoch grows: what a key of an older
-- epoch says of its place is then not true. key[id] is the key of a job, in every state; kaway has
-- the jobs that were active and wait to come back.
--
-- Jobs with keys are in no pack, but for those in company (company.lua), which nothing here counts. An op counts by key_count, and key_flush places and writes before it ends.
--
-- Other files find it all in K: a chunk may have 200 locals, and the library is one.
local gate   -- of the queue at work; nil = it has none
local K = {} -- what others use of this
do
local STRIDE, LEVEL, MIDDLE = 1048576, 35184372088832, 17592186044416
local IDLE, RING, TIMED, PARKED = 0, 1, 2, 3
local NEVER = 9007199254740992
local gate_P
local touched, n_touched  -- keys whose numbers changed
local known_keys          -- what was read of keys

local function read_limit(text)
    local c, n, p, b, w, o = match(text or '', '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
    return {c = tonumber(c or 0), n = tonumber(n or 0), p = tonumber(p or 0), b = tonumber(b or 0), w = tonumber(w or 0), o = tonumber(o or 0)}
end

-- The queue at work; its gate, or nil when it has none. text: meta.gate when that is known.
local function key_begin(P, text)
    gate_P, gate, touched, n_touched, known_keys = P, nil, {}, 0, {}
    text = text or text == nil and call('HGET', P .. 'meta', 'gate')
    if text then
        local v, f, u, t, h, e = match(text, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
        gate = {v = tonumber(v), free_at = tonumber(f), free_until = tonumber(u), tat = tonumber(t), held = tonumber(h), epoch = tonumber(e),
                ready = 0, rings = 0}
        local limits = call('HMGET', P .. 'meta', 'lim', 'klim')
        gate.lim, gate.usual = read_limit(limits[1]), read_limit(limits[2])
    end
    return gate
end

-- The same behind a drain of the inbox, which may have made another of it (keyed).
function K.begin_behind(P, text, keyed)
    if keyed then
        return key_begin(P)
    end
    return key_begin(P, text)
end

-- The same, made when it is not there.
local function key_open(P, text)
    if not key_begin(P, text) then
        gate = {v = 0, free_at = 0, free_until = 0, tat = 0, held = 0, epoch = 0, ready = 0, rings = 0, dirty = true}
        gate.lim, gate.usual = read_limit(), read_limit()
    end
    return gate
end

local function read_key(key, text)
    local k = {key = key, ready = 0, active = 0, waiting = 0, away = 0, paused = 0, till = 0, tat = 0, place = IDLE, at = 0, held = 0}
    if text then
        local r, a, w, y, p, u, t, l, at, h, e, own = match(text, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) ([^|]+)|(.*)$')
        k.ready, k.active, k.waiting, k.away, k.paused = tonumber(r), tonumber(a), tonumber(w), tonumber(y), tonumber(p)
        k.till, k.tat, k.place, k.at, k.held = tonumber(u), tonumber(t), tonumber(l), tonumber(at), tonumber(h)
        k.own = own ~= '' and own or nil
        k.there = true
        if tonumber(e) ~= gate.epoch and k.place >= TIMED then
            k.place, k.held, k.at = RING, 0, tonumber(call('ZSCORE', gate_P .. 'kring', key) or 0)
        end
    end
    k.was_ready = k.ready
    return k
end

local function key_at(key)
    local k = known_keys[key]
    if not k then
        k = read_key(key, call('HGET', gate_P .. 'keys', key))
        known_keys[key] = k
    end
    return k
end

local function key_touch(k)
    if not k.touched then
        k.touched = true
        n_touched = n_touched + 1
        touched[n_touched] = k
    end
    return k
end

-- Of several keys, those not read yet, in one call.
local function key_fetch(keys)
    local ask, n = {}, 0
    for i = 1, #keys do
        if keys[i] and not known_keys[keys[i]] then
            n = n + 1
            ask[n] = keys[i]
            known_keys[keys[i]] = false
        end
    end
    local texts = fetch('HMGET', gate_P .. 'keys', ask, 1, n)
    for i = 1, n do
        known_keys[ask[i]] = read_key(ask[i], texts[i])
    end
end

-- The keys of jobs, false for those without one.
local function keys_of(P, ids, a, b)
    if not gate or b < a or call('HLEN', P .. 'key') == 0 then
        return {}
    end
    local keys = fetch('HMGET', P .. 'key', ids, a, b)
    key_fetch(keys)
    return keys
end

-- Adds jobs to the state `what` of a key, or takes them off it.
local function key_count(key, what, n)
    local k = key_touch(key_at(key))
    k[what] = k[what] + n
    if what == 'ready' then
        gate.ready = gate.ready + n
    end
end

-- What holds for a key: its own where it is set, else the default.
local function limit_of(k)
    if not k.own then
        if not gate.joined then
            local u = gate.usual
            gate.joined = {c = max(u.c, 0), n = max(u.n, 0), p = u.p, b = u.b, w = max(u.w, 1), o = u.o == 0 and 1 or u.o}
        end
        return gate.joined
    end
    local own, u = read_limit(k.own), gate.usual
    local rate = own.n ~= 0 and own or u
    local o = own.o ~= 0 and own.o or u.o
    return {c = max(own.c ~= 0 and own.c or u.c, 0), n = max(rate.n, 0), p = rate.p, b = rate.b,
            w = max(own.w ~= 0 and own.w or u.w, 1), o = o == 0 and 1 or o}
end

local function stride_of(l)
    return floor(STRIDE / l.w)
end

local function step_of(l)
    return floor((l.p * 1000 + l.n - 1) / l.n)
end

-- Tokens, and when there are none the time of the next.
local function rate_room(l, tat)
    if l.n <= 0 then
        return NEVER, NEVER
    end
    local step = step_of(l)
    local n = floor((l.b * step - max(tat - now * 1000, 0)) / step)
    if n > 0 then
        return n, NEVER
    end
    return 0, tat - (l.b - 1) * step
end

local function rate_spend(l, tat, n)
    return l.n <= 0 and tat or max(tat, now * 1000) + n * step_of(l)
end

-- How many of its ready jobs may be taken, when that changes by itself, and why (enum lade_key_hold).
local function key_room(k, l)
    if k.ready <= 0 then
        return 0, NEVER, 0
    elseif k.paused == 1 then
        return 0, NEVER, 1
    elseif k.till > now * 1000 then
        return 0, k.till, 1
    end
    local room = k.ready
    if l.o == 2 then
        if k.active > 0 or k.away > 0 then
            return 0, NEVER, 4
        end
        room = 1
    end
    if l.c > 0 then
        room = min(room, l.c - k.active)
        if room <= 0 then
            return 0, NEVER, 2
        end
    end
    local tokens, at = rate_room(l, k.tat)
    if tokens <= 0 then
        return 0, at, 3
    end
    return min(room, tokens), NEVER, 0
end

local function queue_room(n_active)
    local l = gate.lim
    if l.c > 0 and n_active >= l.c then
        return 0, NEVER
    end
    local room, at = rate_room(l, gate.tat)
    return l.c > 0 and min(room, l.c - n_active) or room, at
end

local function put_place(k, place, at)
    if k.place == RING and place ~= RING then
        call('ZREM', gate_P .. 'kring', k.key)
    elseif k.place == TIMED and place ~= TIMED then
        call('ZREM', gate_P .. 'ktime', k.key)
    elseif k.place == PARKED and place ~= PARKED then
        call('ZREM', gate_P .. 'kpark', k.key)
    end
    if place == RING and (k.place ~= RING or k.at ~= at) then
        call('ZADD', gate_P .. 'kring', format('%.0f', at), k.key)
    elseif place == TIMED and (k.place ~= TIMED or k.at ~= at) then
        call('ZADD', gate_P .. 'ktime', format('%.0f', at), k.key)
    elseif place == PARKED and k.place ~= PARKED then
        call('ZADD', gate_P .. 'kpark', 0, k.key)
    end
    k.place, k.at = place, at
end

-- The place that follows from its numbers.
local function place_key(k)
    local l = limit_of(k)
    local room, at, why = key_room(k, l)
    if room > 0 then
        if k.place ~= RING then
            put_place(k, RING, gate.v + stride_of(l))
            gate.rings = gate.rings + room
        elseif k.ready > k.was_ready then
            gate.rings = gate.rings + min(room, k.ready - k.was_ready)
        end
    elseif why == 0 then
        put_place(k, IDLE, 0)
    elseif at < NEVER then
        if k.place ~= TIMED then
            gate.rings = gate.rings + 1 -- to be told of the time
        end
        put_place(k, TIMED, at)
    else
        put_place(k, PARKED, 0)
    end
    local held = k.place >= TIMED and k.ready or 0
    if held ~= k.held then
        gate.held, gate.dirty, k.held = gate.held + held - k.held, true, held
    end
    k.was_ready = k.ready
end

local function write_key(k, kv, gone)
    local us = now * 1000
    if k.ready + k.active + k.waiting > 0 or k.paused == 1 or k.till > us or k.tat > us or k.own then
        kv[#kv + 1] = k.key
        kv[#kv + 1] = format('%d %d %d %d %d %.0f %.0f %d %.0f %d %d|', k.ready, k.active, k.waiting, k.away, k.paused, k.till, k.tat, k.place,
                             k.at, k.held, gate.epoch) .. (k.own or '')
        if not k.there then
            call('ZADD', gate_P .. 'knames', 0, k.key)
            k.there = true
        end
    elseif k.there then
        gone[#gone + 1] = k.key
        k.there = false
    end
end

-- Places what changed. Then the ring is true.
local function key_place()
    for i = 1, n_touched do
        place_key(touched[i])
    end
end

-- Places and writes what changed, and wakes whom it has work for, unless the queue is paused.
local function key_flush()
    if not gate then
        return
    end
    local P, kv, gone = gate_P, {}, {}
    key_place()
    for i = 1, n_touched do
        write_key(touched[i], kv, gone)
    end
    spread('HSET', P .. 'keys', kv, 1, #kv)
    spread('HDEL', P .. 'keys', gone, 1, #gone)
    spread('ZREM', P .. 'knames', gone, 1, #gone)
    if gate.ready ~= 0 then
        call('HINCRBY', P .. 'meta', 'kr', gate.ready)
    end
    if gate.dirty then
        call('HSET', P .. 'meta', 'gate', format('%.0f %.0f %.0f %.0f %d %d', gate.v, gate.free_at, gate.free_until, gate.tat, gate.held, gate.epoch))
    end
    if gate.rings > 0 and call('HEXISTS', P .. 'meta', 'paused') == 0 then
        ring(P, gate.rings)
    end
    gate, touched, n_touched, known_keys = nil, nil, 0, nil
end

-- Jobs of keys become ready; list is level, id, key, front (true: before all of its level), and so on.
local function key_ready(P, list)
    local n = #list / 4
    if n == 0 then
        return
    end
    local seq = call('HINCRBY', P .. 'meta', 'kseq', n) - n
    local by, order = {}, {}
    for i = 1, #list, 4 do
        local level, id, key, front = list[i], list[i + 1], list[i + 2], list[i + 3]
        local args = by[key]
        if not args then
            args = {}
            by[key], order[#order + 1] = args, key
        end
        seq = seq + 1
        args[#args + 1] = format('%.0f', level * LEVEL + MIDDLE + (front and -seq or seq))
        args[#args + 1] = id
        key_count(key, 'ready', 1)
    end
    for i = 1, #order do
        spread('ZADD', P .. 'kz:' .. order[i], by[order[i]], 1, #by[order[i]])
    end
end

-- Jobs that were away come back: whether each does, and to the front.
local function comes_back(P, id, key)
    if call('SREM', P .. 'kaway', id) == 0 then
        return false
    end
    key_count(key, 'away', -1)
    return limit_of(key_at(key)).o == 2
end

-- Nothing of the key (false: of the jobs without one) is taken until then.
local function throttle(key, ms)
    local till = (now + ms) * 1000
    if key then
        local k = key_touch(key_at(key))
        k.till = max(k.till, till)
    else
        gate.free_until, gate.dirty = max(gate.free_until, till), true
        gate.rings = gate.rings + 1
    end
end

-- What was read; the library stays.
local function let_go_keys()
    gate, touched, n_touched, known_keys = nil, nil, 0, nil
end

-- How many bytes of a value of this first byte follow, where that is fixed; and how many bytes tell its length, where these do (MessagePack).
local FOLLOW = {[202] = 4, [203] = 8, [204] = 1, [205] = 2, [206] = 4, [207] = 8, [208] = 1, [209] = 2, [210] = 4, [211] = 8}
local COUNTED = {[196] = 1, [197] = 2, [198] = 4, [217] = 1, [218] = 2, [219] = 4, [220] = 2, [221] = 4, [222] = 2, [223] = 4}

-- Behind the value at `at` of the text; and where its bytes begin and end, when it is a string or bytes.
local function skip_value(text, at)
    local left, from, to = 1, nil, nil
    while left > 0 do
        local c = byte(text, at)
        if not c then
            return
        end
        local n, more = FOLLOW[c] or 0, 0
        at, from = at + 1, nil
        if COUNTED[c] then
            n = 0
            for i = at, at + COUNTED[c] - 1 do
                n = n * 256 + (byte(text, i) or 0)
            end
            at = at + COUNTED[c]
            if c >= 220 then
                n, more = 0, c >= 222 and 2 * n or n
            else
                from = at
            end
        elseif c >= 160 and c <= 191 then
            n, from = c - 160, at
        elseif c >= 144 and c <= 159 then
            more = c - 144
        elseif c >= 128 and c <= 143 then
            more = 2 * (c - 128)
        end
        at, left = at + n, left - 1 + more
        to = at - 1
    end
    return at, from, to
end

-- The key that an envelope tells (lq_body_key), or nil: the eleventh of its array.
function K.key_of(body)
    local c, at, from, to = byte(body, 3), 4, nil, nil
    local n = c and c >= 144 and c <= 159 and c - 144 or 0
    if c == 220 then
        n, at = 256 * (byte(body, 4) or 0) + (byte(body, 5) or 0), 6
    end
    for _ = 1, n > 10 and 11 or 0 do
        at, from, to = skip_value(body, at)
        if not at then
            return
        end
    end
    return from and to >= from and sub(body, from, to) or nil
end

-- n jobs of company wait and run no more.
function K.less_company(n)
    extra.k = (extra.k or 0) - n
end

-- A job leaves its pack, where the envelope told its key: it has it by itself now. An active one counts; a ready one is counted by who
-- takes it out.
function FOLD.leave_company(P, id, body, kind)
    local key = K.key_of(body)
    if kind ~= 'c' then
        K.less_company(1)
    end
    if not key then
        return
    end
    if not gate then
        key_open(P)
    end
    plain = false
    set_fields(P .. 'key', {id, key}, 1, 2)
    if kind == 'a' then
        key_count(key, 'active', 1)
    end
end

K.key_begin = key_begin
K.key_open = key_open
K.key_at = key_at
K.key_touch = key_touch
K.key_fetch = key_fetch
K.keys_of = keys_of
K.key_count = key_count
K.limit_of = limit_of
K.stride_of = stride_of
K.rate_spend = rate_spend
K.key_room = key_room
K.queue_room = queue_room
K.put_place = put_place
K.place_key = place_key
K.key_place = key_place
K.key_flush = key_flush
K.key_ready = key_ready
K.comes_back = comes_back
K.throttle = throttle
K.read_limit = read_limit
K.let_go_keys = let_go_keys
K.NEVER = NEVER
K.LEVEL = LEVEL
K.STRIDE = STRIDE
K.IDLE = IDLE
K.RING = RING
K.TIMED = TIMED
K.PARKED = PARKED
end
