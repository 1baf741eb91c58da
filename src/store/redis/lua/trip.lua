-- trip.lua - settle and take of one queue in one call, by a short way where all is as usual
--
-- KEYS  meta
-- ARGV  what ("take" or "settle", "_long" behind it when there is no short way), n, n arguments of the settle (settle.lua; n = 0: nothing
--       to settle), the arguments of the take (take.lua)
-- Answers {what the settle answers, what the take answers, whether one of them went the short way (0|1)}; or, when both went the short way, {1, fence, then id and body of each job}, or
-- {2, now, next due or 0} when there is none.
--
-- Usual is: completed jobs with records of their own, settled by the worker that holds them; and fresh jobs of one level that lie in the
-- inbox, all of which are taken. They go from there into the worker's hands without ever standing in a ready list. Where anything else
-- shows, which is seen before anything is written, the general op does its part. There is no short way for other ends of jobs, nor for a
-- repeat.
--
-- What makes a short call cheap beside few commands: keys that are made once, no number that has to become text by printf, few tables, and
-- an answer without tables in it.
local names    -- keys of the queue that was last at work
local now_text -- now, in ms

local function names_of(key)
    if not names or names.meta ~= key then
        local P = prefix(key)
        names = {P = P, meta = key}
        for _, name in pairs({'workers', 'lease', 'held', 'jobs', 'fin', 'completed', 'in', 'idle', 'scheduled', 'retrying', 'hist', 'uk',
                              'since', 'mark', 'said', 'key'}) do
            names[name] = P .. name
        end
    end
    return names
end

-- The clock of the call as text.
local function read_clock()
    local time = call('TIME')
    local us = sub('00000' .. time[2], -6)
    now_text = time[1] .. sub(us, 1, 3)
    now = tonumber(now_text)
    return time[1] .. us
end

-- What is to be settled, of argv[at..] as settle.lua has it; nil when it is not as usual.
local function look_at_settles(N, argv, at, worker)
    local n, n_groups = tonumber(argv[at + 6]), tonumber(argv[at + 7])
    local first = at + 11
    local leases = fetch('HMGET', N.lease, argv, first, first + n - 1)
    local fin, known, k, from, mates = {}, nil, 0, 1, 0
    for group = first + n, first + n + 2 * n_groups - 1, 2 do
        local fence, till = argv[group], from + tonumber(argv[group + 1]) - 1
        local good, record, mate
        for i = from, till do
            local lease = leases[i]
            if lease ~= good then
                local its, level, of = match(lease or '', '^(%d+) (.)(%w+)$')
                if its ~= fence or of ~= worker then
                    return
                end
                mate = level >= 'A' and 1 or 0 -- company.lua
                level = mate == 1 and byte(level) - 65 or level
                good, record = lease, 'c' .. level .. '  ' .. now_text .. ' '
            end
            mates = mates + mate
            fin[k + 1], fin[k + 2] = argv[first + i - 1], record
            k = k + 2
        end
        local part = ' ' .. fence .. '\0' .. concat(argv, '\0', first + from - 1, first + till - 1)
        known = known and known .. '\0' .. part or part
        from = till + 1
    end
    return {n = n, first = first, keep = tonumber(argv[at + 4]), fin = fin, known = known, mates = mates, n_kept = call('LLEN', N.completed)}
end

-- The oldest completed jobs beyond those to keep.
local function trim_completed(N, count, keep, most, packed)
    local over = min(count - keep, most)
    if over <= 0 then
        return
    end
    local ids = not packed and call('LPOP', N.completed, format('%d', over)) or {}
    for i = 1, #ids do
        if is_run(ids[i]) then -- a pack of one
            local back = {}
            for k = #ids, 1, -1 do
                back[#back + 1] = ids[k]
            end
            spread('LPUSH', N.completed, back, 1, #back)
            packed = true
            break
        end
    end
    if packed then
        keep_completed(N.P, count, 0, keep, most)
    else
        drop(N.P, ids, 1, #ids)
    end
end

local function write_settles(N, argv, at, s, extra_done)
    local first, last = s.first, s.first + s.n - 1
    if s.keep > 0 then
        spread('HSET', N.fin, s.fin, 1, 2 * s.n) -- the first write: refuses a foreign key itself
        spread('HDEL', N.lease, argv, first, last)
        release(N.P, argv, first, last, false)
        spread('RPUSH', N.completed, argv, first, last)
        trim_completed(N, s.n_kept + extra_done + s.n, s.keep, s.n + SLICE, extra_done ~= 0)
    else
        spread('HDEL', N.lease, argv, first, last)
        drop(N.P, argv, first, last)
    end
    call('SET', N.P .. 'set:' .. argv[at] .. ':' .. argv[at + 1], s.known, 'PX', argv[at + 3])
end

-- The jobs in the inbox, when all of them may be taken now and are of one level; else nil.
local function look_into_fresh(N, most, body_max, budget)
    local asked = min(3 * most, SLICE - 2) + 1 -- a put is three elements, if it is of one job
    local all = call('LRANGE', N['in'], '1', format('%d', asked))
    local out, ids, n, k, at, bytes, longest = {1, ''}, {}, 0, 2, 1, 0, 0
    local tokens, level
    local e = all[1]
    if #all == asked then
        return
    end
    while e do
        if byte(e) == 43 then
            tokens = tokens or {}
            tokens[sub(e, 2, 27)] = e
            at = at + 1
        elseif byte(e) == 126 or byte(e) == 61 then
            return -- a flow, or a job with a key
        else
            local body = all[at + 1]
            local size, its = #body, byte(body, 2)
            if its ~= level then
                if level then
                    return
                end
                level = its
            end
            n = n + 1
            ids[n], out[k + 1], out[k + 2] = e, e, body
            bytes, longest = bytes + size, max(longest, size)
            k, at = k + 2, at + 2
        end
        e = all[at]
    end
    if n > most or longest > body_max or bytes > budget then
        return
    end
    return {n = n, out = out, ids = ids, tokens = tokens, level = n > 0 and sub(out[4], 2, 2)}
end

-- Leases what was found. fields: of meta, to be written.
local function write_take(N, f, worker, fence, meta, seq, ttl, fields)
    local leases, ids, value = {}, f.ids, fence .. ' ' .. f.level .. worker
    spread('HSET', N.jobs, f.out, 3, 2 + 2 * f.n)
    if not meta[4] then
        open_leases(N.P)
        fields[#fields + 1], fields[#fields + 2] = 'open', '1'
    end
    if not find(meta[2] or '', f.level, 1, true) then
        add_levels(N.P, meta[2] or '', {[f.level] = ids})
    end
    for i = 1, f.n do
        leases[2 * i - 1], leases[2 * i] = ids[i], value
    end
    spread('HSET', N.lease, leases, 1, 2 * f.n)
    call('LTRIM', N['in'], '0', '0')
    for client, e in pairs(f.tokens or {}) do
        call('SET', N.P .. 'put:' .. client, sub(e, 28), 'PX', ttl)
    end
    call('SET', N.P .. 'got:' .. worker, seq .. ' ' .. fence .. '\0' .. concat(ids, '\0'), 'PX', ttl)
    local n = #fields
    fields[n + 1], fields[n + 2], fields[n + 3], fields[n + 4] = 'fence', fence, 'enqueued', format('%d', (meta[5] or 0) + f.n)
    f.out[2] = fence
end

-- Whether nothing is ready but in the inbox, nor due; and when the first of the others is due.
local function look_elsewhere(N, levels)
    for i = 1, #levels do
        if call('EXISTS', N.P .. 'ready:' .. sub(levels, i, i)) == 1 then
            return false
        end
    end
    local due = first_due(N.P)
    return not due or due > now, due
end

-- Nothing but what most queues have: no pause, ghosts, long bodies, events, bound, nobody who waits for a job's end.
local function is_usual(meta)
    return (meta[1] == '4' or meta[1] == '3') and not (meta[7] or meta[8] or meta[10] or meta[11] or meta[12]) and
        tonumber(meta[13] or 0) <= 0 and tonumber(meta[14] or 0) <= 0
end

-- What both parts read: the keys, meta, and of the settles and the jobs what the short way is for.
local function look(key, argv, at, n_said)
    local N, take_at = names_of(key), at + n_said
    local meta = call('HMGET', key, 'v', 'levels', 'fence', 'open', 'enqueued', 'completed', 'paused', 'big', 'gate', 'ev', 'max', 'wt',
                      'gr', 'gc', 'xc')
    if not is_usual(meta) then
        return
    end
    local worker, levels, s, f, due = argv[take_at], meta[2] or '', nil, nil, nil
    if meta[9] then -- keys, or limits: jobs of company are settled as others while no job has a record of its key
        if n_said > 0 and call('EXISTS', N.hist, N.uk, N.since, N.mark, N.said, N.key) == 0 and not call('HGET', key, 'lim') then
            plain = true
            s = look_at_settles(N, argv, at, worker)
        end
        return N, meta, s
    end
    local till, elsewhere = call('ZSCORE', N.workers, worker), false
    plain = #levels == 1 and call('EXISTS', N.hist, N.uk, N.since, N.mark, N.said, N.key, N.scheduled, N.retrying, N.P .. 'ready:' .. levels) == 0
    if not plain then
        look_plain(N.P)
        elsewhere = true
    end
    if n_said > 0 and (plain or call('EXISTS', N.mark) == 0) then
        s = look_at_settles(N, argv, at, worker)
    end
    if till and tonumber(till) >= now then
        local free = true
        if elsewhere then
            free, due = look_elsewhere(N, levels)
        end
        f = free and look_into_fresh(N, tonumber(argv[take_at + 1]), tonumber(argv[take_at + 4]), tonumber(argv[take_at + 5]))
    end
    return N, meta, s, f, due
end

-- The short way, as far as it goes: what it settled, and what the take answers, each nil when it is left to the general op. When both are: whether it was
-- none that is to be tried less often.
local function go_short(key, argv, at, n_said)
    local now_fence, take_at = read_clock(), at + n_said
    local N, meta, s, f, due = look(key, argv, at, n_said)
    local worker, fields, answer = argv[take_at], {}, nil
    if not (s or f) then
        return nil, nil, meta and meta[9] and n_said == 0
    end
    local held = (f and f.n or 0) - (s and s.n or 0)
    call('HLEN', N.jobs)
    if held ~= 0 then
        call('HLEN', N.held)
    end

    if s then
        write_settles(N, argv, at, s, tonumber(meta[15] or 0))
        fields[1], fields[2] = 'completed', format('%d', (meta[6] or 0) + s.n)
        if s.mates > 0 then
            call('HINCRBY', key, 'xk', format('%d', -s.mates))
        end
    end
    if f and argv[take_at + 3] == '1' then -- it was idle
        call('SREM', N.idle, worker)
        call('DEL', N.P .. 'bell:' .. worker)
    end
    if f and f.n > 0 then
        local last = tonumber(meta[3] or 0)
        local fence = last < tonumber(now_fence) and now_fence or format('%.0f', last + 1)
        write_take(N, f, worker, fence, meta, argv[take_at + 6], argv[take_at + 8], fields)
        answer = f.out
    elseif f then
        answer = {2, now, due or 0}
        if argv[take_at + 2] == '1' then
            call('SADD', N.idle, worker)
        end
    end
    if held ~= 0 then
        call('HINCRBY', N.held, worker, format('%d', held))
    end
    if fields[1] then
        call('HSET', key, unpack(fields))
    end
    flush(N.P)
    return s, answer
end

-- The same in the words of the general take.
local function spell_out(answer)
    if answer[1] == 2 then
        return {0, answer[2], answer[3]}
    end
    local ids, bodies = {}, {}
    for i = 3, #answer, 2 do
        ids[#ids + 1], bodies[#bodies + 1] = answer[i], answer[i + 1]
    end
    return {0, now, 0, {0, answer[2], ids, bodies, {}, {}}}
end

local function op_trip(keys, argv)
    local n_said, settled, taken, short = tonumber(argv[2]), nil, nil, 0
    if argv[1] == 'settle' or argv[1] == 'take' then
        begin_bare()
        packs, extra, FOLD.pending = {}, {r = 0, a = 0, c = 0}, {}
        local may
        settled, taken, may = go_short(keys[1], argv, 3, n_said)
        if taken and (settled or n_said == 0) then
            return taken
        end
        short = (settled or taken or may) and 1 or 0
        taken = taken and spell_out(taken)
    end
    if n_said > 0 and not settled then
        settled = ops.settle(keys, ops.part_of(argv, 3, 2 + n_said))
    else
        settled = {}
    end
    return {settled, taken or ops.take(keys, ops.part_of(argv, 3 + n_said, #argv)), short}
end
