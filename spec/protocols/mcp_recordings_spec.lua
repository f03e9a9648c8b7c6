-- ah.mcp with servers that repeat what real servers were recorded to send: each recorded request
-- of a kind gets its recorded messages, up to the next request of the client.
local ah = require "agenthost"
local mcp = require "support.mcp"

local ROOT = os.getenv "PWD" .. "/../shared/wire/mcp/"

-- A server that looks for the first recorded request with the same method and tool, and sends what
-- the real one has sent behind it, with the id of our request.
local REPEAT = [[
local rows = {}
for line in io.lines(%q) do
  rows[#rows + 1] = require "support.server".decode(line)
end
local function find(message)
  for i, row in ipairs(rows) do
    local m = row.dir == "client->server" and type(row.msg) == "table" and row.msg or {}
    if m.method == message.method
      and (m.method ~= "tools/call" or m.params.name == message.params.name) then
      return i, m
    end
  end
end
local on = setmetatable({}, { __index = function()
  return function(message, api)
    local at, was = find(message)
    if not at then
      if message.id then api.fail(message, -32601, "Method not found") end
      return
    end
    for i = at + 1, #rows do
      local row = rows[i]
      if row.dir == "client->server" and row.msg.method then break end
      if row.dir == "server->client" then
        if row.msg.id == was.id and not row.msg.method then row.msg.id = message.id end
        api.say(row.msg)
      end
    end
  end
end })
return { era = "2025-11-25", on = on }
]]

local function is_there(name)
  local file <close> = io.open(ROOT .. name)
  return file ~= nil
end

local function results(name, calls)
  local server = mcp.server(REPEAT:format(ROOT .. name), { timeout = 20 })
  local tools = assert(server:tools())
  local list = {}
  for i, call in ipairs(calls) do
    list[i] = { name = call[1], arguments = call[2] }
  end
  local reply = assert(ah.run { tools = { server }, "Go.",
    model = ah.scripted { { calls = list }, "Done." } })
  local made = {}
  for _, message in ipairs(reply.messages) do
    made[#made + 1] = message.role == "tool" and message or nil
  end
  return made, tools
end

local function case(what, name, f)
  it(what, function()
    if not is_there(name) then
      pending "the recordings are not here"
      return
    end
    f(name)
  end)
end

describe("ah.mcp understands", function()
  after_each(mcp.clear)

  case("server-everything", "everything-stdio.jsonl", function(name)
    local made, tools = results(name, { { "echo", { message = "hi" } },
      { "get-structured-content", { location = "New York" } }, { "get-tiny-image", {} } })
    assert.is_true(#tools > 8, #tools)
    assert.is_truthy(made[1].content:find "^Echo: ")
    assert.is_true(made[2].success)
    assert.is_truthy(made[2].content:find "temperature")
    assert.are.equal(3, #made)
  end)

  case("server-filesystem", "filesystem-stdio.jsonl", function(name)
    local made, tools = results(name, { { "list_allowed_directories", {} } })
    assert.is_true(#tools > 8, #tools)
    assert.is_truthy(made[1].content:find "Allowed directories")
  end)

  case("server-memory", "memory-stdio.jsonl", function(name)
    local made, tools = results(name, { { "read_graph", {} } })
    assert.are.equal(9, #tools)
    assert.is_true(made[1].success)
  end)
end)
