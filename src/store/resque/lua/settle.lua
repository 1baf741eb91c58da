-- ARGV: namespace, 1 = a missing lease was settled before, 1 = each queue has a failed list, then for each: action, incarnation, fence, Resque id or '', before, after
--   c  done     f  failed: before .. entry .. after     F  failed: before is the whole     h  back to the head; after: history
--   b  begun
-- 0 or 1 (stale) for each
local lenient, multi = ARGV[2] == '1', ARGV[3] == '1'
local crashed = redis.call('EXISTS', CRASHES) == 1
local processed, failed, n_processed, n_failed = {}, {}, 0, 0
local out = {}

local function settle(action, inc, fence, id, before, after)
  local held = HELD .. inc
  local value = redis.call('HGET', held, fence)
  if not value then return lenient and 0 or 1 end
  if action == 'b' then
    redis.call('HSET', held, 'b' .. fence, 1)
    return 0
  end
  redis.call('HDEL', held, fence, 'b' .. fence)
  local queue, entry = split(value)
  if action == 'h' then
    redis.call('SADD', P .. 'queues', queue)
    redis.call('LPUSH', P .. 'queue:' .. queue, entry)
    if after ~= '' then redis.call('HSET', CRASHES, redis.sha1hex(entry), after) end
  else
    if action == 'f' then push_failed(multi, queue, before .. entry .. after) end
    if action == 'F' then push_failed(multi, queue, before) end
    if action ~= 'c' then
      n_failed = n_failed + 1
      failed[id] = (failed[id] or 0) + 1
    end
    n_processed = n_processed + 1
    processed[id] = (processed[id] or 0) + 1
    if crashed then redis.call('HDEL', CRASHES, redis.sha1hex(entry)) end
  end
  if id ~= '' then redis.call('DEL', P .. 'worker:' .. id) end
  return 0
end

for i = 4, #ARGV, 6 do
  out[#out + 1] = settle(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
end

local function count(name, n, by_id)
  if n == 0 then return end
  redis.call('INCRBY', P .. name, n)
  for id, k in pairs(by_id) do
    if id ~= '' then redis.call('INCRBY', P .. name .. ':' .. id, k) end
  end
end
count('stat:processed', n_processed, processed)
count('stat:failed', n_failed, failed)
return out
