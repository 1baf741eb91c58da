-- company_put.lua - fresh jobs of keys whose ids follow each other, of one level of one queue, to wait as they came
--
-- KEYS  meta, <ns>:queues
-- ARGV  as packs_put.lua, level a letter; m times three arguments; then keys, each with how many jobs it has here
-- Answers 1, or 0 when anything is unusual: then nothing was done, and the client asks the general script.
local TURN = 16 -- LQ_TURN_JOBS
local CALM = 64
local NUMBERS = {'1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '13', '14', '15', '16'} -- as text: printf is dear

-- Whether the keys on record are few and none of them has a ready job, a limit, a pause or a time to wait for: retries may wait, or run.
local function are_calm(P)
    local n = call('HLEN', P .. 'keys')
    local all = n > 0 and n <= CALM and call('HVALS', P .. 'keys') or {}
    for i = 1, #all do
        if not find(all[i], '^0 %S+ %S+ %S+ 0 0 0 .*|$') then
            return false
        end
    end
    return n <= CALM
end

-- Whether nothing else is ready, and of company; levels: digits, then letters.
local function look_around(P, levels)
    local company = 0
    for at = 1, #levels do
        local level = sub(levels, at, at)
        local there = call('EXISTS', P .. 'ready:' .. level)
        if there == 1 and level < 'A' then
            return false
        end
        company = company + there
    end
    return call('LLEN', P .. 'in') <= 1 and are_calm(P), company > 0
end

local function op_company_put(keys, argv)
    begin_bare()
    local P, level = sub(keys[1], 1, -5), argv[5]
    local meta = call('HMGET', keys[1], 'v', 'levels', 'gate', 'klim', 'ev', 'max', 'ks')
    if meta[1] and tonumber(meta[1]) ~= FORMAT or meta[4] or meta[5] or meta[6] or
       meta[7] and tonumber(meta[7]) > call('TIME')[1] * 1000 then
        return 0
    end
    local alone, company = look_around(P, meta[2] or '')
    if not alone then
        return 0
    end
    local ask, kv, first = {}, {}, 7 + 3 * argv[6]
    for i = first, #argv, 2 do
        ask[(i - first) / 2 + 1] = argv[i]
    end
    local was = company and call('HMGET', P .. 'co', unpack(ask)) or {}
    for i = 1, #ask do
        local text = argv[first + 2 * i - 1]
        if was[i] then
            local n = was[i] + text
            if n > TURN then
                return 0
            end
            text = NUMBERS[n]
        end
        kv[2 * i - 1], kv[2 * i] = ask[i], text
    end
    call('HLEN', P .. 'pack') -- so that a foreign key stops us here
    call('HLEN', P .. 'co')
    call('LLEN', P .. 'ready:' .. level)
    if not meta[1] then
        call('SADD', keys[2], match(P, '{([^}]*)}:$'))
        call('HSET', keys[1], 'v', FORMAT)
        call('HSET', P .. 'pack', '', rep('-', 65)) -- make_queue of lib.lua
        if call('EXISTS', P .. 'in') == 0 then
            call('RPUSH', P .. 'in', '')
        end
    end
    if not meta[3] then
        call('HSET', keys[1], 'gate', '0 0 0 0 0 0')
    end
    if not company then
        call('DEL', P .. 'co')
        call('HSET', P .. 'co', '', rep('-', 65)) -- so that it is a table: make_table of lib.lua
    end
    add_levels(P, meta[2] or '', {[level] = true})
    call('HSET', P .. 'co', unpack(kv))
    local done = ops.packs_put(keys, argv)
    if done == 1 then
        call('HINCRBY', keys[1], 'xk', argv[4])
    end
    return done
end
