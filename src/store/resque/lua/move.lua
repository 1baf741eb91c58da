-- ARGV: namespace, key of the master lock that is to be given back or '', our value of it, 1 = each queue has a failed list, then for each:
--   list, value, queue or '', entry
-- Takes the value out of the list; the entry goes to the queue, without one to the failed list, and an empty one nowhere. 0 or 1 (it is not
-- there any more: moved or removed by another) for each.
local multi = ARGV[4] == '1'
local out = {}

local function forget(list, value)
  local at = string.match(list, '^delayed:(.+)$')
  if not at then return end
  if not redis.call('LPOS', P .. list, value) then redis.call('SREM', P .. 'timestamps:' .. value, list) end
  if redis.call('EXISTS', P .. list) == 0 then redis.call('ZREM', P .. 'delayed_queue_schedule', at) end
end

for i = 5, #ARGV, 4 do
  local list, value, queue, entry = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local moved = redis.call('LREM', P .. list, 1, value) == 1
  forget(list, value)
  out[#out + 1] = moved and 0 or 1
  if moved and queue ~= '' then
    redis.call('SADD', P .. 'queues', queue)
    redis.call('RPUSH', P .. 'queue:' .. queue, entry)
  elseif moved and entry ~= '' then
    push_failed(multi, 'delayed', entry)
    redis.call('INCRBY', P .. 'stat:failed', 1)
  end
end
if ARGV[2] ~= '' and redis.call('GET', P .. ARGV[2]) == ARGV[3] then redis.call('DEL', P .. ARGV[2]) end
return out
