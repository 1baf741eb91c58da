-- settle.lua - active -> completed | retrying | scheduled | ready | dead | cancelled | gone, for n leases of one queue
--
-- KEYS  meta
-- ARGV  client, tag of the answer, repeated (0|1), ms the answer is remembered, completed kept, dead kept,
--       n ids, groups, n special, n doubtful tags, n runs; the doubtful tags; the ids; for each group of ids with one fence: fence,
--       length; for each run: id of its first, n, fence (plain completed jobs whose ids follow each other);
--       for each special of the ids: index, to, delay ms, reason, failed (0|1), history given (0|1), history, result
-- Answers the indices that are stale, those of jobs in runs counted on behind the ids. No two items have the same id and
-- fence.
--
-- What was settled is remembered under client and tag. A repeat of this call, or a later call of a client whose earlier
-- one (a doubtful tag) ended without an answer, so learns that the lease is gone because it settled it.
local P = prefix(KEYS[1])
local client, tag, again, ttl = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4]
local keep_done, keep_dead = tonumber(ARGV[5]), tonumber(ARGV[6])
local n, n_groups, n_special, n_doubtful = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local n_runs = tonumber(ARGV[11])
local ids_at = 11 + n_doubtful
local groups_at = ids_at + n
local runs_at = groups_at + 2 * n_groups
local COMPLETED, RETRYING, SCHEDULED, READY, DEAD, CANCELLED, GONE = '0', '1', '2', '3', '4', '5', '6'

local special = {}
local at = runs_at + 3 * n_runs
for _ = 1, n_special do
    special[tonumber(ARGV[at + 1])] = {to = ARGV[at + 2], delay = ARGV[at + 3], reason = ARGV[at + 4],
                                       failed = ARGV[at + 5] == '1', history = ARGV[at + 6] == '1' and ARGV[at + 7],
                                       result = ARGV[at + 8]}
    at = at + 8
end

-- Reads all that will be written, so that a foreign key stops us here.
local leases = fetch('HMGET', P .. 'lease', ARGV, ids_at + 1, ids_at + n)
local meta = call('HMGET', P .. 'meta', 'v', 'paused', 'gc', 'xc')
check_format(meta[1])
call('HLEN', P .. 'jobs')
call('HLEN', P .. 'pack')
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

-- Functions are made only where they may be needed: each costs as much as a command.
local settled_before
if again or n_doubtful > 0 then
    -- Remembered is " fence\0entry\0entry\0 fence\0entry ...", an entry as in lists.
    local known
    settled_before = function(fence, id)
        if not known then
            known = {}
            local tags = {again and tag}
            for i = 1, n_doubtful do
                tags[#tags + 1] = ARGV[11 + i]
            end
            for i = 1, #tags do
                local of
                local text = tags[i] and call('GET', P .. 'set:' .. client .. ':' .. tags[i]) or ''
                for part in string.gmatch(text, '[^%z]+') do
                    if byte(part) == 32 then
                        of = sub(part, 2)
                    elseif is_run(part) then
                        local from, to = read_entry(part)
                        for place = from, to - 1 do
                            known[of .. ' ' .. id_at(part, place)] = true
                        end
                    else
                        known[of .. ' ' .. part] = true
                    end
                end
            end
        end
        return known[fence .. ' ' .. id]
    end
end

local stale, held, settled, done, entries, fin, remembered = {}, {}, {}, {}, {}, {}, {}
local n_settled, n_done, n_fin, n_in_packs, n_entries = 0, 0, 0, 0, 0
local hist, dead, cancelled, gone, ended, retrying, scheduled, ready = {}, {}, {}, {}, {}, {}, {}, {}
local n_failed, n_ready, n_dead = 0, 0, 0
local soonest

local function complete(id, record, result)
    if note_end then
        note_end(id, '2', result)
    end
    n_done = n_done + 1
    done[n_done] = id
    n_entries = n_entries + 1
    entries[n_entries] = id
    if keep_done > 0 then
        fin[n_fin + 1], fin[n_fin + 2] = id, record
        n_fin = n_fin + 2
    end
end

local settle_special
if n_special > 0 then
    local function finish(list, id, state, level, reason)
        if note_end then
            note_end(id, state == 'd' and '3' or '4')
        end
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

    settle_special = function(id, sp, level)
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
            complete(id, 'c' .. level .. '  ' .. now .. ' ' .. sp.result, sp.result)
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
            if note_end then
                note_end(id, '4')
            end
        end
    end
end

local function refuse_item(index, fence, id)
    if not (settled_before and settled_before(fence, id)) then
        stale[#stale + 1] = index
    end
end

-- What is kept of a plain end.
local records = {}
local function record_of(level)
    local record = records[level] or 'c' .. level .. '  ' .. now .. ' '
    records[level] = record
    return record
end

local settle_packed, settle_run
local may_be_packed = n_runs > 0
for k = 1, n do
    may_be_packed = may_be_packed or not leases[k]
end
if may_be_packed then
    local function complete_run(p, from, to, fence, worker)
        local n_jobs, entry = to - from, entry_of(p.name, from, to)
        if keep_done > 0 then
            set_state(p, from, to, 'c' .. now)
            n_entries = n_entries + 1
            entries[n_entries] = entry
            extra.c = extra.c + n_jobs - 1
        else
            set_state(p, from, to, 'g')
        end
        extra.a = extra.a - n_jobs
        n_in_packs = n_in_packs + n_jobs
        held[worker] = (held[worker] or 0) + n_jobs
        remembered[#remembered + 1] = ' ' .. fence .. '\0' .. entry
    end

    -- A job with a record of its own, and its lease, level and worker.
    local function settle_own(id, sp, level, worker)
        n_settled = n_settled + 1
        settled[n_settled] = id
        held[worker] = (held[worker] or 0) + 1
        if sp then
            settle_special(id, sp, level)
        else
            complete(id, record_of(level))
        end
    end

    -- One that may be in a pack: false when it is not leased there under this fence.
    settle_packed = function(id, sp, fence)
        local p, place, state = find_in_pack(P, id)
        local worker = p and match(state, '^a' .. fence .. ' (%w+)$')
        if not worker then
            return false
        end
        if not sp then
            complete_run(p, place, place + 1, fence, worker)
        else
            local level = tostring(level_of(extract(P, p, place, state)))
            settle_own(id, sp, level, worker)
            remembered[#remembered + 1] = ' ' .. fence .. '\0' .. id
        end
        return true
    end

    -- [from, to) of a run, which are in its pack no more, or never were in one; index: of the first of these.
    local function settle_loose(index, name, from, to, fence)
        local ids = {}
        for place = from, to - 1 do
            ids[place - from + 1] = id_at(name, place)
        end
        local own, part = fetch('HMGET', P .. 'lease', ids, 1, #ids), {' ' .. fence}
        for k = 1, #ids do
            local level, worker = match(own[k] or '', '^' .. fence .. ' (.)(%w+)')
            if level then
                settle_own(ids[k], nil, level, worker)
                part[#part + 1] = ids[k]
            else
                refuse_item(index + k - 1, fence, ids[k])
            end
        end
        if #part > 1 then
            remembered[#remembered + 1] = table.concat(part, '\0')
        end
    end

    settle_run = function(index, id, n_jobs, fence)
        local name, from = name_of(id), place_of(id)
        local p, at, start = pack_at(P, name), from, 'a' .. fence .. ' '
        local v = p and p.v or {}
        for k = 1, #v, 3 do
            local a, b, state = max(v[k], from), min(v[k] + v[k + 1], from + n_jobs), v[k + 2]
            if a < b and sub(state, 1, #start) == start then
                if at < a then
                    settle_loose(index + at - from, name, at, a, fence)
                end
                complete_run(p, a, b, fence, sub(state, #start + 1))
                at = b
            end
        end
        if at < from + n_jobs then
            settle_loose(index + at - from, name, at, from + n_jobs, fence)
        end
    end
end

-- The leases of one take are one value, so after the first of a group equality is enough.
local i = 1
for group = groups_at + 1, groups_at + 2 * n_groups, 2 do
    local fence = ARGV[group]
    local start = fence .. ' '
    local good, level, worker
    local part, n_part = {' ' .. fence}, 1
    for _ = 1, tonumber(ARGV[group + 1]) do
        local lease, id = leases[i], ARGV[ids_at + i]
        if lease and lease ~= good and sub(lease, 1, #start) == start then
            good = lease
            level, worker = match(lease, '^%d+ (.)(%w+)')
        end
        if lease and lease == good then
            n_settled, n_part = n_settled + 1, n_part + 1
            settled[n_settled], part[n_part] = id, id
            if special[i] then
                settle_special(id, special[i], level)
            else
                complete(id, record_of(level))
            end
        elseif lease or not settle_packed(id, special[i], fence) then
            refuse_item(i - 1, fence, id)
        end
        i = i + 1
    end
    if n_part > 1 then
        held[worker] = (held[worker] or 0) + n_part - 1
        remembered[#remembered + 1] = table.concat(part, '\0')
    end
end
local index = n
for run = runs_at + 1, runs_at + 3 * n_runs, 3 do
    local n_jobs = tonumber(ARGV[run + 1])
    settle_run(index, ARGV[run], n_jobs, ARGV[run + 2])
    index = index + n_jobs
end
if n_settled + n_in_packs == 0 then
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
if n_done + n_in_packs > 0 then
    call('HINCRBY', P .. 'meta', 'completed', n_done + n_in_packs)
    if keep_done > 0 then
        release(P, done, 1, n_done, false)
        spread('RPUSH', P .. 'completed', entries, 1, n_entries)
        local ghosts = tonumber(meta[3] or 0)
        local count = n_kept - ghosts + tonumber(meta[4] or 0) + n_done + n_in_packs
        keep_completed(P, count, ghosts, keep_done, n_done + n_in_packs + SLICE)
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
flush(P)
if note_end then
    tell_flows(P)
    flow_retain(keep_done, keep_dead)
end
call('SET', P .. 'set:' .. client .. ':' .. tag, table.concat(remembered, '\0'), 'PX', ttl)
return stale
