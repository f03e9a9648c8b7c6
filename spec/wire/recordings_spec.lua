-- The OpenAI adapter with recorded traffic: every response is read, streams cut at every byte;
-- every request is built again from its messages and tools. If there are no recordings, small cases
-- of our own cover the same grammar.
local ahtest = require "ahtest"
local recordings = require "support.recordings"
local server = require "support.server"

local wire = require "support.wire" { base_url = "http://x/v1", plain = recordings.read }
local check, check_cuts, check_ids, read = wire.check, wire.check_cuts, wire.check_ids, wire.read
local check_prefix, outcome, whole, stream = wire.check_prefix, wire.outcome, wire.whole,
  wire.stream

-- Members of a request that we have no field for, or leave at their default.
local NOT_OURS = {
  "n",
  "stream",
  "stream_options",
  "response_format",
  "prompt_cache_key",
  "prompt_cache_options",
  "moderation",
  "reasoning",
}
-- Members of a message that are not sent back: thoughts of another origin.
local NOT_SENT = { "reasoning", "reasoning_content", "reasoning_details", "name" }

local function without(map, keys)
  for _, key in ipairs(keys) do
    map[key] = nil
  end
end

local function joined(content)
  local texts = {}
  for _, part in ipairs(content) do
    texts[#texts + 1] = part.type == "text" and part.text or nil
  end
  return table.concat(texts)
end

-- Changes the recorded message into the form of ours.
local function explained_message(m)
  without(m, NOT_SENT)
  if m.tool_calls == server.null then
    m.tool_calls = nil
  end
  if m.tool_calls and (m.content == nil or m.content == "") then
    m.content = server.null
  elseif type(m.content) == "table" and m.content ~= server.null then
    m.content = joined(m.content)
  end
end

local function by_name(a, b)
  return a["function"].name < b["function"].name
end

-- Removes empty messages of the model, which some recordings have and many servers refuse.
local function without_empty(messages)
  for i = #messages, 1, -1 do
    local m = messages[i]
    if m.role == "assistant" and m.content == "" and not m.tool_calls then
      table.remove(messages, i)
    end
  end
end

-- Returns the recorded request in the form of ours, see the two lists above. Tools are compared by
-- name, as we put a tool that is added later last.
local function explained(body, official)
  without(body, NOT_OURS)
  without_empty(body.messages)
  for _, m in ipairs(body.messages) do
    explained_message(m)
  end
  if body.tools and not body.tools[1] then
    body.tools = nil -- some servers refuse an empty list
  end
  for _, t in ipairs(body.tools or {}) do
    t.cache_control, t.type = nil, "function"
  end
  table.sort(body.tools or {}, by_name)
  if not official then
    body.max_tokens, body.max_completion_tokens = body.max_completion_tokens, nil
  end
  return body
end

local to_entry = {}

function to_entry.system(m)
  return { type = "prompt", text = m.content }
end

function to_entry.user(m)
  local content = m.content
  if type(content) == "string" then
    content = server.array { { type = "text", text = content } }
  end
  return { type = "user", content = content }
end

function to_entry.assistant(m)
  local content, calls = server.array {}, nil
  for i, c in ipairs(m.tool_calls ~= server.null and m.tool_calls or {}) do
    calls = calls or server.array {}
    calls[i] = { id = c.id, name = c["function"].name, arguments = c["function"].arguments }
  end
  if type(m.content) == "string" and m.content ~= "" then
    content[1] = { type = "text", text = m.content }
  elseif type(m.content) == "table" and m.content ~= server.null then
    content = m.content
  end
  return { type = "assistant", content = content, tool_calls = calls }
end

function to_entry.tool(m)
  return {
    type = "tool_result",
    id = m.tool_call_id,
    name = "",
    content = m.content,
    success = true,
  }
end

local function settings_of(body)
  local choice = body.tool_choice
  if type(choice) == "table" then
    choice = { name = choice["function"].name }
  end
  return {
    type = "settings",
    model = "openai/" .. body.model,
    options = {
      tool_choice = choice,
      max_tokens = body.max_completion_tokens or body.max_tokens,
      temperature = body.temperature,
      top_p = body.top_p,
      seed = body.seed,
      stop = body.stop,
      reasoning = body.reasoning_effort,
    },
  }
end

-- Returns the tools of a request that `known` does not have yet, as an entry, and adds them to
-- `known`.
local function tools_of(body, known)
  local fresh = server.array {}
  for _, t in ipairs(body.tools or {}) do
    local f = t["function"]
    if not known[f.name] then
      known[f.name] = true
      fresh[#fresh + 1] = { name = f.name, description = f.description, parameters = f.parameters,
        strict = f.strict }
    end
  end
  return fresh[1] and { type = "tools_added", tools = fresh }
end

-- Appends the messages of `body` from the n-th on, as entries in JSON. There is one prompt; other
-- system messages are notes.
local function message_entries(body, from, list)
  for i = from, #body.messages do
    local m = body.messages[i]
    local entry = to_entry[m.role](m)
    if entry.type == "prompt" and i > 1 then
      entry.type = "note"
    end
    list[#list + 1] = server.encode(entry)
  end
  return list
end

-- Returns true if the messages of one request begin those of the next, for the same model.
local function continues(before, after)
  for i, m in ipairs(before.messages) do
    if not after.messages[i] or server.encode(m) ~= server.encode(after.messages[i]) then
      return false
    end
  end
  return before.model == after.model
end

local function first_entries(body, known)
  local list = { server.encode(settings_of(body)) }
  local tools = tools_of(body, known)
  list[2] = tools and server.encode(tools)
  return message_entries(body, 1, list)
end

local function next_entries(before, after, known)
  local list = message_entries(after, #before.messages + 1, {})
  local tools = tools_of(after, known)
  list[#list + 1] = tools and server.encode(tools)
  return list
end

local function options_of(request)
  return {
    model = request.body.model,
    base_url = request.url:gsub("/chat/completions$", ""),
    key = "unused-key",
    stream = request.body.stream == true,
  }
end

local function copy(value)
  return server.decode(server.encode(value))
end

local function check_body(request, lowered, where)
  local official = request.url:find("^https://api%.openai%.com/v1/")
  local got = server.decode(lowered.body)
  assert.equal(request.body.stream == true or nil, got.stream, where)
  assert.same(got.stream and { include_usage = true } or nil, got.stream_options, where)
  assert.equal(
    server.encode(explained(copy(request.body), official)),
    server.encode(explained(got, true)),
    where
  )
end

local function is_chat(request)
  return request.body.messages ~= nil
end

-- Checks successive requests of one file, each continuing the one before if it does.
local function check_requests(list)
  local before, history, known
  for _, x in ipairs(list) do
    local body = x.request.body
    if before and continues(before, body) then
      history[#history + 1] = next_entries(before, body, known)
    else
      known = {}
      history = { first_entries(body, known) }
    end
    local requests = { ahtest.wire_lower(options_of(x.request), table.unpack(history)) }
    check_body(x.request, requests[#requests], x.name)
    if #requests > 1 then
      check_prefix(requests[#requests - 1], requests[#requests], x.name)
    end
    before = body
  end
  return before ~= nil
end

-- Returns an event's bytes, from a table or from text.
local function event(value)
  return "data: " .. (type(value) == "table" and server.encode(value) or value) .. "\n\n"
end

local function choice(delta, finish)
  return { choices = { { index = 0, delta = delta, finish_reason = finish or server.null } } }
end

-- Returns a stream of deltas of the first choice, with its finish_reason; then [DONE].
local function deltas(list, finish)
  local out = {}
  for i, delta in ipairs(list) do
    out[i] = event(choice(delta))
  end
  out[#out + 1] = finish and event(choice({}, finish)) or ""
  return stream(table.concat(out) .. event "[DONE]")
end

-- Returns a call, or a fragment of one; absent fields stay absent.
local function call(index, id, name, arguments)
  return { index = index, id = id, ["function"] = { name = name, arguments = arguments } }
end

-- Returns a delta of calls.
local function of_calls(...)
  return { tool_calls = { ... } }
end

local function calls_of(x)
  local got = read(x)
  assert.is_nil(got.error and got.error.message)
  return server.decode(got.entry).tool_calls
end

-- Asserts the names and arguments of calls that the plain reader cannot check, since it is less
-- lenient.
local function assert_calls(expected, x)
  local calls, list = calls_of(x), {}
  check_ids(calls, calls, x.name)
  for i, c in ipairs(calls) do
    list[i] = c.name .. " " .. c.arguments
  end
  assert.same(expected, list)
  check_cuts(x)
end

local function failed(x, o)
  local got = read(x, o)
  return assert.is_table(got.error) and got.error, got
end

describe("an answer", function()
  local HI = { role = "assistant", content = "hi" }
  local NULL = server.null

  local PLAIN = {
    deltas(
      { { role = "assistant", content = "" }, { content = "Hel" }, { content = "lo 😀" } },
      "stop"
    ),
    stream(
      event '{"choices":[{"delta":{"content":"\\ud83d\\ude00 \\u0000\\n\\/é"}}]}' .. event "[DONE]"
    ),
    deltas({ { content = "cut sho" } }, "length"),
    deltas({ { content = NULL } }, "content_filter"),
    deltas { { content = "no finish_reason, but [DONE]" } },
    deltas(
      { { role = "assistant", content = NULL, refusal = "I w" }, { refusal = "on't" } },
      "stop"
    ),
    deltas(
      { { content = { { type = "thinking" }, { type = "text", text = "a" } } }, { content = "b" } },
      "stop"
    ),
    deltas(
      { NULL, {}, { tool_calls = NULL }, { tool_calls = server.array {} }, { content = "x" } },
      "stop"
    ),
    deltas({
      of_calls(call(0, "a", "f", "")),
      of_calls(call(1, "b", "g", "{")),
      of_calls(call(0, nil, nil, '{"x":'), call(1, nil, nil, "}")),
      of_calls(call(0, nil, nil, '"\\u00e9"}')),
    }, "tool_calls"),
    deltas({ of_calls(call(3, "a", "f")), of_calls(call(3, "a", "f", "{}")) }, "stop"),
    deltas { of_calls(call(nil, "a", "f", NULL)), of_calls(call(nil, nil, "", "{}")) },
    stream(
      event { choices = server.array {} }
        .. ": comment\r\n\r\n "
        .. event(choice({ content = "x" }, "")):gsub("\n", "\r")
        .. event(choice({}, "stop"))
        .. event {
          choices = server.array {},
          usage = {
            prompt_tokens = 7,
            completion_tokens = 5,
            prompt_tokens_details = { cached_tokens = 3, cache_write_tokens = 2 },
            completion_tokens_details = { reasoning_tokens = 4 },
          },
        }
    ),
    stream(event {
      choices = { { index = 1, delta = HI, finish_reason = "x" }, { index = 0, delta = HI } },
    } .. event {
      choices = { { index = 0, finish_reason = "stop" } },
      x_groq = { usage = { prompt_tokens = 1 } },
    }),
    stream(event(choice(HI, "stop")) .. event "[DONE]" .. event "junk"),
    stream(event(choice(HI))),
    stream(event(choice(HI, ""))),
    stream(event "[DONE]"),
    stream "",
    stream ": only a comment\n\n",
    stream(event(choice(HI)) .. event { error = { message = "it broke", code = "server_error" } }),
    stream(
      "event: error\n"
        .. event { error = { message = "no", code = "tool_use_failed", status_code = 400 } }
    ),
    stream(event { error = "as a string" }),
    whole(server.encode {
      choices = { { message = HI, finish_reason = "stop" } },
      usage = { prompt_tokens = 2 },
    }),
    whole(server.encode {
      choices = { { index = 0, message = { content = "" }, finish_reason = "stop" } },
    }),
    whole(server.encode {
      choices = {
        {
          message = {
            content = NULL,
            tool_calls = { call(0, "", "f", { a = 1 }), call(0, "", "g") },
          },
          finish_reason = "stop",
        },
      },
    }),
    whole(server.encode { choices = { { message = HI } }, error = { message = "no", code = 400 } }),
    whole '{"choices":[]}',
    whole "{}",
    whole "",
    whole "<html>",
    whole "[1]",
    whole('{"error":{"message":"slow","type":"requests","code":"rate_limit_exceeded"}}', 429),
    whole('{"error":{"message":"broke","type":"insufficient_quota","code":null}}', 429),
    whole('{"detail":"Invalid API Key"}', 401),
    whole('{"code":"x","error":"a string"}', 400),
    whole('{"object":"error","message":"stands alone","type":"x"}', 422),
    whole('{"error":null,"message":"beside"}', 500),
    whole("<h1>Bad Gateway</h1>", 502),
    whole("", 503),
    whole("{}", 400, { ["x-should-retry"] = "true" }),
    whole("{}", 503, { ["x-should-retry"] = "false" }),
  }

  it("is read as a plain reading reads it", function()
    for _, x in ipairs(PLAIN) do
      check(x)
    end
  end)

  it("is the same however its bytes are cut", function()
    for _, x in ipairs(PLAIN) do
      check_cuts(x)
    end
  end)

  it("may number its calls all alike, or not at all", function()
    assert_calls(
      { 'f {"a":1}', "g {}" },
      deltas({
        of_calls(call(0, "a", "f", '{"a":')),
        of_calls(call(0, nil, nil, "1}")),
        of_calls(call(0, "b", "g", "{}")),
      }, "tool_calls")
    )
    assert_calls(
      { "f {}", "g {}", "h {}" },
      deltas({
        of_calls(call(nil, "a", "f", "{}")),
        of_calls(call(nil, "b", "g", "{}"), call(nil, "c", "h", "{}")),
      }, "stop")
    )
    assert_calls(
      { "f {}", "f {}" },
      deltas({
        of_calls(call(nil, nil, "f", "{}")),
        of_calls(call(nil, nil, "f")),
        of_calls(call(nil, nil, nil, "{}")),
      }, "stop")
    )
  end)

  it("may hold arguments as a value instead of its text", function()
    assert_calls(
      { 'f {"a":"\\u000a"}' },
      stream(event(choice(of_calls(call(0, "a", "f", { a = "\n" })))) .. event "[DONE]")
    )
  end)

  it("gives its calls ids that are sound", function()
    local calls = calls_of(deltas {
      of_calls(call(0, ("x"):rep(10000), "f"), call(1, "same", "f"), call(2, "same", "f")),
      of_calls(call(3, server.null, "f")),
    })
    check_ids(calls, { {}, { id = "same" }, {}, {} }, "ids")
  end)

  it("that is no JSON, or no object, is a failure that says what stands there", function()
    assert.truthy(failed(whole("<!doctype html>")).message:find("web page", 1, true))
    assert.truthy(
      failed(stream("data: {\n\n")).message:find("event of the stream is not JSON", 1, true)
    )
    assert.truthy(failed(stream("data: 1\n\n")).message:find("expected a JSON object", 1, true))
    assert.truthy(
      failed(whole('{"choices":[],"choices":[]}')).message:find("duplicate key", 1, true)
    )
  end)

  it("that is an error is told with status, message and code, however long it is", function()
    local e =
      failed(whole(('{"error":{"message":"%s","code":"too_long"}}'):format(("é"):rep(20000)), 400))
    assert.equal("openai: HTTP 400: " .. ("é"):rep(200) .. " (too_long)", e.message)
    assert.equal(400, e.status)
    assert.equal("openai: HTTP 503: (no message)", failed(whole("", 503)).message)
    assert.truthy(failed(whole("<p>" .. ("x"):rep(100000), 500)).message:find("page: xxx", 1, true))
    assert.truthy(failed(whole("", 302)).message:find("HTTP 302.*redirects are not followed"))
  end)

  it("after a 200 may name the status it would have had", function()
    local e = failed(stream 'data: {"error":{"message":"upstream","code":502}}\n\n')
    assert.same({ 502, true }, { e.status, e.retryable })
    e = failed(stream 'data: {"error":{"message":"yours","status_code":400}}\n\n')
    assert.same({ 400, false }, { e.status, e.retryable })
  end)

  it("advises how long to wait", function()
    local NOW = 784111777000 -- Sun, 06 Nov 1994 08:49:37 GMT
    local cases = {
      { { ["retry-after"] = "2" }, 2000 },
      { { ["retry-after"] = "0.25" }, 250 },
      { { ["retry-after-ms"] = "70.5", ["retry-after"] = "9" }, 70 },
      { { ["retry-after-ms"] = "0", ["retry-after"] = "1" }, 1000 },
      { { ["retry-after"] = "Sun, 06 Nov 1994 08:49:40 GMT" }, 3000 },
      { { ["retry-after"] = "Sun, 06 Nov 1994 08:49:37 GMT" }, -1 },
      { { ["retry-after"] = "Sat, 05 Nov 1994 08:49:37 GMT" }, -1 },
      { { ["retry-after"] = "Sunday, 06-Nov-94 08:49:41 GMT" }, 4000 },
      { { ["retry-after"] = "Sun Nov  6 08:49:42 1994" }, 5000 },
      { { ["retry-after"] = "1994-11-06T08:49:43Z" }, 6000 },
      { { ["retry-after"] = "1994-11-06T09:49:43.5+01:00" }, 6000 },
      { { ["retry-after"] = "784111784" }, 7000 },
      { { ["retry-after"] = "784111777500" }, 500 },
      { { ["retry-after"] = "500ms" }, 500 },
      { { ["retry-after"] = "1m" }, 60000 },
      { { ["retry-after"] = "1m1s" }, -2 },
      { { ["x-ratelimit-remaining-tokens"] = "0", ["x-ratelimit-reset-tokens"] = "8.64s" }, 8640 },
      { { ["x-ratelimit-remaining-tokens"] = "1", ["x-ratelimit-reset-tokens"] = "8.64s" }, -1 },
      { { ["x-ratelimit-remaining-tokens"] = "0", ["x-ratelimit-reset-tokens"] = "8.64s",
        ["retry-after"] = "1" }, 1000 },
      { { ["x-ratelimit-remaining-requests"] = "0", ["x-ratelimit-reset-requests"] = "6m0s" }, -2 },
      { { ["x-ratelimit-remaining-requests"] = "0", ["x-ratelimit-reset-requests"] = "2ms",
        ["x-ratelimit-remaining-tokens"] = "0", ["x-ratelimit-reset-tokens"] = "9" }, 9000 },
      { { ["x-ratelimit-remaining"] = "0", ["x-ratelimit-reset"] = "784111780000" }, 3000 },
      { { ["anthropic-ratelimit-output-tokens-remaining"] = "0",
        ["anthropic-ratelimit-output-tokens-reset"] = "1994-11-06T08:49:40Z" }, 3000 },
      { { ["retry-after"] = "1994-13-06T08:49:43Z" }, -1 },
      { { ["retry-after"] = "5 minutes" }, -1 },
      { { ["retry-after"] = "61" }, -2 },
      { { ["retry-after"] = "Mon, 07 Nov 1994 08:49:37 GMT" }, -2 },
      { { ["retry-after"] = "0" }, -1 },
      { { ["retry-after"] = "-1" }, -1 },
      { { ["retry-after"] = "soon" }, -1 },
      { { ["retry-after"] = "1e9" }, -1 },
      { { ["retry-after"] = "Sun, 06 Foo 1994 08:49:40 GMT" }, -1 },
      { {}, -1 },
    }
    for _, case in ipairs(cases) do
      local e, got = failed(whole("{}", 429, case[1]), { wall = NOW })
      assert.equal(case[2], got.retry_after)
      assert.equal(case[2] ~= -2, e.retryable)
    end
    assert.equal(-1, read(whole('{"choices":[{}]}', 200, { ["retry-after"] = "5" })).retry_after)
  end)
end)

describe("a key that a server sends back", function()
  local KEY = "sk-canary-1234567890"

  local function hidden(x)
    for at = 1, #x.body - 1 do
      local r = read(x, { key = KEY, cut = at })
      local all = outcome(r)
      assert.falsy(all:find("canary", 1, true), all)
    end
    return read(x, { key = KEY })
  end

  it("is taken out of text, arguments, names and ids", function()
    local r = hidden(deltas({
      { content = "it is sk-can" },
      { content = "ary-12345678" },
      { content = "90!" },
      { refusal = "sk-canary-" },
      { refusal = "1234567890" },
      of_calls(call(0, KEY, KEY, '{"a":"sk-can')),
      of_calls(call(0, nil, nil, 'ary-1234567890"}')),
    }, "stop"))
    assert.equal("it is [secret]!", r.text)
    assert.truthy(r.entry:find('{\\"a\\":\\"[secret]\\"}', 1, true))
  end)

  it("is taken out, too, where JSON spells it with escapes", function()
    local key = "sk-canary/1234567890"
    local function answer(text)
      local r = read(deltas({ of_calls(call(0, "c", "t", text)) }, "tool_calls"), { key = key })
      return server.decode(r.entry).tool_calls[1].arguments
    end
    for _, way in ipairs { "sk-canary\\/1234567890", "sk\\u002dcanary\\u002F1234567890",
      "\\u0073k-canary/123456789\\u0030", "sk-canary\\\\\\/1234567890" } do
      assert.equal('{"a":"[secret]!"}', answer('{"a":"' .. way .. '!"}'))
    end
    for _, other in ipairs { "sk\\u002ccanary/1234567890", "sk-canary\\\\u00/1234567890",
      "sk-canary/123456789", "sk-canary\\" } do
      assert.falsy(answer('{"a":"' .. other .. '"}'):find("[secret]", 1, true), other)
    end
  end)

  it("is taken out in a time that grows as the text does", function()
    local from = os.clock()
    local text = KEY:rep(2 * 1024 * 1024 // #KEY)
    local r = read(deltas({ { content = text } }, "stop"), { key = KEY })

    assert.equal(("[secret]"):rep(#text // #KEY), r.text)
    assert.is_true(os.clock() - from < 4)
  end)

  it("is held back in pieces of any spelling", function()
    local key = "sk-canary/1234567890"
    local text = "a sk-canary\\/12345\\u003678\\\\\\u0039\\u0030 \\sk-can b"
    for step = 1, #text do
      local pieces = {}
      for at = 1, #text, step do
        pieces[#pieces + 1] = { content = text:sub(at, at + step - 1) }
      end
      local r = read(deltas(pieces, "stop"), { key = key })
      assert.equal("a [secret] \\sk-can b", r.text)
      assert.falsy(outcome(r):find("canary", 1, true))
    end
  end)

  it("is held back only as long as it may be one", function()
    local r = read(
      deltas({ { content = "sk-can" }, { content = "not" }, { content = " s" } }, "stop"),
      { key = KEY }
    )
    assert.same({ "sk-cannot s", 3 }, { r.text, r.deltas })
  end)

  it("is taken out of errors before these are cut", function()
    for fill = 370, 400 do
      local text = ("x"):rep(fill) .. KEY
      for _, x in ipairs {
        whole(('{"error":{"message":"%s"}}'):format(text), 401),
        whole(text, 500),
        whole(('{"error":{"message":"m","code":"%s"}}'):format(text), 400),
        stream(('data: {"error":"%s"}\n\n'):format(text)),
      } do
        assert.falsy(failed(x, { key = KEY }).message:find("sk-c", 1, true))
      end
    end
  end)

  it("is not quoted from what is no JSON", function()
    for at = 0, 30 do
      local text = ("%s%s"):format((" "):rep(at), KEY)
      assert.falsy(failed(whole('{"a":' .. text), { key = KEY }).message:find("sk-", 1, true))
      assert.falsy(
        failed(stream('data: {"a":1' .. text .. "\n\n"), { key = KEY }).message:find(
          "canary",
          1,
          true
        )
      )
    end
  end)
end)

for _, folder in ipairs { "openai-chat", "openai-compatible" } do
  describe("the recordings of " .. folder, function()
    local exchanges = recordings.exchanges(folder)

    local function lowered()
      for _, list in ipairs(wire.by_file(exchanges, is_chat)) do
        assert.is_true(check_requests(list))
      end
    end

    wire.check_recordings { it = it, pending = pending, exchanges = exchanges, lowered = lowered }
  end)
end
