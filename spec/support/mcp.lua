--- Starts substitutes for servers of MCP (support/fake_mcp.lua) in specs.
local ah = require "agenthost"

local FAKE = os.getenv "PWD" .. "/spec/support/fake_mcp.lua"
local mcp = {}
local open = {}

--- Returns the fields of ah.mcp for a server that plays `script` (Lua text), and a function that
-- returns what it has received so far, decoded.
function mcp.fields(script, more)
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "w"))
  file:write([[
    local function tool(name, more)
      local t = { name = name, description = "Does " .. name .. ".",
        inputSchema = { type = "object", properties = { text = { type = "string" } } } }
      for k, v in pairs(more or {}) do t[k] = v end
      return t
    end
    ]], script)
  open[#open + 1] = path
  open[#open + 1] = path .. ".log"
  local fields = { command = "lua5.4", args = { FAKE, path, path .. ".log" }, name = "fake" }
  for key, value in pairs(more or {}) do
    fields[key] = value
  end
  return fields, function()
    local log <close> = assert(io.open(path .. ".log"))
    local list = {}
    for line in log:lines() do
      list[#list + 1] = assert(ah.json.decode(line))
    end
    return list
  end
end

function mcp.server(script, more)
  local fields, log = mcp.fields(script, more)
  local server = ah.mcp(fields)
  open[#open + 1] = server
  return server, log
end

--- Ends the servers of a case and removes its files.
function mcp.clear()
  for _, item in ipairs(open) do
    if type(item) == "string" then
      os.remove(item)
    else
      item:close()
    end
  end
  open = {}
end

--- Returns the methods of the messages in a log, in order.
function mcp.methods(log)
  local list = {}
  for _, message in ipairs(log()) do
    list[#list + 1] = message.method
  end
  return list
end

--- Returns the number of messages of a log with that method.
function mcp.count(log, method)
  local n = 0
  for _, message in ipairs(log()) do
    n = n + (message.method == method and 1 or 0)
  end
  return n
end

--- Returns the results of a run that makes the calls, and its reply. more: fields of the run.
function mcp.calls(server, list, more)
  local fields = { model = ah.scripted { { calls = list }, "Done." }, tools = { server }, "Go." }
  for key, value in pairs(more or {}) do
    fields[key] = value
  end
  local reply = assert(ah.run(fields))
  local results = {}
  for _, message in ipairs(reply.messages) do
    results[#results + 1] = message.role == "tool" and message.content or nil
  end
  return results, reply
end

--- Returns the last message of a log with that method.
function mcp.last(log, method)
  local found
  for _, message in ipairs(log()) do
    found = message.method == method and message or found
  end
  return found
end

return mcp
