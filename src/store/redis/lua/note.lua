-- note.lua - histories of leases of one queue; no state changes
--
-- KEYS  meta
-- ARGV  for each lease: id, fence, history
-- Answers the indices that are stale.
local function op_note(keys, argv)
    begin()
    local P = prefix(keys[1])
    K.let_go_keys()
    local stale, leases, hist = {}, {}, {}
    want(P .. 'hist', 'hash')
    for i = 1, #argv, 3 do
        local id, fence = argv[i], argv[i + 1]
        local lease = call('HGET', P .. 'lease', id)
        local is = match(lease or '', '^(%d+) ')
        if not lease then
            local p, place, state = find_in_pack(P, id)
            local w
            is, w = match(state or '', '^a(%d+) (%w+)$')
            if is == fence then -- with a history it has a record of its own
                local level = level_of(extract(P, p, place, state))
                leases[#leases + 1] = id
                leases[#leases + 1] = fence .. ' ' .. level .. w
            end
        end
        if is == fence then
            hist[#hist + 1] = id
            hist[#hist + 1] = argv[i + 2]
        else
            stale[#stale + 1] = (i - 1) / 3
        end
    end
    if #leases > 0 then
        open_leases(P)
        spread('HSET', P .. 'lease', leases, 1, #leases)
    end
    set_fields(P .. 'hist', hist, 1, #hist)
    K.key_flush()
    flush(P)
    return stale
end
