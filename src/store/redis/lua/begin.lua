-- begin.lua - notes on leases of one queue that their run begins; no state changes
--
-- KEYS  meta
-- ARGV  worker, then for each lease: id, fence
-- Answers the indices that are stale.
-- Its lease, or what it is once it has left its pack.
local function lease_of(P, id, own_fence, worker)
    local lease = call('HGET', P .. 'lease', id)
    if lease then
        return lease
    end
    local p, place, state = find_in_pack(P, id)
    local fence, w = match(state or '', '^a(%d+) (%w+)$')
    if fence == own_fence and w == worker then
        local level = level_of(extract(P, p, place, state))
        return fence .. ' ' .. level .. w
    end
end

local function op_begin(keys, argv)
    begin()
    local P = prefix(keys[1])
    K.let_go_keys()
    local stale, kv = {}, {}
    for i = 2, #argv, 2 do
        local lease = lease_of(P, argv[i], argv[i + 1], argv[1])
        local fence, w, mark = match(lease or '', '^(%d+) .(%w+)(!?)$')
        if fence ~= argv[i + 1] or w ~= argv[1] then
            stale[#stale + 1] = i / 2 - 1
        elseif mark == '' then
            kv[#kv + 1] = argv[i]
            kv[#kv + 1] = lease .. '!'
        end
    end
    if #kv > 0 then
        open_leases(P)
        spread('HSET', P .. 'lease', kv, 1, #kv)
    end
    K.key_flush()
    flush(P)
    return stale
end
