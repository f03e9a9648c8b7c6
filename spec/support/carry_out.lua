-- Runs support/attacks.lua in a program of its own and prints the number of attacks.
--
--   agenthost spec/support/carry_out.lua PLACE     lua5.4 spec/support/carry_out.lua PLACE
--
-- PLACE: `main`; or inside a handler: `handler`, where runs yield, or `coroutine`, where runs drive
-- the loop themselves.
local ah = require "agenthost"

package.path = "spec/?.lua;" .. package.path
local attacks = require "support.attacks"
local ahtest = require "ahtest"

local place = ...

local function carry_out()
  return attacks.carry_out_all(ahtest.work_limit)
end

if place ~= "main" then
  local inside = carry_out
  function carry_out()
    local function driving() return coroutine.wrap(inside)() end
    local tool = ah.tool { name = "all", description = "Attacks.", timeout = 300,
      handler = place == "handler" and inside or driving }
    local reply = assert(ah.run { tools = { tool }, "go",
      model = ah.scripted { { calls = { { name = "all" } } }, "done" } })
    return reply.messages[3].content
  end
end

print(carry_out())
