-- head.lua - joined in front of everything
--
-- These files are joined in two ways (CMakeLists.txt). As a function library all of them once: helpers, then each op in a block of its
-- own; functions are made when the library is loaded, so that a call costs what it does and no more. And for servers that
-- refuse libraries one script for each op, of the helpers that it needs. So:
--
-- - An op's file ends with its function op_NAME(keys, argv). It calls begin(), or begin_bare() where the clock is not needed, before
--   anything else, and gives every variable outside of functions its first value there: the library stays between calls,
--   also those that ended by an error.
-- - While a library is loaded there are no globals, not even `string`: outside of functions use nothing but the language.
-- - Lua 5.1 allows 200 locals at a time and 60 upvalues a function. lua_test.c fails above 190 and prints how full each text is; helpers
--   of a few functions only stand in a block with them (`do`), those of one file in a table.
local call -- redis.call
local byte, sub, find, match, gmatch, format, rep, concat, sort
local floor, min, max, huge
local now_us, now -- of the server, when the call began

-- Those that other ops call: a file ends with ops.NAME = op_NAME; and what has no place among the 200. slots: true on a server of a
-- cluster, where a call touches keys of one queue only (script.c writes it here).
local ops = {slots = false}

local FORMAT = 4
local SLICE = 1000 -- even, for pairs

local function begin_bare()
    if not call then
        byte, sub, find, match, gmatch = string.byte, string.sub, string.find, string.match, string.gmatch
        format, rep, concat, sort = string.format, string.rep, table.concat, table.sort
        floor, min, max, huge = math.floor, math.min, math.max, math.huge
        call = redis.call
    end
end
