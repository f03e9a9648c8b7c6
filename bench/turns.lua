-- The task of `raw loop` as a script: CONVERSATIONS of TURNS tool calls with the model that httpd
-- plays, with TOOLS declared tools. Prints the same figures; "late" is the part after the first
-- TURNS / 2 calls of a conversation.
--
--   agenthost bench/turns.lua BASE_URL CONVERSATIONS TURNS TOOLS
local ah = require "agenthost"

local url = arg[1]
local conversations = math.tointeger(tonumber(arg[2]))
local turns = math.tointeger(tonumber(arg[3]))
local n_tools = math.tointeger(tonumber(arg[4]))

local calls
local half_wall, half_cpu
local late_wall, late_cpu = 0, 0

local function mark_half()
  half_wall, half_cpu = ah.now(), os.clock()
end

local add = ah.tool { name = "add", description = "Adds two integers.",
  params = { a = "integer", b = "integer" },
  handler = function(args)
    calls = calls + 1
    if calls == turns // 2 then
      mark_half()
    end
    return args.a + args.b
  end }

local note = ah.tool { name = "note", description = "Keeps a note.",
  params = { text = "string" },
  handler = function() end }

local tools = { add, note }
for i = 3, n_tools do
  tools[i] = ah.tool { name = "look_up_" .. i,
    description = ("Looks up the records of kind %d."):format(i),
    params = { city = "string: the city, as people call it", limit = "integer?",
      since = "string?: the first day, as 2024-02-29", open = "boolean?" },
    handler = function() end }
end

local function converse()
  calls = 0
  mark_half()
  assert(ah.run { model = "openai/bench", base_url = url, api_key = "bench",
    tools = tools, max_tools = 1000, max_iterations = turns + 2, "go" })
  late_wall = late_wall + ah.now() - half_wall
  late_cpu = late_cpu + os.clock() - half_cpu
  assert(calls == turns, "the server's --turns is another than TURNS")
end

local start_wall, start_cpu = ah.now(), os.clock()
for _ = 1, conversations do
  converse()
end
local wall, cpu = ah.now() - start_wall, os.clock() - start_cpu

print(('{"wall_ms":%.3f,"cpu_ms":%.3f,"late_wall_ms":%.3f,"late_cpu_ms":%.3f}'):format(
  wall * 1e3, cpu * 1e3, late_wall * 1e3, late_cpu * 1e3))
