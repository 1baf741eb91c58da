-- control.lua - an order to a live worker, or what its record has (src/queue/control_store.h)
--
-- KEYS  <ns>:workers, {<ns>:workers}:<id>
-- ARGV  id, order (enum lade_worker_order); 0: looks
-- Answers {0 done, 1 not live, 2 is told to stop}; a look {0, wish, asked, made, about, stacks, ms of the stacks}.
local function op_control(keys, argv)
    begin()
    local STOP, STACKS = '3', '4'
    local order = argv[2]
    if order == '0' then
        local r = call('HMGET', keys[2], 'wish', 'asked', 'made', 'about', 'stacks', 'at')
        return {0, tonumber(r[1] or 0), tonumber(r[2] or 0), tonumber(r[3] or 0), r[4] or '', r[5] or '', tonumber(r[6] or 0)}
    end
    local till = tonumber(match(call('HGET', keys[1], argv[1]) or '', '^%d+') or -1)
    if till < now then
        return {1}
    end
    if order == STACKS then
        call('HINCRBY', keys[2], 'asked', 1)
    elseif order ~= STOP and call('HGET', keys[2], 'wish') == STOP then
        return {2}
    else
        call('HSET', keys[2], 'wish', order)
    end
    call('PEXPIRE', keys[2], 2 * (till - now) + 3600000) -- the renewals lengthen it
    return {0}
end
