-- deaths.lua - the dead by class
--
-- A dead job's class stands behind its record in P fin. P dn has how many are in a class, P dl when the last came, P di when the
-- first did, its kind and its text; P dz:<class> has its jobs as P dead has all. What died before there were classes is in
-- none of these, and is counted as `other` by who looks.
do
-- Functions are K's, as those of keys.lua: the library has few locals to spare.
local CLASSES_MAX, OTHER = 512, 'other'
K.OTHER = OTHER
K.WORDS = {x = 'exhausted', k = 'killed', q = 'quarantined', u = 'unrecoverable'}

-- Before the first write of a step that may bring deaths.
function K.want_classes(P)
    for _, hash in ipairs({'dn', 'dl', 'di'}) do
        call('HLEN', P .. hash)
    end
end

-- A death that is in P dead or will be; `about` is "class\0kind\0text", or "" for a class named `named`. Gives the class.
function K.enter_class(P, id, about, named)
    local class, rest = match(about, '^(%Z+)%z(.*)$')
    class, rest = class or named, rest or '\0'
    if call('HEXISTS', P .. 'dn', class) == 0 then
        local n = call('HLEN', P .. 'dn') - call('HEXISTS', P .. 'dn', OTHER)
        if n >= CLASSES_MAX then
            class, rest = OTHER, '\0'
        end
        call('HSETNX', P .. 'di', class, format('%.0f ', now) .. rest)
    end
    call('HINCRBY', P .. 'dn', class, 1)
    call('HSET', P .. 'dl', class, format('%.0f', now))
    call('ZADD', P .. 'dz:' .. class, now, id)
    return class
end

-- Jobs a..b of ids are dead no longer; their records are still there.
function K.leave_classes(P, ids, a, b)
    if b < a or call('HLEN', P .. 'dn') == 0 then
        return
    end
    local fins, by = fetch('HMGET', P .. 'fin', ids, a, b), {}
    for i = 1, #fins do
        local class = match(fins[i] or '', '^d.. %d+ (%w+)$')
        if class then
            by[class] = by[class] or {}
            by[class][#by[class] + 1] = ids[a + i - 1]
        end
    end
    for class, list in pairs(by) do
        spread('ZREM', P .. 'dz:' .. class, list, 1, #list)
        if call('HINCRBY', P .. 'dn', class, -#list) <= 0 then
            call('HDEL', P .. 'dn', class)
            call('HDEL', P .. 'dl', class)
            call('HDEL', P .. 'di', class)
        end
    end
end
end
