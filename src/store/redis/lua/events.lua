-- events.lua - reads the stream of a queue's events
--
-- KEYS  meta
-- ARGV  after (0: before the oldest, "now": the last), most, 0 for the numbers only
-- Answers {0 read, 1 no such queue, 2 off, 3 missed, 4 nothing, first, last, cap, then for each entry: last, n, ms, records}.
local READ_BYTES = 1048576

local function number_and_count(id)
    local last, n = match(id, '^(%d+)%-(%d+)$')
    return tonumber(last), tonumber(n)
end

local function op_events(keys, argv)
    begin()
    local P, most = prefix(keys[1]), tonumber(argv[2])
    local meta = call('HMGET', P .. 'meta', 'v', 'ev', 'evn')
    check_format(meta[1])
    if not meta[2] then
        return {meta[1] and 2 or 1, 0, 0, 0}
    end
    local last, oldest = tonumber(meta[3]), redis.pcall('XRANGE', P .. 'ev', '-', '+', 'COUNT', 1)
    if oldest.err or not oldest[1] then -- gone, or another's: there is nothing to read
        return {4, last + 1, last, tonumber(meta[2])}
    end
    local first, n = number_and_count(oldest[1][1])
    first = first - n + 1
    local out = {0, first, last, tonumber(meta[2])}
    local after = argv[1] == 'now' and last or argv[1] == '0' and first - 1 or tonumber(argv[1])
    if after < first - 1 or after > last then
        out[1] = 3
    elseif after == last then
        out[1] = 4
    end
    local at, got, bytes = format('%.0f', after + 1) .. '-0', 0, 0
    while out[1] == 0 and got < most and bytes < READ_BYTES do
        local page = call('XRANGE', P .. 'ev', at, '+', 'COUNT', 10)
        for i = 1, #page do
            local till, k = number_and_count(page[i][1])
            local m = #out
            out[m + 1], out[m + 2], out[m + 3], out[m + 4] = till, k, page[i][2][4], page[i][2][2]
            got, bytes = got + k, bytes + #page[i][2][2]
            at = '(' .. page[i][1]
        end
        if #page < 10 then
            break
        end
    end
    return out
end
