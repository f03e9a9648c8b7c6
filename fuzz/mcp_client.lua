-- Checks of fuzz_mcp_client.c: an input is the lines of a server. The first byte has options; $ID
-- in a line stands for the id of the request that waits, $LISTEN for that of the subscription, and
-- the line $END for the end of the server. All that is read is used. Nothing may raise, and an
-- error must be one of ours.
local ah = require "agenthost"
local content = ah._module "agenthost.protocols.mcp.client.content"
local message = ah._module "agenthost.protocols.mcp.message"

local MOST_USED = 4 -- tools and resources of a server that are used
local MOST_LINES = 200
local MOST_WORDS = 8192 -- bytes of an error and of a line in the log

-- Handlers of the tools that were made, by their names. They are called here, as lines that run in
-- a task are not counted.
local handlers = {}
local make = ah._outside_tool

function ah._outside_tool(fields)
  handlers[fields.name] = fields.handler
  return make(fields)
end

local ARGUMENTS = { {}, { text = "x", n = 1, flag = true }, { a = { b = { c = -1.5 } } } }

function ah.sleep()
end

function ah.log(_, text)
  assert(#text <= MOST_WORDS, "a line in the log is too long")
end

local function is_text(value)
  return type(value) == "string" and utf8.len(value) ~= nil
end

-- Checks that a call gave a value, or nil and an error.
local function check(value, err)
  if value ~= nil then
    return value
  end
  assert(err ~= nil, "neither a value nor an error")
  assert(is_text(err.code) and is_text(err.message) and #err.message <= MOST_WORDS, tostring(err))
  return nil
end

-- -- a transport ----------------------------------------------------------------------------------

local Feed = {}
Feed.__index = Feed

local function nothing()
end

Feed.agreed, Feed.note, Feed.listen, Feed.say = nothing, nothing, nothing, nothing
Feed.pause, Feed.leave, Feed.close, Feed.catch_up = nothing, nothing, nothing, nothing
Feed.may_end_early = true

function Feed:open()
  if not self.lines[self.at] then
    return nil, self.connection:failure("provider", "it has ended", { reason = "lost" })
  end
  return true
end

function Feed.send()
  return true
end

function Feed:lose(why)
  self.connection:ending()
  self.connection:over(self.connection:failure("provider", why, { reason = "lost" }))
end

function Feed:wait(pending)
  local line = self.lines[self.at]
  self.at = self.at + 1
  if not line or line == "$END" then
    return self:lose "it has ended"
  end
  line = line:gsub("%$ID", tostring(pending.id))
    :gsub("%$LISTEN", tostring(self.connection.listening or 0))
  self.connection:take(line)
end

-- -- what is read is used -------------------------------------------------------------------------

-- Answers each question of a server in the same way.
local person = {}

function person.ask(_, question)
  assert(is_text(question.question))
  return type(question.schema) == "table" or ah.object {}
end

function person.progress(_, ...)
  for _, value in ipairs { ... } do
    assert(type(value) == "number" and value >= 0 and value <= 1 or is_text(value))
  end
end

local function check_parts(parts)
  for _, part in ipairs(type(parts) == "table" and parts or { parts }) do
    assert(type(part) == "table" and part.type or is_text(part), "a part that is no part")
  end
end

local function use_tools(server)
  local tools = check(server:tools()) or {}
  local registry = ah.registry()
  for i, tool in ipairs(tools) do
    registry:register(tool)
    if i <= MOST_USED then
      local value, err = handlers[tool.name](ARGUMENTS[i % #ARGUMENTS + 1], person)
      assert(value ~= nil or check(nil, err) == nil)
    end
  end
  if tools[1] then
    local reply = check(registry:execute(tools[1].name, {}))
    assert(not reply or is_text(reply.content))
  end
end

local function use_resources(server)
  for i, one in ipairs(check(server:resources()) or {}) do
    assert(is_text(one.uri))
    if i <= MOST_USED then
      check(server:read(one.uri))
    end
  end
  check(server:templates())
end

local function use_prompts(server)
  for i, one in ipairs(check(server:prompts()) or {}) do
    assert(is_text(one.name))
    for _, said in ipairs(i <= MOST_USED and check(server:prompt(one.name, {})) or {}) do
      check_parts(said.content)
    end
  end
end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do
    if #lines == MOST_LINES then
      break
    end
    lines[#lines + 1] = line
  end
  return lines
end

return function(input)
  local options, lines = input:byte() or 0, lines_of(input:sub(2))
  local server = ah.mcp { name = "fuzz", resources = options & 2 ~= 0,
    command = options & 1 == 0 and "none" or nil, url = options & 1 ~= 0 and "http://x" or nil,
    prefix = options & 4 ~= 0 and "p" or nil, on_lost = options & 8 ~= 0 and "retry" or nil }
  server.connection.transport = setmetatable({ connection = server.connection, lines = lines,
    at = 1 }, Feed)
  use_tools(server)
  use_resources(server)
  use_prompts(server)
  for _, line in ipairs(lines) do
    local said = message.read((line:gsub("%$%u+", "1")))
    if said and said.kind == "result" then
      content.result(said.result)
    end
  end
end
