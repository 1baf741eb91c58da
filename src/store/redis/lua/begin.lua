-- begin.lua - notes on leases of one queue that their run begins; no state changes
--
-- KEYS  meta
-- ARGV  worker, then for each lease: id, fence with a blank behind
-- Answers the indices that are stale.
local P = prefix(KEYS[1])
local stale, kv = {}, {}
for i = 2, #ARGV, 2 do
    local lease = call('HGET', P .. 'lease', ARGV[i])
    local mine = ARGV[i + 1] .. ARGV[1] .. ' '
    if not lease or sub(lease, 1, #mine) ~= mine then
        stale[#stale + 1] = i / 2 - 1
    elseif sub(lease, -1) ~= '!' then
        kv[#kv + 1] = ARGV[i]
        kv[#kv + 1] = lease .. '!'
    end
end
spread('HSET', P .. 'lease', kv, 1, #kv)
return stale
