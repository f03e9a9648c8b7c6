-- Tools with `background = true`: the call is answered with a ticket, and its result follows as a
-- note. docs/reference/tool.md, "In the background"; docs/reference/agent.md, "Background results".
local ah = require "agenthost"
local mock = require "support.mock"
local server = require "support.server"
local sound = require "support.sound"

local function quiet() end

local TICKET = "Started; ticket %d. The result will follow as a note."

local function ticket(n)
  return TICKET:format(n)
end

-- A background tool that returns when `release(value)` is called with its argument n.
local function gate(fields)
  local channels = {}
  local function channel(n)
    channels[n] = channels[n] or ah.channel(1)
    return channels[n]
  end
  local tool = { name = "job", description = "A job.", params = { n = "integer" },
    background = true,
    handler = function(args, ctx)
      if fields and fields.begin then
        fields.begin(args, ctx)
      end
      local said = channel(args.n):receive()
      if fields and fields.finish then
        return fields.finish(said, args, ctx)
      end
      return said
    end }
  for k, v in pairs(fields or {}) do
    if k ~= "begin" and k ~= "finish" then
      tool[k] = v
    end
  end
  return ah.tool(tool), function(n, value) channel(n):send(value) end
end

local function job(n)
  return { name = "job", arguments = { n = n } }
end

local function agent(turns, tools, fields)
  local f = { model = ah.scripted(turns), tools = tools, log = quiet }
  for k, v in pairs(fields or {}) do
    f[k] = v
  end
  return ah.agent(f)
end

-- Waits until so many outstanding calls have ended.
local function ended(a, n)
  for _ = 1, 10000 do
    local done = 0
    for _, call in ipairs(a:background()) do
      done = done + (call.done and 1 or 0)
    end
    if done >= n then
      return
    end
    ah.sleep(0.001)
  end
  error "the calls do not end"
end

-- Texts of the messages by role.
local function told(reply)
  local list = {}
  for _, m in ipairs(reply.messages) do
    list[#list + 1] = m.role .. ": " .. tostring(m.content)
  end
  return list
end

local function checked(a)
  sound.check(a:transcript())
  return a
end

local function note(n, text)
  return ("user: Ticket %d (job) is done. Its result:\n\n%s"):format(n, text)
end

describe("a background tool of an agent", function()
  it("is answered at once, and agent:wait runs the model with its result", function()
    local tool, release = gate()
    local a = agent({ { calls = { job(1) } }, "Begun.", "It is 7." }, { tool })
    assert.same({ "user: go", "assistant: ", "tool: " .. ticket(1), "assistant: Begun." },
      told(assert(a:run "go")))
    ah.spawn(function() release(1, 7) end)
    local reply = assert(a:wait(60))
    assert.same({ "It is 7.", 1 }, { reply.text, reply.iterations })
    assert.same({ note(1, "7"), "assistant: It is 7." }, { table.unpack(told(reply), 5) })
    checked(a)
  end)

  it("comes with the next text where nothing waits", function()
    local tool, release = gate()
    local a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool })
    a:run "go"
    release(1, "done")
    ended(a, 1)
    assert.same({ { ticket = 1, name = "job", arguments = { n = 1 }, done = true,
      since = a:background()[1].since } }, a:background())
    local reply = assert(a:run "And now?")
    assert.same({ note(1, "done"), "user: And now?", "assistant: Seen." },
      { table.unpack(told(reply), 5) })
    assert.same({}, a:background())
    checked(a)
  end)

  it("comes at the next commit of a run at work", function()
    local tool, release = gate()
    local a
    local ping = ah.tool { name = "ping", description = "Ping.",
      handler = function()
        release(1, "early")
        ended(a, 1)
        return "pong"
      end }
    a = agent({ { calls = { job(1) } }, { calls = { { name = "ping" } } }, "Both." },
      { tool, ping })
    assert.same({ "tool: pong", note(1, "early"), "assistant: Both." },
      { table.unpack(told(assert(a:run "go")), 5) })
    checked(a)
  end)

  it("gives results in the order in which they ended", function()
    local tool, release = gate()
    local a = agent({ { calls = { job(1), job(2), job(3) } }, "Begun.", "All." }, { tool })
    a:run "go"
    for count, n in ipairs { 3, 1, 2 } do
      release(n, "r" .. n)
      ended(a, count)
    end
    assert.same({ note(3, "r3"), note(1, "r1"), note(2, "r2"), "assistant: All." },
      { table.unpack(told(assert(a:wait())), 7) })
    checked(a)
  end)

  it("fails in a note", function()
    local tool, release = gate { finish = function(how)
      if how == "raise" then
        error "no luck"
      end
      return nil, "not found"
    end }
    local a = agent({ { calls = { job(1), job(2) } }, "Begun.", "Sorry." }, { tool })
    a:run "go"
    release(1, "raise")
    ended(a, 1)
    release(2, "nil")
    ended(a, 2)
    local list = told(assert(a:wait()))
    assert.matches("^user: Ticket 1 %(job%) has failed:\n\nTool 'job' execution failed: .*no luck",
      list[6])
    assert.equal("user: Ticket 2 (job) has failed:\n\nnot found", list[7])
    checked(a)
  end)

  it("does not pass what does not fit", function()
    local tool, release = gate { result = { type = "integer" } }
    local a = agent({ { calls = { job(1), { name = "job", arguments = { n = "x" } } } }, "Begun.",
      "Sorry." }, { tool })
    local list = told(assert(a:run "go"))
    assert.equal("tool: " .. ticket(1), list[3])
    assert.matches("^tool: Tool validation failed", list[4])
    release(1, "a text")
    assert.matches("does not match its schema", told(assert(a:wait()))[6])
    assert.equal(0, #a:background())
  end)
end)

describe("agent:wait", function()
  it("says that there is nothing to wait for", function()
    local _, err = agent({ "x" }, {}):wait()
    assert.same({ "usage", "agent:wait: there is nothing to wait for" }, { err.code, err.message })
  end)

  it("ends when its time is over, and can be called again", function()
    local tool, release = gate()
    local a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool })
    a:run "go"
    for _, seconds in ipairs { 0, 0.001 } do
      local _, err = a:wait(seconds)
      assert.equal("deadline_exceeded", err.code)
    end
    release(1, 1)
    assert.equal("Seen.", assert(a:wait(60)).text)
  end)

  it("waits for the end of a run that another task has begun", function()
    local tool, release = gate()
    local slow = ah.tool { name = "slow", description = "Slow.",
      handler = function() ah.sleep(0.02) end }
    local a = agent({ { calls = { job(1) } }, "Begun.", { calls = { { name = "slow" } } }, "Slow.",
      "Seen." }, { tool, slow })
    a:run "go"
    local other = ah.spawn(function() return a:run "slowly" end)
    ah.sleep(0.001)
    local waiting = ah.spawn(function() return a:wait(60) end)
    ah.sleep(0.001)
    other:await()
    release(1, 1)
    assert.equal("Seen.", assert(waiting:await()).text)
    checked(a)
  end)

  it("refuses times that are none, and code of a run of the agent", function()
    local a = agent({ "x" }, {})
    for _, bad in ipairs { -1, 0 / 0, 1e10, "soon", {} } do
      assert.is_false(pcall(a.wait, a, bad), tostring(bad))
    end
    local inner
    local b
    b = agent({ { calls = { { name = "t" } } }, "x" }, { ah.tool { name = "t", description = "T.",
      handler = function() inner = { pcall(b.wait, b) } end } })
    b:run "go"
    assert.same({ false, "usage" }, { inner[1], inner[2].code })
  end)

  it("is woken in each of several tasks, of which one gets the reply", function()
    local tool, release = gate()
    local a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool })
    a:run "go"
    local tasks, got, failed = {}, 0, 0
    for i = 1, 3 do
      tasks[i] = ah.spawn(function() return a:wait(60) end)
    end
    ah.sleep(0.001)
    release(1, 1)
    for i = 1, 3 do
      local reply, err = tasks[i]:await()
      got, failed = got + (reply and 1 or 0), failed + (err and err.code == "usage" and 1 or 0)
    end
    assert.same({ 1, 2 }, { got, failed })
  end)

  it("reports a deadlock of code that waits for code", function()
    local tool = gate()
    local a = agent({ { calls = { job(1) } }, "Begun." }, { tool })
    a:run "go"
    local ok, err = pcall(a.wait, a)
    assert.is_false(ok)
    assert.matches("deadlock", tostring(err))
    a:close()
  end)

  it("ends when the agent is closed", function()
    local tool = gate()
    local a = agent({ { calls = { job(1) } }, "Begun." }, { tool })
    a:run "go"
    local t = ah.spawn(function() return a:wait(60) end)
    ah.sleep(0.001)
    a:close()
    local _, err = t:await()
    assert.same({ "usage", "agent:wait: the agent was closed" }, { err.code, err.message })
  end)

  it("can be cancelled with its task", function()
    local tool, release = gate()
    local a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool })
    a:run "go"
    local t = ah.spawn(function() return a:wait() end)
    ah.sleep(0.001)
    t:cancel()
    release(1, 1)
    assert.equal("Seen.", assert(a:wait(60)).text)
  end)
end)

describe("ah.run", function()
  it("waits for all its background calls, and goes on with their results", function()
    local tool = ah.tool { name = "job", description = "A job.", params = { n = "integer" },
      background = true, handler = function(args) ah.sleep(args.n / 1000) return args.n end }
    local reply = assert(ah.run { model = ah.scripted { { calls = { job(3), job(1) } }, "Begun.",
      "Done." }, tools = { tool }, "go" })
    assert.same({ "Done.", 3, 2 }, { reply.text, reply.iterations, reply.tool_calls })
    assert.same({ "assistant: Begun.", note(2, "1"), note(1, "3"), "assistant: Done." },
      { table.unpack(told(reply), 5) })
    sound.check(reply:transcript())
  end)

  it("ends with max_iterations, and stops what is at work", function()
    local stopped
    local tool = ah.tool { name = "job", description = "A job.", params = { n = "integer" },
      background = true, handler = function()
        local _ <close> = setmetatable({}, { __close = function() stopped = "closed" end })
        ah.sleep(60)
      end }
    local reply, err = ah.run { model = ah.scripted { { calls = { job(1) } } }, tools = { tool },
      log = quiet, max_iterations = 1, "go" }
    assert.same({ nil, "max_iterations_exceeded", "closed" }, { reply, err.code, stopped })
    local list = told(err.reply)
    assert.matches("^user: Ticket 1 %(job%) has failed:\n\nCancelled: the run ended", list[#list])
  end)

  it("gives its last answer without results where on_max asks for it", function()
    local tool = gate()
    local warned
    local reply = assert(ah.run { model = ah.scripted { { calls = { job(1) } }, "Last." },
      tools = { tool }, log = quiet, max_iterations = 1, on_max = "answer",
      on = { warning = function(e) warned = e.message end }, "go" })
    assert.equal("Last.", reply.text)
    assert.matches("background calls were at work", warned)
  end)

  it("ends with its deadline while it waits", function()
    local tool = ah.tool { name = "job", description = "A job.", params = { n = "integer" },
      background = true, handler = function() ah.sleep(60) end }
    local _, err = ah.run { model = ah.scripted { { calls = { job(1) } }, "Begun." },
      tools = { tool }, log = quiet, timeout = 0.05, "go" }
    assert.equal("deadline_exceeded", err.code)
    sound.check(err.reply:transcript())
  end)

  it("checks and reads only the answer that is the last", function()
    local tool, release = gate()
    local seen = {}
    ah.spawn(function() release(1, 1) end)
    local reply = assert(ah.run { model = ah.scripted { { calls = { job(1) } }, "Begun.",
      '{"n":1}' }, tools = { tool },
      output = { type = "object", properties = { n = { type = "integer" } } },
      checks = { function(m) seen[#seen + 1] = m.text end }, "go" })
    assert.same({ { n = 1 }, { '{"n":1}' } }, { reply.value, seen })
  end)

  it("may begin more calls with the results of others", function()
    local tool = ah.tool { name = "job", description = "A job.", params = { n = "integer" },
      background = true, handler = function(args) ah.sleep(0.001) return args.n end }
    local reply = assert(ah.run { model = ah.scripted { { calls = { job(1) } }, "One.",
      { calls = { job(2) } }, "Two.", "End." }, tools = { tool }, "go" })
    assert.same({ "End.", 2 }, { reply.text, reply.tool_calls })
  end)

  it("answers a message that comes while it waits", function()
    local tool, release = gate()
    local helper = agent({ { calls = { job(1) } }, "Begun.", "Patience.", "Done." }, { tool })
    local ask = ah.tool { name = "ask", description = "Ask.",
      handler = function() return helper:run "go" end }
    ah.spawn(function()
      ah.sleep(0.01)
      helper:send "Well?"
      ah.sleep(0.01)
      release(1, 1)
    end)
    local reply = assert(ah.run { model = ah.scripted { { calls = { { name = "ask" } } }, "Told." },
      tools = { ask }, "go" })
    assert.equal("Done.", reply.messages[3].content)
    local list = sound.check(helper:transcript())
    assert.same({ "user", "assistant", "note", "assistant" },
      { list[#list - 3].type, list[#list - 2].type, list[#list - 1].type, list[#list].type })
  end)

  it("takes a run in a handler back with its call", function()
    local fs = ah.filesystem { files = {} }
    local tool, release = gate { finish = function(said, args, ctx)
      ctx.filesystem:write(said, "x")
      return args.n
    end }
    local helper = agent({ { calls = { job(1) } }, "Begun.", "Written.", { calls = { job(2) } },
      "Begun.", "Written." }, { tool }, { resources = { filesystem = fs } })
    local ask = ah.tool { name = "ask", description = "Ask.", params = { fails = "boolean" },
      handler = function(args)
        local reply = assert(helper:run "go")
        return not args.fails and reply or nil, "failed"
      end }
    release(1, "first")
    release(2, "second")
    assert(ah.run { model = ah.scripted { { calls = { { name = "ask",
      arguments = { fails = true } } } }, { calls = { { name = "ask",
      arguments = { fails = false } } } }, "Told." }, tools = { ask }, "go" })
    assert.is_false(fs:exists "first")
    assert.is_true(fs:exists "second")
  end)

  it("stops calls that code of an adapter or a double has begun as any other", function()
    local tool = ah.tool { name = "job", description = "A job.", params = { n = "integer" },
      background = true, handler = function(args) ah.sleep(0.001) return args.n end }
    local n = 0
    local model = ah.adapter { name = "acme/one", answer = function(_, out)
      n = n + 1
      if n == 1 then
        out:text(out:invoke { name = "job", id = "c1", arguments = { n = 4 } }.content)
      else
        out:text "Done."
      end
    end }
    local reply = assert(ah.run { model = model, tools = { tool }, "go" })
    assert.same({ "tool: " .. ticket(1), "assistant: " .. ticket(1), note(1, "4"),
      "assistant: Done." }, { table.unpack(told(reply), 3) })
    reply = assert(ah.run { model = ah.scripted { { calls = { { name = "job",
      arguments = { n = 1 }, returns = "double" } } }, "Begun.", "Done." }, tools = { tool },
      "go" })
    assert.equal(note(1, "double"), told(reply)[5])
  end)

  it("in a handler is one part of the call around it", function()
    local tool = ah.tool { name = "job", description = "A job.", params = { n = "integer" },
      background = true, handler = function(args)
        ah.sleep(0.001)
        return args.n
      end }
    local helper = ah.agent { model = ah.scripted { { calls = { job(5) } }, "Begun.", "Five." },
      tools = { tool } }
    local ask = ah.tool { name = "ask", description = "Ask.",
      handler = function() return helper:run "go" end }
    local reply = assert(ah.run { model = ah.scripted { { calls = { { name = "ask" } } }, "Told." },
      tools = { ask }, "go" })
    assert.equal("Five.", reply.messages[3].content)
  end)
end)

describe("the changes of a background call", function()
  local function files()
    return ah.filesystem { files = {} }
  end

  it("are made when its result is taken, and seen by nobody before", function()
    local fs = files()
    local tool, release = gate { finish = function(said, _, ctx)
      ctx.filesystem:write("out.txt", said)
      ctx:note "A note of its own."
      return "written"
    end }
    local a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool },
      { resources = { filesystem = fs } })
    a:run "go"
    release(1, "text")
    ended(a, 1)
    assert.is_true(a:background()[1].done)
    assert.is_nil((fs:read "out.txt"))
    local reply = assert(a:wait())
    assert.equal("text", fs:read "out.txt")
    assert.same({ "system: A note of its own.", note(1, "written") },
      { table.unpack(told(reply), 5, 6) })
  end)

  it("are dropped if it fails, is cancelled, or is never taken", function()
    local fs = files()
    local function begun()
      local tool, release = gate {
        begin = function(_, ctx) ctx.filesystem:write("out.txt", "x") end,
        finish = function(said) return said ~= "fail" or nil, "failed" end }
      local a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool },
        { resources = { filesystem = fs } })
      a:run "go"
      return a, release
    end
    local a, release = begun()
    release(1, "fail")
    a:wait()
    assert.is_nil((fs:read "out.txt"))
    a = begun()
    assert.is_true(a:cancel_background(1))
    a:wait()
    assert.is_nil((fs:read "out.txt"))
    a, release = begun()
    release(1, "fine")
    ended(a, 1)
    a:close()
    assert.is_nil((fs:read "out.txt"))
  end)

  it("go through the reducers again where another call was committed meanwhile", function()
    local Add = ah.type { name = "Add", fields = { n = "integer" } }
    local Sum = ah.type { name = "Sum", fields = { n = "integer" } }
    local session = ah.session()
    session:register(Sum, { keep = "latest" })
    session:reduce(Sum, Add, function(view, event)
      local last = view:latest()
      return view:replace { Sum { n = (last and last.n or 0) + event.value.n } }
    end)
    local tool, release = gate {
      begin = function() session:dispatch(Add { n = 10 }) end,
      finish = function() return session[Sum]:latest().n end }
    local add = ah.tool { name = "add", description = "Adds.",
      handler = function() session:dispatch(Add { n = 1 }) end }
    local a = agent({ { calls = { job(1) } }, { calls = { { name = "add" } } }, "Begun.",
      "Seen." }, { tool, add }, { session = session })
    a:run "go"
    assert.equal(1, session[Sum]:latest().n)
    release(1, 1)
    local list = told(assert(a:wait(60)))
    assert.equal(note(1, "10"), list[#list - 1])
    assert.equal(11, session[Sum]:latest().n)
  end)

  it("fail where another call has changed the same file meanwhile", function()
    local fs = files()
    fs:write("f.txt", "old")
    local tool, release = gate {
      begin = function(_, ctx)
        ctx.filesystem:write("f.txt", ctx.filesystem:read "f.txt" .. ", background")
      end }
    local write = ah.tool { name = "write", description = "Write.",
      handler = function(_, ctx) ctx.filesystem:write("f.txt", "foreground") end }
    local a = agent({ { calls = { job(1) } }, { calls = { { name = "write" } } }, "Begun.",
      "Seen." }, { tool, write }, { resources = { filesystem = fs } })
    a:run "go"
    release(1, 1)
    local list = told(assert(a:wait()))
    assert.matches("^user: Ticket 1 %(job%) has failed", list[#list - 1])
    assert.equal("foreground", fs:read "f.txt")
  end)

  it("bring tools with the note", function()
    local extra = ah.tool { name = "extra", description = "Extra.",
      handler = function() return "used" end }
    local tool, release = gate { finish = function(_, _, ctx) ctx:add_tools(extra) end }
    local injected
    local a = agent({ { calls = { job(1) } }, "Begun.", { calls = { { name = "extra" } } },
      "Used." }, { tool }, { on = { tools_injected = function(e) injected = e.tool_names end } })
    a:run "go"
    release(1, 1)
    local reply = assert(a:wait())
    assert.same({ "Used.", { "extra" } }, { reply.text, injected })
    assert.equal("used", reply.messages[#reply.messages - 1].content)
    checked(a)
  end)
end)

describe("limits of background calls", function()
  it("refuse the seventeenth", function()
    local tool, release = gate()
    local calls = {}
    for i = 1, 17 do
      calls[i] = job(i)
    end
    local a = agent({ { calls = calls }, "Begun.", "Seen." }, { tool })
    local reply = assert(a:run "go")
    assert.equal(ticket(16), reply.messages[18].content)
    assert.equal("Tool 'job' was not run: 16 background calls are outstanding, and there can be "
      .. "no more: wait for their results", reply.messages[19].content)
    assert.equal(16, #a:background())
    for i = 1, 16 do
      release(i, i)
    end
    ended(a, 16)
    assert.equal("Seen.", assert(a:wait()).text)
    assert.equal(0, #a:background())
  end)

  it("are the tool's timeout from the start, and the budget of calls", function()
    local tool = ah.tool { name = "job", description = "A job.", params = { n = "integer" },
      background = true, timeout = 0.02, handler = function() ah.sleep(60) end }
    local a = agent({ { calls = { job(1), job(2) } }, "Begun.", "Late." }, { tool },
      { budget = { tool_calls = 1 } })
    local _, err = a:run "go"
    assert.equal("budget_exceeded", err.code)
    assert.equal(1, #a:background())
    ended(a, 1)
    a:close()
  end)

  it("hold for the code of a handler", function()
    local tool = ah.tool { name = "job", description = "A job.", params = { n = "integer" },
      background = true, timeout = 0.1, handler = function() while true do end end }
    local a = agent({ { calls = { job(1) } }, "Begun.", "Late." }, { tool })
    a:run "go"
    local list = told(assert(a:wait(60)))
    assert.matches("it did not finish within 0.1 seconds", list[#list - 1])
  end)
end)

describe("policies", function()
  it("look at the call before, and at the result when it comes", function()
    local tool, release = gate()
    local seen = {}
    local a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool }, { policies = { {
      before = function(call) seen[#seen + 1] = "before " .. call.name end,
      after = function(_, result)
        seen[#seen + 1] = "after " .. tostring(result.value)
        return "replace", "harmless"
      end } } })
    a:run "go"
    assert.same({ "before job" }, seen)
    release(1, "secret")
    local list = told(assert(a:wait()))
    assert.same({ "before job", "after secret" }, seen)
    assert.equal(note(1, "harmless"), list[#list - 1])
  end)

  it("deny a call before it has a ticket", function()
    local tool = gate()
    local a = agent({ { calls = { job(1) } }, "No." }, { tool },
      { policies = { function() return "deny", "not now" end } })
    assert.equal("Tool 'job' was not run: not now", assert(a:run "go").messages[3].content)
    assert.equal(0, #a:background())
  end)

  it("let a call go on after an approval", function()
    local tool, release = gate()
    local a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool },
      { policies = { function() return "ask", "why" end },
        approve = function() ah.sleep(0.001) return true, { n = 2 } end })
    a:run "go"
    assert.equal(2, a:background()[1].arguments.n)
    release(2, 1)
    assert.equal("Seen.", assert(a:wait()).text)
  end)
end)

describe("events of background calls", function()
  it("tell of start, progress and end, and tool_invoked once, when the result is taken", function()
    local list = {}
    local tool, release = gate { begin = function(_, ctx) ctx:progress(0.5) end }
    local a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool }, { on = function(e)
      if e.name == "job" then
        list[#list + 1] = { e.type, e.ticket, e.success }
      end
    end })
    a:run "go"
    assert.same({ { "tool_started" }, { "background_started", 1 }, { "tool_progress" } }, list)
    release(1, 1)
    ended(a, 1)
    assert.same({ "background_done", 1, true }, list[4])
    assert.is_nil(list[5])
    a:wait()
    assert.same({ "tool_invoked", 1, true }, list[5])
    assert.is_nil(list[6])
  end)

  it("end with tool_invoked when the agent is closed", function()
    local list = {}
    local tool, release = gate()
    local a = agent({ { calls = { job(1), job(2) } }, "Begun." }, { tool },
      { on = { tool_invoked = function(e) list[#list + 1] = { e.ticket, e.success } end } })
    a:run "go"
    release(1, 1)
    ended(a, 1)
    a:close()
    table.sort(list, function(x, y) return x[1] < y[1] end)
    assert.same({ { 1, false }, { 2, false } }, list)
  end)

  it("may be used to cancel a call at once", function()
    local a
    local tool = gate()
    a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool }, { on = function(e)
      if e.type == "background_started" then
        a:cancel_background(e.ticket)
      elseif e.type == "background_done" then
        assert(not a:cancel_background(e.ticket))
      end
    end })
    local list = told(assert(a:run "go"))
    assert.matches("^user: Ticket 1 %(job%) has failed:\n\nCancelled", list[4])
    checked(a)
  end)

  it("cannot be used to close the agent below its call", function()
    local a
    local raised = {}
    local tool, release = gate { begin = function(_, ctx) ctx:progress "x" end }
    a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool }, { on = function(e)
      if e.ticket or e.type == "tool_progress" then
        raised[e.type] = not pcall(a.close, a)
      end
    end })
    a:run "go"
    release(1, 1)
    assert.equal("Seen.", assert(a:wait()).text)
    assert.same({ background_started = true, tool_progress = true, background_done = true,
      tool_invoked = true }, raised)
  end)
end)

describe("agent:cancel_background", function()
  it("stops a call, whose note says so", function()
    local closed
    local tool = ah.tool { name = "job", description = "A job.", params = { n = "integer" },
      background = true, handler = function()
        local _ <close> = setmetatable({}, { __close = function() closed = true end })
        ah.sleep(60)
      end }
    local a = agent({ { calls = { job(1) } }, "Begun.", "Stopped." }, { tool })
    a:run "go"
    assert.is_true(a:cancel_background(1))
    assert.is_true(closed)
    local list = told(assert(a:wait()))
    assert.equal("user: Ticket 1 (job) has failed:\n\nCancelled: the script cancelled it before "
      .. "this call finished. Its outcome is unknown.", list[#list - 1])
  end)

  it("returns an error for a ticket that is not at work", function()
    local a = agent({ "x" }, {})
    for _, n in ipairs { 0, 1, -1, math.maxinteger } do
      local ok, err = a:cancel_background(n)
      assert.same({ nil, "usage" }, { ok, err.code })
    end
    assert.is_false(pcall(a.cancel_background, a, "x"))
  end)

  it("may be called by the call itself, and by a tool of the model", function()
    local a
    local tool = gate { begin = function() a:cancel_background(1) end }
    local cancel = ah.tool { name = "cancel", description = "Cancel.",
      params = { ticket = "integer" },
      handler = function(args) return a:cancel_background(args.ticket) end }
    a = agent({ { calls = { job(1) } }, "Begun.", "Seen.", { calls = { job(2) } },
      { calls = { { name = "cancel", arguments = { ticket = 2 } } } }, "End." },
      { tool, cancel })
    a:run "go"
    assert.equal("Seen.", assert(a:wait()).text)
    local reply = assert(a:run "again")
    assert.matches("Ticket 2 %(job%) has failed", reply.messages[#reply.messages - 1].content)
    checked(a)
  end)
end)

describe("a conversation with background calls", function()
  local path
  before_each(function() path = os.tmpname() end)
  after_each(function() os.remove(path) end)

  it("says after a load that the outcome is unknown, and goes on counting", function()
    local tool = gate()
    local a = agent({ { calls = { job(1), job(2) } }, "Begun." }, { tool })
    a:run "go"
    assert(a:save(path))
    local again, release = gate()
    local b = assert(ah.load(path, { tools = { again }, log = quiet,
      model = ah.scripted { { calls = { job(3) } }, "Begun.", "Three." } }))
    local list = told(assert(b:run "go on"))
    for i = 1, 2 do
      assert.equal(("user: Ticket %d (job): its outcome is unknown: the conversation was saved "
        .. "while the call was outstanding. It was not run again."):format(i), list[5 + i])
    end
    assert.same({ "user: go on", "assistant: ", "tool: " .. ticket(3) },
      { table.unpack(list, 8, 10) })
    release(3, 3)
    assert.equal("Three.", assert(b:wait()).text)
    assert(b:save(path))
    local c = assert(ah.load(path, { tools = { again }, log = quiet, model = ah.scripted { "x" } }))
    assert.equal(#told(assert(c:run "y")), #told(assert(b:fork():use(ah.scripted { "x" }):run "y")))
    checked(c)
    a:close()
  end)

  it("keeps the calls in the original of a fork", function()
    local tool, release = gate()
    local a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool })
    a:run "go"
    local f = a:fork()
    assert(f:use(ah.scripted { "Fork." }))
    assert.equal(0, #f:background())
    local list = told(assert(f:run "and you?"))
    assert.equal("user: Ticket 1 (job): it goes on in the conversation that this one was forked "
      .. "from, and its result will not come here.", list[5])
    release(1, 1)
    assert.equal("Seen.", assert(a:wait()).text)
    checked(f)
  end)

  it("goes on with another model, and without the tool", function()
    local tool, release = gate()
    local a = agent({ { calls = { job(1) } }, "Begun." }, { tool })
    a:run "go"
    assert(a:use(ah.scripted { "Other." }))
    a:remove_tools "job"
    release(1, "late")
    local reply = assert(a:wait())
    assert.equal("Other.", reply.text)
    assert.equal(note(1, "late"), told(reply)[5])
  end)

  it("goes on after agent:cancel, and after a failed run", function()
    local tool, release = gate()
    local a
    local stop = ah.tool { name = "stop", description = "Stop.",
      handler = function() a:cancel() ah.sleep(60) end }
    a = agent({ { calls = { job(1) } }, { calls = { { name = "stop" } } }, "Seen." },
      { tool, stop })
    local _, err = a:run "go"
    assert.equal("cancelled", err.code)
    release(1, "fine")
    assert.equal("Seen.", assert(a:wait()).text)
    checked(a)
  end)

  it("refuses tickets of a file that are none", function()
    local function load(member)
      local f <close> = assert(io.open(path, "w"))
      f:write('{"agenthost_transcript":1,"entries":[{"type":"note","text":"x","ticket":'
        .. member .. "}]}")
      f:close()
      return ah.load(path, { model = ah.scripted { "x" } })
    end
    for _, member in ipairs { "0", "-1", '"1"', "1.5", "1e300", "9007199254740992", "{}" } do
      local a, err = load(member)
      assert.is_nil(a, member)
      assert.equal("usage", err.code)
    end
    assert.truthy(load "9007199254740991")
  end)

  it("reads a file with thousands of open tickets", function()
    local entries = {}
    for i = 1, 3000 do
      entries[#entries + 1] = ('{"type":"assistant","content":[],"tool_calls":[{"id":"c%d",'
        .. '"name":"job","arguments":"{}"}]},{"type":"tool_result","id":"c%d","name":"job",'
        .. '"content":"x","success":true,"ticket":%d}'):format(i, i, i)
    end
    local f <close> = assert(io.open(path, "w"))
    f:write('{"agenthost_transcript":1,"entries":[', table.concat(entries, ","), "]}")
    f:close()
    local a = assert(ah.load(path, { model = ah.scripted { "x" }, log = quiet }))
    local n = select(2, a:transcript():gsub("its outcome is unknown", ""))
    assert.equal(16, n)
  end)
end)

describe("handlers in the background", function()
  it("have ctx with resources, session and asks", function()
    local opened, shut = 0, 0
    local tool, release = gate { finish = function(_, _, ctx)
      local yes = ctx:ask { question = "Sure?", schema = { type = "boolean" } }
      return { yes, ctx.resources:get "db", ctx.tool_name, ctx.session ~= nil }
    end }
    local db = ah.resource { provide = function() opened = opened + 1 return "DB" end,
      close = function() ah.sleep(0) shut = shut + 1 end }
    local a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool },
      { resources = { db = db } })
    a:on_ask(function(ask) ask:respond(true) end)
    a:run "go"
    release(1, 1)
    local list = told(assert(a:wait()))
    assert.equal(note(1, '[true,"DB","job",true]'), list[#list - 1])
    assert.same({ 1, 1 }, { opened, shut })
  end)

  it("may run agents, and start tasks", function()
    local inner = ah.agent { model = ah.scripted { "inner" } }
    local tool, release = gate { finish = function()
      local t = ah.spawn(function() ah.sleep(0.001) return "task" end)
      return assert(inner:run "x").text .. " " .. t:await()
    end }
    local a = agent({ { calls = { job(1) } }, "Begun.", "Seen." }, { tool })
    a:run "go"
    release(1, 1)
    local list = told(assert(a:wait()))
    assert.equal(note(1, "inner task"), list[#list - 1])
  end)

  it("may send to their agent, run it, and not wait for it", function()
    local a, waited
    local tool, release = gate { finish = function(said)
      waited = { pcall(a.wait, a, 60) }
      if said == "run" then
        return a:run "from the handler"
      end
      a:send "sent by the handler"
      return "sent"
    end }
    a = agent({ { calls = { job(1) } }, "Begun.", "Both seen.", { calls = { job(2) } }, "Begun.",
      "Answered.", "Seen." }, { tool })
    a:run "go"
    release(1, "send")
    local list = told(assert(a:wait(60)))
    assert.same({ false, "usage" }, { waited[1], waited[2].code })
    assert.same({ "user: sent by the handler", note(1, "sent"), "assistant: Both seen." },
      { table.unpack(list, 5) })
    a:run "again"
    release(2, "run")
    list = told(assert(a:wait(60)))
    assert.same({ "user: from the handler", "assistant: Answered.", note(2, "Answered."),
      "assistant: Seen." }, { table.unpack(list, #list - 3) })
    checked(a)
  end)

  it("leave a long result in a file", function()
    local fs = ah.filesystem { files = {} }
    local tool, release = gate { max_result = 1024 }
    local a = agent({ { calls = { { id = "c1", name = "job", arguments = { n = 1 } } } },
      "Begun.", "Seen." }, { tool }, { resources = { filesystem = fs } })
    a:run "go"
    release(1, ("x"):rep(5000))
    local list = told(assert(a:wait(60)))
    local path = list[#list - 1]:match "all of it is in the file '([^']+)'"
    assert.equal(("x"):rep(5000), fs:read(path))
  end)

  it("show the model images of results", function()
    local png = "\x89PNG\r\n\x1a\n" .. ("\0"):rep(20)
    local tool, release = gate { finish = function()
      return { "Look:", assert(ah.image { data = png, mime = "image/png" }) }
    end }
    local a = agent({ { calls = { job(1) } }, "Begun.", function(request)
      local last = request.entries[#request.entries]
      return last.type .. " " .. #last.content .. " " .. last.content[2].type
    end }, { tool })
    a:run "go"
    release(1, 1)
    local reply = assert(a:wait(60))
    assert.equal("user 2 image", reply.text)
    local message = reply.messages[#reply.messages - 1]
    assert.same({ "user", "image" }, { message.role, message.content[2].type })
    local path = os.tmpname()
    assert(a:save(path))
    assert(ah.load(path, { model = ah.scripted { "x" }, log = quiet }))
    os.remove(path)
  end)

  it("cannot close their agent in their first step", function()
    local a, ok
    local tool = gate { begin = function() ok = pcall(a.close, a) end }
    a = agent({ { calls = { job(1) } }, "Begun." }, { tool })
    a:run "go"
    assert.is_false(ok)
    a:close()
  end)

  it("may close their agent later, which ends them", function()
    local a
    local tool, release = gate { finish = function() a:close() return ah.sleep(60) end }
    a = agent({ { calls = { job(1) } }, "Begun." }, { tool })
    a:run "go"
    release(1, 1)
    for _ = 1, 10000 do
      if tostring(a) == "agent (closed)" then
        break
      end
      ah.sleep(0.001)
    end
    assert.equal("agent (closed)", tostring(a))
  end)

  it("are methods of entities, too", function()
    local Account = ah.entity { name = "Account", prefix = "account", id = "id" }
    Account:tool { name = "pay", description = "Pays.", params = { n = "integer" },
      background = true, handler = function(self, args)
        self.sum = self.sum + args.n
        ah.sleep(0.001)
        return self.sum
      end }
    local find = ah.tool { name = "find", description = "Find.",
      handler = function() return Account { id = "7", sum = 1 } end }
    local a = agent({ { calls = { { name = "find" } } },
      function(request)
        local name
        for _, t in ipairs(request.tools) do
          name = t.name:find "pay" and t.name or name
        end
        return { calls = { { name = name, arguments = { n = 4 } } } }
      end, "Begun.", "Paid." }, { find }, { discover = true })
    a:run "go"
    local list = told(assert(a:wait(60)))
    assert.matches("is done. Its result:\n\n5$", list[#list - 1])
  end)

  it("are waited for where code calls the tool", function()
    local tool = ah.tool { name = "job", description = "A job.", params = { n = "integer" },
      background = true, handler = function(args) ah.sleep(0.001) return args.n end }
    local registry = ah.registry { tool }
    assert.equal(3, registry:execute("job", { n = 3 }).value)
  end)

  it("are collected with their agent", function()
    local list = setmetatable({}, { __mode = "k" })
    local tool, release = gate()
    for i = 1, 5 do
      local a = agent({ { calls = { job(i) } }, "Begun." }, { tool })
      a:run "go"
      list[a] = true
      release(i, i)
      ended(a, 1)
    end
    for _ = 1, 4 do
      collectgarbage()
    end
    assert.is_nil(next(list))
  end)

  it("keep their agent while they are at work", function()
    local list = setmetatable({}, { __mode = "k" })
    local tool, release = gate()
    do
      local a = agent({ { calls = { job(1) } }, "Begun." }, { tool })
      a:run "go"
      list[a] = true
    end
    collectgarbage()
    collectgarbage()
    assert.truthy(next(list))
    release(1, 1)
  end)
end)

describe("the field", function()
  it("is false by default, and excludes return_direct", function()
    assert.is_false(ah.tool { name = "t", description = "T." }.background)
    assert.is_true(gate().background)
    local ok, err = pcall(ah.tool, { name = "t", description = "T.", background = true,
      return_direct = true })
    assert.same({ false, "prompt_validation" }, { ok, err.code })
    assert.is_false(pcall(ah.tool, { name = "t", description = "T.", background = 1 }))
  end)
end)

describe("on the wires", function()
  local MODELS = { "openai/gpt-4o", "openai/responses/gpt-5.6", "anthropic/claude-sonnet-5",
    "anthropic/claude-opus-4-8", "gemini/gemini-2.5-pro", "gemini/gemini-3-pro", "ollama/qwen3" }

  for _, model in ipairs(MODELS) do
    it("the note is a message of the user, for " .. model, function()
      if not mock.is_built() then
        return pending "the command was built without libmicrohttpd"
      end
      local m <close> = mock.start([[return { { calls = { { name = "job",
        arguments = { n = 1 } }, { name = "ping" } } }, "Begun.", "Seen.", "Again." }]])
      local tool, release = gate()
      local a
      local ping = ah.tool { name = "ping", description = "Ping.",
        handler = function() release(1, "first") ended(a, 1) return "pong" end }
      local path = model:find "^openai" and "/v1" or ""
      a = assert(ah.agent { model = model, base_url = m.url .. path, api_key = "k",
        tools = { tool, ping }, log = quiet })
      assert.equal("Begun.", assert(a:run "go").text)
      local list = m:log()
      local body = server.encode(list[#list].body)
      assert.matches("Ticket 1 %(job%) is done", body)
      assert.is_nil(body:find('"role":"system"', 1, true))
      checked(a)
    end)

    it("the note may be the last message, for " .. model, function()
      if not mock.is_built() then
        return pending "the command was built without libmicrohttpd"
      end
      local m <close> = mock.start([[return { { calls = { { name = "job",
        arguments = { n = 1 } } } }, "Begun.", "Seen.", "Again." }]])
      local tool, release = gate()
      local path = model:find "^openai" and "/v1" or ""
      local a = assert(ah.agent { model = model, base_url = m.url .. path, api_key = "k",
        tools = { tool }, log = quiet })
      assert.equal("Begun.", assert(a:run "go").text)
      release(1, "late")
      assert.equal("Seen.", assert(a:wait(60)).text)
      assert.equal("Again.", assert(a:run "more").text)
      checked(a)
    end)
  end
end)
