-- put.lua - new -> ready | scheduled, all or none
--
-- KEYS  <ns>:queues, then one meta for each lane
-- ARGV  client, number of the call, how (0, 1 repeated, 2 only asks for room, 3 does not ask, 4 nor does this repeat), ms the answer is remembered
--       for each lane: n, longest body or 0, ids that are not time-ordered (0|1), how: "p" or the level when all are plain or "",
--                      the latter two with an "f" before them when all ids are fresh, so that nobody can know them; n special;
--         how = "p":   all are plain and fresh; n special times: level, m, m entries of its ready list, m times an id and
--                      its body, or a pack's name and its bodies
--         else:        n times id, body (plain: ready now, all of one level, no id twice); for each special: index, due kind, ms,
--                      unique key, ttl, until, key
-- Until: its digit, then "r" and the bound in ms for those that replace, "t" for those that trail.
-- Answers {lane, index, holder, ...} of the duplicates; a "=" in front of a holder that was replaced. Or {0, lane, ...} of the queues whose
-- bound (meta.max, room.lua) the new jobs do not fit into: then nothing was done, and a repeat asks anew. The answer is remembered under the client's name for a repeat:
-- by then a job may have run and be gone, so its id alone would not tell.
local dup, at, used -- of the call at hand: duplicates, place in the arguments, names of packs in it

local function duplicate(lane, i, holder, outcome)
    dup[#dup + 1] = lane
    dup[#dup + 1] = i
    dup[#dup + 1] = (outcome == 9 and '=' or '') .. holder
end

-- Those that are not time-ordered, as ls_redis_id_time sees it.
local function filter_untimed(P, ids)
    local some = {}
    call('HLEN', P .. 'since')
    for i = 1, #ids do
        if #ids[i] ~= 26 or not find(ids[i], '^0[0-9A-HJKMNP-TV-Z]+$') then
            some[#some + 1] = ids[i]
        end
    end
    return some
end

local function none_of(known, n)
    for i = 1, n do
        if known[i] then
            return false
        end
    end
    return true
end

-- Those of the ids that jobs in packs have. (A job with a record of its own is known by that.)
local function mark_packed(P, ids, known)
    for i = 1, #ids do
        local name = not known[i] and place_of(ids[i]) and name_of(ids[i])
        if name and find_in_pack(P, ids[i]) then
            known[i] = true
        end
    end
end

-- A pack whose name is taken is none: jobs of their own. (Ids of one block in two puts, or of two levels.)
local function unpack_twin(g, entry, name, bodies)
    local n, at = select(2, struct.unpack('<I2I2', bodies)), read_entry(entry)
    local from = 0
    for k = 0, n - 1 do
        local to = struct.unpack('<I4', bodies, 9 + 4 * k)
        local id = id_at(name, at + k)
        g.entries[#g.entries + 1] = id
        g.kv[#g.kv + 1] = id
        g.kv[#g.kv + 1] = sub(bodies, 9 + 4 * n + from, 7 + 4 * n + to)
        from = to
    end
end

-- One level of a packed lane, from argv[from] on.
local function look_group(P, argv, from)
    local g = {level = argv[from], m = tonumber(argv[from + 1]), entries = {}, kv = {}, packs = {}}
    for i = from + 2, from + 1 + g.m do
        local entry, field = argv[i], 2 * i - from - 2 + g.m
        local name, value = argv[field], argv[field + 1]
        if not is_run(entry) then
            g.entries[#g.entries + 1] = entry
            g.kv[#g.kv + 1] = name
            g.kv[#g.kv + 1] = value
        elseif used[P .. name] or call('HEXISTS', P .. 'pack', name) == 1 then
            unpack_twin(g, entry, name, value)
        else
            used[P .. name] = true
            g.entries[#g.entries + 1] = entry
            g.packs[#g.packs + 1] = {name = name, entry = entry, bodies = value}
        end
    end
    call('LLEN', P .. 'ready:' .. g.level)
    return g
end

-- The same as look, for a lane of packs.
local function look_packed(P, argv, n, n_groups, meta, drained)
    local p = {P = P, n = n, lists = {}, due = {}, locks = {}, groups = {}}
    p.meta, p.drained = meta, drained
    call('HLEN', P .. 'jobs')
    call('HLEN', P .. 'pack')
    for i = 1, n_groups do
        local g = look_group(P, argv, at)
        p.groups[i] = g
        p.lists[g.level] = {}
        at = at + 2 + 3 * g.m
    end
    return p
end

local function write_groups(p)
    local P, entries = p.P, 0
    for i = 1, #p.groups do
        local g = p.groups[i]
        for k = 1, #g.packs do
            local name, from, to = g.packs[k].name, read_entry(g.packs[k].entry)
            call('SET', bodies_key(P, name), g.packs[k].bodies)
            call('HSET', P .. 'pack', name, write_stretches({from, to - from, 'r'}))
        end
        spread('HSET', P .. 'jobs', g.kv, 1, #g.kv)
        spread('RPUSH', P .. 'ready:' .. g.level, g.entries, 1, #g.entries)
        entries = entries + #g.entries
    end
    extra.r = p.n - entries
    flush(P)
    return p.n
end

-- A job with a key: where it goes.
local function note_key(p, id, level, key, due)
    local kv, list = p.key_kv, p.keyed
    kv[#kv + 1], kv[#kv + 2] = id, key
    if due then
        list.due = list.due or {}
        list.due[#list.due + 1] = key
    else
        list[#list + 1], list[#list + 2], list[#list + 3], list[#list + 4] = level, id, key, false
    end
end

local function write_keys(p)
    local P, due = p.P, p.keyed.due or {}
    K.key_open(P, p.meta[5])
    set_fields(P .. 'key', p.key_kv, 1, #p.key_kv)
    local keys = {}
    for i = 2, #p.key_kv, 2 do
        keys[i / 2] = p.key_kv[i]
    end
    K.key_fetch(keys)
    for i = 1, #due do
        K.key_count(due[i], 'waiting', 1)
    end
    K.key_ready(P, p.keyed)
    K.key_flush()
end

-- Reads what lane `lane` will need and decides about each job.
local function look(P, argv, lane, n, special, untimed, plain, meta, drained)
    local p = {P = P, keyed = {}, key_kv = {}, first = at, last = at + 2 * n - 1, kv = argv, due = {}, locks = {}, lists = {}, n = n}
    local ids = {}
    for i = 1, n do
        ids[i] = argv[at + 2 * i - 2]
    end
    p.meta, p.drained = meta, drained
    local known = {}
    if byte(plain) == 102 then
        plain = sub(plain, 2)
        call('HLEN', P .. 'jobs')
    else
        known = fetch('HMGET', P .. 'jobs', ids, 1, n)
        mark_packed(P, ids, known)
    end
    if plain ~= '' and none_of(known, n) then
        p.lists[plain] = ids
        call('LLEN', P .. 'ready:' .. plain)
        if untimed then
            p.untimed = filter_untimed(P, ids)
        end
        return p
    end
    local seen, claimed, refused, at_once = {}, {}, {}, {}
    for i = 1, n do
        local id, sp = ids[i], special and special[i]
        local holder = (known[i] or seen[id]) and id
        if not holder and sp and sp.key ~= '' then
            local key = P .. 'u:' .. sp.key
            want(key, 'string')
            holder = claimed[sp.key] or call('GET', key)
            if not holder then
                claimed[sp.key] = id
                p.locks[#p.locks + 1] = {key, id, sp}
            end
        end
        if holder then
            if holder ~= id and sp and sp.mode ~= '' then
                p.conflicts = p.conflicts or {}
                p.conflicts[#p.conflicts + 1] = {lane = lane, i = i, sp = sp, id = id, body = argv[at + 2 * i - 1]}
            else
                duplicate(lane, i, holder)
            end
            refused[i] = true
            p.n = p.n - 1
        else
            seen[id] = true
            local level = level_of(argv[at + 2 * i - 1])
            local list = p.lists[level] or {}
            p.lists[level] = list
            local due = due_of(sp)
            if due then
                p.due[#p.due + 1] = due + level / 16
                p.due[#p.due + 1] = id
                p.head = min(p.head or due, due)
            else
                if not sp or sp.of == '' then
                    list[#list + 1] = id
                end
                at_once[#at_once + 1] = id
            end
            if sp and sp.of ~= '' then
                note_key(p, id, level, sp.of, due)
            end
        end
    end
    if p.n < n then
        local kv, m = {}, 0
        for i = 1, n do
            if not refused[i] then
                kv[m + 1], kv[m + 2] = ids[i], argv[at + 2 * i - 1]
                m = m + 2
            end
        end
        p.kv, p.first, p.last = kv, 1, m
    end
    for level in pairs(p.lists) do
        call('LLEN', P .. 'ready:' .. level)
    end
    if untimed then
        p.untimed = filter_untimed(P, at_once)
    end
    if p.head then
        p.was = first_due(P)
    end
    if #p.locks > 0 then
        call('HLEN', P .. 'uk')
        call('ZCARD', P .. 'ttl')
        call('HLEN', P .. 'uf')
    end
    if p.conflicts then
        want_conflicts(P)
    end
    return p
end

-- The events of a lane: those that wait now.
local function tell_put(p)
    local late = {}
    for i = 2, #p.due, 2 do
        late[p.due[i]] = true
    end
    for i = 1, p.groups and #p.groups or 0 do
        local g = p.groups[i]
        for k = 1, #g.packs do
            local pack = g.packs[k]
            local first, n = struct.unpack('<I2I2', pack.bodies)
            EVENT.tell_stretch(EVENT.WAITING, pack.name, first, n, first, first + n, pack.bodies, 0)
        end
        for k = 1, #g.kv, 2 do
            tell(EVENT.WAITING, g.kv[k], kind_of(g.kv[k + 1]))
        end
    end
    for i = p.first or 1, p.groups and 0 or p.last, 2 do
        if not late[p.kv[i]] then
            tell(EVENT.WAITING, p.kv[i], kind_of(p.kv[i + 1]))
        end
    end
    tell_end(p.P)
end

-- The bytes of the new jobs of a lane.
local function weigh_new(p)
    local n = 0
    for k = 1, p.groups and #p.groups or 0 do
        local g = p.groups[k]
        for i = 1, #g.packs do
            local m = select(2, struct.unpack('<I2I2', g.packs[i].bodies))
            n = n + #g.packs[i].bodies - 8 - 5 * m -- head, ends, zero bytes
        end
        for i = 2, #g.kv, 2 do
            n = n + #g.kv[i]
        end
    end
    for i = p.first or 1, p.groups and 0 or p.last, 2 do
        n = n + #p.kv[i + 1]
    end
    return n
end

local function write(p, longest, queues)
    local P = p.P
    if tonumber(p.meta[1]) ~= FORMAT then
        make_queue(P, p.meta[1])
        call('SADD', queues, match(P, '{([^}]*)}:$'))
        if p.meta[6] or p.meta[7] then
            call('DEL', P .. 'in') -- each put says what it did, or asks for room
        end
    end
    if not p.meta[6] and not p.meta[7] and call('EXISTS', P .. 'in') == 0 then
        call('RPUSH', P .. 'in', '') -- there was none until now
    end
    if p.n == 0 and p.drained == 0 then
        return
    end
    add_levels(P, p.meta[2] or '', p.lists)
    if longest > tonumber(p.meta[4] or 0) then
        call('HSET', P .. 'meta', 'big', longest)
    end
    local ready = p.drained
    if p.groups then
        ready = ready + write_groups(p)
    else
        spread('HSET', P .. 'jobs', p.kv, p.first, p.last)
    end
    for level, list in pairs(p.lists) do
        spread('RPUSH', P .. 'ready:' .. level, list, 1, #list)
        ready = ready + #list
    end
    if p.untimed then
        note_since(P, p.untimed, 1, #p.untimed)
    end
    spread('ZADD', P .. 'scheduled', p.due, 1, #p.due)
    if p.key_kv and #p.key_kv > 0 then
        write_keys(p)
    end
    for i = 1, #p.locks do
        local key, id, sp = unpack(p.locks[i])
        if sp.till == '2' then
            call('SET', key, id, 'PX', sp.ttl)
        else -- what ends the job, or starts it, frees the key: no time does
            call('SET', key, id)
        end
        set_fields(P .. 'uk', {id, sp.till .. sp.key}, 1, 2)
        if sp.till == '2' then -- may outlive its job: forget must find it
            forget_locks(P)
            call('ZADD', P .. 'ttl', now + tonumber(sp.ttl), sp.key)
        end
    end
    for i = 1, #p.locks do
        local _, id, sp = unpack(p.locks[i])
        if sp.mode ~= '' then
            note_lock(P, sp.key, now, 0, id)
        end
    end
    call('HINCRBY', P .. 'meta', 'enqueued', p.n)
    if K.max_bytes(p.meta[7]) then
        K.add_bytes(P, weigh_new(p))
    end
    if p.meta[6] then
        tell_begin(true)
        tell_put(p)
    end
    if not p.meta[3] then
        ring(P, ready > 0 and ready or p.head and p.head < (p.was or huge) and 1 or 0)
    end
end

-- Behind the writes, so that a holder that came by this call is there.
local function meet_all(p)
    local wakes = 0
    K.key_begin(p.P) -- a holder may have a key, though who meets it has none
    for k = 1, #p.conflicts do
        local item = p.conflicts[k]
        local outcome, holder, more = meet(p, item)
        if outcome ~= 0 then
            duplicate(item.lane, item.i, holder, outcome)
        end
        wakes = wakes + more
    end
    K.key_flush()
    add_levels(p.P, call('HGET', p.P .. 'meta', 'levels') or '', p.lists)
    if wakes > 0 and not p.meta[3] then
        ring(p.P, wakes)
    end
end

local function read_special(argv, from, n)
    local special = {}
    for s = from, from + 7 * n - 1, 7 do
        special[tonumber(argv[s])] = {kind = argv[s + 1], ms = argv[s + 2], key = argv[s + 3],
                                      ttl = argv[s + 4], till = sub(argv[s + 5], 1, 1), mode = sub(argv[s + 5], 2, 2),
                                      bound = tonumber(sub(argv[s + 5], 3)) or 0, of = argv[s + 6]}
    end
    return special
end

-- What is in the inbox comes first.
local function open_lane(key)
    local P, meta = prefix(key), call('HMGET', key, 'v', 'levels', 'paused', 'big', 'gate', 'ev', 'max')
    check_format(meta[1])
    local drained
    drained, meta[2] = drain(P, meta[2])
    return P, meta, drained
end

-- Only the op asks for room: a fire of a schedule always passes. What was drained is told of here then.
local function find_full(plan)
    local full
    for lane = 1, #plan do
        local p = plan[lane]
        local n, bytes = p.meta[7] and p.n or 0, K.max_bytes(p.meta[7]) and weigh_new(p) or 0
        for i = 1, p.meta[7] and p.conflicts and #p.conflicts or 0 do
            local trails = p.conflicts[i].sp.mode == 't' -- may add a job
            n, bytes = n + (trails and 1 or 0), bytes + (trails and #p.conflicts[i].body or 0)
        end
        if not fits(p.P, p.meta[7], n, bytes) then
            full = full or {0}
            full[#full + 1] = lane
        end
    end
    for lane = 1, full and #plan or 0 do
        local p = plan[lane]
        if p.drained > 0 and not p.meta[3] then
            ring(p.P, p.drained)
        end
    end
    return full
end

local function op_put(keys, argv, passes)
    begin()
    local client, seq, ttl = argv[1], argv[2], argv[4]
    local token = prefix(keys[2]) .. 'put:' .. client
    dup, at, used = {}, 5, {}
    local how = argv[3]
    if how == '1' or how == '4' then
        local P, meta, drained = open_lane(keys[2])
        if drained > 0 and not meta[3] then
            ring(P, drained)
        end
        local known = call('GET', token)
        if known then
            local n, rest = match(known, '^(%d+)(.*)$')
            if n == seq then
                return rest == '' and {} or cmsgpack.unpack(sub(rest, 2))
            end
        end
    end
    call('SCARD', keys[1])
    local plan, longest = {}, {}
    for lane = 1, #keys - 1 do
        local P, meta, drained = open_lane(keys[lane + 1])
        local n, n_special = tonumber(argv[at]), tonumber(argv[at + 4])
        longest[lane] = tonumber(argv[at + 1])
        local untimed, how = argv[at + 2] == '1', argv[at + 3]
        at = at + 5
        if how == 'p' then
            plan[lane] = look_packed(P, argv, n, n_special, meta, drained)
        else
            local special = n_special > 0 and read_special(argv, at + 2 * n, n_special)
            plan[lane] = look(P, argv, lane, n, special, untimed, how, meta, drained)
            at = at + 2 * n + 7 * n_special
            packs = {}
        end
    end
    local full = not passes and (how < '3' and find_full(plan) or how == '2' and {})
    if full then
        if how == '2' and plan[1].drained > 0 and not full[1] and not plan[1].meta[3] then
            ring(plan[1].P, plan[1].drained)
        end
        return full
    end
    for lane = 1, #plan do
        write(plan[lane], longest[lane], keys[1])
    end
    for lane = 1, #plan do
        if plan[lane].conflicts then
            meet_all(plan[lane])
        end
    end
    call('SET', token, #dup > 0 and seq .. ' ' .. cmsgpack.pack(dup) or seq, 'PX', ttl)
    return dup
end
ops.put = op_put
