-- ARGV: namespace, incarnation. What it still holds may be reclaimed from now on.
local inc = ARGV[2]
local held = HELD .. inc
bury(inc)
redis.call('HDEL', held, 'ids', 'take', 'until')
if redis.call('ZSCORE', ALIVE, inc) then
  local jobs = redis.call('HLEN', held) - redis.call('HEXISTS', held, 'about') - redis.call('HEXISTS', held, 'mode')
  if jobs > 0 then
    redis.call('ZADD', ALIVE, 0, inc)
  else
    redis.call('ZREM', ALIVE, inc)
    redis.call('DEL', held)
  end
end
return 0
