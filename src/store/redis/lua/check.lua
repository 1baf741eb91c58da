-- check.lua - what is wrong with one queue; reads everything of it in one step
--
-- KEYS  meta
-- ARGV  most findings
-- Answers the findings as texts.
local P, most, out         -- of the call at hand
local jobs, place          -- ids that have a body; where each stands
local waiting, ended, held -- of packs: places by state, which entries of lists take away again; jobs by worker
local active, expected, ghosts
local company              -- jobs of keys in packs that wait or run

local function report(...)
    if #out < most then
        out[#out + 1] = format(...)
    end
end

local function stand(id, where)
    if place[id] then
        report('job %s is %s and %s', id, place[id], where)
    elseif not jobs[id] then
        report('job %s is %s but has no body', id, where)
    end
    place[id] = where
end

local function note_state(name, i, state, folded)
    local kind, w = sub(state, 1, 1), match(state, '^a%d+ (%w+)$')
    if kind == 'r' then
        waiting[id_at(name, i)] = true
    elseif kind == 'c' and match(state, '^c%d+$') then
        ended[id_at(name, i)] = true
    elseif w then
        active = active + 1
        held[w] = (held[w] or 0) + 1
    elseif state ~= 'g' and not (folded and state == 'w') then
        report('job %s in its pack is "%s"', id_at(name, i), state)
    end
    if state ~= 'g' and state ~= 'w' and jobs[id_at(name, i)] then
        report('job %s is in its pack and apart from it', id_at(name, i))
    end
end

local function check_pack(name)
    local p, bodies = pack_at(P, name), bodies_key(P, name)
    if call('STRLEN', bodies) < 8 then
        return report('pack %s has states but no bodies', name)
    end
    local first, n = struct.unpack('<I2I2', call('GETRANGE', bodies, 0, 3))
    local size = struct.unpack('<I4', call('GETRANGE', bodies, 4 + 4 * n, 7 + 4 * n))
    local at, left = first, 0
    for k = 1, #p.v, 3 do
        if p.v[k] ~= at then
            report('pack %s has no state for %d', name, at)
        end
        at = p.v[k] + p.v[k + 1]
        left = left + (p.v[k + 2] ~= 'g' and p.v[k + 1] or 0)
        if p.keyed and find(p.v[k + 2], '^[ra]') then
            company = company + p.v[k + 1]
        end
        for i = p.v[k], at - 1 do
            note_state(name, i, p.v[k + 2], p.head)
        end
    end
    if at ~= first + n or left == 0 and not p.head then
        report('pack %s has %d jobs, states for %d, and %d left', name, n, at - first, left)
    end
    if call('STRLEN', bodies) ~= 8 + 4 * n + size or call('TTL', bodies) ~= -1 then
        report('bodies of pack %s are %d bytes, or will expire', name, call('STRLEN', bodies))
    end
end

-- An entry of a list that is a stretch of a pack: how many jobs beyond one it stands for.
local function take_run(entry, of)
    local from, to = read_entry(entry)
    local n = 0
    for i = from, to - 1 do
        local id = id_at(entry, i)
        if of[id] then
            of[id] = nil
            n = n + 1
        end
    end
    return n - 1
end

local function walk(key, list, where)
    local at = 0
    repeat
        local ids = call('LRANGE', key, at, at + SLICE - 1)
        for i = 1, #ids do
            local left = ghosts[list .. ids[i]]
            if is_run(ids[i]) then
                local kind = list == 'c' and 'c' or 'r'
                expected[kind] = expected[kind] + take_run(ids[i], list == 'c' and ended or waiting)
            elseif left and left > 0 then
                ghosts[list .. ids[i]] = left - 1
            else
                stand(ids[i], where)
                company = company + (list >= 'A' and list <= 'I' and 1 or 0)
            end
        end
        at = at + SLICE
    until #ids < SLICE
end

-- Messages to other slots (out.lua) that nobody has shipped for a minute.
local function check_outs()
    for _, dest in ipairs(call('ZRANGE', P .. 'outs', 0, -1)) do
        local first, n = call('LINDEX', P .. 'out:' .. dest, 0), call('LLEN', P .. 'out:' .. dest)
        local age = first and (now_us - tonumber(match(first, '^%d+'))) / 1000000 or 0
        if not first then
            report('messages to queue %s are listed, but there are none', dest)
        elseif age >= 60 then
            report('%d messages to queue %s wait, the first for %d s: no worker runs here, or that queue does not answer', n, dest, age)
        end
    end
end

local function check_inbox()
    if (call('LINDEX', P .. 'in', 0) or '') ~= '' then
        report('the inbox does not begin with its mark')
    end
    for id in pairs(look_into_inbox(P) or {}) do
        if jobs[id] or find_in_pack(P, id) then
            report('job %s is in the inbox and elsewhere', id)
        end
    end
end

local function check_leases()
    local all = call('HGETALL', P .. 'lease')
    for i = 1, #all, 2 do
        local w = match(all[i + 1], '^%d+ [0-8A-I](%w+)!?$')
        if all[i] ~= '' then
            stand(all[i], 'active')
        end
        if all[i] ~= '' and not w then
            report('lease of job %s cannot be read', all[i])
        elseif w then
            held[w] = (held[w] or 0) + 1
            company = company + (find(all[i + 1], '^%d+ %u') and 1 or 0)
        end
    end
    for w in pairs(held) do
        if not call('ZSCORE', P .. 'workers', w) then
            report('worker %s holds %d jobs but is not registered', w, held[w])
        end
    end
    all = call('HGETALL', P .. 'held')
    for i = 1, #all, 2 do
        if tonumber(all[i + 1]) ~= (held[all[i]] or 0) then
            report('worker %s holds %d jobs, counted are %s', all[i], held[all[i]] or 0, all[i + 1])
        end
        held[all[i]] = nil
    end
    for w, n in pairs(held) do
        report('worker %s holds %d jobs, counted are none', w, n)
    end
end

-- The dead, each in the class that its record names; what died before there were classes names none.
local function check_classes(fins)
    local counts, n = {}, 0
    for id, fin in pairs(fins) do
        local class = match(fin, '^d.. %d+ (%w+)$')
        if class then
            counts[class] = (counts[class] or 0) + 1
            if not call('ZSCORE', P .. 'dz:' .. class, id) then
                report('job %s is dead of %s but not among those', id, class)
            end
        end
    end
    local all = call('HGETALL', P .. 'dn')
    for i = 1, #all, 2 do
        n = counts[all[i]] or 0
        if tonumber(all[i + 1]) ~= n or call('ZCARD', P .. 'dz:' .. all[i]) ~= n then
            report('class %s has %d dead jobs, counted are %s', all[i], n, all[i + 1])
        end
        if call('HEXISTS', P .. 'di', all[i]) == 0 or call('HEXISTS', P .. 'dl', all[i]) == 0 then
            report('class %s is not described', all[i])
        end
        counts[all[i]] = nil
    end
    for class in pairs(counts) do
        report('class %s has dead jobs but no count', class)
    end
end

local ENDS = {c = 'completed', d = 'dead', x = 'cancelled'}

local function check_records()
    local fins = {}
    local all, dead = call('HGETALL', P .. 'fin'), {}
    for i = 1, #all, 2 do
        local is = ENDS[sub(all[i + 1], 1, 1)]
        fins[all[i]] = is
        dead[all[i]] = is == 'dead' and all[i + 1] or nil
        if place[all[i]] ~= is then
            report('job %s ended %s but is %s', all[i], tostring(is), place[all[i]] or 'nowhere')
        end
    end
    check_classes(dead)
    for id, where in pairs(place) do
        if (where == 'completed' or where == 'dead' or where == 'cancelled') and not fins[id] then
            report('job %s is %s without a record of its end', id, where)
        end
    end
    for id in pairs(jobs) do
        if not place[id] then
            report('job %s has a body but no state', id)
        end
    end
    for _, hash in ipairs({'hist', 'uk', 'mark', 'since'}) do
        for _, id in ipairs(call('HKEYS', P .. hash)) do
            if not jobs[id] then
                report('%s of job %s, which is not there', hash, id)
            elseif hash == 'mark' and place[id] ~= 'active' then
                report('job %s is marked to be stopped but %s', id, place[id] or 'nowhere')
            elseif hash == 'since' and place[id] ~= 'ready' then
                report('job %s is noted as waiting but %s', id, place[id] or 'nowhere')
            end
        end
    end

    -- A lock that lasts until done or start belongs to a job that has not ended. (One that lasts for its ttl may outlive its
    -- job, and then nothing tells what kind it was.)
    all = call('HGETALL', P .. 'uk')
    for i = 1, #all, 2 do
        if fins[all[i]] and byte(all[i + 1], 1) ~= 50 and call('GET', P .. 'u:' .. sub(all[i + 1], 2)) == all[i] then
            report('job %s has ended but holds its unique key', all[i])
        end
    end
end

-- Counts of the jobs of each key by their place; and those ready stand in the list of their key.
local function count_keys()
    local n, all = {}, call('HGETALL', P .. 'key')
    for _, key in ipairs(call('ZRANGE', P .. 'knames', 0, -1)) do
        for _, id in ipairs(call('ZRANGE', P .. 'kz:' .. key, 0, -1)) do
            stand(id, 'ready')
            if call('HGET', P .. 'key', id) ~= key then
                report('job %s stands in the list of a key that is not its', id)
            end
        end
    end
    for i = 1, #all, 2 do
        local id, key, where = all[i], all[i + 1], place[all[i]]
        local c = n[key] or {ready = 0, active = 0, waiting = 0, away = 0}
        n[key] = c
        if not jobs[id] then
            report('key of job %s, which is not there', id)
        elseif where == 'ready' and not call('ZSCORE', P .. 'kz:' .. key, id) then
            report('job %s is ready but not in the list of its key', id)
        end
        local what = (where == 'scheduled' or where == 'retrying') and 'waiting' or where
        if c[what] then
            c[what] = c[what] + 1
        end
        if what == 'waiting' then
            c.away = c.away + call('SISMEMBER', P .. 'kaway', id)
        end
    end
    return n
end

-- C-076: none waits for a slot that is free.
local function check_key(k, n)
    for _, what in ipairs({'ready', 'active', 'waiting', 'away'}) do
        if k[what] ~= (n and n[what] or 0) then
            report('key %s: %s is %d, there are %d', k.key, what, k[what], n and n[what] or 0)
        end
    end
    local room, at = K.key_room(k, K.limit_of(k))
    if (k.ready > 0) ~= (k.place ~= K.IDLE) then
        report('key %s: place and ready jobs do not agree', k.key)
    elseif k.place == K.PARKED and room > 0 then
        report('key %s is held though it may run', k.key)
    elseif k.place == K.TIMED and room == 0 and k.at > at then
        report('key %s is held for too long', k.key)
    end
    for place, set in pairs({[K.RING] = 'kring', [K.TIMED] = 'ktime', [K.PARKED] = 'kpark'}) do
        if (call('ZSCORE', P .. set, k.key) and true or false) ~= (k.place == place) then
            report('key %s is in %s or not, against its place %d', k.key, set, k.place)
        end
    end
end

local function check_keys(text, n_ready)
    if not K.key_begin(P, text) then
        return
    end
    local n, held, ready = count_keys(), 0, 0
    for _, name in ipairs(call('HKEYS', P .. 'keys')) do
        local k = K.key_at(name)
        check_key(k, n[name])
        held, ready = held + k.held, ready + k.ready
        n[name] = nil
    end
    for key in pairs(n) do
        if n[key].ready + n[key].active + n[key].waiting > 0 then
            report('key %s has jobs but is not known', key)
        end
    end
    if held ~= gate.held or ready ~= tonumber(n_ready or 0) then
        report('held and ready of keys are %d and %s, there are %d and %d', gate.held, n_ready or 0, held, ready)
    end
    K.let_go_keys()
end

-- Numbers without holes up to that of the last (queue/event.h); no stream while it is off. What is no stream is another's: events are left out.
local function check_events(cap, last)
    if not cap then
        if call('EXISTS', P .. 'ev') == 1 then
            report('events are off but there is a stream')
        end
        return
    end
    local at, till = '-', nil
    repeat
        local page = redis.pcall('XRANGE', P .. 'ev', at, '+', 'COUNT', 100)
        for i = 1, #page do
            local number, n = match(page[i][1], '^(%d+)%-(%d+)$')
            number = tonumber(number)
            if till and number - tonumber(n) ~= till then
                report('numbers of events are missing between %.0f and %.0f', till, number)
            end
            till, at = number, '(' .. page[i][1]
        end
    until #page < 100
    if till and till ~= tonumber(last) then
        report('the last event is %.0f, counted are %s', till, last or 'none')
    end
end

local function op_check(keys, argv)
    begin()
    P, most, out = prefix(keys[1]), tonumber(argv[1]), {}
    jobs, place = {}, {}
    waiting, ended, active, held, company = {}, {}, 0, {}, 0
    expected, ghosts = {r = 0, c = 0}, {}
    local meta = call('HMGET', P .. 'meta', 'v', 'levels', 'gr', 'gc', 'xr', 'xa', 'xc', 'gate', 'kr', 'ev', 'evn', 'max', 'wb', 'xk')
    check_format(meta[1])
    check_events(meta[10], meta[11])
    for _, id in ipairs(call('HKEYS', P .. 'jobs')) do
        jobs[id] = true
    end
    for _, name in ipairs(call('HKEYS', P .. 'pack')) do
        if name ~= '' then
            check_pack(name)
        end
        packs = {}
    end
    if active ~= tonumber(meta[6] or 0) then
        report('%d jobs are active in packs, counted are %s', active, meta[6] or 0)
    end
    local n_ready, n_done = 0, 0
    local all = call('HGETALL', P .. 'ghost')
    for i = 1, #all, 2 do
        ghosts[all[i]] = tonumber(all[i + 1])
        if sub(all[i], 1, 1) == 'c' then
            n_done = n_done + ghosts[all[i]]
        else
            n_ready = n_ready + ghosts[all[i]]
        end
    end
    if n_ready ~= tonumber(meta[3] or 0) or n_done ~= tonumber(meta[4] or 0) then
        report('ghost counts are %s and %s, there are %d and %d', meta[3] or 0, meta[4] or 0, n_ready, n_done)
    end
    for level = 0, 8 do
        if call('EXISTS', P .. 'ready:' .. level) == 1 and not find(meta[2] or '', level, 1, true) then
            report('level %d has ready jobs but is not in use', level)
        end
        walk(P .. 'ready:' .. level, tostring(level), 'ready')
    end
    for at = 1, 9 do
        local list = sub('ABCDEFGHI', at, at)
        if call('EXISTS', P .. 'ready:' .. list) == 1 and not find(meta[2] or '', list, 1, true) then
            report('list %s has ready jobs but is not in use', list)
        end
        walk(P .. 'ready:' .. list, list, 'ready')
    end
    walk(P .. 'completed', 'c', 'completed')
    for id in pairs(waiting) do
        report('job %s is ready in its pack but stands in no list', id)
    end
    for id in pairs(ended) do
        report('job %s is completed in its pack but stands in no list', id)
    end
    if expected.r ~= tonumber(meta[5] or 0) or expected.c ~= tonumber(meta[7] or 0) then
        report('jobs beyond entries are %s and %s, there are %d and %d', meta[5] or 0, meta[7] or 0, expected.r, expected.c)
    end
    for entry, left in pairs(ghosts) do
        if left > 0 then
            report('ghost %s stands in no list', entry)
        end
    end
    for _, set in ipairs({'scheduled', 'retrying', 'dead', 'cancelled'}) do
        for _, id in ipairs(call('ZRANGE', P .. set, 0, -1)) do
            stand(id, set)
        end
    end
    check_inbox()
    check_outs()
    check_leases()
    if company ~= tonumber(meta[14] or 0) then
        report('%d jobs of keys wait or run in company, counted are %s', company, meta[14] or 0)
    end
    check_keys(meta[8], meta[9])
    check_records()
    if K.max_bytes(meta[12]) and K.weigh_all(P) ~= tonumber(meta[13] or 0) then
        report('bytes that wait are %s, there are %.0f', meta[13] or 0, K.weigh_all(P))
    elseif meta[13] and not K.max_bytes(meta[12]) then
        report('bytes that wait are counted, but there is no bound on them')
    end
    local findings = out
    out, jobs, place, waiting, ended, held, ghosts = nil, nil, nil, nil, nil, nil, nil -- the library stays
    return findings
end
