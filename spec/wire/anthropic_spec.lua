-- The Anthropic adapter: recorded traffic and our own cases, read whole and cut at every byte;
-- requests; tools that are added and removed in each mode; runs over HTTP on loopback.
local ah = require "agenthost"
local ahtest = require "ahtest"
local recorded = require "support.recorded_anthropic"
local recordings = require "support.recordings"
local server = require "support.server"
local sound = require "support.sound"

local KEY = "sk-ant-canary-1234567890"
local NEW, OLD = "claude-opus-4-8", "claude-haiku-4-5"

local wire = require "support.wire" {
  provider = "anthropic",
  model = NEW,
  base_url = "http://x",
  plain = recorded.read,
}

-- -- making responses ----------------------------------------------------------------------

local function events(list)
  local out = {}
  for i, e in ipairs(list) do
    out[i] = ("event: %s\ndata: %s\n\n"):format(e.type, server.encode(e))
  end
  return table.concat(out)
end

local function message(content, stop, more)
  local m = {
    id = "msg_1",
    type = "message",
    role = "assistant",
    content = server.array(content or {}),
    stop_reason = stop or server.null,
    usage = { input_tokens = 10, output_tokens = 5 },
  }
  for k, v in pairs(more or {}) do
    m[k] = v
  end
  return m
end

-- Appends the events of one block: its start, its deltas, its end.
local function block(list, index, begins, ...)
  list[#list + 1] = { type = "content_block_start", index = index, content_block = begins }
  for _, delta in ipairs { ... } do
    list[#list + 1] = { type = "content_block_delta", index = index, delta = delta }
  end
  list[#list + 1] = { type = "content_block_stop", index = index }
end

local function text_delta(text)
  return { type = "text_delta", text = text }
end

local function json_delta(json)
  return { type = "input_json_delta", partial_json = json }
end

-- Returns a stream: its first event, those of `fill`, and its end.
local function streamed(fill, stop, more)
  local list = { { type = "message_start", message = message() }, { type = "ping" } }
  fill(list)
  local delta = { stop_reason = stop, stop_sequence = server.null }
  for k, v in pairs(more or {}) do
    delta[k] = v
  end
  list[#list + 1] = { type = "message_delta", delta = delta, usage = { output_tokens = 7 } }
  list[#list + 1] = { type = "message_stop" }
  return events(list)
end

local function say(text)
  return function(list)
    block(list, 0, { type = "text", text = "" }, text_delta(text))
  end
end

local function thinks_and_calls(list)
  block(list, 0, { type = "thinking", thinking = "", signature = "" },
    { type = "thinking_delta", thinking = "Let me\n" }, { type = "thinking_delta",
      thinking = "see é" },
    { type = "signature_delta", signature = "c2ln" })
  block(list, 1, { type = "redacted_thinking", data = "b3BhcXVl" })
  block(list, 2, { type = "text", text = "I look" }, text_delta("."))
  block(list, 3, { type = "tool_use", id = "toolu_1", name = "count", input = {} },
    json_delta "", json_delta '{"a":', json_delta '"\\u00e9"}')
  block(list, 4, { type = "thinking", thinking = "" },
    { type = "thinking_delta", thinking = "again" }, { type = "signature_delta", signature = "Mg" })
  block(list, 5, { type = "tool_use", id = "toolu_2", name = "count", input = {} },
    json_delta "")
end

local function cut_short(list)
  list[#list + 1] = { type = "content_block_start", index = 0,
    content_block = { type = "thinking", thinking = "" } }
  list[#list + 1] = { type = "content_block_delta", index = 0,
    delta = { type = "thinking_delta", thinking = "nobody signed" } }
end

local function server_tool(list)
  block(list, 0, { type = "server_tool_use", id = "srvtoolu_1", name = "web", input = {} },
    json_delta '{"q":', json_delta "1}")
  block(list, 1, { type = "web_result", tool_use_id = "srvtoolu_1", content = { { n = 1 } } })
end

local WHY = { stop_details = { type = "refusal", explanation = "No." } }

local CASES = {
  wire.stream(streamed(say "Hel\"lo 😀\n", "end_turn")),
  wire.stream(streamed(thinks_and_calls, "tool_use")),
  wire.stream(streamed(thinks_and_calls, "max_tokens")),
  wire.stream(streamed(cut_short, "max_tokens")),
  wire.stream(streamed(server_tool, "pause_turn")),
  wire.stream(streamed(thinks_and_calls, "refusal", WHY)),
  wire.stream(streamed(thinks_and_calls, "refusal")),
  wire.stream(streamed(say "a", "stop_sequence")),
  wire.stream(streamed(say "", "model_context_window_exceeded")),
  wire.stream(events { { type = "message_start", message = message() } }),
  wire.stream(events {
    { type = "message_start", message = message() },
    { type = "error", error = { type = "overloaded_error", message = "Overloaded" } },
  }),
  wire.stream(events { { type = "error", error = { type = "invalid_request_error",
    message = "no" } } }),
  wire.whole(server.encode(message({ { type = "text", text = "whole" } }, "end_turn"))),
  wire.whole(server.encode(message({
    { type = "thinking", thinking = "t", signature = "s" },
    { type = "tool_use", id = "a", name = "f", input = { x = 1 } },
    { type = "tool_use", id = "b", name = "g", input = {} },
  }, "tool_use", {
    usage = {
      input_tokens = 3,
      cache_creation_input_tokens = 20,
      cache_read_input_tokens = 100,
      output_tokens = 9,
      output_tokens_details = { thinking_tokens = 4 },
    },
  }))),
  wire.whole('{"type":"error","error":{"type":"not_found_error","message":"model: x"}}', 404),
  wire.whole('{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}', 429),
  wire.whole('{"type":"error","error":{"type":"overloaded_error","message":"busy"}}', 529),
  wire.whole("<html>", 502),
  wire.whole("{}", 400, { ["x-should-retry"] = "true" }),
}

describe("an answer of Anthropic", function()
  wire.it_reads(it, CASES)

  it("keeps what must come back as it was, bytes and order included", function()
    local entry = wire.read(wire.stream(streamed(thinks_and_calls, "tool_use"))).entry
    local data = '"data":{"signature":"c2ln","thinking":"Let me\\u000asee é","type":"thinking"}'
    assert.truthy(entry:find(data, 1, true), entry)
    local origin = { adapter = "anthropic", model = NEW, endpoint = "http://x" }
    local content = server.decode(entry).content
    assert.same(origin, content[1].origin)
    assert.same({ "opaque", "opaque", "text", "opaque" },
      { content[1].type, content[2].type, content[3].type, content[4].type })
    assert.same({ nil, nil, nil, 1 },
      { content[1].calls, content[2].calls, content[3].calls, content[4].calls })
  end)

  it("does not call what a refused message had begun to call", function()
    local entry = server.decode(wire.read(wire.stream(streamed(thinks_and_calls, "refusal",
      WHY))).entry)
    assert.is_nil(entry.tool_calls)
    assert.same({ "refusal", "refusal" }, { entry.stop, entry.stop_word })
  end)

  it("counts what was cached as input", function()
    local usage = server.decode(wire.read(CASES[14]).entry).usage
    assert.same({ 123, 100, 20, 4 },
      { usage.input, usage.cached_read, usage.cached_write, usage.reasoning })
  end)

  it("of 429 is tried again, but not a spent budget: that comes without a time to wait", function()
    local x = wire.whole('{"error":{"type":"rate_limit_error","message":"m"}}', 429)
    assert.is_true(wire.read(x).error.retryable)
    local official = { base_url = "https://api.anthropic.com", key = KEY }
    assert.is_false(wire.read(x, official).error.retryable)
    x.headers["retry-after"] = "3"
    local got = wire.read(x, official)
    assert.same({ true, 3000 }, { got.error.retryable, got.retry_after })
  end)

  it("hides a key that comes back, in what is kept verbatim, too", function()
    local x = wire.stream(streamed(function(list)
      block(list, 0, { type = "thinking", thinking = "" },
        { type = "thinking_delta", thinking = "sk-ant-can" },
        { type = "thinking_delta", thinking = "ary-1234567890!" })
      block(list, 1, { type = "text", text = "" }, text_delta("x " .. KEY))
      block(list, 2, { type = "other", a = KEY })
    end, "end_turn"))
    for at = 1, #x.body - 1, 7 do
      assert.falsy(wire.outcome(wire.read(x, { key = KEY, cut = at })):find("canary", 1, true))
    end
    assert.truthy(wire.read(x, { key = KEY }).entry:find('"thinking":"[secret]!"', 1, true))
  end)
end)

-- -- requests ------------------------------------------------------------------------------

local function settings(options)
  return server.encode { type = "settings", model = "anthropic/x", options = options or {} }
end

local function user(text)
  return server.encode { type = "user", content = server.array { { type = "text", text = text } } }
end

local function tool(name)
  return { name = name, description = name .. ".", parameters = { type = "object" } }
end

local function added(...)
  local list = server.array {}
  for i, name in ipairs { ... } do
    list[i] = tool(name)
  end
  return server.encode { type = "tools_added", tools = list }
end

local function removed(name)
  return server.encode { type = "tools_removed", names = { name } }
end

local function assistant(text, calls)
  local content = server.array {}
  content[1] = text and { type = "text", text = text }
  return server.encode { type = "assistant", content = content, tool_calls = calls }
end

local function call(id, name, arguments)
  return { id = id, name = name, arguments = arguments or "{}" }
end

local function result(id, content, success)
  return server.encode { type = "tool_result", id = id, name = "f", content = content,
    success = success ~= false }
end

local function lower(o, ...)
  return ahtest.wire_lower({ provider = "anthropic", model = o.model or OLD, base_url = o.base_url
    or "http://x", key = o.key, mode = o.mode, stream = o.stream }, ...)
end

local function body_of(o, ...)
  return server.decode(lower(o, { ... }).body)
end

describe("a request to Anthropic", function()
  it("has the options under the names of the wire", function()
    local body = body_of({ stream = true }, settings { max_tokens = 100, stop = "x", top_p = 0.5,
      temperature = 0, seed = 7, tool_choice = "required" }, added "f", user "hi")
    assert.same({ 100, { "x" }, 0.5, 0, nil, { type = "any" }, true }, { body.max_tokens,
      body.stop_sequences, body.top_p, body.temperature, body.seed, body.tool_choice, body.stream })
    assert.same({ type = "tool", name = "f" },
      body_of({}, settings { tool_choice = { name = "f" } }, added "f", user "hi").tool_choice)
    assert.is_nil(body_of({}, settings { tool_choice = "auto" }, user "hi").tool_choice)
  end)

  it("says how much may be written where nobody did", function()
    for model, most in pairs { [OLD] = 32000, ["claude-3-haiku-20240307"] = 4096,
      ["nobody-knows-5"] = 8192 } do
      assert.equal(most, body_of({ model = model }, settings(), user "hi").max_tokens)
    end
  end)

  it("asks for thought by effort or by budget, as the model takes it", function()
    local body = body_of({ model = NEW }, settings { reasoning = "high" }, user "hi")
    assert.same({ { type = "adaptive" }, { effort = "high" } }, { body.thinking,
      body.output_config })
    body = body_of({}, settings { reasoning = "low", max_tokens = 500 }, user "hi")
    assert.same({ { type = "enabled", budget_tokens = 2048 }, 2548 }, { body.thinking,
      body.max_tokens })
    body = body_of({}, settings { reasoning = "none" }, user "hi")
    assert.is_nil(body.thinking)
  end)

  it("marks what is to be cached, unless it is told not to", function()
    local function marks(cache)
      local body = body_of({}, settings { cache = cache }, '{"type":"prompt","text":"P"}',
        user "hi")
      return { body.cache_control or "none", body.system[1].cache_control or "none" }
    end
    local short, long = { type = "ephemeral" }, { type = "ephemeral", ttl = "1h" }
    assert.same({ short, short }, marks(nil))
    assert.same({ long, long }, marks "1h")
    assert.same({ "none", "none" }, marks "off")
  end)

  it("keeps the marks out of the segments", function()
    local r = lower({}, { settings(), '{"type":"prompt","text":"P"}', user "hi" })
    for _, s in ipairs(r.segments) do
      assert.falsy(s.bytes:find("cache_control", 1, true))
    end
  end)

  it("joins neighbours of one role: all results in one message, then what else was said", function()
    local body = body_of({}, added "f", user "go",
      assistant("a ", { call("t1", "f", '{"x":1}'), call("t2", "f", "no json") }),
      result("t1", "one"), result("t2", "two", false), '{"type":"note","text":"N"}', user "on")
    assert.same({
      { role = "user", content = { { type = "text", text = "go" } } },
      { role = "assistant", content = {
        { type = "text", text = "a " },
        { type = "tool_use", id = "t1", name = "f", input = { x = 1 } },
        { type = "tool_use", id = "t2", name = "f", input = {} },
      } },
      { role = "user", content = {
        { type = "tool_result", tool_use_id = "t1", content = "one" },
        { type = "tool_result", tool_use_id = "t2", content = "two", is_error = true },
        { type = "text", text = "<system>N</system>" },
        { type = "text", text = "on" },
      } },
    }, body.messages)
    assert.same({ type = "object" }, body.tools[1].input_schema)
  end)

  it("holds no blank text, no empty list of tools, and empty objects as objects", function()
    local r = lower({}, { user " \n", assistant("\t"), user "on", assistant(nil, { call("a", "f",
      "") }),
      result("a", "") })
    assert.truthy(r.body:find('"input":{}', 1, true))
    assert.falsy(r.body:find('"tools"', 1, true))
    assert.same({ "(empty message)", "on" }, {
      server.decode(r.body).messages[1].content[1].text,
      server.decode(r.body).messages[1].content[2].text,
    })
  end)

  it("gives ids that this wire cannot take others that stay apart", function()
    local body = body_of({}, user "go", assistant(nil, { call("a.b", "f"), call("a:b", "f") }),
      result("a.b", "1"), result("a:b", "2"))
    local calls, results = body.messages[2].content, body.messages[3].content
    assert.not_equal(calls[1].id, calls[2].id)
    for i = 1, 2 do
      assert.truthy(calls[i].id:find("^[%w_-]+$"))
      assert.equal(calls[i].id, results[i].tool_use_id)
    end
  end)

  it("sends back what was kept to where it came from, and to nobody else", function()
    local x = wire.stream(streamed(thinks_and_calls, "tool_use"))
    local entry = wire.read(x).entry
    local function types(o)
      local body = body_of(o, user "go", entry, result("toolu_1", "1"), result("toolu_2", "2"))
      local list = {}
      for i, b in ipairs(body.messages[2].content) do
        list[i] = b.type
      end
      return table.concat(list, " "), body.messages[2].content
    end
    local same, blocks = types { model = NEW }
    assert.equal("thinking redacted_thinking text tool_use thinking tool_use", same)
    assert.same({ "Let me\nsee é", "c2ln", "b3BhcXVl" },
      { blocks[1].thinking, blocks[1].signature, blocks[2].data })
    assert.equal("text tool_use tool_use", (types { model = OLD }))
    assert.equal("text tool_use tool_use", (types { model = NEW, base_url = "http://y" }))
  end)

  it("goes to /v1/messages with key and version", function()
    local r = lower({ key = KEY, base_url = "http://x/" }, { user "hi" })
    assert.equal("http://x/v1/messages", r.url)
    assert.same({ "Content-Type: application/json", "Accept: application/json",
      "x-api-key: " .. KEY,
      "anthropic-version: 2023-06-01" }, r.headers)
    assert.equal("http://x/v1/messages", lower({ base_url = "http://x/v1" }, { user "hi" }).url)
  end)
end)

-- -- tools that come and go ----------------------------------------------------------------

local TALK = {
  { settings(), '{"type":"prompt","text":"P"}', added("f"), user "go" },
  { assistant(nil, { call("a", "f") }), result("a", "1"), added("g", "h") },
  { assistant(nil, { call("b", "g") }), result("b", "2"), removed "g" },
  { assistant "done", added "g", user "more" },
}

local function talk(o)
  local r = { lower(o, table.unpack(TALK)) }
  for i = 2, #r do
    wire.check_prefix(r[i - 1], r[i], ("%s %d"):format(o.mode, i))
  end
  return r
end

local function reasons(requests)
  local list = {}
  for i, r in ipairs(requests) do
    list[i] = r.reason or "-"
  end
  return table.concat(list, " ")
end

local function beta_of(r)
  for _, line in ipairs(r.headers) do
    local value = line:match("^anthropic%-beta: (.*)")
    if value then
      return value
    end
  end
end

local function names(body)
  local list = {}
  for i, t in ipairs(body.tools) do
    list[i] = t.name .. (t.defer_loading and "+" or "")
  end
  return table.concat(list, " ")
end

-- Returns the blocks of the n-th system message.
local function changes(body, n)
  for _, m in ipairs(body.messages) do
    if m.role == "system" then
      n = n - 1
      if n == 0 then
        return m.content
      end
    end
  end
end

describe("tools that come and go at Anthropic", function()
  local function change(kind, name)
    return { type = kind, tool = { type = "tool_reference", name = name } }
  end

  it("are named where they come (reference), at no cost, with the beta named once needed",
    function()
    local r = talk { model = NEW }
    assert.equal("- - - -", reasons(r))
    assert.same({ "f deferred_tool_placeholder+", "f deferred_tool_placeholder+ g+ h+" },
      { names(server.decode(r[1].body)), names(server.decode(r[4].body)) })
    local body = server.decode(r[4].body)
    assert.same({ change("tool_addition", "g"), change("tool_addition", "h") }, changes(body, 1))
    assert.same({ change("tool_removal", "g") }, changes(body, 2))
    assert.same({ change("tool_addition", "g") }, changes(body, 3))
    assert.is_nil(beta_of(r[1]))
    assert.equal("mid-conversation-tool-changes-2026-07-01", beta_of(r[2]))
  end)

  it("stand behind results, and behind what the user says after the model's last word", function()
    local roles = {}
    for i, m in ipairs(server.decode(talk({ model = NEW })[4].body).messages) do
      roles[i] = m.role
    end
    assert.equal("user assistant user system assistant user system assistant user system",
      table.concat(roles, " "))
  end)

  it("are defined where they come (inline)", function()
    local r = talk { mode = "inline", model = NEW }
    assert.equal("- - - -", reasons(r))
    local body = server.decode(r[4].body)
    assert.equal("f", names(body))
    assert.same({ type = "tool_addition", tool = { type = "tool_definition",
      definition = { name = "g", description = "g.", input_schema = { type = "object" } } } },
      changes(body, 1)[1])
    assert.equal("inline-tools-2026-09-15", beta_of(r[2]))
  end)

  it("cost the cache where the model takes no changes (append), and tell so", function()
    local r = talk {}
    assert.equal("- tools_changed - -", reasons(r))
    assert.equal("f g h", names(server.decode(r[4].body)))
    assert.is_nil(beta_of(r[4]))
  end)

  it("go through one tool where that is asked for (dispatcher)", function()
    local r = talk { mode = "dispatcher" }
    assert.equal("- - - -", reasons(r))
    assert.equal("f call_tool", names(server.decode(r[4].body)))
  end)

  it("are no change in mid-conversation where there was none to begin with", function()
    local first, second, third = lower({ model = NEW }, { user "go" },
      { assistant "hm", added "f", user "on" }, { assistant "hm", added "g", user "on" })
    assert.is_nil(first.reason)
    assert.same({ "tools_changed", "f deferred_tool_placeholder+" },
      { second.reason, names(server.decode(second.body)) })
    assert.is_nil(third.reason)
  end)

  it("that change their definition cost the cache, and are there again if they had gone", function()
    local other = added("f"):gsub("f%.", "F!")
    local _, second = lower({ model = NEW }, { added("f", "g"), user "go" },
      { assistant "hm", removed "f", other, user "on" })
    local body = server.decode(second.body)
    assert.same({ "tools_changed", "F!" }, { second.reason, body.tools[1].description })
    assert.same({ change("tool_removal", "f"), change("tool_addition", "f") }, changes(body, 1))
  end)

  it("refuse a mode that this wire does not have", function()
    local ok, err = pcall(lower, { mode = "additional_tools" }, { user "hi" })
    assert.is_false(ok)
    assert.truthy(tostring(err):find("has no 'additional_tools'; it has restart, append, inline, "
      .. "reference, dispatcher", 1, true), tostring(err))
  end)
end)

-- -- runs ----------------------------------------------------------------------------------

local function run(s, fields)
  fields.model = fields.model or "anthropic/" .. NEW
  fields.base_url, fields.api_key = s.url, KEY
  fields[1] = fields[1] or "go"
  return ah.run(fields)
end

local function counter(name)
  return ah.tool { name = name, description = "Counts.", params = { a = "string?" },
    handler = function()
      return "counted"
    end }
end

describe("a run with Anthropic", function()
  for _, stream in ipairs { true, false } do
    it("loops, thinking included" .. (stream and " (streamed)" or ""), function()
      local first = stream and server.sse({}, { body = streamed(thinks_and_calls, "tool_use") })
        or server.json(message({
          { type = "thinking", thinking = "t", signature = "s" },
          { type = "tool_use", id = "toolu_1", name = "count", input = {} },
        }, "tool_use"))
      local last = stream and server.sse({}, { body = streamed(say "done", "end_turn") })
        or server.json(message({ { type = "text", text = "done" } }, "end_turn"))
      local s <close> = server.start { responses = { first, last } }
      local reply = assert(run(s, { stream = stream, tools = { counter "count" } }))
      sound.check(reply:transcript())
      assert.same({ "done", "end" }, { reply.text, reply.stop })
      local one, two = table.unpack(s:requests())
      assert.equal("/v1/messages", one.path)
      assert.equal(KEY, one.headers["x-api-key"])
      assert.equal(one.body:sub(1, -5), two.body:sub(1, #one.body - 4))
      local back = two:json().messages
      assert.equal("thinking", back[2].content[1].type)
      assert.equal("counted", back[3].content[1].content)
      assert.is_nil(reply:transcript():find("canary", 1, true))
    end)
  end

  it("takes a tool that a handler brings, named in mid-conversation", function()
    local function calls(name, id)
      return server.json(message({
        { type = "tool_use", id = id, name = name, input = {} },
      }, "tool_use"))
    end
    local s <close> = server.start { responses = { calls("open", "a"), calls("late", "b"),
      server.json(message({ { type = "text", text = "done" } }, "end_turn")) } }
    local breaks = 0
    local open = ah.tool { name = "open", description = "Opens.", handler = function(_, ctx)
      ctx:add_tools(counter "late")
    end }
    local reply = assert(run(s, { tools = { open }, on = { cache_break = function()
      breaks = breaks + 1
    end } }))
    assert.same({ "done", 0, { "late" } }, { reply.text, breaks, reply.injected_tools })
    local second = s:requests()[2]
    assert.truthy(second.headers["anthropic-beta"])
    assert.same({ { type = "tool_addition", tool = { type = "tool_reference", name = "late" } } },
      changes(second:json(), 1))
  end)

  it("goes on from the messages of a reply, thinking included", function()
    local thought = { type = "thinking", thinking = "t", signature = "s" }
    local s <close> = server.start { responses = {
      server.json(message({ thought, { type = "text", text = "one" } }, "end_turn")),
      server.json(message({ { type = "text", text = "two" } }, "end_turn")),
    } }
    local messages = assert(run(s, {})).messages
    assert.equal("two", assert(run(s, { messages = messages })).text)
    assert.same(thought, s:requests()[2]:json().messages[2].content[1])
    messages[2].content[1].data = "none"
    assert.has_error(function()
      run(s, { messages = messages })
    end)
  end)

  it("has its mode from the field tool_change_mode", function()
    local s <close> = server.start { responses = {
      server.json(message({ { type = "text", text = "done" } }, "end_turn")) } }
    assert(run(s, { tools = { counter "f" }, tool_change_mode = "append" }))
    assert.equal("f", names(s:requests()[1]:json()))
    local ok, err = pcall(run, s, { tool_change_mode = "list_changed" })
    assert.is_false(ok)
    assert.equal("usage", err.code)
  end)

  it("is asked again when the server was busy, before and in a stream", function()
    local busy = { type = "error", error = { type = "overloaded_error", message = "Overloaded" } }
    local s <close> = server.start { responses = {
      server.json(busy, { status = 529, headers = { ["Content-Type"] = "application/json",
        ["retry-after-ms"] = "1" } }),
      server.sse({}, { body = events { { type = "message_start", message = message() }, busy } }),
      server.sse({}, { body = streamed(say "done", "end_turn") }),
    } }
    local told = {}
    local reply = assert(run(s, { stream = true, on = { retry = function(e)
      told[#told + 1] = e.status
    end } }))
    assert.same({ "done", { 529, 529 } }, { reply.text, told })
  end)

  it("without a key says where one may come from", function()
    local reply, err = ah.run { model = "anthropic/x", base_url = "https://api.anthropic.com",
      "hi" }
    assert.is_nil(reply)
    assert.equal("provider", err.code)
    assert.truthy(err.message:find("ANTHROPIC_API_KEY", 1, true))
  end)
end)

-- -- recordings ----------------------------------------------------------------------------

describe("the recordings of anthropic", function()
  local exchanges = recordings.exchanges "anthropic"

  local function lowered()
    local form = { entries = recorded.entries, explained = recorded.explained }
    function form.options(request)
      return {
        provider = "anthropic",
        model = request.body.model,
        base_url = request.url:gsub("/v1/messages.*$", ""),
        key = KEY,
        mode = server.encode(request.body):find("tool_definition", 1, true) and "inline" or nil,
      }
    end
    local files = wire.by_file(exchanges, function(request)
      return request.body.max_tokens ~= nil -- a request to count tokens, which is not one of ours
    end)
    for _, list in ipairs(files) do
      wire.check_requests(list, form)
    end
  end

  wire.check_recordings { it = it, pending = pending, exchanges = exchanges, lowered = lowered }
end)
