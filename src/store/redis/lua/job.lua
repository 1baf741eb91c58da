-- job.lua - joined behind lib.lua where jobs are moved
--
-- A ready list or the list of the completed may hold entries that are no longer true (ghosts), so that nothing is ever
-- removed from its middle. ghost[level .. id] or ghost["c" .. id] counts them; a true entry of the same id always stands
-- behind its ghosts, since jobs leave at the head and come back at the tail. meta.gr and meta.gc count the ghosts of
-- ready and of completed.

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

-- Pops up to n true entries of a list ("0".."8" or "c"). ghosts: how many there may be among them.
local function pop(P, list, n, ghosts)
    local key = list == 'c' and P .. 'completed' or P .. 'ready:' .. list
    local ids = call('LPOP', key, n)
    if not ids then
        return {}
    end
    if ghosts <= 0 then
        return ids
    end
    local out, looked = {}, 0
    while true do
        for i = 1, #ids do
            if not lay(P, list, ids[i]) then
                out[#out + 1] = ids[i]
            end
        end
        looked = looked + #ids
        if #out >= n or looked > n + 10 * SLICE then
            return out
        end
        ids = call('LPOP', key, n - #out)
        if not ids then
            return out
        end
    end
end

-- Releases the unique locks of jobs that were taken (started) or ended: those held until then, and never TTL ("2").
local function release(P, ids, a, b, started)
    if b < a or call('HLEN', P .. 'uk') == 0 then
        return
    end
    local locks = fetch('HMGET', P .. 'uk', ids, a, b)
    for i = 1, #locks do
        local kind = locks[i] and byte(locks[i], 1)
        if kind == 49 or (kind == 48 and not started) then
            local key = P .. 'u:' .. sub(locks[i], 2)
            if call('GET', key) == ids[a + i - 1] then
                call('DEL', key)
            end
        end
    end
end

-- These are not ready any more.
local function forget_since(P, ids, a, b)
    if b >= a and call('HLEN', P .. 'since') > 0 then
        spread('HDEL', P .. 'since', ids, a, b)
    end
end

-- Removes everything of jobs that stand in no list or set any more.
local function drop(P, ids, a, b)
    if b < a then
        return
    end
    local fins, hists, locks = call('HLEN', P .. 'fin'), call('HLEN', P .. 'hist'), call('HLEN', P .. 'uk')
    forget_since(P, ids, a, b)
    release(P, ids, a, b, false)
    spread('HDEL', P .. 'jobs', ids, a, b)
    if fins > 0 then
        spread('HDEL', P .. 'fin', ids, a, b)
    end
    if hists > 0 then
        spread('HDEL', P .. 'hist', ids, a, b)
    end
    if locks > 0 then
        spread('HDEL', P .. 'uk', ids, a, b)
    end
end

-- Removes the oldest completed jobs beyond `keep`, at most n. The list has `len` entries, of them `ghosts`.
local function keep_completed(P, len, ghosts, keep, n)
    local over = min(len - ghosts - keep, n)
    if over <= 0 then
        return 0
    end
    local ids = pop(P, 'c', over, ghosts)
    drop(P, ids, 1, #ids)
    return #ids
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
    drop(P, ids, 1, #ids)
    return #ids
end

-- scheduled | retrying -> ready: up to n due jobs, in due order. Returns how many.
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
    end
    if i > 1 then
        call('ZREMRANGEBYRANK', P .. 'scheduled', 0, (i - 3) / 2)
    end
    if j > 1 then
        call('ZREMRANGEBYRANK', P .. 'retrying', 0, (j - 3) / 2)
    end
    for level, list in pairs(lists) do
        spread('RPUSH', P .. 'ready:' .. level, list, 1, #list)
        note_since(P, list, 1, #list)
    end
    return done
end

-- Entries in the ready lists, true ones only.
local function count_ready(P, levels, ghosts)
    local n = 0
    for i = 1, #levels do
        n = n + call('LLEN', P .. 'ready:' .. sub(levels, i, i))
    end
    return n - ghosts
end

-- Forgets a worker that holds nothing.
local function forget_worker(P, w)
    call('ZREM', P .. 'workers', w)
    call('HDEL', P .. 'held', w)
    call('SREM', P .. 'idle', w)
    call('DEL', P .. 'stop:' .. w, P .. 'bell:' .. w, P .. 'got:' .. w, P .. 'won:' .. w)
end

-- The hash of leases has one field that is no job: its value is too long for the compact form of a small hash, in which
-- every look-up would walk over all fields.
local function open_leases(P)
    if call('EXISTS', P .. 'lease') == 0 then
        call('HSET', P .. 'lease', '', string.rep('-', 65))
    end
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
