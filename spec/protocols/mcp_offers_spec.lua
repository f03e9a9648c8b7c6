-- Prompts, resources, templates of resources and completion of a script that is served over MCP:
-- lists, calls, questions, changes, and what wrong definitions and hostile clients get.
local ah = require "agenthost"
local client = require "support.mcp_client"

local templates = ah._module "agenthost.protocols.mcp.server.template"

local GIF = "GIF89a\1\0\1\0\x80\0\0\xff\0\0\0\0\0!\xf9\4\0\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
local FORMS = { elicitation = ah.object {} }

local function offered(fields)
  fields.agent = fields.agent or assert(ah.agent { model = "demo/echo", log = function() end })
  return fields
end

local function prompt(get, more)
  local fields = { name = "p", get = get }
  for key, value in pairs(more or {}) do
    fields[key] = value
  end
  return offered { prompts = { fields } }
end

local function resource(fields)
  fields.name = fields.name or "r"
  return offered { resources = { fields } }
end

local function failure(m)
  return m.error and m.error.code .. " " .. m.error.message
end

describe("prompts of a script", function()
  local review = { name = "review", title = "Review", description = "Reviews code.",
    arguments = { { name = "code", description = "The code", required = true },
      { name = "style" } },
    get = function(args)
      return ("Review this %s:\n%s"):format(args.style or "code", args.code)
    end }

  it("are listed, and declared", function()
    local c <close> = client.start(offered { prompts = { review } })
    assert.are.same({ tools = {}, prompts = {} }, c:ask("server/discover").result.capabilities)
    local result = c:ask("prompts/list").result
    assert.are.same({ { name = "review", title = "Review", description = "Reviews code.",
      arguments = { { name = "code", description = "The code", required = true },
        { name = "style" } } } }, result.prompts)
    assert.are.equal("complete", result.resultType)
    assert.are.equal("public", result.cacheScope)
  end)

  it("are no method of a script without them", function()
    local c <close> = client.start(offered {})
    for _, method in ipairs { "prompts/list", "prompts/get", "completion/complete" } do
      assert.are.equal(-32601, c:ask(method, { name = "p" }).error.code)
    end
  end)

  it("are made from the arguments", function()
    local c <close> = client.start(offered { prompts = { review } })
    local result = c:ask("prompts/get", { name = "review", arguments = { code = "x = 1" } }).result
    assert.are.equal("Reviews code.", result.description)
    assert.are.same({ { role = "user", content = { type = "text",
      text = "Review this code:\nx = 1" } } }, result.messages)
    local old <close> = client.start(offered { prompts = { review } }, false)
    assert.are.same({}, old:initialize("2025-11-25").capabilities.prompts)
    assert.are.same(result.messages, old:ask("prompts/get", { name = "review",
      arguments = { code = "x = 1" } }).result.messages)
  end)

  it("refuse arguments that they do not have", function()
    local c <close> = client.start(offered { prompts = { review } })
    local function get(name, arguments)
      return failure(c:ask("prompts/get", { name = name, arguments = arguments }))
    end
    assert.are.equal("-32602 Unknown prompt: none", get "none")
    assert.are.equal("-32602 Unknown prompt: (no text)", get(5))
    assert.are.equal("-32602 the argument 'code' is missing", get "review")
    assert.are.equal("-32602 the argument 'code' must be a text", get("review", { code = 5 }))
    assert.are.equal("-32602 Unknown argument: x", get("review", { code = "", x = "" }))
    assert.are.equal('-32602 "arguments" must be an object', get("review", ah.array { 1 }))
    assert.are.equal("-32602 Unknown argument: 1", get("review", { ["1"] = "" }))
  end)

  it("have texts, images and resources as messages", function()
    local image = assert(ah.image { data = GIF })
    local c <close> = client.start(prompt(function()
      return { "one", image, { role = "assistant", content = "two" },
        { content = { "three", { type = "resource", uri = "a:1", mime_type = "text/plain",
          text = "four" } } },
        { type = "resource", uri = "a:2", data = "\0\1" } }
    end))
    local messages = c:ask("prompts/get", { name = "p" }).result.messages
    assert.are.same({
      { role = "user", content = { type = "text", text = "one" } },
      { role = "user", content = { type = "image", mimeType = "image/gif",
        data = ah.base64.encode(GIF) } },
      { role = "assistant", content = { type = "text", text = "two" } },
      { role = "user", content = { type = "text", text = "three" } },
      { role = "user", content = { type = "resource", resource = { uri = "a:1",
        mimeType = "text/plain", text = "four" } } },
      { role = "user", content = { type = "resource", resource = { uri = "a:2",
        blob = "AAE=" } } },
    }, messages)
  end)

  it("that fail say so, without the reason", function()
    local made = { function() error "/secret/path" end, function() return 5 end,
      function() return { { role = "system", content = "x" } } end, function() return {} end,
      function() return { { type = "audio" } } end, function() return { content = {} } end,
      function() end }
    for i, get in ipairs(made) do
      local c <close> = client.start(prompt(get))
      assert.are.equal("-32603 'p' failed; the server's log has the reason",
        failure(c:ask("prompts/get", { name = "p" })), i)
    end
    local c <close> = client.start(prompt(function() return nil, "closed today" end))
    assert.are.equal("-32603 closed today", failure(c:ask("prompts/get", { name = "p" })))
  end)

  it("may ask, in both kinds of revisions", function()
    local served = prompt(function(_, ctx)
      return "It is " .. assert(ctx:ask { question = "Where?" })
    end)
    local c <close> = client.start(served, FORMS)
    local first = c:ask("prompts/get", { name = "p" }).result
    assert.are.equal("input_required", first.resultType)
    local answers = { ask_1 = { action = "accept", content = { response = "here" } } }
    local state = first.requestState
    assert.are.equal(-32602, c:ask("prompts/get", { name = "p", requestState = state .. "x",
      inputResponses = answers }).error.code)
    local second = c:ask("prompts/get", { name = "p", requestState = state,
      inputResponses = answers }).result
    assert.are.equal("It is here", second.messages[1].content.text)
    local old <close> = client.start(served, false)
    old:initialize("2025-11-25", FORMS)
    local id = old:request("prompts/get", { name = "p" })
    local asked = old:next()
    old:send { id = asked.id, result = answers.ask_1 }
    assert.are.equal("It is here", old:answer(id).result.messages[1].content.text)
  end)

  it("take the answer to a question with a name before it is asked", function()
    local served = prompt(function(_, ctx)
      return "It is " .. assert(ctx:ask { question = "Where?",
        schema = { type = "object", title = "place", properties = { at = { type = "string" } },
          required = { "at" } } }).at
    end)
    local c <close> = client.start(served, FORMS)
    local function get(answers)
      return c:ask("prompts/get", { name = "p", inputResponses = answers }).result
    end
    assert.is_truthy(get(nil).inputRequests.place)
    local here = { action = "accept", content = { at = "here" } }
    assert.are.equal("It is here", get { place = here, more = here }.messages[1].content.text)
    assert.is_truthy(get { other = here }.inputRequests.place)
    assert.is_truthy(get { place = 5 }.inputRequests.place)
    local again = get { place = { action = "accept", content = ah.object {} } }
    assert.is_truthy(again.inputRequests.place.params.message:find "^Not accepted")
  end)

  it("are cancelled with their request", function()
    local began, ended = ah.channel(1), ah.channel(1)
    local c <close> = client.start(prompt(function()
      local _ <close> = setmetatable({}, { __close = function() ended:close() end })
      began:close()
      ah.sleep(600)
    end))
    local id = c:request("prompts/get", { name = "p" })
    began:receive()
    c:send { method = "notifications/cancelled", params = { requestId = id } }
    ended:receive()
    c:ask "prompts/list"
    assert.are.same({}, c.before)
  end)

  it("report their progress, and have the resources of the agent", function()
    local c <close> = client.start { agent = assert(ah.agent { model = "demo/echo",
      resources = { filesystem = ah.filesystem { files = { ["a.txt"] = "the file" } } } }),
      prompts = { { name = "p", get = function(_, ctx)
        ctx:progress(0.5, "half")
        return (ctx.filesystem:read "a.txt")
      end } } }
    local result = c:ask("prompts/get", { name = "p",
      _meta = client.meta({}, { progressToken = 1 }) }).result
    assert.are.equal("the file", result.messages[1].content.text)
    assert.are.equal("half", c.before[1].params.message)
  end)
end)

describe("resources of a script", function()
  it("are listed behind the sections of the prompt", function()
    local c <close> = client.start { agent = assert(ah.agent { model = "demo/echo",
      ah.section { key = "style", template = "Be brief." } }), resources = {
        { uri = "a:1", name = "One", title = "T", description = "D", mime_type = "text/csv",
          read = function() return "1" end },
        { uri_template = "b:{x}", name = "Two", read = function() return "2" end } } }
    assert.are.same({}, c:ask("server/discover").result.capabilities.resources)
    local list = c:ask("resources/list").result.resources
    assert.are.equal("agenthost://prompt/style", list[2].uri)
    assert.are.same({ uri = "a:1", name = "One", title = "T", description = "D",
      mimeType = "text/csv" }, list[3])
    assert.are.equal(3, #list)
    assert.are.same({ { uriTemplate = "b:{x}", name = "Two" } },
      c:ask("resources/templates/list").result.resourceTemplates)
    assert.are.equal("Be brief.",
      c:ask("resources/read", { uri = "agenthost://prompt/style" }).result.contents[1].text)
  end)

  it("are texts, bytes, images, or several of them", function()
    local image = assert(ah.image { data = GIF })
    local cases = { { "text", { text = "text", mimeType = "text/plain" } },
      { "\xff\0", { blob = "/wA=", mimeType = "application/octet-stream" } },
      { "a\0", { blob = "YQA=", mimeType = "application/octet-stream" } },
      { { data = "abc", mime_type = "image/x" }, { blob = "YWJj", mimeType = "image/x" } },
      { { text = "", uri = "a:2" }, { text = "", mimeType = "text/plain", uri = "a:2" } },
      { image, { blob = ah.base64.encode(GIF), mimeType = "image/gif" } } }
    for _, case in ipairs(cases) do
      local c <close> = client.start(resource { uri = "a:1", read = function() return case[1] end })
      local result = c:ask("resources/read", { uri = "a:1" }).result
      case[2].uri = case[2].uri or "a:1"
      assert.are.same({ case[2] }, result.contents)
      assert.are.equal(0, result.ttlMs)
    end
    local c <close> = client.start(resource { uri = "a:1", mime_type = "text/csv",
      read = function(uri) return { uri, { uri = "a:2", text = "2" } } end })
    assert.are.same({ { uri = "a:1", mimeType = "text/csv", text = "a:1" },
      { uri = "a:2", mimeType = "text/csv", text = "2" } },
      c:ask("resources/read", { uri = "a:1" }).result.contents)
  end)

  it("that are not there, or fail, are errors", function()
    local made = { function() error "/secret/path" end, function() return 5 end,
      function() return {} end, function() return { { uri = "a:1" } } end,
      function() return { text = 5 } end, function() return { data = ("x"):rep(9 << 20) } end }
    for i, read in ipairs(made) do
      local c <close> = client.start(resource { uri = "a:1", read = read })
      assert.are.equal("-32603 'a:1' failed; the server's log has the reason",
        failure(c:ask("resources/read", { uri = "a:1" })), i)
    end
    local c <close> = client.start(resource { uri_template = "a:{x}", read = function(params)
      if params.x == "no" then return nil, "not today" end
    end })
    assert.are.equal("-32603 not today", failure(c:ask("resources/read", { uri = "a:no" })))
    local m = c:ask("resources/read", { uri = "a:none" })
    assert.are.equal("-32602 Resource not found", failure(m))
    assert.are.same({ uri = "a:none" }, m.error.data)
    for _, uri in ipairs { "b:1", "", 5, ("a"):rep(9000) } do
      assert.are.equal("-32602 Resource not found", failure(c:ask("resources/read", { uri = uri })))
    end
    local old <close> = client.start(resource { uri = "a:1", read = function() end }, false)
    old:initialize "2025-11-25"
    assert.are.equal("-32002 Resource not found", failure(old:ask("resources/read", { uri = "b" })))
  end)

  it("may ask", function()
    local c <close> = client.start(resource { uri = "a:1", read = function(_, ctx)
      return assert(ctx:ask { question = "What?" })
    end }, FORMS)
    local first = c:ask("resources/read", { uri = "a:1" }).result
    assert.are.equal("input_required", first.resultType)
    assert.is_nil(first.ttlMs)
    local second = c:ask("resources/read", { uri = "a:1", requestState = first.requestState,
      inputResponses = { ask_1 = { action = "accept", content = { response = "tea" } } } }).result
    assert.are.equal("tea", second.contents[1].text)
    local none <close> = client.start(resource { uri = "a:1", read = function(_, ctx)
      return assert(ctx:ask { question = "What?" })
    end })
    assert.are.equal(-32021, none:ask("resources/read", { uri = "a:1" }).error.code)
  end)
end)

describe("templates of addresses", function()
  local function match(template, uri)
    return templates.match(assert(templates.new(template)), uri)
  end

  it("match each variable up to the text behind it", function()
    assert.are.same({ id = "123" }, match("test://template/{id}/data", "test://template/123/data"))
    assert.are.same({ y = "2026", n = "tea" }, match("notes://{y}/{n}", "notes://2026/tea"))
    assert.are.same({ a = "x.tar" }, match("f:{a}.gz", "f:x.tar.gz"))
    assert.are.same({ a = "a b/ü" }, match("f:{a}", "f:a%20b%2F%C3%BC"))
    for template, uri in pairs { ["f:{a}/{b}"] = "f:1", ["f:{a}/b"] = "f:/b", ["f:{a}"] = "f:",
      ["g:{a}"] = "f:1", ["f:{a}c"] = "f:1/2c", ["f:{b}"] = "f:%FF", ["f:{c}"] = "f:a%00",
      ["f:{d}"] = "f:%2", ["f:{e}/x"] = "f:1/x/", ["f:{f}ab{g}"] = "f:1ab" } do
      assert.is_nil(match(template, uri), template)
    end
  end)

  it("take no long time for any address", function()
    local t = "f:" .. ("{a%d}a"):rep(16):gsub("%%d", "")
    local n = 0
    t = t:gsub("{a}", function() n = n + 1 return "{a" .. n .. "}" end)
    assert.is_nil(match(t .. "b", "f:" .. ("a"):rep(8000)))
  end)

  it("are refused where they are no level 1", function()
    for _, one in ipairs { "f:1", "f:{+a}", "f:{a*}", "f:{a}{b}", "f:{a}/{a}", "f:{a", "f:a}{b}",
      "f:{}", "f:{" .. ("a"):rep(65) .. "}", "f:{a}" .. ("x"):rep(2048),
      "f:" .. ("{a}/"):rep(17) } do
      local template, why = templates.new(one)
      assert.is_nil(template)
      assert.are.equal("string", type(why))
    end
  end)
end)

describe("completion", function()
  local function served()
    return offered { prompts = { { name = "p", get = function() return "x" end, arguments = {
        { name = "language", complete = function(text)
          local list = {}
          for i = 1, 150 do list[i] = text .. i end
          return list
        end },
        { name = "framework", complete = function(text, others)
          return { text .. " of " .. (others.language or "nothing") }
        end },
        { name = "bad", complete = function() return { 5 } end },
        { name = "worse", complete = function() error "/secret" end },
        { name = "plain" } } } },
      resources = { { name = "r", uri_template = "a:{x}/{y}", read = function() end,
        complete = { x = function(text) return { text .. "!" } end } } } }
  end

  local PROMPT = { type = "ref/prompt", name = "p" }

  it("is declared, and offers values", function()
    local c <close> = client.start(served())
    assert.are.same({}, c:ask("server/discover").result.capabilities.completions)
    local function complete(ref, name, value, known)
      return c:ask("completion/complete", { ref = ref, argument = { name = name, value = value },
        context = known and { arguments = known } or nil })
    end
    local found = complete(PROMPT, "language", "py").result.completion
    assert.are.equal(100, #found.values)
    assert.are.equal("py1", found.values[1])
    assert.are.same({ 150, true }, { found.total, found.hasMore })
    assert.are.same({ values = { "fla of python" }, total = 1, hasMore = false },
      complete(PROMPT, "framework", "fla", { language = "python", n = 5 }).result.completion)
    assert.are.same({}, complete(PROMPT, "plain", "").result.completion.values)
    local template = { type = "ref/resource", uri = "a:{x}/{y}" }
    assert.are.same({ "1!" }, complete(template, "x", "1").result.completion.values)
    assert.are.same({}, complete(template, "y", "1").result.completion.values)
  end)

  it("refuses what is not there", function()
    local c <close> = client.start(served())
    local function code(ref, argument)
      return c:ask("completion/complete", { ref = ref, argument = argument }).error.code
    end
    local some = { name = "plain", value = "" }
    assert.are.equal(-32602, code({ type = "ref/prompt", name = "none" }, some))
    assert.are.equal(-32602, code({ type = "ref/other", name = "p" }, some))
    assert.are.equal(-32602, code(5, some))
    assert.are.equal(-32602, code({ type = "ref/prompt", name = 1 }, some))
    assert.are.equal(-32602, code({ type = "ref/resource", uri = 1 }, { name = "x", value = "" }))
    assert.are.equal(-32602, code(PROMPT, { name = "none", value = "" }))
    assert.are.equal(-32602, code(PROMPT, { name = "plain", value = 5 }))
    assert.are.equal(-32602, code(PROMPT, { name = "plain", value = ("x"):rep(9000) }))
    assert.are.equal(-32603, code(PROMPT, { name = "bad", value = "" }))
    assert.are.equal(-32603, code(PROMPT, { name = "worse", value = "" }))
  end)
end)

describe("changes of resources", function()
  local UPDATED = "notifications/resources/updated"
  local at, began, ended

  -- A resource whose changes come from a channel.
  local function watched()
    at, began, ended = ah.channel(10), ah.channel(10), ah.channel(10)
    return offered { resources = { { uri = "a:1", name = "r", read = function() return "1" end,
      wait = function()
        local _ <close> = setmetatable({}, { __close = function() ended:send(true) end })
        began:send(true)
        return at:receive()
      end }, { uri = "a:2", name = "s", read = function() return "2" end } } }
  end

  -- Waits until `wait` has been called twice.
  local function wait_for_second()
    began:receive()
    began:receive()
    ended:receive()
  end

  it("come on a stream of those that listen", function()
    local c <close> = client.start(watched())
    assert.is_true(c:ask("server/discover").result.capabilities.resources.subscribe)
    local id = c:request("subscriptions/listen", { notifications = { toolsListChanged = true,
      resourceSubscriptions = ah.array { "a:1", "a:2", "none", 5 } } })
    local meta = { [client.META .. "subscriptionId"] = id }
    assert.are.same({ _meta = meta, notifications = { resourceSubscriptions = { "a:1" } } },
      c:next().params)
    at:send(true)
    local m = c:next()
    assert.are.equal(UPDATED, m.method)
    assert.are.same({ _meta = meta, uri = "a:1" }, m.params)
    wait_for_second()
    c:send { method = "notifications/cancelled", params = { requestId = id } }
    ended:receive()
    c:ask "resources/list"
    assert.are.same({}, c.before)
  end)

  it("come again to those that listen after `wait` has failed", function()
    local fails, log = true, {}
    local c <close> = client.start { agent = assert(ah.agent { model = "demo/echo" }), resources = {
      { uri = "a:1", name = "r", read = function() return "1" end, wait = function()
        if fails then error "/secret" end
        at:receive()
      end } } }
    at = ah.channel(10)
    local function listen()
      local id = c:request("subscriptions/listen", { notifications = {
        resourceSubscriptions = ah.array { "a:1" } } })
      log[#log + 1] = c:next().method
      return id
    end
    listen()
    ah.sleep(0.01)
    fails = false
    local id = listen()
    at:send(true)
    assert.are.equal(id, c:next().params._meta[client.META .. "subscriptionId"])
    assert.are.equal(2, #log)
  end)

  it("come to sessions that have subscribed", function()
    local c <close> = client.start(watched(), false)
    assert.is_true(c:initialize("2025-11-25").capabilities.resources.subscribe)
    for _, uri in ipairs { "a:1", "a:1", "a:2" } do
      assert.are.same({}, c:ask("resources/subscribe", { uri = uri }).result)
    end
    assert.are.equal(-32002, c:ask("resources/subscribe", { uri = "none" }).error.code)
    at:send(true)
    assert.are.same({ uri = "a:1" }, c:next().params)
    wait_for_second()
    assert.are.same({}, c:ask("resources/unsubscribe", { uri = "a:1" }).result)
    ended:receive()
    assert.are.same({}, c:ask("resources/unsubscribe", { uri = "none" }).result)
  end)
end)

describe("older clients", function()
  it("set a level of the log, which is checked", function()
    local c <close> = client.start(offered {}, false)
    c:initialize "2025-11-25"
    assert.are.same({}, c:ask("logging/setLevel", { level = "info" }).result)
    assert.are.equal(-32602, c:ask("logging/setLevel", { level = "loud" }).error.code)
    assert.are.equal(-32602, c:ask("logging/setLevel", { level = { 1 } }).error.code)
  end)

  it("choose several words in a form, where their revision has that", function()
    local pick = ah.tool { name = "pick", description = "Picks.", handler = function(_, ctx)
      return assert(ctx:ask { question = "Which?", schema = { type = "object", properties = {
        some = { type = "array", items = { type = "string", enum = { "a", "b" } } },
        one = { type = "string", oneOf = { { const = "x", title = "X" } } } } } })
    end }
    for revision, type_of in pairs { ["2025-11-25"] = "array", ["2025-06-18"] = "JSON" } do
      local c <close> = client.start(assert(ah.agent { model = "demo/echo", tools = { pick } }),
        false)
      c:initialize(revision, FORMS)
      local id = c:request("tools/call", { name = "pick" })
      local asked = c:next()
      local properties = asked.params.requestedSchema.properties
      assert.are.equal(type_of, properties.some and properties.some.type
        or properties.response.title)
      local value = { some = ah.array { "a" }, one = "x" }
      c:send { id = asked.id, result = { action = "accept", content = properties.some and value
        or { response = ah.json.encode(value) } } }
      assert.are.equal('{"one":"x","some":["a"]}', c:answer(id).result.content[1].text)
    end
  end)
end)

describe("wrong definitions are refused:", function()
  local get = function() end
  local cases = {
    [{ prompt = {} }] = "unknown field 'prompt'",
    [{ prompts = 5 }] = "field 'prompts' must be a list",
    [{ prompts = { 5 } }] = "prompts[1]: expected a table",
    [{ prompts = { { name = "p" } } }] = "prompts[1]: field 'get' is missing",
    [{ prompts = { { name = "", get = get } } }] = "prompts[1]: field 'name' must have 1 to 128",
    [{ prompts = { { name = "p", get = get }, { name = "p", get = get } } }] = "two prompts 'p'",
    [{ prompts = { { name = "p", get = get, arguments = { { nam = "a" } } } } }] =
      "prompts[1]: arguments[1]: unknown field 'nam'",
    [{ prompts = { { name = "p", get = get, arguments = { { name = "a" }, { name = "a" } } } } }] =
      "two arguments 'a'",
    [{ resources = { { name = "r", read = get } } }] =
      "resources[1]: one of the fields 'uri' and 'uri_template' must be given, found none",
    [{ resources = { { name = "r", read = get, uri = "a:1", uri_template = "a:{x}" } } }] = "both",
    [{ resources = { { name = "r", read = get, uri = "no address" } } }] = "must be an address",
    [{ resources = { { name = "r", read = get, uri_template = "a:{+x}" } } }] =
      "resources[1]: field 'uri_template': '{+x}' is no variable",
    [{ resources = { { name = "r", read = get, uri_template = "a:{x}",
      complete = { y = get } } } }] = "the template has no variable 'y'",
    [{ resources = { { name = "r", read = get, uri_template = "a:{x}",
      complete = { x = 5 } } } }] = "'x' must be a function, found number",
    [{ resources = { { name = "r", read = get, uri = "a:1" },
      { name = "r", read = get, uri = "a:1" } } }] = "two resources 'a:1'",
    [{ resources = { { name = "r", read = get, uri = "agenthost://prompt" } } }] =
      "begins as those of the prompt",
  }
  for fields, said in pairs(cases) do
    it(said, function()
      local c = client.start(offered(fields))
      assert.is_nil(c:next())
      c:close()
      assert.is_truthy(c.why:find(said, 1, true), c.why)
    end)
  end
end)
