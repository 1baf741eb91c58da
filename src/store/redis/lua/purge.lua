-- purge.lua - jobs of one state, never active -> gone
--
-- KEYS  meta
-- ARGV  state, most
-- Answers {removed, more (0|1)}.
local P = prefix(KEYS[1])
local state, most = ARGV[1], tonumber(ARGV[2])
local meta = call('HMGET', P .. 'meta', 'v', 'levels', 'gr', 'gc')
check_format(meta[1])
local n = 0
if state == 'ready' then
    local levels, ghosts = meta[2] or '', tonumber(meta[3] or 0)
    for i = 1, #levels do
        while n < most do
            local ids = pop(P, sub(levels, i, i), min(most - n, SLICE), ghosts)
            if #ids == 0 then
                break
            end
            drop(P, ids, 1, #ids)
            n = n + #ids
        end
    end
    return {n, count_ready(P, levels, tonumber(call('HGET', P .. 'meta', 'gr') or 0)) > 0 and 1 or 0}
elseif state == 'completed' then
    local len = call('LLEN', P .. 'completed')
    n = keep_completed(P, len, tonumber(meta[4] or 0), 0, most)
    local ghosts = tonumber(call('HGET', P .. 'meta', 'gc') or 0)
    return {n, call('LLEN', P .. 'completed') > ghosts and 1 or 0}
end
n = keep_set(P, state, 0, most)
return {n, call('ZCARD', P .. state) > 0 and 1 or 0}
