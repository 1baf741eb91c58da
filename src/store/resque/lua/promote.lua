-- ARGV: namespace, key of the master lock, our value of it, 1 = each queue has a failed list, then for each: timestamp, item, queue or '' for the failed list, entry
-- How many were moved; one that is not there any more was moved or removed by another. Gives the lock back.
local lock = P .. ARGV[2]
local n = 0
for i = 5, #ARGV, 4 do
  local at, item, queue, entry = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local list = P .. 'delayed:' .. at
  if redis.call('LREM', list, 1, item) == 1 then
    n = n + 1
    if not redis.call('LPOS', list, item) then redis.call('SREM', P .. 'timestamps:' .. item, 'delayed:' .. at) end
    if queue == '' then
      push_failed(ARGV[4] == '1', 'delayed', entry)
      redis.call('INCRBY', P .. 'stat:failed', 1)
    else
      redis.call('SADD', P .. 'queues', queue)
      redis.call('RPUSH', P .. 'queue:' .. queue, entry)
    end
  end
  if redis.call('EXISTS', list) == 0 then redis.call('ZREM', P .. 'delayed_queue_schedule', at) end
end
if redis.call('GET', lock) == ARGV[3] then redis.call('DEL', lock) end
return n
