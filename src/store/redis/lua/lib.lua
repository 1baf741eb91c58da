-- lib.lua - joined behind head.lua in front of every op but the shortest
--
-- A queue is all keys that begin with P = "<ns>:{<queue>}:"; a script gets P .. "meta" as the key of a lane and makes the
-- others from it. The layout is in keys.h and docs/format.md.
--
-- Laws: an op reads every key it will write before its first write, so that a foreign type stops it while nothing
-- is done yet; variadic calls go in slices, so that no call needs a deep Lua stack; loops are bounded by an argument
-- or by what the client sent.
local function begin()
    begin_bare()
    local time = call('TIME')
    now_us = time[1] * 1000000 + time[2]
    now = floor(now_us / 1000)
end

-- argv[from..to], for an op that calls another. (unpack would need a deep stack.)
function ops.part_of(argv, from, to)
    local part = {}
    for i = from, to do
        part[i - from + 1] = argv[i]
    end
    return part
end

local function prefix(key)
    return sub(key, 1, -5)
end

local function refuse(text)
    error({err = text})
end

-- Before a write to a key that has no cheap read of its own type.
local function want(key, kind)
    local is = call('TYPE', key).ok
    if is ~= kind and is ~= 'none' then
        refuse('LADEFOREIGN ' .. key .. ' is a ' .. is)
    end
end

-- The level a body names; one that cannot be read is served like the others (LQ_BODY_LEVEL_AT, LQ_LEVEL_DEFAULT).
local function level_of(body)
    local c = byte(body, 2)
    return c and c >= 48 and c <= 56 and c - 48 or 4
end

local function check_format(v)
    local n = tonumber(v)
    if v and n ~= FORMAT and n ~= 3 and n ~= 2 then -- 3: no folded flows yet; 2: no inbox either
        refuse('LADEFORMAT ' .. tostring(v))
    end
end

-- The hash of packs has one field that is none, so that it is a table (make_table) from the beginning. v: the format it had.
local function make_queue(P, v)
    call('HSET', P .. 'meta', 'v', FORMAT)
    if tonumber(v) ~= 3 then
        call('RPUSH', P .. 'in', '')
    end
    if not v then
        call('HSET', P .. 'pack', '', rep('-', 65))
    end
end

-- list[a..b] as the arguments of a command that only writes.
local function spread(command, key, list, a, b)
    for i = a, b, SLICE do
        call(command, key, unpack(list, i, min(i + SLICE - 1, b)))
    end
end

-- The same for HMGET and ZMSCORE: one answer for each.
local function fetch(command, key, list, a, b)
    if b - a < SLICE then
        if b < a then
            return {}
        end
        return call(command, key, unpack(list, a, b))
    end
    local all, n = {}, 0
    for i = a, b, SLICE do
        local some = call(command, key, unpack(list, i, min(i + SLICE - 1, b)))
        for j = 1, #some do
            all[n + j] = some[j]
        end
        n = n + #some
    end
    return all
end

local function ring(P, n)
    ring_at(P, n, now)
end

-- Small hashes have a compact form in which every look-up walks over all fields, so that probing one of 500 fields for
-- a batch of ids costs as much as 250 hash tables would. One long value makes it a table, which it stays until empty.
local function make_table(key)
    if call('EXISTS', key) == 1 then
        return false
    end
    return call('HSET', key, '', rep('-', 65)) == 1
end

-- The hash of leases has one field that is no job: its value is too long for the compact form of a small hash, in which
-- every look-up would walk over all fields.
local function open_leases(P)
    if call('EXISTS', P .. 'lease') == 0 then
        call('HSET', P .. 'lease', '', rep('-', 65))
    end
end

-- HSET of pairs kv[a..b] into a hash that batches of ids are looked up in.
local function set_fields(key, kv, a, b)
    if b < a then
        return
    end
    local made = make_table(key)
    spread('HSET', key, kv, a, b)
    if made then
        call('HDEL', key, '')
    end
end

-- A job's id tells since when it waits when it is a time-ordered id that was ready at once; `since` tells it of the others.
local function note_since(P, ids, a, b)
    local kv, n = {}, 0
    for i = a, b do
        kv[n + 1], kv[n + 2] = ids[i], now
        n = n + 2
    end
    set_fields(P .. 'since', kv, 1, n)
end

-- When the first scheduled or retrying job is due, or nil. A score is due ms + level / 16.
local function first_due(P)
    local s = call('ZRANGE', P .. 'scheduled', 0, 0, 'WITHSCORES')[2]
    local r = call('ZRANGE', P .. 'retrying', 0, 0, 'WITHSCORES')[2]
    s, r = s and floor(tonumber(s)), r and floor(tonumber(r))
    return s and r and min(s, r) or s or r
end
