-- out.lua - joined behind lib.lua: messages from one slot to others (docs/adr/0053-flows-across-slots.md)
--
-- In slots (head.lua) a call touches keys of one queue. What it would do elsewhere it leaves as a message in that queue's outbox, in the
-- same atomic step, and whoever made the call ships it: the other slot applies it (far.lua), and then it goes (shipped.lua).
--
--   P outs         ZSET   destination -> number of the newest message; those that have some
--   P out:<queue>  LIST   "<number> <message, cmsgpack>", oldest first; of no queue: a flow that is no more, whose <ns>:flow:<id> goes
--   P outn         STRING number of the newest of all
--   P seen         HASH   queue of the sender -> number of the last that was applied here
--   P far          HASH   flow -> its home, of flows with steps here and their record elsewhere
--
-- Numbers are microseconds of the server, or one more than the last: they grow even when what was here is lost. A message is applied once,
-- as its number is noted with what it does.
function ops.out(P, dest, message)
    local number = max(now_us, tonumber(call('GET', P .. 'outn') or 0) + 1)
    local text = format('%.0f', number)
    call('RPUSH', P .. 'out:' .. dest, text .. ' ' .. (dest == '' and message[1] or cmsgpack.pack(message)))
    call('ZADD', P .. 'outs', text, dest)
    call('SET', P .. 'outn', text) -- and no time to live: forget.lua
end
