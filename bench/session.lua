-- What a call costs that changes a session, by how much the session holds: CALLS calls in
-- runs of 100, of a handler that does nothing, and of one that dispatches an event in a
-- session that holds nothing, 1 MB and LARGE MB. Prints microseconds a call as JSON.
--
--   agenthost bench/session.lua CALLS LARGE
local ah = require "agenthost"

local CALLS, LARGE = math.tointeger(tonumber(arg[1])), math.tointeger(tonumber(arg[2]))
local IN_ONE = 100

local Event = ah.type { name = "Event", fields = { n = "integer" } }
local Block = ah.type { name = "Block", fields = { text = "string" } }

local function session_of(megabytes)
  local s = ah.session { types = { Event, Block } }
  local block = Block { text = ("x"):rep(1 << 20) }
  for _ = 1, megabytes do
    s:dispatch(block)
    s[Event]:append { n = 0 }
  end
  return s
end

--- Of CALLS calls, the microseconds of one.
local function measure(session, handler)
  local tool = ah.tool { name = "t", description = "Is called.", handler = handler }
  local calls = {}
  for i = 1, IN_ONE do
    calls[i] = { name = "t" }
  end
  collectgarbage()
  local before = os.clock()
  for _ = 1, CALLS // IN_ONE do -- runs of one message: the model, too, reads what was said
    assert(ah.run { model = ah.scripted { { calls = calls }, "done" }, tools = { tool },
      session = session, loop_detector = false, "go" })
  end
  return (os.clock() - before) * 1e6 / CALLS
end

local function dispatching(session)
  local event = Event { n = 1 }
  return measure(session, function() session:dispatch(event) end)
end

local empty = ah.session { types = { Event, Block } }
measure(empty, function() end) -- warms up
print(ah.json.encode {
  empty_us = measure(empty, function() end), dispatch_us = dispatching(empty),
  small_us = dispatching(session_of(1)), large_us = dispatching(session_of(LARGE)),
  large_mb = LARGE,
})
