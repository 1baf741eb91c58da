#!lua flags=allow-oom
-- What all scripts of the Resque store share. ARGV[1] is the namespace with its colon.
local P = ARGV[1]
local HELD = P .. 'lade:inflight:'
local ALIVE = P .. 'lade:workers'
local CRASHES = P .. 'lade:crashes'

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function text(n)
  return string.format('%d', n)
end

-- Year, month, day of days since 1970: the algorithm of H. Hinnant's paper on date algorithms.
local function civil(days)
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local d = doy - math.floor((153 * mp + 2) / 5) + 1
  local m = mp < 10 and mp + 3 or mp - 9
  return yoe + era * 400 + (m <= 2 and 1 or 0), m, d
end

local function format_time(form, ms)
  local s = math.floor(ms / 1000)
  local y, m, d = civil(math.floor(s / 86400))
  local r = s % 86400
  return string.format(form, y, m, d, math.floor(r / 3600), math.floor(r / 60) % 60, r % 60)
end

-- When the first job of resque-scheduler's is due, in ms, or -1.
local function first_due()
  local first = redis.call('ZRANGE', P .. 'delayed_queue_schedule', 0, 0, 'WITHSCORES')
  return first[2] and math.floor(tonumber(first[2])) * 1000 or -1
end

-- Alive and not reclaimed.
local function is_live(incarnation, now)
  local until_ms = redis.call('ZSCORE', ALIVE, incarnation)
  return until_ms and tonumber(until_ms) >= now
end

-- multi: each queue has a list of its own
local function push_failed(multi, queue, entry)
  if multi then
    redis.call('SADD', P .. 'failed_queues', queue .. '_failed')
    redis.call('RPUSH', P .. queue .. '_failed', entry)
  else
    redis.call('RPUSH', P .. 'failed', entry)
  end
end

-- "queue\nentry"
local function split(held)
  local at = string.find(held, '\n', 1, true)
  return string.sub(held, 1, at - 1), string.sub(held, at + 1)
end

-- The history of an entry that has killed workers, or ''.
local function history_of(entry)
  return redis.call('HGET', CRASHES, redis.sha1hex(entry)) or ''
end

-- Takes what Resque shows of a worker away; of an incarnation.
local function bury_id(id)
  redis.call('SREM', P .. 'workers', id)
  redis.call('HDEL', P .. 'workers:heartbeat', id)
  redis.call('DEL', P .. 'worker:' .. id, P .. 'worker:' .. id .. ':started', P .. 'stat:processed:' .. id,
    P .. 'stat:failed:' .. id)
end

local function bury(incarnation)
  local ids = redis.call('HGET', HELD .. incarnation, 'ids')
  for id in string.gmatch(ids or '', '[^\n]+') do bury_id(id) end
end
