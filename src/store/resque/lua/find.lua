-- ARGV: namespace, 1 = each queue has a failed list, queue, then
--   "ids", id...                          -> {}, or {list, value} of each id
--   "dead" or "ready", limit, from, last  -> where it goes on or -1, 0, {id, list, value}...; last: id of the one before
--   "later", limit, timestamp, index      -> timestamp where it goes on or -1, index, {id, list, value}...
--   "active", limit, from                 -> as "dead", the list being the incarnation that holds it
-- and with "count" before "dead" or "later" how many there are in the place of them.
-- A failure is known by its failure_id, else by the digest of its bytes, as an entry of a queue; a delayed job by its time and digest; one that is
-- held by its lease. None of them walks over more than SCANNED values.
local multi, queue, what = ARGV[2] == '1', ARGV[3], ARGV[4]
local arg = 5
local count = what == 'count'
if count then what, arg = ARGV[5], 6 end
local failed = multi and queue .. '_failed' or 'failed'
local CHUNK, SCANNED = 500, 5000

local function decode(value)
  local fine, object = pcall(cjson.decode, value)
  return fine and type(object) == 'table' and object or {}
end

local function failure_id(value)
  if string.find(value, '"failure_id"', 1, true) then
    local id = decode(value).failure_id
    if type(id) == 'string' and #id <= 64 and string.match(id, '^[%w-]+$') then return id end
  end
  return 'f-' .. redis.sha1hex(value)
end

local function entry_id(value)
  return 'r-' .. redis.sha1hex(value)
end

-- As it stands in most; else by reading.
local function is_ours(value)
  if not string.find(value, queue, 1, true) and not string.find(value, '\\u', 1, true) then return false end
  return decode(value).queue == queue
end

local function any() return true end

local sources = {
  dead = {failed, failure_id, multi and any or is_ours},
  ready = {'queue:' .. queue, entry_id, any},
}

-- All at once, so that a list is walked once however many are looked for.
local function find_in(source, wanted, found)
  local list, id_of, ours = source[1], source[2], source[3]
  local at = 0
  while next(wanted) do
    local values = redis.call('LRANGE', P .. list, at, at + CHUNK - 1)
    if #values == 0 then return end
    for _, value in ipairs(values) do
      local id = id_of(value)
      if wanted[id] and ours(value) then
        found[wanted[id]] = {list, value}
        wanted[id] = nil
      end
    end
    at = at + CHUNK
  end
end

local function find_later(id)
  local at, digest = string.match(id, '^(%d+)-(%x+)$')
  if not at then return nil end
  for _, value in ipairs(redis.call('LRANGE', P .. 'delayed:' .. at, 0, -1)) do
    if redis.sha1hex(value) == digest and is_ours(value) then return {'delayed:' .. at, value} end
  end
end

local function find_active(id)
  local inc, fence = string.match(id, '^(%w+)%.(%d+)$')
  local held = inc and redis.call('HGET', HELD .. inc, fence)
  if not held then return nil end
  local of, entry = split(held)
  return of == queue and {inc, entry} or nil
end

if what == 'ids' then
  local out, failures, entries = {}, {}, {}
  for i = arg, #ARGV do
    local k, id = i - arg + 1, ARGV[i]
    local there = find_later(id) or find_active(id)
    out[k] = there or {}
    if not there then
      if string.sub(id, 1, 2) == 'r-' then entries[id] = k else failures[id] = k end
    end
  end
  find_in(sources.dead, failures, out)
  find_in(sources.ready, entries, out)
  return out
end

local limit = tonumber(ARGV[arg])
local source = sources[what]
if source then
  local list, id_of, ours = source[1], source[2], source[3]
  local from, last = tonumber(ARGV[arg + 1]), ARGV[arg + 2]
  -- What was removed before it has moved the last one we gave to the front.
  for i = from - 1, math.max(from - SCANNED, 0), -1 do
    local value = last ~= '' and redis.call('LINDEX', P .. list, i)
    if value and id_of(value) == last then
      from = i + 1
      break
    end
  end
  local out, seen, n = {-1, 0}, 0, 0
  while n < limit and seen < SCANNED do
    local values = redis.call('LRANGE', P .. list, from, from + CHUNK - 1)
    if #values == 0 then return count and {-1, 0, n} or out end
    for _, value in ipairs(values) do
      if n == limit then break end
      from, seen = from + 1, seen + 1
      if ours(value) then
        n = n + 1
        if not count then out[#out + 1] = {id_of(value), list, value} end
      end
    end
  end
  out[1] = from
  if count then out[3] = n end
  return out
end

if what == 'active' then
  local from, at = tonumber(ARGV[arg + 1]), 0
  local out = {-1, 0}
  for _, inc in ipairs(redis.call('ZRANGE', ALIVE, 0, -1)) do
    local all = redis.call('HGETALL', HELD .. inc)
    for k = 1, #all, 2 do
      if string.match(all[k], '^%d+$') then
        local of, entry = split(all[k + 1])
        if of == queue then
          at = at + 1
          if #out - 2 == limit then
            out[1] = at - 1
            return out
          end
          if at > from then out[#out + 1] = {inc .. '.' .. all[k], inc, entry} end
        end
      end
    end
  end
  return out
end

local first, index = ARGV[arg + 1], tonumber(ARGV[arg + 2])
local out, seen, n = {-1, 0}, 0, 0
for _, at in ipairs(redis.call('ZRANGEBYSCORE', P .. 'delayed_queue_schedule', first, '+inf')) do
  if at ~= first then index = 0 end
  local list = 'delayed:' .. at
  for _, value in ipairs(redis.call('LRANGE', P .. list, index, index + SCANNED - 1)) do
    if n == limit or seen >= SCANNED then
      out[1], out[2] = at, index
      if count then out[3] = n end
      return out
    end
    index, seen = index + 1, seen + 1
    if is_ours(value) then
      n = n + 1
      if not count then out[#out + 1] = {at .. '-' .. redis.sha1hex(value), list, value} end
    end
  end
end
if count then out[3] = n end
return out
