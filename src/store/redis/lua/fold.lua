-- fold.lua - joined behind event.lua: flows that are kept as a pack
--
-- A flow whose steps are a chain, or a group with its callback, all plain, of one queue, level and policy, is folded as long as its
-- steps are put, taken and completed and nothing else happens. Its steps are a pack (pack.lua) of the name "<flow>~", in the queue
-- that all are of; the states of that have a head in front:
--
--     C | G        a chain; a group, whose last step is the callback
--     digit        policy
--     digit        level
--     + | -        whether an entry of it, "<flow>~0+<all>", stands in the list of the completed; it is made by the first that completes
--     :
--
-- w: waits for the steps before it. g: completed, and removed by retention. Of a chain "from n c<ms>,<later>,..." are n steps that
-- completed one after the other: the first then, each other so many ms later than that. <ns>:flow:<id>:p is "<steps> <cancel siblings> <at ms>
-- <queue> <name>". In the pack all steps before the last stretch have passed when the next one may begin, in both shapes.
--
-- Whatever else happens to a step, or to the flow, unfolds it first: then it is as flow.lua has it, and the jobs that there are lie in a
-- plain pack. A flow that is removed leaves such a pack too.
do
local STATE = {w = '0', r = '1', a = '1', c = '2', g = '2'} -- enum lade_flow_step_state

-- What the keys of flows begin with: <ns>: of a queue's prefix; in slots (head.lua) the prefix of the queue that is their home.
function FOLD.namespace_of(P)
    return ops.slots and P or match(P, '^(.*:){[^{}]*}:$')
end

-- The prefix of a queue, of that.
function FOLD.lane_of(ns, queue)
    return (ops.slots and match(ns, '^(.*:){[^{}]*}:$') or ns) .. '{' .. queue .. '}:'
end

-- In slots: a step of that queue lies elsewhere than the flow, and is reached by messages (out.lua).
function FOLD.is_far(ns, queue)
    return ops.slots and ns ~= FOLD.lane_of(ns, queue)
end

function FOLD.note_listed(p, on)
    p.head, p.changed = sub(p.head, 1, 3) .. (on and '+' or '-'), true
end

function FOLD.is_listed(p)
    return byte(p.head, 4) == PLUS
end

function FOLD.level_of(p)
    return sub(p.head, 3, 3)
end

function FOLD.size(v)
    return v[#v - 2] + v[#v - 1]
end

-- True when all steps of these stretches have passed, up to the last but `but` of them.
local function has_passed(v, but)
    for k = 3, #v - 3 * but, 3 do
        local kind = byte(v[k])
        if kind ~= DONE_BYTE and kind ~= GONE_BYTE then
            return false
        end
    end
    return true
end

-- The step that may begin now, or nil; it waits still. And whether the flow is over.
function FOLD.next_of(p)
    local v = p.v
    if byte(v[#v]) == WAITS_BYTE then
        return has_passed(v, 1) and v[#v - 2] or nil, false
    end
    return nil, has_passed(v, 0)
end

-- The flow as flow.lua has it; text: of <ns>:flow:<id>:p.
function FOLD.spell(P, p, text)
    local n, sib, at, queue, name = match(text, '^(%d+) (%d) (%d+) (%S+) (.*)$')
    local f, parts, flow = {n = tonumber(n), sib = sib, at = at, queue = queue, name = name, till = 0}, {}, sub(p.name, 1, -2)
    for k = 1, #p.v, 3 do
        parts[#parts + 1] = rep(STATE[sub(p.v[k + 2], 1, 1)], p.v[k + 1])
    end
    f.st = concat(parts)
    f.open = sub(f.st, -1) == '2' and 0 or 1
    f.state = 1 - f.open
    if f.open == 0 then
        f.till = call('ZSCORE', FOLD.namespace_of(P) .. 'flows:1', flow) or 0
    end
    return f
end

-- s<i> and d<i> of flow.lua, and how many steps i runs after that have not passed; body: its envelope.
function FOLD.spell_step(p, f, i, body)
    local last, next, deps, missing = f.n - 1, '', '', 0
    if byte(p.head) == 67 then
        next = i < last and tostring(i + 1) or ''
        deps = i > 0 and tostring(i - 1) or ''
        missing = i > 0 and sub(f.st, i, i) ~= '2' and 1 or 0
    elseif i < last then
        next = last .. (last > 1 and '+' or '')
    else
        local all = {}
        for k = 0, last - 1 do
            all[k + 1] = k
            missing = missing + (sub(f.st, k + 1, k + 1) ~= '2' and 1 or 0)
        end
        deps = concat(all, ',')
    end
    local kind = kind_of(body)
    local s = FOLD.level_of(p) .. '0' .. sub(p.head, 2, 2) .. ' 0 ' .. f.queue .. ' ' .. (kind ~= '' and kind or '?')
    return next == '' and s or s .. ' ' .. next, deps, missing
end

-- All envelopes, from 0 on.
function FOLD.bodies(P, p)
    local all, out, from = call('GET', bodies_key(P, p.name)) or '', {}, 0
    local n = #all >= 8 and struct.unpack('<I2', all, 3) or 0
    for i = 0, n - 1 do
        local to = struct.unpack('<I4', all, 9 + 4 * i)
        out[i] = sub(all, 9 + 4 * n + from, 7 + 4 * n + to)
        from = to
    end
    return out
end

-- The results there are: {step, result, step, result, ...}.
function FOLD.results(P, name)
    local text, out, at = call('GET', P .. 'r:' .. name) or '', {}, 1
    while at + 5 < #text do
        local step, n = struct.unpack('<I2I4', text, at)
        out[#out + 1], out[#out + 2] = step, sub(text, at + 6, at + 5 + n)
        at = at + 6 + n
    end
    return out
end

-- Whether there is a flow of this id, folded or not. In inboxes are those of ids made by chance alone (op_flow_put.c).
function FOLD.is_known(ns, id)
    if #id == 26 then
        ops.drain_flows(ns)
    end
    local F = ns .. 'flow:' .. id
    return call('EXISTS', F, F .. ':p') > 0
end

-- Its jobs lie in a pack like any other from now on.
function FOLD.make_plain(p)
    local out, k = {}, 0
    for j = 1, #p.v, 3 do
        local kind = byte(p.v[j + 2])
        local state = kind == WAITS_BYTE and 'g' or kind == READY_BYTE and 'r' or p.v[j + 2]
        k = add_stretch(out, k, p.v[j], p.v[j] + p.v[j + 1], state)
    end
    p.v, p.head, p.changed = out, nil, true
end

-- The pack is of the queue at work, and written by flush.
function FOLD.unfold(P, p)
    local F = FOLD.namespace_of(P) .. 'flow:' .. sub(p.name, 1, -2)
    local text = call('GET', F .. ':p')
    if text then
        local f, bodies = FOLD.spell(P, p, text), FOLD.bodies(P, p)
        local kv, k = {'name', f.name, 'state', f.state, 'n', f.n, 'steps', f.n, 'open', f.open, 'failed', 0, 'sib', f.sib, 'at', f.at,
                       'till', f.till}, 18
        for i = 0, f.n - 1 do
            local body = bodies[i] or ''
            local s, deps, missing = FOLD.spell_step(p, f, i, body)
            kv[k + 1], kv[k + 2], kv[k + 3], kv[k + 4] = 's' .. i, s, 'b' .. i, body
            k = k + 4
            if deps ~= '' then
                kv[k + 1], kv[k + 2] = 'd' .. i, deps
                k = k + 2
            end
            if find(deps, ',', 1, true) then
                kv[k + 1], kv[k + 2] = 'w' .. i, missing
                k = k + 2
            end
        end
        local results = FOLD.results(P, p.name)
        for i = 1, #results, 2 do
            kv[k + 1], kv[k + 2] = 'r' .. results[i], results[i + 1]
            k = k + 2
        end
        spread('HSET', F, kv, 1, k)
        call('SET', F .. ':s', f.st)
        call('DEL', F .. ':p')
    end
    FOLD.make_plain(p)
end

-- [from, to) of a folded flow have completed, and count as that. What may begin is noted, and that the flow is over: tell_flows of
-- flow.lua writes it. Returns the entry for the list of the completed, or nil.
function FOLD.complete(P, p, from, to, keeps)
    local entry
    set_state(p, from, to, keeps and 'c' .. now or 'g')
    if keeps and FOLD.is_listed(p) then
        extra.c = extra.c + to - from
    elseif keeps then
        FOLD.note_listed(p, true)
        entry = entry_of(p.name, 0, FOLD.size(p.v))
        extra.c = extra.c + to - from - 1
    end
    local next, over = FOLD.next_of(p)
    if next then
        set_state(p, next, next + 1, format('r%.0f', now))
        FOLD.readied[#FOLD.readied + 1] = {level = FOLD.level_of(p), p = p, step = next}
        if telling then
            tell_run(EVENT.WAITING, P, p, next, next + 1, 0)
        end
    elseif over then
        FOLD.over[#FOLD.over + 1] = sub(p.name, 1, -2)
    end
    return entry
end

-- These flows, of texts as above, are being removed: their packs go, or stay as plain ones for the jobs that there are. Nothing of them
-- is in the hands of the caller.
function FOLD.drop(ns, ids, texts)
    local by_queue = {}
    for k = 1, #ids do
        local queue = texts[k] and match(texts[k], '^%d+ %d %d+ (%S+) ')
        if queue then
            local names = by_queue[queue] or {}
            by_queue[queue] = names
            names[#names + 1] = ids[k] .. '~'
        end
    end
    for queue, names in pairs(by_queue) do
        local P, gone, keys, kept = FOLD.lane_of(ns, queue), {}, {}, {}
        local states = fetch('HMGET', P .. 'pack', names, 1, #names)
        for k = 1, #names do
            if states[k] and find(states[k], ' [arc]') then
                local p = {name = names[k], v = read_stretches(states[k])}
                FOLD.make_plain(p)
                kept[#kept + 1], kept[#kept + 2] = p.name, write_stretches(p.v)
            else
                gone[#gone + 1] = names[k]
                keys[#keys + 1], keys[#keys + 2] = bodies_key(P, names[k]), P .. 'r:' .. names[k]
            end
        end
        spread('HDEL', P .. 'pack', gone, 1, #gone)
        spread('HSET', P .. 'pack', kept, 1, #kept)
        for k = 1, #keys, SLICE do
            call('UNLINK', unpack(keys, k, min(k + SLICE - 1, #keys)))
        end
    end
end
end
