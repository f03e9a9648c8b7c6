-- Schemas on the wires: the schema of the answer if the wire can send it, and tools whose
-- parameters are more than an object.
local ah = require "agenthost"
local ahtest = require "ahtest"
local server = require "support.server"
local wire = require "support.wire" {}

local CLOSED = { type = "object", properties = { n = { type = "integer" } }, required = { "n" },
  additionalProperties = false }
local OPEN = { type = "object", properties = { n = { type = "integer", minimum = 1 } } }
local REFERS = { type = "object", ["$defs"] = { n = { type = "integer" } }, properties = { n = {
  ["$ref"] = "#/$defs/n" } }, required = { "n" }, additionalProperties = false }
local EITHER = { type = "object", anyOf = { { required = { "a" } }, { required = { "b" } } },
  properties = { a = { type = "string" }, b = { type = "string" } } }

local function lower(provider, model, entries)
  local o = { provider = provider, model = model, base_url = "http://x", key = "sk-schemas-1" }
  return server.decode(ahtest.wire_lower(o, wire.encoded(entries)).body)
end

local function settings(output, options)
  return { type = "settings", model = "x", options = options or {}, output = output }
end

describe("the schema of an answer", function()
  it("is part of the request where the wire has a place for it", function()
    local anthropic = lower("anthropic", "claude-opus-4-8", { settings(CLOSED,
      { reasoning = "low" }) }).output_config
    assert.same({ effort = "low", format = { type = "json_schema", schema = CLOSED } }, anthropic)
    local format = { type = "json_schema", name = "output", schema = CLOSED, strict = true }
    assert.same({ format = format }, lower("openai", "responses/gpt-5.6",
      { settings(CLOSED) }).text)
    assert.same({ type = "json_schema", json_schema = { name = "output", schema = CLOSED,
      strict = true } }, lower("openai", "gpt-4o", { settings(CLOSED) }).response_format)
    local config = lower("gemini", "gemini-3-pro", { settings(CLOSED) }).generationConfig
    assert.same({ "application/json", CLOSED },
      { config.responseMimeType, config.responseJsonSchema })
  end)

  it("that a wire takes only in part is said honestly, or not at all", function()
    assert.is_false(lower("openai", "responses/gpt-5.6", { settings(OPEN) }).text.format.strict)
    for _, schema in ipairs { OPEN, REFERS } do
      assert.is_nil(lower("anthropic", "claude-opus-4-8", { settings(schema) }).output_config)
    end
    local n = lower("gemini", "gemini-3-pro", { settings { type = "object", properties = {
      n = { type = "string", pattern = "^x" } } } }).generationConfig.responseJsonSchema
    assert.equal('It must fit {"pattern":"^x"}.', n.properties.n.description)
  end)

  it("is left out where a model is not known to take it", function()
    assert.is_nil(lower("anthropic", "claude-3-5-haiku", { settings(CLOSED) }).output_config)
    assert.is_nil(lower("gemini", "gemini-2.5-pro",
      { settings(CLOSED) }).generationConfig.responseJsonSchema)
    assert.is_nil(lower("compatible", "m", { settings(CLOSED) }).response_format)
    assert.is_nil(lower("ollama", "m", { settings(OPEN) }).format)
  end)

  it("is told in words where the wire does not carry it, and only there", function()
    local answer = server.json { id = "m", type = "message", stop_reason = "end_turn",
      content = { { type = "text", text = '{"n":2}' } } }
    local s <close> = server.start { responses = { answer } }
    for _, schema in ipairs { CLOSED, OPEN } do
      local reply = assert(ah.run { model = "anthropic/claude-opus-4-8", base_url = s.url,
        api_key = "sk-schemas-1", output = schema, "x" })
      assert.equal(2, reply.value.n)
    end
    local r = s:requests()
    assert.same({ false, true }, { r[1]:json().system ~= nil, r[2]:json().system ~= nil })
  end)
end)

describe("parameters with a combined root", function()
  local TOOL = { type = "tools_added", tools = { { name = "t", description = "T.",
    parameters = EITHER } } }
  local TURN = { { type = "assistant", content = server.array {}, tool_calls = {
    { id = "a", name = "t", arguments = '{"a":"x"}' } } },
    { type = "tool_result", id = "a", name = "t", content = "R", success = true } }

  it("are wrapped for Anthropic and Responses, as for the others", function()
    local body = lower("anthropic", "claude-opus-4-8", { TOOL, TURN[1], TURN[2] })
    local schema = body.tools[1].input_schema
    assert.same({ "object", EITHER, nil },
      { schema.type, schema.properties.wrapped_arguments, schema.anyOf })
    assert.same({ wrapped_arguments = { a = "x" } }, body.messages[1].content[1].input)
    body = lower("openai", "responses/gpt-5.6", { TOOL, TURN[1], TURN[2] })
    assert.same(EITHER, body.tools[1].parameters.properties.wrapped_arguments)
    assert.equal('{"wrapped_arguments":{"a":"x"}}', body.input[1].arguments)
  end)

  it("come back as the tool has them", function()
    local calls = server.json { id = "m", type = "message", stop_reason = "tool_use", content = {
      { type = "tool_use", id = "t1", name = "t", input = { wrapped_arguments = { b = "y" } } } } }
    local done = server.json { id = "m", type = "message", stop_reason = "end_turn",
      content = { { type = "text", text = "done" } } }
    local s <close> = server.start { responses = { calls, done } }
    local got
    local t = ah.tool { name = "t", description = "T.", schema = EITHER, handler = function(args)
      got = args.b
      return 1
    end }
    assert(ah.run { model = "anthropic/claude-haiku-4-5", base_url = s.url,
      api_key = "sk-schemas-1", tools = { t }, "x" })
    assert.equal("y", got)
  end)
end)
