-- Runs with the OpenAI adapter over real HTTP on loopback: requests, the outcome of every kind of
-- answer, retries, and that the key stays secret.
local ah = require "agenthost"
local ahtest = require "ahtest"
local server = require "support.server"
local sound = require "support.sound"

local KEY = "sk-canary-1234567890"

local function serve(...)
  return server.start { responses = { ... } }
end

local function merge(into, from)
  for k, v in pairs(from or {}) do
    into[k] = v
  end
  return into
end

-- Runs against a server; the text is "hi" unless the fields have one.
local function run(s, fields)
  local o = merge({ model = "openai/test", base_url = s.url, api_key = KEY }, fields)
  if not (o[1] or o.messages) then
    o[1] = "hi"
  end
  return ah.run(o)
end

local function run_error(s, fields)
  local reply, err = run(s, merge({ retries = 0 }, fields))
  assert.is_nil(reply)
  sound.check(err.reply:transcript())
  return err
end

local function has(text, part)
  assert.truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
end

local function has_not(text, part)
  assert.falsy(text:find(part, 1, true), ("%q in:\n%s"):format(part, text))
end

-- Returns a whole answer with one choice.
local function answer(message, finish, opts)
  return server.json(
    { choices = { { index = 0, message = message, finish_reason = finish } } },
    opts
  )
end

-- Returns a call in the form of a message; absent fields stay absent.
local function raw_call(id, name, arguments)
  return { id = id, type = "function", ["function"] = { name = name, arguments = arguments } }
end

local function failure(status, fields, headers)
  return server.json(
    { error = merge({ message = "the server's words" }, fields) },
    { status = status, headers = merge({ ["Content-Type"] = "application/json" }, headers) }
  )
end

-- Makes a tool that counts its calls and keeps the last arguments.
local function counter(name)
  local seen = { n = 0 }
  seen.tool = ah.tool {
    name = name or "count",
    description = "Counts.",
    schema = { type = "object" },
    handler = function(args)
      seen.n, seen.args = seen.n + 1, args
      return "counted"
    end,
  }
  return seen
end

-- Returns the text of every event, record and result of a run.
local function everything(s, fields)
  local list = {}
  local reply, err = run(
    s,
    merge({
      on = function(e)
        list[#list + 1] = ah.json.encode(e)
      end,
      log = function(level, line)
        list[#list + 1] = level .. " " .. line
      end,
    }, fields)
  )
  list[#list + 1] = tostring(reply) .. tostring(err)
  for k, v in pairs(err or {}) do
    list[#list + 1] = k .. "=" .. tostring(v)
  end
  list[#list + 1] = (reply or err.reply):transcript()
  return table.concat(list, "\n"), reply, err
end

local function types(events)
  local list = {}
  for i, e in ipairs(events) do
    list[i] = e.type
  end
  return table.concat(list, " ")
end

describe("a request", function()
  it("carries options of any length", function()
    local s <close> = serve(server.chat_text "ok")
    local stop = { ("word "):rep(100), "\u{263a}" }
    assert(run(s, { options = { stop = stop } }))
    assert.same(stop, { table.unpack(s:requests()[1]:json().stop) })
  end)

  it("is a POST to base_url/chat/completions with key, model and messages", function()
    local s <close> = serve(server.chat_text("hello"))
    local reply = assert(run(s, { system = "Be brief.", 'Say "hi"\n' }))
    assert.equal("hello", reply.text)
    local r = s:requests()[1]
    assert.same({ "POST", "/chat/completions" }, { r.method, r.path })
    assert.equal("Bearer " .. KEY, r.headers.authorization)
    assert.equal("application/json", r.headers["content-type"])
    assert.same({
      model = "test",
      messages = {
        { role = "system", content = "Be brief." },
        { role = "user", content = 'Say "hi"\n' },
      },
    }, r:json())
  end)

  it("asks for a stream with usage where somebody listens to content, or says stream", function()
    local s <close> = serve(server.chat_text("hello", { stream = true }))
    run(s, { stream = true })
    run(s, { on = { content = function() end }, stream = false })
    local text = ""
    run(s, { on = {
      content = function(e)
        text = text .. e.text
      end,
    } })
    local r = s:requests()
    assert.same({ true, true }, { r[1]:json().stream, r[1]:json().stream_options.include_usage })
    assert.is_nil(r[2]:json().stream)
    assert.is_true(r[3]:json().stream)
    assert.equal("hello", text)
  end)

  it("takes a base_url with slashes at its end", function()
    local s <close> = serve(server.chat_text("hello"))
    run(s, { base_url = s.url .. "/v1//" })
    assert.equal("/v1/chat/completions", s:requests()[1].path)
  end)

  it("has the options, under the names of the wire", function()
    local s <close> = serve(server.chat_text("hello"))
    run(s, {
      options = {
        temperature = 0.5,
        max_tokens = 7,
        top_p = 0.25,
        stop = { "a", "b" },
        seed = 9007199254740993,
        reasoning = "low",
        tool_choice = "required",
      },
    })
    local body = s:requests()[1]:json()
    assert.same(
      { 0.5, 7, 0.25, { "a", "b" }, 9007199254740993, "low" },
      { body.temperature, body.max_tokens, body.top_p, body.stop, body.seed, body.reasoning_effort }
    )
    assert.is_nil(body.max_completion_tokens)
    assert.is_nil(body.tool_choice, "without tools there is nothing to choose")
    assert.is_nil(body.tools)
  end)

  it("says max_completion_tokens where it goes to OpenAI itself", function()
    local settings = '{"type":"settings","model":"openai/o3","options":{"max_tokens":7}}'
    local r = ahtest.wire_lower({ model = "o3", key = KEY }, { settings })
    assert.same({ model = "o3", max_completion_tokens = 7, messages = {} }, server.decode(r.body))
  end)

  it("carries an output schema of type object, strict where it is what strict takes", function()
    local closed = { type = "object", additionalProperties = false, required = { "a", "b" },
      properties = { a = { type = "string", enum = { "x" } },
        b = { type = "array", items = { anyOf = { { type = "integer" }, { type = "null" } } } } } }
    local nested = merge({}, closed)
    nested.properties = { a = closed, b = { type = { "string", "null" } } }
    local loose = { { type = "object" }, merge({ required = { "a" } }, { type = "object" }) }
    for _, change in ipairs { { required = { "a" } }, { additionalProperties = true },
      { minProperties = 1 }, { properties = { a = { type = "object" }, b = {} } },
      { properties = { a = { type = "string", minLength = 1 }, b = {} } },
      { anyOf = { { required = { "a" } } } } } do
      loose[#loose + 1] = merge(merge({}, closed), change)
    end
    local function sent(schema)
      local entry = { type = "settings", model = "openai/x", options = ah.object {},
        output = schema }
      local r = ahtest.wire_lower({ model = "x", key = KEY }, { ah.json.encode(entry) })
      return server.decode(r.body).response_format
    end
    for _, schema in ipairs { closed, nested } do
      local format = sent(schema)
      assert.equal("json_schema", format.type)
      assert.same({ "output", true }, { format.json_schema.name, format.json_schema.strict })
      assert.same(schema, format.json_schema.schema)
    end
    for i, schema in ipairs(loose) do
      assert.is_false(sent(schema).json_schema.strict, i)
    end
    assert.is_nil(sent { type = "array" })
    assert.is_nil(sent(nil))
  end)

  it("gives the value of an answer in an output schema", function()
    local s <close> = serve(server.chat_text('{"n":1}'))
    local reply = assert(run(s, { output = { type = "object" } }))
    assert.equal(1, reply.value.n)
    local body = s:requests()[1]:json()
    assert.equal("json_schema", body.response_format.type)
    assert.equal(1, #body.messages) -- only the user's message, no text of ours
  end)

  it("has every form of tool_choice", function()
    local s <close> = serve(server.chat_text("hello"))
    for _, choice in ipairs { "auto", "none", "required", { name = "count" } } do
      run(s, { tools = { counter().tool }, options = { tool_choice = choice } })
    end
    local forms = {}
    for i, r in ipairs(s:requests()) do
      forms[i] = r:json().tool_choice
    end
    assert.same(
      { "auto", "none", "required", { type = "function", ["function"] = { name = "count" } } },
      forms
    )
  end)

  it("declares tools with name, description and schema", function()
    local s <close> = serve(server.chat_text("hello"))
    local t = ah.tool {
      name = "find-it",
      description = "Finds.",
      params = { name = "string", limit = "integer?" },
      handler = print,
    }
    local plain = ah.tool { name = "now", description = "The time.", handler = print }
    run(s, { tools = { t, plain } })
    local tools = s:requests()[1]:json().tools
    assert.equal("function", tools[1].type)
    assert.equal("find-it", tools[1]["function"].name)
    assert.equal("Finds.", tools[1]["function"].description)
    assert.same({ "name" }, tools[1]["function"].parameters.required)
    assert.equal("object", tools[2]["function"].parameters.type)
    assert.same({}, tools[2]["function"].parameters.properties)
  end)

  it("has an earlier conversation as messages, in the wire's form", function()
    local s <close> = serve(server.chat_text("hello"))
    assert(run(s, {
      messages = {
        { role = "system", content = "Rules." },
        { role = "user", content = "1 + 2?" },
        {
          role = "assistant",
          tool_calls = { { id = "c1", name = "add", arguments = { a = 1 } } },
        },
        {
          role = "tool",
          tool_call_id = "c1",
          name = "add",
          content = 'no "b"',
          success = false,
        },
        { role = "assistant", content = "It failed." },
      },
      "Again.",
    }))
    assert.same({
      { role = "system", content = "Rules." },
      { role = "user", content = "1 + 2?" },
      {
        role = "assistant",
        content = server.null,
        tool_calls = { raw_call("c1", "add", '{"a":1}') },
      },
      { role = "tool", tool_call_id = "c1", content = 'Error: no "b"' },
      { role = "assistant", content = "It failed." },
      { role = "user", content = "Again." },
    }, s:requests()[1]:json().messages)
  end)

  it("has text parts joined, and no other ones", function()
    local parts = '[{"type":"text","text":"a\\"b"},{"type":"text","text":7},{"type":"text"},'
      .. '{"type":"text","text":{"x":1}},{"type":"text","text":"c"}]'
    local r = ahtest.wire_lower(
      { base_url = "http://x" },
      { '{"type":"user","content":' .. parts .. "}" }
    )
    assert.same({ { role = "user", content = 'a"bc' } }, server.decode(r.body).messages)
  end)

  it("begins with the bytes of the one before, and says why when it does not", function()
    local user = '{"type":"user","content":[{"type":"text","text":"hi"}]}'
    local one, two, three, four, five = ahtest.wire_lower(
      { base_url = "http://x" },
      {
        '{"type":"settings","model":"openai/test","options":{}}',
        '{"type":"prompt","text":"P"}',
        user,
      },
      { '{"type":"note","text":"N"}', user },
      { '{"type":"tools_added","tools":[{"name":"t","description":"T.","parameters":{}}]}' },
      { '{"type":"tools_removed","names":["t"]}', '{"type":"prompt","text":"Q"}' },
      { '{"type":"settings","model":"openai/test","options":{"seed":1}}' }
    )
    assert.equal(one.body:sub(1, -3), two.body:sub(1, #one.body - 2))
    assert.same(
      { nil, nil, "tools_changed", "tools_changed", "settings_changed" },
      { one.reason, two.reason, three.reason, four.reason, five.reason }
    )
    assert.same({ 5, 6, 8 }, { three.at, four.at, five.at })
    assert.same(
      { "system", "entry", "entry", "entry" },
      { five.segments[1].kind, five.segments[2].kind, five.segments[3].kind, five.segments[4].kind }
    )
    has(
      five.body,
      '{"model":"test","seed":1,"messages":[{"role":"system","content":"Q"},{"role":"user"'
    )
  end)
end)

describe("tools that were removed", function()
  local function lower(base_url, choice)
    local user = '{"type":"user","content":[{"type":"text","text":"hi"}]}'
    local said = '{"type":"assistant","content":[{"type":"text","text":"ho"}]}'
    local options = choice and '{"tool_choice":' .. choice .. "}" or "{}"
    return ahtest.wire_lower({ base_url = base_url, key = KEY },
      { '{"type":"settings","model":"openai/test","options":' .. options .. "}",
        '{"type":"tools_added","tools":[{"name":"f","description":"F.","parameters":{}},'
          .. '{"name":"g","description":"G.","parameters":{}}]}', user },
      { said, '{"type":"tools_removed","names":["f"]}', user },
      { said, '{"type":"settings","model":"openai/test","options":{"seed":1}}', user })
  end

  local function segments(r, n)
    local list = {}
    for i = 1, n do
      list[i] = r.segments[i].kind .. " " .. r.segments[i].bytes
    end
    return list
  end

  it("are hidden by a list of the others until they are declared no longer", function()
    local one, two, three = lower "https://api.openai.com/v1"
    assert.is_nil(server.decode(one.body).tool_choice)
    assert.same({ type = "allowed_tools", allowed_tools = { mode = "auto",
      tools = { { type = "function", ["function"] = { name = "g" } } } } },
      server.decode(two.body).tool_choice)
    assert.same({ nil, 3 }, { two.reason, #one.segments })
    assert.same(segments(one, 3), segments(two, 3))
    assert.same({ "settings_changed", 1 }, { three.reason, #server.decode(three.body).tools })
    assert.is_nil(server.decode(three.body).tool_choice)
  end)

  it("are hidden where a tool must be called, and left to an option that says which", function()
    local _, two = lower("https://api.openai.com/v1", '"required"')
    assert.equal("required", server.decode(two.body).tool_choice.allowed_tools.mode)
    _, two = lower("https://api.openai.com/v1", '"none"')
    assert.equal("none", server.decode(two.body).tool_choice)
    _, two = lower("https://api.openai.com/v1", '{"name":"g"}')
    assert.same({ type = "function", ["function"] = { name = "g" } },
      server.decode(two.body).tool_choice)
  end)

  it("are not hidden from servers that only speak as OpenAI does", function()
    local _, two = lower "http://x"
    assert.is_nil(server.decode(two.body).tool_choice)
    assert.equal(2, #server.decode(two.body).tools)
  end)
end)

describe("a tool loop", function()
  for _, stream in ipairs { false, true } do
    local how = stream and " (streamed)" or ""

    it("gives results back after the exact bytes of the request before" .. how, function()
      local s <close> = serve(
        server.chat_call("count", '{"x": 1, "a": "é\\n"}', "call_a", { stream = stream }),
        server.chat_text("done", { stream = stream })
      )
      local seen = counter()
      local reply = assert(run(s, { tools = { seen.tool }, stream = stream, system = "S" }))
      assert.same(
        { "done", "end", 2, 1, 1 },
        { reply.text, reply.stop, reply.iterations, reply.rounds, reply.tool_calls }
      )
      assert.same({ 1, { x = 1, a = "é\n" } }, { seen.n, seen.args })
      local first, second = table.unpack(s:requests())
      assert.equal(first.body:sub(1, -3), second.body:sub(1, #first.body - 2))
      local messages = second:json().messages
      assert.same({
        role = "assistant",
        content = server.null,
        tool_calls = { raw_call("call_a", "count", '{"x": 1, "a": "é\\n"}') },
      }, messages[3])
      assert.same({ role = "tool", tool_call_id = "call_a", content = "counted" }, messages[4])
      assert.equal(first.conn, second.conn, "the connection is used again")
    end)

    it("sums the tokens of its turns" .. how, function()
      local function used(response, usage)
        response.body = response.body:gsub('"usage":{[^}]*}', '"usage":' .. server.encode(usage))
        return response
      end
      local s <close> = serve(
        used(server.chat_call("count", "{}", "a", { stream = stream }), {
          prompt_tokens = 100,
          completion_tokens = 20,
          prompt_tokens_details = { cached_tokens = 64, cache_write_tokens = 8 },
          completion_tokens_details = { reasoning_tokens = 16 },
        }),
        used(server.chat_text("done", { stream = stream }), {
          prompt_tokens = 130,
          completion_tokens = 2,
          prompt_tokens_details = { cached_tokens = 128 },
        })
      )
      local reply = assert(run(s, { tools = { counter().tool }, stream = stream }))
      assert.same({
        input = 230,
        output = 22,
        cached_read = 192,
        cached_write = 8,
        reasoning = 16,
        known = true,
        unpriced = 2,
      }, reply.usage)
    end)

    it("ends with the same entry streamed or not" .. how, function()
      local s <close> = serve(
        server.chat_calls(
          { { name = "count", id = "a" }, { name = "nothing", id = "b" } },
          { stream = stream }
        ),
        server.chat_text("dön€ 😀", { stream = stream })
      )
      local reply = assert(run(s, { tools = { counter().tool }, stream = stream }))
      local messages = reply.messages
      assert.same({
        { id = "a", name = "count", arguments = "{}" },
        { id = "b", name = "nothing", arguments = "{}" },
      }, messages[2].tool_calls)
      has(messages[4].content, "Tool 'nothing' not found")
      assert.equal("dön€ 😀", messages[5].content)
    end)
  end

  -- Returns the calls and results in the second request, after a first answer with these calls.
  local function second_request(calls, tools, finish)
    local s <close> = serve(
      answer(
        { role = "assistant", content = server.null, tool_calls = calls },
        finish or "tool_calls"
      ),
      server.chat_text("done")
    )
    local reply = assert(run(s, { tools = tools, loop_detector = false }))
    sound.check(reply:transcript())
    local messages, results = s:requests()[2]:json().messages, {}
    for i = 3, #messages do
      results[i - 2] = messages[i]
    end
    return messages[2].tool_calls, results
  end

  it("makes ids sound: each call is answered once, under its own", function()
    local seen, long = counter(), ("i"):rep(65)
    local calls, results = second_request({
      raw_call("same", "count", "{}"),
      raw_call("same", "count", "{}"),
      raw_call("", "count", "{}"),
      raw_call(nil, "count", "{}"),
      raw_call(server.null, "count", "{}"),
      raw_call(long, "count", "{}"),
      raw_call(7, "count", "{}"),
    }, { seen.tool })
    assert.same({ 7, 7, 7 }, { #calls, #results, seen.n })
    local ids = {}
    for i, c in ipairs(calls) do
      assert.truthy(c.id:match("^[%w_-]+$") and #c.id <= 64 and not ids[c.id])
      ids[c.id] = true
      assert.equal(c.id, results[i].tool_call_id)
    end
    assert.equal("same", calls[1].id)
  end)

  it("gives an id that comes again in a later turn a new one", function()
    local s <close> = serve(
      server.chat_call("count", "{}", "0"),
      server.chat_call("count", "{}", "0"),
      server.chat_text("done")
    )
    local reply = assert(run(s, { tools = { counter().tool } }))
    sound.check(reply:transcript())
    local messages = s:requests()[3]:json().messages
    assert.equal("0", messages[2].tool_calls[1].id)
    assert.not_equal("0", messages[4].tool_calls[1].id)
    assert.equal(messages[4].tool_calls[1].id, messages[5].tool_call_id)
  end)

  it("takes arguments that are missing as none", function()
    for _, arguments in ipairs { "", server.null, " ", "null", "{}" } do
      local seen = counter()
      local calls = second_request({ raw_call("a", "count", arguments) }, { seen.tool })
      assert.same({ 1, {} }, { seen.n, seen.args })
      assert.is_string(calls[1]["function"].arguments)
    end
    local seen = counter()
    local calls = second_request({ { id = "a", ["function"] = { name = "count" } } }, { seen.tool })
    assert.same({ 1, "{}" }, { seen.n, calls[1]["function"].arguments })
  end)

  it("never runs a tool whose arguments are no JSON object", function()
    for arguments, words in pairs {
      ['{"a":'] = "not JSON",
      ["{} x"] = "not JSON",
      ["{'a':1}"] = "not JSON",
      ["[1]"] = "Tool validation failed",
      ['"x"'] = "Tool validation failed",
      ["7"] = "Tool validation failed",
    } do
      local seen = counter()
      local calls, results = second_request({ raw_call("a", "count", arguments) }, { seen.tool })
      assert.equal(0, seen.n)
      has(results[1].content, "Error: ")
      has(results[1].content, words)
      assert.equal(arguments, calls[1]["function"].arguments)
    end
  end)

  it("never runs a call that the output limit cut off, even if it looks whole", function()
    local seen = counter()
    local _, results = second_request(
      { raw_call("a", "count", "{}"), raw_call("b", "count", "{}") },
      { seen.tool },
      "length"
    )
    assert.equal(1, seen.n)
    assert.equal("counted", results[1].content)
    has(results[2].content, "cut off")
  end)

  it("sends back a name the model made up as the wire takes it", function()
    for name, safe in pairs {
      ["get weather!"] = "get_weather_",
      ['a"b\\'] = "a__b__",
      [""] = "unnamed",
      [("x"):rep(100)] = ("x"):rep(64),
      ["ü"] = "__",
    } do
      local calls, results = second_request({ raw_call("a", name, "{}") }, { counter().tool })
      assert.equal(safe, calls[1]["function"].name)
      has(results[1].content, "not found")
    end
  end)

  it("keeps text and refusal apart from calls", function()
    local s <close> = serve(
      answer({ content = "Let me see.", tool_calls = { raw_call("a", "count", "{}") } }, "stop"),
      answer({ content = server.null, refusal = "I will not." }, "stop")
    )
    local reply = assert(run(s, { tools = { counter().tool } }))
    assert.equal("Let me see.", s:requests()[2]:json().messages[2].content)
    assert.same({ "I will not.", "refusal" }, { reply.text, reply.stop })
  end)

  it("says what stopped an answer", function()
    for finish, stop in pairs {
      stop = "end",
      length = "length",
      content_filter = "content_filter",
      eos = "end",
    } do
      local s <close> = serve(answer({ content = "x" }, finish))
      assert.equal(stop, run(s).stop)
    end
  end)

  it("asks once more without tools to choose where on_max says so", function()
    local s <close> = serve(server.chat_call("count", "{}", "a"), server.chat_text("enough"))
    local reply = assert(run(s, {
      tools = { counter().tool },
      max_iterations = 1,
      on_max = "answer",
      options = { seed = 1, tool_choice = "required" },
    }))
    assert.equal("enough", reply.text)
    local body = s:requests()[2]:json()
    assert.same({ "none", 1, 1 }, { body.tool_choice, body.seed, #body.tools })
  end)

  it("goes on in the next run of an agent, after the same bytes", function()
    local s <close> = serve(server.chat_text("one"), server.chat_text("two"))
    local agent = ah.agent { model = "openai/test", base_url = s.url, api_key = KEY, system = "S" }
    assert.equal("one", assert(agent:run("first")).text)
    assert.equal("two", assert(agent:run("second")).text)
    local first, second = table.unpack(s:requests())
    assert.equal(first.body:sub(1, -3), second.body:sub(1, #first.body - 2))
    assert.equal(4, #second:json().messages)
    sound.check(agent:transcript())
  end)

  it("runs fifty agents at once, from calls that are marked parallel", function()
    local calls = {}
    for i = 1, 50 do
      calls[i] = { name = "ask", id = "c" .. i, arguments = { n = i } }
    end
    local s <close> = server.start {
      routes = {
        ["/outer/chat/completions"] = { server.chat_calls(calls), server.chat_text("all done") },
        ["/inner/chat/completions"] = { server.chat_text("inner", { delay = 20 }) },
      },
    }
    local ask = ah.tool {
      name = "ask",
      description = "Asks another agent.",
      params = { n = "integer" },
      parallel = true,
      handler = function(args)
        return assert(run(s, { base_url = s.url .. "/inner", "question " .. args.n })).text
          .. args.n
      end,
    }
    local reply = assert(run(s, { base_url = s.url .. "/outer", tools = { ask } }))
    assert.same({ "all done", 50 }, { reply.text, reply.tool_calls })
    local results = sound.of(sound.check(reply:transcript()), "tool_result")
    for i, r in ipairs(results) do
      assert.equal("inner" .. i, r.content)
    end
    assert.equal(52, #s:requests())
  end)
end)

describe("an answer that is an error", function()
  local function waited(s)
    local r = s:requests()
    return r[2].at - r[1].at
  end

  it("is tried again after the time the server advises", function()
    for _, case in ipairs {
      { { ["Retry-After"] = "0.3" }, 300 },
      { { ["retry-after-ms"] = "120" }, 120 },
      { { ["retry-after-ms"] = "0", ["retry-after"] = "0.2" }, 200 },
    } do
      local s <close> = serve(failure(429, nil, case[1]), server.chat_text("at last"))
      local told
      assert.equal("at last",
        assert(run(s, { on = { retry = function(e) told = e.delay end } })).text)
      local ms = waited(s)
      assert.is_true(ms >= case[2] - 5, ms .. " ms")
      assert.is_true(told <= case[2] / 1000, told .. " s")
    end
  end)

  it("is tried again at the date the server advises", function()
    local at = os.date("!%a, %d %b %Y %H:%M:%S GMT", os.time() + 2)
    local s <close> =
      serve(failure(503, nil, { ["Retry-After"] = at }), server.chat_text("at last"))
    local told
    assert.equal("at last",
      assert(run(s, { on = { retry = function(e) told = e.delay end } })).text)
    local ms = waited(s)
    assert.is_true(ms >= told * 1000 - 5 and told <= 2, ms .. " ms")
  end)

  it("is tried again in half a second where nothing is advised", function()
    local s <close> = serve(failure(500), server.chat_text("at last"))
    local retries = {}
    assert.equal(
      "at last",
      assert(run(s, {
        on = {
          retry = function(e)
            retries[#retries + 1] = e
          end,
        },
      })).text
    )
    assert.same({ 1, 1, 500 }, { #retries, retries[1].attempt, retries[1].status })
    has(retries[1].message, "the server's words")
    local ms = waited(s)
    assert.is_true(ms >= retries[1].delay * 1000 - 5, ms .. " ms")
    assert.is_true(retries[1].delay >= 0.375 and retries[1].delay <= 0.625)
  end)

  it("is told when the tries are used up", function()
    local s <close> =
      serve(failure(429, { code = "rate_limit_exceeded" }, { ["retry-after-ms"] = "5" }))
    local reply, err = run(s, { retries = 2 })
    assert.is_nil(reply)
    assert.equal(3, #s:requests())
    assert.same(
      { "provider", 429, true, "response" },
      { err.code, err.status, err.retryable, err.phase }
    )
    assert.equal("openai: HTTP 429: the server's words (rate_limit_exceeded)", err.message)
    sound.check(err.reply:transcript())
  end)

  it("is not tried again where that would not help", function()
    local hour = { ["Retry-After"] = "3600" }
    for _, case in ipairs {
      { failure(400) },
      { failure(401) },
      { failure(403) },
      { failure(404) },
      { failure(413) },
      { failure(422) },
      { failure(429, { code = "insufficient_quota" }) },
      { failure(429, { type = "insufficient_quota" }) },
      { failure(429, nil, hour) },
      { failure(500, nil, { ["x-should-retry"] = "false" }) },
    } do
      local s <close> = serve(case[1])
      local err = run_error(s, { retries = 2 })
      assert.same(
        { 1, "provider", false, case[1].status },
        { #s:requests(), err.code, err.retryable, err.status }
      )
      has(err.message, "the server's words")
    end
  end)

  it("is tried again where the server says so", function()
    local s <close> = serve(
      failure(400, nil, { ["x-should-retry"] = "true", ["retry-after-ms"] = "5" }),
      server.chat_text("at last")
    )
    assert.equal("at last", assert(run(s)).text)
  end)

  it("says what to check when the key is refused", function()
    local s <close> = serve(failure(401))
    has(run_error(s).message, "OPENAI_API_KEY")
  end)

  it("is no stream even if one was asked for", function()
    local s <close> = serve(failure(400))
    has(run_error(s, { stream = true }).message, "HTTP 400: the server's words")
  end)

  it("is a redirect, too: it is not followed", function()
    local s <close> = serve { status = 302, headers = { Location = "/elsewhere" } }
    local err = run_error(s, { retries = 2 })
    assert.same({ 1, 302 }, { #s:requests(), err.status })
    has(err.message, "HTTP 302")
    has(err.message, "redirects are not followed")
  end)
end)

describe("an answer that breaks off", function()
  local long = server.chat_text("the whole answer", { stream = true })
  local shown = long.body:find("e answer", 1, true) -- the first half was sent

  local function cut(fields)
    return merge(merge({}, long), fields)
  end

  it("before anything was shown is tried again", function()
    for _, broken in ipairs { { drop = true }, cut { reset = 30 } } do
      local s <close> = serve(broken, long)
      local events = {}
      local reply = assert(run(s, {
        on = function(e)
          events[#events + 1] = e
        end,
      }))
      assert.equal("the whole answer", reply.text)
      assert.equal(
        "start tool_loop_iteration request retry request content content usage done",
        types(events)
      )
    end
  end)

  it("after something was shown is not, and the error is one", function()
    for _, broken in ipairs { cut { cut = shown }, cut { reset = shown } } do
      local s <close> = serve(broken, long)
      local events = {}
      local err = run_error(s, {
        retries = 2,
        on = function(e)
          events[#events + 1] = e
        end,
      })
      assert.equal(1, #s:requests())
      assert.equal("start tool_loop_iteration request content done", types(events))
      assert.same({ "http", "response" }, { err.code, err.phase })
      has(err.message, "127.0.0.1:" .. s.port)
    end
  end)

  it("is tried again though bytes came, where nobody was shown any", function()
    local s <close> = serve(cut { cut = shown }, long)
    assert.equal("the whole answer", assert(run(s, { stream = true })).text)
  end)

  it("without finish_reason and [DONE] is not taken as complete", function()
    local s <close> = serve(server.sse { '{"choices":[{"index":0,"delta":{"content":"half"}}]}' })
    local err = run_error(s, { stream = true })
    assert.same({ "http", true }, { err.code, err.retryable })
    has(err.message, "the stream ended before the answer was complete")
  end)

  it("after finish_reason or [DONE] is complete", function()
    for _, last in ipairs { '{"choices":[{"delta":{},"finish_reason":"stop"}]}', "[DONE]" } do
      local s <close> = serve(server.sse { '{"choices":[{"delta":{"content":"all"}}]}', last })
      assert.equal("all", assert(run(s, { stream = true })).text)
    end
  end)

  it("in time is told by the limit that ended it", function()
    for name, case in pairs {
      ["http.idle_timeout"] = { cut { stall = 20 }, { idle_timeout = 0.1 } },
      ["http.idle_timeout "] = { { stall = true }, { idle_timeout = 0.1 } },
      ["http.total_timeout"] = { cut { piece = 1, gap = 20 }, { total_timeout = 0.15 } },
      ["http.max_body"] = { { endless = true, body = ("x"):rep(1000) }, { max_body = 50000 } },
      ["http.max_header"] = { { big_header = 9000, body = "{}" }, { max_header = 5000 } },
    } do
      local s <close> = serve(case[1])
      local err = run_error(s, { stream = true, http = case[2] })
      assert.equal("http", err.code)
      has(err.message, name:match("%S+"))
    end
  end)

  it("with fewer bytes than it announced is an error", function()
    local s <close> = serve {
      raw = true,
      body = 'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"choices":[]}',
    }
    local err = run_error(s)
    assert.same({ "http", true }, { err.code, err.retryable })
  end)
end)

describe("an answer that is no answer", function()
  local function message_of(response, fields)
    local s <close> = serve(response)
    local err = run_error(s, fields)
    assert.same({ "provider", "response" }, { err.code, err.phase })
    return err.message
  end

  it("is told for what it is", function()
    has(
      message_of(server.json '{"choices": [}'),
      "not JSON: unexpected character at line 1, column 14"
    )
    has(
      message_of { headers = { ["Content-Type"] = "text/html" }, body = "<html><body>Hello" },
      "the answer is a web page, no JSON; check base_url"
    )
    has(message_of { body = "" }, "the answer is empty")
    has(message_of(server.json { choices = server.array {} }), "no choices")
    has(message_of(server.json "[1]"), "expected a JSON object")
    has(message_of(server.sse { "{" }, { stream = true }), "an event of the stream is not JSON")
    has(message_of(server.sse { "[DONE]" }, { stream = true }), "no choices")
    has(
      message_of(
        server.sse { '{"choices":[{"delta":{"content":"x"}}]}', '{"error":"it broke"}' },
        { stream = true }
      ),
      "it broke"
    )
    has(message_of(server.json({ error = { message = "with a 200" } })), "with a 200")
  end)

  it("compressed is refused", function()
    local s <close> = serve(server.json("{}", { headers = { ["Content-Encoding"] = "gzip" } }))
    local err = run_error(s)
    assert.equal("http", err.code)
    has(err.message, "compressed")
  end)

  it("comes from nobody where nobody listens", function()
    local err = run_error({ url = "http://127.0.0.1:1/v1" })
    assert.same({ "http", "request", true }, { err.code, err.phase, err.retryable })
    has(err.message, "connection refused by 127.0.0.1:1")
  end)

  it(
    "is read even if the server streams unasked, or answers whole when asked for a stream",
    function()
      local s <close> =
        serve(server.chat_text("streamed", { stream = true }), server.chat_text("whole"))
      assert.equal("streamed", assert(run(s, { stream = false })).text)
      assert.equal("whole", assert(run(s, { stream = true })).text)
    end
  )

  it("is the same when its bytes come one by one", function()
    local s <close> = serve(
      server.chat_call("count", '{"a":"\\u00e9"}', "a", { stream = true, piece = 1 }),
      server.chat_text("dön€ 😀", { stream = true, piece = 1 })
    )
    local seen, text = counter(), {}
    local reply = assert(run(s, {
      tools = { seen.tool },
      on = {
        content = function(e)
          text[#text + 1] = e.text
        end,
      },
    }))
    assert.same(
      { "dön€ 😀", "dön€ 😀", "é" },
      { reply.text, table.concat(text), seen.args.a }
    )
  end)
end)

describe("a deadline", function()
  it("ends a stalled answer, and the conversation is sound", function()
    local stalled = server.chat_text("never all", { stream = true })
    stalled.stall = #stalled.body - 200
    local s <close> = serve(server.chat_call("count", "{}", "a", { stream = true }), stalled)
    local agent = ah.agent {
      model = "openai/test",
      base_url = s.url,
      api_key = KEY,
      tools = { counter().tool },
      stream = true,
      timeout = 0.25,
    }
    local began = ah.now()
    local reply, err = agent:run("hi")
    assert.is_nil(reply)
    assert.is_true(ah.now() - began < 20)
    assert.same({ "deadline_exceeded", "response" }, { err.code, err.phase })
    assert.is_true(err:is("prompt_evaluation"))
    local entries = sound.check(agent:transcript())
    assert.equal("tool_result", entries[#entries].type)
  end)

  it("ends the wait for another try", function()
    local s <close> = serve(failure(429, nil, { ["retry-after"] = "30" }))
    local err = run_error(s, { retries = 2, timeout = 0.1 })
    assert.same({ "deadline_exceeded", "request", 1 }, { err.code, err.phase, #s:requests() })
  end)
end)

describe("the key", function()
  local function chunks(...)
    local events = {}
    for i, delta in ipairs { ... } do
      events[i] = ('{"choices":[{"index":0,"delta":%s}]}'):format(delta)
    end
    events[#events + 1] = "[DONE]"
    return server.sse(events)
  end

  it("goes out in the header, and comes back in nothing", function()
    local echo = '{"content":"it is sk-canary-12345"}'
    local seen = counter()
    local cases = {
      {
        failure(401, { message = "bad key " .. KEY, code = KEY, type = KEY }, { ["X-Echo"] = KEY }),
      },
      {
        failure(500, { message = ("x"):rep(390) .. KEY }, { ["retry-after-ms"] = "1" }),
        retries = 1,
      },
      {
        { status = 500, body = ("<p>"):rep(130) .. KEY, headers = { ["retry-after-ms"] = "1" } },
        retries = 1,
      },
      { server.json('{"a":' .. KEY) },
      { server.sse { ('{"error":{"message":"%s"}}'):format(KEY) } },
      { server.sse { ('{"choices": %s'):format(KEY) } },
      { chunks(echo, '{"content":"67890, you know"}') },
      {
        chunks(echo, '{"content":"67890"}', '{"refusal":"sk-canary-"}', '{"refusal":"1234567890"}'),
      },
      {
        chunks(
          ('{"tool_calls":[{"id":"%s","function":{"name":"count"}}]}'):format(KEY),
          '{"tool_calls":[{"function":{"arguments":"{\\"k\\":\\"sk-can"}}]}',
          '{"tool_calls":[{"function":{"arguments":"ary-1234567890\\"}"}}]}'
        ),
        server.chat_text("fine"),
      },
      { server.chat_call(KEY, ('{"k":"%s"}'):format(KEY)), server.chat_text("fine") },
      { { raw = true, body = ("HTTP/1.1 200 OK\r\n%s\r\n\r\n"):format(KEY) } },
      {
        {
          raw = true,
          body = ("HTTP/1.1 302 %s\r\nLocation: http://%s/\r\nContent-Length: 0\r\n\r\n"):format(
            KEY,
            KEY
          ),
        },
      },
    }
    for i, responses in ipairs(cases) do
      for _, stream in ipairs { false, true } do
        local s <close> = server.start { responses = responses }
        local text = everything(
          s,
          { tools = { seen.tool }, stream = stream, retries = responses.retries or 0 }
        )
        assert.falsy(text:find("canary", 1, true), ("case %d:\n%s"):format(i, text))
        assert.equal("Bearer " .. KEY, s:requests()[1].headers.authorization)
      end
    end
    assert.equal(KEY, seen.args.k)
  end)

  it("is shown as what it is not, without what stands around it being lost", function()
    local s <close> =
      serve(chunks('{"content":"it is sk-canary-12345"}', '{"content":"67890, you know"}'))
    local text = ""
    local reply = run(
      s,
      { on = {
        content = function(e)
          text = text .. e.text
        end,
      } }
    )
    assert.same({ "it is [secret], you know", "it is [secret], you know" }, { reply.text, text })
  end)
end)

describe("an answer that is complete", function()
  for _, how in ipairs { "stall", "cut" } do
    it("is taken although the connection then meets a " .. how, function()
      local whole = server.chat_text("complete", { stream = true })
      whole[how] = #whole.body
      local s <close> = serve(whole)
      local began = ah.now()
      local reply = run(s, { stream = true, retries = 0 })
      assert.equal("complete", reply.text)
      assert.is_true(ah.now() - began < 20)
    end)
  end

  it("leaves its connection for the next request", function()
    local s <close> = serve(server.chat_text("one", { stream = true, chunked = true }))
    run(s, { stream = true })
    run(s, { stream = true })
    local seen = s:requests()
    assert.equal(seen[1].conn, seen[2].conn)
  end)
end)

describe("a web page in place of an answer", function()
  it("is not asked for again", function()
    local s <close> =
      serve { headers = { ["Content-Type"] = "text/html" }, body = "<html>hello</html>" }
    local err = run_error(s, { retries = 2 })
    assert.is_false(err.retryable)
    assert.equal(1, #s:requests())
  end)
end)

describe("what stands in a conversation", function()
  it("holds no key that a handler came across", function()
    local t = ah.tool {
      name = "env",
      description = "Shows the environment.",
      handler = function()
        return { OPENAI_API_KEY = KEY }
      end,
    }
    local s <close> = serve(server.chat_call("env", "{}", "c1"), server.chat_text("done"))
    local reply = run(s, { tools = { t } })
    has_not(reply:transcript(), "canary")
    has(reply:transcript(), "[secret]")
    has_not(s:requests()[2].body, "canary")
  end)

  it("holds no key in what is told of a call: its value, and what its handler raised", function()
    for _, handler in ipairs {
      function()
        return { [KEY] = 1, text = "it is " .. KEY, deep = ah.json.encode { k = KEY } }
      end,
      function() return ah.ok({ KEY }, "m") end,
      function() error("no: " .. KEY) end,
      function() error(ah.error { code = "internal", message = KEY }) end,
    } do
      local t = ah.tool { name = "env", description = "Shows it.", handler = handler }
      local s <close> = serve(server.chat_call("env", "{}", "c1"), server.chat_text("done"))
      local told, records = "", {}
      run(s, { tools = { t }, on = { tool_invoked = function(e) told = ah.json.encode(e) end },
        log = function(_, line) records[#records + 1] = line end })
      has_not(told, "canary")
      has(told, "[secret]")
      has_not(table.concat(records, "\n"), "canary")
    end
  end)

  it("is JSON whatever the model is called", function()
    local s <close> = serve(server.chat_text("hello"))
    local reply = run(s, { model = 'openai/a"b\n' })
    assert.equal('openai/a"b\n', ah.json.decode(reply:transcript()).entries[1].model)
  end)

  it("keeps every system message in its place", function()
    local s <close> = serve(server.chat_text("hello"))
    run(
      s,
      {
        messages = {
          { role = "system", content = "one" },
          { role = "user", content = "hi" },
          { role = "system", content = "two" },
        },
      }
    )
    local roles = {}
    for i, m in ipairs(s:requests()[1]:json().messages) do
      roles[i] = m.role .. " " .. m.content
    end
    assert.same({ "system one", "user hi", "system two" }, roles)
  end)
end)

describe("the command", function()
  local BINARY = (os.getenv("AGENTHOST_BUILD") or "./build") .. "/agenthost"
  local made = {}

  local function temp(text)
    local path = os.tmpname()
    made[#made + 1] = path
    local f <close> = assert(io.open(path, "w"))
    f:write(text)
    return path
  end

  after_each(function()
    for _, path in ipairs(made) do
      os.remove(path)
    end
    made = {}
  end)

  -- Runs a script with these variables set; returns stdout, stderr and exit code.
  local function command(env, text)
    local words, errors = {}, temp("")
    for k, v in pairs(env) do
      words[#words + 1] = ("%s='%s'"):format(k, v)
    end
    local line =
      "env -u OPENAI_API_KEY -u OPENAI_BASE_URL -u AGENTHOST_MODEL %s '%s' '%s' 2>'%s' </dev/null"
    local pipe = assert(io.popen(line:format(table.concat(words, " "), BINARY, temp(text), errors)))
    local out = pipe:read("a")
    local _, _, code = pipe:close()
    local f <close> = assert(io.open(errors))
    return out, f:read("a"), code
  end

  local SCRIPT = [[
    local ah = require "agenthost"
    print(assert(ah.run { model = "openai/gpt-x", "hi" }))
  ]]

  it("finds key, address, organization and project in the environment", function()
    local s <close> = serve(server.chat_text("from there"))
    local out, err, code = command({
      OPENAI_API_KEY = KEY,
      OPENAI_BASE_URL = s.url .. "/v9/",
      OPENAI_ORG_ID = "org-1",
      OPENAI_PROJECT_ID = "proj-1",
    }, SCRIPT)
    assert.same({ "from there\n", "", 0 }, { out, err, code })
    local r = s:requests()[1]
    assert.same({ "/v9/chat/completions", "Bearer " .. KEY, "org-1", "proj-1", "gpt-x" }, {
      r.path,
      r.headers.authorization,
      r.headers["openai-organization"],
      r.headers["openai-project"],
      r:json().model,
    })
  end)

  it("needs no key for a server of one's own", function()
    local s <close> = serve(server.chat_text("hello"))
    local out = command({ OPENAI_BASE_URL = s.url, OPENAI_API_KEY = "" }, SCRIPT)
    assert.equal("hello\n", out)
    assert.is_nil(s:requests()[1].headers.authorization)
  end)

  it("gives nil and an error without a key, from ah.run and ah.agent alike", function()
    local out, _, code = command({}, [[
      local ah = require "agenthost"
      for _, make in ipairs { ah.run, ah.agent } do
        local nothing, err = make { model = "openai/gpt-x", make == ah.run and "hi" or nil }
        print(nothing, err.code)
      end
    ]])
    assert.same({ "nil\tprovider\nnil\tprovider\n", 0 }, { out, code })
  end)

  it("says what is missing without a key", function()
    local out, err, code = command({}, SCRIPT)
    assert.same({ "", 3 }, { out, code })
    has(err, "openai: no key: set OPENAI_API_KEY or api_key")
    has_not(err, "traceback")
  end)

  it("ends with 3 and one clear line when an answer that was shown breaks off", function()
    local long = server.chat_text("the whole answer", { stream = true })
    long.cut = long.body:find("e answer", 1, true)
    local s <close> = serve(long)
    local out, err, code = command(
      { OPENAI_API_KEY = KEY, OPENAI_BASE_URL = s.url },
      [[
      local ah = require "agenthost"
      local on = { content = function(e) io.write(e.text) end }
      assert(ah.run { model = "openai/gpt-x", on = on, "hi" })
    ]]
    )
    assert.same({ "the whol", 3, 1 }, { out, code, #s:requests() })
    assert.equal(1, select(2, err:gsub("\n", "")), err)
    has(err, "127.0.0.1:" .. s.port)
    has_not(err, "canary")
  end)
end)
