-- rows.lua - jobs as stored, with the state each is in
--
-- KEYS  <ns>:workers, meta
-- ARGV  bytes of one answer, then ids
-- Answers for each id, until the bytes are used up: {} or {state, body, history or null, lock or null, where, until,
-- worker's description or null}. state: s r a t c d x as scheduled, ready, active, retrying, completed, dead, cancelled;
-- where: the score, the lease or the record of the end.
local P, workers, budget, inbox -- of the call at hand

-- The record of a lease, whose state is "fence level worker", and what is known of its worker.
local function worker_of(lease)
    local w = match(lease, '^%d+ .(%w+)') or ''
    local till = call('ZSCORE', P .. 'workers', w)
    return till and tonumber(till) or 0, call('HGET', workers, w)
end

-- The same answer for a job in a pack, as if it had records of its own.
local function packed_row(id)
    local p, place, is = find_in_pack(P, id)
    if not p then
        inbox = inbox or look_into_inbox(P) or {}
        local body = inbox[id]
        budget = budget - (body and #body or 0)
        return body and {'r', body, false, false, '', 0, false} or {}
    end
    local body, state = body_of(P, p, place), sub(is, 1, 1)
    local where, till, name = '', 0, false
    local fence, w = match(is, '^a(%d+) (%w+)$')
    if fence then
        where = fence .. ' ' .. level_of(body) .. w
        till, name = worker_of(where)
    elseif state == 'c' then
        where = 'c' .. level_of(body) .. '  ' .. sub(is, 2) .. ' ' .. packed_result(P, p, place)
    end
    budget = budget - #body - #where
    return {state, body, false, false, where, till, name}
end

local function row(id)
    local state, where, till, name = 'r', '', 0, false
    local fin = call('HGET', P .. 'fin', id)
    local lease = not fin and call('HGET', P .. 'lease', id)
    if fin then
        state, where = sub(fin, 1, 1), fin
        if state == 'c' and byte(fin, #fin) == 32 then -- no result with it
            where = fin .. result_apart(P, id, match(fin, '^... (%d+) '))
        end
    elseif lease then
        state, where = 'a', lease
        till, name = worker_of(lease)
    else
        local score = call('ZSCORE', P .. 'scheduled', id)
        if score then
            state, where = 's', score
        else
            score = call('ZSCORE', P .. 'retrying', id)
            if score then
                state, where = 't', score
            end
        end
    end
    local body = call('HGET', P .. 'jobs', id)
    if not body then
        return packed_row(id)
    end
    local hist = call('HGET', P .. 'hist', id)
    budget = budget - #body - #where - (hist and #hist or 0)
    return {state, body, hist, call('HGET', P .. 'uk', id), where, till, name}
end

local function op_rows(keys, argv)
    begin()
    P, workers, budget, inbox = prefix(keys[2]), keys[1], tonumber(argv[1]), nil
    local out = {}
    for i = 2, #argv do
        if budget <= 0 then
            break
        end
        out[#out + 1] = row(argv[i])
    end
    inbox = nil -- the library stays
    return out
end
