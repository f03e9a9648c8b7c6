-- Runs whose model is overloaded, unavailable, at a limit, or refuses the mode of tool changes:
-- over HTTP on loopback and with scripted models.
local ah = require "agenthost"
local server = require "support.server"
local sound = require "support.sound"

local KEY = "sk-fallback-canary-1234567"

local function down(status, more)
  return server.json({ error = { message = "their words" } }, { status = status or 503,
    headers = { ["Content-Type"] = "application/json", ["retry-after-ms"] = more or "1" } })
end

-- Returns an answer of Anthropic's.
local function message(text)
  return server.json { id = "msg_1", type = "message", role = "assistant", stop_reason = "end_turn",
    content = { { type = "text", text = text } }, usage = { input_tokens = 3, output_tokens = 1 } }
end

-- Starts a server: openai/m at /a gives the responses `a`, anthropic at the root answers.
local function two(a, b)
  return server.start { routes = { ["/a/chat/completions"] = a,
    ["/v1/messages"] = b or { message "from the other" } } }
end

local function fields(s, more)
  local o = { model = "openai/m", base_url = s.url .. "/a", api_key = KEY, retries = 1,
    fallback = { { model = "anthropic/claude-haiku-4-5", base_url = s.url, api_key = KEY } },
    log = function() end, "hi" }
  for k, v in pairs(more or {}) do
    o[k] = v
  end
  return o
end

local function paths(s)
  local list = {}
  for i, r in ipairs(s:requests()) do
    list[i] = r.path
  end
  return table.concat(list, " ")
end

local count = ah.tool { name = "count", description = "Counts.", handler = function() return 7 end }

local OUT = { message = "out", status = 503, retryable = true, retry_after = 0.001 }

local function scripted(...)
  return ah.scripted { ... }
end

describe("a conversation of another wire", function()
  it("has the same arguments whether it was just held or read from a file", function()
    local function deep(n)
      return '{"x":' .. ("["):rep(n) .. ("]"):rep(n) .. "}"
    end
    local written = { '{"x":[1, 2],"y":1e400}', "[1]", '{"x":', ' {"x": "\\u00e9"}\n', "", "null",
      deep(480), deep(494), deep(495), deep(496), deep(511), deep(512), '{"x":1,"x":2}' }
    local path = os.tmpname()
    for i, arguments in ipairs(written) do
      local s <close> = two({ server.chat_call("count", arguments, "c1"), down(503), down(503) },
        { message "then", message "later" })
      local given = fields(s, { tools = { ah.tool { name = "count", description = "Counts.",
        schema = { type = "object" }, handler = function() return 7 end } } })
      given[1] = nil
      local agent = ah.agent(given)
      assert(agent:run "hi")
      os.remove(path)
      assert(agent:save(path))
      local loaded = assert(ah.load(path, { model = "anthropic/claude-haiku-4-5", base_url = s.url,
        api_key = KEY }))
      assert(loaded:run "more")
      os.remove(path)
      local inputs = {}
      for _, r in ipairs(s:requests()) do
        if r.path == "/v1/messages" then
          inputs[#inputs + 1] = r.body:match('"input":(.-)}%]},{')
        end
      end
      assert.equal(2, #inputs, "arguments " .. i)
      assert.equal(inputs[1], inputs[2])
      local object = arguments:find "^%s*{" and arguments ~= '{"x":' and not arguments:find '"x":2}'
      assert.equal(object and #arguments <= #deep(495) and arguments or "{}", inputs[1])
    end
  end)
end)

describe("a limit that is used up", function()
  local function spent(r, reset)
    r.headers["x-ratelimit-remaining-requests"] = "0"
    r.headers["x-ratelimit-reset-requests"] = reset
    return r
  end

  it("is waited for before the next request of the run", function()
    local s <close> = two { spent(server.chat_call("count", "{}", "c1"), "250ms"),
      spent(server.chat_text("done"), "1h") }
    local told
    local reply = assert(ah.run(fields(s, { tools = { count },
      on = { rate_limit = function(e) told = e.delay end } })))
    assert.equal("done", reply.text)
    local one, two_ = table.unpack(s:requests())
    assert.is_true(two_.at - one.at >= 240 and two_.at - one.at < 30000)
    assert.is_true(told > 0.1 and told <= 0.25)
  end)

  it("is waited for after a refusal that says no time", function()
    local refused = spent(down(429, "0"), "120ms")
    local s <close> = two { refused, server.chat_text("done") }
    local told
    assert.equal("done",
      assert(ah.run(fields(s, { on = { retry = function(e) told = e.delay end } }))).text)
    local one, two_ = table.unpack(s:requests())
    assert.is_true(two_.at - one.at >= 115)
    assert.is_true(told > 0.1 and told <= 0.12)
  end)
end)

describe("fallback", function()
  it("goes on with the next model after the retries, in the same conversation", function()
    local s <close> = two { server.chat_call("count", "{}", "call.with.dots"), down(), down() }
    local told, breaks = {}, {}
    local reply = assert(ah.run(fields(s, { tools = { count }, on = {
      fallback = function(e) told[#told + 1] = e end,
      cache_break = function(e) breaks[#breaks + 1] = e.reason end } })))
    assert.equal("from the other", reply.text)
    assert.equal("/a/chat/completions /a/chat/completions /a/chat/completions /v1/messages",
      paths(s))
    assert.same({ 1, "openai/m", "anthropic/claude-haiku-4-5", 503 },
      { #told, told[1].from, told[1].to, told[1].status })
    assert.truthy(told[1].message:find("their words", 1, true))
    assert.same({ "fallback" }, breaks)
    local messages = s:requests()[4]:json().messages
    local use, result = messages[2].content[1], messages[3].content[1]
    assert.same({ "tool_use", "tool_result", "7" }, { use.type, result.type, result.content })
    assert.equal(use.id, result.tool_use_id)
    assert.truthy(use.id:find("^[%w_-]+$"))
    local doc = sound.check(reply:transcript())
    local settings = sound.of(doc, "settings")
    assert.equal("anthropic/claude-haiku-4-5", settings[#settings].model)
    local answers = sound.of(doc, "assistant")
    assert.same({ "openai", "anthropic" }, { answers[1].origin.adapter,
      answers[2].origin.adapter })
  end)

  it("leaves the reasoning of the model before out", function()
    local thought = server.json { choices = { { message = { reasoning_content = "secret thoughts",
      tool_calls = { { id = "c1", ["function"] = { name = "count", arguments = "{}" } } } } } } }
    local s <close> = server.start { routes = {
      ["/d/chat/completions"] = { thought, down() },
      ["/e/chat/completions"] = { server.chat_text("done") } } }
    local reply = assert(ah.run(fields(s, { model = "deepseek/m", base_url = s.url .. "/d",
      retries = 0, tools = { count }, fallback = {
        { model = "deepseek/other", base_url = s.url .. "/e", api_key = KEY } } })))
    assert.equal("done", reply.text)
    local seen = s:requests()
    assert.truthy(seen[2].body:find("secret thoughts", 1, true))
    assert.falsy(seen[3].body:find("secret thoughts", 1, true))
  end)

  it("takes one after the other, and tells the last error where all are out", function()
    local told = {}
    local reply, err = ah.run { model = scripted({ fail = OUT }), retries = 0, "x",
      log = function() end, on = { fallback = function(e) told[#told + 1] = e.to end },
      fallback = { scripted { fail = OUT }, scripted { fail = { message = "the last", status = 529 }
        } } }
    assert.is_nil(reply)
    assert.equal("the last", err.message)
    assert.equal(2, #told)
    sound.check(err.reply:transcript())
  end)

  it("begins the next run with the model itself", function()
    local s <close> = two({ down(), server.chat_text("back again") })
    local breaks = {}
    local o = fields(s, { retries = 0, on = {
      cache_break = function(e) breaks[#breaks + 1] = e.reason end } })
    o[1] = nil
    local agent = assert(ah.agent(o))
    assert.equal("from the other", assert(agent:run("one")).text)
    assert.equal("back again", assert(agent:run("two")).text)
    assert.same({ "fallback", "model_changed" }, breaks)
    assert.equal("back again", assert(agent:fork():run("three")).text)
    sound.check(agent:transcript())
  end)

  it("is for what is no fault of the request", function()
    for _, status in ipairs { 400, 401, 403, 404, 413, 422 } do
      local s <close> = two { down(status) }
      local reply, err = ah.run(fields(s))
      assert.same({ nil, status, 1 }, { reply, err.status, #s:requests() })
    end
    for _, status in ipairs { 408, 429, 500, 502, 503, 529 } do
      local s <close> = two { down(status) }
      assert.equal("from the other", assert(ah.run(fields(s, { retries = 0 }))).text)
    end
  end)

  it("is for a server that cannot be reached, or wants more time than there is", function()
    local s <close> = two { down(429, "600000") }
    assert.equal("from the other", assert(ah.run(fields(s))).text)
    assert.equal("from the other", assert(ah.run(fields(s, { retries = 0,
      base_url = "http://127.0.0.1:1" }))).text)
  end)

  it("comes not after a piece of the answer was shown, unless that is asked for", function()
    local long = server.chat_text("the whole answer", { stream = true })
    local cut = long.body:find("e answer", 1, true)
    local broken = {}
    for k, v in pairs(long) do
      broken[k] = v
    end
    broken.cut = cut
    local shown = {}
    local on = { content = function(e) shown[#shown + 1] = e.text end }
    local s <close> = two({ broken }, { message "once more" })
    local reply = ah.run(fields(s, { retries = 0, on = on }))
    assert.is_nil(reply)
    assert.equal(1, #s:requests())
    local list = fields(s).fallback
    list.after_output = true
    reply = assert(ah.run(fields(s, { retries = 0, on = on, fallback = list })))
    assert.equal("once more", reply.text)
    assert.truthy(table.concat(shown):find("once more$"))
    assert.equal("once more", assert(ah.run(fields(s, { retries = 0 }))).text)
  end)

  it("passes over what cannot go on from here", function()
    local function beginner()
      return ah.scripted { begins_only = true, "from the beginner" }
    end
    local reply = assert(ah.run { model = scripted { fail = OUT }, retries = 0, "x",
      log = function() end, fallback = { beginner(), scripted "the other" } })
    assert.equal("from the beginner", reply.text)
    local words = {}
    reply = assert(ah.run { model = scripted({ calls = { { name = "count" } } }, { fail = OUT }),
      retries = 0, "x", tools = { count }, fallback = { beginner(), scripted "the other" },
      log = function(_, line) words[#words + 1] = line end })
    assert.equal("the other", reply.text)
    assert.truthy(table.concat(words, "\n"):find("is skipped", 1, true))
  end)

  it("passes over a model without a key, and refuses what is none", function()
    local words = {}
    local reply = assert(ah.run { model = scripted { fail = OUT }, retries = 0, "x",
      log = function(_, line) words[#words + 1] = line end,
      fallback = { "together_ai/m", "demo/echo" } })
    assert.equal("x", reply.text)
    assert.truthy(table.concat(words, "\n"):find("together_ai: no key", 1, true))
    for said, list in pairs { ["fallback[1]: model: unknown provider 'nope'"] = { "nope/x" },
      ["fallback[2]: model: expected"] = { "demo/echo", 7 },
      ["unknown field 'modell'"] = { { modell = "demo/echo" } },
      ["unknown field 'after'"] = { after = true }, ["16 models at most"] = (function()
        local many = {}
        for i = 1, 17 do
          many[i] = "demo/echo"
        end
        return many
      end)() } do
      local ok, err = pcall(ah.run, { model = "demo/echo", "x", fallback = list })
      assert.is_false(ok)
      assert.truthy(tostring(err):find(said, 1, true), tostring(err))
    end
  end)

  it("tells all models of an output in words where one has no way of its own for it", function()
    local s <close> = two({ server.chat_text('{"n":1}') }, { message '{"n":1}' })
    local output = { type = "object", properties = { n = { type = "integer" } },
      required = { "n" }, additionalProperties = false }
    local alone = fields(s, { output = output })
    alone.fallback = nil
    assert(ah.run(alone))
    assert(ah.run(fields(s, { output = output, fallback = { { model = "ollama/m",
      base_url = s.url } } })))
    local one, other = table.unpack(s:requests())
    assert.equal("user", one:json().messages[1].role)
    assert.equal("system", other:json().messages[1].role)
  end)

  it("has tools of a section told in the way of the model that goes on", function()
    local late = ah.tool { name = "late", description = "Late.", handler = function() return 1 end }
    local other = ah.scripted { tool_change_mode = "restart", answer = (function()
      local turns = { { calls = { { name = "read_section", arguments = { section_key = "s" } } } },
        { expect = { system = "The text of S." }, text = "done" } }
      return function() return table.remove(turns, 1) end
    end)() }
    local reply = assert(ah.run { model = scripted { fail = OUT }, retries = 0, "x",
      log = function() end, fallback = { other }, prompt = ah.prompt { ah.section { key = "s",
        template = "The text of S.", summary = "S", visibility = "summary", tools = { late } } } })
    assert.equal("done", reply.text)
  end)

  it("needs the prices of all models where the cost is limited", function()
    local _, err = ah.run { model = scripted "x", "x", fallback = { "demo/echo" },
      budget = { cost = 1, prices = { ["scripted/script"] = { input = 1, output = 1 } } } }
    assert.truthy(tostring(err):find("demo/echo", 1, true))
  end)
end)

describe("a way of telling of new tools that is refused", function()
  local function refusing(word)
    return function(r)
      return r.body:find(word, 1, true)
    end
  end

  local late = ah.tool { name = "late", description = "Late.", handler = function() return 1 end }
  local first = ah.tool { name = "first", description = "First.", handler = function(_, ctx)
    ctx:add_tools(late)
    return "there"
  end }
  local refusal = server.json({ type = "error", error = { type = "invalid_request_error",
    message = "tools.1.defer_loading: Extra inputs are not permitted" } }, { status = 400 })
  local calls = server.json { id = "m", type = "message", stop_reason = "tool_use", content = {
    { type = "tool_use", id = "t1", name = "first", input = {} } } }

  local function options(s, more)
    local o = { model = "anthropic/claude-opus-4-8", base_url = s.url, api_key = KEY,
      tools = { first }, log = function() end }
    for k, v in pairs(more or {}) do
      o[k] = v
    end
    return o
  end

  it("is noticed once, and kept in the conversation", function()
    local s <close> = server.start { responses = { refusal, calls, message "done" } }
    local warned, breaks = {}, {}
    local agent = assert(ah.agent(options(s, { on = {
      warning = function(e) warned[#warned + 1] = e.message end,
      cache_break = function(e) breaks[#breaks + 1] = e.reason end } })))
    assert.equal("done", assert(agent:run("one")).text)
    local was = refusing("defer_loading")
    local r = s:requests()
    assert.same({ 3, true, false, false },
      { #r, was(r[1]) ~= nil, was(r[2]) ~= nil, was(r[3]) ~= nil })
    assert.equal(2, #r[3]:json().tools)
    assert.truthy(warned[1]:find("(reference), trying append", 1, true))
    assert.same({ "tools_changed" }, breaks)
    assert.equal("done", assert(agent:run("two")).text)
    local path = os.tmpname()
    assert(agent:save(path))
    assert(assert(ah.load(path, options(s))):run("three"))
    os.remove(path)
    assert(agent:fork():run("four"))
    r = s:requests()
    for i = 4, 6 do
      assert.is_nil(was(r[i]))
    end
    assert.same({ 6, 1 }, { #r, #warned })
    local settings = sound.of(sound.check(agent:transcript()), "settings")
    assert.same({ 2, "append" }, { #settings, settings[2].learned.tool_change_mode })
  end)

  it("is told as what it is where another way is refused, too, and nothing is kept", function()
    local s <close> = server.start { responses = { refusal } }
    local agent = assert(ah.agent(options(s)))
    local _, err = agent:run("one")
    assert.same({ 400, 2 }, { err.status, #s:requests() })
    assert.falsy(agent:transcript():find("learned", 1, true))
    agent:run("two")
    assert.truthy(s:requests()[3].body:find("defer_loading", 1, true))
  end)

  it("is not looked for in requests that tell of no tools", function()
    local s <close> = server.start { responses = { refusal } }
    ah.run(options(s, { tools = {}, "x" }))
    ah.run(options(s, { tool_change_mode = "append", "x" }))
    assert.equal(2, #s:requests())
  end)

  it("is left for Responses, too", function()
    local s <close> = server.start { responses = {
      server.json { status = "completed", output = { { type = "function_call", call_id = "c",
        name = "first", arguments = "{}" } } }, refusal,
      server.json { status = "completed", output = { { type = "message", content = {
        { type = "output_text", text = "done" } } } } } } }
    local reply = assert(ah.run(options(s, { model = "openai/responses/gpt-5.6", "x" })))
    assert.equal("done", reply.text)
    local r = s:requests()
    assert.truthy(r[2].body:find("additional_tools", 1, true))
    assert.falsy(r[3].body:find("additional_tools", 1, true))
    assert.equal(2, #r[3]:json().tools)
  end)

  it("is no verdict on another model", function()
    local s <close> = server.start { responses = { refusal, message "one", message "two" } }
    local agent = assert(ah.agent(options(s)))
    assert(agent:run("one"))
    assert(agent:use { model = "anthropic/claude-opus-5", base_url = s.url, api_key = KEY })
    assert(agent:run("two"))
    assert.truthy(s:requests()[3].body:find("defer_loading", 1, true))
  end)
end)
