-- flow_look.lua - flows as they are stored
--
-- KEYS  <ns>:queues
-- ARGV  "get", id                                      answers {name, state, n, steps, sib, at, till, states, s..., deps...} or nil
--       "list", below (a score, or "+inf"), most       answers {id, score, {name, state, n, steps, sib, at, till}, ...}
--       "inputs", id, node, first, most, bytes         answers {total, node, state, result, ...} or nil
local HEAD = {'name', 'state', 'n', 'steps', 'sib', 'at', 'till'}

local function get(id)
    local F = flow_ns .. 'flow:' .. id
    local st = call('GET', F .. ':s')
    if not st then
        return
    end
    local out = call('HMGET', F, unpack(HEAD))
    local fields = {}
    out[8] = st
    for i = 0, #st - 1 do
        fields[i + 1] = 's' .. i
        fields[#st + i + 1] = 'd' .. i
    end
    local all = fetch('HMGET', F, fields, 1, #fields)
    for i = 1, #all do
        out[8 + i] = all[i] or ''
    end
    return out
end

local function list(below, most)
    local found = call('ZRANGE', flow_ns .. 'flows', '(' .. below, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, most, 'WITHSCORES')
    local out = {}
    for i = 1, #found, 2 do
        out[#out + 1] = found[i]
        out[#out + 1] = format('%.0f', tonumber(found[i + 1]))
        out[#out + 1] = call('HMGET', flow_ns .. 'flow:' .. found[i], unpack(HEAD))
    end
    return out
end

-- The nodes before one; before on_failure: those that are down.
local function before(F, st, node, steps)
    local nodes = {}
    if node < steps then
        for i in gmatch(call('HGET', F, 'd' .. node) or '', '%d+') do
            nodes[#nodes + 1] = tonumber(i)
        end
        return nodes
    end
    for i = 0, steps - 1 do
        local state = sub(st, i + 1, i + 1)
        if state == '3' or state == '4' then
            nodes[#nodes + 1] = i
        end
    end
    return nodes
end

local function inputs(id, node, first, most, bytes)
    local F = flow_ns .. 'flow:' .. id
    local st = call('GET', F .. ':s')
    if not st or node >= #st then
        return
    end
    local nodes = before(F, st, node, tonumber(call('HGET', F, 'steps')))
    local out, used = {#nodes}, 0
    for k = first + 1, min(first + most, #nodes) do
        local field = 'r' .. nodes[k]
        used = used + call('HSTRLEN', F, field)
        if used > bytes and k > first + 1 then
            break
        end
        out[#out + 1] = nodes[k]
        out[#out + 1] = tonumber(sub(st, nodes[k] + 1, nodes[k] + 1))
        out[#out + 1] = call('HGET', F, field) or ''
    end
    return out
end

local function op_flow_look(keys, argv)
    begin()
    flow_ns = sub(keys[1], 1, -7)
    if argv[1] == 'get' then
        return get(argv[2])
    elseif argv[1] == 'list' then
        return list(argv[2], argv[3])
    end
    return inputs(argv[2], tonumber(argv[3]), tonumber(argv[4]), tonumber(argv[5]), tonumber(argv[6]))
end
