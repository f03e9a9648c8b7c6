-- agenthost mock from outside: its answers in each format, refused requests, failures, the cache,
-- and how the command begins and ends. docs/reference/mock.md.
local command = require "support.command"
local markdown = require "support.markdown"
local mock = require "support.mock"
local server = require "support.server"

local agenthost, has = command.agenthost, command.has
local it_anyway = it
local it = mock.is_built() and it or pending
local PAGE = markdown.read("docs/reference/mock.md")

after_each(command.tidy)

local ANTHROPIC = { ["anthropic-version"] = "2023-06-01" }

-- For each format, a request that says "Hi": its path, the path of its stream, headers and body.
local FORMATS = {
  openai = { path = "/v1/chat/completions", stream = "/v1/chat/completions",
    body = function()
      return { model = "m", messages = { { role = "user", content = "Hi" } } }
    end },
  responses = { path = "/v1/responses", stream = "/v1/responses",
    body = function() return { model = "m", input = { { role = "user", content = "Hi" } } } end },
  anthropic = { path = "/v1/messages", stream = "/v1/messages", headers = ANTHROPIC,
    body = function()
      return { model = "m", max_tokens = 9, messages = { { role = "user", content = "Hi" } } }
    end },
  gemini = { path = "/v1beta/models/m:generateContent",
    stream = "/v1beta/models/m:streamGenerateContent?alt=sse",
    body = function()
      return { contents = { { role = "user", parts = { { text = "Hi" } } } } }
    end },
  ollama = { path = "/api/chat", stream = "/api/chat",
    body = function()
      return { model = "m", stream = false, messages = { { role = "user", content = "Hi" } } }
    end },
}

local NAMES = { "openai", "responses", "anthropic", "gemini", "ollama" }

local function ask(m, name, body, stream)
  local f = FORMATS[name]
  body = body or f.body()
  if stream and name ~= "gemini" then
    body.stream = true
  end
  return m:ask(stream and f.stream or f.path, body, f.headers)
end

-- Returns the data of each event or line, in order; text that is not JSON unchanged.
local function events_of(body)
  local list = {}
  for line in body:gmatch("[^\n]+") do
    local data = line:match("^data: (.*)") or line:match("^{.*")
    if data then
      list[#list + 1] = data:find("^{") and server.decode(data) or data
    end
  end
  return list
end

local function call_of(body)
  return server.encode(body)
end

-- -- answers --------------------------------------------------------------------------------

describe("agenthost mock", function()
  it("says an answer of all parts in each format, whole", function()
    local m <close> = mock.start [[return function() return { reasoning = "Hm.", text = "So.",
      calls = { { id = "c1", name = "f", arguments = { a = 1 } } },
      usage = { input = 100, cached_read = 40, output = 9, reasoning = 3 } } end]]
    local openai = ask(m, "openai"):json()
    local message = openai.choices[1].message
    assert.same({ "So.", "Hm.", "c1", "f", '{"a":1}', "tool_calls" }, { message.content,
      message.reasoning_content, message.tool_calls[1].id, message.tool_calls[1]["function"].name,
      message.tool_calls[1]["function"].arguments, openai.choices[1].finish_reason })
    assert.same({ 100, 40, 9, 3 }, { openai.usage.prompt_tokens,
      openai.usage.prompt_tokens_details.cached_tokens, openai.usage.completion_tokens,
      openai.usage.completion_tokens_details.reasoning_tokens })

    local r = ask(m, "responses"):json()
    assert.same({ "reasoning", "message", "function_call", "completed" },
      { r.output[1].type, r.output[2].type, r.output[3].type, r.status })
    assert.same({ "Hm.", "So.", '{"a":1}', 40 }, { r.output[1].summary[1].text,
      r.output[2].content[1].text, r.output[3].arguments,
      r.usage.input_tokens_details.cached_tokens })

    local a = ask(m, "anthropic"):json()
    assert.same({ "Hm.", "So.", { a = 1 }, "tool_use", 60, 40 }, { a.content[1].thinking,
      a.content[2].text, a.content[3].input, a.stop_reason, a.usage.input_tokens,
      a.usage.cache_read_input_tokens })
    assert.truthy(#a.content[1].signature > 0)

    local g = ask(m, "gemini"):json()
    local parts = g.candidates[1].content.parts
    assert.same({ "So.", { a = 1 }, "STOP", 6, 3 }, { parts[1].text, parts[2].functionCall.args,
      g.candidates[1].finishReason, g.usageMetadata.candidatesTokenCount,
      g.usageMetadata.thoughtsTokenCount })
    assert.truthy(#parts[2].thoughtSignature > 0)

    local o = ask(m, "ollama"):json()
    assert.same({ "So.", { a = 1 }, true, "stop", 60, 9 }, { o.message.content,
      o.message.tool_calls[1]["function"].arguments, o.done, o.done_reason, o.prompt_eval_count,
      o.eval_count })
  end)

  it("streams texts and arguments in several pieces", function()
    local m <close> = mock.start [[return function() return { text = { "One ", "two." },
      calls = { { name = "f", arguments = { long = "an argument of many letters" } } } } end]]
    local chunks = events_of(ask(m, "openai", nil, true).body)
    local text, arguments, n = "", "", 0
    for _, chunk in ipairs(chunks) do
      local delta = chunk ~= "[DONE]" and chunk.choices[1].delta or {}
      local call = delta.tool_calls and delta.tool_calls[1]["function"]
      text = text .. (type(delta.content) == "string" and delta.content or "")
      arguments, n = arguments .. (call and call.arguments or ""), n + (call and 1 or 0)
    end
    assert.same({ "One two.", '{"long":"an argument of many letters"}', true, "[DONE]" },
      { text, arguments, n > 2, chunks[#chunks] })

    local kinds = {}
    for _, event in ipairs(events_of(ask(m, "anthropic", nil, true).body)) do
      if event.type ~= kinds[#kinds] then
        kinds[#kinds + 1] = event.type
      end
    end
    assert.equal("message_start content_block_start ping content_block_delta content_block_stop "
      .. "content_block_start content_block_delta content_block_stop message_delta message_stop",
      table.concat(kinds, " "))
  end)

  -- The mock encodes the events of a text once if it cuts the text itself; the events of a list it
  -- encodes one by one.
  it("says a text that it cuts in the same events as one that was cut before", function()
    local TEXT = ('a "quoted" \\ \u{20AC}\u{1F600} %s\t\1\n'):rep(9)
    local function streamed(name, text, query)
      local m <close> = mock.start(("local text = %s return { { reasoning = text, text = text, "
        .. "calls = { { name = 'f', arguments = { a = 'many letters, cut' } } } } }"):format(text))
      local f = FORMATS[name]
      local body = f.body()
      body.stream = name ~= "gemini" or nil
      body.think = name == "ollama" or nil
      body.generationConfig = name == "gemini" and { thinkingConfig = { includeThoughts = true } }
      local r = m:ask(f.stream:gsub("%?.*", query or "%0"), body, f.headers)
      assert.equal(200, r.status, r.body)
      return (r.body:gsub('("%a+ed_?a?t?":)[^,}]+', "%10")) -- removes times: created, completed_at
    end
    local pieces = {}
    for _, chunk in ipairs(events_of(streamed("openai", ("%q"):format(TEXT)))) do
      local piece = chunk ~= "[DONE]" and chunk.choices[1].delta.content
      pieces[#pieces + 1] = type(piece) == "string" and piece ~= "" and piece or nil
    end
    assert.equal(TEXT, table.concat(pieces))
    for i, piece in ipairs(pieces) do
      assert.is_true(#piece <= 15 and utf8.len(piece) ~= nil, piece)
      pieces[i] = ("%q"):format(piece)
    end
    local list = "{ " .. table.concat(pieces, ", ") .. " }"
    for _, name in ipairs(NAMES) do
      assert.equal(streamed(name, list), streamed(name, ("%q"):format(TEXT)))
    end
    assert.equal(streamed("gemini", list, ""), streamed("gemini", ("%q"):format(TEXT), ""))
  end)

  it("numbers the events of a Responses stream, and ends it with what it said", function()
    local m <close> = mock.start 'return { { reasoning = "Hm.", text = "Some words here." } }'
    local events = events_of(ask(m, "responses", nil, true).body)
    for i, event in ipairs(events) do
      assert.equal(i - 1, event.sequence_number)
    end
    local last = events[#events]
    assert.same({ "response.completed", "Some words here." },
      { last.type, last.response.output[2].content[1].text })
  end)

  it("tells stop reasons and refusals in each provider's words", function()
    local words = { openai = { "length", "stop" }, responses = { "incomplete", "completed" },
      anthropic = { "max_tokens", "refusal" }, gemini = { "MAX_TOKENS", "PROHIBITED_CONTENT" },
      ollama = { "length", "stop" } }
    for _, name in ipairs(NAMES) do
      local m <close> = mock.start 'return { { text = "a", stop = "length" }, { refusal = "No." } }'
      for i = 1, 2 do
        local doc = ask(m, name):json()
        local said = doc.choices and doc.choices[1].finish_reason or doc.status or doc.stop_reason
          or doc.done_reason or doc.candidates[1].finishReason
        assert.equal(words[name][i], said)
      end
    end
  end)

  it("lists its model, and counts tokens", function()
    local m <close> = mock.start 'return { "x" }'
    assert.equal("script", m:ask("/v1/models"):json().data[1].id)
    assert.equal("script", m:ask("/v1/models", nil, ANTHROPIC):json().first_id)
    assert.equal("models/script", m:ask("/v1beta/models"):json().models[1].name)
    assert.equal("script", m:ask("/api/tags"):json().models[1].model)
    local body = FORMATS.anthropic.body()
    body.max_tokens = nil
    assert.is_true(m:ask("/v1/messages/count_tokens", body, ANTHROPIC):json().input_tokens > 4)
    assert.is_true(m:ask("/v1beta/models/m:countTokens",
      { generateContentRequest = FORMATS.gemini.body() }):json().totalTokens > 4)
    -- none of the others used the turn
    assert.equal("x", ask(m, "openai"):json().choices[1].message.content)
  end)

  -- -- failing -------------------------------------------------------------------------------

  it("fails in each provider's form, with the time to wait", function()
    for _, name in ipairs(NAMES) do
      local m <close> = mock.start [[return function()
        return { status = 429, message = "slow down", retry_after = 2 } end]]
      local r = ask(m, name)
      local e = r:json().error
      assert.same({ 429, "2" }, { r.status, r.headers["retry-after"] })
      assert.equal("slow down", type(e) == "table" and e.message or e)
      if name == "anthropic" then
        assert.same({ "error", "rate_limit_error" }, { r:json().type, e.type })
      elseif name == "gemini" then
        assert.same({ "RESOURCE_EXHAUSTED", "2s" }, { e.status, e.details[1].retryDelay })
      end
    end
  end)

  it("fails inside a stream where the script says so", function()
    local fail = [[return function() return { text = "Half",
      fail = { status = 529, message = "Overloaded", in_stream = true } } end]]
    for _, name in ipairs(NAMES) do
      local m <close> = mock.start(fail)
      local r = ask(m, name, nil, true)
      assert.equal(200, r.status)
      has(r.body, "Half")
      has(events_of(r.body)[#events_of(r.body)].error and r.body or r.body:match("failed.*"),
        "Overloaded")
      assert.equal(529, ask(m, name).status)
    end
  end)

  it("breaks connections and bodies as it is told", function()
    for _, name in ipairs(NAMES) do
      local m <close> = mock.start [[return {
        { text = "x", close = "before" },
        { text = "Some words that break off", close = "mid-stream" },
        { text = "Some words that break off", cut = true },
        { text = "Some words", garbage = "data: {not json\n\n" },
        { raw = "\xff\0 raw" } } ]]
      assert.is_nil(ask(m, name))
      for _, stream in ipairs { true, false } do
        local whole, err = ask(m, name, nil, stream)
        assert.is_nil(whole)
        assert.equal("http", err.code)
      end
      has(ask(m, name, nil, true).body, "{not json")
      assert.equal("\xff\0 raw", ask(m, name).body)
    end
  end)

  it("waits before an answer and between pieces, serving others meanwhile", function()
    local m <close> = mock.start [[return { rules = {
      { when = { user = "slow" }, text = { "a", "b" }, delay = 0.4 },
      { when = { user = "stuck" }, text = "late", delay = 60 }, { text = "quick" } } }]]
    local slow = FORMATS.openai.body()
    slow.messages[1].content = "stuck"
    local ah = require "agenthost"
    local started = ah.now()
    os.execute(("%s -e %s >%s 2>&1 &"):format(command.quote(command.BINARY), command.quote(
      ('print(ah.http { url = "%s/v1/chat/completions", body = %q })'):format(m.url,
        server.encode(slow))), command.temp()))
    local quick = ask(m, "openai")
    assert.equal("quick", quick:json().choices[1].message.content)
    assert.is_true(ah.now() - started < 50, "it was not served meanwhile")
    slow.messages[1].content, started = "slow", ah.now()
    local r = ask(m, "openai", slow, true)
    assert.truthy(r.body:find('"a"', 1, true) and r.body:find('"b"', 1, true))
    assert.is_true(ah.now() - started >= 0.79, "it did not wait")
  end)

  -- -- the cache -------------------------------------------------------------------------------

  it("has cached what a request repeats, and tells with what it departs", function()
    local m <close> = mock.start 'return function() return "ok" end'
    local body = { model = "m", messages = { { role = "system", content = "Be brief." },
      { role = "user", content = "Hi" } } }
    local function cached()
      return ask(m, "openai", body):json().usage.prompt_tokens_details.cached_tokens
    end
    assert.equal(0, cached())
    local first = m:log()[1].input
    table.insert(body.messages, { role = "assistant", content = "ok" })
    table.insert(body.messages, { role = "user", content = "More" })
    assert.equal(first, cached())
    body.tools = { { type = "function", ["function"] = { name = "f" } } }
    assert.equal(0, cached())
    body.messages[3].content = "changed"
    cached()
    assert.same({ [3] = "tools", [4] = "messages" }, { [3] = m:log()[3].cache_break,
      [4] = m:log()[4].cache_break })
  end)

  it("reads and writes Anthropic's cache at the client's marks only", function()
    local m <close> = mock.start 'return function() return "ok" end'
    local mark = { type = "ephemeral" }
    local body = FORMATS.anthropic.body()
    body.system = { { type = "text", text = "Be brief.", cache_control = mark } }
    local function usage()
      local u = ask(m, "anthropic", body):json().usage
      return { u.cache_creation_input_tokens, u.cache_read_input_tokens }, u.input_tokens
    end
    local first, rest = usage()
    local second, same = usage()
    assert.is_true(first[1] > 0 and rest > 0 and rest == same)
    assert.same({ { first[1], 0 }, { 0, first[1] } }, { first, second })
    body.system[1].cache_control = nil
    assert.same({ 0, first[1] }, (usage()))
    body.system[1].text = "Be long."
    assert.same({ 0, 0 }, (usage()))
  end)

  -- -- the command ---------------------------------------------------------------------------

  it("ends after --once requests with 0, and by a signal with its number", function()
    local m <close> = mock.start('return { "a", "b" }', "--once", "2")
    ask(m, "openai")
    ask(m, "openai")
    assert.equal(0, m:wait() or 0)
    local other = mock.start 'return { "a" }'
    assert.equal(143, other:close())
  end)

  it("speaks as one provider where --format says so", function()
    local m <close> = mock.start('return { "a" }', "--format", "anthropic")
    local r = ask(m, "openai")
    assert.equal(404, r.status)
    has(r.body, "it answers: POST /v1/messages")
    assert.equal("a", ask(m, "anthropic"):json().content[1].text)
  end)

  it("keeps what came in, without keys", function()
    local m <close> = mock.start('return { "a" }')
    m:ask("/v1/chat/completions?key=hush", FORMATS.openai.body(), { Authorization = "Bearer hush" })
    local line = m:log()[1]
    assert.same({ 1, "POST", "openai", 200, "Hi" },
      { line.n, line.method, line.format, line.status, line.body.messages[1].content })
    assert.is_nil(call_of(line):find("hush", 1, true))
  end)

  it("takes JSON as its script, from a file and from stdin", function()
    local pipe = command.temp()
    local r = command.shell(([[rm %s && mkfifo %s
      echo '["from stdin"]' | "$A" mock --once 1 - >%s & read -r URL <%s
      OPENAI_BASE_URL=$URL/v1 "$A" -e 'print(ah.run { model = "openai/x", "Hi" })']])
      :format(pipe, pipe, pipe, pipe))
    assert.same({ 0, "from stdin\n", "" }, { r.code, r.out, r.err })
  end)

  it("says what is wrong with a script, a port or an option", function()
    local function wrong(text, ...)
      local r = agenthost("mock", ...)
      has(r.err, text)
      command.has_not(r.err, "traceback")
      assert.is_true(r.code == 1 or r.code == 2)
    end
    wrong("no script given")
    wrong("cannot open 'nowhere.lua'", "nowhere.lua")
    wrong("unknown field 'txt' in turn 1", command.temp('return { { txt = "a" } }'))
    wrong("found nothing", command.temp("local x = 1"))
    wrong("the text is not JSON", command.temp("[1,"))
    wrong("ah.scripted: rule 1: when: unknown field 'whom'",
      command.temp('return { rules = { { when = { whom = "x" } } } }'))
    wrong("a number from 0 to 65535", "--port", "99999", "x.lua")
    wrong("needs one of these: all openai", "--format", "telnet", "x.lua")
    wrong("cannot listen on 999.1.1.1", "--listen", "999.1.1.1", command.temp("return { 'a' }"))
    local m <close> = mock.start 'return { "a" }'
    wrong("Address already in use", "--port", m.url:match("%d+$"), command.temp("return { 'a' }"))
  end)

  it("warns where others may reach it", function()
    local m <close> = mock.start('return { "a" }', "--listen", "::1")
    has(m.url, "http://[::1]:")
    has(m:errors(), "is for tests")
  end)

  it("tells the client why there is no turn for it", function()
    local m <close> = mock.start [[return { { expect = { user = "Hello" }, text = "a" } }]]
    local r = ask(m, "anthropic")
    assert.equal(400, r.status)
    has(r:json().error.message, "expected user 'Hello', found 'Hi'")
    has(ask(m, "openai"):json().error.message, "request 2 was not expected")
    has(m:errors(), "warning")
  end)

  it("answers what is no request, and goes on", function()
    local m <close> = mock.start 'return { "a" }'
    for _, body in ipairs { "", "{", "[]", "null", "\xff", '{"a":1,"a":2}', ("["):rep(9999) } do
      assert.equal(400, m:ask("/v1/chat/completions", body == "" and " " or body).status)
    end
    assert.equal(404, m:ask("/").status)
    assert.equal(413, m:ask("/v1/messages", ("x"):rep((64 << 20) + 1)).status)
    assert.equal(200, ask(m, "openai").status)
  end)
end)

describe("agenthost -v --version", function()
  it_anyway("tells of libmicrohttpd, and the mock what to install where there is none", function()
    local version = agenthost("-v", "--version").out:match("\nlibmicrohttpd (%S+)\n")
    assert.truthy(version)
    local script = version == "none" and "return { 'a' }" or "return nil"
    local r = agenthost("mock", command.temp(script))
    assert.equal(1, r.code)
    has(r.err, version == "none" and "libmicrohttpd-dev" or "found nothing")
  end)
end)

describe("docs/reference/mock.md", function()
  it("has the formats, the fields of a turn and the bounds of the code", function()
    local known, told, shown, of_scripted = {}, {}, {}, {}
    for _, subject in ipairs(require "agenthost"._options()) do
      for _, row in ipairs(subject.type == "ah.Turn" and subject.rows or {}) do
        of_scripted[row.name] = true
      end
    end
    for name in agenthost("mock", "--help").out:match("break by\n(.-)\n"):gmatch("%S+") do
      shown[#shown + 1] = name
    end
    for _, row in ipairs(dofile "lua/agenthost/command/mock/fields.lua") do
      known[row.name] = (row.defect or not of_scripted[row.name])
        and (row.defect and "defect" or "") or nil
      assert.equal(row.name, row.defect and table.remove(shown, 1) or row.name)
    end
    assert.same({}, shown)
    for _, row in ipairs(markdown.tables(markdown.section(PAGE, "## The script"))[1]) do
      local name = markdown.names(row[1])[1]
      told[name] = known[name]
    end
    assert.same(known, told)
    for i, row in ipairs(markdown.tables(markdown.section(PAGE, "## What it answers"))[1]) do
      assert.equal(NAMES[i], markdown.names(row[1])[1])
    end
    local program = markdown.read("lua/agenthost/command/mock.lua")
    has(program, "max_connections = 2048")
    has(program, "max_body = 64 << 20")
    has(program, "max_bodies = 256 << 20")
    has(program, "header_timeout = 10")
    has(program, "idle_timeout = 60")
    has(markdown.read("lua/agenthost/command/mock/cache.lua"), "MAX_SEGMENTS = 50000")
    has(markdown.read("lua/agenthost/command/mock/responses.lua"), "MAX_KEPT = 10000")
  end)
end)
