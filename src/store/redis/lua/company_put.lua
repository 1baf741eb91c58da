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
local NUMBERS = {'1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '13', '14', '15', '16'} -- as text: printf is dear
local last_kp, last_time, last_clients -- kp is mostly that of the call before

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
        ops.open_counts(P)
    end
    call('HSET', P .. 'co', unpack(kv))
    return true
end

local function op_company_put(keys, argv)
    begin_bare()
    local P, level = sub(keys[1], 1, -5), argv[5]
    if call('LLEN', P .. 'in') > 1 and not drain(P, call('HGET', keys[1], 'levels')) then
        return 0
    end
    local meta = call('HMGET', keys[1], 'v', 'levels', 'paused', 'enqueued', 'xr', 'ev', 'max', 'gate', 'klim', 'ks', 'kp', 'xk')
    if meta[1] and tonumber(meta[1]) ~= FORMAT or meta[6] or meta[7] or meta[9] or
       meta[10] and tonumber(meta[10]) > call('TIME')[1] * 1000 then
        return 0
    end
    local alone, company = ops.look_around(P, meta[2] or '')
    if not alone then
        return 0
    end
    local at = 7 + 3 * argv[6]
    local answer, kp = admit(meta[11], company, argv[1], argv[at], argv[at + 1])
    if answer == -1 then
        return answer
    end
    if not company or not find(meta[2], level, 1, true) then
        ops.open_company(P, keys[2], meta[1], meta[8], meta[2], level)
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
