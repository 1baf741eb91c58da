-- flow.lua - joined behind job.lua where the end of a job may move a flow
--
-- Of flows that are not folded (fold.lua), and of those that a call unfolds.
--
-- F = <ns>:flow:<id> is a hash, F .. ':s' a string with the state of each node as a digit (enum lade_flow_step_state). Fields:
--
--     name, state (enum lade_flow_state), n, steps, open, failed, sib (0|1), at, till
--     s<i>  level, when, policy as digits, " ms queue kind next,next+": a "+" behind those that have more deps than one
--     d<i>  deps "0,1,2"; w<i> deps that have not passed, of nodes with more than one; b<i> body; r<i> result
--
-- <ns>:flows is a zset of all, in the order they were made; <ns>:flows:1, :2, :3 of those that ended so, by ms. A script
-- that ends jobs of flows says where the namespace is (flow_begin), tells of each (flow_ended, flow_revived), and calls
-- flow_flush: it puts the jobs that may run now, one batch for each queue, and writes the states that changed.
--
-- In slots (head.lua) these keys begin with the prefix of one queue instead of <ns>:, the flow's home, so that a call touches keys of that
-- queue only. What happens to steps of other queues goes to them, and comes from them, by messages (out.lua, far.lua).
local flow_ns
local flow_P                 -- the queue at work, whose packs may be in hand; or nil
local flow_cache             -- by F: {F, id, st = states, set = {node -> state}, m = numbers, or nil}
local flow_lanes, flow_order -- what is to be put, by P
local flow_ends
local flow_notes -- for settle.lua: what ended

local begin_flowless = begin
local function begin()
    begin_flowless()
    flow_ns, flow_P = nil, nil
    flow_cache, flow_lanes, flow_order, flow_ends, flow_notes = {}, {}, {}, 0, {}
end

local function flow_begin(P)
    flow_ns, flow_P = flow_ns or FOLD.namespace_of(P), P
end

-- Calls a function that looks at packs of a queue, which need not be that at work.
function FOLD.in_queue(P, act)
    if P == flow_P then
        return act()
    end
    local was_packs, was_extra = packs, extra
    packs, extra = {}, {r = 0, a = 0, c = 0}
    act()
    flush(P)
    packs, extra = was_packs, was_extra
end

-- Its states, when it was folded.
function FOLD.unfolded(F, id)
    local text = call('GET', F .. ':p')
    if not text then
        return nil
    end
    local P = FOLD.lane_of(flow_ns, match(text, '^%d+ %d %d+ (%S+) '))
    FOLD.in_queue(P, function() FOLD.unfold(P, pack_at(P, id .. '~')) end)
    return call('GET', F .. ':s')
end

local function flow_at(id)
    local F = flow_ns .. 'flow:' .. id
    local f = flow_cache[F]
    if f == nil then
        local st = call('GET', F .. ':s') or FOLD.unfolded(F, id)
        if not st and not flow_P then -- an op on flows: it may lie in an inbox
            ops.drain_flows(flow_ns)
            st = FOLD.unfolded(F, id)
        end
        f = st and {F = F, id = id, st = st, set = {}} or false
        flow_cache[F] = f
    end
    return f
end

-- The flow and the node of a job's id, as number and as text, or nil.
function ops.flow_of(id)
    local name, text = match(id, '^([^~]+)~(%d+)$')
    local f = name and flow_at(name)
    local node = tonumber(text)
    if f and node < #f.st then
        return f, node, text
    end
end

local function step_state(f, node)
    return f.set[node] or sub(f.st, node + 1, node + 1)
end

local function set_step(f, node, state)
    f.set[node] = state
    f.changed = true
end

-- What lies between the first and the last that changed, in one write: of a chain two digits.
function ops.write_steps(f)
    local first, last, parts = huge, -1, {}
    for node in pairs(f.set) do
        first, last = min(first, node), max(last, node)
    end
    for node = first, last do
        parts[#parts + 1] = step_state(f, node)
    end
    call('SETRANGE', f.F .. ':s', first, concat(parts))
    f.changed = false
end

-- The flow's own numbers, read when they are needed.
local function numbers_of(f)
    if not f.m then
        local v = call('HMGET', f.F, 'state', 'n', 'steps', 'failed', 'sib')
        f.m = {state = v[1], n = tonumber(v[2]), steps = tonumber(v[3]), failed = tonumber(v[4]), sib = v[5] == '1'}
    end
    return f.m
end

-- Its queue, policy, and what it is put by; the node as number or text.
local function read_step(f, node)
    local level, when, policy, ms, queue =
        match(call('HGET', f.F, 's' .. node), '^(%d)(%d)(%d) (%-?%d+) (%S+)')
    return {level = level, when = when, policy = policy, ms = tonumber(ms), queue = queue}
end

function ops.job_of(f, node)
    return f.id .. '~' .. node
end

-- putting ---------------------------------------------------------------------------------------------------------

local function gather(P, queue, id, level, due, body)
    local lane = flow_lanes[P]
    if not lane then
        lane = {queue = queue, kv = {}, lists = {}, due = {}, n = 0, longest = 0}
        flow_lanes[P] = lane
        flow_order[#flow_order + 1] = P
    end
    lane.kv[#lane.kv + 1] = id
    lane.kv[#lane.kv + 1] = body
    lane.n = lane.n + 1
    lane.longest = max(lane.longest, #body)
    if due then
        lane.due[#lane.due + 1] = due + tonumber(level) / 16
        lane.due[#lane.due + 1] = id
        lane.head = min(lane.head or due, due)
    else
        local list = lane.lists[level] or {}
        lane.lists[level] = list
        list[#list + 1] = id
    end
end

-- The node as number and as text; verb: of a message, "put" or "again".
function ops.launch(f, node, text, verb)
    local v = call('HMGET', f.F, 's' .. text, 'b' .. text)
    local level, when, ms, queue = match(v[1], '^(%d)(%d)%d (%-?%d+) (%S+)')
    local due
    if when ~= '0' then
        due = ms + (when == '1' and now or 0)
        due = due > now and due
    end
    if FOLD.is_far(flow_ns, queue) then
        ops.out(flow_ns, queue, {verb or 'put', ops.job_of(f, text), level, due or 0, v[2]})
    else
        gather(FOLD.lane_of(flow_ns, queue), queue, ops.job_of(f, text), level, due, v[2])
    end
    f.set[node], f.changed = '1', true
end

local put_gathered
do
local function put_lane(P, lane)
    local meta = call('HMGET', P .. 'meta', 'v', 'levels', 'paused', 'big', 'ev', 'max')
    check_format(meta[1])
    if not meta[1] then
        make_queue(P)
        call('SADD', flow_ns .. 'queues', lane.queue)
    end
    local _, levels = drain(P, meta[2] or '')
    local ready, used = 0, {}
    for level in pairs(lane.lists) do
        used[level] = true
    end
    for k = 1, #lane.due, 2 do
        used[format('%d', lane.due[k] % 1 * 16)] = true
    end
    add_levels(P, levels, used)
    if lane.longest > 65536 and lane.longest > tonumber(meta[4] or 0) then
        call('HSET', P .. 'meta', 'big', lane.longest)
    end
    local was = lane.head and first_due(P)
    spread('HSET', P .. 'jobs', lane.kv, 1, #lane.kv)
    for k = 2, K.max_bytes(meta[6]) and #lane.kv or 0, 2 do
        K.add_bytes(P, #lane.kv[k])
    end
    for level, list in pairs(lane.lists) do
        spread('RPUSH', P .. 'ready:' .. level, list, 1, #list)
        note_since(P, list, 1, #list)
        ready = ready + #list
        for k = 1, meta[5] and #list or 0 do
            EVENT.tell_apart(P, EVENT.WAITING, list[k])
        end
    end
    spread('ZADD', P .. 'scheduled', lane.due, 1, #lane.due)
    call('HINCRBY', P .. 'meta', 'enqueued', lane.n)
    if not meta[3] then
        ring(P, ready > 0 and ready or lane.head and lane.head < (was or huge) and 1 or 0)
    end
end

function put_gathered()
    for k = 1, #flow_order do
        put_lane(flow_order[k], flow_lanes[flow_order[k]])
    end
    flow_lanes, flow_order = {}, {}
end
end

-- jobs of flows -----------------------------------------------------------------------------------------------------

-- A job that is there waits, or waits no more.
function ops.weigh_job(P, id, sign)
    if K.max_bytes(call('HGET', P .. 'meta', 'max')) then
        K.add_bytes(P, sign * K.weigh(P, {id}, 1, 1))
    end
end

-- Out of the structure of where it has ended; the record of that goes.
function ops.unlink_ended(P, id, state)
    if state == 'c' then
        haunt(P, 'c', id)
    else
        if state == 'd' then
            K.leave_classes(P, {id}, 1, 1)
        end
        call('ZREM', P .. (state == 'd' and 'dead' or 'cancelled'), id)
    end
    call('HDEL', P .. 'fin', id)
end

-- A live job that lies in a pack has records of its own from now on, but stands in no list when it was ready. The state it had, or nil.
function FOLD.leave_pack(P, id)
    local was
    FOLD.in_queue(P, function()
        local p, place, is = find_in_pack(P, id)
        was = p and sub(is, 1, 1)
        if was == 'r' or was == 'a' then
            local body = extract(P, p, place, is)
            local fence, w = match(is, '^a(%d+) (%w+)$')
            if fence then
                open_leases(P)
                call('HSET', P .. 'lease', id, fence .. ' ' .. level_of(body) .. w)
            end
        end
    end)
    return was
end

-- Cancels it when it has not ended; one that runs is marked, and its worker told.
function FOLD.stop(P, id)
    put_gathered() -- it may be among them
    local was = FOLD.leave_pack(P, id)
    local body = call('HGET', P .. 'jobs', id)
    if not body or call('HEXISTS', P .. 'fin', id) == 1 then
        return
    end
    local lease = call('HGET', P .. 'lease', id)
    if lease then
        if call('HEXISTS', P .. 'mark', id) == 0 then
            local fence, w = match(lease, '^(%d+) .(%w+)')
            set_fields(P .. 'mark', {id, 'c'}, 1, 2)
            call('RPUSH', P .. 'stop:' .. w, fence .. ' m ' .. id)
            call('PEXPIRE', P .. 'stop:' .. w, 86400000)
        end
        return
    end
    local level = level_of(body)
    if was ~= 'r' and call('ZREM', P .. 'scheduled', id) + call('ZREM', P .. 'retrying', id) == 0 then
        haunt(P, level, id)
    end
    ops.weigh_job(P, id, -1)
    forget_since(P, {id}, 1, 1)
    call('ZADD', P .. 'cancelled', now, id)
    call('HSET', P .. 'fin', id, 'x' .. level .. '  ' .. now .. ' ')
    heed_one(P, id)
    EVENT.tell_apart(P, EVENT.CANCELLED, id)
end

local function stop_job(f, node)
    local queue = read_step(f, node).queue
    if FOLD.is_far(flow_ns, queue) then
        return ops.out(flow_ns, queue, {'stop', ops.job_of(f, node)})
    end
    FOLD.stop(FOLD.lane_of(flow_ns, queue), ops.job_of(f, node))
end

-- Whether there is such a job.
function FOLD.is_there(P, id)
    local there = call('HEXISTS', P .. 'jobs', id) == 1
    if not there then
        FOLD.in_queue(P, function() there = find_in_pack(P, id) ~= nil end)
    end
    return there
end

-- Runs again as the job that is there, or goes on. False: there is none.
function FOLD.again(P, id)
    local fin = call('HGET', P .. 'fin', id)
    if fin then
        local level = sub(fin, 2, 2)
        ops.unlink_ended(P, id, sub(fin, 1, 1))
        zero_counts(P, id)
        call('RPUSH', P .. 'ready:' .. level, id)
        ops.weigh_job(P, id, 1)
        note_since(P, {id}, 1, 1)
        if call('HEXISTS', P .. 'meta', 'paused') == 0 then
            ring(P, 1)
        end
        return true
    end
    return FOLD.is_there(P, id)
end

-- Or as a new one.
local function run_again(f, node)
    local queue = read_step(f, node).queue
    if FOLD.is_far(flow_ns, queue) then
        ops.launch(f, node, tostring(node), 'again')
    elseif FOLD.again(FOLD.lane_of(flow_ns, queue), ops.job_of(f, node)) then
        set_step(f, node, '1')
    else
        ops.launch(f, node, tostring(node))
    end
end

-- What is left of a job that has ended goes. False: it has not.
function FOLD.clear(P, id)
    local fin = call('HGET', P .. 'fin', id)
    if fin then
        ops.unlink_ended(P, id, sub(fin, 1, 1))
        drop(P, {id}, 1, 1)
    end
    return fin or call('HEXISTS', P .. 'jobs', id) == 0
end

-- The on_failure job may run once more.
local function rearm(f, node)
    local queue, id = read_step(f, node).queue, ops.job_of(f, node)
    if FOLD.is_far(flow_ns, queue) then
        if step_state(f, node) == '1' then
            return
        end
        ops.out(flow_ns, queue, {'clear', id})
    elseif not FOLD.clear(FOLD.lane_of(flow_ns, queue), id) then
        return
    end
    call('HDEL', f.F, 'r' .. node)
    set_step(f, node, '0')
end

-- changes ---------------------------------------------------------------------------------------------------------

local function enter_flow(f, state)
    local m = numbers_of(f)
    if m.state ~= '0' then
        call('ZREM', flow_ns .. 'flows:' .. m.state, f.id)
    end
    m.state = state
    call('HSET', f.F, 'state', state, 'till', state == '0' and 0 or now)
    if state ~= '0' then
        call('ZADD', flow_ns .. 'flows:' .. state, now, f.id)
        flow_ends = flow_ends + 1
    end
end

local function count_failed(f, by)
    local m = numbers_of(f)
    m.failed = m.failed + by
    call('HINCRBY', f.F, 'failed', by)
end

local change
do
local function pass(f, node, next)
    for text, many in gmatch(next, '(%d+)(%+?)') do
        if many == '' or call('HINCRBY', f.F, 'w' .. text, -1) == 0 then
            local to = tonumber(text)
            if step_state(f, to) == '0' then
                ops.launch(f, to, text)
            end
        end
    end
    if next == '' and node < numbers_of(f).steps and call('HINCRBY', f.F, 'open', -1) == 0 and
       numbers_of(f).state == '0' then
        enter_flow(f, '1')
    end
end

local function fail_flow(f)
    local m = numbers_of(f)
    enter_flow(f, '2')
    if m.n > m.steps and step_state(f, m.steps) == '0' then
        ops.launch(f, m.steps, tostring(m.steps))
    end
    for node = 0, m.sib and m.steps - 1 or -1 do
        if step_state(f, node) == '1' then
            if read_step(f, node).policy == '1' then
                count_failed(f, 1)
            end
            set_step(f, node, '4')
            stop_job(f, node)
        end
    end
end

-- From one state to another, as queue/flow.h has it.
function change(f, node, to, policy, next)
    local from = step_state(f, node)
    local passes = (from ~= '2' and from ~= '5') and (to == '2' or to == '5')
    local was_down, is_down = from == '3' or from == '4', to == '3' or to == '4'
    set_step(f, node, to)
    if policy == '1' and was_down ~= is_down then
        count_failed(f, is_down and 1 or -1)
        local m = numbers_of(f)
        if m.state == '2' and m.failed == 0 then
            enter_flow(f, '0')
        end
    end
    if passes then
        pass(f, node, next)
    end
    if is_down and policy == '1' and numbers_of(f).state == '0' then
        fail_flow(f)
    end
end
end

-- In slots: the flow may have its home elsewhere, which is told.
function ops.tell_home(id, ...)
    local flow = match(id, '^([^~]+)~%d+$')
    local home = flow and call('HGET', flow_ns .. 'far', flow)
    if home then
        ops.out(flow_ns, home, {...})
    end
end

-- The job ended: how is 2 completed, 3 dead, 4 cancelled. Any id.
local function flow_ended(id, how, result)
    local f, node, text = ops.flow_of(id)
    if ops.slots and not f then
        return ops.tell_home(id, 'ended', id, how, result or '')
    end
    local from = f and step_state(f, node)
    if not f or from == '2' or (how ~= '2' and from ~= '1') then
        return
    end
    local policy, next = match(call('HGET', f.F, 's' .. text), '^%d%d(%d) %S+ %S+ %S+ ?(.*)$')
    if how == '2' and result and result ~= '' then
        call('HSET', f.F, 'r' .. text, result)
    elseif how ~= '2' and policy == '2' then
        how = '5'
    end
    change(f, node, how, policy, next)
end

-- The job that had ended is ready again. Any id.
local function flow_revived(id)
    local f, node, text = ops.flow_of(id)
    if ops.slots and not f then
        return ops.tell_home(id, 'revived', id)
    end
    local from = f and step_state(f, node)
    if from == '3' or from == '4' then
        change(f, node, '1', read_step(f, text).policy, '')
    end
end

local function flow_flush()
    put_gathered()
    for _, f in pairs(flow_cache) do
        if f and f.changed then
            ops.write_steps(f)
        end
    end
end

-- In slots: what other slots have of them goes, too. The queues of steps that lie elsewhere are kept with a flow.
function FOLD.drop_far(ids)
    for k = 1, #ids do
        for queue in gmatch(call('HGET', flow_ns .. 'flow:' .. ids[k], 'far') or '', '%S+') do
            ops.out(flow_ns, queue, {'forget', ids[k]})
        end
        ops.out(flow_ns, '', {ids[k]})
    end
end

-- Removes flows, by id.
local function drop_flows(ids)
    local folded = {}
    if ops.slots then
        FOLD.drop_far(ids)
    end
    for k = 1, #ids do
        folded[k] = flow_ns .. 'flow:' .. ids[k] .. ':p'
    end
    for from = 1, #ids, SLICE do
        local some = {unpack(folded, from, min(from + SLICE - 1, #ids))}
        FOLD.drop(flow_ns, {unpack(ids, from, min(from + SLICE - 1, #ids))}, call('MGET', unpack(some)))
    end
    for k = 1, #ids do
        local F = flow_ns .. 'flow:' .. ids[k]
        call('UNLINK', F, F .. ':s', F .. ':p')
    end
    spread('ZREM', flow_ns .. 'flows', ids, 1, #ids)
end

-- Removes the oldest that ended so, beyond `keep` or before `since` ms, at most n. Returns how many, and whether some are left.
local function keep_flows(state, keep, since, n)
    local key = flow_ns .. 'flows:' .. state
    local over = call('ZCARD', key) - keep
    if since then
        over = max(over, call('ZCOUNT', key, '-inf', format('(%.0f', since)))
    end
    local some = min(over, n)
    if some <= 0 then
        return 0, over > 0
    end
    local popped, ids = call('ZPOPMIN', key, some), {}
    for k = 1, #popped, 2 do
        ids[#ids + 1] = popped[k]
    end
    drop_flows(ids)
    return some, over > some
end

-- After flows ended: those beyond the number that is kept go.
local function flow_retain(keep_done, keep_dead)
    if flow_ends > 0 then
        keep_flows('1', keep_done, nil, flow_ends + 100)
        keep_flows('2', keep_dead, nil, flow_ends + 100)
        keep_flows('3', keep_done, nil, flow_ends + 100)
    end
end

-- What FOLD.complete has noted.
function FOLD.write(P)
    local readied, over = FOLD.readied, FOLD.over
    local meta = readied[1] and call('HMGET', P .. 'meta', 'paused', 'max')
    for k = 1, #readied do
        local r = readied[k]
        call('RPUSH', P .. 'ready:' .. r.level, entry_of(r.p.name, r.step, r.step + 1))
        if K.max_bytes(meta[2]) then
            K.add_bytes(P, K.weigh_run(P, r.p, r.step, r.step + 1))
        end
    end
    if readied[1] then
        call('HINCRBY', P .. 'meta', 'enqueued', #readied)
        if not meta[1] then
            ring(P, #readied)
        end
    end
    local ended = {}
    for k = 1, #over do
        ended[#ended + 1], ended[#ended + 2] = format('%.0f', now), over[k]
    end
    spread('ZADD', flow_ns .. 'flows:1', ended, 1, #ended)
    flow_ends = flow_ends + #over
    FOLD.readied, FOLD.over = {}, {}
end

-- For settle.lua: what ended is told to the flows when all else is written.
local function note_end(id, how, result)
    if find(id, '~', 1, true) then
        flow_notes[#flow_notes + 1] = {id, how, result}
    end
end

local function tell_flows(P)
    flow_begin(P)
    FOLD.write(P)
    for k = 1, #flow_notes do
        flow_ended(unpack(flow_notes[k]))
    end
    flow_flush()
end
