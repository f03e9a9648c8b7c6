-- agent:rewind(N) in place: the agent goes on itself, with all that a script has given to it since
-- it was made. fork_spec.lua has the states of turns, rewind_files_spec.lua files.
local ah = require "agenthost"

local Step = ah.type { name = "Step", fields = { n = "integer" } }

local store, agent

before_each(function()
  store = assert(ah.store { engine = "memory" })
end)

after_each(function()
  if agent then
    agent:close()
    agent = nil
  end
  store:close()
end)

local function call(name, arguments)
  return { name = name, arguments = arguments or {} }
end

local function open(fields)
  fields.store, fields.id = store, fields.id or "ann"
  fields.model = fields.model or "demo/echo"
  agent = assert(ah.agent(fields))
  return agent
end

local function entries()
  return ah.json.decode(agent:transcript()).entries
end

-- Returns how many entries of a type the conversation has.
local function count(type)
  local n = 0
  for _, entry in ipairs(entries()) do
    n = n + (entry.type == type and 1 or 0)
  end
  return n
end

-- Returns the result of the last call.
local function last_result()
  local list = entries()
  for i = #list, 1, -1 do
    if list[i].type == "tool_result" then
      return list[i]
    end
  end
end

describe("the agent that was rewound", function()
  it("keeps its id, its observers and its queues of events", function()
    local seen = {}
    open { on = { done = function(e) seen[#seen + 1] = e.success end } }
    local events <close> = agent:events { types = { "done" } }
    assert(agent:run "one")
    local id, text = agent.id, tostring(agent)
    assert(agent:rewind(0))
    assert.same({ id, text:gsub("%d+ entries", "1 entries") }, { agent.id, tostring(agent), 1 })
    assert(agent:run "two")
    assert.same({ true, true }, seen)
    assert.same({ "done", "done" }, { events().type, events().type })
  end)

  it("keeps the front ends of asks, each of them once", function()
    local asked = 0
    local function front()
      asked = asked + 1
      return true
    end
    local tool = ah.tool { name = "pay", description = "Pays.",
      handler = function() return "ok" end }
    open { tools = { tool }, asks = front, policies = { function() return "ask", "sure?" end },
      model = ah.scripted { { calls = { call "pay" } }, "One.",
        { calls = { call "pay" } }, "Two." } }
    agent:on_ask(function() end)
    assert(agent:run "one")
    assert(agent:rewind(0))
    assert.equal("Two.", tostring(assert(agent:run "two")))
    assert.equal(2, asked)
  end)

  it("keeps the model of agent:use, with its options", function()
    open { model = "demo/echo" }
    assert(agent:run "one")
    assert(agent:use { model = ah.scripted { "Two.", "Three." }, options = { temperature = 0.5 } })
    assert(agent:run "two")
    assert(agent:rewind(1))
    assert.equal("Three.", tostring(assert(agent:run "three")))
    local list, settings = entries(), nil
    for _, entry in ipairs(list) do
      settings = entry.type == "settings" and entry or settings
    end
    assert.same({ temperature = 0.5 }, settings.options)
  end)

  it("does not get its budget back", function()
    open { budget = { requests = 3 } }
    assert(agent:run "one")
    assert(agent:run "two")
    assert(agent:rewind(1))
    assert(agent:run "three")
    local _, err = agent:run "four"
    assert.equal("budget_exceeded", err.code)
  end)

  it("keeps the handlers of tools that were added since", function()
    local add = ah.tool { name = "add", description = "Adds.",
      handler = function() return "added" end }
    open { model = ah.scripted { "One.", "Two.", { calls = { call "add" } }, "Three.",
      { calls = { call "add" } }, "Four." } }
    assert(agent:run "one")
    agent:add_tools(add)
    assert(agent:run "two")
    assert(agent:rewind(2))
    assert(agent:run "three")
    assert.equal("added", last_result().content)
    assert(agent:rewind(1)) -- before it was added
    assert(agent:run "four")
    assert.is_false(last_result().success)
  end)

  it("keeps what agent:open was given", function()
    local Place = ah.prompt { ah.section { title = "Greet", params = { name = "string" },
      template = "Greet ${name}." } }
    local other, session = {}, ah.session { types = { Step } }
    local tool = ah.tool { name = "step", description = "Steps.", params = { n = "integer" },
      handler = function(args, ctx)
        ctx.session:dispatch(Step { n = args.n })
        other[#other + 1] = ctx.resources:get("door")[1]
        return args.n
      end }
    local definition <close> = assert(ah.agent { tools = { tool }, prompt = Place,
      params = { name = "Bo" }, model = "demo/echo", resources = { door = { "front" } } })
    agent = assert(definition:open { store = store, id = "open", params = { name = "Ann" },
      session = session, resources = { door = { "back" } } })
    assert(agent:use(ah.scripted { { calls = { call("step", { n = 1 }) } }, "One.",
      { calls = { call("step", { n = 2 }) } }, "Two.", { calls = { call("step", { n = 3 }) } },
      "Three." }))
    assert(agent:run "one")
    assert(agent:run "two")
    assert(agent:rewind(2))
    assert.equal(1, #session[Step]:all())
    assert(agent:run "three")
    assert.same({ 1, 3 }, { session[Step]:all()[1].n, session[Step]:all()[2].n })
    assert.same({ "back", "back", "back" }, other)
    local fork <close> = assert(agent:fork { at = 2, id = "fork" }) -- it has them, too
    assert(fork:use(ah.scripted { { calls = { call("step", { n = 9 }) } }, "Four." }))
    assert(fork:run "four")
    assert.equal(2, #session[Step]:all())
    assert.equal("back", other[4])
    for _, one in ipairs { agent, fork } do
      for _, entry in ipairs(ah.json.decode(one:transcript()).entries) do
        if entry.type == "prompt" then
          assert.matches("Greet Ann", entry.text, 1, true)
        end
      end
    end
  end)

  it("keeps the params of agent:run", function()
    local Place = ah.prompt { ah.section { title = "Greet", params = { name = "string" },
      template = "Greet ${name}." } }
    open { prompt = Place, params = { name = "Bo" } }
    assert(agent:run("one", { params = { name = "Ann" } }))
    assert(agent:run "two")
    assert(agent:rewind(1))
    assert(agent:run "three")
    local last
    for _, entry in ipairs(entries()) do
      last = entry.type == "prompt" and entry.text or last
    end
    assert.matches("Greet Ann", last, 1, true)
  end)

  it("sets slices of policy `log` back, too, so that the records fit", function()
    local function session()
      return ah.session():register(Step, { policy = "log" })
    end
    local tools, n = {}, 0
    tools[1] = ah.tool { name = "step", description = "Steps.", handler = function(_, ctx)
      n = n + 1
      ctx.session:dispatch(Step { n = n })
    end }
    local turn = { calls = { call "step" } }
    local given = session()
    open { tools = tools, session = given,
      model = ah.scripted { turn, "One.", turn, "Two.", turn, "Three." } }
    assert(agent:run "one")
    assert(agent:run "two")
    assert(agent:rewind(2))
    assert(agent:run "three")
    assert.same({ 1, 3 }, { given[Step]:all()[1].n, given[Step]:all()[2].n })
    agent:close()
    local again = session()
    again:dispatch(Step { n = 9 }) -- a value from before is replaced
    open { tools = tools, session = again }
    assert.same({ 1, 3 }, { again[Step]:all()[1].n, again[Step]:all()[2].n })
  end)

  it("goes on with the agent that had the conversation at that turn", function()
    local other <close> = assert(ah.agent { name = "other",
      model = ah.scripted { "Other.", "Other again." } })
    open { name = "own", tools = { ah.handoff { to = other, when = "Now." } },
      model = ah.scripted { "Own.", { calls = { call "handoff_to_other" } }, "Own again." } }
    assert(agent:run "one")
    assert.equal("Other.", tostring(assert(agent:run "two")))
    assert(agent:rewind(1))
    assert.equal("Own again.", tostring(assert(agent:run "three")))
    assert(agent:rewind(3))
    assert.equal("Other again.", tostring(assert(agent:run "four")))
  end)

  it("is still one of the agents of its registry", function()
    local book = ah.registry()
    open { registry = book, model = ah.scripted { "One.", { calls = { call "late" } }, "Two." } }
    assert(agent:run "one")
    assert(agent:rewind(0))
    book:register(ah.tool { name = "late", description = "Late.",
      handler = function() return "in time" end })
    assert(agent:run "two")
    assert.equal("in time", last_result().content)
  end)

  it("is set up again, with the tools of `setup`", function()
    local times = 0
    open { setup = function(conversation)
      times = times + 1
      conversation:add_tools(ah.tool { name = "mine", description = "Mine.",
        handler = function() return "mine " .. times end })
    end, model = ah.scripted { "One.", "Two.", { calls = { call "mine" } }, "Three." } }
    assert(agent:run "one")
    assert(agent:run "two")
    assert(agent:rewind(1))
    assert(agent:run "three")
    assert.equal("mine 2", last_result().content)
    assert.equal(2, times)
  end)

  it("stops background calls, and goes on without them", function()
    local tool = ah.tool { name = "wait", description = "Waits.", background = true,
      handler = function() ah.sleep(60) end }
    open { tools = { tool }, model = ah.scripted { { calls = { call "wait" } }, "One.", "Two." } }
    assert(agent:run "one")
    assert.equal(1, #agent:background())
    assert(agent:rewind(0))
    assert.equal(0, #agent:background())
    assert.equal("Two.", tostring(assert(agent:run "two")))
  end)

  it("cannot be used by functions of its prompt while it is filled", function()
    local words
    local prompt = ah.prompt { ah.section { title = "S", template = "s", enabled = function()
      if agent then
        local _, err = pcall(agent.run, agent, "now")
        words = tostring(err)
        words = words .. tostring(select(2, pcall(agent.close, agent)))
      end
      return true
    end } }
    open { prompt = prompt }
    assert(agent:run "one")
    words = nil
    assert(agent:rewind(0))
    assert.matches("the agent is closed.*a run of it is at work", words)
    assert(agent:run "two")
  end)

  it("is closed if its conversation cannot be opened again", function()
    local broken = false
    open { prompt = ah.prompt { ah.section { title = "S", template = "s", enabled = function()
      return not broken or error "no switch"
    end } } }
    assert(agent:run "one")
    broken = true
    assert.has_error(function() agent:rewind(0) end)
    assert.equal("agent (closed)", tostring(agent))
    broken = false
    open {}
    assert.equal(0, count "user")
  end)
end)

describe("the list of a rewind", function()
  local function work(on_call)
    return ah.tool { name = "work", description = "Works.", params = { n = "integer" },
      handler = on_call }
  end

  -- Returns the turns of a model with one call of `work` for each number.
  local function calls(...)
    local turns = {}
    for _, n in ipairs { ... } do
      turns[#turns + 1] = { calls = { call("work", { n = n }) } }
      turns[#turns + 1] = "Done."
    end
    return ah.scripted(turns)
  end

  it("has entities without a recorded state, or without `find`", function()
    local Plain = ah.entity { name = "Plain", id = "name" }
    local Kept = ah.entity { name = "Kept", id = "name", state = { "n" } }
    local Found = ah.entity { name = "Found", id = "name", state = { "n" },
      find = function(id) return { name = id, n = 0 } end }
    local all = { Plain { name = "p", n = 0 }, Kept { name = "k", n = 0 },
      Found { name = "f", n = 0 } }
    open { log = function() end, tools = { work(function(args, ctx)
      for i = args.n == 1 and 3 or 1, 3 do
        ctx:enlist(all[i])
        all[i].n = args.n
      end
    end) }, model = calls(1, 2) }
    assert(agent:run "one")
    assert(agent:run "two")
    local found = assert(agent:rewind(2))
    assert.same({
      { kind = "entity", class = "Kept", id = "k",
        why = "its class has no `find`: it comes back only if a handler enlists it" },
      { kind = "entity", class = "Plain", id = "p", why = "it has no state that is recorded" },
      { kind = "entity", class = "Kept", id = "k", why = "no earlier state of it is recorded" },
    }, found.stays)
    assert.equal("Found", found.changes[1].class)
    assert.same({ before = 2, after = 1 }, found.changes[1].fields.n)
    assert.same({}, assert(agent:rewind(2, { dry = true })).stays) -- they are dropped already
  end)

  it("has named sessions, budgets and files that the turns wrote, and says who else did", function()
    local stock = ah.session { name = "stock", types = { Step } }
    local limit = ah.budget { name = "limit", requests = 100 }
    local disk = ah.filesystem { memory = true, name = "disk", store = store }
    local tools = { work(function(args, ctx)
      ctx.session:dispatch(Step { n = args.n })
      if args.n > 1 then
        assert(disk:write("a", tostring(args.n)))
      end
    end) }
    local other <close> = assert(ah.agent { store = store, id = "bo", tools = tools,
      session = stock, model = calls(5) })
    open { tools = tools, session = stock, budget = limit, model = calls(1, 2, 3) }
    assert(agent:run "one")
    assert(agent:run "two")
    assert.same({}, assert(agent:rewind(4, { dry = true })).stays)
    local function stays(n)
      local list = {}
      for _, item in ipairs(assert(agent:rewind(n, { dry = true })).stays) do
        if item.kind ~= "file" then
          list[item.kind .. " " .. item.name] = item.others and "others" or item.why
        end
      end
      return list
    end
    assert.same({ ["session stock"] = "it is shared", ["budget limit"] = "it is shared",
      ["files disk"] = "it is shared" }, stays(2))
    assert(other:run "five")
    local both = { ["session stock"] = "others", ["budget limit"] = "it is shared",
      ["files disk"] = "others" }
    assert.same(both, stays(2))
    assert.same(both, stays(0))
    assert(agent:run "three")
    assert.equal("it is shared", stays(4)["session stock"])
    assert(agent:rewind(2))
    assert.equal(4, #stock[Step]:all()) -- it stays
    assert.same({}, stays(2))
    assert.equal("others", stays(0)["session stock"])
    assert(agent:rewind(6)) -- brings the turns back
    assert.same({ "session stock", "it is shared" }, { "session stock", stays(4)["session stock"] })
  end)

  it("has the question that has no answer, and its asks", function()
    open { tools = { work(function() end) }, policies = { function() return "ask", "sure?" end },
      model = ah.scripted { "One.", { calls = { call("work", { n = 1 }) } } } }
    assert(agent:run "one")
    local _, err = agent:run "two"
    assert.equal("waiting", err.code)
    local id = agent.unfinished.asks[1]
    local found = assert(agent:rewind(1))
    assert.same({ { kind = "question", turn = 2, question = "two" },
      { kind = "ask", turn = 2, id = id, question = found.dropped[2].question } }, found.dropped)
    assert.matches("sure?", found.dropped[2].question, 1, true)
    assert.same({}, assert(agent:rewind(1)).dropped)
  end)

  it("has turns that an earlier rewind had dropped, and a later one brought back", function()
    open { model = "demo/echo" }
    for i = 1, 4 do
      assert(agent:run("question " .. i))
    end
    assert(agent:rewind(1))
    assert.same({}, assert(agent:rewind(1, { dry = true })).dropped)
    assert(agent:rewind(4))
    local turns = {}
    for _, item in ipairs(assert(agent:rewind(0, { dry = true })).dropped) do
      turns[#turns + 1] = item.turn .. item.question
    end
    assert.same({ "1question 1", "2question 2", "3question 3", "4question 4" }, turns)
  end)
end)

describe("a conversation that ends with a question", function()
  it("goes on with a text, after a rewind and in a fork", function()
    for _, fork in ipairs { false, true } do
      local fields = { store = store, id = "asks " .. tostring(fork),
        model = ah.scripted { "One." },
        messages = { { role = "user", content = "Are you there?" } } }
      local base <close> = assert(ah.agent(fields))
      assert(base:run "one")
      assert(base:rewind(0))
      assert(base:use(ah.scripted { "Two.", "Three." }))
      assert.equal("Two.", tostring(assert(base:run "two")))
      if fork then
        local second <close> = assert(base:fork { at = 2, id = "second" })
        assert(second:use(ah.scripted { "Four." }))
        assert.equal("Four.", tostring(assert(second:run "four")))
      end
    end
  end)
end)
