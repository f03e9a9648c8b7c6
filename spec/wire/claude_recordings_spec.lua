-- The claude protocol with recorded sessions of the real command: every line of the command is
-- read, each of its requests must be answered as the recorded host did, and each message and error
-- must come out. If no partial messages were recorded, they are made from the whole ones.
local ah = require "agenthost"
local server = require "support.server"

local ROOT = "../shared/wire/claude-cli/"

-- Recordings whose host differs from agenthost, and the difference.
local DIFFERENCES = {
  ["can-use-tool.jsonl"] = "the host denied our own tools; here the run does, when they are called",
  ["controls.jsonl"] = "one of its requests was unknown to the command, which is an error to us",
  ["interrupt-partial.jsonl"] = "the host went on after the interruption; we end the process",
  ["json-schema.jsonl"] = "the result is not the message's text; no output schema is given by us",
  ["tool-errors-permissions.jsonl"] = "likewise, and its results hold images",
}

local function contents(path)
  local f = io.open(path)
  if not f then
    return nil
  end
  local text = f:read "a"
  f:close()
  return text
end

local function lines_of(file)
  local list = {}
  for line in contents(ROOT .. file):gmatch "[^\n]+" do
    list[#list + 1] = server.decode(line)
  end
  return list
end

local function files()
  local list = {}
  local p <close> = assert(io.popen(("ls '%s' 2>/dev/null"):format(ROOT)))
  for name in p:lines() do
    local other = name:match "%.api%." or name:match "%.server%."
    list[#list + 1] = not other and name:match "^.*%.jsonl$" or nil
  end
  return list
end

--- Returns a text of a value that does not depend on the order of its members.
local function text_of(v)
  if type(v) ~= "table" or v == server.null then
    return server.encode(v)
  end
  local parts = {}
  for k, member in pairs(v) do
    parts[#parts + 1] = tostring(k) .. "=" .. text_of(member)
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end

-- -- our side: the protocol without a process ---------------------------------------------------

local talks = ah._module "agenthost.providers.claude_talk"
local Ours = {}
Ours.__index = Ours

local function new_ours()
  return setmetatable({ talk = talks.new(false) }, Ours)
end

function Ours:ask(request)
  self.talk:ask(ah.json.decode(request))
  return true
end

function Ours:fits(request)
  return self.talk:fits(ah.json.decode(request))
end

function Ours:interrupt()
  self.talk:interrupt()
end

function Ours:out()
  return self.talk:take_out()
end

--- Reads a line. Returns { event, hold, ended, warning }, or nil, message, status.
function Ours:line(line)
  local news, failure = { warning = "" }, nil
  local out = {
    line = function(_, event)
      news.event = type(event) == "table" and ah.json.encode(event) or event
    end,
    warn = function(_, text) news.warning = text end,
    fail = function(_, f) failure = f end,
  }
  local kind = ah.json.decode(line).type
  if (kind == "stream_event" or kind == "result") and not self.talk.listening then
    return { hold = true, warning = "" } -- read when the next message is asked for
  end
  local ok, what = pcall(self.talk.line, self.talk, line, out)
  if not ok then
    return nil, what.message, what.status
  elseif failure then
    return nil, failure.message, failure.status
  end
  news.ended = what == "calls" or what == "answer"
  return news
end

-- -- a recorded session: the host's knowledge, as our requests ----------------------------------

local Talk = {}
Talk.__index = Talk

local function new_talk(list)
  local t = setmetatable({ list = list, entries = {}, answers = {}, blocks = {}, partial = false,
    tools = server.array {}, told = {}, failed = nil }, Talk)
  for _, x in ipairs(list) do
    local m = x.msg
    local response = x.dir == "host->cli" and type(m) == "table" and m.response
    if response and response.request_id then
      t.answers[response.request_id] = response
    end
    local rpc = response and response.response and response.response.mcp_response
    if rpc and rpc.result and rpc.result.tools and #t.tools == 0 then
      t.tools = rpc.result.tools
    end
    t.partial = t.partial or type(m) == "table" and m.type == "stream_event"
    if x.dir == "cli->host" and m.type == "assistant" and not m.is_api_error_message then
      local id = m.message.id
      t.blocks[id] = t.blocks[id] or {}
      table.insert(t.blocks[id], m.message.content[1])
    end
  end
  return t
end

function Talk:request()
  local tools = server.array {}
  for i, tool in ipairs(self.tools) do
    tools[i] = { name = tool.name, description = tool.description, parameters = tool.inputSchema }
  end
  return server.encode { system = "You are a test.", tools = tools, entries = self.entries }
end

function Talk:ask()
  assert.is_true(self.claude:ask(self:request()))
  self:take_out()
end

--- Collects our answers so far, by the id of the command's request.
function Talk:take_out()
  for line in self.claude:out():gmatch "[^\n]+" do
    local m = server.decode(line)
    if m.type == "control_response" then
      local id = m.response.request_id
      assert.is_nil(self.told[id], "answered twice: " .. id)
      self.told[id] = m.response
    elseif m.type == "user" then
      self.user = m
    end
  end
end

function Talk:give(msg)
  local news, message, status = self.claude:line(server.encode(msg))
  self:take_out()
  if not news then
    self.failed, self.status = message, status
    return
  end
  if news.event then
    local e = server.decode(news.event)
    local block, delta = e.content_block or {}, e.delta or {}
    self.text = (e.type == "message_start" and "" or self.text) .. (block.text or delta.text or "")
    assert.is_nil(news.event:find('"name":"mcp__host__', 1, true))
  end
  if news.warning ~= "" then
    self.warnings = (self.warnings or 0) + 1
  end
  if news.ended then
    self.ended = (self.ended or 0) + 1
    if msg.type == "result" and not msg.structured_output then
      assert.equal(msg.result, self.text)
    end
    self:message_ended()
  end
end

--- Acts as the run does: makes the calls and answers them with the results of the recorded host.
function Talk:message_ended()
  local calls = self.calls
  self.calls = nil
  self.entries[#self.entries + 1] = { type = "assistant", content = server.array {},
    tool_calls = calls }
  if not calls then
    return
  end
  for _, c in ipairs(calls) do
    self.entries[#self.entries + 1] = { type = "tool_result", id = c.id, name = c.name,
      content = self:recorded_result(c.id), success = true }
  end
  assert.is_true(self.claude:fits(self:request()))
  self:ask()
end

function Talk:recorded_result(id)
  for _, x in ipairs(self.list) do
    local rpc = type(x.msg) == "table" and x.msg.request and x.msg.request.message
    local meta = type(rpc) == "table" and rpc.params and rpc.params._meta
    if meta and meta["claudecode/toolUseId"] == id then
      return self.answers[x.msg.request_id].response.mcp_response.result.content[1].text or "image"
    end
  end
  return "answered by the command itself"
end

function Talk:event(e)
  self:give { type = "stream_event", event = e, parent_tool_use_id = server.null }
end

--- Makes the events of a whole message.
function Talk:make_events(message)
  local blocks, calls = self.blocks[message.id], nil
  if self.partial or not blocks then
    return
  end
  self.blocks[message.id] = nil
  self:event { type = "message_start", message = { id = message.id, usage = message.usage } }
  for i, b in ipairs(blocks) do
    self:event { type = "content_block_start", index = i, content_block = b }
    self:event { type = "content_block_stop", index = i }
    if b.type == "tool_use" then
      calls = calls or {}
      calls[#calls + 1] = { id = b.id, name = b.name:gsub("^mcp__host__", ""), arguments = "{}" }
    end
  end
  self.calls = calls
  self:event { type = "message_delta",
    delta = { stop_reason = calls and "tool_use" or "end_turn" } }
  self:event { type = "message_stop" }
end

local function user_text(content)
  return type(content) == "string" and content or content[1].text
end

function Talk:play()
  self.claude = new_ours()
  for _, x in ipairs(self.list) do
    local m = x.msg
    if x.dir == "argv" then
      self.claude, self.entries = new_ours(), server.array {}
    elseif x.dir == "host->cli" and m.type == "user" then
      self.entries[#self.entries + 1] = { type = "user",
        content = { { type = "text", text = user_text(m.message.content) } } }
      self:ask()
    elseif x.dir == "host->cli" and m.request and m.request.subtype == "interrupt" then
      self.claude:interrupt()
    elseif x.dir == "cli->host" then
      if m.type == "assistant" and not m.is_api_error_message then
        self:make_events(m.message)
      end
      self:give(m)
    end
  end
end

-- -- comparisons -----------------------------------------------------------------------------

local function compare(file, id, ours, theirs)
  local a, b = ours.response or {}, theirs.response or {}
  if b.mcp_response and b.mcp_response.result and b.mcp_response.result.tools then
    assert.equal(b.mcp_response.id, a.mcp_response.id)
  elseif b.mcp_response and b.mcp_response.result and b.mcp_response.result.content then
    assert.equal(b.mcp_response.id, a.mcp_response.id)
    assert.equal(b.mcp_response.result.content[1].text, a.mcp_response.result.content[1].text, id)
  elseif b.mcp_response then
    assert.equal(b.mcp_response.id, a.mcp_response.id)
  elseif b.behavior and not DIFFERENCES[file] then
    assert.equal(b.behavior, a.behavior, file .. " " .. id)
    assert.equal(text_of(b.updatedInput), text_of(a.updatedInput))
  end
end

describe("recorded talks of the claude command", function()
  local found = files()
  if #found == 0 then
    pending "the recordings are not here"
  end
  for _, file in ipairs(found) do
    it(file, function()
      local t = new_talk(lines_of(file))
      t:play()
      local errors, ends = 0, 0
      for _, x in ipairs(t.list) do
        local result = type(x.msg) == "table" and x.msg.type == "result"
        errors = errors + (result and x.msg.is_error and 1 or 0)
        ends = ends + (result and not x.msg.is_error and 1 or 0)
      end
      if not DIFFERENCES[file] then
        assert.equal(t.failed == nil, errors == 0, t.failed)
        assert.is_true((t.ended or 0) >= ends)
      end
      for id, theirs in pairs(t.answers) do
        if not id:find "^host_" and t.told[id] then
          compare(file, id, t.told[id], theirs)
        elseif not DIFFERENCES[file] then
          assert.is_truthy(t.told[id], "not answered: " .. id)
        end
      end
    end)
  end

  it("errors of the API are told with their status", function()
    for file, want in pairs { ["api-error-400.jsonl"] = 400, ["api-error-401.jsonl"] = 401,
      ["api-error-529-exhausted.jsonl"] = 529 } do
      if contents(ROOT .. file) then
        local t = new_talk(lines_of(file))
        t:play()
        assert.equal(want, t.status)
        assert.is_truthy(t.failed:find(("API Error: %d"):format(want), 1, true), t.failed)
      end
    end
  end)
end)
