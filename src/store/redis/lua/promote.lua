-- promote.lua - scheduled | retrying -> ready for due jobs of the lanes, paused or not
--
-- KEYS  one meta for each lane
-- ARGV  most
-- Answers {promoted, next due or 0}.
local function op_promote(keys, argv)
    begin()
    local most, n, next_due = tonumber(argv[1]), 0, nil
    for lane = 1, #keys do
        local P = prefix(keys[lane])
        local due = first_due(P)
        if due and due <= now and n < most then
            local meta = call('HMGET', P .. 'meta', 'v', 'paused', 'gate', 'ev', 'levels')
            check_format(meta[1])
            K.begin_behind(P, meta[3], select(3, drain(P, meta[5])))
            tell_begin(meta[4])
            local done = promote(P, most - n)
            K.key_flush()
            tell_end(P)
            n = n + done
            if not meta[2] then
                ring(P, done)
            end
            due = first_due(P)
        end
        if due then
            next_due = min(next_due or due, due)
        end
    end
    return {n, next_due or 0}
end
