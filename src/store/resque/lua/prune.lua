-- ARGV: namespace, id, its heartbeat, what it is at or '', entry for the failed list or '', its queue, 1 = each queue has a list
-- Unregisters a worker unless it has moved since it was looked at. 0 or 1 (it has).
local id = ARGV[2]
if redis.call('HGET', P .. 'workers:heartbeat', id) ~= ARGV[3] then return 1 end
if (redis.call('GET', P .. 'worker:' .. id) or '') ~= ARGV[4] then return 1 end
if ARGV[5] ~= '' then push_failed(ARGV[7] == '1', ARGV[6], ARGV[5]) end
bury_id(id)
return 0
