-- A thousand conversations at once, five turns each, over HTTP. They take as long as one of them.
--
--   echo 'return function() return { text = "Hello.", delay = 2 } end' >slow.lua
--   agenthost mock slow.lua                                # prints its address
--   OPENAI_BASE_URL=ADDRESS/v1 OPENAI_API_KEY=any \
--     agenthost --model openai/gpt-4o examples/thousand.lua [CONVERSATIONS] [TURNS]
local ah = require "agenthost"
local conversations, turns = ...
local people = {}
for i = 1, tonumber(conversations or 1000) do people[i] = "visitor " .. i end

local function talk(name)
  local agent <close> = assert(ah.agent { stream = true, system = "You greet people." })
  for turn = 1, tonumber(turns or 5) do
    assert(agent:run(("I am %s. This is message %d."):format(name, turn)))
  end
  return true
end

local from = ah.now()
local _, errors = ah.map(people, talk, { concurrency = #people, on_error = "collect" })
local first, failed = next(errors), 0
for _ in pairs(errors) do failed = failed + 1 end
print(("%d conversations, %d failed, %.2f s"):format(#people, failed, ah.now() - from))
if first then error(errors[first], 0) end
