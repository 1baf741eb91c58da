-- words.lua - what the handler of a job said
--
-- KEYS  meta
-- ARGV  id, start, limit as of lade_job_get_notes
-- Answers {} when the job is not there, else {percent, at, lines, text, number of the line before the first, line, ...}.
local function op_words(keys, argv)
    begin()
    local P, id, start, limit = prefix(keys[1]), argv[1], tonumber(argv[2]), tonumber(argv[3])
    if not state_of(P, id) then
        return {}
    end
    local percent, at, lines, text = read_said(call('HGET', P .. 'said', id))
    local out = {percent, at, lines, text, 0}
    local kept = lines > 0 and call('LLEN', P .. 'log:' .. id) or 0
    local skip = start >= 0 and min(start, kept) or max(0, kept + start)
    out[5] = lines - kept + skip
    if limit > 0 and skip < kept then
        local page = call('LRANGE', P .. 'log:' .. id, skip, skip + limit - 1)
        for i = 1, #page do
            out[5 + i] = page[i]
        end
    end
    return out
end
