-- calm.lua - joined behind inbox.lua: whether jobs of keys may wait in company (company.lua), and what its first one needs
--
-- Other files find it in ops.
do
local CALM = 64

-- Whether the keys on record are few and none of them has a ready job, a limit, a pause or a time to wait for: retries may wait, or run.
local function are_calm(P)
    local n = call('HLEN', P .. 'keys')
    local all = n > 0 and n <= CALM and call('HVALS', P .. 'keys') or {}
    for i = 1, #all do
        if not find(all[i], '^0 %S+ %S+ %S+ 0 0 0 .*|$') then
            return false
        end
    end
    return n <= CALM
end

-- Names and answers that are mostly those of the call before.
local last_P, last_levels, others, mates -- names of what else may be ready, with the keys on record, and of lists of company

local function look_up(P, levels)
    local letters = match(levels, '%u*$')
    local n = #levels - #letters
    last_P, last_levels, others, mates = P, levels, {P .. 'keys'}, {}
    for at = 1, n do
        others[at + 1] = P .. 'ready:' .. sub(levels, at, at)
    end
    for at = 1, #letters do
        mates[at] = P .. 'ready:' .. sub(letters, at, at)
    end
end

-- Whether nothing else is ready, and of company; levels: digits, then letters. Nothing is in the inbox.
function ops.look_around(P, levels)
    if P ~= last_P or levels ~= last_levels then
        look_up(P, levels)
    end
    if call('EXISTS', unpack(others)) > 0 and (others[2] and call('EXISTS', unpack(others, 2)) > 0 or not are_calm(P)) then
        return false
    end
    return true, mates[1] and call('EXISTS', unpack(mates)) > 0
end

-- The hash of what is counted here, emptied for a new time.
function ops.open_counts(P)
    call('DEL', P .. 'co')
    call('HSET', P .. 'co', '', rep('-', 65)) -- so that it is a table: make_table of lib.lua
end

-- Makes what the first of a time needs, and reads what will be written, so that a foreign key stops us here.
function ops.open_company(P, queues, v, gate, levels, level)
    call('HLEN', P .. 'pack')
    call('HLEN', P .. 'co')
    call('LLEN', P .. 'ready:' .. level)
    if not v then
        call('SADD', queues, match(P, '{([^}]*)}:$'))
        call('HSET', P .. 'meta', 'v', FORMAT)
        call('HSET', P .. 'pack', '', rep('-', 65)) -- make_queue of lib.lua
        if call('EXISTS', P .. 'in') == 0 then
            call('RPUSH', P .. 'in', '')
        end
    end
    if not gate then
        call('HSET', P .. 'meta', 'gate', '0 0 0 0 0 0')
    end
    return add_levels(P, levels or '', {[level] = true})
end
end
