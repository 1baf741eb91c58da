-- settle.lua - active -> completed | retrying | scheduled | ready | dead | cancelled | gone, for n leases of one queue
--
-- KEYS  meta
-- ARGV  client, tag of the answer, repeated (0|1), ms the answer is remembered, completed kept, dead kept,
--       n, n special, n doubtful tags; the doubtful tags; n ids; n fences, each with a blank behind;
--       for each special: index, to, delay ms, reason, failed (0|1), history given (0|1), history, result
-- Answers the indices that are stale.
--
-- The fences that were settled are remembered under client and tag. A repeat of this call, or a later call of a client
-- whose earlier one (a doubtful tag) ended without an answer, so learns that the lease is gone because it settled it.
local P = prefix(KEYS[1])
local client, tag, again, ttl = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4]
local keep_done, keep_dead = tonumber(ARGV[5]), tonumber(ARGV[6])
local n, n_special, n_doubtful = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local ids_at = 9 + n_doubtful
local fences_at = ids_at + n
local COMPLETED, RETRYING, SCHEDULED, READY, DEAD, CANCELLED, GONE = '0', '1', '2', '3', '4', '5', '6'

local special = {}
local at = fences_at + n
for _ = 1, n_special do
    special[tonumber(ARGV[at + 1])] = {to = ARGV[at + 2], delay = ARGV[at + 3], reason = ARGV[at + 4],
                                       failed = ARGV[at + 5] == '1', history = ARGV[at + 6] == '1' and ARGV[at + 7],
                                       result = ARGV[at + 8]}
    at = at + 8
end

-- Reads all that will be written, so that a foreign key stops us here.
local leases = fetch('HMGET', P .. 'lease', ARGV, ids_at + 1, ids_at + n)
local meta = call('HMGET', P .. 'meta', 'v', 'paused')
check_format(meta[1])
call('HLEN', P .. 'jobs')
call('HLEN', P .. 'fin')
call('HLEN', P .. 'held')
call('LLEN', P .. 'completed')
local has_marks = call('HLEN', P .. 'mark') > 0
local has_hist = call('HLEN', P .. 'hist') > 0
local was_due
if n_special > 0 then
    was_due = first_due(P)
    call('ZCARD', P .. 'dead')
    call('ZCARD', P .. 'cancelled')
end

local known
local function settled_before(fence)
    if not known then
        known = ' '
        if again then
            known = known .. (call('GET', P .. 'set:' .. client .. ':' .. tag) or '')
        end
        for i = 1, n_doubtful do
            known = known .. (call('GET', P .. 'set:' .. client .. ':' .. ARGV[9 + i]) or '')
        end
    end
    return find(known, ' ' .. fence, 1, true) ~= nil
end

local stale, tails, settled, fin, done = {}, {}, {}, {}, {}
local n_settled, n_done = 0, 0
local hist, dead, cancelled, gone, ended, retrying, scheduled, ready = {}, {}, {}, {}, {}, {}, {}, {}
local n_failed, n_ready, n_dead = 0, 0, 0
local soonest

local function tail_of(text)
    local worker, level = match(text, '^(%S+) %d+ (%d)')
    local t = {n = 0, worker = worker, level = level, fin = 'c' .. level .. '  ' .. now .. ' '}
    tails[text] = t
    return t
end

local function finish(list, id, state, level, reason, result)
    list[#list + 1] = now
    list[#list + 1] = id
    ended[#ended + 1] = id
    fin[#fin + 1] = id
    fin[#fin + 1] = state .. level .. reason .. ' ' .. now .. ' ' .. result
end

local function delay(list, id, level, ms)
    local due = now + tonumber(ms)
    soonest = min(soonest or due, due)
    list[#list + 1] = due + tonumber(level) / 16
    list[#list + 1] = id
end

local function settle_special(id, sp, level)
    local to, reason = sp.to, sp.reason
    local mark = has_marks and to ~= COMPLETED and call('HGET', P .. 'mark', id)
    if mark then
        to, reason = mark == 'k' and DEAD or CANCELLED, mark == 'k' and 'k' or ' '
    end
    if sp.failed then
        n_failed = n_failed + 1
    end
    if sp.history and to ~= GONE then
        hist[#hist + 1] = id
        hist[#hist + 1] = sp.history
    end
    if to == COMPLETED then
        n_done = n_done + 1
        done[n_done] = id
        fin[#fin + 1] = id
        fin[#fin + 1] = 'c' .. level .. '  ' .. now .. ' ' .. sp.result
    elseif to == RETRYING then
        delay(retrying, id, level, sp.delay)
    elseif to == SCHEDULED then
        delay(scheduled, id, level, sp.delay)
    elseif to == READY then
        ready[level] = ready[level] or {}
        ready[level][#ready[level] + 1] = id
        n_ready = n_ready + 1
    elseif to == DEAD then
        n_dead = n_dead + 1
        finish(dead, id, 'd', level, reason, '')
    elseif to == CANCELLED then
        finish(cancelled, id, 'x', level, ' ', '')
    else
        gone[#gone + 1] = id
    end
end

for i = 1, n do
    local lease, fence = leases[i], ARGV[fences_at + i]
    if lease and sub(lease, 1, #fence) == fence then
        local id, text = ARGV[ids_at + i], sub(lease, #fence + 1)
        local t = tails[text] or tail_of(text)
        if settled[id] then
            stale[#stale + 1] = i - 1
        else
            t.n = t.n + 1
            n_settled = n_settled + 1
            settled[n_settled] = id
            settled[id] = true
            local sp = special[i]
            if sp then
                settle_special(id, sp, t.level)
            else
                n_done = n_done + 1
                done[n_done] = id
                local m = #fin
                fin[m + 1], fin[m + 2] = id, t.fin
            end
        end
    elseif not ((again or n_doubtful > 0) and settled_before(fence)) then
        stale[#stale + 1] = i - 1
    end
end
if n_settled == 0 then
    return stale
end

spread('HDEL', P .. 'lease', settled, 1, n_settled)
for _, t in pairs(tails) do
    if t.n > 0 then
        call('HINCRBY', P .. 'held', t.worker, -t.n)
    end
end
if has_marks then
    spread('HDEL', P .. 'mark', settled, 1, n_settled)
end
spread('HSET', P .. 'hist', hist, 1, #hist)
if n_done > 0 then
    call('HINCRBY', P .. 'meta', 'completed', n_done)
end
if keep_done == 0 then
    drop(P, done, 1, n_done)
    for i = 1, n_done do
        settled[done[i]] = 'gone'
    end
    local rest = {}
    for i = 1, #fin, 2 do
        if settled[fin[i]] ~= 'gone' then
            rest[#rest + 1], rest[#rest + 2] = fin[i], fin[i + 1]
        end
    end
    fin = rest
    spread('HSET', P .. 'fin', fin, 1, #fin)
else
    spread('HSET', P .. 'fin', fin, 1, #fin)
    if n_done > 0 then
        release(P, done, 1, n_done, false)
        spread('RPUSH', P .. 'completed', done, 1, n_done)
        keep_completed(P, call('LLEN', P .. 'completed'), keep_done, n_done + SLICE)
    end
end
if n_special > 0 then
    if n_dead > 0 then
        call('HINCRBY', P .. 'meta', 'dead', n_dead)
    end
    if n_failed > 0 then
        call('HINCRBY', P .. 'meta', 'failed', n_failed)
    end
    release(P, ended, 1, #ended, false)
    spread('ZADD', P .. 'dead', dead, 1, #dead)
    spread('ZADD', P .. 'cancelled', cancelled, 1, #cancelled)
    if #dead > 0 then
        keep_set(P, 'dead', keep_dead, #dead + SLICE)
    end
    if #cancelled > 0 then
        keep_set(P, 'cancelled', keep_done, #cancelled + SLICE)
    end
    drop(P, gone, 1, #gone)
    spread('ZADD', P .. 'retrying', retrying, 1, #retrying)
    spread('ZADD', P .. 'scheduled', scheduled, 1, #scheduled)
    for level, list in pairs(ready) do
        spread('LPUSH', P .. 'ready:' .. level, list, 1, #list)
        note_since(P, list, 1, #list)
    end
    if not meta[2] then
        ring(P, n_ready > 0 and n_ready or soonest and soonest < (was_due or math.huge) and 1 or 0)
    end
end
local remembered
if #stale == 0 then
    remembered = table.concat(ARGV, '', fences_at + 1, fences_at + n)
else
    local list, skip = {}, {}
    for i = 1, #stale do
        skip[stale[i] + 1] = true
    end
    for i = 1, n do
        if not skip[i] then
            list[#list + 1] = ARGV[fences_at + i]
        end
    end
    remembered = table.concat(list)
end
call('SET', P .. 'set:' .. client .. ':' .. tag, remembered, 'PX', ttl)
return stale
