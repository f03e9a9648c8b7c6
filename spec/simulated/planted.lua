--- Faults that perform.lua and simulated.c must find, one for each of their judgements.
local ah = require "agenthost"

local planted = {}

function planted.open(_, guard) guard() end

function planted.twice(_, guard)
  local value = guard()
  getmetatable(value).__close(value)
  getmetatable(value).__close(value)
end

function planted.lost(world)
  world.sent, world.arrived[1] = 1, true
end

function planted.error()
  local task = ah.spawn(function() error("on no purpose", 0) end)
  pcall(task.await, task)
end

-- A background call of an agent that is not closed.
function planted.work()
  local tool = ah.tool { name = "work", description = "Works.", background = true,
    handler = function() ah.sleep(1e6) end }
  held_agent = ah.agent { tools = { tool }, -- luacheck: ignore
    model = ah.scripted { { calls = { { name = "work" } } }, "done" } }
  assert(held_agent:run "go") -- luacheck: ignore
end

function planted.memory(world)
  held_world = world -- luacheck: ignore
end

function planted.long() ah.sleep(1e6) end

-- The end of a task is reported twice.
function planted.ends(world)
  world.end_twice = true
  local task = ah.spawn(ah.yield)
  task:await()
end

return planted
