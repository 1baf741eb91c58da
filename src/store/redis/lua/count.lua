-- count.lua - the numbers of one queue
--
-- KEYS  meta
-- Answers {} for a queue that is not there, or {now, scheduled, ready, active, retrying, completed, dead, cancelled, paused,
-- enqueued, completed ever, failed ever, dead ever, live workers, then of the first job of each ready list: id, and since when or 0}
local P = prefix(KEYS[1])
local meta = call('HMGET', P .. 'meta', 'v', 'levels', 'gr', 'gc', 'paused', 'enqueued', 'completed', 'failed', 'dead')
if not meta[1] then
    return {}
end
check_format(meta[1])
local levels, ghosts = meta[2] or '', tonumber(meta[3] or 0)
local ready = 0
for i = 1, #levels do
    ready = ready + call('LLEN', P .. 'ready:' .. sub(levels, i, i))
end
local out = {now, call('ZCARD', P .. 'scheduled'), ready - ghosts, max(call('HLEN', P .. 'lease') - 1, 0),
             call('ZCARD', P .. 'retrying'), call('LLEN', P .. 'completed') - tonumber(meta[4] or 0),
             call('ZCARD', P .. 'dead'), call('ZCARD', P .. 'cancelled'), meta[5] and 1 or 0,
             tonumber(meta[6] or 0), tonumber(meta[7] or 0), tonumber(meta[8] or 0), tonumber(meta[9] or 0),
             call('ZCOUNT', P .. 'workers', now, '+inf')}
for i = 1, #levels do
    local level = sub(levels, i, i)
    local heads = call('LRANGE', P .. 'ready:' .. level, 0, ghosts > 0 and 31 or 0)
    for j = 1, #heads do
        if ghosts <= 0 or call('HEXISTS', P .. 'ghost', level .. heads[j]) == 0 then
            out[#out + 1] = heads[j]
            out[#out + 1] = tonumber(call('HGET', P .. 'since', heads[j]) or 0)
            break
        end
    end
end
return out
