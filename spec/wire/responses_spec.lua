-- The adapter of OpenAI Responses: recorded traffic and our own cases, read whole and cut at every
-- byte; requests; tools that are added and removed in each mode; runs over HTTP on loopback.
local ah = require "agenthost"
local ahtest = require "ahtest"
local recorded = require "support.recorded_responses"
local recordings = require "support.recordings"
local server = require "support.server"
local sound = require "support.sound"

local KEY = "sk-canary-1234567890"
local NEW = "responses/gpt-5.6"

local wire = require "support.wire" {
  provider = "openai",
  model = NEW,
  base_url = "http://x",
  plain = recorded.read,
}

-- -- making responses ----------------------------------------------------------------------

local function events(list)
  local out = {}
  for i, e in ipairs(list) do
    e.sequence_number = i
    out[i] = ("event: %s\ndata: %s\n\n"):format(e.type, server.encode(e))
  end
  return table.concat(out)
end

local function response(items, more)
  local r = {
    id = "resp_1",
    object = "response",
    status = "completed",
    error = server.null,
    incomplete_details = server.null,
    output = server.array(items or {}),
    usage = {
      input_tokens = 100,
      input_tokens_details = { cached_tokens = 64, cache_write_tokens = 8 },
      output_tokens = 20,
      output_tokens_details = { reasoning_tokens = 16 },
    },
  }
  for k, v in pairs(more or {}) do
    r[k] = v
  end
  return r
end

local function text_item(text, phase)
  return { type = "message", id = "msg_1", role = "assistant", status = "completed", phase = phase,
    content = { { type = "output_text", text = text, annotations = server.array {} } } }
end

local function call_item(id, name, arguments, more)
  local item = { type = "function_call", id = "fc_" .. id, call_id = id, name = name,
    arguments = arguments or "{}", status = "completed" }
  for k, v in pairs(more or {}) do
    item[k] = v
  end
  return item
end

local function thought(n)
  return { type = "reasoning", id = "rs_" .. n, summary = server.array {},
    encrypted_content = "enc" .. n }
end

local ITEMS = {
  thought(1), text_item("Let me look.", "commentary"), call_item("c1", "count", '{"a": "é"}'),
  thought(2), call_item("c2", "count", "{}", { namespace = "space" }),
  text_item("Both.", "final_answer"),
}

-- Returns the stream of these items, with deltas of texts unless `mute`; `ends` is its last event.
local function streamed(items, ends, mute)
  local list = { { type = "response.created", response = response(nil,
    { status = "in_progress" }) } }
  for i, item in ipairs(items) do
    list[#list + 1] = { type = "response.output_item.added", output_index = i - 1,
      item = { type = item.type } }
    local part = item.type == "message" and item.content[1]
    if part and not mute then
      local kind = part.refusal and "response.refusal.delta" or "response.output_text.delta"
      for _, piece in utf8.codes(part.refusal or part.text) do
        list[#list + 1] = { type = kind, output_index = i - 1, delta = utf8.char(piece) }
      end
    end
    list[#list + 1] = { type = "response.output_item.done", output_index = i - 1, item = item }
  end
  list[#list + 1] = ends or { type = "response.completed", response = response(items) }
  return events(list)
end

local function refusal_item(text)
  return { type = "message", role = "assistant", content = { { type = "refusal",
    refusal = text } } }
end

local function incomplete(why, items)
  return { type = "response.incomplete", response = response(items,
    { status = "incomplete", incomplete_details = { reason = why } }) }
end

local QUOTA = { code = "insufficient_quota", message = "You exceeded your quota",
  type = "insufficient_quota" }

local CASES = {
  wire.stream(streamed(ITEMS)),
  wire.stream(streamed(ITEMS, nil, true)),
  wire.stream(streamed { refusal_item "I won't 😀" }),
  wire.stream(streamed({ text_item "cut sho" }, incomplete "max_output_tokens")),
  wire.stream(streamed({ call_item("a", "f", '{"x') }, incomplete "max_output_tokens")),
  wire.stream(streamed({ text_item "" }, incomplete "content_filter")),
  wire.stream(events { { type = "response.completed",
    response = response { text_item "only here" } } }),
  wire.stream(events { { type = "response.created", response = response() } }),
  wire.stream(events { { type = "error", error = QUOTA }, { type = "response.failed",
    response = response(nil, { status = "failed", error = QUOTA }) } }),
  wire.stream(events { { type = "error", code = "server_error", message = "at the top" } }),
  wire.stream(streamed({}, { type = "response.failed", response = response(nil,
    { status = "failed", error = { code = "rate_limit_exceeded", message = "slow down" } }) })),
  wire.stream(streamed { { type = "tool_search_call", execution = "server", call_id = server.null,
    arguments = {} }, { type = "web_search_call", id = "ws_1" } }),
  wire.whole(server.encode(response(ITEMS))),
  wire.whole(server.encode(response(nil, { status = "queued" }))),
  wire.whole(server.encode { error = { message = "no such model", code = "model_not_found" } },
    400),
  wire.whole(server.encode { error = { message = "blob", code = "invalid_encrypted_content" } },
    400),
  wire.whole(server.encode { error = { message = "slow", code = "rate_limit_exceeded" } }, 429),
  wire.whole("{}"),
}

describe("an answer of Responses", function()
  wire.it_reads(it, CASES)

  it("keeps reasoning that can be sent back, and drops what cannot", function()
    local bare = { type = "reasoning", id = "rs_9", summary = server.array {} }
    local entry = server.decode(wire.read(wire.stream(streamed { bare, thought(1) })).entry)
    assert.equal(1, #entry.content)
    assert.same({ "opaque", "enc1", NEW }, { entry.content[1].type,
      entry.content[1].data.encrypted_content, entry.content[1].origin.model })
  end)

  it("hides a key that comes back", function()
    local x = wire.stream(streamed { text_item("it is " .. KEY), thought(KEY), call_item("a",
      KEY) })
    for at = 1, #x.body - 1, 11 do
      assert.falsy(wire.outcome(wire.read(x, { key = KEY, cut = at })):find("canary", 1, true))
    end
  end)
end)

-- -- requests ------------------------------------------------------------------------------

local function settings(options)
  return server.encode { type = "settings", model = "openai/" .. NEW, options = options or {} }
end

local function user(text)
  return server.encode { type = "user", content = server.array { { type = "text", text = text } } }
end

local function added(...)
  local list = server.array {}
  for i, name in ipairs { ... } do
    list[i] = { name = name, description = name .. ".", parameters = { type = "object" } }
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

local function result(id, name, content, success)
  return server.encode { type = "tool_result", id = id, name = name, content = content,
    success = success ~= false }
end

local function lower(o, ...)
  return ahtest.wire_lower({ provider = "openai", model = o.model or NEW, base_url = o.base_url
    or "http://x", key = o.key, mode = o.mode, stream = o.stream }, ...)
end

local function body_of(o, ...)
  return server.decode(lower(o, { ... }).body)
end

describe("a request to Responses", function()
  it("is stateless and asks for reasoning in a form that can be sent back", function()
    local body = body_of({ stream = true }, settings(), '{"type":"prompt","text":"P"}', user "hi")
    assert.same({
      model = "gpt-5.6",
      include = { "reasoning.encrypted_content" },
      store = false,
      stream = true,
      instructions = "P",
      input = { { role = "user", content = "hi" } },
    }, body)
    assert.is_nil(body_of({ model = "responses/gpt-4o" }, settings(), user "hi").include)
  end)

  it("has the options under the names of the wire", function()
    local body = body_of({}, settings { max_tokens = 9, reasoning = "low", seed = 1, stop = "x",
      cache_key = "talk-7", temperature = 0.5, top_p = 1, tool_choice = { name = "f" } },
        added "f", user "hi")
    assert.same({ 9, { effort = "low" }, "talk-7", 0.5, 1, { type = "function", name = "f" } },
      { body.max_output_tokens, body.reasoning, body.prompt_cache_key, body.temperature, body.top_p,
        body.tool_choice })
    assert.same({ nil, nil }, { body.seed, body.stop })
    assert.same({ { type = "function", name = "f", description = "f.", strict = false,
      parameters = { type = "object" } } }, body.tools)
    assert.is_nil(body_of({}, settings { tool_choice = "auto" }, user "hi").tool_choice)
    assert.is_nil(body_of({}, settings(), user "hi").tools)
  end)

  it("says a conversation as items", function()
    local body = body_of({}, user "go", assistant("a", { call("c.1", "f", '{"x":1}'), call("c2",
      "g", "") }),
      result("c.1", "f", "one"), result("c2", "g", 'no "b"', false), '{"type":"note","text":"N"}')
    local id = body.input[3].call_id
    assert.truthy(id:find "^[%w_-]+$")
    assert.same({
      { role = "user", content = "go" },
      { role = "assistant", content = "a" },
      { type = "function_call", call_id = id, name = "f", arguments = '{"x":1}' },
      { type = "function_call", call_id = "c2", name = "g", arguments = "{}" },
      { type = "function_call_output", call_id = id, output = "one" },
      { type = "function_call_output", call_id = "c2", output = 'Error: no "b"' },
      { role = "developer", content = "N" },
    }, body.input)
  end)

  it("sends back what was kept, in its order, to where it came from, and to nobody else", function()
    local entry = wire.read(wire.stream(streamed(ITEMS))).entry
    local function items(o)
      local list = {}
      for _, item in ipairs(body_of(o, entry, result("c1", "count", "1"), result("c2", "count",
        "2")).input) do
        list[#list + 1] = table.concat({ item.type or item.role,
          item.id or item.content or item.call_id,
          item.phase or item.namespace }, " ")
      end
      return list
    end
    assert.same({ "reasoning rs_1", "assistant Let me look. commentary", "function_call c1",
      "reasoning rs_2", "function_call c2 space", "assistant Both. final_answer",
      "function_call_output c1", "function_call_output c2" }, items {})
    local other = { "assistant Let me look.", "assistant Both.", "function_call c1",
      "function_call c2",
      "function_call_output c1", "function_call_output c2" }
    assert.same(other, items { model = "responses/gpt-5.5" })
    assert.same(other, items { base_url = "http://y" })
  end)
end)

-- -- tools that come and go ----------------------------------------------------------------

local TALK = {
  { settings(), '{"type":"prompt","text":"P"}', added "f", user "go" },
  { assistant(nil, { call("a", "f") }), result("a", "f", "1"), added("g", "h") },
  { assistant(nil, { call("b", "g") }), result("b", "g", "2"), removed "g" },
  { assistant "done", added "g", user "more" },
}

local function talk(o)
  local r, reasons = { lower(o, table.unpack(TALK)) }, {}
  for i = 1, #r do
    reasons[i] = r[i].reason or "-"
    if i > 1 then
      wire.check_prefix(r[i - 1], r[i], ("%s %d"):format(o.mode, i))
    end
  end
  return table.concat(reasons, " "), server.decode(r[#r].body)
end

local function names(tools)
  local list = {}
  for i, t in ipairs(tools) do
    list[i] = t.name or t.type
  end
  return table.concat(list, " ")
end

-- Returns the type of each item, with the names of the tools that it adds.
local function brought(body)
  local list = {}
  for i, item in ipairs(body.input) do
    list[i] = (item.type or item.role) .. (item.tools and " " .. names(item.tools) or "")
  end
  return list
end

describe("tools that come and go at Responses", function()
  it("are items of their own, behind the results (additional_tools)", function()
    local reasons, body = talk {}
    assert.equal("- - - -", reasons)
    assert.equal("f", names(body.tools))
    assert.same({ "user", "function_call", "function_call_output", "additional_tools g h",
      "function_call", "function_call_output", "assistant", "additional_tools g", "user" },
        brought(body))
    assert.same({ type = "function", name = "g", description = "g.", strict = false,
      parameters = { type = "object" } }, body.input[4].tools[1])
    assert.equal("developer", body.input[4].role)
  end)

  it("are what a search of ours has found (search_pair)", function()
    local reasons, body = talk { mode = "search_pair" }
    assert.equal("- - - -", reasons)
    assert.equal("f tool_search", names(body.tools))
    assert.same({ "user", "function_call", "function_call_output", "tool_search_call",
      "tool_search_output g h", "function_call", "function_call_output", "assistant",
      "tool_search_call", "tool_search_output g", "user" }, brought(body))
    assert.equal(body.input[4].call_id, body.input[5].call_id)
    assert.not_equal(body.input[4].call_id, body.input[9].call_id)
    assert.is_true(body.input[5].tools[1].defer_loading)
  end)

  it("that the model itself looks for are none (search_pair)", function()
    local asked = wire.read(wire.stream(streamed { { type = "tool_search_call",
      execution = "client",
      call_id = "s1", arguments = { q = "x" } } }), { mode = "search_pair" }).entry
    assert.same({ { id = "s1", name = "search_tools", arguments = '{"q":"x"}' } },
      server.decode(asked).tool_calls)
    local body = body_of({ mode = "search_pair" }, user "go", asked,
      result("s1", "search_tools", "Tool 'search_tools' not found.", false))
    assert.same({ q = "x" }, body.input[2].arguments)
    assert.same({ type = "tool_search_output", call_id = "s1", execution = "client",
      status = "completed", tools = {} }, body.input[3])
  end)

  it("cost the cache where the model takes none (append)", function()
    local reasons, body = talk { model = "responses/gpt-4o" }
    assert.equal("- tools_changed - -", reasons)
    assert.equal("f g h", names(body.tools))
  end)

  it("go through one tool where that is asked for (dispatcher)", function()
    local reasons, body = talk { mode = "dispatcher" }
    assert.equal("- - - -", reasons)
    assert.equal("f call_tool", names(body.tools))
  end)
end)

-- -- tools that were removed ---------------------------------------------------------------

local OWN = "https://api.openai.com/v1"

-- Returns for each list of entries the tool_choice of its request ("auto f h" for a list of allowed
-- tools) and the reason if the request does not begin with the one before.
local function choices(o, ...)
  local list, reasons = {}, {}
  local r = { lower({ base_url = o.base_url or OWN, key = KEY, mode = o.mode, model = o.model },
    ...) }
  for i, request in ipairs(r) do
    local choice = server.decode(request.body).tool_choice
    if type(choice) == "table" and choice.type == "allowed_tools" then
      choice = choice.mode .. " " .. names(choice.tools)
    end
    list[i], reasons[i] = type(choice) == "table" and choice.name or choice or "-",
      request.reason or "-"
    if i > 1 and request.reason ~= "settings_changed" then
      wire.check_prefix(r[i - 1], request, ("request %d"):format(i))
    end
  end
  return table.concat(list, ", "), table.concat(reasons, " ")
end

describe("tools that were removed at OpenAI's own Responses", function()
  it("are hidden, those that came late in the list, and the cache is kept", function()
    assert.same({ "-, -, auto f h, -", "- - - -" }, { choices({}, table.unpack(TALK)) })
  end)

  it("are hidden among tools of the head, while others come and go", function()
    assert.same({ "-, auto g, auto g h, none, auto f", "- - - - -" }, { choices({},
      { settings(), added("f", "g"), user "go" },
      { assistant "a", removed "f", user "b" },
      { assistant "c", added "h", user "d" },
      { assistant "e", removed "g", removed "h", user "f" },
      { assistant "g", added "f", user "h" }) })
  end)

  it("stay hidden after a break of the cache where their items stay", function()
    local talk_on = {
      { settings(), added "f", user "go" },
      { assistant "a", added "g", user "b" },
      { assistant "c", removed "g", user "d" },
      { settings { temperature = 0 }, user "e" },
    }
    assert.same({ "-, -, auto f, auto f", "- - - settings_changed" },
      { choices({}, table.unpack(talk_on)) })
    assert.same({ "-, -, auto f, -", "- tools_changed - settings_changed" },
      { choices({ mode = "append" }, table.unpack(talk_on)) })
  end)

  it("are no longer of interest once another definition takes the name", function()
    local other = server.encode { type = "tools_added", tools = { { name = "f",
      description = "Other.", parameters = { type = "object" } } } }
    assert.same({ "-, auto g, -, auto g", "- - - -" }, { choices({},
      { settings(), added("f", "g"), user "go" }, { assistant "a", removed "f" },
      { other, user "b" }, { assistant "c", removed "f", user "d" }) })
  end)

  it("are left to what the options say", function()
    for choice, said in pairs { required = "required g", auto = "auto g", none = "none" } do
      assert.same({ choice .. ", " .. said, "- -" }, { choices({},
        { settings { tool_choice = choice }, added("f", "g"), user "go" },
        { assistant "a", removed "f", user "b" }) })
    end
    assert.equal("g, g", (choices({},
      { settings { tool_choice = { name = "g" } }, added("f", "g"), user "go" },
      { assistant "a", removed "f", user "b" })))
  end)

  it("are hidden behind the tool that calls the others (dispatcher)", function()
    assert.equal("-, auto g call_tool, auto g call_tool", (choices({ mode = "dispatcher" },
      { settings(), added("f", "g"), user "go" }, { assistant "a", removed "f", user "b" },
      { assistant "c", added "h", user "d" })))
  end)

  it("are not hidden beside a search, nor anywhere else", function()
    local talk_on = { { settings(), added("f", "g"), user "go" },
      { assistant "a", removed "f", user "b" } }
    assert.equal("-, -", (choices({ mode = "search_pair" }, table.unpack(talk_on))))
    assert.equal("-, -", (choices({ base_url = "http://x" }, table.unpack(talk_on))))
    assert.equal("-, auto g", (choices({ model = "responses/gpt-4o" }, table.unpack(talk_on))))
  end)
end)

-- -- runs ----------------------------------------------------------------------------------

local function counter(name)
  return ah.tool { name = name, description = "Counts.", params = { a = "string?" },
    handler = function()
      return "counted"
    end }
end

local function run(s, fields)
  fields.model, fields.base_url, fields.api_key = "openai/" .. NEW, s.url, KEY
  fields[1] = "go"
  return ah.run(fields)
end

describe("a run with Responses", function()
  for _, stream in ipairs { true, false } do
    it("loops, reasoning included" .. (stream and " (streamed)" or ""), function()
      local function answer(items)
        return stream and server.sse({}, { body = streamed(items) }) or server.json(response(items))
      end
      local s <close> = server.start { responses = { answer(ITEMS), answer { text_item "done" } } }
      local reply = assert(run(s, { stream = stream, tools = { counter "count" } }))
      sound.check(reply:transcript())
      assert.same({ "done", "end", 200, 128 },
        { reply.text, reply.stop, reply.usage.input, reply.usage.cached_read })
      local one, two = table.unpack(s:requests())
      assert.same({ "/responses", "Bearer " .. KEY }, { one.path, one.headers.authorization })
      assert.equal(one.body:sub(1, -3), two.body:sub(1, #one.body - 2))
      assert.same(ITEMS[1], two:json().input[2])
      assert.equal("counted", two:json().input[8].output)
    end)
  end

  it("goes on after it was saved, under the name it had", function()
    local s <close> = server.start { responses = {
      server.json(response { text_item "one" }), server.json(response { text_item "two" }) } }
    local path = os.tmpname()
    local agent = assert(ah.agent { model = "openai/" .. NEW, base_url = s.url, api_key = KEY })
    assert(agent:run "a")
    assert(agent:save(path))
    local later = assert(ah.load(path, { base_url = s.url, api_key = KEY }))
    assert.equal("two", assert(later:run("b")).text)
    os.remove(path)
    assert.equal("/responses", s:requests()[2].path)
    assert.equal("gpt-5.6", s:requests()[2]:json().model)
  end)

  it("is asked again after an error in a stream that may pass", function()
    local s <close> = server.start { responses = {
      server.sse({}, { body = events { { type = "error", code = "server_error",
        message = "oops" } } }),
      server.sse({}, { body = streamed { text_item "done" } }),
    } }
    assert.equal("done", assert(run(s, { stream = true })).text)
  end)
end)

-- -- recordings ----------------------------------------------------------------------------

describe("the recordings of openai-responses", function()
  local exchanges = recordings.exchanges "openai-responses"

  local function lowered()
    local form = { entries = recorded.entries, explained = recorded.explained }
    function form.options(request)
      return {
        provider = "openai",
        model = "responses/" .. request.body.model,
        base_url = request.url:gsub("/responses$", ""),
        key = KEY,
        mode = server.encode(request.body):find('"execution":"client"', 1,
          true) and "search_pair" or nil,
      }
    end
    local files = wire.by_file(exchanges, function(request)
      return request.url:find "/responses$" ~= nil
    end)
    for _, list in ipairs(files) do
      wire.check_requests(list, form)
    end
  end

  wire.check_recordings { it = it, pending = pending, exchanges = exchanges, lowered = lowered }
end)
