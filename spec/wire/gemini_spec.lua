-- Gemini's generateContent: recorded traffic and our own cases through the adapter, each request
-- built again, and runs over real HTTP on loopback.
local ah = require "agenthost"
local ahtest = require "ahtest"
local gemini = require "support.gemini"
local recordings = require "support.recordings"
local server = require "support.server"
local sound = require "support.sound"

local wire = require "support.wire" {
  provider = "gemini",
  model = "m",
  base_url = "http://x",
  plain = gemini.read,
  values = true,
}

local KEY = "gemini-canary-1234567890"
local BASE = "https://generativelanguage.googleapis.com"

local function whole(doc, status)
  local body = type(doc) == "string" and doc or server.encode(doc)
  return { name = body, status = status or 200, headers = { ["content-type"] = "application/json" },
    body = body }
end

local function stream(...)
  local list = {}
  for i, piece in ipairs { ... } do
    list[i] = "data: " .. (type(piece) == "string" and piece or server.encode(piece)) .. "\r\n\r\n"
  end
  local body = table.concat(list)
  return { name = body, status = 200, headers = { ["content-type"] = "text/event-stream" },
    body = body }
end

local function piece(parts, finish, usage)
  local content = parts and { role = "model", parts = server.array(parts) }
  return { candidates = { { content = content, finishReason = finish, index = 0 } },
    usageMetadata = usage }
end

local function text(s, more)
  local part = { text = s }
  for k, v in pairs(more or {}) do
    part[k] = v
  end
  return part
end

local function call(name, args, signature, id)
  return { functionCall = { name = name, args = args, id = id }, thoughtSignature = signature }
end

local function failure(status, word, details)
  return whole({ error = { code = status, message = "their words", status = word,
    details = details } }, status)
end

local CASES = {
  whole(piece({ text "hello 😀" }, "STOP", { promptTokenCount = 5, candidatesTokenCount = 2,
    thoughtsTokenCount = 3, cachedContentTokenCount = 4 })),
  whole(server.array { piece { text "he" }, piece({ text "llo" }, "STOP") }),
  stream(piece { text "Hel" }, piece({ text "lo é" }, nil, { promptTokenCount = 1 }),
    piece({ text "" }, "STOP", { promptTokenCount = 7, candidatesTokenCount = 1 })),
  stream(piece { text("I think", { thought = true }) },
    piece({ call("f", { a = 1 }, "c2ln"), call("g", { x = "\u{e9}" }) }, "STOP")),
  stream(piece { text "a", text "b" }, piece({ text("", { thoughtSignature = "c2ln" }) }, "STOP")),
  stream(piece { text("think", { thought = true, thoughtSignature = "c2ln" }), text "c" },
    piece({ text "d" }, "STOP")),
  stream(piece({ call("f", {}, nil, "id1"), call("f", {}, nil, "id2") }, "STOP")),
  stream(piece({ call("f", { ["a b"] = server.array {} }) }, "MAX_TOKENS")),
  stream(piece({ text "cut" }, "MAX_TOKENS")),
  stream(piece(nil, "SAFETY")),
  stream(piece { text "never finished" }),
  whole { promptFeedback = { blockReason = "PROHIBITED_CONTENT" },
    usageMetadata = { promptTokenCount = 3 } },
  whole { candidates = { { content = {}, finishReason = "MALFORMED_FUNCTION_CALL",
    finishMessage = "Malformed: print(" } } },
  stream(piece { text "a" }, { error = { code = 503, message = "gone", status = "UNAVAILABLE" } }),
  failure(400, "INVALID_ARGUMENT", { { reason = "API_KEY_INVALID" } }),
  failure(403, "PERMISSION_DENIED"),
  failure(429, "RESOURCE_EXHAUSTED", { { retryDelay = "0.5s" } }),
  failure(429, "RESOURCE_EXHAUSTED", { { links = {} }, { retryDelay = "3600s" } }),
  failure(500, "INTERNAL"),
  whole(server.array { { error = { code = 503, message = "their words" } } }, 503),
}

describe("an answer of gemini", function()
  wire.it_reads(it, CASES)

  it("that is no answer says what stands there", function()
    local said = {
      ["not JSON"] = whole("{"),
      ["web page"] = whole("<html>"),
      ["empty"] = whole(""),
      ["expected a JSON object"] = whole("7"),
      ["no candidates"] = whole("{}"),
      ["HTTP 502: a web page: bad"] = whole("<html>bad", 502),
      ["redirects are not followed"] = whole("moved", 301),
      ["check api_key or GEMINI_API_KEY"] = failure(400, "X", { { reason = "API_KEY_INVALID" } }),
      ["their words (RESOURCE_EXHAUSTED)"] = failure(429, "RESOURCE_EXHAUSTED"),
    }
    for words, x in pairs(said) do
      local message = wire.read(x).error.message
      assert.truthy(message:find(words, 1, true), message)
      assert.truthy(message:find("^gemini: "), message)
    end
  end)

  it("shows no key that the server sends back", function()
    local parts = { text(KEY), call("f", { k = KEY }, "sig" .. KEY) }
    local got = wire.read(stream(piece(parts, "STOP")), { key = KEY })
    assert.falsy((got.entry .. got.text):find("canary", 1, true))
    local refused = whole({ error = { message = KEY } }, 400)
    local failed = wire.read(refused, { key = KEY })
    assert.falsy(failed.error.message:find("canary", 1, true))
  end)
end)

-- -- requests -------------------------------------------------------------------------------

local ORIGIN = { adapter = "gemini", model = "m", endpoint = "http://x" }

local function lower(entries, model)
  local o = { provider = "gemini", model = model or "m", base_url = "http://x" }
  local r = ahtest.wire_lower(o, wire.encoded(entries))
  return server.decode(r.body), r
end

local function with_tool(parameters, name)
  return { type = "tools_added", tools = { { name = name or "t", description = "T.",
    parameters = parameters } } }
end

local function user(s)
  return { type = "user", content = { { type = "text", text = s } } }
end

local function assistant(calls, opaque)
  local content = server.array { opaque and
    { type = "opaque", origin = opaque.origin or ORIGIN, data = { parts = opaque.data } } }
  return { type = "assistant", content = content, tool_calls = calls and server.array(calls) }
end

local function result(id, content, success)
  return { type = "tool_result", id = id, name = "t", content = content,
    success = success ~= false }
end

local function parameters_of(schema)
  return lower({ with_tool(schema) }).tools[1].functionDeclarations[1].parametersJsonSchema
end

describe("a request to gemini", function()
  it("has system text, options and the choice of tools where the wire has them", function()
    local body = lower {
      { type = "settings", model = "gemini/m", options = { max_tokens = 7, temperature = 0.5,
        top_p = 0.25, seed = 3, stop = "x", reasoning = "low", tool_choice = { name = "t" } } },
      { type = "prompt", text = "S" }, with_tool { type = "object" }, user "hi",
    }
    assert.same({ maxOutputTokens = 7, temperature = 0.5, topP = 0.25, seed = 3,
      stopSequences = { "x" }, thinkingConfig = { thinkingLevel = "low" } }, body.generationConfig)
    assert.same({ parts = { { text = "S" } } }, body.systemInstruction)
    assert.same({ mode = "ANY", allowedFunctionNames = { "t" } },
      body.toolConfig.functionCallingConfig)
    assert.same({ { role = "user", parts = { { text = "hi" } } } }, body.contents)
  end)

  it("says efforts in tokens to models before Gemini 3", function()
    local settings = { type = "settings", model = "x", options = { reasoning = "medium" } }
    assert.same({ thinkingBudget = 8192 },
      lower({ settings }, "gemini-2.5-pro").generationConfig.thinkingConfig)
  end)

  it("has no tools where there are none, and no choice among them", function()
    local body = lower { { type = "settings", model = "x", options = { tool_choice = "auto" } } }
    assert.is_nil(body.tools)
    assert.is_nil(body.toolConfig)
  end)

  it("has all results of a message in one content, failures as such", function()
    local _, r = lower { user "hi", assistant { { id = "a", name = "t", arguments = "{}" },
      { id = "b", name = "t", arguments = "no JSON" } }, result("a", "A"), result("b", "B", false),
      { type = "note", text = "N" }, user "go" }
    local contents = server.decode(r.body).contents
    assert.same({ "user", "model", "user", "user", "user" }, { contents[1].role, contents[2].role,
      contents[3].role, contents[4].role, contents[5].role })
    assert.same({ { functionCall = { id = "a", name = "t", args = {} } },
      { functionCall = { id = "b", name = "t", args = {} } } }, contents[2].parts)
    assert.same({ { functionResponse = { id = "a", name = "t", response = { output = "A" } } },
      { functionResponse = { id = "b", name = "t", response = { error = "B" } } } },
      contents[3].parts)
    assert.equal("<system>N</system>", contents[4].parts[1].text)
    assert.truthy(r.body:find('"args":{}', 1, true), "an empty object stays one")
  end)

  it("sends signed parts back as they came, to where they came from only", function()
    local parts = server.array { { text = "hm" }, { functionCall = { name = "x", args = { z = 1 } },
      thoughtSignature = "c2ln" } }
    local calls = { { id = "a", name = "t", arguments = '{"q": 1}' } }
    local here = lower { assistant(calls, { data = parts }), result("a", "A") }
    assert.same({ { text = "hm" }, { functionCall = { id = "a", name = "t", args = { q = 1 } },
      thoughtSignature = "c2ln" } }, here.contents[1].parts)
    for _, member in ipairs { "adapter", "model", "endpoint" } do
      local other = { adapter = "gemini", model = "m", endpoint = "http://x" }
      other[member] = "other"
      local there = lower { assistant(calls, { data = parts, origin = other }), result("a", "A") }
      assert.same({ { functionCall = { id = "a", name = "t", args = { q = 1 } } } },
        there.contents[1].parts)
    end
  end)

  it("marks the first call another model made as unsigned, from Gemini 3 on", function()
    local calls = { { id = "a", name = "t", arguments = "{}" },
      { id = "b", name = "t", arguments = "{}" } }
    local body = lower({ assistant(calls), result("a", ""), result("b", "") }, "gemini-3-pro")
    local parts = body.contents[1].parts
    assert.equal("skip_thought_signature_validator", parts[1].thoughtSignature)
    assert.is_nil(parts[2].thoughtSignature)
  end)

  it("leads names that begin with no letter by a mark, and no two meet", function()
    local seen = {}
    for _, name in ipairs { "1a", "_1a", "__1a", "-a", "_-a", "_a", "a1", "__" } do
      local body = lower { with_tool({ type = "object" }, name) }
      local named = body.tools[1].functionDeclarations[1].name
      assert.truthy(named:find("^[A-Za-z_][%w_-]*$"))
      assert.is_nil(seen[named])
      seen[named] = true
      local got = wire.read(stream(piece({ call(named, {}) }, "STOP")))
      assert.equal(name, server.decode(got.entry).tool_calls[1].name)
    end
  end)

  it("begins with the bytes of the one before", function()
    local o = { provider = "gemini", base_url = "http://x" }
    local calls = { { id = "a", name = "t", arguments = "{}" } }
    local one, two, three = ahtest.wire_lower(o,
      wire.encoded { { type = "prompt", text = "P" }, with_tool { type = "object" },
        user "a" },
      wire.encoded { assistant(calls), result("a", "A") },
      wire.encoded { with_tool({ type = "object" }, "u") })
    wire.check_prefix(one, two)
    assert.equal(one.body:sub(1, -3), two.body:sub(1, #one.body - 2))
    assert.equal("tools_changed", three.reason)
  end)
end)

describe("a schema for gemini", function()
  it("keeps the words it knows", function()
    local schema = { type = "object", properties = { a = { type = { "string", "null" },
      enum = { "x", "y" }, description = "A." }, b = { type = "array", minItems = 1,
      items = { anyOf = { { type = "integer", minimum = 2 }, { type = "boolean" } } } } },
      required = { "a" }, additionalProperties = false }
    assert.same(schema, parameters_of(schema))
  end)

  it("says in words what it cannot say otherwise, at every depth", function()
    local got = parameters_of { type = "object", properties = { a = { type = "string",
      pattern = '^"x"$', description = "A." }, c = { const = 7 }, d = { const = true },
      e = { type = "object", properties = { f = { type = "integer", multipleOf = 3 } } } } }
    assert.equal('A. It must fit {"pattern":"^\\"x\\"$"}.', got.properties.a.description)
    assert.is_nil(got.properties.a.pattern)
    assert.same({ enum = { 7 } }, got.properties.c)
    assert.equal('It must fit {"const":true}.', got.properties.d.description)
    assert.same({ type = "integer", description = 'It must fit {"multipleOf":3}.' },
      got.properties.e.properties.f)
  end)

  it("lets references stand alone", function()
    local got = parameters_of { type = "object", ["$defs"] = { x = { type = "string",
      minLength = 1 } }, properties = { a = { ["$ref"] = "#/$defs/x", description = "A." },
      b = { ["$ref"] = "#/$defs/x" } } }
    assert.same({ anyOf = { { ["$ref"] = "#/$defs/x" } }, description = "A." }, got.properties.a)
    assert.same({ ["$ref"] = "#/$defs/x" }, got.properties.b)
    assert.equal('It must fit {"minLength":1}.', got["$defs"].x.description)
  end)

  it("says lists of items as the newest draft does, and the rules of others in words", function()
    local got = parameters_of { ["$schema"] = "https://json-schema.org/draft/2019-09/schema",
      type = "object", properties = { a = { type = "array", additionalItems = false,
        items = server.array { { type = "string", minLength = 1 }, { type = "integer" } } },
        b = { ["$recursiveRef"] = "#" } } }
    assert.same({ { type = "string", description = 'It must fit {"minLength":1}.' },
      { type = "integer" } }, got.properties.a.prefixItems)
    assert.is_nil(got.properties.a.items)
    assert.equal('It must fit {"additionalItems":false}.', got.properties.a.description)
    assert.equal('It must fit {"$recursiveRef":"#"}.', got.properties.b.description)
  end)

  it("tells in words what has the name of a word that it knows and is something else", function()
    local got = parameters_of { ["$schema"] = "http://json-schema.org/draft-07/schema#",
      type = "object", prefixItems = 5, properties = { a = { ["$defs"] = server.array { 1 } } } }
    assert.matches('"prefixItems":5', got.description, 1, true)
    assert.equal('It must fit {"$defs":[1]}.', got.properties.a.description)
    got = parameters_of { type = "object", properties = { a = { const = "x",
      enum = server.array { "x", "y" } } } }
    assert.same({ enum = { "x", "y" }, description = 'It must fit {"const":"x"}.' },
      got.properties.a)
    got = parameters_of { type = "object", ["$defs"] = 5, anyOf = server.array { true } }
    assert.equal(5, got["$defs"])
  end)

  it("wraps a root that is more than an object, in the request and back", function()
    local schema = { type = "object", ["$defs"] = { x = { type = "string" } },
      anyOf = { { required = { "a" } }, { required = { "b" } } },
      properties = { a = { ["$ref"] = "#/$defs/x" }, b = { type = "string" } } }
    local got = parameters_of(schema)
    assert.same({ "wrapped_arguments" }, got.required)
    assert.same(schema.anyOf, got.properties.wrapped_arguments.anyOf)
    assert.same(schema["$defs"], got["$defs"])
    assert.is_nil(got.properties.wrapped_arguments["$defs"])
    local x = stream(piece({ call("t", { wrapped_arguments = { a = "1" } }) }, "STOP"))
    local entry = server.decode(wire.read(x).entry)
    assert.equal('{"a":"1"}', entry.tool_calls[1].arguments)
    local body = lower { with_tool(schema), { type = "assistant", content = server.array {},
      tool_calls = entry.tool_calls }, result("call_0_1", "") }
    assert.same({ wrapped_arguments = { a = "1" } }, body.contents[1].parts[1].functionCall.args)
  end)
end)

-- -- runs -----------------------------------------------------------------------------------

local function reply_of(doc, streamed)
  if streamed then
    return server.sse({ server.encode(doc) })
  end
  return server.json(doc)
end

local function counting(seen)
  return ah.tool { name = "count", description = "Counts.", schema = { type = "object" },
    handler = function(args)
      seen.n, seen.args = (seen.n or 0) + 1, args
      return "counted"
    end }
end

describe("a run with gemini", function()
  for _, streamed in ipairs { false, true } do
    it("calls tools and answers" .. (streamed and ", streamed" or ""), function()
      local first = piece({ call("count", { x = 1 }, "c2ln", "id7"), call("count", {}) }, "STOP",
        { promptTokenCount = 5, candidatesTokenCount = 1, thoughtsTokenCount = 2 })
      local s <close> = server.start { responses = { reply_of(first, streamed),
        reply_of(piece({ text "done" }, "STOP", { promptTokenCount = 9 }), streamed) } }
      local seen = {}
      local reply = assert(ah.run { model = "gemini/gemini-3-flash", base_url = s.url,
        api_key = KEY, tools = { counting(seen) }, system = "S", stream = streamed, "hi" })
      assert.same({ "done", "end", 2, 2 }, { reply.text, reply.stop, reply.iterations, seen.n })
      assert.equal(14, reply.usage.input)
      assert.equal(2, reply.usage.reasoning)
      sound.check(reply:transcript())
      local one, two = table.unpack(s:requests())
      local path = "/v1beta/models/gemini-3-flash:" ..
        (streamed and "streamGenerateContent?alt=sse" or "generateContent")
      assert.same({ "POST", path, KEY }, { one.method, one.path, one.headers["x-goog-api-key"] })
      assert.is_nil(one.headers.authorization)
      assert.equal(one.body:sub(1, -3), two.body:sub(1, #one.body - 2))
      local parts, results = two:json().contents[2].parts, two:json().contents[3].parts
      assert.same({ id = "id7", name = "count", args = { x = 1 } }, parts[1].functionCall)
      assert.equal("c2ln", parts[1].thoughtSignature)
      assert.equal(parts[2].functionCall.id, results[2].functionResponse.id)
      assert.equal("counted", results[1].functionResponse.response.output)
    end)
  end

  it("waits as long as the error says and tries again", function()
    local busy = server.json({ error = { code = 429, message = "busy", status =
      "RESOURCE_EXHAUSTED", details = { { retryDelay = "0.02s" } } } }, { status = 429 })
    local s <close> = server.start { responses = { busy,
      server.json(piece({ text "ok" }, "STOP")) } }
    local waited
    local reply = assert(ah.run { model = "gemini/m", base_url = s.url, api_key = KEY, "hi",
      on = { retry = function(e) waited = e end } })
    assert.equal("ok", reply.text)
    assert.equal(2, #s:requests())
    assert.truthy(waited)
  end)

  it("hands signatures on with its messages, and keeps them in what it saves", function()
    local signed = server.json(piece({ call("count", {}, "c2ln") }, "STOP"))
    local done = server.json(piece({ text("done", { thoughtSignature = "enp6" }) }, "STOP"))
    local s <close> = server.start { responses = { signed, done } }
    local function fields(more)
      local o = { model = "gemini/m", base_url = s.url, api_key = KEY, tools = { counting {} } }
      for k, v in pairs(more or {}) do
        o[k] = v
      end
      return o
    end
    local reply = assert(ah.run(fields { "one" }))
    assert(ah.run(fields { "two", messages = reply.messages }))
    local path <const> = os.tmpname()
    local agent = ah.agent(fields())
    assert(agent:run("three"))
    assert(agent:save(path))
    assert(assert(ah.load(path, fields())):run("four"))
    os.remove(path)
    local requests = s:requests()
    for at, part in pairs { [3] = 2, [5] = 2 } do
      local content = requests[at]:json().contents[part]
      assert.equal(at == 3 and "c2ln" or "enp6", content.parts[1].thoughtSignature)
    end
  end)

  it("needs a key for Google's own address, under either name", function()
    local reply, err = ah.run { model = "gemini/m", "hi" }
    assert.is_nil(reply)
    assert.truthy(err.message:find("GEMINI_API_KEY", 1, true))
  end)

  it("tells a refusal by the filter, with the provider's word", function()
    local s <close> = server.start { responses = { server.json(piece(nil, "SAFETY")) } }
    local reply = assert(ah.run { model = "gemini/m", base_url = s.url, api_key = KEY, "hi" })
    assert.equal("content_filter", reply.stop)
    assert.truthy(reply:transcript():find('"stop_word":"SAFETY"', 1, true))
  end)
end)

-- -- recordings -----------------------------------------------------------------------------

-- Not answers to generateContent: counted tokens, a list of models, Vertex' partial arguments.
local OTHER = { ["15-count-tokens.json"] = true, ["18-model-list.json"] = true,
  ["17-stream-partial-args.json"] = true }

local function recorded()
  local list = {}
  for _, x in ipairs(recordings.exchanges "gemini") do
    if not OTHER[x.file] then
      list[#list + 1] = x
    end
  end
  return list
end

-- Checks successive requests of one file, each continuing the one before.
local function check_requests(list)
  local before, history, known
  for _, x in ipairs(list) do
    local model = x.request.url:match("models/([^:]+)")
    local out = gemini.explained(x.request.body)
    local origin = { adapter = "gemini", model = model, endpoint = BASE }
    local from = before and #before.contents + 1 or 1
    local entries = gemini.entries(out, model, from, origin)
    known = before and known or {}
    entries[#entries + 1] = gemini.tools(out, known)
    history = before and history or {}
    history[#history + 1] = wire.encoded(entries)
    local requests = { ahtest.wire_lower({ provider = "gemini", model = model, base_url = BASE,
      key = "unused-key" }, table.unpack(history)) }
    local got = gemini.without_made(gemini.explained(server.decode(requests[#requests].body)))
    assert.equal(server.encode(out), server.encode(got), x.name)
    if #requests > 1 then
      wire.check_prefix(requests[#requests - 1], requests[#requests], x.name)
    end
    before = out
  end
end

describe("the recordings of gemini", function()
  local exchanges = recorded()

  local function lowered()
    local files, n = {}, 0
    for _, x in ipairs(exchanges) do
      if x.request then
        files[x.file] = files[x.file] or {}
        table.insert(files[x.file], x)
      end
    end
    for _, list in pairs(files) do
      check_requests(list)
      n = n + 1
    end
    assert.is_true(n > 15)
  end

  wire.check_recordings { it = it, pending = pending, exchanges = exchanges, lowered = lowered }
end)
