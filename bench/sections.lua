-- Cost of a large prompt: 1,000 sections with 500 tools, in milliseconds of CPU.
--
--   agenthost bench/sections.lua [ROUNDS]
--
--   declare  declaring the sections and the prompt; the tools exist already
--   first    rendering with the tool list, with new parameters each time
--   again    the same without changes
local ah = require "agenthost"

local ROUNDS = math.tointeger(tonumber(arg[1] or 50))
local TOP, INNER = 100, 9 -- TOP * (1 + INNER) sections, every second one with a tool

local tools = {}
for i = 1, TOP * (1 + INNER) // 2 do
  tools[i] = ah.tool { name = "tool_" .. i, description = "The tool of number " .. i .. ".",
    params = { text = "string", count = "integer = 1" }, handler = function() end }
end

local function declare()
  local n = 0
  local function section(title, ...)
    n = n + 1
    return ah.section { title = title, params = { user = "string", level = "integer = 1" },
      template = "What ${user} may do at level ${level}, and how it is done.",
      tools = n % 2 == 0 and { tools[n // 2] } or nil, ... }
  end
  local list = {}
  for i = 1, TOP do
    local inner = {}
    for k = 1, INNER do
      inner[k] = section("Part " .. k)
    end
    list[i] = section("Chapter " .. i, table.unpack(inner))
  end
  return ah.prompt(list), n
end

local function milliseconds(rounds, f)
  local from = os.clock()
  for i = 1, rounds do
    f(i)
  end
  return (os.clock() - from) * 1e3 / rounds
end

local prompt, n
local declared = milliseconds(math.max(1, ROUNDS // 10), function() prompt, n = declare() end)
local rendered
local first = milliseconds(ROUNDS, function(i)
  rendered = prompt:render { user = "user " .. i }
  assert(#rendered.tools == #tools)
end)
local again = milliseconds(ROUNDS, function()
  assert(prompt:render({ user = "user " .. ROUNDS }).text == rendered.text)
end)
print(("%-24s %.1f ms to declare, %.1f ms rendered with tools, %.2f ms unchanged"):format(
  ("%d sections, %d tools"):format(n, #tools), declared, first, again))
