-- schedule_look.lua - schedules as they are: one, a page of them by id, who leads, what is wrong
--
-- KEYS  P meta (schedule.lua)
-- ARGV  'get', id | 'list', id to begin behind, most | 'leader' | 'check'
-- Answers get, list: id, spec, memo, state, due, rev of each. leader: {now, holder, name, fence, until, seen}. check: texts.
local function add_record(P, id, out)
    local r = call('HMGET', P .. 'r:' .. id, 'spec', 'memo', 'state', 'due', 'rev')
    if r[5] then
        local k = #out
        out[k + 1], out[k + 2], out[k + 3], out[k + 4], out[k + 5], out[k + 6] = id, r[1], r[2], r[3], r[4], r[5]
    end
    return r
end

local function check_schedules(P)
    local ids, out = call('ZRANGE', P .. 'ids', 0, -1), {}
    local last = tonumber(call('HGET', P .. 'meta', 'rev') or 0)
    for i = 1, #ids do
        local r = add_record(P, ids[i], {})
        local due = call('ZSCORE', P .. 'due', ids[i])
        if not r[5] then
            out[#out + 1] = 'schedule is listed, but has no record: ' .. ids[i]
        elseif (r[3] == '0') ~= (due and true or false) or (due and tonumber(due) ~= tonumber(r[4])) or tonumber(r[5]) > last then
            out[#out + 1] = "a schedule's state, due time and revision do not agree: " .. ids[i]
        end
    end
    if call('ZCARD', P .. 'due') > #ids then
        out[#out + 1] = 'more schedules are due than there are'
    end
    return out
end

local function op_schedule_look(keys, argv)
    begin()
    local P, out = prefix(keys[1]), {}
    if argv[1] == 'get' then
        add_record(P, argv[2], out)
    elseif argv[1] == 'list' then
        local ids = call('ZRANGEBYLEX', P .. 'ids', argv[2] == '' and '-' or '(' .. argv[2], '+', 'LIMIT', 0, argv[3])
        for i = 1, #ids do
            add_record(P, ids[i], out)
        end
    elseif argv[1] == 'leader' then
        local m = call('HMGET', keys[1], 'holder', 'name', 'fence', 'until', 'seen')
        return {now, m[1] or '', m[2] or '', m[3] or '0', m[4] or '0', m[5] or '0'}
    else
        return check_schedules(P)
    end
    return out
end
