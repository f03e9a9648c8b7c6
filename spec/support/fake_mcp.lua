-- Replaces a server of MCP: speaks the protocol over stdin and stdout as its script says.
--
--   lua5.4 fake_mcp.lua SCRIPT LOG
--
-- SCRIPT is Lua that returns a table: era ("modern", or the revision of a handshake), tools (the
-- list of `tools/list`), call (functions by the name of a tool: function(arguments, message, api),
-- which returns a result, or nothing if it answers by itself), on (functions by method:
-- function(message, api)), capabilities, instructions, begin (function(api)). LOG gets
-- {"started":...} with the process and its environment, then each line that is received, unchanged.
package.path = arg[0]:match("^(.*)/support/") .. "/?.lua;" .. package.path
local server = require "support.server"

local encode, decode = server.encode, server.decode
local log = assert(io.open(arg[2], "a+"))
local starts = 1
for line in log:lines() do
  starts = starts + (line:find('"started":', 1, true) and 1 or 0)
end

local function note(line)
  log:write(line, "\n")
  log:flush()
end

local names = {}
for name in io.popen("env"):read("a"):gmatch "([%w_]+)=" do
  names[#names + 1] = name
end
local stat <close> = assert(io.open "/proc/self/stat")
note(encode { started = starts, pid = stat:read "n", env = server.array(names) })

local script = dofile(arg[1])
local era = script.era or "modern"
local api = { starts = starts, array = server.array, null = server.null }

function api.say(value)
  io.stdout:write(type(value) == "string" and value or encode(value), "\n")
  io.stdout:flush()
end

function api.reply(message, result)
  if era == "modern" then
    result.resultType = result.resultType or "complete"
  end
  api.say { jsonrpc = "2.0", id = message.id, result = result }
end

function api.fail(message, code, text, data)
  api.say { jsonrpc = "2.0", id = message.id, error = { code = code, message = text, data = data } }
end

function api.notify(method, params)
  api.say { jsonrpc = "2.0", method = method, params = params }
end

--- Returns the next message of the client; ends the process at the end of the input.
function api.read()
  local line = io.read "l"
  if not line then
    os.exit(0)
  end
  note(line)
  return decode(line)
end

--- Says that a list has changed: "tools", "resources" or "prompts".
function api.changed(list)
  api.notify(("notifications/%s/list_changed"):format(list or "tools"), era == "modern"
    and { _meta = { ["io.modelcontextprotocol/subscriptionId"] = api.subscription } } or nil)
end

local capabilities = script.capabilities or { tools = { listChanged = true } }
local on = {}

on["server/discover"] = function(message)
  if era ~= "modern" then
    api.fail(message, -32601, "Method not found")
    return
  end
  api.reply(message, { supportedVersions = server.array { "2026-07-28" },
    capabilities = capabilities, ttlMs = 0, cacheScope = "public",
    instructions = script.instructions,
    _meta = { ["io.modelcontextprotocol/serverInfo"] = { name = "fake", version = "1" } } })
end

on["initialize"] = function(message)
  if era == "modern" then
    api.fail(message, -32601, "Method not found")
    return
  end
  api.reply(message, { protocolVersion = era, capabilities = capabilities,
    instructions = script.instructions, serverInfo = { name = "fake", version = "1" } })
end

on["subscriptions/listen"] = function(message)
  api.subscription = message.id
  api.notify("notifications/subscriptions/acknowledged", {
    notifications = message.params.notifications,
    _meta = { ["io.modelcontextprotocol/subscriptionId"] = message.id } })
end

on["tools/list"] = function(message)
  api.reply(message, { tools = server.array(script.tools or {}), ttlMs = script.ttl or 0,
    cacheScope = "public" })
end

on["tools/call"] = function(message)
  local handler = (script.call or {})[message.params.name]
  if not handler then
    api.fail(message, -32602, "Unknown tool: " .. message.params.name)
    return
  end
  local result = handler(message.params.arguments, message, api)
  if type(result) == "string" then
    result = { content = server.array { { type = "text", text = result } } }
  end
  if result then
    api.reply(message, result)
  end
end

if script.begin then
  script.begin(api)
end
while true do
  local message = api.read()
  local handler = (script.on or {})[message.method] or on[message.method]
  if handler then
    handler(message, api)
  elseif message.id ~= nil and message.method then
    api.fail(message, -32601, "Method not found")
  end
end
