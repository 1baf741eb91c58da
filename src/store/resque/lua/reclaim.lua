-- ARGV: namespace, incarnation, max, queues...
-- {1} not live, or {0, {fence, lane, entry, history, begun, former, its first Resque id, lost}...}
-- A queue that is not ours to serve gets its entries back at its head; of a worker in strict mode all come, as lost.
local inc, max = ARGV[2], tonumber(ARGV[3])
local now = now_ms()
if not is_live(inc, now) then return {1} end
local lane = {}
for i = 4, #ARGV do lane[ARGV[i]] = i - 4 end
local out = {0}
local mine = HELD .. inc

local function take_over(dead)
  local held = HELD .. dead
  local strict = redis.call('HGET', held, 'mode') == 'strict'
  local first_id = string.match(redis.call('HGET', held, 'ids') or '', '^[^\n]+') or dead
  local fences = {}
  for _, field in ipairs(redis.call('HKEYS', held)) do
    if string.match(field, '^%d+$') then fences[#fences + 1] = tonumber(field) end
  end
  table.sort(fences)
  bury(dead)
  redis.call('HDEL', held, 'take')
  local away = {}
  for _, old in ipairs(fences) do
    if #out > max then return false end
    local value = redis.call('HGET', held, text(old))
    local queue, entry = split(value)
    if lane[queue] or strict then
      local fence = text(redis.call('INCR', P .. 'lade:fence'))
      redis.call('HSET', mine, fence, value)
      local begun = redis.call('HEXISTS', held, 'b' .. text(old))
      if begun == 1 then redis.call('HSET', mine, 'b' .. fence, 1) end
      out[#out + 1] = {fence, lane[queue] or 0, entry, history_of(entry), begun, dead, first_id, strict and 1 or 0, queue}
    else
      away[#away + 1] = {queue, entry}
    end
    redis.call('HDEL', held, text(old), 'b' .. text(old))
  end
  for i = #away, 1, -1 do
    redis.call('SADD', P .. 'queues', away[i][1])
    redis.call('LPUSH', P .. 'queue:' .. away[i][1], away[i][2])
  end
  redis.call('ZREM', ALIVE, dead)
  redis.call('DEL', held)
  return true
end

for _, dead in ipairs(redis.call('ZRANGEBYSCORE', ALIVE, '-inf', now, 'LIMIT', 0, 16)) do
  if dead ~= inc and not take_over(dead) then break end
end
return out
