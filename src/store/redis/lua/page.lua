-- page.lua - the ids of one page of one state, with the place of each, to go on behind it
--
-- KEYS  meta
-- ARGV  state (scheduled, ready, retrying, completed, dead, cancelled), most, place or ""
-- Answers {end reached (0|1), id, place, id, place, ...}
--
-- A place is "list:offset:id" or "score id". Lists shift while jobs leave at the head, so the entry with the id is looked
-- for at its offset and then around it; one that is not there any more has left with everything before it. (A search of a
-- list costs time in proportion to the offset, and only when the list has moved.)
local WINDOW, KEYED = 500, 75
local P, most, place, out -- of the call at hand

-- True when this entry is the job's, or the stretch with the job in it.
local function has_job(entry, id, i)
    if entry == id then
        return true
    end
    if not i or not is_run(entry) or name_of(entry) ~= name_of(id) then
        return false
    end
    local from, to = read_entry(entry)
    return i >= from and i < to
end

-- Where to go on behind the job: the offset of its entry, or of the first.
local function start_of(key, offset, id)
    local i = place_of(id)
    local entry = call('LINDEX', key, offset)
    if entry and has_job(entry, id, i) then
        return offset
    end
    local found = call('LPOS', key, id, 'MAXLEN', offset + SLICE)
    for from = 0, i and (found or offset + SLICE) or -1, SLICE do
        local entries = call('LRANGE', key, from, from + SLICE - 1)
        for j = 1, #entries do
            if has_job(entries[j], id, i) then
                return from + j - 1
            end
        end
    end
    return found or 0, not found
end

-- Which of these entries may stand for nothing, by place: true where the job is elsewhere or gone, so that all entries of it are
-- ghosts; false where it is here, so that one of them is not.
local function look_at_ghosts(list, entries)
    local keys, ids, at, maybe = {}, {}, {}, {}
    for j = 1, #entries do
        keys[j] = list .. entries[j]
    end
    local counts = fetch('HMGET', P .. 'ghost', keys, 1, #keys)
    for j = 1, #entries do
        if counts[j] then
            ids[#ids + 1], at[#at + 1] = entries[j], j
        end
    end
    if #ids == 0 then
        return maybe
    end
    local fins = fetch('HMGET', P .. 'fin', ids, 1, #ids)
    if list == 'c' then
        for k = 1, #ids do
            maybe[at[k]] = not fins[k] or byte(fins[k]) ~= DONE_BYTE
        end
        return maybe
    end
    local leases = fetch('HMGET', P .. 'lease', ids, 1, #ids)
    local later, again = fetch('ZMSCORE', P .. 'scheduled', ids, 1, #ids), fetch('ZMSCORE', P .. 'retrying', ids, 1, #ids)
    for k = 1, #ids do
        maybe[at[k]] = (fins[k] or leases[k] or later[k] or again[k] or call('HEXISTS', P .. 'jobs', ids[k]) == 0) and true or false
    end
    return maybe
end

-- Of several entries of one id only the last can be the true one, and only when there are more of them than ghosts. (This costs time
-- in proportion to the list, for jobs only that left it and came back while entries of before are still in it.)
local function is_true(key, list, id, index)
    if call('LPOS', key, id, 'RANK', -1) ~= index then
        return false
    end
    local count = #call('LPOS', key, id, 'COUNT', 0)
    return count > tonumber(call('HGET', P .. 'ghost', list .. id))
end

-- False when the page is full.
local function add_job(list, index, id)
    if #out >= 2 * most then
        return false
    end
    out[#out + 1] = id
    out[#out + 1] = list .. ':' .. index .. ':' .. id
    return true
end

-- The jobs of a stretch from place `behind` on that are in its state still.
local function add_run(list, kind, index, entry, behind)
    local p = pack_at(P, name_of(entry))
    local from, to = read_entry(entry)
    local v = p and p.v or {}
    from = max(from, behind)
    for k = 1, #v, 3 do
        if byte(v[k + 2]) == kind then
            for i = max(v[k], from), min(v[k] + v[k + 1], to) - 1 do
                if not add_job(list, index, id_at(p.name, i)) then
                    return false
                end
            end
        end
    end
    return true
end

-- Goes over one list from behind the job `last`, whose entry was at `offset`, or from its start.
local function page_one(list, key, ghosts, offset, last)
    local kind = list == 'c' and DONE_BYTE or READY_BYTE
    local at, lost = 0, true
    if last then
        at, lost = start_of(key, offset, last)
    end
    local entries
    repeat
        entries = call('LRANGE', key, at, at + WINDOW - 1)
        local maybe = ghosts > 0 and look_at_ghosts(list, entries) or {}
        for j = 1, #entries do
            local entry, index, goes_on = entries[j], at + j - 1, true
            local behind = not lost and (place_of(last) or 0) + 1
            if is_run(entry) then
                goes_on = add_run(list, kind, index, entry, behind or 0)
            elseif not behind and (maybe[j] == nil or (maybe[j] == false and is_true(key, list, entry, index))) then
                goes_on = add_job(list, index, entry)
            end
            lost = true
            if not goes_on then
                return false
            end
        end
        at = at + #entries
    until #entries < WINDOW
    return true
end

-- The same for ids of the inbox, which stand behind those of the list: from behind the job `last`, when that is one of them.
local function page_inbox(list, ids, last)
    local on = true
    for k = 1, #ids do
        on = on and ids[k] ~= last
    end
    for k = 1, #ids do
        if on and not add_job(list, 0, ids[k]) then
            return false
        end
        on = on or ids[k] == last
    end
    return true
end

local function page_list(lists, key_of, ghosts, bodies, inbox)
    local list, offset, id = match(place, '^(.):(%d+):(.*)$')
    for i = 1, #lists do
        local l = sub(lists, i, i)
        if not list or l >= list then
            local last = l == list and id or nil
            if not (last and bodies[last]) and not page_one(l, key_of(l), ghosts, tonumber(offset), last) or
               inbox[l] and not page_inbox(l, inbox[l], last) then
                return
            end
        end
    end
    out[1] = 1
end

local function page_set(key)
    local score, id = match(place, '^(%S+) (.*)$')
    local at = 0
    if score then
        local rank = call('ZRANK', key, id)
        at = rank and call('ZSCORE', key, id) == score and rank + 1 or call('ZCOUNT', key, '-inf', '(' .. score)
    end
    local all
    repeat
        all = call('ZRANGE', key, at, at + WINDOW - 1, 'WITHSCORES')
        for i = 1, #all, 2 do
            if not (score and all[i + 1] == score and all[i] <= id) then
                if #out >= 2 * most then
                    return
                end
                out[#out + 1] = all[i]
                out[#out + 1] = all[i + 1] .. ' ' .. all[i]
            end
        end
        at = at + WINDOW
    until #all < 2 * WINDOW
    out[1] = 1
end

-- Ready jobs of keys, key by key. Behind the others; a place is "Kn score id", n being the number of the key among the names: it
-- counts when the job is gone and with it what told its key.
local function page_keys()
    local n, score, id = match(place, '^K(%d+) (%S+) (.*)$')
    local key = n and call('HGET', P .. 'key', id)
    local at = key and call('ZRANK', P .. 'knames', key) or tonumber(n or 0)
    out[1] = 0
    repeat
        local names = call('ZRANGE', P .. 'knames', at, at + WINDOW - 1)
        for i = 1, #names do
            local from = score and '(' .. score or '-inf'
            score = nil
            repeat
                local jobs = call('ZRANGE', P .. 'kz:' .. names[i], from, '+inf', 'BYSCORE', 'LIMIT', 0, WINDOW, 'WITHSCORES')
                for j = 1, #jobs, 2 do
                    if #out >= 2 * most then
                        return
                    end
                    out[#out + 1] = jobs[j]
                    out[#out + 1] = 'K' .. at + i - 1 .. ' ' .. jobs[j + 1] .. ' ' .. jobs[j]
                    from = '(' .. jobs[j + 1]
                end
            until #jobs < 2 * WINDOW
        end
        at = at + #names
    until #names < WINDOW
    out[1] = 1
end

local function op_page(keys, argv)
    begin()
    local state = argv[1]
    P, most, place, out = prefix(keys[1]), tonumber(argv[2]), argv[3], {0}
    local meta = call('HMGET', P .. 'meta', 'v', 'levels', 'gr', 'gc', 'kr')
    check_format(meta[1])
    if state == 'ready' then
        if byte(place) ~= KEYED then
            local bodies, inbox = look_into_inbox(P)
            local levels = meta[2] or ''
            for l = 0, inbox and 8 or -1 do
                levels = find(levels, l, 1, true) and levels or levels .. l
            end
            page_list(sort_letters(levels), function(l) return P .. 'ready:' .. l end, tonumber(meta[3] or 0), bodies or {}, inbox or {})
        end
        if meta[5] and (byte(place) == KEYED or out[1] == 1) then
            page_keys()
        end
    elseif state == 'completed' then
        page_list('c', function() return P .. 'completed' end, tonumber(meta[4] or 0), {}, {})
    else
        page_set(P .. state)
    end
    return out
end
