-- begin.lua - notes on leases of one queue that their run begins; no state changes
--
-- KEYS  meta
-- ARGV  worker, then for each lease: id, fence
-- Answers the indices that are stale.
local P = prefix(KEYS[1])
local stale, kv = {}, {}
for i = 2, #ARGV, 2 do
    local lease = call('HGET', P .. 'lease', ARGV[i])
    local fence, w, mark = match(lease or '', '^(%d+) .(%w+)(!?)$')
    if fence ~= ARGV[i + 1] or w ~= ARGV[1] then
        stale[#stale + 1] = i / 2 - 1
    elseif mark == '' then
        kv[#kv + 1] = ARGV[i]
        kv[#kv + 1] = lease .. '!'
    end
end
spread('HSET', P .. 'lease', kv, 1, #kv)
return stale
