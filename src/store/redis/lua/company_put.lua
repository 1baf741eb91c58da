-- company_put.lua - fresh jobs of keys whose ids follow each other, of one level of one queue, to wait as they came
--
-- KEYS  meta, <ns>:queues
-- ARGV  as packs_put.lua, level a letter; m times three arguments; then the time of company that the client counts in, or 0; how many jobs it
--       has counted by itself; and of the others the keys, each with how many jobs it has here
-- Answers 1; the time of company that the client counts in from now on, which is more than 1; 0 when anything is unusual: then nothing was done,
-- and the client asks the general script; -1 when nothing was done because the client does not count: it is to send all keys.
--
-- A time of company lasts until its lists are empty. In each the first COUNTERS clients that come count by themselves, OWN jobs of a key at most; of all other
-- jobs co has at most TURN of a key: so no key has more than COUNTERS * OWN + TURN = 32 in company. meta.kp is "<time> <client> <client>". A client that
-- is named there but does not know that time has lost an answer, and with it its counts: it counts no more until the next.
local COUNTERS, TURN = 2, 16 -- TURN: LQ_TURN_JOBS; OWN: LS_REDIS_OWN_JOBS
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

-- Names and answers that are mostly those of the call before.
local last_P, last_levels, others, mates -- names of what else may be ready, with the keys on record, and of lists of company
local last_kp, last_time, last_clients

local function look_up(P, levels)
    local letters = match(levels, '%u*$')
    local n = #levels - #letters
    last_P, last_levels, others, mates = P, levels, {P .. 'keys'}, {}
    for at = 1, n do
        others[at + 1] = P .. 'ready:' .. sub(levels, at, at)
    end
    for at = 1, #letters do
        mates[at] = P .. 'ready:' .. sub(letters, at, at)
    end
end

-- Whether nothing else is ready, and of company; levels: digits, then letters.
local function look_around(P, levels)
    if P ~= last_P or levels ~= last_levels then
        look_up(P, levels)
    end
    if call('LLEN', P .. 'in') > 1 or call('EXISTS', unpack(others)) > 0 and
       (others[2] and call('EXISTS', unpack(others, 2)) > 0 or not are_calm(P)) then
        return false
    end
    return true, mates[1] and call('EXISTS', unpack(mates)) > 0
end

-- What is answered, and kp where it changes; company: there is some.
local function admit(kp, company, client, time, own)
    if kp ~= last_kp then
        last_kp, last_time, last_clients = kp, match(kp or '', '^(%d+)(.*)$')
    end
    local current, clients = last_time, last_clients
    if not company then
        current = format('%d', (current or 1) + 1)
        return current, current .. ' ' .. client
    end
    local known = clients and find(clients, client, 1, true)
    if known and time == current then
        return current
    elseif clients and not known and #clients < COUNTERS * (#client + 1) then
        return current, kp .. ' ' .. client
    end
    return own == '0' and 1 or -1
end

-- Counts what the client has not; false when a key has too many.
local function count(P, argv, first, company)
    local ask, kv, n = {}, {}, (#argv - first + 1) / 2
    for i = 1, n do
        ask[i] = argv[first + 2 * i - 2]
    end
    local was = company and call('HMGET', P .. 'co', unpack(ask)) or {}
    for i = 1, n do
        local text = argv[first + 2 * i - 1]
        if was[i] then
            local sum = was[i] + text
            if sum > TURN then
                return false
            end
            text = NUMBERS[sum]
        end
        kv[2 * i - 1], kv[2 * i] = ask[i], text
    end
    if not company or call('EXISTS', P .. 'co') == 0 then
        call('DEL', P .. 'co')
        call('HSET', P .. 'co', '', rep('-', 65)) -- so that it is a table: make_table of lib.lua
    end
    call('HSET', P .. 'co', unpack(kv))
    return true
end

-- Makes what the first of a time needs, and reads what will be written, so that a foreign key stops us here.
local function open(P, keys, meta, level)
    call('HLEN', P .. 'pack')
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
    if not meta[8] then
        call('HSET', keys[1], 'gate', '0 0 0 0 0 0')
    end
    add_levels(P, meta[2] or '', {[level] = true})
end

local function op_company_put(keys, argv)
    begin_bare()
    local P, level = sub(keys[1], 1, -5), argv[5]
    local meta = call('HMGET', keys[1], 'v', 'levels', 'paused', 'enqueued', 'xr', 'ev', 'max', 'gate', 'klim', 'ks', 'kp', 'xk')
    if meta[1] and tonumber(meta[1]) ~= FORMAT or meta[6] or meta[7] or meta[9] or
       meta[10] and tonumber(meta[10]) > call('TIME')[1] * 1000 then
        return 0
    end
    local alone, company = look_around(P, meta[2] or '')
    if not alone then
        return 0
    end
    local at = 7 + 3 * argv[6]
    local answer, kp = admit(meta[11], company, argv[1], argv[at], argv[at + 1])
    if answer == -1 then
        return answer
    end
    if not company or not find(meta[2], level, 1, true) then
        open(P, keys, meta, level)
    end
    if #argv > at + 1 then
        if not count(P, argv, at + 2, company) then
            return 0
        end
    elseif not company then
        call('DEL', P .. 'co')
    end
    return ops.file_packs(P, argv, meta, kp) == 1 and tonumber(answer) or 0
end
