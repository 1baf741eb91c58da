-- classes.lua - the classes of deaths of one queue
--
-- KEYS  meta
-- ARGV  none
-- Answers for each class: name, how many, first ms, last ms, kind, text, id of the last. What died before there were classes
-- is added to `other`.
local function op_classes(keys)
    begin()
    local P = prefix(keys[1])
    check_format(call('HGET', P .. 'meta', 'v'))
    local counts = call('HGETALL', P .. 'dn')
    local old, out, at_other = call('ZCARD', P .. 'dead'), {}, nil
    for i = 1, #counts, 2 do
        local class, n = counts[i], tonumber(counts[i + 1])
        local first, kind, text = match(call('HGET', P .. 'di', class) or '', '^(%d+) (%Z*)%z(.*)$')
        local last = call('ZRANGE', P .. 'dz:' .. class, -1, -1)[1]
        at_other = class == K.OTHER and #out + 2 or at_other
        for _, v in ipairs({class, n, tonumber(first or 0), tonumber(call('HGET', P .. 'dl', class) or 0),
                            kind or '', text or '', last or ''}) do
            out[#out + 1] = v
        end
        old = old - n
    end
    if old > 0 and at_other then
        out[at_other] = out[at_other] + old
    elseif old > 0 then
        local oldest = call('ZRANGE', P .. 'dead', 0, 0, 'WITHSCORES')
        local ms = tonumber(oldest[2])
        for _, v in ipairs({K.OTHER, old, ms, ms, '', '', oldest[1]}) do
            out[#out + 1] = v
        end
    end
    return out
end
