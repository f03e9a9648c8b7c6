-- Tasks of servers of MCP (SEP-2663) that play scripts: a call that becomes a task is followed to
-- its end, answers what the task asks for, and is cancelled; servers that lie, and that are lost.
local ah = require "agenthost"
local far = require "support.mcp_http"
local mcp = require "support.mcp"

local META = "io.modelcontextprotocol/"
local EXTENSION = META .. "tasks"

-- A server whose tool `slow` becomes a task. `states` is Lua text: a list of what `tasks/get`
-- answers in turn, the last one again and again, each a table or function(message, api).
local function script(states, more)
  return ([[
    local looks = 0
    local states = { %s }
    local function state(fields)
      fields.taskId, fields.status = fields.taskId or "t-1", fields.status or "working"
      fields.createdAt, fields.lastUpdatedAt = "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"
      fields.ttlMs, fields.pollIntervalMs = 60000, fields.pollIntervalMs or 1
      return fields
    end
    local script = { capabilities = { tools = {}, extensions = {
      ["io.modelcontextprotocol/tasks"] = {} } }, tools = { tool "slow" }, on = {} }
    script.call = { slow = function()
      return state { resultType = "task" }
    end }
    script.on["tasks/get"] = function(message, api)
      looks = looks + 1
      local next = states[math.min(looks, #states)]
      if type(next) == "function" then
        next = next(message, api)
      end
      if next then
        api.reply(message, state(next))
      end
    end
    script.on["tasks/update"] = function(message, api) api.reply(message, {}) end
    script.on["tasks/cancel"] = function(message, api) api.reply(message, {}) end
    %s
    return script]]):format(states, more or "")
end

local DONE = [[{ status = "completed", result = { content = {
  { type = "text", text = "done" } } } }]]

local function input(key, field)
  return ([[{ status = "input_required", inputRequests = { %s = { method = "elicitation/create",
    params = { message = "How many?", requestedSchema = { type = "object", properties = {
      %s = { type = "integer" } } } } } } }]]):format(key, field or "n")
end

-- Returns the results of a run that calls `slow`, and its reply.
local function calls(server, more, list)
  return mcp.calls(server, list or { { name = "slow" } }, more)
end

local count = mcp.count

describe("a task of an MCP server", function()
  after_each(mcp.clear)

  it("is followed to its result, and the server is told that it may make one", function()
    local server, log = mcp.server(script(
      [[{ statusMessage = "half" }, { statusMessage = "half" }, ]] .. DONE))
    local told = {}
    local results, reply = calls(server, { on = { tool_progress = function(e)
      told[#told + 1] = e.message
    end } })
    assert.are.same({ "done" }, results)
    assert.is_true(reply.messages[3].success)
    assert.are.same({ "half" }, told)
    assert.are.equal(3, count(log, "tasks/get"))
    assert.are.equal(0, count(log, "tasks/cancel"))
    for _, method in ipairs { "tools/call", "tasks/get" } do
      local params = mcp.last(log, method).params
      assert.is_table(params._meta[META .. "clientCapabilities"].extensions[EXTENSION])
    end
    assert.are.equal("t-1", mcp.last(log, "tasks/get").params.taskId)
  end)

  it("is not offered to a server with a handshake", function()
    local server, log = mcp.server [[return { era = "2025-11-25", tools = { tool "slow" },
      call = { slow = function() return { resultType = "task", taskId = "t", status = "working" }
      end } }]]
    assert.is_truthy(calls(server)[1])
    assert.is_nil(mcp.last(log, "initialize").params.capabilities.extensions)
  end)

  it("has a result that is checked as any other", function()
    local server = mcp.server(script([[{ status = "completed", result = {
      structuredContent = { m = 1 }, content = {} } }]], [[script.tools = { tool("slow", {
        outputSchema = { type = "object", required = { "n" } } }) }]]))
    local results, reply = calls(server)
    assert.is_false(reply.messages[3].success)
    assert.is_truthy(results[1]:find("n", 1, true))
  end)

  it("that has failed, or was cancelled by its server, is an error", function()
    local failed = mcp.server(script [[{ status = "failed", statusMessage = "later",
      error = { code = -32603, message = "API rate limit exceeded" } }]])
    assert.are.same({ "MCP server 'fake': API rate limit exceeded" }, (calls(failed)))
    local cancelled, log = mcp.server(script [[{ status = "cancelled", statusMessage = "by Ann" }]])
    assert.are.same({ "MCP server 'fake': it has cancelled the task: by Ann" },
      (calls(cancelled)))
    assert.are.equal(0, count(log, "tasks/cancel"))
  end)

  it("that has an error of its tool is an error of the tool", function()
    local server = mcp.server(script [[{ status = "completed", result = { isError = true,
      content = { { type = "text", text = "no such city" } } } }]])
    local results, reply = calls(server)
    assert.are.same({ "no such city" }, results)
    assert.is_false(reply.messages[3].success)
  end)

  it("that has ended before it is looked at has its result, too", function()
    local server = mcp.server(script(DONE, [[script.call.slow = function()
      return state { resultType = "task", status = "completed" } end]]))
    assert.are.same({ "done" }, (calls(server)))
  end)

  it("asks a person, once for each question", function()
    local server, log = mcp.server(script(input("seats") .. "," .. input("seats") .. ","
      .. input("rows") .. "," .. DONE))
    local asked = 0
    local results = calls(server, { asks = function(ask)
      asked = asked + 1
      assert.are.equal("The server 'fake' asks: How many?", ask.question)
      return { n = asked }
    end })
    assert.are.same({ "done" }, results)
    assert.are.equal(2, asked)
    local updates = {}
    for _, message in ipairs(log()) do
      if message.method == "tasks/update" then
        updates[#updates + 1] = message.params.inputResponses
      end
    end
    assert.are.same({ { seats = { action = "accept", content = { n = 1 } } },
      { rows = { action = "accept", content = { n = 2 } } } }, updates)
  end)

  it("is cancelled if nobody answers what it asks for", function()
    local server, log = mcp.server(script(input "seats"))
    local results = calls(server)
    assert.is_truthy(results[1]:find("How many", 1, true) or results[1]:find("ask", 1, true))
    server:close()
    assert.are.equal(1, count(log, "tasks/cancel"))
    assert.are.equal(0, count(log, "tasks/update"))
  end)

  it("begins after input that its call has needed", function()
    local server, log = mcp.server(script(DONE, [[script.call.slow = function(_, message)
      if not message.params.inputResponses then
        return { resultType = "input_required", inputRequests = { a = {
          method = "elicitation/create", params = { message = "m", requestedSchema = {
            type = "object" } } } } }
      end
      return state { resultType = "task" }
    end]]))
    assert.are.same({ "done" }, (calls(server, { asks = function() return ah.object {} end })))
    assert.are.equal(2, count(log, "tools/call"))
  end)

  it("is cancelled when the time of the call is over", function()
    local server, log = mcp.server(script "{}", { longest = 0.5 })
    local results = calls(server)
    assert.is_truthy(results[1]:find("has not ended within 0.5 seconds", 1, true), results[1])
    server:close()
    assert.are.equal(1, count(log, "tasks/cancel"))
    assert.are.equal("t-1", mcp.last(log, "tasks/cancel").params.taskId)
    assert.is_true(count(log, "tasks/get") <= 6)
  end)

  it("is cancelled with its call", function()
    local server, log = mcp.server(script "{}")
    assert(server:tools())
    local reply, err = ah.run { model = ah.scripted { { calls = { { name = "slow" } } }, "Done." },
      tools = { server }, timeout = 0.7, "Go." }
    assert.is_nil(reply)
    assert.are.equal("deadline_exceeded", err.code)
    server:close()
    assert.are.equal(1, count(log, "tasks/cancel"))
  end)
end)

describe("a server of MCP that lies about a task", function()
  after_each(mcp.clear)

  local LIES = {
    { "a state that is unknown", [[{ status = "dancing" }]], "unknown state: dancing" },
    { "no state", [[{ status = 7 }]], "unknown state" },
    { "another task", [[{ taskId = "t-2" }]], "without an id, or of another one" },
    { "no result", [[{ status = "completed" }]], "without a result" },
    { "a result that is another task", [[{ status = "completed", result = {
      resultType = "task", taskId = "t-3" } }]], "without a result" },
    { "a failure without an error", [[{ status = "failed", error = 7 }]], "(no text)" },
    { "what it was not offered", [[{ status = "input_required", inputRequests = {
      a = { method = "sampling/createMessage", params = {} } } }]], "not offered" },
    { "too many questions", [[(function()
      local list = {}
      for i = 1, 9 do list["q" .. i] = { method = "elicitation/create" } end
      return { status = "input_required", inputRequests = list }
    end)()]], "asks 9 questions at once" },
  }
  for _, case in ipairs(LIES) do
    it("is refused: " .. case[1], function()
      local server = mcp.server(script(case[2]))
      local results, reply = calls(server, { asks = function() return { n = 1 } end })
      assert.is_truthy(results[1]:find(case[3], 1, true), results[1])
      assert.is_false(reply.messages[3].success)
    end)
  end

  it("is refused a begin without an id", function()
    for _, id in ipairs { "7", "''", "('x'):rep(5000)" } do
      local server = mcp.server(script(DONE, ([[script.call.slow = function()
        return state { resultType = "task", taskId = %s } end]]):format(id)))
      local results = calls(server)
      assert.is_truthy(results[1]:find("without an id", 1, true), results[1])
    end
  end)

  it("is not followed where there is no call of a tool", function()
    local server = mcp.server(script(DONE, [[script.capabilities.resources = {}
      script.on["resources/read"] = function(message, api)
        api.reply(message, state { resultType = "task" }) end]]))
    local contents, err = server:read "a:1"
    assert.is_nil(contents)
    assert.is_truthy(err.message:find("unknown type: task", 1, true), err.message)
  end)

  it("asks for input without end, and is stopped", function()
    local server, log = mcp.server(script [[function()
      local key = "q" .. looks
      return { status = "input_required", inputRequests = { [key] = {
        method = "elicitation/create", params = { message = "m", requestedSchema = {
          type = "object" } } } } }
    end]])
    local results = calls(server, { asks = function() return ah.object {} end })
    assert.is_truthy(results[1]:find("asked for input 11 times", 1, true), results[1])
    assert.are.equal(10, count(log, "tasks/update"))
  end)
end)

describe("a task whose server ends", function()
  after_each(mcp.clear)

  local ENDS_ONCE = [[function(_, api)
    if api.starts == 1 then os.exit(1) end
    return ]] .. DONE .. " end"

  it("is lost: the call fails, and is not made again", function()
    local server, log = mcp.server(script(ENDS_ONCE))
    local results = calls(server)
    assert.is_truthy(results[1]:find("it has ended (exit code 1)", 1, true), results[1])
    assert.are.equal(1, count(log, "tools/call"))
    assert.are.equal(1, count(log, "tasks/get"))
  end)

  it("is asked for again with `retry`, under the same id", function()
    local server, log = mcp.server(script(ENDS_ONCE), { on_lost = "retry" })
    assert.are.same({ "done" }, (calls(server)))
    assert.are.equal(1, count(log, "tools/call"))
    assert.are.equal(2, count(log, "tasks/get"))
  end)

  it("is made again with `retry`, once, if the next process does not know it", function()
    local server, log = mcp.server(script([[function(message, api)
      if api.starts == 1 then os.exit(1) end
      if message.params.taskId == "t-1" then
        api.fail(message, -32602, "Task not found")
        return
      end
      return { taskId = "t-9", status = "completed", result = { content = {
        { type = "text", text = "made again" } } } }
    end]], [[local made = 0
      local first = script.call.slow
      script.begin = function(api) if api.starts == 2 then
        script.call.slow = function() return state { resultType = "task", taskId = "t-9" } end
      end end]]), { on_lost = "retry" })
    assert.are.same({ "made again" }, (calls(server)))
    assert.are.equal(2, count(log, "tools/call"))
  end)

  it("fails without another call if its server forgets it for no reason", function()
    local server, log = mcp.server(script [[function(message, api)
      api.fail(message, -32602, "Task has expired")
    end]], { on_lost = "retry" })
    assert.are.same({ "MCP server 'fake': Task has expired" }, (calls(server)))
    assert.are.equal(1, count(log, "tools/call"))
  end)
end)

describe("a task over HTTP", function()
  after_each(far.clear)

  local function server_with(look, more)
    local on = {
      ["tools/list"] = function()
        return { resultType = "complete", tools = ah.array { far.tool "slow" } }
      end,
      ["tools/call"] = function()
        return { resultType = "task", taskId = "t 1", status = "working", pollIntervalMs = 1 }
      end,
      ["tasks/get"] = look,
      ["tasks/cancel"] = function() return { resultType = "complete" } end,
    }
    return far.server(on, more)
  end
  local done = { resultType = "complete", taskId = "t 1", status = "completed",
    result = { content = ah.array { { type = "text", text = "done" } } } }

  it("is named in the headers of its requests", function()
    local server, seen = server_with(function() return done end)
    assert.are.same({ "done" }, (calls(server)))
    local look = seen[#seen]
    assert.are.equal("tasks/get", look.headers["mcp-method"][1])
    assert.are.equal("t 1", look.headers["mcp-name"][1])
  end)

  it("is cancelled with headers, too, when its time is over", function()
    local server, seen = server_with(function()
      return { resultType = "complete", taskId = "t 1", status = "working", pollIntervalMs = 1 }
    end, { longest = 0.4 })
    assert.is_truthy(calls(server)[1]:find("within 0.4 seconds", 1, true))
    local last = seen[#seen]
    assert.are.equal("tasks/cancel", last.headers["mcp-method"][1])
    assert.are.equal("t 1", last.headers["mcp-name"][1])
  end)

  it("is asked for again where the answer was lost, with `retry`", function()
    local n = 0
    local function look(_, _, response)
      n = n + 1
      if n == 1 then
        response:begin { headers = { ["Content-Type"] = "text/event-stream" } }
        return true
      end
      return done
    end
    local server, seen = server_with(look, { on_lost = "retry" })
    assert.are.same({ "done" }, (calls(server)))
    local made = 0
    for _, one in ipairs(seen) do
      made = made + (one.method == "tools/call" and 1 or 0)
    end
    assert.are.equal(1, made)
    assert.are.equal(2, n)
  end)
end)
