-- redrive.lua - dead -> ready, oldest first, with all attempts again
--
-- KEYS  meta
-- ARGV  most
-- Answers {moved, more (0|1)}. Two operators never move the same job: what one has popped the other does not find.
local function op_redrive(keys, argv)
    begin()
    local P = prefix(keys[1])
    local meta = call('HMGET', P .. 'meta', 'v', 'paused')
    check_format(meta[1])
    local popped = call('ZPOPMIN', P .. 'dead', argv[1])
    local ids, lists = {}, {}
    for i = 1, #popped, 2 do
        ids[#ids + 1] = popped[i]
    end
    local fins = fetch('HMGET', P .. 'fin', ids, 1, #ids)
    for i = 1, #ids do
        local level = fins[i] and sub(fins[i], 2, 2) or '4'
        local list = lists[level] or {}
        lists[level] = list
        list[#list + 1] = ids[i]
        zero_counts(P, ids[i])
    end
    spread('HDEL', P .. 'fin', ids, 1, #ids)
    for level, list in pairs(lists) do
        spread('RPUSH', P .. 'ready:' .. level, list, 1, #list)
        note_since(P, list, 1, #list)
    end
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
