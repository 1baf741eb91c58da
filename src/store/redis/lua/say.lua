-- say.lua - what handlers say of leases of one queue; no state changes
--
-- KEYS  meta
-- ARGV  for each lease: id, fence, percent (-1: none), text, lines, then for each line: at, text
-- Answers the indices that are stale. A job that says something leaves its pack.
local SAID_LINES, SAID_MS = 1000, 604800000

local function is_leased(P, id, fence)
    local lease = call('HGET', P .. 'lease', id)
    if lease then
        return match(lease, '^(%d+) ') == fence
    end
    local p, place, state = find_in_pack(P, id)
    local is, w = match(state or '', '^a(%d+) (%w+)$')
    if is ~= fence then
        return false
    end
    local level = level_of(extract(P, p, place, state))
    open_leases(P)
    call('HSET', P .. 'lease', id, fence .. ' ' .. level .. w)
    return true
end

local function op_say(keys, argv)
    begin()
    local P = prefix(keys[1])
    K.let_go_keys()
    local stale, i, index = {}, 1, 0
    want(P .. 'said', 'hash')
    tell_begin(call('HEXISTS', P .. 'meta', 'ev') == 1)
    while i <= #argv do
        local id, n = argv[i], tonumber(argv[i + 4])
        if is_leased(P, id, argv[i + 1]) then
            local percent, at, lines, text = read_said(call('HGET', P .. 'said', id))
            if tonumber(argv[i + 2]) >= 0 then
                percent, at, text = argv[i + 2], format('%.0f', now), argv[i + 3]
            end
            set_fields(P .. 'said', {id, percent .. ' ' .. at .. ' ' .. lines + n .. ' ' .. text}, 1, 2)
            local log = {}
            for k = 1, n do
                log[k] = argv[i + 3 + 2 * k] .. ' ' .. argv[i + 4 + 2 * k]
            end
            if tonumber(argv[i + 2]) >= 0 then
                tell(EVENT.PROGRESS, id, kind_at(P, id), 0, percent, sub(text, 1, 255))
            end
            if n > 0 then
                spread('RPUSH', P .. 'log:' .. id, log, 1, n)
                call('LTRIM', P .. 'log:' .. id, -SAID_LINES, -1)
                call('PEXPIRE', P .. 'log:' .. id, SAID_MS)
            end
            heed_one(P, id)
        else
            stale[#stale + 1] = index
        end
        i, index = i + 5 + 2 * n, index + 1
    end
    K.key_flush()
    flush(P)
    tell_end(P)
    return stale
end
