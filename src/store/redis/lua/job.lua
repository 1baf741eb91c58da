-- job.lua - joined behind pack.lua where jobs are moved
--
-- A ready list or the list of the completed may hold entries that are no longer true (ghosts), so that nothing is ever
-- removed from its middle. ghost[level .. id] or ghost["c" .. id] counts them; a true entry of the same id always stands
-- behind its ghosts, since jobs leave at the head and come back at the tail. meta.gr and meta.gc count the ghosts of
-- ready and of completed.

-- plain: of the queue at hand no job has a history, a lock, a note of since when it waits, a mark, or has said anything, so nothing of the kind needs to be
-- looked for. Whoever sets it does so before anything of the kind can come up in the same call.
local function look_plain(P)
    plain = call('EXISTS', P .. 'hist', P .. 'uk', P .. 'since', P .. 'mark', P .. 'said', P .. 'key') == 0
end

-- Makes an entry of one list a ghost.
local function haunt(P, list, id)
    local made = make_table(P .. 'ghost')
    call('HINCRBY', P .. 'ghost', list .. id, 1)
    if made then
        call('HDEL', P .. 'ghost', '')
    end
    call('HINCRBY', P .. 'meta', list == 'c' and 'gc' or 'gr', 1)
end

-- True when this popped entry was a ghost, which is gone now.
local function lay(P, list, id)
    local left = call('HGET', P .. 'ghost', list .. id)
    if not left then
        return false
    end
    if tonumber(left) <= 1 then
        call('HDEL', P .. 'ghost', list .. id)
    else
        call('HINCRBY', P .. 'ghost', list .. id, -1)
    end
    call('HINCRBY', P .. 'meta', list == 'c' and 'gc' or 'gr', -1)
    return true
end

local pop
do -- its own helpers take no place among the 200 (head.lua)
-- Entries go back to the head: got[from..], and in front of them `rest`.
local function put_back(key, got, from, rest)
    local back = {}
    for i = #got, from, -1 do
        back[#back + 1] = got[i]
    end
    back[#back + 1] = rest
    spread('LPUSH', key, back, 1, #back)
end

-- The texts of folded flows among entries, by name; nil when there is none. Those that are in hand already are not asked for.
local function texts_of(P, entries)
    local names, texts
    for i = 1, #entries do
        local name = match(entries[i], '^([^~]*~)%d+%+')
        if name and packs[name] == nil and not FOLD.pending[name] then
            names = names or {}
            names[#names + 1] = name
        end
    end
    local found = names and fetch('HMGET', P .. 'pack', names, 1, #names) or {}
    for i = 1, #found do
        texts = texts or {}
        texts[names[i]] = found[i]
    end
    return texts
end

-- A popped stretch of a folded flow as {name, from, to, head, tail}, when it is ready as a whole and as one: the text of its flow is what is
-- in front of it, it, and what is behind.
local function whole_run(entry, texts, n)
    local name, from, k = match(entry, '^([^~]*~)(%d+)%+(%d+)$')
    local text = name and texts[name]
    if not text or tonumber(k) > n or byte(text) <= 57 then
        return
    end
    local a, b = find(text, from .. ' ' .. k .. ' r%d+;', 6)
    if not a or byte(text, a - 1) ~= 58 and byte(text, a - 1) ~= 59 then
        return
    end
    texts[name] = nil -- of further stretches of it the pack is looked at
    return {name = name, from = tonumber(from), to = from + k, head = sub(text, 1, a - 1), tail = sub(text, b + 1)}
end

-- The completed steps of a folded flow, of which there are at most n, are removed, when they are one stretch. How many; nil: not so.
local function drop_done(entry, texts, n)
    local name = match(entry, '^([^~]*~)0%+')
    local text = name and texts[name]
    if not text or byte(text) <= 57 then
        return
    end
    local head, done, tail = match(text, '^(%u%d%d)%+:0 (%d+) c[%d,]*;(.*)$')
    local gone = 0
    if not head then
        head, gone, done, tail = match(text, '^(%u%d%d)%+:0 (%d+) g;%d+ (%d+) c[%d,]*;(.*)$')
    end
    if not head or tonumber(done) > n or find(tail, ' c') then
        return
    end
    texts[name] = nil
    FOLD.pending[name] = head .. '-:0 ' .. gone + done .. ' g;' .. tail
    return tonumber(done)
end

-- Up to n jobs of a popped stretch, those that are in this state still, onto `out`. Returns how many, and the entry that is
-- left when there are more.
local function pop_run(P, entry, kind, n, out)
    local p = pack_at(P, name_of(entry))
    local from, to = read_entry(entry)
    local all, took, behind = 0, 0, from
    local v = p and p.v or {}
    for k = 1, #v, 3 do
        local a, b = max(v[k], from), min(v[k] + v[k + 1], to)
        if a < b and byte(v[k + 2]) == byte(kind) then
            all = all + b - a
            if took < n then
                behind = min(b, a + n - took)
                took = took + behind - a
                local last = out[#out]
                if type(last) == 'table' and last.p == p and last.to == a then
                    last.to = behind
                else
                    out[#out + 1] = {p = p, from = a, to = behind}
                end
            end
        end
    end
    extra[kind] = extra[kind] - (all - 1)
    if all == took then
        if kind == 'c' and p and p.head then
            FOLD.note_listed(p, false)
        end
        return took
    end
    extra[kind] = extra[kind] + all - took - 1
    return took, entry_of(p.name, behind, to)
end

-- Pops up to n jobs of a list ("0".."8" or "c"); ghosts: how many there may be among them. Returns ids, and {p, from, to}
-- for jobs of packs, in order, the number of jobs, and whether some are of packs. folded: {name, from, to, head, tail} for stretches of
-- folded flows that are whole.
function pop(P, list, n, ghosts, folded)
    local key, kind = P .. 'ready:' .. list, 'r'
    if list == 'c' then
        key, kind = P .. 'completed', 'c'
    end
    local out, k, have, looked, step, packed = {}, 0, 0, 0, 1, false
    while have < n and looked <= n + 10 * SLICE do
        local asked, got = step, call('LPOP', key, step)
        if not got then
            break
        end
        local texts = (folded or kind == 'c') and texts_of(P, got)
        for i = 1, #got do
            local entry, rest = got[i], nil
            if is_run(entry) then
                local took
                local whole = texts and kind == 'r' and whole_run(entry, texts, n - have)
                local dropped = not whole and texts and kind == 'c' and drop_done(entry, texts, n - have)
                if dropped then
                    took = dropped
                    extra.c = extra.c - (took - 1)
                elseif whole then
                    took = whole.to - whole.from
                    extra[kind] = extra[kind] - (took - 1)
                    out[#out + 1] = whole
                else
                    took, rest = pop_run(P, entry, kind, n - have, out)
                end
                have, k, packed = have + took, #out, true
                step = max(1, floor((n - have) / max(took, 1)))
            else
                if ghosts <= 0 or not lay(P, list, entry) then
                    have, k = have + 1, k + 1
                    out[k] = entry
                end
                step = n - have
            end
            if have >= n then
                put_back(key, got, i + 1, rest)
                break
            end
        end
        if #got < asked then
            break
        end
        looked = looked + #got
    end
    return out, have, packed
end
end

-- Releases the unique locks of jobs that were taken (started) or ended: those held until then, and never TTL ("2").
local function release(P, ids, a, b, started)
    if b < a or plain or call('HLEN', P .. 'uk') == 0 then
        return
    end
    local locks = fetch('HMGET', P .. 'uk', ids, a, b)
    for i = 1, #locks do
        local kind = locks[i] and byte(locks[i], 1)
        if kind == 49 or (kind == 48 and not started) then
            local key = P .. 'u:' .. sub(locks[i], 2)
            if call('GET', key) == ids[a + i - 1] then
                call('DEL', key)
                if call('HLEN', P .. 'uf') > 0 then
                    call('HDEL', P .. 'uf', sub(locks[i], 2))
                end
            end
        end
    end
end

-- These are not ready any more.
local function forget_since(P, ids, a, b)
    if b >= a and not plain and call('HLEN', P .. 'since') > 0 then
        spread('HDEL', P .. 'since', ids, a, b)
    end
end

-- Removes everything of jobs that stand in no list or set any more.
local function drop(P, ids, a, b)
    if b < a then
        return
    end
    local hists = not plain and call('HLEN', P .. 'hist') > 0
    local locks = not plain and call('HLEN', P .. 'uk') > 0
    forget_since(P, ids, a, b)
    release(P, ids, a, b, false)
    spread('HDEL', P .. 'jobs', ids, a, b)
    spread('HDEL', P .. 'fin', ids, a, b)
    if not plain and call('EXISTS', P .. 'key') == 1 then
        spread('HDEL', P .. 'key', ids, a, b)
    end
    if hists then
        spread('HDEL', P .. 'hist', ids, a, b)
    end
    if locks then
        spread('HDEL', P .. 'uk', ids, a, b)
    end
    if not plain and call('HLEN', P .. 'said') > 0 then
        for i = a, b do
            if call('HDEL', P .. 'said', ids[i]) == 1 then
                call('DEL', P .. 'log:' .. ids[i])
            end
        end
    end
end

-- Those of popped jobs that are of packs are removed; the ids of the others. completed: they are.
function K.drop_packed(P, popped, completed)
    local ids = {}
    for i = 1, #popped do
        local job = popped[i]
        if type(job) == 'table' then
            if job.p.head and not completed then
                FOLD.unfold(P, job.p)
            end
            set_state(job.p, job.from, job.to, 'g')
            if job.p.keyed and not completed then
                K.less_company(job.to - job.from)
            end
        else
            ids[#ids + 1] = job
        end
    end
    return ids
end

-- Removes popped jobs, which stand in no list any more. list: "A" to "I" when they were in company.
local function drop_popped(P, popped, completed, list)
    local ids = K.drop_packed(P, popped, completed)
    if list and list >= 'A' then
        K.less_company(#ids)
    end
    drop(P, ids, 1, #ids)
end

-- Removes the oldest completed jobs beyond `keep`, at most n; there are `count`.
local function keep_completed(P, count, ghosts, keep, n)
    local over = min(count - keep, n)
    if over <= 0 then
        return 0
    end
    local popped, done = pop(P, 'c', over, ghosts)
    drop_popped(P, popped, true)
    return done
end

-- The same for the dead or the cancelled.
local function keep_set(P, set, keep, n)
    local over = min(call('ZCARD', P .. set) - keep, n)
    if over <= 0 then
        return 0
    end
    local popped = call('ZPOPMIN', P .. set, over)
    local ids = {}
    for i = 1, #popped, 2 do
        ids[#ids + 1] = popped[i]
    end
    if set == 'dead' then
        K.leave_classes(P, ids, 1, #ids)
    end
    drop(P, ids, 1, #ids)
    return #ids
end

-- Due jobs of keys to theirs; the others.
local function promote_keyed(P, level, list)
    local keys = K.keys_of(P, list, 1, #list)
    if #keys == 0 then
        return list
    end
    local plain, keyed = {}, {}
    for i = 1, #list do
        if keys[i] then
            local n = #keyed
            K.key_count(keys[i], 'waiting', -1)
            keyed[n + 1], keyed[n + 2], keyed[n + 3], keyed[n + 4] = level, list[i], keys[i], K.comes_back(P, list[i], keys[i])
        else
            plain[#plain + 1] = list[i]
        end
    end
    K.key_ready(P, keyed)
    return plain
end

-- scheduled | retrying -> ready, by whoever began with the queue's keys (key_begin): up to n due jobs, in due order. Returns how many.
local function promote(P, n)
    local till = format('(%.0f', now + 1)
    local s = call('ZRANGE', P .. 'scheduled', '-inf', till, 'BYSCORE', 'LIMIT', 0, n, 'WITHSCORES')
    local r = call('ZRANGE', P .. 'retrying', '-inf', till, 'BYSCORE', 'LIMIT', 0, n, 'WITHSCORES')
    local i, j, done = 1, 1, 0
    local lists = {}
    while done < n and (i < #s or j < #r) do
        local from, at
        if j > #r or (i < #s and tonumber(s[i + 1]) <= tonumber(r[j + 1])) then
            from, at, i = s, i, i + 2
        else
            from, at, j = r, j, j + 2
        end
        local level = floor(from[at + 1] % 1 * 16)
        local list = lists[level] or {}
        lists[level] = list
        list[#list + 1] = from[at]
        done = done + 1
        tell(EVENT.WAITING, from[at], kind_at(P, from[at]))
    end
    if i > 1 then
        call('ZREMRANGEBYRANK', P .. 'scheduled', 0, (i - 3) / 2)
    end
    if j > 1 then
        call('ZREMRANGEBYRANK', P .. 'retrying', 0, (j - 3) / 2)
    end
    for level, list in pairs(lists) do
        note_since(P, list, 1, #list)
        list = promote_keyed(P, level, list)
        spread('RPUSH', P .. 'ready:' .. level, list, 1, #list)
    end
    return done
end

-- Ready jobs without keys, and of those in the inbox about how many; meta.gr and meta.xr of before this script, or nil.
local function count_ready(P, levels, gr, xr)
    local n = floor(call('LLEN', P .. 'in') / 2)
    for i = 1, #levels do
        n = n + call('LLEN', P .. 'ready:' .. sub(levels, i, i))
    end
    return n - tonumber(gr or 0) + tonumber(xr or 0) + extra.r
end

-- Forgets a worker that holds nothing.
local function forget_worker(P, w)
    call('ZREM', P .. 'workers', w)
    call('HDEL', P .. 'held', w)
    call('SREM', P .. 'idle', w)
    call('DEL', P .. 'stop:' .. w, P .. 'bell:' .. w, P .. 'got:' .. w, P .. 'won:' .. w)
end

-- Fences grow also when the data is lost or an old copy of it comes back: they follow the clock, in microseconds.
local function next_fence(last)
    return max(tonumber(last or 0) + 1, now_us)
end

-- Bodies of ids[a..b] that together have at most `budget` bytes, but one at least; over `most` bytes each: false and
-- over[i]. Returns bodies and how many of the ids they cover. big: the longest body of this queue, when it is long.
local function bodies_of(P, ids, most, budget, big)
    local n = #ids
    local over = {}
    if not big then
        local all = fetch('HMGET', P .. 'jobs', ids, 1, n)
        for i = 1, n do
            if all[i] and #all[i] > most then
                all[i], over[i] = '', true
            end
        end
        return all, n, over
    end
    local out = {}
    for i = 1, n do
        local size = call('HSTRLEN', P .. 'jobs', ids[i])
        if size > most then
            out[i], over[i] = '', true
        else
            if size > budget and i > 1 then
                return out, i - 1, over
            end
            budget = budget - size
            out[i] = call('HGET', P .. 'jobs', ids[i])
        end
    end
    return out, n, over
end

-- Gives a job all attempts back: zeroes the counts of its history (LQ_HISTORY_COUNTS_AT and _SIZE in store.h).
local function zero_counts(P, id)
    local h = call('HGET', P .. 'hist', id)
    if h and #h >= 6 then
        call('HSET', P .. 'hist', id, sub(h, 1, 2) .. '\0\0\0\0' .. sub(h, 7))
    end
end
