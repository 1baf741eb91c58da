-- schedule_fire.lua - puts the jobs of a schedule and moves it on, in one step; put.lua is joined before it
--
-- KEYS  P meta (schedule.lua), <ns>:queues, meta of the jobs' queue
-- ARGV  token, repeated (0|1), id, revision read, fence or 0, id of the last job or "" for not to ask, its meta key,
--       fired: memo, state, due; held: memo, state, due; number of jobs; then what put takes
-- In slots (head.lua) all keys are of schedules: the client has looked whether the last job is busy, and gives its id when it is, and the queue
-- of the jobs instead of a key; these go as a message (out.lua).
-- Answers {0, busy (0|1), index, holder, ...} with the duplicates, {1} when it is stale.
local function move_on(P, id, memo, state, due, token, answer)
    local rev = call('HINCRBY', P .. 'meta', 'rev', 1)
    call('HSET', P .. 'r:' .. id, 'memo', memo, 'state', state, 'due', due, 'rev', rev, 'tok', token, 'ans',
         cmsgpack.pack(answer))
    if state == '0' then
        call('ZADD', P .. 'due', due, id)
    else
        call('ZREM', P .. 'due', id)
    end
    return answer
end

local function is_busy(id, meta)
    if id == '' then
        return false
    end
    local Q = prefix(meta)
    return call('HEXISTS', Q .. 'jobs', id) == 1 and call('HEXISTS', Q .. 'fin', id) == 0
end

local function op_schedule_fire(keys, argv)
    begin()
    local P, id = prefix(keys[1]), argv[3]
    local m = call('HMGET', keys[1], 'fence')
    local r = call('HMGET', P .. 'r:' .. id, 'rev', 'tok', 'ans')
    if argv[2] == '1' and r[2] == argv[1] and r[3] ~= '' then
        return cmsgpack.unpack(r[3])
    end
    if not r[1] or r[1] ~= argv[4] or (argv[5] ~= '0' and tonumber(argv[5]) < tonumber(m[1] or 0)) then
        return {1}
    end
    call('ZCARD', P .. 'due')
    if ops.slots and argv[6] ~= '' or not ops.slots and is_busy(argv[6], argv[7]) then
        return move_on(P, id, argv[11], argv[12], argv[13], argv[1], {0, 1})
    end
    local answer = {0, 0}
    if ops.slots and tonumber(argv[14]) > 0 then
        ops.out(P, argv[7], {'fire', id, {unpack(argv, 14)}})
    elseif tonumber(argv[14]) > 0 then
        local duplicates = op_put({keys[2], keys[3]}, {unpack(argv, 15)}, true)
        local refused = {}
        for i = 1, #duplicates, 3 do
            refused[duplicates[i + 1]] = true
            answer[#answer + 1] = duplicates[i + 1]
            answer[#answer + 1] = duplicates[i + 2]
        end
        tell_fired(prefix(keys[3]), id, argv, 14, refused)
    end
    return move_on(P, id, argv[8], argv[9], argv[10], argv[1], answer)
end
