-- ah.mcp with servers that play scripts: both eras, the tools of a run, calls and their results,
-- changes of the list, questions, progress and cancellation.
local ah = require "agenthost"
local mcp = require "support.mcp"

local META = "io.modelcontextprotocol/"

local calls = mcp.calls

describe("ah.mcp", function()
  after_each(mcp.clear)

  it("speaks 2026-07-28 with a server that has it", function()
    local server, log = mcp.server [[return {
      tools = { tool "echo" },
      call = { echo = function(args) return "heard " .. args.text end } }]]
    local results = calls(server, { { name = "echo", arguments = { text = "hello" } } })
    assert.are.same({ "heard hello" }, results)
    assert.are.same({ "server/discover", "subscriptions/listen", "tools/list", "tools/call" },
      mcp.methods(log))
    for _, message in ipairs(log()) do
      if message.method then
        local meta = message.params._meta
        assert.are.equal("2026-07-28", meta[META .. "protocolVersion"])
        assert.are.equal("agenthost", meta[META .. "clientInfo"].name)
        assert.is_table(meta[META .. "clientCapabilities"].elicitation)
      end
    end
    assert.are.same({ name = "echo", arguments = { text = "hello" } },
      { name = mcp.last(log, "tools/call").params.name,
        arguments = mcp.last(log, "tools/call").params.arguments })
  end)

  for _, revision in ipairs { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" } do
    it("begins with a handshake with a server of " .. revision, function()
      local server, log = mcp.server(([[return { era = %q,
        tools = { tool "echo" },
        call = { echo = function(args) return "heard " .. args.text end } }]]):format(revision))
      assert.are.same({ "heard a" },
        (calls(server, { { name = "echo", arguments = { text = "a" } } })))
      assert.are.same({ "server/discover", "initialize", "notifications/initialized", "tools/list",
        "tools/call" }, mcp.methods(log))
      assert.are.equal("2025-11-25", mcp.last(log, "initialize").params.protocolVersion)
      assert.is_nil(mcp.last(log, "tools/list").params)
    end)
  end

  it("starts a server at its first need, and once", function()
    local server, log = mcp.server [[return { tools = { tool "a" },
      call = { a = function() return "A" end } }]]
    assert.has_error(log)
    local agent <close> = assert(ah.agent { tools = { server }, model = ah.scripted {
      { calls = { { name = "a" } } }, "One.", "Two." } })
    assert(agent:run "Go.")
    assert(agent:run "Again.")
    calls(server, { { name = "a" } })
    local starts = 0
    for _, line in ipairs(log()) do
      starts = starts + (line.started and 1 or 0)
    end
    assert.are.equal(1, starts)
  end)

  it("gives a server a small environment", function()
    local server, log = mcp.server([[return { tools = { tool "a" } }]], { env = { GIVEN = "1" } })
    assert(server:tools())
    local env = {}
    for _, name in ipairs(log()[1].env) do
      env[name] = true
    end
    assert.is_true(env.GIVEN and env.PATH)
    assert.is_nil(env.AGENTHOST_BUILD)
    assert.is_nil(env.OPENAI_API_KEY)
  end)

  it("makes tools of what the list says, and marks them as untrusted", function()
    local server = mcp.server [[return { tools = {
      tool("Get.Thing", { annotations = { readOnlyHint = true, destructiveHint = false,
        openWorldHint = "yes" }, description = "Gets.\nA *thing*: \u{e9}." }),
      tool("plain", { description = "" }) } }]]
    local tools = assert(server:tools())
    assert.are.equal(2, #tools)
    assert.are.equal("Get_Thing", tools[1].name)
    assert.are.equal("Gets. A *thing*: .", tools[1].brief)
    assert.are.equal("Gets.\nA *thing*: \u{e9}.", tools[1].description)
    assert.are.same({ read_only = true, destructive = false, untrusted = true },
      tools[1].annotations)
    assert.are.equal("The tool plain", tools[2].brief)
  end)

  it("leaves out tools that cannot be used", function()
    local server = mcp.server [[return { tools = {
      tool("ref", { inputSchema = { type = "object", properties = {
        a = { ["$ref"] = "https://example.com/x.json" } } } }),
      tool("text", { inputSchema = { type = "string" } }), { description = "no name" }, "x",
      tool "good", tool "good" } }]]
    local tools = assert(server:tools())
    assert.are.equal(1, #tools)
    assert.are.equal("good", tools[1].name)
  end)

  it("prefixes names where it is told to, and where they are taken", function()
    local script = [[return { tools = { tool "read", tool "list" },
      call = { read = function() return "theirs" end } }]]
    local one, two = mcp.server(script, { name = "one" }), mcp.server(script, { name = "two" })
    local gh = mcp.server(script, { prefix = "gh" })
    local own = ah.tool { name = "read", description = "Ours.",
      handler = function() return "ours" end }
    local seen
    local reply = assert(ah.run { tools = { one, own, two, gh }, "Go.", model = ah.scripted {
      function(request)
        seen = {}
        for i, tool in ipairs(request.tools) do
          seen[i] = tool.name
        end
        return { calls = { { name = "read" }, { name = "two_read" } } }
      end, "Done." } })
    assert.are.same({ "read", "list", "one_read", "two_list", "two_read", "gh_list", "gh_read" },
      seen)
    assert.are.equal("ours", reply.messages[3].content)
    assert.are.equal("theirs", reply.messages[4].content)
  end)

  it("reads a list of many pages", function()
    local server, log = mcp.server [[return { on = { ["tools/list"] = function(message, api)
      local page = tonumber(message.params.cursor or "1")
      api.reply(message, { tools = api.array { tool("t" .. page) }, ttlMs = 1000,
        cacheScope = "public", nextCursor = page < 5 and tostring(page + 1) or nil })
    end } }]]
    assert.are.equal(5, #assert(server:tools()))
    assert.are.equal("5", mcp.last(log, "tools/list").params.cursor)
  end)

  it("keeps a list as long as the server says", function()
    for ttl, times in pairs { [0] = 2, [60000] = 1 } do
      local server, log = mcp.server(([[return { ttl = %d, capabilities = { tools = {} },
        tools = { tool "a" } }]]):format(ttl))
      assert(server:tools())
      assert(server:tools())
      local n = 0
      for _, method in ipairs(mcp.methods(log)) do
        n = n + (method == "tools/list" and 1 or 0)
      end
      assert.are.equal(times, n)
    end
  end)

  describe("makes results of", function()
    local function result_of(content, more)
      local server = mcp.server(([[return { tools = { tool("t", %s) },
        call = { t = function(_, _, api) return { %s } end } }]]):format(more or "nil", content))
      local result, reply
      result, reply = calls(server, { { name = "t" } })
      return result[1], reply
    end

    it("texts and links", function()
      assert.are.equal("a\nb\n[link to n: file:///x]", (result_of [[content = api.array {
        { type = "text", text = "a" }, { type = "text", text = "b" },
        { type = "resource_link", name = "n", uri = "file:///x" } }]]))
    end)

    it("images", function()
      local result = result_of [[content = api.array { { type = "text", text = "a dot" },
        { type = "image", mimeType = "image/gif",
          data = "R0lGODlhAQABAIAAAP8AAAAAACwAAAAAAQABAAACAkQBADs=" } }]]
      assert.are.equal("a dot", result[1].text)
      assert.are.equal("image/gif", result[2].mime)
    end)

    it("parts that cannot be shown", function()
      assert.are.equal("[an image (image/png) that cannot be shown]\n[audio (audio/wav) that "
        .. "cannot be played]\n[a part of an unknown type: dance]\n"
        .. "[a part of an unknown type: (no text)]",
        (result_of [[content = api.array { { type = "image", mimeType = "image/png", data = "%%" },
          { type = "audio", mimeType = "audio/wav", data = "" }, { type = "dance" }, 7 }]]))
    end)

    it("resources", function()
      assert.are.equal("[file:///a]\ntext of it\n[data (x/y), 4 bytes as base64, of file:///b]",
        (result_of [[content = api.array {
          { type = "resource", resource = { uri = "file:///a", text = "text of it" } },
          { type = "resource", resource = { uri = "file:///b", mimeType = "x/y",
            blob = "AAAA" } } }]]))
    end)

    it("nothing", function()
      assert.are.equal("OK", (result_of "content = api.array {}"))
    end)

    it("errors", function()
      local result, reply = result_of [[isError = true,
        content = api.array { { type = "text", text = "no such city" } }]]
      assert.are.equal("no such city", result)
      assert.is_false(reply.messages[3].success)
    end)

    it("values, of which the model reads the text", function()
      local value
      local server = mcp.server [[return {
        tools = { tool("t", { outputSchema = { type = "object",
          properties = { n = { type = "integer" } }, required = { "n" } } }) },
        call = { t = function(_, _, api) return { structuredContent = { n = 3 },
          content = api.array { { type = "text", text = "three" } } } end } }]]
      local results = calls(server, { { name = "t" } }, { policies = { { after = function(_, result)
        value = result.value
      end } } })
      assert.are.same({ "three" }, results)
      assert.are.same({ n = 3 }, value)
    end)

    it("values that do not fit their schema: failures", function()
      local schema = "{ outputSchema = { type = 'object', required = { 'n' } } }"
      local result, reply = result_of("structuredContent = { m = 1 }", schema)
      assert.is_false(reply.messages[3].success)
      assert.is_truthy(result:find("n", 1, true))
      result, reply = result_of("content = api.array { { type = 'text', text = 'x' } }", schema)
      assert.is_false(reply.messages[3].success, result)
    end)
  end)

  it("passes errors of the protocol to the model", function()
    local server = mcp.server [[return { tools = { tool "gone" } }]]
    assert.are.same({ "MCP server 'fake': Unknown tool: gone" },
      (calls(server, { { name = "gone" } })))
  end)

  it("sees the annotations in policies", function()
    local server = mcp.server [[return {
      tools = { tool("drop", { annotations = { destructiveHint = true } }) },
      call = { drop = function() return "dropped" end } }]]
    local results = calls(server, { { name = "drop" } },
      { policies = { ah.policies.deny { destructive = true } } })
    assert.is_truthy(results[1]:find("not run", 1, true), results[1])
  end)

  for _, era in ipairs { "modern", "2025-11-25" } do
    it("adds, replaces and removes tools of a list that changes in mid-run: " .. era, function()
      local server = mcp.server(([[
        local script = { era = %q, tools = { tool "grow", tool "old", tool "same" } }
        script.call = {
          grow = function(_, _, api)
            script.tools[2] = tool "new"
            script.tools[3] = tool("same", { description = "Is another." })
            api.changed()
            return "grown"
          end,
          new = function() return "new here" end,
        }
        return script]]):format(era), { on_drift = "tell" })
      local tools, breaks = {}, 0
      local function names(request)
        local list = {}
        for _, tool in ipairs(request.tools) do
          list[#list + 1] = tool.name
        end
        tools[#tools + 1] = table.concat(list, " ")
      end
      local reply = assert(ah.run { tools = { server }, "Go.",
        on = { cache_break = function() breaks = breaks + 1 end },
        model = ah.scripted {
          function(request) names(request) return { calls = { { name = "grow" } } } end,
          function(request)
            names(request)
            return { calls = { { name = "new" }, { name = "old" } } }
          end,
          "Done." } })
      assert.are.equal("grow old same", tools[1])
      assert.is_truthy(tools[2]:find "new")
      assert.are.equal("new here", reply.messages[5].content)
      assert.is_truthy(reply.messages[6].content:find("no longer available", 1, true))
      assert.are.same({ "new", "same" }, reply.injected_tools)
      assert.are.same({ "old" }, reply.removed_tools)
    end)
  end

  it("ignores changes of a subscription that it does not have", function()
    local server = mcp.server [[
      local script = { tools = { tool "grow" } }
      script.call = { grow = function(_, _, api)
        script.tools[2] = tool "new"
        api.notify("notifications/tools/list_changed", { _meta = {
          ["io.modelcontextprotocol/subscriptionId"] = 77 } })
        return "grown"
      end }
      return script]]
    local _, reply = calls(server, { { name = "grow" } })
    assert.are.same({}, reply.injected_tools)
  end)

  it("reports progress", function()
    local server = mcp.server [[return { tools = { tool "slow" }, call = {
      slow = function(_, message, api)
        local token = message.params._meta.progressToken
        api.notify("notifications/progress", { progressToken = token, progress = 1, total = 4,
          message = "first" })
        api.notify("notifications/progress", { progressToken = 999, progress = 2, total = 4 })
        api.notify("notifications/progress", { progressToken = token, progress = 0.5, total = 4 })
        return "done"
      end } }]]
    local seen = {}
    calls(server, { { name = "slow" } }, { on = { tool_progress = function(e)
      seen[#seen + 1] = { e.fraction, e.message }
    end } })
    assert.are.same({ { 0.25, "first" } }, seen)
  end)
end)

describe("conversations with ah.mcp", function()
  after_each(mcp.clear)

  local SCRIPT = [[
    local script = { tools = { tool "grow" }, call = { old = function() return "OLD" end } }
    script.call.grow = function(_, _, api)
      script.tools[2] = tool "fresh"
      api.changed()
      return "grown"
    end
    script.call.fresh = function() return "FRESH" end
    return script]]
  local function fields(server, turns)
    return { model = ah.scripted(turns), tools = { server } }
  end

  it("are opened, forked, saved and loaded with their tools", function()
    local server = mcp.server(SCRIPT)
    local fresh = { calls = { { name = "fresh" } } }
    local agent <close> = assert(ah.agent(fields(server,
      { { calls = { { name = "grow" } } }, "One.", fresh, "Two.", fresh, "Three." })))
    assert(agent:run "Go.")
    local fork <close> = assert(agent:fork())
    assert.are.equal("FRESH", assert(fork:run "Go on.").messages[7].content)
    local other <close> = assert(agent:open {})
    assert.are.equal("FRESH", assert(other:run "Go.").messages[3].content)
    local path = os.tmpname()
    assert(agent:save(path))
    local loaded <close> = assert(ah.load(path, fields(server, { fresh, "Four." })))
    os.remove(path)
    assert.are.equal("FRESH", assert(loaded:run "Go on.").messages[7].content)
  end)

  it("have a setup and strategies of their own beside it", function()
    local server = mcp.server(SCRIPT)
    local seen, made = {}, fields(server, { { calls = { { name = "grow" }, { name = "own" } } },
      "Done." })
    made.strategies = { function(m) seen[#seen + 1] = m.name end }
    made.setup = function(conversation)
      conversation:add_tools(ah.tool { name = "own", description = "Own.",
        handler = function() return "own" end })
    end
    made[1] = "Go."
    local reply = assert(ah.run(made))
    assert.are.same({ "grow", "own" }, seen)
    assert.are.equal("own", reply.messages[4].content)
    assert.are.equal(1, #made.tools)
    assert.are.equal(server, made.tools[1])
  end)
end)

describe("ah.mcp has", function()
  after_each(mcp.clear)

  local SCRIPT = [[return { capabilities = { resources = {}, prompts = {}, tools = {} },
    tools = { tool "read_resource" },
    on = {
      ["resources/list"] = function(m, api) api.reply(m, { ttlMs = 0, cacheScope = "public",
        resources = api.array { { uri = "a:1", name = "one", mimeType = "text/plain", size = 3 },
          { name = "no address" }, 7 } }) end,
      ["resources/templates/list"] = function(m, api) api.reply(m, { ttlMs = 0,
        cacheScope = "public", resourceTemplates = api.array { { uriTemplate = "a:{n}",
          name = "any", description = "Any of them." } } }) end,
      ["resources/read"] = function(m, api)
        if m.params.uri ~= "a:1" then
          api.fail(m, -32602, "Resource not found")
          return
        end
        api.reply(m, { ttlMs = 0, cacheScope = "private", contents = api.array {
          { uri = "a:1", mimeType = "text/plain", text = "abc" }, { uri = "a:1", blob = "AAEC" },
          { uri = "a:1", blob = "%%" } } })
      end,
      ["prompts/list"] = function(m, api) api.reply(m, { ttlMs = 0, cacheScope = "public",
        prompts = api.array { { name = "greet", description = "Greets.", arguments = api.array {
          { name = "who", required = true } } } } }) end,
      ["prompts/get"] = function(m, api) api.reply(m, { messages = api.array {
        { role = "user", content = { type = "text", text = "Greet " .. m.params.arguments.who } },
        { role = "assistant", content = { type = "text", text = "Hello" } } } }) end,
    } }]]

  it("resources", function()
    local server = mcp.server(SCRIPT)
    assert.are.same({ { uri = "a:1", name = "one", mime_type = "text/plain", size = 3 } },
      server:resources())
    assert.are.same({ { uri_template = "a:{n}", name = "any", description = "Any of them." } },
      server:templates())
    assert.are.same({ { uri = "a:1", mime_type = "text/plain", text = "abc" },
      { uri = "a:1", data = "\0\1\2" } }, server:read "a:1")
    local contents, err = server:read "a:2"
    assert.is_nil(contents)
    assert.is_truthy(err.message:find("Resource not found", 1, true))
  end)

  it("tools for resources", function()
    local server = mcp.server(SCRIPT, { resources = true })
    local results = calls(server, { { name = "list_resources" },
      { name = "fake_read_resource", arguments = { uri = "a:1" } } })
    assert.are.equal("- a:1: one\n- a:{n}: any (Any of them.)", results[1])
    assert.are.equal("abc\n[data (of an unknown type), 3 bytes]", results[2])
    assert.are.equal(1, #assert(mcp.server(SCRIPT):tools()))
  end)

  it("prompts", function()
    local server = mcp.server(SCRIPT)
    assert.are.same({ { name = "greet", description = "Greets.",
      arguments = { { name = "who", required = true } } } }, server:prompts())
    assert.are.same({ { role = "user", content = "Greet Ann" },
      { role = "assistant", content = "Hello" } }, server:prompt("greet", { who = "Ann" }))
  end)

  it("none of them, if the server has none", function()
    local server, log = mcp.server([[return { capabilities = {} }]], { resources = true })
    assert.are.same({}, server:resources())
    assert.are.same({}, server:prompts())
    assert.are.same({}, server:tools())
    assert.are.same({ "server/discover" }, mcp.methods(log))
  end)

  it("no person to ask outside of calls of tools", function()
    local server = mcp.server [[return { on = { ["resources/read"] = function(m, api)
      api.reply(m, { resultType = "input_required", requestState = "s" }) end } }]]
    local contents, err = server:read "a:1"
    assert.is_nil(contents)
    assert.is_truthy(err.message:find("input of a person", 1, true), err.message)
  end)
end)

describe("ah.mcp and people:", function()
  after_each(mcp.clear)

  local MODERN = [[return { tools = { tool "book" }, call = { book = function(args, message, api)
    local given = message.params.inputResponses
    if not given then
      return { resultType = "input_required", requestState = "state 1", inputRequests = {
        seats = { method = "elicitation/create", params = { mode = "form",
          message = "How many seats?", requestedSchema = { type = "object",
            properties = { n = { type = "integer", minimum = 1 } }, required = { "n" } } } } } }
    end
    return given.seats.action .. " " .. tostring(given.seats.content.n) .. " "
      .. message.params.requestState .. " " .. args.text
  end } }]]

  it("input that is required is an ask, and the call is made again with its state", function()
    local server, log = mcp.server(MODERN)
    local asked
    local results = calls(server, { { name = "book", arguments = { text = "row 1" } } },
      { asks = function(ask)
        asked = ask.question
        return { n = 2 }
      end })
    assert.are.same({ "accept 2 state 1 row 1" }, results)
    assert.are.equal("The server 'fake' asks: How many seats?", asked)
    local ids = {}
    for _, message in ipairs(log()) do
      if message.method == "tools/call" then
        ids[#ids + 1] = message.id
      end
    end
    assert.are.equal(2, #ids)
    assert.are_not.equal(ids[1], ids[2])
  end)

  it("without a person the call fails and is not made again", function()
    local server, log = mcp.server(MODERN)
    local results = calls(server, { { name = "book", arguments = { text = "x" } } })
    assert.are.equal(1, #results)
    assert.is_truthy(results[1]:find("How many seats", 1, true) or results[1]:find("ask", 1, true))
    local n = 0
    for _, method in ipairs(mcp.methods(log)) do
      n = n + (method == "tools/call" and 1 or 0)
    end
    assert.are.equal(1, n)
  end)

  it("a page to open is shown with its address", function()
    local server = mcp.server [[return { tools = { tool "pay" }, call = { pay = function(_, message)
      local given = message.params.inputResponses
      if not given then
        return { resultType = "input_required", inputRequests = { a = {
          method = "elicitation/create", params = { mode = "url", message = "Please pay.",
            url = "https://pay.example/1" } } } }
      end
      return given.a.action
    end } }]]
    local asked
    local results = calls(server, { { name = "pay" } }, { asks = function(ask)
      asked = ask.question
      return true
    end })
    assert.are.same({ "accept" }, results)
    assert.is_truthy(asked:find("https://pay.example/1", 1, true))
  end)

  local REFUSED = {
    { "a page that is no page", [[{ a = { method = "elicitation/create", params = { mode = "url",
      message = "m", url = "javascript:alert(1)" } } }]], "cannot be opened" },
    { "a way of asking that is unknown", [[{ a = { method = "elicitation/create",
      params = { mode = "dance", message = "m" } } }]], "not offered" },
    { "sampling", [[{ a = { method = "sampling/createMessage", params = {} } }]], "not offered" },
    { "no question", [[{ a = { method = "elicitation/create", params = {} } }]],
      "without a question" },
    { "a schema that is none", [[{ a = { method = "elicitation/create", params = { message = "m",
      requestedSchema = { type = "object", properties = 7 } } } }]], "cannot be used" },
    { "nothing", "{}", "asks 0 questions" },
  }
  for _, case in ipairs(REFUSED) do
    it("refused: " .. case[1], function()
      local server = mcp.server(([[return { tools = { tool "t" }, call = { t = function()
        return { resultType = "input_required", inputRequests = %s } end } }]]):format(case[2]))
      local results = calls(server, { { name = "t" } }, { asks = function() return { n = 1 } end })
      assert.is_truthy(results[1]:find(case[3], 1, true), results[1])
    end)
  end

  it("a server that asks without end is stopped", function()
    local server, log = mcp.server [[return { tools = { tool "t" }, call = { t = function()
      return { resultType = "input_required", inputRequests = { a = { method = "elicitation/create",
        params = { message = "m", requestedSchema = { type = "object" } } } } } end } }]]
    local results = calls(server, { { name = "t" } }, { asks = function() return {} end })
    assert.is_truthy(results[1]:find("10 times", 1, true), results[1])
    assert.is_true(#log() < 20)
  end)

  it("a question of an older server goes to the call that waits", function()
    local server = mcp.server [[return { era = "2025-11-25", tools = { tool "book" }, call = {
      book = function(_, _, api)
        api.say { jsonrpc = "2.0", id = "q1", method = "elicitation/create", params = {
          message = "How many?", requestedSchema = { type = "object",
            properties = { n = { type = "integer" } } } } }
        local answer = api.read()
        return answer.id .. " " .. answer.result.action .. " " .. answer.result.content.n
      end } }]]
    local results = calls(server, { { name = "book" } }, { asks = function() return { n = 4 } end })
    assert.are.same({ "q1 accept 4" }, results)
  end)

  it("an older server that pings is answered, and refused what it was not offered", function()
    local server = mcp.server [[return { era = "2025-06-18", tools = { tool "t" }, call = {
      t = function(_, _, api)
        api.say { jsonrpc = "2.0", id = 0, method = "ping" }
        local pong = api.read()
        api.say { jsonrpc = "2.0", id = "r", method = "roots/list" }
        return pong.id .. " " .. tostring(next(pong.result)) .. " " .. api.read().error.code
      end } }]]
    assert.are.same({ "0 nil -32601" }, (calls(server, { { name = "t" } })))
  end)
end)
