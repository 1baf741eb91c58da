-- redrive.lua - dead -> ready, oldest first, with all attempts again
--
-- KEYS  meta
-- ARGV  most
-- Answers {moved, more (0|1)}. Two operators never move the same job: what one has popped the other does not find.
-- Jobs of keys to the end of theirs; the others.
local function revive_keyed(P, level, list)
    local keys, plain, keyed = K.keys_of(P, list, 1, #list), {}, {}
    if #keys == 0 then
        return list
    end
    for i = 1, #list do
        if keys[i] then
            local n = #keyed
            keyed[n + 1], keyed[n + 2], keyed[n + 3], keyed[n + 4] = tonumber(level), list[i], keys[i], false
        else
            plain[#plain + 1] = list[i]
        end
    end
    K.key_ready(P, keyed)
    return plain
end

local function op_redrive(keys, argv)
    begin()
    local P = prefix(keys[1])
    local meta = call('HMGET', P .. 'meta', 'v', 'paused', 'gate', 'ev', 'levels', 'max')
    check_format(meta[1])
    K.begin_behind(P, meta[3], select(3, drain(P, meta[5])))
    tell_begin(meta[4])
    local popped = call('ZPOPMIN', P .. 'dead', argv[1])
    local ids, lists = {}, {}
    for i = 1, #popped, 2 do
        ids[#ids + 1] = popped[i]
    end
    K.leave_classes(P, ids, 1, #ids)
    local fins = fetch('HMGET', P .. 'fin', ids, 1, #ids)
    for i = 1, #ids do
        local level = fins[i] and sub(fins[i], 2, 2) or '4'
        local list = lists[level] or {}
        lists[level] = list
        list[#list + 1] = ids[i]
        zero_counts(P, ids[i])
        tell(EVENT.WAITING, ids[i], kind_at(P, ids[i]))
    end
    spread('HDEL', P .. 'fin', ids, 1, #ids)
    K.add_bytes(P, K.max_bytes(meta[6]) and K.weigh(P, ids, 1, #ids) or 0)
    tell_end(P)
    for level, list in pairs(lists) do
        note_since(P, list, 1, #list)
        list = revive_keyed(P, level, list)
        spread('RPUSH', P .. 'ready:' .. level, list, 1, #list)
    end
    K.key_flush()
    if not meta[2] then
        ring(P, #ids)
    end
    flow_begin(P)
    for i = 1, #ids do
        if find(ids[i], '~', 1, true) then
            flow_revived(ids[i])
        end
    end
    flow_flush()
    return {#ids, call('ZCARD', P .. 'dead') > 0 and 1 or 0}
end
