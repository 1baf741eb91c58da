-- pack.lua - joined behind lib.lua where jobs may lie in packs
--
-- A pack is jobs of one put, of one level, whose ids differ only in their last two characters and follow each other. Its
-- name is what the ids share and "+", which no id contains; so each id names its pack and its place there. All bodies are
-- one string, in a key of its own:
--
--     u16 place of the first, u16 n, u32 alike, n times u32 end, then the bodies, each with a zero byte behind it
--
-- little endian; alike: 1 when all are of one kind, 0 when nobody has looked; end: where a body and its zero end, from the first
-- body on (packs.h).
--
-- pack[name] tells the state of each job, as stretches "from n state;" that cover the pack: r ready, a<fence> <worker> active,
-- c<ms> completed then, g gone from here: removed, or with a record of its own now. In a ready list and in that of the
-- completed a stretch stands as "<id of its first>+<n>", for those of it that are in that state still. meta.xr and
-- meta.xc are how many more jobs than entries there are, meta.xa how many are active in packs.
--
-- Whatever concerns one job takes it out of its pack first (extract): then it has a record of its own, like any job
-- that came alone.
--
-- The steps of a folded flow (fold.lua) are a pack too: its name is "<flow>~", a place the number of a step, and the states have a
-- head in front. Steps that wait are "w", ready ones "r<ms>".
--
-- The server hashes every byte of every Lua string, so bodies of packs pass through a script only when they must.
local DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
local PLUS, READY_BYTE, DONE_BYTE, GONE_BYTE, WAITS_BYTE = 43, 114, 99, 103, 119
local KEYED_BYTE = 107 -- in front of the states of a pack whose jobs have keys, which the envelopes tell (company.lua)
local FOLD = {} -- fold.lua
local packs -- of the queue at work, by name, false when there is none; flush writes those that changed
local extra -- what flush adds to meta.xr, xa, xc

local plain -- job.lua

local begin_plain = begin
local function begin()
    begin_plain()
    packs, extra = {}, {r = 0, a = 0, c = 0}
    FOLD.readied, FOLD.over, FOLD.pending = {}, {}, {}
    plain = false
end

-- The place in its pack that an id names, or nil.
local function place_of(id)
    if #id == 26 and not find(id, '~', 20, true) then
        local a, b = find(DIGITS, sub(id, 25, 25), 1, true), find(DIGITS, sub(id, 26, 26), 1, true)
        return a and b and (a - 1) * 32 + b - 1
    end
    local step = match(id, '~(%d+)$')
    return step and (byte(step) ~= 48 or step == '0') and tonumber(step) or nil
end

-- Of an id, an entry or a name.
local function name_of(id)
    local sign = find(id, '~', 1, true)
    return sign and sub(id, 1, sign) or sub(id, 1, 24) .. '+'
end

local function id_at(name, i)
    local sign = find(name, '~', 1, true)
    if sign then
        return sub(name, 1, sign) .. i
    end
    local a, b = floor(i / 32) + 1, i % 32 + 1
    return sub(name, 1, 24) .. sub(DIGITS, a, a) .. sub(DIGITS, b, b)
end

local function entry_of(name, from, to)
    return id_at(name, from) .. '+' .. to - from
end

-- Its place and the one behind its last.
local function read_entry(entry)
    local step, n = match(entry, '~(%d+)%+(%d+)$')
    if step then
        return tonumber(step), step + n
    end
    local from = place_of(sub(entry, 1, 26))
    return from, from + tonumber(sub(entry, 28))
end

local function is_run(entry)
    return byte(entry, 27) == PLUS or find(entry, '+', 1, true) ~= nil
end

-- {from, n, state, from, n, state, ...}
local function read_stretches(text)
    local v, k, together = {}, 0, find(text, ',', 1, true)
    for from, n, state in gmatch(text, '(%d+) (%d+) ([^;]+);') do
        local comma = together and find(state, ',', 1, true)
        v[k + 1], v[k + 2], v[k + 3] = tonumber(from), tonumber(n), state
        k = k + 3
        if comma then -- fold.lua: completed one after the other
            local first = sub(state, 2, comma - 1)
            v[k - 1], v[k] = 1, 'c' .. first
            for later in gmatch(state, ',(%d+)') do
                v[k + 1], v[k + 2], v[k + 3] = v[k - 2] + 1, 1, format('c%.0f', first + later)
                k = k + 3
            end
        end
    end
    return v
end

local function write_stretches(v)
    if #v == 3 then
        return v[1] .. ' ' .. v[2] .. ' ' .. v[3] .. ';'
    end
    local parts = {}
    for k = 1, #v, 3 do
        parts[#parts + 1] = v[k] .. ' ' .. v[k + 1] .. ' ' .. v[k + 2] .. ';'
    end
    return concat(parts)
end

local function pack_at(P, name)
    local p = packs[name]
    if p == nil then
        local text = FOLD.pending[name] or call('HGET', P .. 'pack', name)
        p = text and {name = name, v = read_stretches(text), head = match(text, '^(%u%d%d[-+]):'), keyed = byte(text) == KEYED_BYTE} or false
        if FOLD.pending[name] then
            FOLD.pending[name], p.changed = nil, true
        end
        packs[name] = p
    end
    return p
end

-- The pack in which this job is, its place and its state; nil for a job with a record of its own or none.
local function find_in_pack(P, id)
    local i = place_of(id)
    local p = i and pack_at(P, name_of(id))
    if p then
        local v = p.v
        for k = 1, #v, 3 do
            if i >= v[k] and i < v[k] + v[k + 1] then
                local kind = byte(v[k + 2])
                if kind ~= GONE_BYTE and kind ~= WAITS_BYTE then
                    return p, i, v[k + 2]
                end
                return
            end
        end
    end
end

local function add_stretch(out, k, from, to, state)
    if k > 0 and out[k] == state and out[k - 2] + out[k - 1] == from then
        out[k - 1] = out[k - 1] + to - from
        return k
    end
    out[k + 1], out[k + 2], out[k + 3] = from, to - from, state
    return k + 3
end

-- [from, to), which lies in the pack, has this state now.
local function set_state(p, from, to, state)
    local v, out, k, placed = p.v, {}, 0, false
    for j = 1, #v, 3 do
        local a, b, was = v[j], v[j] + v[j + 1], v[j + 2]
        if a < from then
            k = add_stretch(out, k, a, min(b, from), was)
        end
        if not placed and b > from then
            k = add_stretch(out, k, from, to, state)
            placed = true
        end
        if b > to then
            k = add_stretch(out, k, max(a, to), b, was)
        end
    end
    p.v, p.changed = out, true
end

local function bodies_key(P, name)
    return P .. 'b:' .. name
end

local function body_of(P, p, i)
    local v, key = p.v, bodies_key(P, p.name)
    local first, n = v[1], v[#v - 2] + v[#v - 1] - v[1]
    local k = i - first
    p.n_read = (p.n_read or 0) + 1
    if p.n_read > 2 then -- several are asked for
        p.text = p.text or call('GET', key)
    end
    local from, to = struct.unpack('<I4I4', p.text and sub(p.text, 5 + 4 * k, 12 + 4 * k) or call('GETRANGE', key, 4 + 4 * k, 11 + 4 * k))
    from = k > 0 and from or 0 -- what stands before the first end is not an end
    return p.text and sub(p.text, 9 + 4 * n + from, 7 + 4 * n + to) or call('GETRANGE', key, 8 + 4 * n + from, 6 + 4 * n + to)
end

-- The results of a pack's jobs, those that have one, in a string beside its bodies: u16 place, u32 length, bytes, and so on.
-- Gives, of such a string, the records of places [from, to), which lie beside each other; and the bytes of the first.
local function cut_results(text, from, to)
    local at, a, b, first = 1, nil, 1, ''
    while at + 5 < #text do
        local place, n = struct.unpack('<I2I4', text, at)
        local behind = at + 6 + n
        if place >= from and place < to then
            if not a then
                a, first = at, sub(text, at + 6, behind - 1)
            end
            b = behind
        end
        at = behind
    end
    return a and sub(text, a, b - 1) or '', first
end

-- The result of a completed job that is in a pack still.
local function packed_result(P, p, place)
    p.results = p.results or call('GET', P .. 'r:' .. p.name) or ''
    local _, result = cut_results(p.results, place, place + 1)
    return result
end

-- Takes a job out of its pack: its body has a field of its own, and the caller writes what else its state needs; and that field too when it gives
-- `later`, where the pair is put then.
local function extract(P, p, i, state, later)
    if p.head then
        FOLD.unfold(P, p)
    end
    local id, body, kind = id_at(p.name, i), body_of(P, p, i), sub(state, 1, 1)
    if later then
        local n = #later
        later[n + 1], later[n + 2] = id, body
    else
        call('HSET', P .. 'jobs', id, body)
    end
    set_state(p, i, i + 1, 'g')
    extra[kind] = extra[kind] - 1
    if p.keyed then
        FOLD.leave_company(P, id, body, kind)
    end
    return body
end

-- Writes what changed of the packs of a queue, and forgets it all: before another queue, and at the end.
local function flush(P)
    local kv, n, gone = {}, 0, {}
    for name, p in pairs(packs) do
        if p and p.changed then
            if #p.v == 3 and p.v[3] == 'g' and not p.head then
                gone[#gone + 1] = name
            else
                kv[n + 1], kv[n + 2] = name, (p.head and p.head .. ':' or p.keyed and 'k' or '') .. write_stretches(p.v)
                n = n + 2
            end
        end
    end
    for name, text in pairs(FOLD.pending) do
        kv[n + 1], kv[n + 2] = name, text
        n = n + 2
    end
    FOLD.pending = {}
    spread('HSET', P .. 'pack', kv, 1, n)
    spread('HDEL', P .. 'pack', gone, 1, #gone)
    for i = 1, #gone do
        call('DEL', bodies_key(P, gone[i]), P .. 'r:' .. gone[i])
    end
    for kind, by in pairs(extra) do
        if by ~= 0 then
            call('HINCRBY', P .. 'meta', 'x' .. kind, by)
            extra[kind] = 0
        end
    end
    packs = {}
end
