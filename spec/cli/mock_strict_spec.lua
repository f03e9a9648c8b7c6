-- Requests that `agenthost mock` refuses, as strict providers do: each is a valid request with one
-- fault in it. With --lenient the same requests are answered.
local ahtest = require "ahtest"
local mock = require "support.mock"
local program = mock.program()
local server = require "support.server"

local NIL = {}

local function started(how)
  local path = os.tmpname()
  local f = assert(io.open(path, "w"))
  f:write 'return function() return "ok" end'
  f:close()
  program.start(path, "all", how, "")
  os.remove(path)
end

-- -- valid requests ----------------------------------------------------------------------------

local function schema()
  return { type = "object", properties = { a = { type = "string" } }, required = { "a" } }
end

local FINE = {}

function FINE.openai()
  return { model = "m", tools = { { type = "function",
    ["function"] = { name = "f", description = "d", parameters = schema() } } },
    messages = { { role = "system", content = "s" }, { role = "user", content = "u" },
      { role = "assistant", content = server.null, tool_calls = { { id = "c1", type = "function",
        ["function"] = { name = "f", arguments = '{"a":"x"}' } } } },
      { role = "tool", tool_call_id = "c1", content = "r" } } }
end

function FINE.responses()
  return { model = "m", instructions = "s",
    tools = { { type = "function", name = "f", parameters = schema(), strict = false } },
    input = { { role = "user", content = "u" },
      { type = "function_call", call_id = "c1", name = "f", arguments = '{"a":"x"}' },
      { type = "function_call_output", call_id = "c1", output = "r" } } }
end

function FINE.anthropic()
  return { model = "m", max_tokens = 100, tools = { { name = "f", input_schema = schema() } },
    messages = { { role = "user", content = "u" },
      { role = "assistant", content = { { type = "text", text = "t" },
        { type = "tool_use", id = "c1", name = "f", input = { a = "x" } } } },
      { role = "user", content = { { type = "tool_result", tool_use_id = "c1", content = "r" },
        { type = "text", text = "go on" } } } } }
end

function FINE.gemini()
  return { tools = { { functionDeclarations = { { name = "f", parameters = schema() } } } },
    contents = { { role = "user", parts = { { text = "u" } } },
      { role = "model", parts = { { functionCall = { name = "f", args = { a = "x" } } } } },
      { role = "user", parts = { { functionResponse = { name = "f",
        response = { output = "r" } } } } } } }
end

function FINE.ollama()
  return { model = "m", stream = false, tools = { { type = "function",
    ["function"] = { name = "f", parameters = schema() } } },
    messages = { { role = "user", content = "u" },
      { role = "assistant", content = "", tool_calls = { { ["function"] = { name = "f",
        arguments = { a = "x" } } } } }, { role = "tool", content = "r", tool_name = "f" } } }
end

local TARGET = { openai = "/v1/chat/completions", responses = "/v1/responses",
  anthropic = "/v1/messages", gemini = "/v1beta/models/m:generateContent", ollama = "/api/chat" }

-- -- faults: a place, its new value, and words of the refusal ---------------------------------

local EMPTY = server.array {}

local FAULTS = {
  openai = {
    { "model", NIL, "Missing required parameter: 'model'" },
    { "messages", EMPTY, "empty array" },
    { "messages", NIL, "Missing required parameter: 'messages'" },
    { "messages.2.role", "robot", "Invalid value: 'robot'" },
    { "messages.2.content", 5, "messages[1].content" },
    { "messages.2.content", { { type = "txt", text = "u" } }, "Invalid value: 'txt'" },
    { "messages.4", NIL, "did not have response messages: c1" },
    { "messages.4.tool_call_id", "c2", "must be a response to a preceeding message" },
    { "messages.4.tool_call_id", NIL, "messages[3].tool_call_id" },
    { "messages.4", { role = "user", content = "x" }, "c1" },
    { "messages.3.tool_calls.1.function.arguments", { a = 1 }, "expected string" },
    { "messages.3.tool_calls", EMPTY, "empty array" },
    { "tools", EMPTY, "empty array" },
    { "tools.1.function.name", "a b", "^[a-zA-Z0-9_-]{1,64}$" },
    { "tools.1.function.name", ("n"):rep(65), "{1,64}" },
    { "tools.1.function.parameters.type", "array", "type: \"array\"" },
    { "tools.1.function.parameters.type", NIL, "got 'type: None'" },
    { "tools.1.function.parameters.properties.a", { type = "array" }, "missing items" },
    { "tools.1.function.parameters.required", "a", "'required' must be an array" },
    { "tools.1.function.strict", true, "'additionalProperties' is required" },
    { "tools.1.type", "func", "Supported values" },
    { "stream_options", { include_usage = true }, "only allowed when 'stream'" },
    { "tool_choice", { type = "allowed_tools", allowed_tools = { mode = "auto", tools = {
      { type = "function", ["function"] = { name = "f" } } } } }, nil },
    { "tool_choice", { type = "allowed_tools", allowed_tools = { mode = "auto", tools = {
      { type = "function", ["function"] = { name = "g" } } } } }, "Tool choice 'g' not found" },
    { "tool_choice", { type = "allowed_tools", allowed_tools = { mode = "auto", tools = {
      { type = "function", name = "f" } } } }, "tools[0].function" },
    { "tool_choice", { type = "allowed_tools", mode = "auto", tools = {
      { type = "function", name = "f" } } }, "'tool_choice.allowed_tools'" },
  },
  responses = {
    { "input", NIL, "'input'" },
    { "input", EMPTY, "empty array" },
    { "input.1.role", "robot", "Invalid value: 'robot'" },
    { "input.2.type", "call", "Invalid value: 'call'" },
    { "input.3", NIL, "No tool output found for function call c1" },
    { "input.2", NIL, "No tool call found for function call output with call_id c1" },
    { "tools", EMPTY, "empty array" },
    { "tools.1.name", NIL, "tools[0].name" },
    { "tools.1.function", { name = "f" }, nil },
    { "tools.1.parameters.type", "string", "type: \"object\"" },
    { "previous_response_id", "resp_0", "not found" },
    { "tool_choice", { type = "allowed_tools", mode = "required", tools = {
      { type = "function", name = "f" }, { type = "web_search" } } }, nil },
    { "tool_choice", { type = "allowed_tools", mode = "auto", tools = {
      { type = "function", name = "g" } } }, "Tool choice 'g' not found" },
    { "tool_choice", { type = "allowed_tools", mode = "auto", tools = EMPTY }, "empty array" },
    { "tool_choice", { type = "allowed_tools", mode = "none", tools = {
      { type = "function", name = "f" } } }, "Invalid value: 'none'" },
    { "tool_choice", { type = "allowed_tools", mode = "auto", tools = { "f" } },
      "expected an object" },
  },
  anthropic = {
    { "max_tokens", NIL, "max_tokens: Field required" },
    { "max_tokens", "9", "max_tokens: Input should be a valid integer" },
    { "messages", EMPTY, "at least one message" },
    { "messages.1.role", "system", "first message must use" },
    { "messages.2.role", "tool", "Input should be 'user', 'assistant'" },
    { "messages.1.content", "", "non-empty" },
    { "messages.3.content.2.text", " ", "non-whitespace" },
    { "messages.3.content.1.tool_use_id", "c2", "unexpected `tool_use_id`" },
    { "messages.3", NIL, "without `tool_result` blocks immediately after: c1" },
    { "messages.3.content", "u", "without `tool_result` blocks" },
    { "messages.3.content.1", { type = "text", text = "first" }, "without `tool_result` blocks" },
    { "messages.2.content.2.id", "c.1", "'^[a-zA-Z0-9_-]+$'" },
    { "messages.2.content.2.input", "{}", "Input should be a valid object" },
    { "tools.1.name", "a b", "{1,128}" },
    { "tools.1.input_schema", NIL, "input_schema: Field required" },
    { "tools.1.input_schema.type", "array", "type: \"object\"" },
    { "tools.1.defer_loading", true, "At least one tool" },
    { "tool_choice", { type = "required" }, "Input should be 'auto'" },
    { "tool_choice", { type = "tool", name = "g" }, "Tool 'g' not found" },
    { "thinking", { type = "enabled", budget_tokens = 10 }, "1024" },
    { "thinking", { type = "enabled", budget_tokens = 2000 }, "must be greater than" },
    { "messages.4", { role = "system", content = { { type = "tool_addition",
      tool = { type = "tool_reference", name = "f" } } } }, "beta header" },
  },
  gemini = {
    { "contents", EMPTY, "contents is not specified" },
    { "contents", NIL, "'contents'" },
    { "contents.1.role", "system", "valid role" },
    { "contents.1.parts", EMPTY, "must not be empty" },
    { "contents.3", NIL, "number of function response parts" },
    { "contents.2", NIL, "number of function response parts" },
    { "contents.2.role", "user", "role 'model'" },
    { "contents.3.parts.1.functionResponse.response", "r", "expected object" },
    { "contents.2.parts.1.functionCall.args", "{}", "expected object" },
    { "tools", EMPTY, "empty array" },
    { "tools.1.functionDeclarations.1.name", "1f", "Invalid function name" },
    { "tools.1.functionDeclarations.1.parametersJsonSchema", { type = "object" },
      "mutually exclusive" },
  },
  ollama = {
    { "model", NIL, "model is required" },
    { "format", "xml", 'invalid format: "xml"' },
    { "format", { "json" }, "valid JSON Schema object" },
    { "format", "json" },
    { "format", { type = "object" } },
    { "messages", NIL, "'messages'" },
    { "messages.1.role", "robot", "Invalid value: 'robot'" },
    { "messages.1.content", { "u" }, "expected string" },
    { "messages.2.tool_calls.1.function.arguments", "{}", "expected object" },
    { "messages.2", NIL, "answers no call" },
    { "messages.3", { role = "user", content = "x" }, "1 calls before it" },
  },
}

-- Sets the value at "a.2.b"; NIL removes it.
local function put(root, path, value)
  local at, last = root, nil
  for step in path:gmatch("[^.]+") do
    at, last = last and at[last] or at, tonumber(step) or step
  end
  if value == NIL and type(last) == "number" then
    table.remove(at, last)
  else
    at[last] = value ~= NIL and value or nil
  end
  return root
end

local function answer(name, body, headers)
  local all = name == "anthropic" and (headers or { ["anthropic-version"] = "2023-06-01" })
  local a = mock.answer(program, "POST", TARGET[name], all or nil, server.encode(body))
  return a.status, a:body()
end

local function message_of(bytes)
  local e = server.decode(bytes).error
  return type(e) == "table" and e.message or e
end

describe("a strict agenthost mock", function()
  before_each(function() started "strict" end)

  for name, faults in pairs(FAULTS) do
    it("takes what is right from a client of " .. name, function()
      local status, bytes = answer(name, FINE[name]())
      assert.equal(200, status, bytes)
    end)

    for _, fault in ipairs(faults) do
      local path, value, words = table.unpack(fault, 1, 3)
      local shown = value == NIL and "away" or type(value) == "table" and server.encode(value)
        or tostring(value)
      it(("%s of %s: %s %s"):format(words and "refuses" or "takes", name, path, shown), function()
        local status, bytes = answer(name, put(FINE[name](), path, value))
        if not words then
          return assert.equal(200, status, bytes)
        end
        assert.equal(400, status, bytes)
        local message = message_of(bytes)
        assert(message:find(words, 1, true), ("no %q in: %s"):format(words, message))
      end)
    end
  end

  it("takes the lists of allowed tools that our adapters send", function()
    for name, model in pairs { openai = "gpt-5.6", responses = "responses/gpt-5.6" } do
      local user = '{"type":"user","content":[{"type":"text","text":"hi"}]}'
      local _, _, hidden = ahtest.wire_lower({ provider = "openai", model = model, key = "sk-any",
        base_url = "https://api.openai.com/v1" },
        { '{"type":"tools_added","tools":[{"name":"f","description":"F.","parameters":'
          .. '{"type":"object"}}]}', user },
        { '{"type":"assistant","content":[{"type":"text","text":"ho"}]}',
          '{"type":"tools_added","tools":[{"name":"g","description":"G.","parameters":'
          .. '{"type":"object"}}]}', user },
        { '{"type":"assistant","content":[{"type":"text","text":"well"}]}',
          '{"type":"tools_removed","names":["f"]}', user })
      local body = server.decode(hidden.body)
      assert.equal("allowed_tools", body.tool_choice.type)
      local status, bytes = answer(name, body)
      assert.equal(200, status, bytes)
    end
  end)

  it("refuses the same tool twice, and tool choices without tools", function()
    for name, list in pairs { openai = "tools", responses = "tools", anthropic = "tools" } do
      local body = FINE[name]()
      table.insert(body[list], body[list][1])
      assert.equal(400, (answer(name, body)))
      body = FINE[name]()
      body.tools, body.tool_choice = nil, name == "anthropic" and { type = "auto" } or "auto"
      local status, bytes = answer(name, body)
      assert.equal(400, status)
      assert.truthy(message_of(bytes):find("tool", 1, true))
    end
  end)

  it("refuses 129 tools of OpenAI, and the 65th level of a schema", function()
    local body = FINE.openai()
    for i = 2, 129 do
      body.tools[i] = { type = "function", ["function"] = { name = "f" .. i } }
    end
    assert.truthy(select(2, answer("openai", body)):find("maximum length 128", 1, true))
    body = FINE.openai()
    local inner = { type = "string" }
    for _ = 1, 64 do
      inner = { type = "object", properties = { a = inner } }
    end
    body.tools[1]["function"].parameters = inner
    assert.truthy(select(2, answer("openai", body)):find("deeper than 64", 1, true))
  end)

  it("asks Anthropic's clients for their version, and for at most 4 marks", function()
    local status, bytes = answer("anthropic", FINE.anthropic(), { x = "y" })
    assert.equal(400, status)
    assert.truthy(bytes:find("anthropic-version", 1, true))
    local body, mark = FINE.anthropic(), { type = "ephemeral" }
    body.system = {}
    for i = 1, 5 do
      body.system[i] = { type = "text", text = "s" .. i, cache_control = mark }
    end
    assert.truthy(select(2, answer("anthropic", body)):find("A maximum of 4 blocks", 1, true))
    body.system[5] = nil
    assert.equal(200, (answer("anthropic", body)))
  end)

  it("takes tools that come in mid-conversation with their beta, and where they are known",
    function()
      local beta = { ["anthropic-version"] = "x",
        ["anthropic-beta"] = "mid-conversation-tool-changes-2026-07-01" }
      local body = FINE.anthropic()
      table.insert(body.tools, { name = "g", input_schema = schema(), defer_loading = true })
      body.messages[4] = { role = "system", content = { { type = "tool_addition",
        tool = { type = "tool_reference", name = "g" } } } }
      assert.equal(200, (answer("anthropic", body, beta)))
      body.messages[4].content[1].tool.name = "h"
      assert.truthy(select(2, answer("anthropic", body, beta)):find("unresolved", 1, true))
    end)

  it("wants thoughts back as it said them", function()
    local path = os.tmpname()
    local f = assert(io.open(path, "w"))
    f:write [[return function() return { reasoning = "Hm.",
      calls = { { id = "c9", name = "f", arguments = { a = "x" } } } } end]]
    f:close()
    program.start(path, "all", "strict", "")
    os.remove(path)

    local body = FINE.anthropic()
    body.thinking, body.max_tokens = { type = "enabled", budget_tokens = 1024 }, 4096
    local said = server.decode(select(2, answer("anthropic", body))).content
    local again = FINE.anthropic()
    again.thinking, again.max_tokens = body.thinking, 4096
    again.messages[2].content = said
    again.messages[3].content[1].tool_use_id = "c9"
    assert.equal(200, (answer("anthropic", again)))
    said[1].signature = "other"
    assert.truthy(select(2, answer("anthropic", again)):find("Invalid `signature`", 1, true))
    table.remove(said, 1)
    assert.truthy(select(2, answer("anthropic", again)):find("Expected `thinking`", 1, true))

    local parts = server.decode(select(2, answer("gemini", FINE.gemini()))).candidates[1].content
      .parts
    local next_one = FINE.gemini()
    next_one.contents[2].parts = parts
    assert.equal(200, (answer("gemini", next_one)))
    parts[1].thoughtSignature = nil
    local _, told = answer("gemini", next_one)
    assert.truthy(told:find("missing a thought_signature", 1, true))
  end)

  it("goes on from a response that it said", function()
    local body = FINE.responses()
    local first = server.decode(select(2, answer("responses", body)))
    local status, bytes = answer("responses", { model = "m", previous_response_id = first.id,
      input = "and now?" })
    assert.equal(200, status, bytes)
    assert.is_true(server.decode(bytes).usage.input_tokens_details.cached_tokens >= 0)
    body.store = false
    local unkept = server.decode(select(2, answer("responses", body)))
    assert.equal(400, (answer("responses", { model = "m", previous_response_id = unkept.id,
      input = "and now?" })))
  end)
end)

describe("a lenient agenthost mock", function()
  it("answers what it can read, and refuses the rest in words", function()
    started "lenient"
    for name, faults in pairs(FAULTS) do
      local answered = 0
      for _, fault in ipairs(faults) do
        local status = answer(name, put(FINE[name](), fault[1], fault[2]))
        assert.is_true(status == 200 or status == 400)
        answered = answered + (status == 200 and 1 or 0)
      end
      assert.is_true(answered > #faults // 3, name .. " answers " .. answered)
    end
  end)
end)

-- Returns new values that can replace any member.
local function odd_values()
  return { server.null, true, 5, 1.5, "x", "", server.array {}, {}, server.array { 5 },
    server.array { "x" }, server.array { server.null }, server.array { server.array {} },
    { type = "x" }, { type = 5 }, { role = 5 }, { type = "custom" },
    server.array { { type = "text" } }, server.array { { type = "tool_result" } } }
end

-- Returns every place of a body, as { table, key }.
local function places_of(value, list)
  for key, inner in pairs(value) do
    list[#list + 1] = { value, key }
    if type(inner) == "table" and inner ~= server.null then
      places_of(inner, list)
    end
  end
  return list
end

-- Returns true for Lua's own messages, which are useless to a client.
local function of_lua(text)
  return text:match "attempt to[^\"]*" or text:match "bad argument[^\"]*"
    or text:match "[^\" ]+%.lua:%d+[^\"]*"
end

describe("agenthost mock, sent what is of no type that it expects", function()
  local COUNT = tonumber(os.getenv "MOCK_ODD") or 150

  for _, how in ipairs { "strict", "lenient" } do
    it("refuses it in words of its own: " .. how, function()
      started(how)
      local random = require("support.random")(42)
      for _ = 1, COUNT do
        for name, make in pairs(FINE) do
          local body = make()
          body.thread = name == "anthropic" and random(2) == 1 and { type = "create" } or nil
          for _ = 1, random(2) do
            local places, odd = places_of(body, {}), odd_values()
            local at = places[random(#places)]
            at[1][at[2]] = odd[random(#odd)]
          end
          local text = server.encode(body)
          local _, bytes = answer(name, body, { ["anthropic-version"] = "x",
            ["anthropic-beta"] = "message-threads-2026-08-12" })
          local bad = of_lua(bytes) or how == "strict" and bytes:match "cannot be read"
          assert.is_nil(bad or nil, ("%s: %s: %s"):format(name, tostring(bad), text))
        end
      end
    end)
  end
end)
