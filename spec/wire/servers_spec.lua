-- The servers that speak OpenAI's format, each by its name: addresses, keys, differences of
-- requests, parts of answers that are sent back; and LiteLLM's peculiarities.
local ah = require "agenthost"
local ahtest = require "ahtest"
local recordings = require "support.recordings"
local server = require "support.server"
local sound = require "support.sound"
local wire_of = require "support.wire"

local KEY = "server-canary-1234567890"

local wire = wire_of {}

local function wire_to(provider)
  return wire_of { provider = provider, base_url = "http://x" }
end

local function run(s, model, fields)
  local o = { model = model, base_url = s.url, api_key = KEY, retries = 0, "hi" }
  for k, v in pairs(fields or {}) do
    o[k] = v
  end
  return ah.run(o)
end

local function lower(provider, entries, more)
  local o = { provider = provider, model = "m", base_url = "http://x", key = KEY }
  for k, v in pairs(more or {}) do
    o[k] = v
  end
  return server.decode(ahtest.wire_lower(o, wire.encoded(entries)).body)
end

local function settings(options)
  return { type = "settings", model = "x", options = options }
end

local TOOL = { type = "tools_added", tools = { { name = "t", description = "T.", parameters = {
  type = "object" } } } }

local function assistant(id, opaque)
  return { type = "assistant", content = server.array { opaque },
    tool_calls = { { id = id, name = "t", arguments = "{}" } } }
end

local function result(id)
  return { type = "tool_result", id = id, name = "t", content = "R", success = true }
end

-- Returns the command's error for a model, with only the given environment.
local function said(model, env, script)
  local program = (os.getenv("AGENTHOST_BUILD") or "./build") .. "/agenthost"
  local command = ("env -i %s %s -e '%s' 2>&1"):format(env, program, (script or
    'print(ah.run { model = "%s", retries = 0, "hi" })'):format(model))
  local f <close> = assert(io.popen(command))
  return f:read("a")
end

describe("a server", function()
  it("is asked with the key of its own variable, at the address of its own", function()
    local s <close> = server.start { responses = { server.chat_text("ok") } }
    for name, names in pairs { groq = { "GROQ_API_BASE", "GROQ_API_KEY" },
      together_ai = { "TOGETHERAI_API_BASE", "TOGETHER_AI_API_KEY" },
      litellm_proxy = { "LITELLM_PROXY_API_BASE", "LITELLM_PROXY_API_KEY" },
      openai = { "OPENAI_API_BASE", "OPENAI_API_KEY" } } do
      local env = ("%s=%s/v1 %s=%s"):format(names[1], s.url, names[2], "key-of-" .. name)
      assert.equal("ok\n", said(name .. "/vendor/m:free", env))
      local r = s:requests()
      assert.equal("Bearer key-of-" .. name, r[#r].headers.authorization)
      assert.equal("/v1/chat/completions", r[#r].path)
      assert.equal("vendor/m:free", r[#r]:json().model, "only the first slash splits")
    end
  end)

  it("without a key says which variable, without an address which one", function()
    for name, variable in pairs { groq = "GROQ_API_KEY", openrouter = "OPENROUTER_API_KEY",
      huggingface = "HF_TOKEN", compatible = "COMPATIBLE_API_BASE", azure = "AZURE_API_BASE",
      litellm_proxy = "LITELLM_PROXY_API_BASE" } do
      local text = said(name .. "/m", "")
      assert.truthy(text:find(name .. ": ", 1, true), text)
      assert.truthy(text:find(variable, 1, true), text)
    end
  end)

  it("may be given the name of a variable as key", function()
    local s <close> = server.start { responses = { server.chat_text("ok") } }
    local script = ('print(ah.run { model = "xai/m", base_url = "%s", '
      .. 'api_key = "os.environ/MY_KEY", "hi" })'):format(s.url)
    assert.equal("ok\n", said("", "MY_KEY=mine-12345678", script))
    assert.equal("Bearer mine-12345678", s:requests()[1].headers.authorization)
    assert.truthy(said("", "", script):find("os.environ/MY_KEY, which is not set", 1, true))
  end)

  it("that is not known is named with its nearest, and all there are", function()
    local ok, err = pcall(ah.run, { model = "groqq/x", "hi" })
    assert.is_false(ok)
    assert.truthy(tostring(err):find("did you mean 'groq'?", 1, true))
    assert.truthy(tostring(err):find("litellm_proxy", 1, true))
  end)

  it("is named in its errors", function()
    local s <close> = server.start { responses = {
      server.json({ error = "no such key" }, { status = 401 }) } }
    local _, err = run(s, "xai/m")
    assert.equal("xai: HTTP 401: no such key; check api_key or XAI_API_KEY", err.message)
  end)
end)

describe("an alias", function()
  it("stands for a model, once", function()
    local s <close> = server.start { responses = { server.chat_text("ok") } }
    ah.alias { quick = "groq/m", ["groq/m"] = "mistral/other", m2 = "xai/n" }
    local reply = assert(run(s, "quick"))
    assert.truthy(reply:transcript():find('"model":"groq/m"', 1, true))
    assert(run(s, "groq/m"))
    assert.equal("other", s:requests()[2]:json().model)
    ah.alias { ["groq/m"] = "groq/m" }
  end)

  it("that is none is refused, and so is what names no model", function()
    for _, map in ipairs { { a = 7 }, { a = "gpt-4o" }, { "openai/x" }, "a" } do
      assert.is_false(pcall(ah.alias, map))
    end
    local ok, err = pcall(ah.run, { model = "slow", "hi" })
    assert.is_false(ok)
    assert.truthy(tostring(err):find("'slow' is not of the form provider/model", 1, true))
  end)

  it("may be given on the command line", function()
    local s <close> = server.start { responses = { server.chat_text("ok") } }
    local script = ('ah.alias { it = "compatible/m" } print(ah.run { base_url = "%s", "hi" })')
      :format(s.url)
    assert.equal("ok\n", said("", "AGENTHOST_MODEL=it", script))
  end)
end)

describe("a request to a server", function()
  it("says no more than the server is known to take", function()
    local usage = { include_usage = true }
    for name, options in pairs { openai = usage, groq = usage, litellm_proxy = usage,
      compatible = false, mistral = false } do
      local body = lower(name, {}, { stream = true })
      assert.is_true(body.stream)
      assert.same(options or nil, body.stream_options, name)
    end
  end)

  it("has the options in the server's words", function()
    local function options(name, o)
      return lower(name, { settings(o), TOOL })
    end
    assert.equal("any", options("mistral", { tool_choice = "required" }).tool_choice)
    assert.equal("required", options("groq", { tool_choice = "required" }).tool_choice)
    assert.same({ effort = "low" }, options("openrouter", { reasoning = "low" }).reasoning)
    assert.equal("low", options("groq", { reasoning = "low" }).reasoning_effort)
    assert.equal(7, options("groq", { max_tokens = 7 }).max_tokens)
    assert.equal(7, options("azure", { max_tokens = 7 }).max_completion_tokens)
  end)

  it("has the schema of an answer where the server takes it, and no tools", function()
    local schema = { type = "object", properties = { n = { type = "integer" } },
      required = { "n" }, additionalProperties = false }
    local one = ah.tool { name = "one", description = "1", handler = function() return "1" end }
    local takes = { mistral = true, xai = true, fireworks_ai = true, hosted_vllm = true,
      lm_studio = true, groq = false, deepseek = false, openrouter = false, cerebras = false,
      together_ai = false, llama_cpp = false, compatible = false }
    local s <close> = server.start { responses = { server.chat_text('{"n":1}') } }
    local function body(name, more)
      more.output = more.output or schema
      assert(run(s, name .. "/m", more))
      local all = s:requests()
      local doc = all[#all]:json()
      assert.equal("system", doc.messages[1].role, name) -- as text in any case
      return doc
    end
    for name, taken in pairs(takes) do
      local wanted = taken and { type = "json_schema",
        json_schema = { name = "output", schema = schema, strict = true } } or nil
      assert.same(wanted, body(name, {}).response_format, name)
      assert.is_nil(body(name, { tools = { one } }).response_format, name)
    end
    local loose = { type = "object", properties = { n = { type = "integer" } } }
    assert.is_nil(body("mistral", { output = loose }).response_format)
  end)

  it("to Mistral has ids of nine letters and digits, alike in call and result", function()
    local seen = {}
    for _, id in ipairs { "call_1_1", "call_1_2", "toolu_01ADw53o3uvrGvccVaVYUX4G", "a" } do
      local messages = lower("mistral", { assistant(id), result(id) }).messages
      local named = messages[1].tool_calls[1].id
      assert.truthy(named:find("^%w+$") and #named == 9 and not seen[named])
      assert.equal(named, messages[2].tool_call_id)
      seen[named] = true
    end
    local kept = lower("mistral", { assistant("aB3456789"), result("aB3456789") }).messages
    assert.equal("aB3456789", kept[1].tool_calls[1].id)
  end)

  it("to Azure goes by deployment and version, or to the paths without one", function()
    local s <close> = server.start { responses = { server.chat_text("ok") } }
    local env = ("AZURE_API_KEY=azure-key-1 AZURE_API_BASE=%s"):format(s.url)
    assert.equal("ok\n", said("azure/dep", env .. " AZURE_API_VERSION=2024-10-21"))
    assert.equal("ok\n", said("azure/dep", env))
    local one, two = table.unpack(s:requests())
    assert.equal("/openai/deployments/dep/chat/completions?api-version=2024-10-21", one.path)
    assert.equal("/openai/v1/chat/completions", two.path)
    assert.same({ "azure-key-1" }, { one.headers["api-key"], one.headers.authorization })
  end)

  it("to OpenRouter tells who calls, where the environment does", function()
    local s <close> = server.start { responses = { server.chat_text("ok") } }
    said("openrouter/a/b", ("OPENROUTER_API_KEY=router-key OPENROUTER_API_BASE=%s "
      .. "OR_SITE_URL=http://site.example OR_APP_NAME=App"):format(s.url))
    local headers = s:requests()[1].headers
    assert.same({ "http://site.example", "App" }, { headers["http-referer"], headers["x-title"] })
  end)

  it("has parameters with a combined root wrapped, and unwraps them", function()
    local schema = { type = "object", oneOf = { { required = { "a" } }, { required = { "b" } } },
      properties = { a = { type = "string" }, b = { type = "string" } } }
    local tool = { type = "tools_added", tools = { { name = "t", description = "T.",
      parameters = schema } } }
    local body = lower("groq", { tool, assistant("x"), result("x") })
    local parameters = body.tools[1]["function"].parameters
    assert.same({ "object", schema }, { parameters.type, parameters.properties.wrapped_arguments })
    assert.equal('{"wrapped_arguments":{}}',
      body.messages[1].tool_calls[1]["function"].arguments)
  end)

  it("whose wrapped arguments come back calls the tool with what is within", function()
    local s <close> = server.start { responses = {
      server.chat_call("t", '{"wrapped_arguments":{"a":"x"}}', "c1"), server.chat_text("ok") } }
    local got
    local t = ah.tool { name = "t", description = "T.", schema = { type = "object",
      properties = { a = { type = "string" } }, anyOf = { { required = { "a" } } } },
      handler = function(args)
        got = args.a
        return "R"
      end }
    local reply = assert(run(s, "groq/m", { tools = { t } }))
    assert.same({ "ok", "x" }, { reply.text, got })
    local again = s:requests()[2]:json().messages[2].tool_calls[1]["function"].arguments
    assert.equal('{"wrapped_arguments":{"a":"x"}}', again)
  end)
end)

describe("Groq", function()
  it("is asked again where it could not read the call that the model wrote", function()
    local bad = server.json({ error = { message = "Failed to call a function.",
      code = "tool_use_failed", failed_generation = "<f>" } }, { status = 400,
      headers = { ["Content-Type"] = "application/json", ["Retry-After-Ms"] = "10" } })
    local s <close> = server.start { responses = { bad, server.chat_text("ok") } }
    assert.equal("ok", assert(run(s, "groq/m", { retries = 1 })).text)
    assert.equal(2, #s:requests())
  end)
end)

-- -- thoughts --------------------------------------------------------------------------------

local function stream(deltas)
  local list = {}
  for i, delta in ipairs(deltas) do
    list[i] = "data: " .. server.encode { choices = { { index = 0, delta = delta } } } .. "\n\n"
  end
  local body = table.concat(list) .. "data: [DONE]\n\n"
  return { name = body, status = 200, headers = { ["content-type"] = "text/event-stream" },
    body = body }
end

local function call_delta()
  return { tool_calls = { { index = 0, id = "a", ["function"] = { name = "t",
    arguments = "{}" } } } }
end

local function kept(provider, x)
  local got = wire_to(provider).read(x)
  assert.is_nil(got.error and got.error.message)
  wire_to(provider).check_cuts(x)
  local part = wire.part(server.decode(got.entry), "opaque")
  return part and part.data, part and part.origin
end

describe("what a model thought", function()
  it("goes back to DeepSeek with calls, and nowhere else", function()
    local thoughts = { { reasoning_content = 'hm "' }, { reasoning_content = "é\n" } }
    assert.is_nil(kept("deepseek", stream { thoughts[1], { content = "so" } }))
    thoughts[3] = call_delta()
    local data, origin = kept("deepseek", stream(thoughts))
    assert.same({ reasoning_content = 'hm "é\n' }, data)
    assert.is_nil(kept("groq", stream(thoughts)), "nobody asked for it")
    local part = { type = "opaque", origin = origin, data = data }
    local function message(model)
      return lower("deepseek", { assistant("a", part), result("a") }, { model = model }).messages[1]
    end
    assert.equal('hm "é\n', message(origin.model).reasoning_content)
    assert.is_nil(message("other").reasoning_content)
    assert.equal(server.null, message(origin.model).content)
  end)

  it("comes in pieces that are one block, signed or sealed", function()
    local function detail(d)
      return { reasoning_details = { d } }
    end
    local data = kept("openrouter", stream {
      detail { type = "reasoning.text", text = "", signature = "", index = 0, format = "f" },
      detail { type = "reasoning.text", text = "on", index = 0, format = "f" },
      detail { type = "reasoning.text", text = "e", index = 0 },
      detail { type = "reasoning.text", signature = "sig", index = 0 },
      detail { type = "reasoning.text", text = "two", index = 1 },
      detail { type = "reasoning.encrypted", data = "x", index = 2 }, { content = "so" } })
    assert.same({ reasoning_details = {
      { type = "reasoning.text", text = "one", signature = "sig", index = 0, format = "f" },
      { type = "reasoning.text", text = "two", index = 1 },
      { type = "reasoning.encrypted", data = "x", index = 2 } } }, data)
  end)

  it("goes back through a LiteLLM proxy as text and as signed blocks", function()
    local data = kept("litellm_proxy", stream {
      { reasoning_content = "a", thinking_blocks = { { type = "thinking", thinking = "a" } } },
      { thinking_blocks = { { type = "thinking", thinking = "b", signature = "s" } } },
      call_delta() })
    assert.same({ reasoning_content = "a", thinking_blocks = {
      { type = "thinking", thinking = "ab", signature = "s" } } }, data)
  end)

  it("is in the next request of a loop of tools", function()
    local first = server.json { choices = { { index = 0, message = { role = "assistant",
      reasoning_content = "hm", tool_calls = call_delta().tool_calls } } } }
    local s <close> = server.start { responses = { first, server.chat_text("ok") } }
    local t = ah.tool { name = "t", description = "T.", handler = function() return "R" end }
    local reply = assert(run(s, "deepseek/m", { tools = { t } }))
    sound.check(reply:transcript())
    assert.equal("hm", s:requests()[2]:json().messages[2].reasoning_content)
    assert.equal("ok", reply.text)
  end)
end)

-- -- LiteLLM ---------------------------------------------------------------------------------

describe("a LiteLLM proxy", function()
  local function failing(status, error, headers)
    headers = headers or {}
    headers["Content-Type"] = "application/json"
    headers["x-litellm-call-id"] = "019b-call"
    return server.json({ error = error }, { status = status, headers = headers })
  end

  it("has its errors told with the call's name in its log", function()
    local s <close> = server.start { responses = { failing(500, { message = "Overloaded" }) } }
    local _, err = run(s, "litellm_proxy/alias")
    assert.equal("litellm_proxy: HTTP 500: Overloaded; litellm call 019b-call", err.message)
    assert.is_true(err.retryable)
  end)

  it("tells what an answer cost, in its header or in a stream's usage", function()
    for header, want in pairs { ["0.000214"] = 0.000214, ["1e-06"] = 1e-06, ["None"] = false,
      ["-1"] = false, ["1e999"] = false, ["0.5x"] = false } do
      local s <close> = server.start { responses = { server.chat_text("ok", { headers = {
        ["Content-Type"] = "application/json", ["x-litellm-response-cost"] = header } }) } }
      assert.equal(want or nil, assert(run(s, "litellm_proxy/alias")).usage.cost, header)
    end
    local s <close> = server.start { responses = { server.json { choices = { { index = 0,
      message = { role = "assistant", content = "ok" }, finish_reason = "stop" } },
      usage = { prompt_tokens = 3, completion_tokens = 2, cost = 0.0125 } } } }
    local budget = ah.budget { cost = 1 }
    local usage = assert(run(s, "openrouter/m", { budget = budget })).usage
    assert.same({ 0.0125, 3 }, { usage.cost, usage.input })
    assert.equal(0.0125, budget:used().cost)
  end)

  it("that has tried again by itself is not asked again", function()
    local s <close> = server.start { responses = {
      failing(500, { message = "Overloaded" }, { ["x-litellm-attempted-retries"] = "2" }) } }
    local _, err = run(s, "litellm_proxy/alias", { retries = 2 })
    assert.is_false(err.retryable)
    assert.equal(1, #s:requests())
  end)

  it("without a database says so of a wrong key", function()
    local s <close> = server.start { responses = {
      failing(400, { message = "No connected db.", type = "no_db_connection" }) } }
    local _, err = run(s, "litellm_proxy/alias")
    assert.truthy(err.message:find("check api_key or LITELLM_PROXY_API_KEY", 1, true))
  end)
end)

-- -- recordings -----------------------------------------------------------------------------

-- The provider of a recording, by the host of its request; otherwise its file's name decides.
local HOSTS = { ["openrouter.ai"] = "openrouter", ["api.deepseek.com"] = "deepseek",
  ["api.groq.com"] = "groq", ["api.mistral.ai"] = "mistral", ["api.x.ai"] = "xai",
  ["api.cerebras.ai"] = "cerebras", ["router.huggingface.co"] = "huggingface" }

local function provider_of(x)
  local host = x.request and x.request.url:match("^https?://([^/]+)")
  return HOSTS[host] or x.name:match("^litellm/") and "litellm_proxy" or "compatible"
end

-- Returns the parts that are sent back, read plainly, for answers that are not streamed.
local function thoughts_of(x, provider)
  local ok, doc = pcall(server.decode, x.body)
  local message = ok and type(doc) == "table" and doc.choices and doc.choices[1]
    and doc.choices[1].message or {}
  if provider == "deepseek" and message.tool_calls then
    return message.reasoning_content and { reasoning_content = message.reasoning_content }
  end
  return provider == "openrouter" and message.reasoning_details
    and { reasoning_details = message.reasoning_details } or nil
end

for _, folder in ipairs { "openai-compatible", "litellm" } do
  describe("the recordings of " .. folder .. ", each by its server's name,", function()
    local exchanges = {}
    for _, x in ipairs(recordings.exchanges(folder)) do
      exchanges[#exchanges + 1] = x.file ~= "21-model-list.json" and x or nil
    end

    it("are read, however their bytes are cut, and keep what goes back", function()
      if #exchanges == 0 then
        return pending("../shared/wire is not here")
      end
      for _, x in ipairs(exchanges) do
        local provider = provider_of(x)
        local expected, got = recordings.read(x), wire_to(provider).read(x)
        assert.equal(expected.error == nil, got.error == nil, x.name)
        if got.error then
          local words = expected.error:sub(1, 200):gsub("%c", " ") -- on one line
          assert.truthy(got.error.message:find(words, 1, true), x.name)
          assert.equal(expected.retryable, got.error.retryable, x.name)
        elseif not (x.headers["content-type"] or ""):find("event-stream", 1, true) then
          local entry = server.decode(got.entry)
          local part = wire.part(entry, "opaque")
          assert.equal(expected.stop, entry.stop, x.name)
          assert.same(thoughts_of(x, provider), part and part.data, x.name)
        end
        wire_to(provider).check_cuts(x)
      end
    end)
  end)
end

-- Returns the message of a recorded request that repeats a recorded answer, by the ids of its
-- calls.
local function sent_back(request, entry)
  for _, m in ipairs(request and request.body.messages or {}) do
    local calls = m.tool_calls ~= server.null and m.tool_calls or {}
    if calls[1] and calls[1].id == entry.tool_calls[1].id then
      return m
    end
  end
end

describe("recorded thoughts", function()
  it("go back as the recorded clients sent them", function()
    local exchanges, n = recordings.exchanges "openai-compatible", 0
    if #exchanges == 0 then
      return pending("../shared/wire is not here")
    end
    for i, x in ipairs(exchanges) do
      local provider, after = provider_of(x), exchanges[i + 1]
      local got = thoughts_of(x, provider) and wire_to(provider).read(x)
      local entry = got and server.decode(got.entry)
      local theirs = entry and entry.tool_calls and after and sent_back(after.request, entry)
      if theirs then
        local entries = { entry }
        for k, c in ipairs(entry.tool_calls) do
          entries[k + 1] = result(c.id)
        end
        local ours = lower(provider, entries, { model = "test" }).messages[1]
        assert.same({ theirs.reasoning_content, theirs.reasoning_details },
          { ours.reasoning_content, ours.reasoning_details }, x.name)
        n = n + 1
      end
    end
    assert.is_true(n >= 2)
  end)
end)
