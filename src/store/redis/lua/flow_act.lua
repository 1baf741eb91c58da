-- flow_act.lua - cancel, retry or remove a whole flow
--
-- KEYS  <ns>:queues
-- ARGV  verb (0 cancel, 1 retry, 2 remove), id
-- Answers 0 done, 1 not found, 2 wrong state.
local f, m -- of the call at hand

local function is_down(node)
    local state = step_state(f, node)
    return state == '3' or state == '4'
end

local function cancel()
    if m.state == '1' or m.state == '3' then
        return 2
    end
    enter_flow(f, '3')
    for node = 0, m.n - 1 do
        local state = step_state(f, node)
        if state == '1' or (state == '0' and node < m.steps) then
            if node < m.steps and read_step(f, node).policy == '1' then
                count_failed(f, 1)
            end
            set_step(f, node, '4')
            if state == '1' then
                stop_job(f, node)
            end
        end
    end
    return 0
end

-- Whether all before the node have passed.
local function is_free(node)
    local v = call('HMGET', f.F, 'd' .. node, 'w' .. node)
    if v[2] then
        return tonumber(v[2]) == 0
    end
    local before = v[1] and step_state(f, tonumber(v[1]))
    return not before or before == '2' or before == '5'
end

local function retry()
    local down = {}
    for node = 0, m.steps - 1 do
        if is_down(node) then
            down[#down + 1] = node
        end
    end
    if #down == 0 then
        return 2
    end
    count_failed(f, -m.failed)
    enter_flow(f, '0')
    if m.n > m.steps then
        rearm(f, m.steps)
    end
    for k = 1, #down do
        if is_free(down[k]) then
            run_again(f, down[k])
        else
            set_step(f, down[k], '0')
        end
    end
    return 0
end

local function remove(id)
    if m.state ~= '0' then
        call('ZREM', flow_ns .. 'flows:' .. m.state, id)
    end
    drop_flows({id})
    flow_cache = {}
    return 0
end

local function op_flow_act(keys, argv)
    begin()
    flow_ns = sub(keys[1], 1, -7)
    local verb, id = argv[1], argv[2]
    f = flow_at(id)
    if not f then
        return 1
    end
    m = numbers_of(f)
    local answer = verb == '0' and cancel() or verb == '1' and retry() or verb == '2' and remove(id)
    flow_flush()
    return answer
end
