--- A scripted client of the Model Context Protocol, for specs of the server: it sends what a spec
-- says, and keeps every line that comes back.
--
--   local c <close> = mcp_client.start(agent)    a server of the agent over lines, in this process
--   c:send { ... }                               a message, or raw text
--   c:ask("tools/list", params)                  a request; returns its answer, decoded
--   c:next()                                     the next message of the server
--   c.before                                       messages that came before the last answer
local ah = require "agenthost"
local Server = ah._module "agenthost.protocols.mcp.server"
local serve = ah._module "agenthost.protocols.mcp.server.stdio"

local M = {}

local LONG = 60 -- seconds after which a server does not answer any more

M.META = "io.modelcontextprotocol/"

local Client = {}
Client.__index = Client

--- `_meta` of a request of revision 2026-07-28. more: further members.
function M.meta(capabilities, more)
  local meta = { [M.META .. "protocolVersion"] = "2026-07-28",
    [M.META .. "clientCapabilities"] = ah.object(capabilities or {}) }
  for key, value in pairs(more or {}) do
    meta[key] = value
  end
  return meta
end

function Client:send(m)
  if type(m) == "table" then
    m.jsonrpc = "2.0"
    m = ah.json.encode(m)
  end
  self.to:send(m)
end

--- Returns the next message of the server; nil at its end.
function Client:next()
  local m, err = ah.with_timeout(LONG, function()
    local line = self.from:receive()
    return line and assert(ah.json.decode(line)) or false
  end)
  assert(m ~= nil, err)
  return m or nil
end

--- Sends a request. Without `params._meta`, a modern client adds its own.
function Client:request(method, params, id)
  self.last = self.last + 1
  params = params or {}
  if self.capabilities and not params._meta then
    params._meta = M.meta(self.capabilities)
  end
  self:send { id = id or self.last, method = method, params = ah.object(params) }
  return id or self.last
end

--- Returns the answer to a request of this id.
function Client:answer(id)
  self.before = {}
  while true do
    local m = assert(self:next(), "the server has ended")
    if m.id == id and not m.method then
      return m
    end
    table.insert(self.before, m)
  end
end

function Client:ask(method, params)
  return self:answer(self:request(method, params))
end

--- Calls a tool. Returns the result, or nil and the error.
function Client:call(name, arguments, more)
  local params = { name = name, arguments = arguments }
  for key, value in pairs(more or {}) do
    params[key] = value
  end
  local m = self:ask("tools/call", params)
  return m.result, m.error
end

--- Begins a session of an older revision.
function Client:initialize(revision, capabilities)
  local m = self:ask("initialize", { protocolVersion = revision,
    capabilities = ah.object(capabilities or {}), clientInfo = { name = "spec", version = "1" } })
  self:send { method = "notifications/initialized" }
  return m.result
end

--- Ends the input, and waits for the end of the server.
function Client:close()
  self.to:close()
  self.task:await()
end
Client.__close = Client.close

--- Starts a server of the value over lines in this process. capabilities: those of a client of
-- revision 2026-07-28; false: an older client. fixed: as of the server's options.
function M.start(value, capabilities, fixed)
  local self = setmetatable({ to = ah.channel(1000), from = ah.channel(1000), last = 0,
    capabilities = capabilities == nil and {} or capabilities, before = {} }, Client)
  local input = {}
  function input.line()
    local line = self.to:receive()
    return line, line == "too long" or nil
  end
  self.task = ah.spawn(function()
    self.ended, self.why = serve(function(start)
      return Server.new(value, { name = "spec", version = "1", start = start, fixed = fixed })
    end, input, function(line)
      self.from:send(line)
    end)
    self.from:close()
  end)
  return self
end

return M
