-- heed.lua - joined behind pack.lua: who waits for a job to end, and what handlers said
--
-- waits[id] names those that watch a job, waits[""] those that watch the events and waits["~"] those that wait for room; meta.wt says that there may be some. Whoever does what
-- they wait for rings their bells (ring.lua, wait.c) and forgets them: they look, and come back if need be.
-- said[id] is "percent at lines text" of what its handler said, log:<id> the newest lines, each "at text".

local function heed(P, ids)
    if call('EXISTS', P .. 'waits') == 0 then
        call('HDEL', P .. 'meta', 'wt')
        return
    end
    local found, rung, gone = fetch('HMGET', P .. 'waits', ids, 1, #ids), {}, {}
    for i = 1, #ids do
        if found[i] then
            gone[#gone + 1] = ids[i]
            for w in gmatch(found[i], '%S+') do
                rung[w] = true
            end
        end
    end
    for w in pairs(rung) do
        call('RPUSH', P .. 'bell:' .. w, '1')
        call('PEXPIRE', P .. 'bell:' .. w, 60000)
    end
    spread('HDEL', P .. 'waits', gone, 1, #gone)
end

-- Where it is not known whether anybody waits. A job that an operator ends may leave room (room.lua).
local function heed_one(P, id)
    if call('HEXISTS', P .. 'meta', 'wt') == 1 then
        heed(P, {id, '~'})
    end
end

-- All that wait for jobs of the queue, and for its events.
local function heed_all(P)
    if call('HEXISTS', P .. 'meta', 'wt') == 1 then
        heed(P, call('HKEYS', P .. 'waits'))
    end
end

-- The result that is kept apart from a job that ended at this time (ms as text), or of one that is gone (nil); or ''.
local function result_apart(P, id, at)
    local text = call('GET', P .. 't:' .. id)
    local ended, from = match(text or '', '^(%d+) ()')
    return ended and (not at or ended == at) and sub(text, from) or ''
end

-- State letter as in rows.lua, and the record of the end; nil when it is not there.
local function state_of(P, id)
    local fin = call('HGET', P .. 'fin', id)
    if fin then
        return sub(fin, 1, 1), fin
    elseif call('HEXISTS', P .. 'lease', id) == 1 then
        return 'a'
    elseif call('ZSCORE', P .. 'scheduled', id) then
        return 's'
    elseif call('ZSCORE', P .. 'retrying', id) then
        return 't'
    elseif call('HEXISTS', P .. 'jobs', id) == 1 then
        return 'r'
    end
    local p, _, is = find_in_pack(P, id)
    if p then
        return sub(is, 1, 1)
    end
    local inbox = look_into_inbox(P)
    return inbox and inbox[id] and 'r'
end

-- percent, at, lines, text
local function read_said(text)
    local percent, at, lines, from = match(text or '', '^(%-?%d+) (%d+) (%d+) ()')
    if not percent then
        return -1, 0, 0, ''
    end
    return tonumber(percent), tonumber(at), tonumber(lines), sub(text, from)
end
