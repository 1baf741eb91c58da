-- act.lua - an operator's retry, kill, cancel or remove of jobs of one queue
--
-- KEYS  meta
-- ARGV  verb (0 retry, 1 kill, 2 cancel, 3 remove), ids
-- Answers for each id 0 done, 1 not found, 2 wrong state.
local P, verb -- of the call at hand
local bounded -- by bytes: what waits is weighed
local key, goes_first -- of the job at hand: nil when it has none; whether it was away and comes before the others
local DONE, ABSENT, WRONG = 0, 1, 2

local mate -- whether the job at hand is in company, but in no pack

-- The key of a job with a record of its own, but none of its key: it came to company by the inbox. (Bodies of unique jobs may be replaced by such
-- with a key, and steps of flows have none.)
local function mates_key(id, body)
    return gate and not find(id, '~', 1, true) and call('HEXISTS', P .. 'key', id) == 0 and call('HEXISTS', P .. 'uk', id) == 0 and K.key_of(body) or nil
end

-- State letter as in rows.lua, its level, and the lease or the record of the end; of one in a pack this and its place.
local function find_job(id)
    mate = false
    local fin = call('HGET', P .. 'fin', id)
    if fin then
        return sub(fin, 1, 1), sub(fin, 2, 2), fin
    end
    local lease = call('HGET', P .. 'lease', id)
    if lease then
        local level
        level, mate = K.level_in(lease)
        return 'a', level, lease
    end
    local score, state = call('ZSCORE', P .. 'scheduled', id), 's'
    if not score then
        score, state = call('ZSCORE', P .. 'retrying', id), 't'
    end
    if score then
        return state, format('%d', tonumber(score) % 1 * 16)
    end
    local body = call('HGET', P .. 'jobs', id)
    if body then
        mate = mates_key(id, body) ~= nil
        return 'r', tostring(level_of(body))
    end
    local p, place, is = find_in_pack(P, id)
    if not p then
        return
    end
    local level, fence, w = level_of(body_of(P, p, place)), match(is, '^a(%d+) (%w+)$')
    return sub(is, 1, 1), tostring(level), fence and fence .. ' ' .. level .. w, p, place, is
end

local p, place, is -- of the job in hand, when it is in a pack

-- One job waits, or waits no more.
local function weigh_one(id, sign)
    if bounded then
        K.add_bytes(P, sign * K.weigh(P, {id}, 1, 1))
    end
end

-- Out of its pack; then it has its key by itself.
local function leave_pack()
    local body = extract(P, p, place, is)
    key = p.keyed and K.key_of(body) or nil
end

-- Takes the job out of the structure of its state.
local function unlink(id, state, level)
    if p then
        leave_pack()
    elseif state == 'r' then
        if mate then
            haunt(P, sub('ABCDEFGHI', level + 1, level + 1), id)
            key = K.key_of(call('HGET', P .. 'jobs', id))
            set_fields(P .. 'key', {id, key}, 1, 2)
            K.less_company(1)
        elseif key then
            call('ZREM', P .. 'kz:' .. key, id)
            K.key_count(key, 'ready', -1)
        else
            haunt(P, level, id)
        end
    elseif state == 's' or state == 't' then
        call('ZREM', P .. (state == 's' and 'scheduled' or 'retrying'), id)
        if key then
            K.key_count(key, 'waiting', -1)
            goes_first = K.comes_back(P, id, key)
        end
    elseif state == 'c' then
        haunt(P, 'c', id)
        key = key or mates_key(id, call('HGET', P .. 'jobs', id) or '')
        set_fields(P .. 'key', {id, key}, 1, key and 2 or 0)
    elseif state == 'd' then
        K.leave_classes(P, {id}, 1, 1)
        call('ZREM', P .. 'dead', id)
    elseif state == 'x' then
        call('ZREM', P .. 'cancelled', id)
    end
    if state == 'r' or state == 's' or state == 't' then
        weigh_one(id, -1)
    end
end

local function stop(id, lease, kind)
    local fence, w = match(lease, '^(%d+) .(%w+)')
    call('RPUSH', P .. 'stop:' .. w, fence .. ' ' .. kind .. ' ' .. id)
    call('PEXPIRE', P .. 'stop:' .. w, 86400000)
    return w
end

local function retry(id, state, level)
    if state == 'a' or state == 'r' then
        return WRONG
    end
    unlink(id, state, level)
    if state == 'c' or state == 'd' or state == 'x' then
        call('HDEL', P .. 'fin', id)
        zero_counts(P, id)
    end
    if key then
        K.key_ready(P, {level, id, key, goes_first})
    else
        call('RPUSH', P .. 'ready:' .. level, id)
    end
    weigh_one(id, 1)
    note_since(P, {id}, 1, 1)
    tell(EVENT.WAITING, id, kind_at(P, id))
    return DONE
end

local function finish(id, state, level, where)
    if state == 'c' or state == 'd' or state == 'x' then
        return WRONG
    end
    if state == 'a' then
        if call('HEXISTS', P .. 'mark', id) == 1 then
            return WRONG
        end
        if p then
            leave_pack()
            open_leases(P)
            call('HSET', P .. 'lease', id, where)
        end
        set_fields(P .. 'mark', {id, verb == '1' and 'k' or 'c'}, 1, 2)
        stop(id, where, 'm')
        return DONE
    end
    unlink(id, state, level)
    release(P, {id}, 1, 1, false)
    forget_since(P, {id}, 1, 1)
    if verb == '1' then
        call('ZADD', P .. 'dead', now, id)
        call('HSET', P .. 'fin', id, 'd' .. level .. 'k ' .. now .. ' ' .. K.enter_class(P, id, '', 'killed'))
        call('HINCRBY', P .. 'meta', 'dead', 1)
        tell(EVENT.DEAD, id, kind_at(P, id), 0, 0, 'killed')
    else
        call('ZADD', P .. 'cancelled', now, id)
        call('HSET', P .. 'fin', id, 'x' .. level .. '  ' .. now .. ' ')
        tell(EVENT.CANCELLED, id, kind_at(P, id))
    end
    heed_one(P, id)
    return DONE
end

local function remove(id, state, level, where)
    if state == 'a' then
        local w = stop(id, where, 'r')
        if p then
            leave_pack()
        end
        call('HDEL', P .. 'lease', id)
        call('HDEL', P .. 'mark', id)
        call('HINCRBY', P .. 'held', w, -1)
        if mate then
            K.less_company(1)
        elseif key then
            K.key_count(key, 'active', -1)
        end
        if gate and gate.lim.c > 0 then
            gate.rings = gate.rings + 1
        end
    else
        unlink(id, state, level)
    end
    drop(P, {id}, 1, 1)
    call('DEL', P .. 't:' .. id)
    heed_one(P, id)
    return DONE
end

-- Reads what may be written, so that a foreign key stops us before.
local function want_acts()
    for _, hash in ipairs({'jobs', 'pack', 'fin', 'lease', 'hist', 'uk', 'mark', 'ghost', 'held', 'since'}) do
        call('HLEN', P .. hash)
    end
    for _, set in ipairs({'scheduled', 'retrying', 'dead', 'cancelled'}) do
        call('ZCARD', P .. set)
    end
    K.want_classes(P)
end

-- Tells the flows of {id, state it was in} what happened.
local function tell_acts(flow_items)
    if #flow_items == 0 then
        return
    end
    flow_begin(P)
    for k = 1, #flow_items do
        local id, was = unpack(flow_items[k])
        if verb ~= '0' then
            if was ~= 'a' or verb == '3' then
                flow_ended(id, verb == '1' and '3' or '4')
            end
        elseif was == 'c' or was == 'd' or was == 'x' then
            flow_revived(id)
        end
    end
    flow_flush()
end

local function op_act(keys, argv)
    begin()
    P, verb = prefix(keys[1]), argv[1]
    local meta = call('HMGET', P .. 'meta', 'v', 'paused', 'gate', 'ev', 'levels', 'max')
    check_format(meta[1])
    bounded = K.max_bytes(meta[6])
    K.begin_behind(P, meta[3], select(3, drain(P, meta[5])))
    tell_begin(meta[4])
    want_acts()
    local out, flow_items, revived = {}, {}, 0
    for i = 2, #argv do
        local id = argv[i]
        local state, level, where
        state, level, where, p, place, is = find_job(id)
        key, goes_first = gate and state and call('HGET', P .. 'key', id) or nil, false
        if not state then
            -- of a job whose record is gone its result may be there yet (heed.lua)
            out[i - 1] = verb == '3' and call('DEL', P .. 't:' .. id) == 1 and DONE or ABSENT
        elseif verb == '0' then
            out[i - 1] = retry(id, state, level)
            revived = revived + (out[i - 1] == DONE and 1 or 0)
        elseif verb == '3' then
            out[i - 1] = remove(id, state, level, where)
        else
            out[i - 1] = finish(id, state, level, where)
        end
        if state and out[i - 1] == DONE and find(id, '~', 1, true) then
            flow_items[#flow_items + 1] = {id, state}
        end
    end
    K.key_flush()
    flush(P)
    tell_end(P)
    tell_acts(flow_items)
    if revived > 0 and not meta[2] then
        ring(P, revived)
    end
    return out
end
