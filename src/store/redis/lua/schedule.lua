-- schedule.lua - what changes schedules but for firing: put, remove, tick, resign
--
-- All keys begin with P = "<ns>:{~schedules}:", which no queue can have:
--   P meta     HASH  rev last revision given; holder, name, fence, until, seen: who leads
--   P ids      ZSET  id -> 0, for listing
--   P due      ZSET  id -> due ms, of active ones
--   P r:<id>   HASH  spec, memo, state, due, rev; tok, ans: the last call that changed it and its answer, for a repeat
--   P idle     SET   holders that wait for a bell
--   P bell:<holder> LIST  rings
--
-- KEYS  P meta
-- ARGV  put:    'put', token, repeated (0|1), id, revision read, state, due, spec, memo, most records
--       remove: 'remove', token, repeated, id
--       tick:   'tick', holder, name, lease ms, most records
--       resign: 'resign', holder
-- Answers put, remove: 0, or 1 stale, 2 full, 3 not found. tick: {any, leads, took over, fence, until, next, back, now, id, spec,
-- memo, state, due, rev, ...}. resign: 0.
local function ring_watchers(P)
    local idle = call('SMEMBERS', P .. 'idle')
    for i = 1, #idle do
        call('RPUSH', P .. 'bell:' .. idle[i], '1')
        call('PEXPIRE', P .. 'bell:' .. idle[i], 60000)
    end
    call('DEL', P .. 'idle')
end

local function put_schedule(P, argv)
    local id, R = argv[4], P .. 'r:' .. argv[4]
    local known = call('HMGET', R, 'rev', 'tok')
    if argv[3] == '1' and known[2] == argv[2] then
        return 0
    end
    if (known[1] or '0') ~= argv[5] then
        return 1
    end
    if not known[1] and call('ZCARD', P .. 'ids') >= tonumber(argv[10]) then
        return 2
    end
    call('ZCARD', P .. 'due')
    local rev = call('HINCRBY', P .. 'meta', 'rev', 1)
    call('HSET', R, 'spec', argv[8], 'memo', argv[9], 'state', argv[6], 'due', argv[7], 'rev', rev, 'tok', argv[2], 'ans', '')
    call('ZADD', P .. 'ids', 0, id)
    if argv[6] == '0' then
        call('ZADD', P .. 'due', argv[7], id)
    else
        call('ZREM', P .. 'due', id)
    end
    ring_watchers(P)
    return 0
end

local function remove_schedule(P, argv)
    local gone = call('DEL', P .. 'r:' .. argv[4])
    call('ZREM', P .. 'ids', argv[4])
    call('ZREM', P .. 'due', argv[4])
    return (gone == 1 or argv[3] == '1') and 0 or 3
end

local function lead(P, argv, m)
    local lease = tonumber(argv[4])
    local holder, until_ms, seen = m[1] or '', tonumber(m[3] or 0), tonumber(m[4] or 0)
    local fence = tonumber(m[2] or 0)
    local mine = holder == argv[2]
    if until_ms > now + lease then
        until_ms = now + lease
        call('HSET', P .. 'meta', 'until', format('%.0f', until_ms))
    end
    if not mine and holder ~= '' and until_ms > now then
        return {1, 0, 0, 0, until_ms, 0, 0, now}
    end
    fence = fence + (mine and 0 or 1)
    call('HSET', P .. 'meta', 'holder', argv[2], 'name', argv[3], 'fence', fence, 'until', format('%.0f', now + lease), 'seen',
         format('%.0f', now))
    return {1, 1, mine and 0 or 1, fence, now + lease, 0, max(seen - now, 0), now}
end

local function tick(P, argv)
    local m = call('HMGET', P .. 'meta', 'holder', 'fence', 'until', 'seen')
    call('SADD', P .. 'idle', argv[2])
    if call('ZCARD', P .. 'due') == 0 then
        if m[1] == argv[2] then
            call('HSET', P .. 'meta', 'holder', '')
        end
        return {0, 0, 0, 0, 0, 0, 0, now}
    end
    local out = lead(P, argv, m)
    if out[2] == 0 then
        return out
    end
    local most = tonumber(argv[5])
    local due = call('ZRANGEBYSCORE', P .. 'due', '-inf', format('%.0f', now), 'LIMIT', 0, most)
    for i = 1, #due do
        local r = call('HMGET', P .. 'r:' .. due[i], 'spec', 'memo', 'state', 'due', 'rev')
        local k = #out
        out[k + 1], out[k + 2], out[k + 3], out[k + 4], out[k + 5], out[k + 6] = due[i], r[1], r[2], r[3], r[4], r[5]
    end
    local next = call('ZRANGE', P .. 'due', #due, #due, 'WITHSCORES')[2]
    out[6] = next and tonumber(next) or 0
    return out
end

local function op_schedule(keys, argv)
    begin()
    local P = prefix(keys[1])
    call('HLEN', keys[1])
    if argv[1] == 'put' then
        return put_schedule(P, argv)
    elseif argv[1] == 'remove' then
        return remove_schedule(P, argv)
    elseif argv[1] == 'tick' then
        return tick(P, argv)
    end
    call('SREM', P .. 'idle', argv[2])
    call('DEL', P .. 'bell:' .. argv[2])
    if call('HGET', keys[1], 'holder') == argv[2] then
        call('HSET', keys[1], 'holder', '')
        ring_watchers(P)
    end
    return 0
end
