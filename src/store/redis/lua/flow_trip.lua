-- flow_trip.lua - settle and take of one queue in one call, when steps of flows are settled; by a short way those of folded ones
--
-- KEYS  meta
-- ARGV  "settle", or "settle_long" for no short way; n, n arguments of the settle (settle.lua), the arguments of the take (take.lua), if any
-- Answers {what the settle answers, what the take answers, whether something went the short way (0|1)}.
--
-- The short way (fold.lua): completed steps of folded flows, in a queue that is in no way special. The states of all those flows are
-- read by one command, moved as texts, and written by another. The next step of a flow is leased to the taker at once when the take
-- that follows would get it in any case, since all that is ready fits into what it asks for; and else up to three quarters of that: so
-- flows that have begun are finished first, but others move too. What else is to be settled, or does not look as expected, is left to
-- the general op, and so is a repeat, and all while earlier settles are in doubt.
local meta_fields = {'v', 'paused', 'gate', 'ev', 'max', 'wt', 'levels', 'fence', 'gr', 'xr', 'gc', 'xc', 'xa', 'completed', 'enqueued'}
local HOPPED = 2000 -- in place of lane 0: op_take.c
local P, h -- the queue, and what is done in it, of the call at hand
local now_text

-- A step may begin: its state and whether it is leased.
local function begin_next(name, step)
    h.launched = h.launched + 1
    local level = sub(h.text, 3, 3)
    if h.leased < h.spare or h.leased < h.share and tonumber(level) <= h.best then
        h.leased = h.leased + 1
        h.known[#h.known + 1] = name .. step .. '+1'
        return h.state
    end
    h.ready[level] = h.ready[level] or {}
    h.ready[level][#h.ready[level] + 1] = name .. step .. '+1'
    return 'r' .. now_text
end

-- n steps from `place` on, under this fence, have completed; of a chain the first of them is leased, and each of the others went on from the one
-- before it. last: what follows goes on, too. The new states of their flow; nil: not the short way.
local function move(name, text, place, n, fence, done, between, last)
    local leased = between and 1 or n
    local from, to = find(text, place .. ' ' .. leased .. ' a' .. fence .. ' ', 6, true)
    local before = from and byte(text, from - 1)
    if before ~= 58 and before ~= 59 then
        return
    end
    local worker, rest = match(text, '^(%w+);(.*)$', to + 1)
    local head = sub(text, 1, from - 1)
    local next, left = match(rest or '-', '^(%d+) (%d+) w;$')
    local shape = byte(text)
    if between then -- those waited
        left = (left or 0) - (n - 1)
        if shape ~= 67 or left < 0 or next ~= format('%d', place + 1) then
            return
        end
        next, left = left > 0 and format('%d', next + n - 1) or nil, format('%d', left)
        rest = next and rest or ''
    end
    if last and (shape ~= 67 or not next) then
        return
    end
    local goes_on = byte(text) == 71 and (find(head, ' [ar]') or find(rest, ' [ar]'))
    if not worker or not (goes_on or next or rest == '') then
        return
    end
    h.held[worker] = (h.held[worker] or 0) - (last and 0 or leased)
    h.ended = h.ended + (last and 0 or leased)
    h.launched = h.launched + n - leased
    if h.keep > 0 and byte(text, 4) == PLUS then
        h.more = h.more + n
    elseif h.keep > 0 then
        local a, k = match(rest, '(%d+) (%d+) [^;]+;$')
        h.entries[#h.entries + 1] = name .. '0+' .. (a and a + k or place + n)
        h.more = h.more + n - 1
        head = sub(head, 1, 3) .. '+' .. sub(head, 5)
    end
    h.text = text
    local gone, from, k, first, later
    if byte(text) == 67 and h.keep > 0 then
        gone, from, k, first, later = match(head, '^(%u%d%d%+:)(0) (%d+) c(%d+)([%d,]*);$')
        if not gone then
            gone, from, k, first, later = match(head, '^(%u%d%d%+:0 %d+ g;)(%d+) (%d+) c(%d+)([%d,]*);$')
        end
    end
    if gone then
        later = later == '' and rep(',0', k - 1) or later -- of one moment they are written without
        head = gone .. from .. ' ' .. k + n .. ' c' .. first .. later .. rep(',' .. max(now - first, 0), n) .. ';'
    elseif between and h.keep > 0 then
        head = head .. place .. ' ' .. n .. ' c' .. now_text .. rep(',0', n - 1) .. ';'
    else
        head = head .. place .. ' ' .. n .. done
    end
    if goes_on then
        return head .. rest
    elseif not next then
        h.over[#h.over + 1] = now_text
        h.over[#h.over + 1] = sub(name, 1, -2)
        return head
    end
    if last then
        h.launched = h.launched + 1
        head = head .. next .. ' 1 a' .. fence .. ' ' .. worker .. ';'
    else
        head = head .. next .. ' 1 ' .. begin_next(name, next) .. ';'
    end
    return left == '1' and head or head .. next + 1 .. ' ' .. left - 1 .. ' w;'
end

-- How many of the next steps the taker may have: spare, what it asks for less what is ready before them; and of the best level that is
-- ready, or a better one, three quarters of what it asks for in any case. And whether there is more to be taken.
local function room_of(meta, worker, most)
    local till = worker and call('ZSCORE', P .. 'workers', worker)
    if not till or tonumber(till) < now then
        return 0, 0, 0, false
    end
    local levels, due, ahead, best = meta[7] or '', nil, 0, 9
    for i = 1, #levels do
        local level = sub(levels, i, i)
        local n = call('LLEN', P .. 'ready:' .. level)
        ahead = ahead + n
        best = n > 0 and min(best, tonumber(level)) or best
    end
    ahead = ahead - tonumber(meta[9] or 0) + tonumber(meta[10] or 0)
    due = call('EXISTS', P .. 'scheduled', P .. 'retrying') > 0 and first_due(P)
    due = due and due <= now
    return due and 0 or max(most - ahead, 0), due and 0 or floor(most * 3 / 4), best, due or ahead > 0
end

local function write(meta, worker)
    spread('HSET', P .. 'pack', h.states, 1, #h.states) -- the first write; refuses a foreign key itself
    spread('RPUSH', P .. 'completed', h.entries, 1, #h.entries)
    local readied = 0
    for level, list in pairs(h.ready) do
        spread('RPUSH', P .. 'ready:' .. level, list, 1, #list)
        readied = readied + #list
    end
    if h.leased > 0 then
        h.held[worker] = (h.held[worker] or 0) + h.leased
    end
    for w, k in pairs(h.held) do
        if k ~= 0 then
            call('HINCRBY', P .. 'held', w, k)
        end
    end
    local xc = tonumber(meta[12] or 0) + h.more
    call('HSET', P .. 'meta', 'completed', (meta[14] or 0) + h.n, 'xc', xc, 'xa', (meta[13] or 0) + h.leased - h.ended,
         'enqueued', (meta[15] or 0) + h.launched, 'fence', h.leased > 0 and h.fence or meta[8] or 0)
    if h.keep > 0 then
        local ghosts = tonumber(meta[11] or 0)
        keep_completed(P, h.n_kept + #h.entries - ghosts + xc, ghosts, h.keep, h.n + SLICE)
        flush(P)
    end
    if #h.over > 0 then
        flow_begin(P)
        spread('ZADD', flow_ns .. 'flows:1', h.over, 1, #h.over)
        keep_flows('1', h.keep, nil, #h.over + 100)
    end
    ring(P, readied)
end

-- Settles what it can of argv[at..], for a take whose arguments begin at argv[take_at]. Nil: none of it.
local function hop(argv, at, take_at)
    if call('LLEN', P .. 'in') > 1 then
        drain(P, call('HGET', P .. 'meta', 'levels')) -- comes first
    end
    local meta = call('HMGET', P .. 'meta', unpack(meta_fields))
    if tonumber(meta[1]) ~= FORMAT or meta[2] or meta[3] or meta[4] or meta[5] or meta[6] then
        return
    end
    local worker, n_runs = argv[take_at], tonumber(argv[at + 10])
    local runs_at, names = at + 11 + argv[at + 6] + 2 * argv[at + 7], {}
    for r = 1, n_runs do
        names[r] = name_of(argv[runs_at + 4 * r - 4])
    end
    local texts = fetch('HMGET', P .. 'pack', names, 1, n_runs)
    local spare, share, best, more = room_of(meta, worker, tonumber(argv[take_at + 1]))
    now_text = format('%.0f', now)
    h = {n = 0, leased = 0, ended = 0, launched = 0, more = 0, keep = tonumber(argv[at + 4]), spare = spare, share = share, best = best, is_more = more, ready = {},
         held = {}, entries = {}, states = {}, over = {}, known = {}, remembered = {}, moved = {}, fence = format('%.0f', next_fence(meta[8]))}
    h.state = 'a' .. h.fence .. ' ' .. (worker or '')
    h.n_kept = call('LLEN', P .. 'completed')
    call('HLEN', P .. 'held')
    local done, seen, k = h.keep > 0 and ' c' .. now_text .. ';' or ' g;', {}, 0
    for r = 1, n_runs do
        local i, name = runs_at + 4 * r - 4, names[r]
        local text = seen[name] and h.states[seen[name]] or texts[r]
        local id, number, fence = argv[i], tonumber(argv[i + 1]), argv[i + 2]
        local n, on = number % 10000, floor(number / 10000)
        local new = text and byte(text) > 57 and move(name, text, sub(id, #name + 1), n, fence, done, on % 2 == 1, on >= 2)
        if new then
            h.n = h.n + n
            if not seen[name] then
                k = k + 2
                h.states[k - 1], seen[name] = name, k
            end
            h.states[seen[name]] = new
            h.moved[r] = true
            h.remembered[#h.remembered + 1] = ' ' .. fence .. '\0' .. id .. '+' .. n
            if argv[i + 3] ~= '' then
                call('APPEND', P .. 'r:' .. name, argv[i + 3])
            end
        end
    end
    if h.n == 0 then
        h = nil
        return
    end
    write(meta, worker)
    return h
end

-- The arguments of the settle without what was moved, or nil when nothing is left; and the index of each job that is left.
local function rest_of(argv, at, take_at)
    local n_ids, n_runs = tonumber(argv[at + 6]), tonumber(argv[at + 10])
    local runs_at = at + 11 + n_ids + 2 * argv[at + 7]
    local rest, index, jobs, left = {}, {}, n_ids, 0
    for i = at, runs_at - 1 do
        rest[#rest + 1] = argv[i]
    end
    for r = 1, n_runs do
        local i = runs_at + 4 * r - 4
        local n = argv[i + 1] % 10000
        for k = 0, n - 1 do
            if not h.moved[r] then
                index[#index + 1] = jobs + k
            end
        end
        jobs = jobs + n
        if not h.moved[r] then
            left = left + 1
            for k = i, i + 3 do
                rest[#rest + 1] = argv[k]
            end
        end
    end
    for i = runs_at + 4 * n_runs, take_at - 1 do
        rest[#rest + 1] = argv[i]
    end
    rest[11] = left
    return (n_ids + left + argv[at + 8] > 0) and rest or nil, index
end

-- What is left to settle; the stale of it by their index among all.
local function settle_rest(keys, argv, at, take_at)
    local rest, index = rest_of(argv, at, take_at)
    if not rest then
        call('SET', P .. 'set:' .. argv[at] .. ':' .. argv[at + 1], concat(h.remembered, '\0'), 'PX', argv[at + 3])
        return {}
    end
    local stale, n_ids = ops.flow_settle(keys, rest, h.remembered), tonumber(argv[at + 6])
    for i = 1, #stale do
        local stays = stale[i] < 0
        local at = stays and -1 - stale[i] or stale[i]
        at = at >= n_ids and index[at - n_ids + 1] or at
        stale[i] = stays and -1 - at or at
    end
    return stale
end

-- The take behind: what else is there.
local function take_rest(keys, argv, take_at)
    local ask = ops.part_of(argv, take_at, #argv)
    if not ask[1] then
        return {}
    elseif h.leased == 0 then
        return ops.take(keys, ask)
    end
    call('SET', P .. 'got:' .. ask[1], ask[7] .. ' ' .. h.fence .. '\0' .. concat(h.known, '\0'), 'PX', ask[9])
    local first, taken = h.known, {0, now, 0}
    local leased, n, fence = {}, #first, h.fence
    for i = 1, n do
        leased[i] = {HOPPED, fence, first[i]}
    end
    if h.is_more and n < tonumber(ask[2]) then
        ask[2], ask[3] = tostring(ask[2] - n), '0'
        taken = ops.take(keys, ask, {fence = fence, known = first})
    elseif ask[4] == '1' then -- it may have been rung for a step that was left behind
        call('SREM', P .. 'idle', ask[1])
        call('DEL', P .. 'bell:' .. ask[1])
        ops.pass_the_bell(P)
    end
    for i = 1, n do
        taken[#taken + 1] = leased[i]
    end
    return taken
end

local function op_flow_trip(keys, argv)
    begin_bare()
    local n = tonumber(argv[2])
    local take_at = 3 + n
    P, h = prefix(keys[1]), nil
    if argv[1] == 'settle' then
        begin()
        hop(argv, 3, take_at)
    end
    if not h then
        local stale = ops.flow_settle(keys, ops.part_of(argv, 3, take_at - 1))
        return {stale, argv[take_at] and ops.take(keys, ops.part_of(argv, take_at, #argv)) or {}, 0}
    end
    local stale = settle_rest(keys, argv, 3, take_at)
    local taken = take_rest(keys, argv, take_at)
    h = nil -- the library stays
    return {stale, taken, 1}
end
