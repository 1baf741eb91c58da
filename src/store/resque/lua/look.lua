-- ARGV: namespace, queue or ''
-- of a queue {known, ready, active, paused, names that a worker serves...}; else {incarnation, alive until, about, jobs held, heartbeat}...
local queue = ARGV[2]
local out = {}
local active, serving = 0, {}
local live = redis.call('ZRANGE', ALIVE, 0, -1, 'WITHSCORES')
for i = 1, #live, 2 do
  local all = redis.call('HGETALL', HELD .. live[i])
  local held, about, first = 0, '', false
  for k = 1, #all, 2 do
    if all[k] == 'about' then about = all[k + 1] end
    if all[k] == 'ids' then first = string.match(all[k + 1], '^[^\n]+') end
    if string.match(all[k], '^%d+$') then
      held = held + 1
      if split(all[k + 1]) == queue then active = active + 1 end
    end
  end
  serving[#serving + 1] = string.match(about, '^[^\n]*\n([^\n]*)') or ''
  local beat = queue == '' and first and redis.call('HGET', P .. 'workers:heartbeat', first) or ''
  out[#out + 1] = {live[i], live[i + 1], about, held, beat}
end
if queue == '' then return out end
local pause = redis.call('GET', P .. 'pause-all-workers')
local paused = pause and string.lower(string.match(pause, '^%s*(.-)%s*$')) == 'true'
out = {redis.call('SISMEMBER', P .. 'queues', queue), redis.call('LLEN', P .. 'queue:' .. queue), active, paused and 1 or 0}
for _, names in ipairs(serving) do out[#out + 1] = names end
return out
