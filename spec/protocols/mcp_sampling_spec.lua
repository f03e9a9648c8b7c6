-- Offers of ah.mcp to servers where they are switched on: roots, and answers of a model of ours
-- (sampling), in both eras; and the trace context of calls. The servers play scripts.
local ah = require "agenthost"
local mcp = require "support.mcp"

local META = "io.modelcontextprotocol/"

-- Returns the result of a run that calls `t`, and its reply.
local function calls(server, more)
  local results, reply = mcp.calls(server, { { name = "t" } }, more)
  return results[1], reply
end

-- A server whose tool asks us for something, and answers with what it gets: Lua text of the method
-- and of the parameters; `said` is Lua text of the answer, from `result`.
local function modern(method, params, said)
  return ([[return { tools = { tool "t" }, call = { t = function(_, message)
    local given = message.params.inputResponses
    if not given then
      return { resultType = "input_required", inputRequests = { a = { method = %q,
        params = %s } } }
    end
    local result = given.a
    return %s
  end } }]]):format(method, params, said)
end

local function older(method, params, said)
  return ([[return { era = "2025-11-25", tools = { tool "t" }, call = { t = function(_, _, api)
    api.say { jsonrpc = "2.0", id = "q", method = %q, params = %s }
    local answer = api.read()
    local result = answer.result
    if not result then return answer.error.code .. " " .. answer.error.message end
    return %s
  end } }]]):format(method, params, said)
end

local ERAS = { modern = modern, older = older }

local function capabilities(log, era)
  if era == "older" then
    return mcp.last(log, "initialize").params.capabilities
  end
  return mcp.last(log, "tools/call").params._meta[META .. "clientCapabilities"]
end

for era, script in pairs(ERAS) do
  describe("roots, " .. era .. ":", function()
    after_each(mcp.clear)

    local ROOTS = script("roots/list", "{}",
      [[(function()
        local list = {}
        for i, root in ipairs(result.roots) do list[i] = root.uri .. " " .. root.name end
        return table.concat(list, "\n")
      end)()]])

    it("are the real paths of the folders that are there", function()
      local p = assert(io.popen "mktemp -d")
      local folder = p:read "l"
      p:close()
      assert(os.execute(("mkdir '%s/a b%%' && ln -s 'a b%%' %s/link"):format(folder, folder)))
      local server, log = mcp.server(ROOTS, { roots = { folder .. "/link", folder .. "/gone" } })
      local result = calls(server)
      os.execute("rm -rf " .. folder)
      assert.are.equal("file://" .. ah._real_path "/tmp" .. folder:match "^/tmp(.*)$"
        .. "/a%20b%25 a b%", result)
      assert.is_table(capabilities(log, era).roots)
      assert.is_nil(capabilities(log, era).sampling)
    end)

    it("are not offered without the field", function()
      local server, log = mcp.server(ROOTS)
      local result = calls(server)
      assert.is_truthy(result:find(era == "older" and "-32601" or "not offered", 1, true), result)
      assert.is_nil(capabilities(log, era).roots)
    end)
  end)

  describe("sampling, " .. era .. ":", function()
    after_each(mcp.clear)

    local PARAMS = [[{ systemPrompt = "Be brief.", maxTokens = 50, temperature = 0.5,
      modelPreferences = { hints = { { name = "small" } } }, messages = {
        { role = "user", content = { type = "text",
          text = "What is the capital of France?" } } } }]]
    local SAID = [[result.role .. ": " .. result.content.text .. " " .. result.model .. " "
      .. result.stopReason]]
    local SAMPLE = script("sampling/createMessage", PARAMS, SAID)

    it("a model of ours answers, once a person has agreed", function()
      local request
      local server, log = mcp.server(SAMPLE, { sampling = ah.scripted { function(asked)
        request = asked
        return "Paris."
      end } })
      local question
      local result = calls(server, { asks = function(ask)
        question = ask.question
        return true
      end })
      assert.are.equal("assistant: Paris. scripted/script endTurn", result)
      assert.are.equal("The server 'fake' wants an answer of a model, of at most 50 tokens. It "
        .. "asks:\n\nsystem: Be brief.\n\nuser: What is the capital of France?\n\nMay it?",
        question)
      assert.are.equal("Be brief.", request.system)
      assert.are.same({ 50, 0.5 }, { request.options.max_tokens, request.options.temperature })
      assert.are.same({}, request.tools)
      assert.is_table(capabilities(log, era).sampling)
    end)

    it("not without a person, and not against the person", function()
      local asked = 0
      local model = ah.scripted { function() asked = asked + 1 return "No." end }
      for _, asks in ipairs { false, function() return false end } do
        local server = mcp.server(SAMPLE, { sampling = model })
        local result = calls(server, { asks = asks or nil })
        assert.is_truthy(result:find("was not approved", 1, true), result)
        if era == "older" then
          assert.is_truthy(result:find("^%-1 "), result)
        end
      end
      assert.are.equal(0, asked)
    end)

    it("without an ask where the program allows it", function()
      local server = mcp.server(SAMPLE, { sampling_policy = "allow", sampling = function(request)
        assert.are.equal("fake", request.server)
        assert.are.same({ "small" }, request.hints)
        return request.messages[1].content .. " 50=" .. request.max_tokens
      end })
      assert.are.equal("assistant: What is the capital of France? 50=50 unknown endTurn",
        (calls(server)))
    end)

    it("within the budget of the run", function()
      local server = mcp.server(SAMPLE, { sampling_policy = "allow",
        sampling = ah.scripted { "Paris." } })
      local reply, err = ah.run { model = ah.scripted { { calls = { { name = "t" } } }, "Done." },
        tools = { server }, budget = { requests = 1 }, "Go." }
      assert.is_nil(reply)
      assert.are.equal("budget_exceeded", err.code)
    end)

    it("not if it is not switched on", function()
      local result = calls((mcp.server(SAMPLE)))
      assert.is_truthy(result:find(era == "older" and "-32601" or "not offered", 1, true), result)
    end)

    local REFUSED = {
      { "no messages", "{ maxTokens = 5 }", "0 messages" },
      { "too many messages", [[(function()
        local list = {}
        for i = 1, 201 do list[i] = { role = "user", content = { type = "text", text = "x" } } end
        return { maxTokens = 5, messages = list }
      end)()]], "201 messages" },
      { "no limit of tokens", [[{ messages = { { role = "user", content = { type = "text",
        text = "x" } } } }]], "maxTokens" },
      { "tools", [[{ maxTokens = 5, tools = {}, messages = { { role = "user",
        content = { type = "text", text = "x" } } } }]], "tools, which it was not offered" },
      { "calls of tools", [[{ maxTokens = 5, messages = { { role = "assistant", content = {
        { type = "tool_use", id = "1", name = "n", input = {} } } } } }]], "calls of tools" },
      { "another role", [[{ maxTokens = 5, messages = { { role = "system", content = {
        type = "text", text = "x" } } } }]], "without a role" },
      { "too much text", [[{ maxTokens = 5, messages = { { role = "user", content = {
        type = "text", text = ("x"):rep(1 << 20) } }, { role = "user", content = {
        type = "text", text = "x" } } } }]], "bytes of text" },
    }
    for _, case in ipairs(REFUSED) do
      it("refused: " .. case[1], function()
        local server = mcp.server(script("sampling/createMessage", case[2], SAID),
          { sampling_policy = "allow", sampling = function() return "never" end })
        local result = calls(server)
        assert.is_truthy(result:find(case[3], 1, true), result)
      end)
    end
  end)
end

describe("sampling", function()
  after_each(mcp.clear)

  it("has at most 32768 tokens, and 10 answers a call", function()
    local server = mcp.server([[return { era = "2025-11-25", tools = { tool "t" }, call = {
      t = function(_, _, api)
        local n = 0
        while true do
          api.say { jsonrpc = "2.0", id = n, method = "sampling/createMessage", params = {
            maxTokens = 1000000, messages = { { role = "user", content = { type = "text",
              text = "x" } } } } }
          local answer = api.read()
          if not answer.result then return n .. " " .. answer.error.message end
          n = n + 1
        end
      end } }]], { sampling_policy = "allow", sampling = function(request)
        assert.are.equal(32768, request.max_tokens)
        return "y"
      end })
    assert.are.equal("10 MCP server 'fake': it asked for more than 10 answers of a model in one "
      .. "call", (calls(server)))
  end)

  it("is a usage error if it is no model", function()
    assert.has_error(function() ah.mcp { command = "x", sampling = 7 } end)
    assert.has_error(function() ah.mcp { command = "x", roots = { 7 } } end)
  end)
end)

describe("the trace context of a call", function()
  after_each(mcp.clear)

  local PARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
  local TOOL = [[{ era = %q, tools = { tool "t" }, call = { t = function() return "T" end } }]]

  for _, revision in ipairs { "modern", "2025-11-25" } do
    it("is in `_meta` of its requests: " .. revision, function()
      local server, log = mcp.server("return " .. TOOL:format(revision), { trace = function(ctx)
        assert.are.equal("t", ctx.tool_name)
        return { traceparent = ctx.resources:get_optional "traceparent", tracestate = "a=1",
          baggage = "user=ann" }
      end })
      assert.are.equal("T", (calls(server, { resources = { traceparent = PARENT } })))
      local meta = mcp.last(log, "tools/call").params._meta
      assert.are.same({ PARENT, "a=1", "user=ann" },
        { meta.traceparent, meta.tracestate, meta.baggage })
      local list = mcp.last(log, "tools/list").params
      assert.is_nil(list and list._meta.traceparent)
    end)
  end

  it("is left out where it is none", function()
    for _, parent in ipairs { "x", PARENT:upper(), "00-" .. ("0"):rep(32) .. "-00f067aa0ba902b7-01",
      "ff" .. PARENT:sub(3), PARENT .. "\n" } do
      local server, log = mcp.server("return " .. TOOL:format "modern", { trace = function()
        return { traceparent = parent, tracestate = ("x"):rep(513), baggage = "\1", other = "z" }
      end })
      assert.are.equal("T", (calls(server)))
      local meta = mcp.last(log, "tools/call").params._meta
      assert.is_nil(meta.traceparent or meta.tracestate or meta.baggage or meta.other)
    end
  end)
end)
