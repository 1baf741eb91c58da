-- ARGV: namespace, id, its heartbeat, what it is at or '', entry for the failed list or ''
-- Unregisters a worker unless it has moved since it was looked at. 0 or 1 (it has).
local id = ARGV[2]
if redis.call('HGET', P .. 'workers:heartbeat', id) ~= ARGV[3] then return 1 end
if (redis.call('GET', P .. 'worker:' .. id) or '') ~= ARGV[4] then return 1 end
if ARGV[5] ~= '' then redis.call('RPUSH', P .. 'failed', ARGV[5]) end
bury_id(id)
return 0
