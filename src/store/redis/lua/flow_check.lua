-- flow_check.lua - what is wrong with one flow: numbers against states, states against jobs
--
-- KEYS  <ns>:queues
-- ARGV  id
-- Answers the findings as texts.
local st, out -- of the call at hand

local function report(...)
    out[#out + 1] = format(...)
end

local function at(i)
    return sub(st, i + 1, i + 1)
end

-- A folded one: its states are all that there is.
local function check_folded(id, text)
    local P = FOLD.lane_of(flow_ns, match(text, '^%d+ %d %d+ (%S+) '))
    local p = pack_at(P, id .. '~')
    if not (p and p.head) then
        return report('flow %s is folded, but its pack is not there', id)
    end
    local f, next, over = FOLD.spell(P, p, text), FOLD.next_of(p)
    if #f.st ~= f.n then
        return report('flow %s has %d states for %d steps', id, #f.st, f.n)
    end
    if next then
        report('step %s~%d waits for nothing', id, next)
    end
    if over ~= (call('ZSCORE', flow_ns .. 'flows:1', id) and true or false) then
        report('flow %s has ended and is not listed so, or is listed and has not', id)
    end
    if byte(p.head) == 67 and not match(f.st, '^2*1?0*$') or byte(p.head) == 71 and not match(f.st, '^[12]*0?$') then
        report('flow %s: its steps are %s', id, f.st)
    end
end

local function op_flow_check(keys, argv)
    begin()
    flow_ns = sub(keys[1], 1, -7)
    local id = argv[1]
    local F = flow_ns .. 'flow:' .. id
    out, st = {}, call('GET', F .. ':s')
    local folded = not st and call('GET', F .. ':p')
    if folded then
        check_folded(id, folded)
        return out
    elseif not st then
        report('flow %s is listed but not there', id)
        return out
    end
    local v = call('HMGET', F, 'state', 'n', 'steps', 'open', 'failed')
    local state, n, steps, open, failed = v[1], tonumber(v[2]), tonumber(v[3]), 0, 0
    if #st ~= n then
        report('flow %s has %d states for %d steps', id, #st, n)
        return out
    end
    for i = 0, n - 1 do
        local f = call('HMGET', F, 's' .. i, 'd' .. i, 'w' .. i)
        local policy, queue, next = match(f[1] or '', '^%d%d(%d) %-?%d+ (%S+) %S+ ?(.*)$')
        local P, job, missing = FOLD.lane_of(flow_ns, queue or ''), id .. '~' .. i, 0
        for dep in gmatch(f[2] or '', '%d+') do
            local s = at(tonumber(dep))
            missing = missing + (s ~= '2' and s ~= '5' and 1 or 0)
        end
        if f[3] and tonumber(f[3]) ~= missing then
            report('step %s waits for %d steps, counted are %s', job, missing, f[3])
        end
        local there = not FOLD.is_far(flow_ns, queue) and FOLD.is_there(P, job)
        if FOLD.is_far(flow_ns, queue) then
            if at(i) == '0' and missing == 0 and i < steps then
                report('step %s waits for nothing', job)
            end
        elseif at(i) == '1' and (not there or call('HEXISTS', P .. 'fin', job) == 1) then
            report('step %s is enqueued, but its job is not there or has ended', job)
        elseif at(i) == '0' and there then
            report('step %s waits, but its job is there', job)
        elseif at(i) == '0' and missing == 0 and i < steps then
            report('step %s waits for nothing', job)
        end
        if i < steps then
            open = open + (next == '' and at(i) ~= '2' and at(i) ~= '5' and 1 or 0)
            failed = failed + (policy == '1' and (at(i) == '3' or at(i) == '4') and 1 or 0)
        end
    end
    if open ~= tonumber(v[4]) or failed ~= tonumber(v[5]) then
        report('flow %s: %d open and %d failed steps, counted are %s and %s', id, open, failed, v[4], v[5])
    end
    if state ~= '3' and ((state == '2') ~= (failed > 0) or (state == '1') ~= (open == 0)) then
        report('flow %s: its state %s does not fit its steps', id, state)
    end
    if state ~= '0' and not call('ZSCORE', flow_ns .. 'flows:' .. state, id) then
        report('flow %s has ended but is not listed so', id)
    end
    return out
end
