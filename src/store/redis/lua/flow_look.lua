-- flow_look.lua - flows as they are stored
--
-- KEYS  <ns>:queues
-- ARGV  "get", id                                      answers {name, state, n, steps, sib, at, till, states, s..., deps...} or nil
--       "list", below (a score, or "+inf"), most       answers {id, score, {name, state, n, steps, sib, at, till}, ...}
--       "inputs", id, node, first, most, bytes         answers {total, node, state, result, ...} or nil
local HEAD = {'name', 'state', 'n', 'steps', 'sib', 'at', 'till'}

-- A folded flow, its pack and the prefix of its queue; nil when it is none.
local function look_folded(id)
    local text = call('GET', flow_ns .. 'flow:' .. id .. ':p')
    if not text then
        ops.drain_flows(flow_ns)
        text = call('GET', flow_ns .. 'flow:' .. id .. ':p')
    end
    local P = text and FOLD.lane_of(flow_ns, match(text, '^%d+ %d %d+ (%S+) '))
    packs = {}
    local p = P and pack_at(P, id .. '~')
    if p and p.head then
        return FOLD.spell(P, p, text), p, P
    end
end

local function head_of(f)
    return {f.name, f.state, f.n, f.n, f.sib, f.at, f.till}
end

local function get_folded(id)
    local f, p, P = look_folded(id)
    if not f then
        return
    end
    local out, bodies = head_of(f), FOLD.bodies(P, p)
    for k = 2, 7 do
        out[k] = tostring(out[k])
    end
    out[8] = f.st
    for i = 0, f.n - 1 do
        out[9 + i], out[9 + f.n + i] = FOLD.spell_step(p, f, i, bodies[i] or '')
    end
    return out
end

local function get(id)
    local F = flow_ns .. 'flow:' .. id
    local st = call('GET', F .. ':s')
    if not st then
        return get_folded(id)
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
    ops.drain_flows(flow_ns)
    local found = call('ZRANGE', flow_ns .. 'flows', '(' .. below, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, most, 'WITHSCORES')
    local out = {}
    for i = 1, #found, 2 do
        local f = call('EXISTS', flow_ns .. 'flow:' .. found[i] .. ':s') == 0 and look_folded(found[i])
        local head = f and head_of(f) or call('HMGET', flow_ns .. 'flow:' .. found[i], unpack(HEAD))
        for k = 1, f and #head or 0 do
            head[k] = tostring(head[k])
        end
        out[#out + 1] = found[i]
        out[#out + 1] = format('%.0f', tonumber(found[i + 1]))
        out[#out + 1] = head
    end
    return out
end

-- Of a folded flow: no step of it is down, so only its deps are inputs.
local function folded_inputs(id, node, first, most, bytes)
    local f, p, P = look_folded(id)
    if not f or node >= f.n then
        return
    end
    local _, deps = FOLD.spell_step(p, f, node, '')
    local results, all, of = FOLD.results(P, p.name), {}, {}
    for i = 1, #results, 2 do
        of[results[i]] = results[i + 1]
    end
    for i in gmatch(deps, '%d+') do
        all[#all + 1] = tonumber(i)
    end
    local out, used = {#all}, 0
    for k = first + 1, min(first + most, #all) do
        local result = of[all[k]] or ''
        used = used + #result
        if used > bytes and k > first + 1 then
            break
        end
        out[#out + 1] = all[k]
        out[#out + 1] = tonumber(sub(f.st, all[k] + 1, all[k] + 1))
        out[#out + 1] = result
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
    if not st then
        return folded_inputs(id, node, first, most, bytes)
    elseif node >= #st then
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
