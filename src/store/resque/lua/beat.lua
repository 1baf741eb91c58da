-- ARGV: namespace, incarnation, lease ms, 1 = first, mode, about, "slot fence slot fence ..", Resque ids...
-- Slots count from 0 in the order of the ids: each shows from now on the job of its fence, taken ahead and still held.
-- {0, ms until the first of the others is dead or -1, ms until a delayed job is due or -1}, or {1}: it is not known
local inc, lease, first = ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local now = now_ms()
if not first and not redis.call('ZSCORE', ALIVE, inc) then return {1} end
redis.call('ZADD', ALIVE, now + lease, inc)
redis.call('HSET', HELD .. inc, 'until', text(now + lease)) -- the same, where a take looks anyway
local beat = format_time('%04d-%02d-%02dT%02d:%02d:%02d+00:00', now)
local ids = {}
for i = 8, #ARGV do
  local id = ARGV[i]
  ids[#ids + 1] = id
  if first then
    redis.call('SET', P .. 'worker:' .. id .. ':started', format_time('%04d-%02d-%02d %02d:%02d:%02d +0000', now))
  end
end
for from = 1, #ids, 1000 do
  local beats = {}
  for i = from, math.min(from + 999, #ids) do
    beats[#beats + 1] = ids[i]
    beats[#beats + 1] = beat
  end
  redis.call('SADD', P .. 'workers', unpack(ids, from, math.min(from + 999, #ids)))
  redis.call('HSET', P .. 'workers:heartbeat', unpack(beats))
end
if first then
  redis.call('HSET', HELD .. inc, 'ids', table.concat(ids, '\n'), 'mode', ARGV[5], 'about', ARGV[6])
end
for slot, fence in string.gmatch(ARGV[7], '(%d+) (%d+)') do
  local value = redis.call('HGET', HELD .. inc, fence)
  local queue, entry = split(value or '\n')
  if value and pcall(cjson.decode, entry) then
    redis.call('SET', P .. 'worker:' .. ids[slot + 1], '{"queue":' .. cjson.encode(queue) .. ',"run_at":"' ..
      format_time('%04d-%02d-%02dT%02d:%02d:%02dZ', now) .. '","payload":' .. entry .. '}')
  end
end
local ahead = -1
local other = redis.call('ZRANGE', ALIVE, 0, 1, 'WITHSCORES')
for i = 1, #other, 2 do
  if other[i] ~= inc then
    ahead = math.max(tonumber(other[i + 1]) - now, 0)
    break
  end
end
local due = first_due()
return {0, ahead, due < 0 and -1 or math.max(due - now, 0)}
