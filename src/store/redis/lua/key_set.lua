-- key_set.lua - a limit of a queue, of its keys or of one, or a pause of one; makes the queue
--
-- KEYS  <ns>:queues, meta
-- ARGV  what (queue, keys, key, pause, resume), key, limit as text, "" = none
local function loosen(P)
    call('ZUNIONSTORE', P .. 'kring', 3, P .. 'kring', P .. 'ktime', P .. 'kpark', 'WEIGHTS', 1, 0, 0)
    call('DEL', P .. 'ktime', P .. 'kpark')
    gate.epoch, gate.held = gate.epoch + 1, 0
end

local function set_text(P, field, text)
    if text == '' then
        call('HDEL', P .. 'meta', field)
    else
        call('HSET', P .. 'meta', field, text)
    end
    gate.dirty, gate.rings = true, SLICE
end

local function op_key_set(keys, argv)
    begin()
    local P, what, key, text = prefix(keys[2]), argv[1], argv[2], argv[3]
    if call('LLEN', P .. 'in') > 1 then
        drain(P, call('HGET', P .. 'meta', 'levels'))
    end
    local meta = call('HMGET', P .. 'meta', 'v', 'gate', 'xk')
    check_format(meta[1])
    if what ~= 'queue' and tonumber(meta[3] or 0) > 0 then
        return 1 -- company: apart.lua first
    end
    call('SADD', keys[1], match(P, '{([^}]*)}:$'))
    if not meta[1] then
        make_queue(P)
    end
    K.key_open(P, meta[2])
    if what == 'queue' then
        set_text(P, 'lim', text)
    elseif what == 'keys' then
        gate.usual, gate.joined = K.read_limit(text), nil
        loosen(P)
        set_text(P, 'klim', text)
    else
        local k = K.key_touch(K.key_at(key))
        if what == 'key' then
            k.own = text ~= '' and text or nil
            gate.rings = SLICE
        else
            k.paused = what == 'pause' and 1 or 0
            k.till = what == 'pause' and k.till or 0
        end
    end
    K.key_flush()
    return 0
end
