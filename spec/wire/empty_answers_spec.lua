-- Empty answers of a model: no text, or only white space, and no calls. They are never sent back to
-- a server; `on_empty` decides whether such an answer is accepted. docs/reference/run.md,
-- docs/reference/models.md.
local ah = require "agenthost"
local ahtest = require "ahtest"
local mock = require "support.mock"
local server = require "support.server"
local sound = require "support.sound"

local function quiet() end

-- Each wire: its model and address, the field with its messages, and its form of thoughts.
local WIRES = {
  { "openai", "gpt-4o", "https://api.openai.com/v1", "messages" },
  { "compatible", "deepseek-r1", "https://h/v1", "messages",
    thoughts = { reasoning_content = "Hm." } },
  { "mistral", "mistral-large-latest", "https://api.mistral.ai/v1", "messages" },
  { "litellm_proxy", "claude-opus", "https://h", "messages" },
  { "openai", "responses/gpt-5.4", "https://api.openai.com/v1", "input",
    thoughts = { type = "reasoning", id = "r1", summary = {}, encrypted_content = "x" } },
  { "anthropic", "claude-opus-4-5", "https://api.anthropic.com", "messages",
    thoughts = { type = "thinking", thinking = "Hm.", signature = "s" } },
  { "gemini", "gemini-3-pro", "https://generativelanguage.googleapis.com", "contents",
    thoughts = { parts = { { text = "Hm.", thought = true }, { text = "", thoughtSignature = "s" } }
    } },
  { "ollama", "qwen3", "http://localhost:11434", "messages", thoughts = { thinking = "Hm." } },
}

local function encode(v)
  return ah.json.encode(v)
end

local function user(text)
  return encode { type = "user", content = ah.array { { type = "text", text = text } } }
end

local function assistant(parts, origin)
  return encode { type = "assistant", content = ah.array(parts), origin = origin }
end

local function text(words)
  return { type = "text", text = words }
end

local function lowered(wire, ...)
  local settings = encode { type = "settings", model = wire[1] .. "/" .. wire[2],
    options = ah.object {} }
  local r = ahtest.wire_lower({ provider = wire[1], model = wire[2], base_url = wire[3],
    key = "unused-key" }, { settings, ... })
  return server.decode(r.body)[wire[4]]
end

local function origin_of(wire)
  return { adapter = wire[1], model = wire[2], endpoint = wire[3] }
end

-- Returns the number of messages of the model in a request.
local function spoken(messages)
  local n = 0
  for _, m in ipairs(messages) do
    n = n + ((m.role == "assistant" or m.role == "model" or m.type == "reasoning") and 1 or 0)
  end
  return n
end

describe("a message of the model that says nothing", function()
  for _, wire in ipairs(WIRES) do
    local name = wire[1] .. "/" .. wire[2]

    it("is not sent to " .. name, function()
      local origin = origin_of(wire)
      for _, parts in ipairs {
        {}, { text "" }, { text " \n\t" }, { text "", text " " },
        { { type = "refusal", text = "" } },
        { { type = "opaque", origin = origin, data = wire.thoughts or ah.object {} } },
        { { type = "opaque", origin = origin, data = wire.thoughts or ah.object {} }, text "" },
        { { type = "opaque", data = { type = "x" },
          origin = { adapter = "other", model = "m", endpoint = "e" } } },
      } do
        local messages = lowered(wire, user "one", assistant(parts, origin), user "two")
        assert.equal(0, spoken(messages), encode(parts))
        assert.truthy(encode(messages):find("one", 1, true))
        assert.truthy(encode(messages):find("two", 1, true))
      end
    end)

    it("is sent to " .. name .. " where it says anything", function()
      local origin = origin_of(wire)
      local thoughts = { type = "opaque", origin = origin, data = wire.thoughts }
      for _, parts in ipairs {
        { text "x" }, { text "", text "x" }, { { type = "refusal", text = "No." } },
        wire.thoughts and wire[1] ~= "gemini" and { thoughts, text "x" } or { text "x" },
      } do
        local messages = lowered(wire, user "one", assistant(parts, origin), user "two")
        assert.is_true(spoken(messages) > 0, encode(parts))
      end
    end)

    it("costs " .. name .. " no cache", function()
      local base = { encode { type = "settings", model = name, options = ah.object {} },
        user "one" }
      local empty = { assistant({ text "" }, origin_of(wire)), user "two" }
      local options = { provider = wire[1], model = wire[2], base_url = wire[3],
        key = "unused-key" }
      local first, second = ahtest.wire_lower(options, base, empty)
      assert.is_nil(second.reason)
      assert.equal(#first.segments + 1, #second.segments)
      for i, segment in ipairs(first.segments) do
        assert.same(segment.bytes, second.segments[i].bytes)
      end
    end)
  end

  it("is told as empty where it is the user's, whom Anthropic and Gemini must answer", function()
    for at = 6, 7 do
      for _, words in ipairs { "", " \n" } do
        local messages = lowered(WIRES[at], user(words))
        assert.equal(1, #messages)
        assert.truthy(encode(messages):find("(empty message)", 1, true))
      end
    end
  end)

  it("is sent to Anthropic and Gemini where it holds what is neither text nor thought", function()
    local search = { type = "server_tool_use", id = "s1", name = "web_search",
      input = ah.object {} }
    local code = { parts = { { executableCode = { code = "1" } } } }
    for at, data in pairs { [6] = search, [7] = code } do
      local wire = WIRES[at]
      local parts = { { type = "opaque", origin = origin_of(wire), data = data } }
      assert.equal(1, spoken(lowered(wire, user "one", assistant(parts, origin_of(wire)),
        user "two")), wire[1])
    end
  end)

  local it = mock.is_built() and it or pending
  for _, stream in ipairs { true, false } do
    it("is taken from every server and never sent back, "
      .. (stream and "streamed" or "whole"), function()
      for _, at in ipairs { { "openai/gpt-4o", "/v1", "messages" },
        { "openai/responses/gpt-5.4", "/v1", "input" },
        { "anthropic/claude-opus-4-5", "", "messages" },
        { "ollama/qwen3", "", "messages" }, { "compatible/qwen3", "/v1", "messages" },
        -- unstreamed it is malformed
        stream and { "gemini/gemini-3-pro", "", "contents" } or nil } do
        local m <close> = mock.start 'return { { text = "" }, { text = "" }, { text = "ok" } }'
        local agent = ah.agent { model = at[1], base_url = m.url .. at[2], api_key = "a-key",
          stream = stream, log = quiet }
        assert.equal("", assert(agent:run "one").text)
        assert.equal("", assert(agent:run "two").text)
        assert.equal("ok", assert(agent:run "three").text)
        assert.equal("", m:errors())
        local log = m:log()
        assert.equal(3, #log)
        for _, request in ipairs(log) do
          assert.equal(0, spoken(request.body[at[3]]), at[1])
        end
      end
    end)
  end
end)

describe("on_empty", function()
  local function run(turns, fields)
    local warnings = {}
    fields.model, fields.log, fields[1] = ah.scripted(turns), quiet, "Hello?"
    fields.on = { warning = function(e) warnings[#warnings + 1] = e.message end }
    local reply, err = ah.run(fields)
    sound.check((reply or err.reply):transcript())
    return reply, err, warnings
  end

  it("lets an empty answer stand where it says nothing or \"answer\"", function()
    for _, on_empty in ipairs { "answer", false } do
      local reply = run({ "" }, { on_empty = on_empty or nil })
      assert.same({ "", 1 }, { reply.text, reply.iterations })
    end
  end)

  it("asks again, in the user's words and as one more iteration", function()
    local reply, _, warnings = run({ "", " \n", "Hi." }, { on_empty = "retry" })
    assert.same({ "Hi.", 3, 2 }, { reply.text, reply.iterations, #warnings })
    assert.matches("empty", reply.messages[3].content)
    assert.same({ "user", "assistant", "user", "assistant", "user", "assistant" },
      (function()
        local roles = {}
        for i, m in ipairs(reply.messages) do
          roles[i] = m.role
        end
        return roles
      end)())
  end)

  it("asks as often in a row as `retries` says, then fails", function()
    for retries = 0, 3 do
      local _, err = run(function() return "" end, { on_empty = "retry", retries = retries })
      assert.same({ "provider", "response", true, retries + 1 },
        { err.code, err.phase, err.retryable, err.reply.iterations })
    end
    local call = { calls = { { name = "t" } } }
    local t = ah.tool { name = "t", description = "T.", handler = function() end }
    local reply = run({ "", call, "", call, "", "done" },
      { on_empty = "retry", retries = 1, tools = { t } })
    assert.same({ "done", 6 }, { reply.text, reply.iterations })
    local _, err = run({ "", call, "", "", "done" },
      { on_empty = "retry", retries = 1, tools = { t } })
    assert.same({ "provider", 4 }, { err.code, err.reply.iterations })
  end)

  it("asks no more often than there are iterations and requests", function()
    local _, err = run(function() return "" end,
      { on_empty = "retry", retries = 9, max_iterations = 3 })
    assert.same({ "max_iterations_exceeded", 3 }, { err.code, err.reply.iterations })
    _, err = run(function() return "" end,
      { on_empty = "retry", retries = 9, budget = { requests = 2 } })
    assert.same({ "budget_exceeded", 2 }, { err.code, err.reply.iterations })
  end)

  it("fails at once with \"error\", and says how the answer ended", function()
    local _, err = run({ { text = "", stop = "length" }, "late" }, { on_empty = "error" })
    assert.same({ "provider", "response", 1 }, { err.code, err.phase, err.reply.iterations })
    assert.matches("the answer is empty: it has neither text nor calls (stop: length)",
      err.message, 1, true)
  end)

  it("is about answers alone: calls without a word and refusals are none", function()
    local t = ah.tool { name = "t", description = "T.", handler = function() end }
    assert.equal("ok", run({ { calls = { { name = "t" } } }, "ok" },
      { on_empty = "error", tools = { t } }).text)
    assert.equal("No.", run({ { refusal = "No." } }, { on_empty = "error" }).text)
  end)

  it("comes before what `output` and `checks` say of an answer", function()
    local looked = 0
    local reply = run({ "", '{"n":1}' }, { on_empty = "retry",
      output = { type = "object", properties = { n = { type = "integer" } } },
      checks = { function() looked = looked + 1 end } })
    assert.same({ 1, 1, 2 }, { reply.value.n, looked, reply.iterations })
  end)

  it("is refused where it is another word", function()
    local _, err = pcall(ah.run, { model = "demo/echo", on_empty = "again", "x" })
    assert.equal("usage", err.code)
    assert.matches('"answer", "retry" or "error", found "again"', err.message, 1, true)
  end)
end)
