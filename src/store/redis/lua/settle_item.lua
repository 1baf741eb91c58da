-- settle_item.lua - joined before settle.lua: what becomes of each job of the call, of ids and of runs; settle.lua writes it
local TO = {COMPLETED = '0', RETRYING = '1', SCHEDULED = '2', READY = '3', DEAD = '4', CANCELLED = '5', GONE = '6', THROTTLED = '7'}
local MEANS = {['1'] = 5, ['3'] = 1, ['4'] = 6, ['5'] = 7, ['7'] = 1, -- events of ends
               x = 'exhausted', k = 'killed', q = 'quarantined', u = 'unrecoverable'}

-- Of the call at hand.
local P, keep_done, has_marks
local known_key, tags, known -- what earlier calls had settled: "P set:client:", tags to look at, what they name
local stale, held, settled, done, entries, fin, remembered, records
local n_settled, n_done, n_fin, n_in_packs, n_entries
local n_begun -- steps that went on
local ends -- of jobs with details
local details -- of the client, for the events: by id the record of a failure and that of its end; by run
local extracted -- id, body, id, body ... of jobs that left their packs and are not written yet; nil when something may ask for them
local heeded -- ids of jobs of packs that ended, nil while nobody waits
local keyed -- keys of settled jobs, by id; nil when the queue has none

local function new_ends()
    return {hist = {}, dead = {}, cancelled = {}, gone = {}, ended = {}, retrying = {}, scheduled = {}, ready = {},
            n_failed = 0, n_ready = 0, n_dead = 0}
end

local settle_ahead, settle_run, settle_group
do -- helpers of these take no place among the 200 (head.lua)
-- Remembered is " fence\0entry\0entry\0 fence\0entry ...", an entry as in lists.
local function read_remembered(text)
    local of
    for part in gmatch(text, '[^%z]+') do
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

local function settled_before(fence, id)
    if not known then
        known = {}
        for i = 1, #tags do
            read_remembered(call('GET', known_key .. tags[i]) or '')
        end
    end
    return known[fence .. ' ' .. id]
end

local function refuse_item(index, fence, id)
    if not (tags and settled_before(fence, id)) then
        stale[#stale + 1] = index
    end
end

-- What is kept of a plain end.
local function record_of(level)
    local record = records[level] or 'c' .. level .. '  ' .. now .. ' '
    records[level] = record
    return record
end

-- What became of a job, in the client's words if it said that.
local function tell_settled(id, type, as_said, reason)
    local said = details and details[id]
    if said and said[1] ~= '' then
        tell_made(said[1], 1)
    end
    if said and as_said and said[2] ~= '' then
        tell_made(said[2], 1)
    elseif type then
        local attempt = type ~= EVENT.WAITING and EVENT.attempt_of(call('HGET', P .. 'hist', id)) or 0
        tell(type, id, kind_at(P, id), attempt, 0, reason)
    end
end

local function complete(id, record, result)
    if telling then
        tell_settled(id, EVENT.COMPLETED, true)
    end
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

local function finish(list, id, state, level, reason, class)
    if note_end then
        note_end(id, state == 'd' and '3' or '4')
    end
    list[#list + 1] = now
    list[#list + 1] = id
    ends.ended[#ends.ended + 1] = id
    fin[n_fin + 1], fin[n_fin + 2] = id, state .. level .. reason .. ' ' .. now .. ' ' .. class
    n_fin = n_fin + 2
end

local function delay(list, id, level, ms)
    local due = now + tonumber(ms)
    ends.soonest = min(ends.soonest or due, due)
    list[#list + 1] = due + tonumber(level) / 16
    list[#list + 1] = id
end

local function settle_special(id, sp, level)
    local to, reason = sp.to, sp.reason
    local mark = has_marks and to ~= TO.COMPLETED and call('HGET', P .. 'mark', id)
    if mark then
        to, reason = mark == 'k' and TO.DEAD or TO.CANCELLED, mark == 'k' and 'k' or ' '
    end
    if telling and sp.failed and not (details and details[id]) then -- the client does not know of the stream yet
        tell(EVENT.FAILED, id, kind_at(P, id), EVENT.attempt_of(call('HGET', P .. 'hist', id)))
    end
    if telling and to ~= TO.COMPLETED then
        tell_settled(id, MEANS[to], not mark, MEANS[reason])
    end
    if sp.failed then
        ends.n_failed = ends.n_failed + 1
    end
    if sp.history and to ~= TO.GONE then
        local hist = ends.hist
        hist[#hist + 1] = id
        hist[#hist + 1] = sp.history
    end
    if to == TO.COMPLETED and sp.delay and sp.delay ~= '0' and sp.result ~= '' then
        ends.apart = ends.apart or {}
        ends.apart[#ends.apart + 1] = {id, sp.delay, sp.result}
        complete(id, 'c' .. level .. '  ' .. now .. ' ', sp.result)
    elseif to == TO.COMPLETED then
        complete(id, 'c' .. level .. '  ' .. now .. ' ' .. sp.result, sp.result)
    elseif to == TO.RETRYING then
        delay(ends.retrying, id, level, sp.delay)
    elseif to == TO.SCHEDULED then
        delay(ends.scheduled, id, level, sp.delay)
    elseif to == TO.READY or to == TO.THROTTLED then
        if to == TO.THROTTLED then
            ends.throttled = ends.throttled or {}
            ends.throttled[#ends.throttled + 1] = {id, tonumber(sp.delay)}
        end
        local list = ends.ready[level] or {}
        ends.ready[level] = list
        list[#list + 1] = id
        ends.n_ready = ends.n_ready + 1
    elseif to == TO.DEAD then
        ends.n_dead = ends.n_dead + 1
        finish(ends.dead, id, 'd', level, reason, K.enter_class(P, id, mark and '' or sp.death, K.WORDS[reason] or K.OTHER))
    elseif to == TO.CANCELLED then
        finish(ends.cancelled, id, 'x', level, ' ', '')
    else
        ends.gone[#ends.gone + 1] = id
        if note_end then
            note_end(id, '4')
        end
    end
end

-- A job with a record of its own, and its lease, level and worker.
local function settle_own(id, sp, level, worker)
    if level >= 'A' then
        K.mate_settled(P, id, not sp or sp.to == TO.COMPLETED)
        level = tostring(byte(level) - 65)
    end
    n_settled = n_settled + 1
    settled[n_settled] = id
    held[worker] = (held[worker] or 0) + 1
    if sp then
        settle_special(id, sp, level)
    else
        complete(id, record_of(level))
    end
end

local function complete_run(p, from, to, fence, worker, said, results)
    local n_jobs, entry = to - from, entry_of(p.name, from, to)
    if note_end and not p.head and byte(p.name, -1) == 126 then -- of a flow that was unfolded
        for place = from, to - 1 do
            local _, result = cut_results(results or '', place, place + 1)
            note_end(id_at(p.name, place), '2', result)
        end
    end
    if telling and said then
        tell_made(said, n_jobs)
    elseif telling then
        tell_run(EVENT.COMPLETED, P, p, from, to, 1)
    end
    if heeded then
        for place = from, to - 1 do
            heeded[#heeded + 1] = id_at(p.name, place)
        end
    end
    if results and results ~= '' and (keep_done > 0 or p.head) then
        call('APPEND', P .. 'r:' .. p.name, results)
    end
    if p.head then
        local listed = FOLD.complete(P, p, from, to, keep_done > 0)
        if listed then
            n_entries = n_entries + 1
            entries[n_entries] = listed
        end
    elseif keep_done > 0 then
        set_state(p, from, to, 'c' .. now)
        n_entries = n_entries + 1
        entries[n_entries] = entry
        extra.c = extra.c + n_jobs - 1
    else
        set_state(p, from, to, 'g')
    end
    extra.a = extra.a - n_jobs
    if p.keyed then
        K.less_company(n_jobs)
    end
    n_in_packs = n_in_packs + n_jobs
    held[worker] = (held[worker] or 0) + n_jobs
    remembered[#remembered + 1] = ' ' .. fence .. '\0' .. entry
end

-- One that may be in a pack: false when it is not leased there under this fence.
local function settle_packed(id, sp, fence)
    local p, place, state = find_in_pack(P, id)
    local worker = p and match(state, '^a' .. fence .. ' (%w+)$')
    if not worker then
        return false
    end
    if not sp then
        local said = details and details[id] -- its words, as those of a run
        complete_run(p, place, place + 1, fence, worker, said and said[2] ~= '' and said[2])
    else
        local level = tostring(level_of(extract(P, p, place, state, extracted)))
        settle_own(id, sp, level, worker)
        remembered[#remembered + 1] = ' ' .. fence .. '\0' .. id
    end
    return true
end

-- [from, to) of a run, which are in its pack no more, or never were in one; index: of the first of these.
local function settle_loose(index, name, from, to, fence, results)
    local ids = {}
    for place = from, to - 1 do
        ids[place - from + 1] = id_at(name, place)
    end
    local own, part = fetch('HMGET', P .. 'lease', ids, 1, #ids), {' ' .. fence}
    for k = 1, #ids do
        local level, worker = match(own[k] or '', '^' .. fence .. ' (.)(%w+)')
        if level then
            local _, result = cut_results(results, from + k - 1, from + k)
            settle_own(ids[k], result ~= '' and {to = TO.COMPLETED, result = result} or nil, level, worker)
            part[#part + 1] = ids[k]
        else
            refuse_item(index + k - 1, fence, ids[k])
        end
    end
    if #part > 1 then
        remembered[#remembered + 1] = concat(part, '\0')
    end
end

-- Whether the step is leased under this fence, or was settled under it.
local function has_begun(p, place, fence)
    local v = p and p.v or {}
    for k = 1, #v, 3 do
        if place >= v[k] and place < v[k] + v[k + 1] and match(v[k + 2], '^a(%d+) ') == fence then
            return true
        end
    end
    return tags and p and settled_before(fence, id_at(p.name, place)) or false
end

-- The step that FOLD.complete has just let begin is its worker's.
local function go_on(p, place, fence, worker)
    local readied = FOLD.readied
    local r = readied[#readied]
    if not r or r.p ~= p or r.step ~= place then
        return
    end
    readied[#readied] = nil
    set_state(p, place, place + 1, 'a' .. fence .. ' ' .. worker)
    extra.a = extra.a + 1
    held[worker] = held[worker] - 1
    n_begun = n_begun + 1
    if telling then
        tell_run(EVENT.ACTIVE, P, p, place, place + 1, 1)
    end
end

-- A run of which some go on: of a folded chain, one after the other.
function settle_ahead(index, id, n_jobs, fence, results, said, between, last)
    local name, from = name_of(id), place_of(id)
    local p = pack_at(P, name)
    p = p and p.head and p or nil
    for place = from, from + n_jobs - 1 do
        local _, _, state = find_in_pack(P, id_at(name, place))
        local worker = p and p.head and match(state or '', '^a' .. fence .. ' (%w+)$')
        local result = results == '' and '' or cut_results(results, place, place + 1)
        local goes_on = between and place < from + n_jobs - 1 or last and place == from + n_jobs - 1
        if worker then
            complete_run(p, place, place + 1, fence, worker, n_jobs == 1 and said, result)
            if goes_on then
                go_on(p, place + 1, fence, worker)
            end
        else
            settle_loose(index + place - from, name, place, place + 1, fence, result)
        end
        if goes_on and not has_begun(p, place + 1, fence) then
            stale[#stale + 1] = -1 - (index + place - from)
        end
    end
end

function settle_run(index, id, n_jobs, fence, results, said)
    local name, from = name_of(id), place_of(id)
    local p, at, start = pack_at(P, name), from, 'a' .. fence .. ' '
    local v = p and p.v or {}
    for k = 1, #v, 3 do
        local a, b, state = max(v[k], from), min(v[k] + v[k + 1], from + n_jobs), v[k + 2]
        if a < b and sub(state, 1, #start) == start then
            if at < a then
                settle_loose(index + at - from, name, at, a, fence, results)
            end
            local whole = b - a == n_jobs
            complete_run(p, a, b, fence, sub(state, #start + 1), whole and said,
                         (whole or results == '') and results or cut_results(results, a, b))
            at = b
        end
    end
    if at < from + n_jobs then
        settle_loose(index + at - from, name, at, from + n_jobs, fence, results)
    end
end

-- The jobs argv[ids_at + i + 1] ... of one fence, n of them; i are those before. The leases of one take are one value, so after
-- the first of a group equality is enough.
function settle_group(argv, ids_at, i, n, fence, leases, special)
    local start = fence .. ' '
    local good, level, worker, mates
    local part, n_part = {' ' .. fence}, 1
    for k = i + 1, i + n do
        local lease, id = leases[k], argv[ids_at + k]
        if lease and lease ~= good and sub(lease, 1, #start) == start then
            good = lease
            worker = match(lease, '^%d+ .(%w+)')
            level, mates = K.level_in(lease)
        end
        if lease and lease == good then
            n_settled, n_part = n_settled + 1, n_part + 1
            settled[n_settled], part[n_part] = id, id
            if mates then
                K.mate_settled(P, id, not special[k] or special[k].to == TO.COMPLETED)
            end
            if special[k] then
                settle_special(id, special[k], level)
            else
                complete(id, record_of(level))
            end
        elseif lease or not settle_packed(id, special[k], fence) then
            refuse_item(k - 1, fence, id)
        end
    end
    if n_part > 1 then
        held[worker] = (held[worker] or 0) + n_part - 1
        remembered[#remembered + 1] = concat(part, '\0')
    end
end
end
