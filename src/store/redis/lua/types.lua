-- types.lua - finds the key whose type is not lade's, for a message, and checks the format of the namespace
--
-- KEYS  <ns>:queues, <ns>:workers, then metas
-- Answers the text for the first foreign key, or "".
local function is_foreign(key, kind)
    local is = call('TYPE', key).ok
    return is ~= kind and is ~= 'none' and key .. ' is a ' .. is
end

local kinds = {jobs = 'hash', pack = 'hash', hist = 'hash', ghost = 'hash', lease = 'hash', held = 'hash', fin = 'hash', uk = 'hash',
               mark = 'hash', meta = 'hash', since = 'hash', said = 'hash', waits = 'hash', scheduled = 'zset', retrying = 'zset', dead = 'zset', cancelled = 'zset',
               workers = 'zset', ttl = 'zset', dn = 'hash', dl = 'hash', di = 'hash', uf = 'hash', completed = 'list', ['in'] = 'list', idle = 'set',
               key = 'hash', keys = 'hash', knames = 'zset', kring = 'zset', ktime = 'zset', kpark = 'zset', kaway = 'set', co = 'hash', crew = 'hash', far = 'hash', seen = 'hash', outs = 'zset'}

local function op_types(keys, argv)
    begin()
    local found = is_foreign(keys[1], 'set') or is_foreign(keys[2], 'hash')
    for i = 3, #keys do
        for name, kind in pairs(kinds) do
            found = found or is_foreign(prefix(keys[i]) .. name, kind)
        end
        for level = 0, 8 do
            found = found or is_foreign(prefix(keys[i]) .. 'ready:' .. level, 'list') or
                is_foreign(prefix(keys[i]) .. 'ready:' .. sub('ABCDEFGHI', level + 1, level + 1), 'list')
        end
        if not found then
            check_format(call('HGET', keys[i], 'v'))
        end
    end
    return found or ''
end
