-- Cost of a server of MCP (ah.mcp), beside the same messages sent by hand over ah.process. Prints
-- as JSON: microseconds of a call and of a start, of the clock and of our processor time.
--
--   agenthost bench/mcp.lua CALLS STARTS
--   lua5.4 bench/mcp.lua server          the server; does as little as it can
--
-- A call by hand is one of a tool of Lua whose handler writes the message and reads the answer. A
-- start is a run without calls that starts the server and ends it; by hand, the messages come
-- before a run with the same tools in Lua. All are medians of rounds that take turns.
local META = "io.modelcontextprotocol/"
local TOOLS = 10

-- -- the server -----------------------------------------------------------------------------------

local function tool_text(i)
  return ('{"name":"tool%d","description":"Does something with a text and a number.",'
    .. '"inputSchema":{"type":"object","properties":{"text":{"type":"string"},'
    .. '"n":{"type":"integer"}},"required":["text"]}}'):format(i)
end

local function serve()
  local list = {}
  for i = 1, TOOLS do
    list[i] = tool_text(i)
  end
  local results = {
    ["server/discover"] = '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}',
    ["tools/list"] = '"ttlMs":60000,"tools":[' .. table.concat(list, ",") .. "]",
    ["tools/call"] = '"content":[{"type":"text","text":"done"}]',
  }
  io.stdout:setvbuf "full"
  for line in io.lines() do
    local id, method = line:match '"id":(%d+)', line:match '"method":"([%w/]+)"'
    io.write('{"id":', id, ',"jsonrpc":"2.0","result":{"resultType":"complete",', results[method],
      "}}\n")
    io.flush()
  end
end

if arg[1] == "server" then
  serve()
  return
end

-- -- measuring ------------------------------------------------------------------------------------

local ah = require "agenthost"

local CALLS, STARTS = math.tointeger(tonumber(arg[1])), math.tointeger(tonumber(arg[2]))
local ROUNDS, CALLS_OF_RUN = 7, 10
local SERVER = { command = "lua5.4", args = { arg[0], "server" } }

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

--- Calls each function of the table n times a round. Returns by their names the medians of the
-- microseconds of one, by the clock and of the processor.
local function compare(n, functions)
  local wall, cpu = {}, {}
  for _ = 1, ROUNDS do
    for name, f in pairs(functions) do
      wall[name], cpu[name] = wall[name] or {}, cpu[name] or {}
      collectgarbage()
      local from, used = ah.now(), os.clock()
      for _ = 1, n do
        f()
      end
      table.insert(cpu[name], (os.clock() - used) * 1e6 / n)
      table.insert(wall[name], (ah.now() - from) * 1e6 / n)
    end
  end
  for name in pairs(functions) do
    wall[name], cpu[name] = median(wall[name]), median(cpu[name])
  end
  return wall, cpu
end

-- A message as ah.mcp sends it.
local function request(id, method, given)
  local params = { name = given.name, arguments = given.arguments }
  params._meta = { [META .. "protocolVersion"] = "2026-07-28", [META .. "clientInfo"] = {
    name = "agenthost", version = ah.version }, [META .. "clientCapabilities"] = {
    elicitation = { form = ah.object {}, url = ah.object {} } } }
  return ah.json.encode { jsonrpc = "2.0", id = id, method = method, params = params } .. "\n"
end

local CALL = { name = "tool1", arguments = { text = "some text", n = 1 } }

local function start_by_hand()
  local process = assert(ah.process(SERVER))
  for id, method in ipairs { "server/discover", "tools/list" } do
    process:write(request(id, method, {}))
    assert(process:line { timeout = 10 })
  end
  return process
end

--- Makes a run whose model makes n calls of the tool, one an answer.
local function run(n, tools)
  local turns = {}
  for i = 1, n do
    turns[i] = { calls = { CALL } }
  end
  turns[n + 1] = "Done."
  assert(ah.run { model = ah.scripted(turns), tools = tools, loop_detector = false, "Go." })
end

local function by_hand_tool(i, handler)
  return ah.tool { name = "tool" .. i, description = "Does something with a text and a number.",
    params = { text = "string", n = "integer?" }, handler = handler }
end

local result = {}

local function note(kind, per, wall, cpu)
  for name in pairs(wall) do
    result[("%s_%s_us"):format(kind, name)] = wall[name] / per
    result[("%s_%s_cpu_us"):format(kind, name)] = cpu[name] / per
  end
  result[kind .. "_ours_us"] = (wall.mcp - wall.by_hand) / per
  result[kind .. "_ours_cpu_us"] = (cpu.mcp - cpu.by_hand) / per
end

local tools = {}
for i = 1, TOOLS do
  tools[i] = by_hand_tool(i, function() end)
end

local function start_mcp()
  local server <close> = ah.mcp(SERVER)
  run(0, { server })
end

-- The first server of a process, whose client is loaded meanwhile.
run(0, tools)
local from = os.clock()
start_mcp()
result.first_mcp_cpu_us = (os.clock() - from) * 1e6

do
  local process <close> = start_by_hand()
  local server <close> = ah.mcp(SERVER)
  local by_hand = { by_hand_tool(1, function(args)
    process:write(request(7, "tools/call", { name = "tool1", arguments = args }))
    return ah.json.decode((process:line { timeout = 10 })).result.content[1].text
  end), table.unpack(tools, 2) }
  note("call", CALLS_OF_RUN, compare(CALLS // CALLS_OF_RUN, {
    mcp = function() run(CALLS_OF_RUN, { server }) end,
    by_hand = function() run(CALLS_OF_RUN, by_hand) end,
  }))
end

note("start", 1, compare(STARTS, {
  mcp = start_mcp,
  by_hand = function()
    local process = start_by_hand()
    run(0, tools)
    process:close_input()
    process:wait { timeout = 10, discard = true }
  end,
}))

local fields = {}
for name, value in pairs(result) do
  fields[#fields + 1] = ('"%s":%.1f'):format(name, value)
end
table.sort(fields)
print("{" .. table.concat(fields, ",") .. "}")
