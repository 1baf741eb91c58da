-- results.lua - the results of jobs of one queue
--
-- KEYS  meta
-- ARGV  ids
-- Answers for each {} or {state, result}.
local function op_results(keys, argv)
    begin()
    local P, out = prefix(keys[1]), {}
    local there = call('HEXISTS', P .. 'meta', 'v') == 1
    for i = 1, #argv do
        local state, fin = state_of(P, argv[i])
        local result = ''
        if state == 'c' and fin then
            result = sub(fin, find(fin, ' ', 5, true) + 1)
            if result == '' then
                result = result_apart(P, argv[i], match(fin, '^... (%d+) '))
            end
        elseif state == 'c' then
            local p, place = find_in_pack(P, argv[i])
            result = packed_result(P, p, place)
        end
        if not state and there then
            result = result_apart(P, argv[i])
            state = result ~= '' and 'c' or nil
        end
        out[i] = state and {state, result} or {}
    end
    return out
end
