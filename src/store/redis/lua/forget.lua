-- forget.lua - a queue without jobs -> gone; its live workers stay registered
--
-- KEYS  <ns>:queues, meta
-- Answers 0 done, 1 not found, 2 jobs are there.
-- Of packs nothing is left but flows that have ended and their jobs are gone: these are spelled out, so that they stay known.
local function leave_flows(P)
    local all = call('HGETALL', P .. 'pack')
    for i = 1, #all, 2 do
        if all[i] ~= '' and (byte(all[i], -1) ~= 126 or find(all[i + 1], ' [arcw]')) then
            return false
        end
    end
    for i = 1, #all, 2 do
        if all[i] ~= '' then
            FOLD.unfold(P, pack_at(P, all[i]))
        end
    end
    flush(P)
    return true
end

local function op_forget(keys, argv)
    begin()
    local P = prefix(keys[2])
    local meta = call('HMGET', P .. 'meta', 'v')
    if not meta[1] then
        return 1
    end
    check_format(meta[1])
    if ops.slots and call('EXISTS', P .. 'outs') == 1 or call('HLEN', P .. 'jobs') > 0 or call('LLEN', P .. 'in') > 1 or
       call('HLEN', P .. 'pack') > 1 and not leave_flows(P) then -- one is none: make_queue
        return 2
    end
    heed_all(P)
    call('DEL', P .. 'waits')
    for _, key in ipairs(call('ZRANGE', P .. 'ttl', 0, -1)) do
        call('DEL', P .. 'u:' .. key)
    end
    for _, name in ipairs({'meta', 'in', 'pack', 'ghost', 'completed', 'fin', 'hist', 'uk', 'mark', 'jobs', 'lease', 'since', 'ttl', 'said', 'ev', 'key', 'keys', 'knames', 'kring', 'ktime', 'kpark',
                            'kaway', 'co', 'dn', 'dl', 'di', 'uf'}) do
        call('DEL', P .. name)
    end
    for level = 0, 8 do
        call('DEL', P .. 'ready:' .. level, P .. 'ready:' .. sub('ABCDEFGHI', level + 1, level + 1))
    end
    if call('ZCOUNT', P .. 'workers', now, '+inf') == 0 then
        call('DEL', P .. 'workers', P .. 'held', P .. 'idle', P .. 'crew')
    end
    if ops.slots then -- who still ships what it had seen ships it in vain
        call('DEL', P .. 'far')
        call('PEXPIRE', P .. 'seen', 180000)
        call('PEXPIRE', P .. 'outn', 180000)
    end
    call('SREM', keys[1], match(P, '{([^}]*)}:$'))
    return 0
end
