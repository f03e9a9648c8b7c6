-- Cost of entities: one run in which a tool returns N of them with 10 methods each, and then
-- returns them once more. Measured for N / 10 and for N, since no cost may grow faster than N.
-- Prints as JSON: microseconds for each tool to discover and to bind it again, bytes of memory for
-- each tool, and the bytes that Lua's heap has grown at the end.
--
--   agenthost bench/entities.lua N
local ah = require "agenthost"

local N, METHODS = math.tointeger(tonumber(arg[1])), 10

local Customer = ah.entity { name = "Customer" }
for i = 1, METHODS do
  Customer:tool { name = "method" .. i, description = "Does what number " .. i .. " does.",
    params = { limit = "integer 1..100 = 10" }, handler = function(self) return self.id end }
end

--- Returns the bytes of the process, Lua's and the core's.
local function resident()
  for line in io.lines "/proc/self/status" do
    local kib = line:match "^VmRSS:%s*(%d+)"
    if kib then
      return tonumber(kib) * 1024
    end
  end
end

local function heap()
  for _ = 1, 6 do -- Lua shrinks its own tables by halves
    collectgarbage()
  end
  return collectgarbage "count" * 1024
end

local function instances(n)
  local list = {}
  for i = 1, n do
    list[i] = Customer { id = "c-" .. i, name = "Customer number " .. i }
  end
  return list
end

--- Runs once. Returns for each tool the microseconds from the end of the handler to the call's
-- event, when the entities are found and when they are found again; bytes of the process for each
-- tool; and bytes that are left.
local function measure(n)
  local began, took = 0, {}
  local find = ah.tool { name = "find", description = "Finds.", max_result = 1024,
    handler = function()
      local list = instances(n)
      began = os.clock()
      return list
    end }
  local base, before = heap(), resident()
  local most = 0
  assert(ah.run { discover = true, max_tools = n * METHODS + 1, hint = false, tools = { find },
    log = function() end,
    model = ah.scripted { { calls = { { name = "find" } } }, { calls = { { name = "find" } } },
      "done" },
    on = { tool_invoked = function()
      took[#took + 1] = os.clock() - began
      collectgarbage()
      most = math.max(most, resident())
    end }, "go" })
  local tools = n * METHODS
  return { discover_us = took[1] * 1e6 / tools, bind_us = took[2] * 1e6 / tools,
    bytes = (most - before) / tools, left = heap() - base }
end

local small = measure(N // 10)
local first = measure(N)
local large = measure(N) -- the registry was as large before, and does not grow again
print(ah.json.encode { n = N, methods = METHODS, discover_us = large.discover_us,
  bind_us = large.bind_us, bytes = first.bytes, left = large.left,
  small_us = small.discover_us })
