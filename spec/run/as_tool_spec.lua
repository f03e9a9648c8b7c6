-- Agents as tools: each call runs the agent in a conversation of its own, within the limits,
-- policies and budgets of the outer run.
local ah = require "agenthost"
local results = require "support.results"
local sound = require "support.sound"

local function call(name, arguments, id)
  return { calls = { { name = name, arguments = arguments, id = id } } }
end

local function calls(list)
  return { calls = list }
end

--- Returns { role, content } for each message of a request.
local function messages(request)
  local list = {}
  for i, e in ipairs(request.entries) do
    local text = type(e.content) == "string" and e.content or e.content[1] and e.content[1].text
    list[i] = { role = e.type, content = text or "" }
  end
  return list
end

--- Runs one call of the tool; returns the result, and the reply.
local function result_of(tool, arguments, more)
  local config = { model = ah.scripted { call(tool.name, arguments), "done" }, tools = { tool } }
  for k, v in pairs(more or {}) do
    config[k] = v
  end
  config[1] = "go"
  local reply, err = ah.run(config)
  local told = reply or err.reply
  sound.check(told:transcript())
  return results(told)[1], reply, err
end

local function echo(more)
  local def = { name = "echo", model = "demo/echo" }
  for k, v in pairs(more or {}) do
    def[k] = v
  end
  return ah.agent(def)
end

describe("agent:as_tool", function()
  it("gives a tool whose call runs the agent", function()
    local tool = echo():as_tool { description = "Says it again." }
    assert.equal("echo", tool.name)
    assert.equal("Says it again.", tool.description)
    assert.same({ "request" }, tool.params.required)
    local content, reply = result_of(tool, { request = "hello" })
    assert.equal("hello", content)
    assert.equal("done", reply.text)
  end)

  it("opens a conversation for each call", function()
    local seen = {}
    local agent = ah.agent { model = ah.scripted(function(request)
      seen[#seen + 1] = #messages(request)
      return "yes"
    end) }
    local tool = agent:as_tool { name = "t", description = "Asks." }
    assert(ah.run { tools = { tool }, model = ah.scripted {
      call("t", { request = "1" }), call("t", { request = "2" }), "done" }, "go" })
    assert.same({ 1, 1 }, seen)
    assert.equal(0, select(2, agent:transcript():gsub('"user"', "")))
  end)

  it("makes the text from the only string, else from all arguments as JSON", function()
    local agent = echo()
    local one = agent:as_tool { description = "One.", input = { topic = "string" } }
    assert.equal("moons", (result_of(one, { topic = "moons" })))
    local two = agent:as_tool { description = "Two.", input = { topic = "string", n = "integer" } }
    assert.equal('{"n":2,"topic":"moons"}', (result_of(two, { topic = "moons", n = 2 })))
    local number = agent:as_tool { description = "Number.", input = { n = "integer" } }
    assert.equal('{"n":2}', (result_of(number, { n = 2 })))
    local made = agent:as_tool { description = "Made.", input = { topic = "string", n = "integer" },
      text = function(args) return args.n .. " lines on " .. args.topic end }
    assert.equal("2 lines on moons", (result_of(made, { topic = "moons", n = 2 })))
  end)

  it("gives the arguments to the prompt", function()
    local function agent()
      return ah.agent { name = "poet", params = { topic = "nothing" },
        model = ah.scripted(function(request) return request.system end),
        ah.section { key = "task", title = "Task", template = "Write on ${topic}.",
          params = { topic = "string" } } }
    end
    local input = { topic = "string" }
    assert.matches("Write on nothing", (result_of(
      agent():as_tool { description = "A poem.", input = input }, { topic = "moons" })))
    assert.matches("Write on moons", (result_of(
      agent():as_tool { description = "A poem.", input = input, params = true },
      { topic = "moons" })))
    for _, keeps in ipairs { false, true } do
      assert.matches("Write on all moons", (result_of(
        agent():as_tool { description = "A poem.", input = input, keep_conversation = keeps,
          params = function(args) return { topic = "all " .. args.topic } end },
        { topic = "moons" })))
    end
  end)

  it("gives the value of an answer with a schema", function()
    local agent = ah.agent { model = ah.scripted { '{"n": 1}', '{"n": 2}' } }
    local tool = agent:as_tool { name = "count", description = "Counts.",
      output = { type = "object", properties = { n = { type = "integer" } } } }
    local value
    local content = result_of(tool, { request = "x" },
      { strategies = { function(m) value = m.value end } })
    assert.equal('{"n":1}', content)
    assert.same({ n = 1 }, value)
    for _, json in ipairs { "false", "null", "[]", "0" } do
      local plain = ah.agent { name = "plain", model = ah.scripted { json } }
      local result, reply = result_of(plain:as_tool { description = "P.", output = {
        description = "anything" } }, { request = "x" })
      assert.same({ json, "done" }, { result, reply.text })
    end
    assert.has_error(function()
      agent:as_tool { name = "t", description = "T.", output = { type = 3 } }
    end)
  end)

  it("continues one conversation for each outer one if it keeps it", function()
    local agent = ah.agent { name = "memory", model = ah.scripted(function(request)
      local said = {}
      for _, m in ipairs(messages(request)) do
        if m.role == "user" then
          said[#said + 1] = m.content
        end
      end
      return table.concat(said, " ")
    end) }
    local tool = agent:as_tool { description = "Remembers.", keep_conversation = true }
    local function outer(...)
      local turns = {}
      for i, text in ipairs { ... } do
        turns[2 * i - 1], turns[2 * i] = call("memory", { request = text }), "ok"
      end
      return ah.agent { model = ah.scripted(turns), tools = { tool } }
    end
    local a, b = outer("a1", "a2", "a3", "f3"), outer "b1"
    assert.same({ "a1" }, results(assert(a:run "go")))
    assert.same({ "b1" }, results(assert(b:run "go")))
    assert.same({ "a1", "a1 a2" }, results(assert(a:run "go")))
    local fork = a:fork()
    assert.same({ "a1", "a1 a2", "a1 a2 a3" }, results(assert(a:run "go")))
    assert.same({ "a1", "a1 a2", "a1 a2 f3" }, results(assert(fork:run "go")))
    assert.equal("memory", tool.name)
  end)

  it("lets parallel calls of a kept conversation wait for each other", function()
    local agent = ah.agent { name = "memory", model = ah.scripted(function(request)
      return { text = #messages(request) .. " messages", delay = 0.001 }
    end) }
    local tool = agent:as_tool { description = "Remembers.", keep_conversation = true,
      parallel = true }
    local list = {}
    for i = 1, 5 do
      list[i] = { name = "memory", arguments = { request = tostring(i) } }
    end
    local reply = assert(ah.run { model = ah.scripted { calls(list), "done" }, tools = { tool },
      "go" })
    assert.same({ "1 messages", "3 messages", "5 messages", "7 messages", "9 messages" },
      results(reply))
  end)

  it("runs parallel calls at once", function()
    local at_work, most = 0, 0
    local wait = ah.tool { name = "wait", description = "Waits.", handler = function()
      at_work = at_work + 1
      most = math.max(most, at_work)
      while most < 3 do ah.sleep(0.001) end
      at_work = at_work - 1
      return "ok"
    end }
    local agent = ah.agent { name = "slow", tools = { wait }, model = ah.scripted(function(request)
      return #messages(request) == 1 and call("wait") or "done"
    end) }
    local one = { name = "slow", arguments = { request = "x" } }
    local reply = assert(ah.run { timeout = 60,
      tools = { agent:as_tool { description = "Slow.", parallel = true } },
      model = ah.scripted { calls { one, one, one }, "done" }, "go" })
    assert.same({ "done", "done", "done" }, results(reply))
    assert.equal(3, most)
  end)

  it("says in events which run is in which, and who runs", function()
    local events = {}
    local function note(e) events[#events + 1] = { e.run, e.parent or false, e.agent } end
    local inner = echo { on = { start = note } }
    assert(ah.run { name = "outer", on = { start = note },
      tools = { inner:as_tool { description = "Echo." } },
      model = ah.scripted { call("echo", { request = "x" }), "done" }, "go" })
    local run = events[1][1]
    assert.same({ { run, false, "outer" }, { run + 1, run, "echo" } }, events)
  end)

  it("gives its runs in tasks the parent and the limits of the call", function()
    local parents, outer = {}, nil
    local inner = echo { on = { start = function(e) parents[#parents + 1] = e.parent end } }
    local both = ah.tool { name = "both", description = "Both.", handler = function(_, ctx)
      outer = ctx.run
      local function run() return assert(inner:open()):run "x" end
      local both = ah.all { run, function() return ah.spawn(run):await() end }
      return both[1].text .. both[2].text
    end }
    assert.equal("xx", (result_of(both, {})))
    assert.same({ outer, outer }, parents)
  end)

  it("counts for the budgets of both", function()
    local budget, own = ah.budget { requests = 10 }, ah.budget { requests = 10 }
    local tool = echo { budget = own }:as_tool { description = "Echo." }
    local one = { name = "echo", arguments = { request = "x" } }
    assert(ah.run { budget = budget, tools = { tool }, model = ah.scripted { calls { one, one },
      "done" }, "go" })
    assert.equal(4, budget:used().requests)
    assert.equal(2, own:used().requests)
  end)

  it("tells the model of a failure of the agent, and goes on", function()
    local agent = ah.agent { name = "broken", max_iterations = 1, model = ah.scripted {
      call("ping"), call("ping"), "not reached" },
      tools = { ah.tool { name = "ping", description = "Pings.", handler = function() end } } }
    local content, reply = result_of(agent:as_tool { description = "Fails." }, { request = "x" })
    assert.matches("maximum iterations", content, 1, true)
    assert.equal("done", reply.text)
  end)

  it("obeys the policies of the outer run and its own", function()
    local asked = {}
    local function policy(who)
      return function(c)
        asked[#asked + 1] = who .. " " .. c.name
        return c.name == "rm" and who == "outer" and "deny" or "allow", "not that"
      end
    end
    local rm = ah.tool { name = "rm", description = "Removes.", handler = function()
      error "not reached"
    end }
    local agent = ah.agent { name = "worker", tools = { rm }, policies = { policy "inner" },
      model = ah.scripted(function(request)
        local list = messages(request)
      local last = list[#list]
        return last.role == "user" and call("rm") or last.content
      end) }
    local content = result_of(agent:as_tool { description = "Works." }, { request = "x" },
      { policies = { policy "outer" } })
    assert.equal("Tool 'rm' was not run: not that", content)
    assert.same({ "outer worker", "inner rm", "outer rm" }, asked)
  end)

  it("ends with the outer run, by its deadline and by a cancel", function()
    local codes = {}
    local function slow()
      return ah.agent { name = "slow", model = ah.scripted { { text = "late", delay = 600 } },
        on = { done = function(e) codes[#codes + 1] = e.code end } }
    end
    local tool = slow():as_tool { description = "Slow." }
    local _, _, err = result_of(tool, { request = "x" }, { timeout = 0.05 })
    assert.equal("deadline_exceeded", err.code)
    local agent
    local inner = ah.agent { name = "slow", model = ah.scripted { { text = "late", delay = 600 } },
      on = { done = function(e) codes[#codes + 1] = e.code end,
        request = function() agent:cancel() end } }
    agent = ah.agent { model = ah.scripted { call("slow", { request = "x" }), "done" },
      tools = { inner:as_tool { description = "Slow.", keep_conversation = true } } }
    local _, cancelled = agent:run "go"
    assert.equal("cancelled", cancelled.code)
    sound.check(agent:transcript())
    assert.equal(2, #codes)
    local within = slow():as_tool { description = "Slow.", timeout = 0.05 }
    local content, reply = result_of(within, { request = "x" })
    assert.matches("time", content)
    assert.equal("done", reply.text)
  end)

  it("ends with a failed call of a kept conversation and goes on at the next", function()
    local turns = { { fail = { code = "provider" } }, "fine" }
    local agent = ah.agent { name = "shaky", retries = 0, model = ah.scripted(turns) }
    local tool = agent:as_tool { description = "Shaky.", keep_conversation = true }
    local reply = assert(ah.run { tools = { tool }, model = ah.scripted {
      call("shaky", { request = "1" }), call("shaky", { request = "2" }), "done" }, "go" })
    local list = results(reply)
    assert.matches("%S", list[1])
    assert.equal("fine", list[2])
  end)

  it("is an error for the model once the agent is closed", function()
    for _, keeps in ipairs { false, true } do
      local agent = echo()
      local tool = agent:as_tool { description = "Echo.", keep_conversation = keeps }
      agent:close()
      local content, reply = result_of(tool, { request = "x" })
      assert.matches("the agent of the tool 'echo' is closed", content, 1, true)
      assert.equal("done", reply.text)
      assert.has_error(function() agent:as_tool { description = "Echo." } end)
    end
  end)

  it("refuses wrong fields at once", function()
    local agent = ah.agent { model = "demo/echo" }
    for fields, why in pairs {
      [{ description = "No name." }] = "field 'name' is missing",
      [{ name = "x" }] = "description",
      [{ name = "A Name", description = "Bad." }] = "name",
      [{ name = "x", description = "Bad.", inputs = {} }] = "did you mean 'input'",
      [{ name = "x", description = "Bad.", input = { a = "strin" } }] = "strin",
      [{ name = "x", description = "Bad.", handler = print }] = "handler",
    } do
      local ok, err = pcall(agent.as_tool, agent, fields)
      assert.is_false(ok)
      assert.matches(why, tostring(err), 1, true)
    end
    for _, name in ipairs { "", "Big", "a b", ("x"):rep(51), "nul\0" } do
      assert.has_error(function() ah.agent { name = name, model = "demo/echo" } end)
    end
  end)
end)

describe("agents inside agents", function()
  --- An agent that is its own tool, by `setup`.
  local function recursive(limit, seen)
    local agent
    agent = ah.agent { name = "self", max_nested = limit,
      model = ah.scripted(function(request)
        local list = messages(request)
      local last = list[#list]
        if last.role == "tool_result" then
          return last.content
        end
        seen.n = seen.n + 1
        return call("self", { request = "deeper" })
      end),
      setup = function(conversation)
        conversation:add_tools(agent:as_tool { description = "Itself." })
      end }
    return agent
  end

  it("end 8 deep, with an error that the model can act on", function()
    local seen = { n = 0 }
    local reply = assert(recursive(nil, seen):run "go")
    assert.equal(8, seen.n)
    assert.matches("more than 8 deep", reply.text, 1, true)
  end)

  it("end where max_nested says, and the error says what to do", function()
    for limit = 1, 8 do
      local seen = { n = 0 }
      local reply = assert(recursive(limit, seen):run "go")
      assert.equal(limit, seen.n)
      assert.matches(("more than %d deep"):format(limit), reply.text, 1, true)
      if limit < 8 then
        assert.matches("raise max_nested", reply.text, 1, true)
      end
    end
  end)

  it("have the smallest max_nested of the runs around", function()
    local seen = { n = 0 }
    local inner = recursive(8, seen):as_tool { description = "Deep." }
    local content = result_of(inner, { request = "x" }, { max_nested = 3 })
    assert.equal(2, seen.n)
    assert.matches("more than 3 deep", content, 1, true)
    seen.n = 0
    result_of(recursive(2, seen):as_tool { description = "Deep." }, { request = "x" },
      { max_nested = 8 })
    assert.equal(2, seen.n)
  end)

  it("hold for runs of tasks as well", function()
    local said
    local tool = ah.tool { name = "t", description = "T.", handler = function()
      local ok, err = pcall(function()
        return ah.spawn(function() return ah.run { model = "demo/echo", "x" } end):await()
      end)
      said = tostring(err)
      return ok
    end }
    result_of(tool, {}, { max_nested = 1 })
    assert.matches("more than 1 deep", said, 1, true)
  end)

  it("refuse a max_nested out of its range", function()
    for _, n in ipairs { 0, -1, 9, 1.5, "2" } do
      assert.has_error(function() ah.run { model = "demo/echo", max_nested = n, "x" } end)
    end
  end)
end)

describe("agent:as_tool in the background", function()
  local function outer(tool, more)
    local def = { tools = { tool }, model = ah.scripted(function(request)
      return #request.entries == 1 and calls { { name = tool.name, arguments = { request = "1" } },
        { name = tool.name, arguments = { request = "2" } } } or "said"
    end) }
    for k, v in pairs(more or {}) do
      def[k] = v
    end
    return assert(ah.agent(def))
  end

  local function notes(agent)
    local list = {}
    for _, m in ipairs(assert(agent:run "well?").messages) do
      list[#list + 1] = m.role == "user" and m.content:match "^Ticket.*" or nil
    end
    return list
  end

  local function helper(answer)
    return ah.agent { name = "helper", model = ah.scripted(function(request)
      return { text = answer .. #request.entries, delay = 0.01 }
    end) }
  end

  it("answers with a ticket, and gives the answer as a note", function()
    for _, keep in ipairs { false, true } do
      local budget = ah.budget { requests = 20 }
      local agent <close> = outer(helper("seen "):as_tool { description = "Helps.",
        background = true, keep_conversation = keep }, { budget = budget })
      local reply = assert(agent:run "go")
      assert.equal("said", reply.text)
      assert.matches("Started; ticket 1", results(reply)[1], 1, true)
      while #agent:background() > 0 do
        assert(agent:wait())
      end
      local list = notes(agent)
      assert.equal(2, #list)
      assert.matches("is done. Its result:\n\nseen 1", list[1], 1, true)
      assert.matches(keep and "seen 3" or "seen 1", list[2], 1, true)
      assert.is_true(budget:used().requests >= 5)
      sound.check(agent:transcript())
    end
  end)

  it("fails a call whose agent is closed, and is cancelled with the owner", function()
    local closed = helper "x"
    local tool = closed:as_tool { description = "Helps.", background = true }
    closed:close()
    local agent = outer(tool)
    assert(agent:run "go")
    while #agent:background() > 0 do
      assert(agent:wait())
    end
    assert.matches("is closed", notes(agent)[1], 1, true)
    local slow = ah.agent { name = "slow",
      model = ah.scripted(function() return { text = "late", delay = 60 } end) }
    agent = outer(slow:as_tool { description = "Helps.", background = true })
    assert(agent:run "go")
    assert.equal(2, #agent:background())
    agent:close()
  end)

  it("may be at work when the script ends", function()
    local command = require "support.command"
    local r = command.script [[
      local ah = require "agenthost"
      local slow = ah.agent { name = "slow", model = ah.scripted { { text = "late", delay = 60 } } }
      agent = ah.agent { tools = { slow:as_tool { description = "Helps.", background = true } },
        model = ah.scripted { { calls = { { name = "slow", arguments = { request = "1" } },
          { name = "slow", arguments = { request = "2" } } } }, "said" } }
      print(agent:run "go")
      ah.sleep(0.01)
    ]]
    command.tidy()
    assert.same({ 0, "said\n" }, { r.code, r.out })
  end)
end)

describe("examples/team.lua", function()
  it("has a planner hand its work to three agents", function()
    local binary = (os.getenv "AGENTHOST_BUILD" or "build") .. "/agenthost"
    local pipe <close> =
      assert(io.popen(("unset AGENTHOST_MODEL; %s examples/team.lua 2>&1"):format(binary)))
    local text = pipe:read "a"
    assert.matches("planner begins\n  historian begins\n  astronomer begins\n", text, 1, true)
    assert.matches("  writer begins\n  writer ends: ok\n", text, 1, true)
    assert.matches("In short: Galileo saw four of them in 1610. Europa has an ocean", text, 1, true)
  end)
end)
