-- settle.lua - active -> completed | retrying | scheduled | ready | dead | cancelled | gone, for n leases of one queue
--
-- KEYS  meta
-- ARGV  client, tag of the answer, repeated (0|1), ms the answer is remembered, completed kept, dead kept,
--       n, runs, n special, n doubtful tags; the doubtful tags; n ids; for each run of ids with one fence: fence, length;
--       for each special: index, to, delay ms, reason, failed (0|1), history given (0|1), history, result
-- Answers the indices that are stale. No two items have the same id and fence.
--
-- What was settled is remembered under client and tag. A repeat of this call, or a later call of a client whose earlier
-- one (a doubtful tag) ended without an answer, so learns that the lease is gone because it settled it.
local P = prefix(KEYS[1])
local client, tag, again, ttl = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4]
local keep_done, keep_dead = tonumber(ARGV[5]), tonumber(ARGV[6])
local n, n_runs, n_special, n_doubtful = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local ids_at = 10 + n_doubtful
local runs_at = ids_at + n
local COMPLETED, RETRYING, SCHEDULED, READY, DEAD, CANCELLED, GONE = '0', '1', '2', '3', '4', '5', '6'

local special = {}
local at = runs_at + 2 * n_runs
for _ = 1, n_special do
    special[tonumber(ARGV[at + 1])] = {to = ARGV[at + 2], delay = ARGV[at + 3], reason = ARGV[at + 4],
                                       failed = ARGV[at + 5] == '1', history = ARGV[at + 6] == '1' and ARGV[at + 7],
                                       result = ARGV[at + 8]}
    at = at + 8
end

-- Reads all that will be written, so that a foreign key stops us here.
local leases = fetch('HMGET', P .. 'lease', ARGV, ids_at + 1, ids_at + n)
local meta = call('HMGET', P .. 'meta', 'v', 'paused', 'gc')
check_format(meta[1])
call('HLEN', P .. 'jobs')
call('HLEN', P .. 'fin')
call('HLEN', P .. 'held')
local n_kept = call('LLEN', P .. 'completed')
local has_marks = call('HLEN', P .. 'mark') > 0
local has_hist = call('HLEN', P .. 'hist') > 0
local was_due
if n_special > 0 then
    was_due = first_due(P)
    call('ZCARD', P .. 'dead')
    call('ZCARD', P .. 'cancelled')
end

-- Remembered is " fence\0id\0id\0 fence\0id ...".
local known
local function settled_before(fence, id)
    if not known then
        known = {}
        local tags = {again and tag}
        for i = 1, n_doubtful do
            tags[#tags + 1] = ARGV[10 + i]
        end
        for i = 1, #tags do
            local of
            local text = tags[i] and call('GET', P .. 'set:' .. client .. ':' .. tags[i]) or ''
            for part in string.gmatch(text, '[^%z]+') do
                if byte(part) == 32 then
                    of = sub(part, 2)
                else
                    known[of .. ' ' .. part] = true
                end
            end
        end
    end
    return known[fence .. ' ' .. id]
end

local stale, held, settled, done, fin, remembered = {}, {}, {}, {}, {}, {}
local n_settled, n_done, n_fin = 0, 0, 0
local hist, dead, cancelled, gone, ended, retrying, scheduled, ready = {}, {}, {}, {}, {}, {}, {}, {}
local n_failed, n_ready, n_dead = 0, 0, 0
local soonest

local function complete(id, record)
    n_done = n_done + 1
    done[n_done] = id
    if keep_done > 0 then
        fin[n_fin + 1], fin[n_fin + 2] = id, record
        n_fin = n_fin + 2
    end
end

local function finish(list, id, state, level, reason)
    list[#list + 1] = now
    list[#list + 1] = id
    ended[#ended + 1] = id
    fin[n_fin + 1], fin[n_fin + 2] = id, state .. level .. reason .. ' ' .. now .. ' '
    n_fin = n_fin + 2
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
        complete(id, 'c' .. level .. '  ' .. now .. ' ' .. sp.result)
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
        finish(dead, id, 'd', level, reason)
    elseif to == CANCELLED then
        finish(cancelled, id, 'x', level, ' ')
    else
        gone[#gone + 1] = id
    end
end

-- The leases of one take are one value, so after the first of a run equality is enough.
local i = 1
for run = runs_at + 1, runs_at + 2 * n_runs, 2 do
    local fence, before = ARGV[run], n_settled
    local start = fence .. ' '
    local good, level, worker, record
    for _ = 1, tonumber(ARGV[run + 1]) do
        local lease, id = leases[i], ARGV[ids_at + i]
        if lease and lease ~= good and sub(lease, 1, #start) == start then
            good = lease
            level, worker = match(lease, '^%d+ (.)(%w+)')
            record = 'c' .. level .. '  ' .. now .. ' '
        end
        if lease and lease == good then
            n_settled = n_settled + 1
            settled[n_settled] = id
            local sp = special[i]
            if sp then
                settle_special(id, sp, level)
            else
                complete(id, record)
            end
        elseif not ((again or n_doubtful > 0) and settled_before(fence, id)) then
            stale[#stale + 1] = i - 1
        end
        i = i + 1
    end
    if n_settled > before then
        held[worker] = (held[worker] or 0) + n_settled - before
        remembered[#remembered + 1] = ' ' .. fence .. '\0' .. table.concat(settled, '\0', before + 1, n_settled)
    end
end
if n_settled == 0 then
    return stale
end

spread('HDEL', P .. 'lease', settled, 1, n_settled)
for worker, k in pairs(held) do
    call('HINCRBY', P .. 'held', worker, -k)
end
if has_marks then
    spread('HDEL', P .. 'mark', settled, 1, n_settled)
end
set_fields(P .. 'hist', hist, 1, #hist)
spread('HSET', P .. 'fin', fin, 1, n_fin)
if n_done > 0 then
    call('HINCRBY', P .. 'meta', 'completed', n_done)
    if keep_done > 0 then
        release(P, done, 1, n_done, false)
        spread('RPUSH', P .. 'completed', done, 1, n_done)
        keep_completed(P, n_kept + n_done, tonumber(meta[3] or 0), keep_done, n_done + SLICE)
    else
        drop(P, done, 1, n_done)
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
call('SET', P .. 'set:' .. client .. ':' .. tag, table.concat(remembered, '\0'), 'PX', ttl)
return stale
