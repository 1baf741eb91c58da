-- far.lua - applies messages of another slot, each once (out.lua)
--
-- KEYS  queues of this queue's own, meta
-- ARGV  the sender's queue, completed kept, dead kept, then messages with their numbers, oldest first
-- Answers {number of the last, whether there is something to ship from here (0|1)}, and behind them of the last fire of schedules index,
-- holder, ... of its duplicates.
local P, sender -- of the call at hand

local act = {}

-- To the queue of a step, from the flow's home.
function act.put(id, level, due, body)
    call('HSET', P .. 'far', match(id, '^[^~]+'), sender)
    if not FOLD.is_there(P, id) then
        gather(P, match(P, '{([^}]*)}:$'), id, level, due > now and due, body)
    end
end

function act.again(id, level, due, body)
    put_gathered()
    if not FOLD.again(P, id) then
        act.put(id, level, due, body)
    end
end

function act.stop(id)
    FOLD.stop(P, id)
end

function act.clear(id)
    put_gathered()
    FOLD.clear(P, id)
end

function act.forget(flow)
    call('HDEL', P .. 'far', flow)
end

-- To the home, of a step's job.
act.ended = flow_ended
act.revived = flow_revived

-- From schedules: a put. What put.lua says of the last of them.
local function put_fired(keys, argv)
    local last, answer = tonumber(call('HGET', P .. 'seen', sender) or 0), {}
    for i = 4, #argv do
        local number, text = match(argv[i], '^(%d+) (.*)$')
        if tonumber(number) > last then
            local m, refused = cmsgpack.unpack(text), {}
            local duplicates = ops.put(keys, {unpack(m[3], 2)}, true)
            answer = {}
            for k = 1, #duplicates, 3 do
                refused[duplicates[k + 1]] = true
                answer[#answer + 1], answer[#answer + 2] = duplicates[k + 1], duplicates[k + 2]
            end
            tell_fired(P, m[2], m[3], 1, refused)
            last = tonumber(number)
        end
    end
    call('HSET', P .. 'seen', sender, format('%.0f', last))
    call('PERSIST', P .. 'seen')
    return {format('%.0f', last), 0, unpack(answer)}
end

local function op_far(keys, argv)
    begin()
    P, sender = prefix(keys[2]), argv[1]
    if sender == '~schedules' then
        return put_fired(keys, argv)
    end
    local meta = call('HMGET', P .. 'meta', 'v', 'levels', 'gate', 'ev')
    check_format(meta[1])
    if meta[1] then
        drain(P, meta[2])
    end
    K.key_begin(P, meta[3])
    tell_begin(meta[4])
    flow_begin(P)
    local seen = tonumber(call('HGET', P .. 'seen', sender) or 0)
    local last = seen
    for i = 4, #argv do
        local number, text = match(argv[i], '^(%d+) (.*)$')
        number = tonumber(number)
        if number > last then
            local m = cmsgpack.unpack(text)
            act[m[1]](unpack(m, 2))
            last = number
        end
    end
    flow_flush()
    flow_retain(tonumber(argv[2]), tonumber(argv[3]))
    K.key_flush()
    flush(P)
    tell_end(P)
    if last > seen then
        call('HSET', P .. 'seen', sender, format('%.0f', last))
        call('PERSIST', P .. 'seen') -- forget.lua
    end
    return {format('%.0f', last), call('EXISTS', P .. 'outs')}
end
