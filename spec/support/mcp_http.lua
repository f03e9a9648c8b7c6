--- Servers of MCP over HTTP for specs, in this process: `on` has a function for each method, called
-- with the decoded message, the request and the response of ah.serve. It returns a result, or nil,
-- code, message and status for an error, or { http = RESPONSE }, or true after it has written one.
local ah = require "agenthost"

local mcp_http = {}
local open = {}

local MODERN = { supportedVersions = ah.array { "2026-07-28" }, resultType = "complete",
  capabilities = { tools = ah.object {} } }

--- Returns a tool without parameters, or with these.
function mcp_http.tool(name, properties)
  return { name = name, description = "Does " .. name .. ".",
    inputSchema = { type = "object", properties = properties } }
end

--- Returns the result of a call that says this text.
function mcp_http.says(text)
  return { resultType = "complete", content = ah.array { { type = "text", text = text } } }
end

local function answer(id, result, code, text)
  return { jsonrpc = "2.0", id = id, result = result,
    error = not result and { code = code, message = text } or nil }
end

--- Writes a message as an event of the response.
function mcp_http.event(response, fields, id)
  fields.jsonrpc = "2.0"
  return response:event { data = ah.json.encode(fields), id = id }
end

local function handle(on, seen, request, response)
  local message = request.body ~= "" and ah.json.decode(request.body) or {}
  local method = message.method or message.result and "answer" or request.method
  seen[#seen + 1] = { method = method, message = message, headers = request.headers,
    http = request.method }
  if not on[method] then
    if method == "server/discover" and on.modern ~= false then
      return { body = answer(message.id, MODERN) }
    end
    return message.method and message.id and { status = 400,
      body = answer(message.id, nil, -32601, "Method not found") }
      or { status = message.method and 202 or 405 }
  end
  local result, code, text, status = on[method](message, request, response)
  if result == true then
    return
  elseif type(result) == "table" and result.http then
    return result.http
  end
  return { status = not result and (status or 400) or nil,
    body = answer(message.id, result, code, text) }
end

--- Called for a request of HTTP to a server with these functions; it is put into the list `seen`.
-- Returns the response.
mcp_http.handle = handle

--- Returns the URL of a server, and the list of what it has received: { method, message, headers,
-- http } each.
function mcp_http.serve(on)
  local seen = {}
  local server = assert(ah.serve { on_request = function(request, response)
    return handle(on, seen, request, response)
  end })
  open[#open + 1] = server
  return server.url .. "/mcp", seen
end

--- Returns ah.mcp for such a server, the list and the URL.
function mcp_http.server(on, more)
  local url, seen = mcp_http.serve(on)
  local fields = { url = url, name = "far", timeout = 10 }
  for key, value in pairs(more or {}) do
    fields[key] = value
  end
  local server = ah.mcp(fields)
  open[#open + 1] = server
  return server, seen, url
end

--- Returns the fields of `on` for a server of an older revision with sessions.
function mcp_http.older(on)
  on.modern = false
  on.initialize = on.initialize or function(message)
    return { http = { headers = { ["Mcp-Session-Id"] = "s-1" }, body = answer(message.id,
      { protocolVersion = "2025-11-25", capabilities = { tools = ah.object {} },
        serverInfo = { name = "old", version = "1" } }) } }
  end
  on["notifications/initialized"] = function() return { http = { status = 202 } } end
  on.answer = on.answer or function() return { http = { status = 202 } } end
  return on
end

--- Returns the methods that a server has seen.
function mcp_http.methods(seen)
  local list = {}
  for i, one in ipairs(seen) do
    list[i] = one.method
  end
  return list
end

--- Ends the clients and the servers of a case.
function mcp_http.clear()
  for i = #open, 1, -1 do
    open[i]:close()
  end
  open = {}
end

return mcp_http
