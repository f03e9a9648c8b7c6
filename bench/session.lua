-- Cost of a transaction, and how it depends on the size of a session. Makes runs of 100 calls,
-- CALLS in all of each kind, all kinds in turn in each of 5 rounds. Prints as JSON the median of
-- the microseconds for each call, and of the rounds' ratios:
--   empty     a handler that does nothing, in a run without other fields
--   full      the same with a session, a policy that reads it, and a function for its event
--   dispatch  a handler that dispatches a value to an empty session
--   small     the same with 1 MB in the session
--   large     the same with LARGE MB: staging and commit cost only what is written
--   dropped   the same, but the call fails, and its changes are dropped
-- snapshot_us is the time of session:snapshot() for each MB that it writes, with 1 and with LARGE
-- MB.
--
--   agenthost bench/session.lua CALLS LARGE
local ah = require "agenthost"

local CALLS, LARGE = math.tointeger(tonumber(arg[1])), math.tointeger(tonumber(arg[2]))
local IN_ONE, ROUNDS = 100, 5

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

--- Returns the microseconds of one of CALLS / ROUNDS calls. `with` has more fields of the run.
local function measure(handler, with)
  local tool = ah.tool { name = "t", description = "Is called.", handler = handler }
  local runs, calls = math.max(1, CALLS // ROUNDS // IN_ONE), {}
  for i = 1, IN_ONE do
    calls[i] = { name = "t" }
  end
  collectgarbage()
  local before = os.clock()
  for _ = 1, runs do -- one message in each run, as the model reads the conversation, too
    local run = { model = ah.scripted { { calls = calls }, "done" }, tools = { tool },
      loop_detector = false, "go" }
    for field, value in pairs(with) do
      run[field] = value
    end
    assert(ah.run(run))
  end
  return (os.clock() - before) * 1e6 / (runs * IN_ONE)
end

local seen = 0

local function nothing() end

local function dispatching(session)
  local event = Event { n = 1 }
  return measure(function() session:dispatch(event) end, { session = session })
end

local none, small, large = session_of(0), session_of(1), session_of(LARGE)
local event = Event { n = 1 }

local KINDS = {
  empty = function() return measure(nothing, {}) end,
  full = function()
    return measure(nothing, { session = none, policies = { function(call)
      return call.name == "t" and "allow" or "deny"
    end }, on = { tool_invoked = function(e)
      seen = seen + (e.success and 1 or 0)
    end } })
  end,
  dispatch = function() return dispatching(none) end,
  small = function() return dispatching(small) end,
  large = function() return dispatching(large) end,
  dropped = function()
    return measure(function()
      large:dispatch(event)
      return nil, "no"
    end, { session = large })
  end,
}
local ORDER = { "empty", "full", "dispatch", "small", "large", "dropped" }

local function median(list)
  table.sort(list)
  return list[#list // 2 + 1]
end

local rounds = {}
for round = 0, ROUNDS do -- the first one warms up and does not count
  rounds[round] = {}
  for _, kind in ipairs(ORDER) do
    rounds[round][kind] = KINDS[kind]()
  end
end
assert(seen > 0, "the event came to nobody")

--- Returns the median of f over the rounds.
local function over(f)
  local values = {}
  for i, round in ipairs(rounds) do
    values[i] = f(round)
  end
  return median(values)
end

local function snapshot_us(session)
  local list = {}
  for i = 1, ROUNDS do
    local before = os.clock()
    local bytes = #session:snapshot()
    list[i] = (os.clock() - before) * 1e6 / (bytes / (1 << 20))
  end
  return median(list)
end

local figures = {
  large_mb = LARGE,
  full_ratio = over(function(r) return r.full / r.empty end),
  full_more_us = over(function(r) return r.full - r.empty end),
  large_ratio = over(function(r) return r.large / r.small end),
  snapshot_us = { small = snapshot_us(small), large = snapshot_us(large) },
}
for _, kind in ipairs(ORDER) do
  figures[kind .. "_us"] = over(function(r) return r[kind] end)
end
print(ah.json.encode(figures))
