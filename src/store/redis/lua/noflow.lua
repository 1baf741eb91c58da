-- noflow.lua - in place of flow.lua where no job is of a flow
local note_end, tell_flows, flow_retain
