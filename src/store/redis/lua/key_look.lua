-- key_look.lua - limits and keys of one queue
--
-- KEYS  meta
-- ARGV  what (limit, list, get), scope (0 queue, 1 keys, 2 key) or most, key or the one to go on behind
-- Answers {} for a queue that is not there. limit: {text}. list, get: {now, default of the keys, end reached (0|1), then for each key
-- {key, ready, active, waiting, paused, why held, until ms or 0, own limit or "", id of its first ready job or "", since or 0}}
local out -- of the call at hand

local function is_shown(k)
    return k.ready + k.active + k.waiting > 0 or k.paused == 1 or k.till > now * 1000 or k.own
end

local function show(P, k)
    local _, at, why = K.key_room(k, K.limit_of(k))
    local first = call('ZRANGE', P .. 'kz:' .. k.key, 0, 0)[1] or ''
    local since = first ~= '' and call('HGET', P .. 'since', first) or 0
    out[#out + 1] = {k.key, k.ready, k.active, k.waiting, k.paused, why, at < K.NEVER and floor((at + 999) / 1000) or 0, k.own or '', first,
                     tonumber(since or 0)}
end

local function list(P, most, after)
    local from, n = after == '' and '-' or '(' .. after, 0
    repeat
        local names = call('ZRANGEBYLEX', P .. 'knames', from, '+', 'LIMIT', 0, SLICE)
        K.key_fetch(names)
        for i = 1, #names do
            local k = K.key_at(names[i])
            if is_shown(k) then
                if n == most then
                    return
                end
                show(P, k)
                n = n + 1
            end
        end
        from = '(' .. (names[#names] or '')
    until #names < SLICE
    out[3] = 1
end

local function op_key_look(keys, argv)
    begin()
    local P, what = prefix(keys[1]), argv[1]
    if what ~= 'limit' and call('LLEN', P .. 'in') > 1 then
        drain(P, call('HGET', P .. 'meta', 'levels'))
    end
    local meta = call('HMGET', P .. 'meta', 'v', 'gate', 'lim', 'klim', 'xk')
    if not meta[1] then
        return {}
    end
    check_format(meta[1])
    K.key_begin(P, meta[2])
    if what == 'limit' then
        local of_key = gate and argv[2] == '2' and K.key_at(argv[3]).own
        return {argv[2] == '0' and (meta[3] or '') or argv[2] == '1' and (meta[4] or '') or of_key or ''}
    end
    if tonumber(meta[5] or 0) > 0 then
        return {-1} -- company: apart.lua first
    end
    out = {now, meta[4] or '', 0}
    if not gate then
        out[3] = 1
    elseif what == 'list' then
        list(P, tonumber(argv[2]), argv[3])
    else
        local k = K.key_at(argv[3])
        if k.there and is_shown(k) then
            show(P, k)
        end
    end
    local answer = out
    out = nil -- the library stays
    K.let_go_keys()
    return answer
end
