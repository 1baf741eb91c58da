-- One trip of a worker: what it has done, and what it gets for it.
-- ARGV: namespace, 1 = a missing lease was settled before, 1 = each queue has a failed list, n, then n times: action, incarnation, fence, Resque id or '', before, after
--   c  done     f  failed: before .. entry .. after     F  failed: before is the whole     h  back to the head; after: history
--   b  begun    an id behind a ~ counts, and its worker:<id> stays as it is
-- and for a take: incarnation, number of the take, max, bytes, head and tail of its Resque ids, "n n ..": the slots that are free then,
-- and for each queue: its name, and the JSON of worker:<id> up to the payload
-- {{0 or 1 (stale) for each}, take}; take is {1}: not live, or {0, paused, {fence, lane, shown, entry, history, queue when it may be none
-- of the lanes}...}; with nothing taken, at its end when the first delayed job is due or -1, and now, both in ms
-- The k-th entry is for the k-th free slot, those beyond have none. shown: worker:<id> says so; else the worker is to tell it, when it is a job.
local lenient, multi, n_settles = ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4])
local crashed = redis.call('EXISTS', CRASHES) == 1
local CHUNK = 1000 -- arguments of one command; unpack has a limit
local SHOW_MAX = 4096
local TILDE = string.byte('~')

local function each_chunk(list, fn)
  for from = 1, #list, CHUNK do fn(from, math.min(from + CHUNK - 1, #list)) end
end

-- What the leases hold, by worker and fence: a read for each worker, which mostly is one.
local function read_held()
  local fences, values = {}, {}
  for i = 5, 4 + 6 * n_settles, 6 do
    local of = fences[ARGV[i + 1]]
    if not of then
      of = {}
      fences[ARGV[i + 1]] = of
    end
    of[#of + 1] = ARGV[i + 2]
  end
  for inc, list in pairs(fences) do
    local found = {}
    each_chunk(list, function(from, to)
      for k, value in ipairs(redis.call('HMGET', HELD .. inc, unpack(list, from, to))) do
        found[list[from + k - 1]] = value
      end
    end)
    values[inc] = found
  end
  return values
end

local shown = {} -- keys of slots that are free now

local function settle_all()
  local values = read_held()
  local out, done = {}, {} -- done: fields to drop, by worker
  local processed, failed, n_processed, n_failed = {}, {}, 0, 0

  local function settle(action, inc, fence, id, before, after)
    local value = values[inc][fence]
    if not value then return lenient and 0 or 1 end
    if action == 'b' then
      redis.call('HSET', HELD .. inc, 'b' .. fence, 1)
      return 0
    end
    values[inc][fence] = nil
    local is_shown = id ~= '' and string.byte(id) ~= TILDE
    if id ~= '' and not is_shown then id = string.sub(id, 2) end
    local gone = done[inc]
    if not gone then
      gone = {}
      done[inc] = gone
    end
    gone[#gone + 1] = fence
    gone[#gone + 1] = 'b' .. fence
    if action == 'h' then
      local queue, entry = split(value)
      redis.call('SADD', P .. 'queues', queue)
      redis.call('LPUSH', P .. 'queue:' .. queue, entry)
      if after ~= '' then redis.call('HSET', CRASHES, redis.sha1hex(entry), after) end
    else
      if action ~= 'c' then
        local queue, entry = split(value)
        push_failed(multi, queue, action == 'f' and before .. entry .. after or before)
        n_failed = n_failed + 1
        failed[id] = (failed[id] or 0) + 1
      end
      n_processed = n_processed + 1
      processed[id] = (processed[id] or 0) + 1
      if crashed then
        local _, entry = split(value)
        redis.call('HDEL', CRASHES, redis.sha1hex(entry))
      end
    end
    if is_shown then shown[#shown + 1] = P .. 'worker:' .. id end
    return 0
  end

  for i = 5, 4 + 6 * n_settles, 6 do
    out[#out + 1] = settle(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
  end
  for inc, gone in pairs(done) do
    each_chunk(gone, function(from, to) redis.call('HDEL', HELD .. inc, unpack(gone, from, to)) end)
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
end

-- The same for a job that is simply done, which is what most trips of a worker with one slot bring.
local function settle_one()
  local inc, fence, id = ARGV[6], ARGV[7], ARGV[8]
  if redis.call('HDEL', HELD .. inc, fence, 'b' .. fence) == 0 then return {lenient and 0 or 1} end
  redis.call('INCRBY', P .. 'stat:processed', 1)
  if string.byte(id) == TILDE then
    redis.call('INCRBY', P .. 'stat:processed:' .. string.sub(id, 2), 1)
  elseif id ~= '' then
    redis.call('INCRBY', P .. 'stat:processed:' .. id, 1)
    shown[1] = P .. 'worker:' .. id
  end
  return {0}
end

-- Up to max entries of the queues in their order, and no more once `bytes` are reached: {index in ARGV, entry}...
local function pop(first_queue, max, bytes)
  local got, size, largest, step = {}, 0, 1, 16
  for i = first_queue, #ARGV, 2 do
    local key = P .. 'queue:' .. ARGV[i]
    while #got < max and size < bytes do
      local want = math.min(max - #got, step, CHUNK)
      local entries = redis.call('LPOP', key, want)
      if not entries then break end
      for _, entry in ipairs(entries) do
        got[#got + 1] = {i, entry}
        size = size + #entry
        largest = math.max(largest, #entry)
      end
      while #got > 1 and size - #got[#got][2] >= bytes do -- larger than those before: too many
        local last = table.remove(got)
        size = size - #last[2]
        redis.call('LPUSH', key, last[2])
      end
      if #entries < want then break end
      step = math.max(math.floor((bytes - size) / largest), 1)
    end
  end
  return got
end

local function take(at)
  local inc, seq, max, bytes = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local head, tail, next_slot = P .. 'worker:' .. ARGV[at + 4], ARGV[at + 5], string.gmatch(ARGV[at + 6], '%d+')
  local held, queues = HELD .. inc, at + 7
  local state = redis.call('HMGET', held, 'until', 'take')
  if not state[1] or tonumber(state[1]) < now_ms() then return {1} end
  local out, told, fields = {0, 0}, {}, {}
  local function add(fence, i, entry, queue)
    local slot, is_shown = next_slot(), 0
    -- What is no JSON is not told, since whoever reads it would stumble; what is long is not looked through here.
    if slot and i and #entry <= SHOW_MAX and pcall(cjson.decode, entry) then
      told[#told + 1] = head .. slot .. tail
      told[#told + 1] = ARGV[i + 1] .. entry .. '}'
      is_shown = 1
    end
    out[#out + 1] = {fence, i and (i - queues) / 2 or 0, is_shown, entry, crashed and history_of(entry) or '', queue}
  end
  local function tell()
    if #told == 2 then
      redis.call('SET', told[1], told[2]) -- as Ruby's
    else
      each_chunk(told, function(a, b) redis.call('MSET', unpack(told, a, b)) end)
    end
    for k = 1, #told, 2 do told[told[k]] = true end
    local free = {}
    for _, key in ipairs(shown) do
      if not told[key] then free[#free + 1] = key end
    end
    shown = free
    return out
  end

  local function lane_of(queue) -- nil: it is none of them any more
    for i = queues, #ARGV, 2 do
      if ARGV[i] == queue then return i end
    end
  end
  local function nothing()
    out[3] = first_due()
    out[4] = now_ms()
    return out
  end

  -- The reply to this very take was lost: the same again.
  local number, first, n = string.match(state[2] or '', '^(%d+) (%d+) (%d+)$')
  if number == seq then
    for fence = tonumber(first), tonumber(first) + tonumber(n) - 1 do
      local value = redis.call('HGET', held, text(fence))
      if value then
        local queue, entry = split(value)
        add(text(fence), lane_of(queue), entry, queue)
      end
    end
    return #out > 2 and tell() or nothing()
  end

  local pause = redis.call('GET', P .. 'pause-all-workers')
  if pause and string.lower(string.match(pause, '^%s*(.-)%s*$')) == 'true' then
    out[2] = 1
    return nothing()
  end
  local got = pop(queues, max, bytes)
  if #got == 0 then return nothing() end
  local from = redis.call('INCRBY', P .. 'lade:fence', #got) - #got
  for k, job in ipairs(got) do
    local fence = text(from + k)
    fields[#fields + 1] = fence
    fields[#fields + 1] = ARGV[job[1]] .. '\n' .. job[2]
    add(fence, job[1], job[2])
  end
  fields[#fields + 1] = 'take'
  fields[#fields + 1] = seq .. ' ' .. text(from + 1) .. ' ' .. #got
  each_chunk(fields, function(a, b) redis.call('HSET', held, unpack(fields, a, b)) end)
  return tell()
end

local settled = {}
if n_settles == 1 and ARGV[5] == 'c' and not crashed then
  settled = settle_one()
elseif n_settles > 0 then
  settled = settle_all()
end
local at = 5 + 6 * n_settles
local taken = #ARGV >= at and take(at) or {}
each_chunk(shown, function(from, to) redis.call('DEL', unpack(shown, from, to)) end)
return {settled, taken}
