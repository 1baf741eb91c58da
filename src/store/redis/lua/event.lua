-- event.lua - joined behind heed.lua: the streams of events (queue/event.h has the records)
--
-- meta.ev is how many events the queue's stream keeps, nil while it has none; meta.evn is the number of the last. What a call tells gathers in
-- told and is one entry of the stream, "<number of the last>-<how many>": d the records, a ms. An entry that cannot be written is left
-- out, and its numbers are not used: it fails no call (chasqui 57).
local EVENT = {WAITING = 1, ACTIVE = 2, COMPLETED = 3, FAILED = 4, DEAD = 6, CANCELLED = 7, PROGRESS = 8, STALLED = 9, DRAINED = 10,
               PAUSED = 11, RESUMED = 12, FIRED = 13}
local telling -- whether the queue at work has a stream
local tell_begin, tell_made, tell, kind_of, kind_at, tell_run, tell_end -- and EVENT.attempt_of, EVENT.tell_stretch, EVENT.tell_apart

do -- not all of it is for all: there can be 200 locals
local told, n_told, char

function tell_begin(on)
    telling, told, n_told = on and true or false, {}, 0
    char = string.char
end

local function number_of(v)
    v = floor(tonumber(v))
    local s = ''
    while v >= 128 do
        s = s .. char(v % 128 + 128)
        v = floor(v / 128)
    end
    return s .. char(v)
end

local function text_of(s)
    return number_of(#s) .. s
end

-- Records that are made already, of n events.
function tell_made(records, n)
    told[#told + 1] = records
    n_told = n_told + n
end

function tell(type, id, kind, attempt, value, reason)
    if telling then
        tell_made(char(type) .. text_of(id) .. text_of(kind or '') .. number_of(attempt or 0) .. number_of(value or 0) ..
                  text_of(reason or ''), 1)
    end
end

-- The kind in an envelope (lq_body_kind).
function kind_of(body)
    local a, c = byte(body or '', 3, 4)
    if not c or byte(body) ~= 1 or a < 144 or a > 159 then
        return ''
    elseif c >= 160 and c <= 191 then
        return #body >= c - 156 and sub(body, 5, c - 156) or ''
    elseif c == 217 then
        local last = 5 + (byte(body, 5) or 255)
        return #body >= last and sub(body, 6, last) or ''
    end
    return ''
end

-- The same for one with a record of its own.
function kind_at(P, id)
    return telling and kind_of(call('HGET', P .. 'jobs', id)) or ''
end

function EVENT.attempt_of(hist)
    return hist and #hist >= 6 and byte(hist, 3) + 256 * byte(hist, 4) + 1 or 1
end

-- Jobs [from, to) of a pack, all of one kind: one record.
local function tell_alike(type, name, from, to, kind, attempt)
    tell_made(char(type + 128) .. sub(name, 1, 24) .. number_of(from) .. number_of(to - from) .. text_of(kind) ..
              number_of(attempt) .. rep(char(0), to - from), to - from)
end

-- The kind of all jobs of a pack of n, from the beginning of its bodies; nil when that does not tell.
local function kind_of_all(head, n)
    return byte(head, 5) == 1 and kind_of(sub(head, 9 + 4 * n, 160 + 4 * n)) or nil
end

-- Jobs [from, to) of a pack that has n from `first` on: as one record when they are of one kind.
function EVENT.tell_stretch(type, name, first, n, from, to, text, attempt)
    local all = kind_of_all(text, n)
    if all then
        return tell_alike(type, name, from, to, all, attempt)
    end
    local ends = {struct.unpack('<' .. rep('I4', n), text, 9)}
    local function body_at(i)
        return 8 + 4 * n + (i > first and ends[i - first] or 0)
    end
    local function kind_in(i) -- a damaged one ends before what it says of itself does
        local begins = body_at(i)
        return kind_of(sub(text, begins + 1, min(begins + 300, body_at(i + 1) - 1)))
    end
    local at = body_at(from)
    local kind = kind_in(from)
    local size = #kind + (byte(text, at + 4) == 217 and 2 or 1)
    local tag, alike = sub(text, at + 4, at + 3 + size), true
    for k = from + 1 - first, to - 1 - first do
        at = 12 + 4 * n + ends[k]
        if sub(text, at, at + size - 1) ~= tag then
            alike = false
            break
        end
    end
    if alike then
        return tell_alike(type, name, from, to, kind, attempt)
    end
    for i = from, to - 1 do
        tell(type, id_at(name, i), kind_in(i), attempt)
    end
end

function tell_run(type, P, p, from, to, attempt)
    if telling then
        local v, key = p.v, bodies_key(P, p.name)
        local n = v[#v - 2] + v[#v - 1] - v[1]
        local all = kind_of_all(call('GETRANGE', key, 0, 160 + 4 * n), n)
        if all then
            tell_alike(type, p.name, from, to, all, attempt)
        else
            EVENT.tell_stretch(type, p.name, v[1], n, from, to, call('GET', key), attempt)
        end
    end
end

function tell_end(P)
    if n_told > 0 then
        local meta = call('HMGET', P .. 'meta', 'ev', 'evn')
        local last = tonumber(meta[2] or 0) + n_told
        local id = format('%.0f', last)
        local made = redis.pcall('XADD', P .. 'ev', 'MINID', '~', format('%.0f', max(0, last - tonumber(meta[1] or 0))),
                                 id .. '-' .. n_told, 'd', concat(told), 'a', format('%.0f', now))
        if type(made) ~= 'table' then
            call('HSET', P .. 'meta', 'evn', id)
            heed_one(P, '')
        end
    end
    tell_begin(false)
end

-- One event of another queue than that at work.
function EVENT.tell_apart(P, type, id, kind)
    local was, had, n = telling, told, n_told
    tell_begin(call('HEXISTS', P .. 'meta', 'ev') == 1)
    if telling then
        tell(type, id, kind or kind_at(P, id))
        tell_end(P)
    end
    telling, told, n_told = was, had, n
end
end
