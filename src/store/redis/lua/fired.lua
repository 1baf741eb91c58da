-- fired.lua - joined behind put.lua where schedules fire

-- argv[at] jobs, whose put begins behind it: of those that were put, as the schedule's.
local function tell_fired(P, id, argv, at, refused)
    tell_begin(call('HEXISTS', P .. 'meta', 'ev') == 1)
    local n = tonumber(argv[at])
    at = at + 10
    for i = 1, n do
        if not refused[i] then
            tell(EVENT.FIRED, argv[at], kind_of(argv[at + 1]), 0, 0, id)
        end
        at = at + 2
    end
    tell_end(P)
end
