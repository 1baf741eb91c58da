-- head.lua - joined in front of every script
local call = redis.call
local byte, sub, find, match, format = string.byte, string.sub, string.find, string.match, string.format
local floor, min, max = math.floor, math.min, math.max

local FORMAT = 2
local SLICE = 1000 -- even, for pairs
