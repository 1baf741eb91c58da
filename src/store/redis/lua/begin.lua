-- begin.lua - notes on leases of one queue that their run begins; no state changes
--
-- KEYS  meta
-- ARGV  worker, then for each lease: id, fence
-- Answers the indices that are stale.
local P = prefix(KEYS[1])
local stale, kv = {}, {}

-- Its lease, or what it is once it has left its pack.
local function lease_of(id, own_fence)
    local lease = call('HGET', P .. 'lease', id)
    if lease then
        return lease
    end
    local p, place, state = find_in_pack(P, id)
    local fence, w = match(state or '', '^a(%d+) (%w+)$')
    if fence == own_fence and w == ARGV[1] then
        local level = level_of(extract(P, p, place, state))
        return fence .. ' ' .. level .. w
    end
end

for i = 2, #ARGV, 2 do
    local lease = lease_of(ARGV[i], ARGV[i + 1])
    local fence, w, mark = match(lease or '', '^(%d+) .(%w+)(!?)$')
    if fence ~= ARGV[i + 1] or w ~= ARGV[1] then
        stale[#stale + 1] = i / 2 - 1
    elseif mark == '' then
        kv[#kv + 1] = ARGV[i]
        kv[#kv + 1] = lease .. '!'
    end
end
if #kv > 0 then
    open_leases(P)
    spread('HSET', P .. 'lease', kv, 1, #kv)
end
flush(P)
return stale
