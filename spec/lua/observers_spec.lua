-- Functions that cannot wait, because they are called and not resumed: observers, subscribers, log
-- functions, strategies, policies, feedback, renderers, switches, ids, snapshots, reducers,
-- finalizers. docs/reference/waiting.md, "What may wait".
local ah = require "agenthost"
local command = require "support.command"
local server = require "support.server"
local sound = require "support.sound"

local function quiet() end

local function tool(fields)
  fields = fields or {}
  fields.name = fields.name or "t"
  fields.description = "Does something."
  fields.handler = fields.handler or function() return "done" end
  return ah.tool(fields)
end

local function one_call(more)
  return ah.scripted { { text = "Let me see.", calls = { { name = "t" } } }, more or "The answer." }
end

-- Every way to wait. None may begin its work.
local begun = 0
local inner = ah.agent { model = ah.adapter { name = "spec/inner", answer = function(_, out)
  begun = begun + 1
  out:text "inner"
end } }
local registry = ah.registry { tool { handler = function() begun = begun + 1 end } }
local WAITS = {
  ["ah.sleep"] = function() ah.sleep(0.001) end,
  ["ah.http"] = function() ah.http { url = "http://127.0.0.1:1/" } end,
  ["ah.run"] = function() ah.run { model = one_call "inner", "go" } end,
  ["agent:run"] = function() inner:run "go" end,
  ["registry:execute"] = function() registry:execute("t", {}) end,
  ["a command"] = function() ah._command { argv = { "/bin/true" }, keep = 1, tail = 1 } end,
  ["a coroutine"] = function() coroutine.wrap(function() ah.sleep(0.001) end)() end,
  ["a coroutine in a coroutine"] = function()
    coroutine.wrap(function() coroutine.wrap(function() ah.sleep(0.001) end)() end)()
  end,
  ["a metamethod"] = function()
    return setmetatable({}, { __index = function() ah.sleep(0.001) end }).field
  end,
  ["a callback of sort"] = function()
    table.sort({ 1, 2, 3 }, function(a, b) ah.sleep(0.001) return a < b end)
  end,
  ["a loaded chunk"] = function() load("require('agenthost').sleep(0.001)", "=(load)")() end,
  ["a __close"] = function()
    local held <close> = setmetatable({}, { __close = function() ah.sleep(0.001) end })
    return held
  end,
}

-- Asserts that the error is the library's own.
local function check_told(message, who)
  assert.matches(who .. " cannot wait", message, 1, true)
  assert.matches(": ", message, 1, true)
end

local function run(fields)
  local warnings = {}
  local on = fields.on or {}
  if type(on) == "table" then
    local before = on.warning
    on.warning = function(e)
      warnings[#warnings + 1] = e.message
      if before then before(e) end
    end
  end
  fields.on = on
  fields.log = fields.log or quiet
  fields.model = fields.model or one_call()
  fields.tools = fields.tools or { tool() }
  fields[#fields + 1] = "go"
  local reply, err = ah.run(fields)
  sound.check((reply or err.reply):transcript())
  return reply, err, warnings
end

describe("an observer", function()
  for name, wait in pairs(WAITS) do
    it("cannot wait by " .. name .. ", and the run goes on", function()
      begun = 0
      local raised = 0
      local reply, _, warnings = run { on = {
        content = wait,
        tool_invoked = function()
          local ok, err = pcall(wait)
          raised = raised + (ok and 0 or 1)
          check_told(tostring(err), "an observer")
        end } }
      assert.equal("The answer.", reply.text)
      assert.equal(1, raised)
      assert.equal(0, begun)
      assert.is_true(#warnings >= 2)
      for _, words in ipairs(warnings) do
        assert.matches("^the observer of 'content' failed: .*an observer cannot wait: keep what it "
          .. "needs, and wait in a handler or after the run", words)
      end
    end)
  end

  it("begins nothing, nor changes what a run would", function()
    local p = ah.prompt { name = "p", ah.section { key = "k", template = "T ${x}.",
      params = { x = "string" } } }
    local other = ah.agent { model = "demo/echo", prompt = p, params = { x = "before" } }
    local asked = 0
    run { on = { done = function()
      pcall(other.run, other, "go", { params = { x = "after" } })
      pcall(ah.run, { model = "demo/echo", "go", prompt = ah.prompt { name = "q",
        ah.section { key = "k", template = "T.", enabled = function() asked = asked + 1 end } } })
    end } }
    assert.equal(0, asked)
    assert.equal("T before.", assert(other:run "go").messages[1].content)
  end)

  it("raises at the script's line", function()
    local line = debug.getinfo(1, "l").currentline + 3
    local message
    run { on = { done = function()
      message = select(2, pcall(function() ah.sleep(1) end)).message
    end } }
    assert.matches("observers_spec.lua:" .. line .. ": an observer cannot wait", message, 1, true)
  end)

  it("of all types cannot wait, in a function for all of them", function()
    local types, refused = {}, {}
    local reply = run { on = function(e)
      types[e.type] = true
      refused[e.type] = not pcall(ah.sleep, 0.001)
    end }
    assert.equal("The answer.", reply.text)
    for _, type in ipairs { "start", "request", "content", "tool_calls", "tool_started",
      "tool_invoked", "tool_loop_iteration", "usage", "done" } do
      assert.is_true(types[type], type)
      assert.is_true(refused[type], type)
    end
  end)

  it("called from a timer, or within another's wait, cannot wait either", function()
    local reply, _, warnings = run {
      model = ah.scripted { { text = "later", delay = 0.01, calls = { { name = "t" } } }, "ok" },
      tools = { tool { timeout = 0.02, handler = function() ah.sleep(5) end } },
      on = { tool_invoked = function() ah.sleep(0.01) end } }
    assert.equal("ok", reply.text)
    assert.equal(1, #warnings)
    local refused
    run { tools = { tool { handler = function(_, ctx)
      ctx:progress "half"
      ah.sleep(0.001)
      return "done"
    end } }, on = { tool_progress = function() refused = not pcall(ah.sleep, 0.001) end } }
    assert.is_true(refused)
  end)

  it("of a run that a handler waits for cannot wait, while the handler can", function()
    local refused
    local t = tool { handler = function()
      local r = assert(ah.run { model = ah.scripted { "inner" }, "go",
        on = { done = function() refused = not pcall(ah.sleep, 0.001) end } })
      ah.sleep(0.001)
      return r.text
    end }
    local reply = run { tools = { t } }
    assert.is_true(refused)
    assert.equal("inner", reply.messages[3].content)
  end)

  it("leaves the answer of a stream whole that comes in many pieces meanwhile", function()
    local lines, want = {}, {}
    for i = 1, 200 do
      want[i] = ("word%d "):format(i):rep(20)
      lines[i] = ('data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'):format(want[i])
    end
    lines[201] = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
      .. "data: [DONE]\n\n"
    local s <close> = server.start { responses = { { piece = 3000, gap = 1, chunked = true,
      headers = { ["Content-Type"] = "text/event-stream" }, body = table.concat(lines) } } }
    local seen, refused = {}, 0
    local reply = assert(ah.run { model = "openai/m", base_url = s.url, api_key = "k",
      stream = true, log = quiet, on = { content = function(e)
        seen[#seen + 1] = e.text
        refused = refused + (pcall(ah.sleep, 0.01) and 0 or 1)
        collectgarbage "step"
      end }, "go" })
    assert.equal(table.concat(want), reply.text)
    assert.equal(reply.text, table.concat(seen))
    assert.equal(#seen, refused)
  end)
end)

describe("what cannot wait says so and what to do instead:", function()
  local function refused_in(who, place)
    local message
    local function try()
      local ok, err = pcall(ah.sleep, 0.001)
      message = not ok and err.message or "it waited"
    end
    local reply, err = place(try)
    assert(reply, err)
    assert.is_string(message, who .. " was not called")
    check_told(message, who)
    return reply
  end

  local KINDS = {
    ["a log function"] = function(try)
      return run { log = try }
    end,
    ["a policy"] = function(try)
      return run { policies = { function() try() end } }
    end,
    ["a strategy"] = function(try)
      local function asked() try() end
      return run { strategies = { { before = asked, after = asked } } }
    end,
    ["feedback"] = function(try)
      return run { feedback = { { every = 1, text = function() try() end } } }
    end,
    ["a renderer"] = function(try)
      return run { tools = { tool { handler = function() return { a = 1 } end,
        render = function() try() return "a" end } } }
    end,
    ["`enabled` and `visibility`"] = function(try)
      return run { tools = {}, model = "demo/echo", prompt = ah.prompt { name = "p",
        ah.section { key = "k", template = "T.", enabled = function() try() return true end } } }
    end,
    ["the id of an entity"] = function(try)
      local Thing = ah.entity { name = "Thing", prefix = "thing",
        id = function() try() return "1" end }
      Thing:tool { name = "look", description = "Looks.", handler = function() end }
      return run { discover = true, tools = { tool { handler = function() return Thing {} end } } }
    end,
    ["snapshot and restore"] = function(try)
      local object = { snapshot = function() try() return 1 end, restore = function() end }
      return run { tools = { tool { handler = function(_, ctx) ctx:enlist(object) end } } }
    end,
    ["a subscriber"] = function(try)
      local session = ah.session {}
      session.dispatcher:subscribe("tool_invoked", function() try() end)
      return run { session = session }
    end,
    ["a reducer"] = function(try)
      local Item = ah.type { name = "Item", fields = { n = "integer" } }
      local session = ah.session { types = { Item } }
      session:reduce(Item, Item, function(view) try() return view end)
      session:dispatch(Item { n = 1 })
      return true
    end,
  }
  for who, place in pairs(KINDS) do
    it(who, function() refused_in(who, place) end)
  end

  it("a log function, whose failure is told to the log of the host once", function()
    local r = command.script([[local ah = require "agenthost"
      print(ah.run { model = "demo/echo", "hi", log = function() ah.sleep(1) end })]])
    assert.equal("hi\n", r.out)
    local _, times = r.err:gsub("`log` function of a run failed: a log function cannot wait", "")
    assert.equal(1, times)
    command.tidy()
  end)

  it("a subscriber outside of all runs", function()
    local session, message = ah.session {}, nil
    session.dispatcher:subscribe("note", function()
      message = select(2, pcall(ah.sleep, 0.001)).message
    end)
    session.dispatcher:publish { type = "note" }
    check_told(message, "a subscriber")
  end)

  it("a finalizer, wherever it comes", function()
    local messages = {}
    local function leave()
      setmetatable({}, { __gc = function()
        messages[#messages + 1] = select(2, pcall(ah.sleep, 0.001)).message
      end })
      collectgarbage()
    end
    leave()
    run { tools = { tool { handler = function() leave() return "done" end } } }
    assert.equal(2, #messages)
    for _, words in ipairs(messages) do
      assert.matches("a finalizer cannot wait", words, 1, true)
    end
  end)

  it("what failed of it is what any failure of it is", function()
    local reply, _, warnings = run { policies = { function() ah.sleep(1) end } }
    assert.matches("was not run: a policy failed$", reply.messages[3].content)
    assert.matches("a policy cannot wait: return \"ask\" and why", warnings[1])
    reply, _, warnings = run { strategies = { function() ah.sleep(1) end } }
    assert.equal("The answer.", reply.text)
    assert.matches("a strategy cannot wait", warnings[1], 1, true)
    local ok, agent, why = pcall(ah.agent, { model = "demo/echo", prompt = ah.prompt { name = "p",
      ah.section { key = "k", template = "T.", enabled = function() ah.sleep(1) end } } })
    why = ok and why or agent
    assert.is_true(why:is "prompt_render")
    assert.matches("cannot wait: find out before the run", why.message, 1, true)
  end)
end)

describe("what may wait", function()
  local function waits(place)
    local before = ah.now()
    assert(place(function() ah.sleep(0.01) end))
    assert.is_true(ah.now() - before >= 0.009)
  end

  it("waits: handlers, approvals, checks, adapters, resources", function()
    waits(function(wait) return run { tools = { tool { handler = wait } } } end)
    waits(function(wait)
      return run { policies = { function() return "ask", "why" end },
        approve = function() wait() return true end }
    end)
    waits(function(wait) return run { checks = { function() wait() end } } end)
    waits(function(wait)
      return run { model = ah.adapter { name = "spec/a", answer = function(_, out)
        wait()
        out:text "x"
      end } }
    end)
    waits(function(wait)
      return run { resources = { r = ah.resource { provide = function() wait() return {} end } },
        tools = { tool { handler = function(_, ctx) ctx.resources:get "r" end } } }
    end)
  end)
end)

describe("code of the script that is called in the midst of something", function()
  local p, act, results
  local function agent_with_switch()
    results = {}
    p = ah.prompt { name = "p", ah.section { key = "k", template = "T ${x}.",
      params = { x = "string" },
      enabled = function()
        if act then
          local now = act
          act = nil
          results[#results + 1] = { pcall(now) }
        end
        return true
      end } }
    return ah.agent { model = "demo/echo", prompt = p, params = { x = "a" } }
  end

  it("cannot use the agent whose prompt is being rendered, and renders again", function()
    local agent = agent_with_switch()
    local acts = {
      function() agent:close() end,
      function() return agent:run("x", { params = { x = ("y"):rep(1000) } }) end,
      function() agent:use "demo/tools" end,
      function() agent:add_tools(tool()) end,
      function() agent:send "more" end,
      function() return agent:fork() end,
    }
    for i, f in ipairs(acts) do
      act = f
      assert.equal("hi", assert(agent:run("hi", { params = { x = "v" .. i } })).text)
      assert.is_false(results[i][1])
      assert.matches("cannot use the agent whose prompt is being rendered",
        results[i][2].message, 1, true)
    end
    act = function() return p:render { x = "q" }.text end
    assert(agent:run "hi")
    assert.same({ true, "T q." }, results[#acts + 1])
    agent:close()
  end)

  it("may add tools while others are being injected", function()
    for count = 1, 140, 7 do
      local agent, told
      local function tools(prefix, k)
        local list = {}
        for i = 1, k do
          list[i] = tool { name = prefix .. i }
        end
        return list
      end
      agent = ah.agent { model = ah.scripted { { calls = { { name = "go" } } }, "ok" }, log = quiet,
        tools = { tool { name = "go" }, tool { name = "dup" } }, max_tools = 4000,
        strategies = { function()
          local list = tools("a", 20)
          table.insert(list, 1, ah.tool { name = "dup", description = "Another." })
          return list
        end },
        on = { warning = function()
          if not told then
            told = true
            agent:add_tools(tools("b", count))
          end
        end } }
      local reply = assert(agent:run "go")
      assert.equal("ok", reply.text)
      assert.equal(20 + count, #reply.injected_tools)
    end
  end)

  it("may give fields that nobody holds", function()
    local made = {}
    for i = 1, 20 do
      made[i] = ah.tool(setmetatable({}, { __index = function(_, key)
        collectgarbage()
        if key == "name" then
          return "tool_" .. i .. ("x"):rep(40)
        elseif key == "description" then
          return "Does " .. i .. ("y"):rep(100)
        end
      end }))
    end
    for i, t in ipairs(made) do
      assert.equal("tool_" .. i .. ("x"):rep(40), t.name)
    end
  end)
end)
