-- ARGV: namespace, key of the master lock, our value of it, its ms, max
-- {1, first due or -1, now}: another is master; {0, first due or -1, now, {timestamp, item}...}: all that is due, up to max, and with some the
-- lock is ours
local lock, value, ttl, max = P .. ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local schedule = P .. 'delayed_queue_schedule'
local now = now_ms()
local out = {0, -1, now}
for _, at in ipairs(redis.call('ZRANGEBYSCORE', schedule, '-inf', math.floor(now / 1000), 'LIMIT', 0, max)) do
  if #out - 3 >= max then break end
  local list = P .. 'delayed:' .. at
  local items = redis.call('LRANGE', list, 0, max - (#out - 3) - 1)
  if #items == 0 then redis.call('ZREM', schedule, at) end -- its jobs were removed
  for _, item in ipairs(items) do out[#out + 1] = {at, item} end
end
out[2] = first_due()
if #out == 3 then return out end
local master = redis.call('GET', lock)
if master and master ~= value then return {1, out[2], now} end
redis.call('SET', lock, value, 'PX', ttl)
return out
