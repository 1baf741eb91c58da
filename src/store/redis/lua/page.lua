-- page.lua - the ids of one page of one state, with the place of each, to go on behind it
--
-- KEYS  meta
-- ARGV  state (scheduled, ready, retrying, completed, dead, cancelled), most, place or ""
-- Answers {end reached (0|1), id, place, id, place, ...}
--
-- A place is "list:offset:id" or "score:id". Lists shift while jobs leave at the head, so the id is looked for at its
-- offset and then in front of it; one that is not there any more has left with everything before it. (A search of a list
-- costs time in proportion to the offset, and only when the list has moved.)
local P = prefix(KEYS[1])
local state, most, place = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local out = {0}
local WINDOW = 500

local function start_of(key, offset, id)
    if call('LINDEX', key, offset) == id then
        return offset + 1
    end
    local found = call('LPOS', key, id, 'MAXLEN', offset + SLICE)
    return found and found + 1 or 0
end

-- Of several entries of one id only the last can be the true one, and only when there are more of them than ghosts.
local function is_true(key, list, id, index)
    if call('HEXISTS', P .. 'ghost', list .. id) == 0 then
        return true
    end
    if call('LPOS', key, id, 'RANK', -1) ~= index then
        return false
    end
    local count = #call('LPOS', key, id, 'COUNT', 0)
    return count > tonumber(call('HGET', P .. 'ghost', list .. id))
end

local function page_list(lists, key_of, ghosts)
    local list, offset, id = match(place, '^(.):(%d+):(.*)$')
    for i = 1, #lists do
        local l = sub(lists, i, i)
        local key = key_of(l)
        if not list or l >= list then
            local at = l == list and start_of(key, tonumber(offset), id) or 0
            local ids
            repeat
                ids = call('LRANGE', key, at, at + WINDOW - 1)
                for j = 1, #ids do
                    if ghosts <= 0 or is_true(key, l, ids[j], at + j - 1) then
                        if #out >= 2 * most then
                            return
                        end
                        out[#out + 1] = ids[j]
                        out[#out + 1] = l .. ':' .. (at + j - 1) .. ':' .. ids[j]
                    end
                end
                at = at + #ids
            until #ids < WINDOW
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

local meta = call('HMGET', P .. 'meta', 'v', 'levels', 'gr', 'gc')
check_format(meta[1])
if state == 'ready' then
    page_list(meta[2] or '', function(l) return P .. 'ready:' .. l end, tonumber(meta[3] or 0))
elseif state == 'completed' then
    page_list('c', function() return P .. 'completed' end, tonumber(meta[4] or 0))
else
    page_set(P .. state)
end
return out
