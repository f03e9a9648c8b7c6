-- Ollama's /api/chat: documented traffic and our own cases through the adapter, each request built
-- again, and runs over real HTTP on loopback.
local ah = require "agenthost"
local ahtest = require "ahtest"
local recordings = require "support.recordings"
local server = require "support.server"
local sound = require "support.sound"

local function members(value)
  return type(value) == "table" and value ~= server.null and value or {}
end

-- -- a plain reader, independent of the adapter ----------------------------------------------

local function take_call(r, c)
  local args = c["function"].arguments
  local text = type(args) == "string" and args or server.encode(members(args))
  r.calls[#r.calls + 1] = { id = c.id, name = c["function"].name,
    arguments = text == "[]" and "{}" or text }
end

local function take(r, doc)
  local message = members(doc.message)
  r.error = r.error or doc.error
  r.text = r.text .. (message.content or "")
  r.thinking = r.thinking .. (message.thinking or "")
  for _, c in ipairs(members(message.tool_calls)) do
    take_call(r, c)
  end
  r.last = doc.done and doc or r.last
end

local function is_stream(x)
  return (x.headers["content-type"] or ""):find("ndjson", 1, true) ~= nil
end

local function plain(x)
  local r = { text = "", thinking = "", calls = {} }
  for line in (is_stream(x) and x.body or x.body:gsub("\n", "")):gmatch "[^\r\n]+" do
    take(r, server.decode(line))
  end
  if r.error then
    return { error = r.error, retryable = x.status < 300 or x.status == 429 or x.status >= 500 }
  elseif not r.last then
    return { error = "", retryable = true }
  end
  local reason, input, output = r.last.done_reason, r.last.prompt_eval_count, r.last.eval_count
  return { text = r.text, calls = r.calls, stop_word = reason ~= "" and reason or nil,
    stop = reason == "length" and "length" or r.calls[1] and "tool_calls" or "end",
    usage = { input = input or 0, output = output or 0, cached_read = 0, cached_write = 0,
      reasoning = 0, known = (input or output) ~= nil },
    opaque = { r.calls[1] and r.thinking ~= "" and
      { data = { thinking = r.thinking }, calls = #r.calls } or nil } }
end

local wire = require "support.wire" {
  provider = "ollama",
  base_url = "http://x",
  plain = plain,
  values = true,
}

-- -- answers --------------------------------------------------------------------------------

local function whole(doc, status)
  local body = type(doc) == "string" and doc or server.encode(doc)
  return { name = body, status = status or 200, headers = { ["content-type"] = "application/json" },
    body = body }
end

local function stream(...)
  local list = {}
  for i, line in ipairs { ... } do
    list[i] = type(line) == "string" and line or server.encode(line)
  end
  local body = table.concat(list, "\n") .. "\n"
  return { name = body, status = 200, headers = { ["content-type"] = "application/x-ndjson" },
    body = body }
end

local function said(message, more)
  local doc = { message = message, done = false }
  for k, v in pairs(more or {}) do
    doc[k] = v
  end
  return doc
end

local function call(name, args, id)
  return { id = id, ["function"] = { name = name, arguments = args } }
end

local DONE = { done = true, done_reason = "stop", prompt_eval_count = 7, eval_count = 3 }

local CASES = {
  whole(said({ content = "hello 😀" }, DONE)),
  stream(said { content = "Hel" }, said({ content = "lo é\n" }), said({ content = "" }, DONE)),
  stream(said { content = "x" }, DONE),
  stream(said { tool_calls = { call("f", { a = 1 }) } },
    said { tool_calls = { call("g", { b = "\u{e9}" }, "id1"), call("f", {}) } }, DONE),
  stream(said { content = "", thinking = "hm, " }, said { thinking = 'a "q"' },
    said { tool_calls = { call("f", {}) } }, DONE),
  stream(said { thinking = "only thought" }, said({ content = "so" }), DONE),
  stream(said { content = "cut" }, { done = true, done_reason = "length" }),
  stream(said { content = "a" }, { done = true, done_reason = "" }),
  stream(said { content = "never done" }),
  stream(said { content = "a" }, { error = "it broke" }),
  whole({ error = "model 'x' not found" }, 404),
  whole({ error = "queue full" }, 503),
  whole({ error = "slow down" }, 429),
  whole({ error = "m does not support tools" }, 400),
}

describe("an answer of ollama", function()
  wire.it_reads(it, CASES)

  it("may end its lines in any way, and its last in none", function()
    local lines = '{"message":{"content":"a"}}\r\n\r\n \n{"message":{"content":"b"}}\n{"done":true}'
    local got = wire.read(stream(lines))
    assert.equal("ab", got.text)
    got = wire.read({ status = 200, body = lines .. "\njunk",
      headers = { ["content-type"] = "application/x-ndjson; charset=utf-8" } })
    assert.equal("ab", got.text, "what follows the end is not read")
  end)

  it("that is no answer says what stands there", function()
    local words = {
      ["a line of the stream is not JSON"] = stream "{",
      ["the answer is empty"] = whole "",
      ["web page"] = whole "<html>",
      ["holds no message"] = whole "{}",
      ["expected a JSON object"] = whole "[1]",
      ["ended before the answer was complete"] = stream(said { content = "x" }),
      ["HTTP 404: model 'x' not found"] = whole({ error = "model 'x' not found" }, 404),
      ["HTTP 502: bad <gateway>"] = whole("bad <gateway>", 502),
      ["check api_key or OLLAMA_API_KEY"] = whole({ error = "unauthorized" }, 401),
    }
    for part, x in pairs(words) do
      local message = wire.read(x).error.message
      assert.truthy(message:find(part, 1, true), message)
    end
  end)

  it("shows no key that the server sends back", function()
    local key = "ollama-canary-1234567"
    local got = wire.read(stream(said { content = key, thinking = key },
      said { tool_calls = { call("f", { k = key }) } }, DONE), { key = key })
    assert.falsy((got.entry .. got.text):find("canary", 1, true))
  end)
end)

-- -- requests -------------------------------------------------------------------------------

local function lower(...)
  return ahtest.wire_lower({ provider = "ollama", model = "m" }, wire.encoded { ... })
end

local CLOSED = { type = "object", properties = { n = { type = "integer" } },
  additionalProperties = false }

local function body_of(...)
  return server.decode(lower(...).body)
end

describe("a request to ollama", function()
  it("has options and thinking under the names of the wire", function()
    local body = body_of { type = "settings", model = "ollama/m", options = { max_tokens = 7,
      temperature = 0.5, top_p = 0.25, seed = 3, stop = "x", reasoning = "low",
      tool_choice = "required" } }
    assert.same({ num_predict = 7, temperature = 0.5, top_p = 0.25, seed = 3, stop = { "x" } },
      body.options)
    assert.equal("low", body.think)
    assert.is_nil(body.tool_choice, "there is none on this wire")
    assert.is_nil(body.tools)
    assert.is_false(body.stream)
  end)

  it("has the schema of an answer where any server can make a grammar of it", function()
    local function format(schema)
      return body_of({ type = "settings", model = "x", options = ah.object {},
        output = schema }).format
    end
    assert.same(CLOSED, format(CLOSED))
    assert.is_nil(format { type = "object", properties = { n = { type = "integer" } } })
    assert.is_nil(format { type = "array", items = { type = "integer" } })
    assert.is_nil(format(nil))
  end)

  it("says yes or no where a model knows no levels of thought", function()
    for effort, think in pairs { none = false, ["true"] = true } do
      assert.equal(think, body_of({ type = "settings", model = "x",
        options = { reasoning = effort } }).think)
    end
  end)

  it("has arguments as objects, and failures in words", function()
    local r = lower({ type = "assistant", content = server.array {}, tool_calls = {
      { id = "a", name = "t", arguments = '{"n": 9007199254740993}' },
      { id = "b", name = "t", arguments = "" }, { id = "c", name = "t", arguments = "[1]" } } },
      { type = "tool_result", id = "a", name = "t", content = "A", success = true },
      { type = "tool_result", id = "b", name = "t", content = "B", success = false },
      { type = "tool_result", id = "c", name = "t", content = "C", success = true })
    assert.truthy(r.body:find('{"n": 9007199254740993}', 1, true))
    assert.truthy(r.body:find('"name":"t","arguments":{}', 1, true))
    local messages = server.decode(r.body).messages
    assert.same({ role = "tool", tool_name = "t", tool_call_id = "b", content = "Error: B" },
      messages[3])
  end)

  it("begins with the bytes of the one before", function()
    local one, two, three = ahtest.wire_lower({ provider = "ollama" },
      wire.encoded { { type = "prompt", text = "P" },
        { type = "user", content = { { type = "text", text = "a" } } } },
      wire.encoded { { type = "assistant", content = { { type = "text", text = "b" } } } },
      wire.encoded { { type = "tools_added", tools = { { name = "u", parameters = {
        type = "object" } } } } })
    wire.check_prefix(one, two)
    assert.equal(one.body:sub(1, -3), two.body:sub(1, #one.body - 2))
    assert.equal("tools_changed", three.reason)
  end)
end)

-- -- runs -----------------------------------------------------------------------------------

local function lines(...)
  local x = stream(...)
  return { headers = { ["Content-Type"] = "application/x-ndjson" }, framing = "chunked",
    body = x.body }
end

describe("a run with ollama", function()
  for _, streamed in ipairs { false, true } do
    it("calls tools and answers" .. (streamed and ", streamed" or ""), function()
      local asked = said({ content = "", thinking = "hm",
        tool_calls = { call("count", { x = 1 }), call("count", {}) } }, DONE)
      local done = said({ content = "done" }, DONE)
      local s <close> = server.start { responses = streamed and { lines(asked), lines(done) }
        or { server.json(asked), server.json(done) } }
      local n = 0
      local count = ah.tool { name = "count", description = "Counts.",
        schema = { type = "object" }, handler = function()
          n = n + 1
          return "counted"
        end }
      local reply = assert(ah.run { model = "ollama/m", base_url = s.url .. "/api/",
        tools = { count }, stream = streamed, "hi" })
      assert.same({ "done", 2, 14, 6 },
        { reply.text, n, reply.usage.input, reply.usage.output })
      sound.check(reply:transcript())
      local one, two = table.unpack(s:requests())
      assert.same({ "POST", "/api/chat" }, { one.method, one.path })
      assert.equal(streamed, one:json().stream)
      assert.is_nil(one.headers.authorization)
      assert.equal(one.body:sub(1, -3), two.body:sub(1, #one.body - 2))
      local messages = two:json().messages
      assert.equal("hm", messages[2].thinking)
      assert.equal(messages[2].tool_calls[2].id, messages[4].tool_call_id)
      assert.equal("counted", messages[3].content)
    end)
  end

  it("binds its answer to a schema, which the model is told in words, too", function()
    local s <close> = server.start { responses = { server.json(said({ content = '{"n":1}' },
      DONE)) } }
    local reply = assert(ah.run { model = "ollama/m", base_url = s.url, output = CLOSED, "hi" })
    assert.equal(1, reply.value.n)
    local body = s:requests()[1]:json()
    assert.same(CLOSED, body.format)
    assert.equal("system", body.messages[1].role)
    assert.truthy(body.messages[1].content:find('"additionalProperties"', 1, true))
  end)

  it("does not bind a model that has tools, since that keeps it from calling them", function()
    local s <close> = server.start { responses = {
      server.json(said({ content = "", tool_calls = { call("one", {}) } }, DONE)),
      server.json(said({ content = '{"n":1}' }, DONE)) } }
    local one = ah.tool { name = "one", description = "1", handler = function() return "1" end }
    local reply = assert(ah.run { model = "ollama/m", base_url = s.url, output = CLOSED,
      tools = { one }, "hi" })
    assert.equal(1, reply.value.n)
    for _, r in ipairs(s:requests()) do
      assert.is_nil(r:json().format)
      assert.truthy(r:json().messages[1].content:find('"additionalProperties"', 1, true))
    end
  end)

  it("sends a key where there is one, and goes by LiteLLM's name, too", function()
    local s <close> = server.start { responses = { server.json(said({ content = "ok" }, DONE)) } }
    assert(ah.run { model = "ollama_chat/m", base_url = s.url, api_key = "k-12345678", "hi" })
    assert.equal("Bearer k-12345678", s:requests()[1].headers.authorization)
  end)

  it("tries again where a busy server says so, and not where a model has no tools", function()
    local busy = server.json({ error = "busy" }, { status = 503,
      headers = { ["Content-Type"] = "application/json", ["Retry-After-Ms"] = "10" } })
    local s <close> = server.start { responses = { busy,
      server.json({ error = "m does not support tools" }, { status = 400 }) } }
    local reply, err = ah.run { model = "ollama/m", base_url = s.url, "hi" }
    assert.is_nil(reply)
    assert.equal(2, #s:requests())
    assert.truthy(err.message:find("does not support tools", 1, true))
  end)
end)

-- -- recordings -----------------------------------------------------------------------------

local KEPT = { model = true, messages = true, tools = true }

-- Returns a recorded request in the form of ours: without `format`, options that we do not send,
-- and ids of calls.
local function explained(body)
  local out = {}
  for key in pairs(KEPT) do
    out[key] = body[key]
  end
  for _, m in ipairs(out.messages) do
    m.tool_call_id = nil
    for _, c in ipairs(m.tool_calls or {}) do
      c.id, c["function"].index = nil, nil
    end
  end
  return out
end

local function tool_calls_of(m)
  local calls
  for i, c in ipairs(m.tool_calls or {}) do
    calls = calls or server.array {}
    calls[i] = { id = c.id or "made_" .. i, name = c["function"].name,
      arguments = server.encode(c["function"].arguments) }
  end
  return calls
end

local function entries_of(body)
  local list = {}
  for _, t in ipairs(body.tools or {}) do
    list[#list + 1] = { type = "tools_added", tools = { t["function"] } }
  end
  local n = 0
  for _, m in ipairs(body.messages) do
    local content = server.array { m.content ~= "" and { type = "text", text = m.content } or nil }
    if m.role == "tool" then
      n = n + 1
      list[#list + 1] = { type = "tool_result", id = m.tool_call_id or "made_" .. n,
        name = m.tool_name, content = m.content, success = true }
    else
      local thought = m.thinking and { type = "opaque", data = { thinking = m.thinking },
        origin = { adapter = "ollama", model = body.model, endpoint = "http://localhost:11434" } }
      if thought then
        table.insert(content, 1, thought)
      end
      list[#list + 1] = { type = m.role, content = content, tool_calls = tool_calls_of(m) }
    end
  end
  return list
end

describe("the recordings of ollama", function()
  local exchanges = {}
  for _, x in ipairs(recordings.exchanges "ollama") do
    exchanges[#exchanges + 1] = x.file ~= "13-tags.json" and x or nil -- a list of models
  end

  local function lowered()
    for _, x in ipairs(exchanges) do
      local body = x.request and x.request.body
      if body then
        local r = ahtest.wire_lower({ provider = "ollama", model = body.model },
          wire.encoded(entries_of(body)))
        local got = explained(server.decode(r.body))
        assert.equal(server.encode(explained(body)), server.encode(got), x.name)
      end
    end
  end

  wire.check_recordings { it = it, pending = pending, exchanges = exchanges, lowered = lowered }
end)
