-- ARGV: namespace, incarnation, number of the take, max, bytes, queues...
-- {1} not live, or {0, paused, {fence, lane, entry, history, queue when it is none of the lanes}...}; with nothing taken, at its end
-- when the first delayed job is due or -1, and now, both in ms
local inc, seq, max, bytes = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local held = HELD .. inc
if not is_live(inc, now_ms()) then return {1} end

local function lane_of(queue)
  for i = 6, #ARGV do
    if ARGV[i] == queue then return i - 6 end
  end
end

local crashed = redis.call('EXISTS', CRASHES) == 1
local out = {0, 0}
local function add(fence, lane, entry, queue)
  out[#out + 1] = {fence, lane, entry, crashed and history_of(entry) or '', queue}
end

local function nothing()
  out[3] = first_due()
  out[4] = now_ms()
  return out
end

-- The reply to this very take was lost: the same again.
local last = redis.call('HGET', held, 'take')
if last then
  local number, first, n = string.match(last, '^(%d+) (%d+) (%d+)$')
  if number == seq then
    for fence = tonumber(first), tonumber(first) + tonumber(n) - 1 do
      local value = redis.call('HGET', held, text(fence))
      if value then
        local queue, entry = split(value)
        add(text(fence), lane_of(queue) or 0, entry, queue)
      end
    end
    return #out > 2 and out or nothing()
  end
end

local pause = redis.call('GET', P .. 'pause-all-workers')
if pause and string.lower(string.match(pause, '^%s*(.-)%s*$')) == 'true' then
  out[2] = 1
  return nothing()
end
local got = {}
local size = 0
for i = 6, #ARGV do
  while #got < max and size < bytes do
    local entry = redis.call('LPOP', P .. 'queue:' .. ARGV[i])
    if not entry then break end
    got[#got + 1] = {i, entry}
    size = size + #entry
  end
end
if #got == 0 then return nothing() end
local first = redis.call('INCRBY', P .. 'lade:fence', #got) - #got + 1
for k, job in ipairs(got) do
  local fence = text(first + k - 1)
  redis.call('HSET', held, fence, ARGV[job[1]] .. '\n' .. job[2])
  add(fence, job[1] - 6, job[2])
end
redis.call('HSET', held, 'take', seq .. ' ' .. text(first) .. ' ' .. #got)
return out
