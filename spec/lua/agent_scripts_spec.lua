-- Conversations of one agent: agent:open, and `setup`. docs/reference/agent.md, "Other
-- conversations"; src/lua/lua_definition.c, src/lua/lua_setup.c. Scripts that return an agent are
-- in cli_agent_spec.lua. AH_CONVERSATIONS is the number of steps of the random part (default 300).
local ah = require "agenthost"
local command = require "support.command"

local has, has_not = command.has, command.has_not
local STEPS = tonumber(os.getenv "AH_CONVERSATIONS") or 300

local function quiet() end

local function tool(name, handler)
  return ah.tool { name = name, description = "The tool " .. name .. ".",
    handler = handler or function() return name end }
end

local function call(name)
  return { calls = { { name = name } } }
end

-- Makes a model that keeps its requests in `seen`: the system text and the names of the tools.
local function mirror(seen)
  return ah.scripted(function(request)
    local names = {}
    for i, spec in ipairs(request.tools) do
      names[i] = spec.name
    end
    seen[#seen + 1] = { system = request.system, tools = table.concat(names, " "),
      messages = #request.entries }
    return "seen"
  end)
end

local function texts(agent)
  local said = {}
  for _, entry in ipairs(ah.json.decode(agent:transcript()).entries) do
    if entry.type == "user" then
      said[#said + 1] = entry.content[1].text
    end
  end
  return table.concat(said, " ")
end

-- Makes a model that answers the user with a call of the tool, and its result with "ok".
local function calls(name)
  return ah.scripted(function(request)
    return request.entries[#request.entries].type == "user" and call(name) or "ok"
  end)
end

local function line_of(text)
  return tonumber(text:match "agent_scripts_spec%.lua:(%d+): ")
end

local function here()
  return debug.getinfo(2, "l").currentline
end

-- -- agent:open ---------------------------------------------------------------------------------

describe("agent:open", function()
  it("begins another conversation of the same definition", function()
    local seen = {}
    local agent = ah.agent { model = mirror(seen), system = "S", tools = { tool "a", tool "b" } }
    assert(agent:run "one")
    local other = assert(agent:open())
    assert(other:run "two")
    assert(agent:run "three")
    assert.equal("one three", texts(agent))
    assert.equal("two", texts(other))
    assert.same({ { system = "S", tools = "a b", messages = 1 },
      { system = "S", tools = "a b", messages = 1 },
      { system = "S", tools = "a b", messages = 3 } }, seen)
  end)

  it("is independent of the definition, whichever of them is closed", function()
    local agent = ah.agent { model = "demo/echo" }
    local a, b = assert(agent:open {}), assert(agent:open {})
    a:close()
    assert.equal("x", assert(agent:run "x").text)
    agent:close()
    assert.equal("y", assert(b:run "y").text)
    assert.equal("z", assert(assert(b:open()):run "z").text)
    local ok, err = pcall(agent.open, agent)
    assert.is_false(ok)
    has(tostring(err), "the agent is closed")
  end)

  it("has the fields as they were when the agent was made", function()
    local seen = {}
    local options, tools, limits = { temperature = 0.5 }, { tool "a" }, { requests = 1 }
    local fields = { model = mirror(seen), system = "S", tools = tools, options = options,
      budget = limits }
    local agent = ah.agent(fields)
    fields.system, fields.model, options.temperature, limits.requests = "T", "demo/echo", 2, 5
    tools[2] = tool "b"
    agent:add_tools(tool "c")
    assert(agent:use "demo/echo")
    local other = assert(agent:open())
    assert(other:run "x")
    assert.same({ { system = "S", tools = "a", messages = 1 } }, seen)
    has(other:transcript(), '"temperature":0.5')
    local _, err = other:run "y"
    assert.equal("budget_exceeded", err.code)
  end)

  it("makes a budget that is a table anew for each, and shares one that is an object", function()
    local apart = ah.agent { model = "demo/echo", budget = { requests = 1 } }
    local shared = ah.budget { requests = 2 }
    local together = ah.agent { model = "demo/echo", budget = shared }
    for _ = 1, 3 do
      assert(assert(apart:open()):run "x")
    end
    assert(assert(together:open()):run "x")
    assert(assert(together:open()):run "x")
    local _, err = assert(together:open()):run "x"
    assert.equal("budget_exceeded", err.code)
    assert.equal(2, shared:used().requests)
  end)

  it("has a session of its own, which begins with what the definition's held", function()
    local Note = ah.type { name = "Note", fields = { text = "string" } }
    local session = ah.session()
    session:register(Note)
    session:dispatch(Note { text = "first" })
    local note = ah.tool { name = "note", description = "Notes.", params = { text = "string" },
      handler = function(args, ctx)
        ctx.session:dispatch(Note(args))
        return #ctx.session.Note
      end }
    local function model()
      return ah.scripted(function(request)
        return request.entries[#request.entries].type == "user"
          and { calls = { { name = "note", arguments = { text = "more" } } } } or "ok"
      end)
    end
    local agent = ah.agent { model = model(), session = session, tools = { note } }
    session:dispatch(Note { text = "second" })
    local a = assert(agent:open())
    assert(a:run "x")
    assert.equal("2", a:run("y").messages[3].content)
    assert.equal(2, #session.Note)
    local given = ah.session()
    given:register(Note)
    local b = assert(agent:open { session = given })
    assert(b:run "x")
    assert.equal(1, #given.Note)
  end)

  it("binds resources beside those of the definition, and params in place of its own", function()
    local got = {}
    local look = tool("look", function(_, ctx)
      got[#got + 1] = ctx.resources:get "a" .. ctx.resources:get "b"
    end)
    local prompt = ah.prompt { ns = "test", key = "p", sections = {
      ah.section { key = "who", title = "Who", template = "For ${name}.",
        params = { name = "string" } } } }
    local seen = {}
    local agent = ah.agent { prompt = prompt, params = { name = "Ann" }, tools = { look },
      resources = { a = "1", b = "2" },
      model = ah.scripted(function(request)
        seen[#seen + 1] = request.system:match "For %w+"
        return #request.entries == 1 and call "look" or "ok"
      end) }
    assert(assert(agent:open()):run "x")
    local given = { resources = { b = "3", c = "4" }, params = { name = "Bob" } }
    assert(assert(agent:open(given)):run "x")
    assert(agent:run "x")
    assert.same({ "12", "13", "12" }, got)
    assert.same({ "For Ann", "For Ann", "For Bob", "For Bob", "For Ann", "For Ann" }, seen)
  end)

  it("puts policies before those of the definition, for this conversation alone", function()
    local seen = {}
    local function policy(name)
      return function(asked)
        seen[#seen + 1] = name .. " " .. asked.name
      end
    end
    local agent = ah.agent { tools = { tool "look" }, policies = { policy "own" },
      model = ah.scripted(function(request)
        return #request.entries == 1 and call "look" or "ok"
      end) }
    assert(assert(agent:open { policies = { policy "first", policy "second" } }):run "x")
    assert(agent:run "x")
    assert.same({ "first look", "second look", "own look", "own look" }, seen)
  end)

  it("goes on with messages", function()
    local agent = ah.agent { model = "demo/echo" }
    local earlier = assert(agent:run "one").messages
    local other = assert(agent:open { messages = earlier })
    assert.equal(4, #assert(other:run "two").messages)
  end)

  it("refuses what it does not know, at the line that asks", function()
    local agent = ah.agent { model = "demo/echo" }
    for words, given in pairs {
      ["unknown field 'parms' (did you mean 'params'?)"] = { parms = {} },
      ["unknown field 'model'"] = { model = "demo/tools" },
      ["store: expected a path"] = { store = 7 },
      ["id must be a text"] = { id = 5 },
      ["id must be a text of"] = { id = "" },
      ["field 'session' must be made by ah.session"] = { session = {} },
      ["field 'resources' must be a table"] = { resources = 1 },
      ["'params' without a prompt"] = { params = {} },
      ["messages"] = { messages = { { role = "tool", content = "x", tool_call_id = "1" } } },
    } do
      local line = here() + 1
      local ok, err = pcall(function() agent:open(given) end)
      assert.is_false(ok, words)
      has(tostring(err), words)
      assert.equal(line, line_of(tostring(err)))
    end
    assert.is_false(pcall(agent.open, agent, "x"))
  end)

  it("gives nil and an error where the world lacks something", function()
    local agent = ah.agent { model = "compatible/x", base_url = "http://127.0.0.1:1/v1" }
    assert(agent:open())
    local broken = ah.agent { model = "openai/x", api_key = "k" }
    assert(broken:open())
  end)

  it("works in a handler, for runs that wait for each other", function()
    local helper = ah.agent { model = "demo/echo" }
    local ask = ah.tool { name = "ask", description = "Asks.", params = { n = "integer" },
      parallel = true,
      handler = function(args)
        ah.sleep(0.01)
        return assert(assert(helper:open()):run("n" .. args.n)).text
      end }
    local five = {}
    for i = 1, 5 do
      five[i] = { name = "ask", arguments = { n = i } }
    end
    local model = ah.scripted { { calls = five }, "ok" }
    local reply = assert(ah.run { model = model, tools = { ask }, "x" })
    for i = 1, 5 do
      assert.equal("n" .. i, reply.messages[2 + i].content)
    end
    assert.equal("", texts(helper))
  end)

  it("opens more of a loaded conversation's and of a fork's definition", function()
    local path = os.tmpname()
    local agent = ah.agent { model = "demo/echo" }
    assert(agent:run "one")
    assert(agent:save(path))
    local seen = {}
    local loaded = assert(ah.load(path, { model = mirror(seen), system = "L" }))
    os.remove(path)
    assert(assert(loaded:open()):run "x")
    assert(assert(loaded:fork():open()):run "x")
    assert.same({ { system = "L", tools = "", messages = 1 },
      { system = "L", tools = "", messages = 1 } }, seen)
  end)
end)

-- -- setup -------------------------------------------------------------------------------------

describe("setup", function()
  it("makes what belongs to one conversation, once, before its first run", function()
    local seen, order, n = {}, {}, 0
    local agent = ah.agent { model = mirror(seen), system = "Base.", tools = { tool "all" },
      on = { start = function() order[#order + 1] = "start" end },
      setup = function(conversation)
        n = n + 1
        order[#order + 1] = "setup"
        conversation:add_tools { tool("own_" .. n), tool("more_" .. n) }
        conversation:set_system("Number " .. n)
      end }
    local a, b = assert(agent:open()), assert(agent:open())
    assert.equal(0, n)
    assert(b:run "x")
    assert(a:run "x")
    assert(b:run "y")
    assert(agent:run "x")
    assert.equal(3, n)
    assert.same({ "setup", "start", "setup", "start", "start", "setup", "start" }, order)
    assert.same({ { system = "Number 1", tools = "all own_1 more_1", messages = 1 },
      { system = "Number 2", tools = "all own_2 more_2", messages = 1 },
      { system = "Number 1", tools = "all own_1 more_1", messages = 3 },
      { system = "Number 3", tools = "all own_3 more_3", messages = 1 } }, seen)
  end)

  it("sees id, session, resources and params", function()
    local ids, got = {}, {}
    local session = ah.session()
    local agent = ah.agent { model = "demo/echo", params = { user = "Ann" }, session = session,
      resources = { base = 1, made = ah.resource { provide = function() return { 7 } end } },
      setup = function(conversation)
        ids[#ids + 1] = conversation.id
        got[#got + 1] = { conversation.params.user, conversation.resources:get "base",
          conversation.resources:get("made")[1], conversation.session == session }
        conversation.params.user = "changed"
      end }
    assert(assert(agent:open { id = "x:1", params = { user = "Bob" } }):run "x")
    assert(assert(agent:open()):run "x")
    assert(assert(agent:open()):run "x")
    assert(agent:run "x")
    assert.equal("x:1", ids[1])
    assert.truthy(ids[2]:match "^%x+$" and #ids[2] == 16 and ids[2] ~= ids[3] and ids[3] ~= ids[4])
    assert.same({ { "Bob", 1, 7, false }, { "Ann", 1, 7, false }, { "Ann", 1, 7, false },
      { "Ann", 1, 7, true } }, got)
  end)

  it("gets the params of the first run", function()
    local user
    local agent = ah.agent { model = "demo/echo", setup = function(c) user = c.params.user end }
    assert(agent:run("x", { params = { user = "late" } }))
    assert.equal("late", user)
    assert.is_false(pcall(agent.run, agent, "y", { params = { user = "later" } }))
  end)

  it("binds resources for its conversation alone", function()
    local got = {}
    local look = tool("look", function(_, ctx)
      got[#got + 1] = ctx.resources:get "box"
      ctx.filesystem:write("f", ctx.resources:get "box")
    end)
    local n, places = 0, {}
    local agent = ah.agent { tools = { look },
      model = calls "look",
      setup = function(conversation)
        n = n + 1
        places[n] = ah.filesystem { memory = true }
        conversation.resources.box = "box " .. n
        conversation.resources.filesystem = places[n]
      end }
    local a, b = assert(agent:open()), assert(agent:open())
    assert(a:run "x")
    assert(b:run "x")
    assert(a:run "y")
    assert.same({ "box 1", "box 2", "box 1", "box 1" }, { got[1], got[2], got[3], got[#got] })
    assert.equal("box 1", (places[1]:read "f"))
    assert.equal("box 2", (places[2]:read "f"))
  end)

  it("may wait, and run other agents", function()
    local helper = ah.agent { model = "demo/echo" }
    local said
    local agent = ah.agent { model = "demo/echo", setup = function()
      ah.sleep(0.01)
      said = assert(assert(helper:open()):run "from setup").text
    end }
    assert.equal("x", assert(agent:run "x").text)
    assert.equal("from setup", said)
  end)

  it("fails the run at its line, leaves nothing behind, and is tried again", function()
    local Note = ah.type { name = "Note", fields = { n = "integer" } }
    local session = ah.session()
    session:register(Note)
    local seen, tries, line = {}, 0, nil
    local agent = ah.agent { model = mirror(seen), session = session, log = quiet,
      setup = function(conversation)
        tries = tries + 1
        conversation.session:dispatch(Note { n = tries })
        conversation:add_tools(tool "own")
        conversation:set_system "Mine"
        conversation.resources.box = tries
        line = here() + 1
        if tries < 3 then error "not yet" end
      end }
    for _ = 1, 2 do
      local reply, err = agent:run "lost"
      assert.is_nil(reply)
      assert.equal("internal", err.code)
      assert.equal(line, line_of(err.message))
      has(err.message, "not yet")
      assert.equal(0, #session.Note)
    end
    assert.equal("", texts(agent))
    has_not(agent:transcript(), "own")
    assert(agent:run "said")
    assert.equal("said", texts(agent))
    assert.same({ { system = "Mine", tools = "own", messages = 1 } }, seen)
    assert.equal(3, session.Note:latest().n)
    assert.equal(1, #session.Note)
  end)

  it("fails with an error object's code, and with nil and why", function()
    local fails = { function() error(ah.error { code = "provider", message = "no database" }) end,
      function() return nil, "no database" end,
      function() return nil, ah.error { code = "provider", message = "no database" } end }
    local codes = {}
    for i, f in ipairs(fails) do
      local _, err = ah.agent { model = "demo/echo", log = quiet, setup = f }:run "x"
      codes[i] = err.code
      has(err.message, "no database")
    end
    assert.same({ "provider", "internal", "provider" }, codes)
  end)

  it("ends with the run's time, with its cancelling, and with its own limits", function()
    local closed = 0
    local function hang()
      local _ <close> = setmetatable({}, { __close = function() closed = closed + 1 end })
      ah.sleep(60)
    end
    local slow = ah.agent { model = "demo/echo", timeout = 0.05, setup = hang }
    local _, err = slow:run "x"
    assert.equal("deadline_exceeded", err.code)
    local agent
    agent = ah.agent { model = "demo/echo", setup = function() agent:cancel() hang() end }
    _, err = agent:run "x"
    assert.equal("cancelled", err.code)
    local busy = ah.agent { model = "demo/echo", timeout = 0.1, log = quiet,
      setup = function() while true do end end }
    _, err = busy:run "x"
    assert.equal("deadline_exceeded", err.code)
    assert.equal(2, closed)
    assert.equal("", texts(slow) .. texts(agent) .. texts(busy))
  end)

  it("settles the runs within it first when it is stopped", function()
    local ended = {}
    local inner = ah.agent { model = ah.scripted(function() return { text = "x", delay = 60 } end),
      on = { done = function() ended[#ended + 1] = "inner" end } }
    local agent = ah.agent { model = "demo/echo", timeout = 0.05,
      on = { done = function() ended[#ended + 1] = "outer" end },
      setup = function() inner:run "wait" end }
    local _, err = agent:run "x"
    assert.equal("deadline_exceeded", err.code)
    assert.same({ "inner", "outer" }, ended)
  end)

  it("is part of the call in whose handler the run is", function()
    local Note = ah.type { name = "Note", fields = { n = "integer" } }
    local session = ah.session()
    session:register(Note)
    local helper = ah.agent { model = "demo/echo", session = session,
      setup = function(c) c.session:dispatch(Note { n = 1 }) end }
    local function ask(fails)
      return tool("ask", function()
        assert(helper:run "x")
        if fails then error "no" end
      end)
    end
    assert(ah.run { model = ah.scripted { call "ask", "ok" }, tools = { ask(true) },
      session = session, log = quiet, "x" })
    assert.equal(0, #session.Note)
  end)

  it("refuses names that are taken, at its line", function()
    local function try(f)
      local _, err = ah.agent { model = "demo/echo", tools = { tool "a" }, max_tools = 3,
        log = quiet, setup = f }:run "x"
      return err
    end
    local line = here() + 1
    local err = try(function(c) c:add_tools(tool "a") end)
    assert.equal("prompt_validation", err.code)
    assert.equal(line, line_of(err.message))
    has(err.message, "tool 'a' is declared twice")
    has(try(function(c) c:add_tools { tool "b", tool "b" } end).message,
      "tool 'b' is declared twice")
    has(try(function(c) c:add_tools { tool "b", tool "c", tool "d" } end).message, "max_tools (3)")
  end)

  it("has fields and methods that are told from mistakes", function()
    local messages = {}
    local function try(f)
      local _, err = ah.agent { model = "demo/echo", log = quiet, setup = f }:run "x"
      messages[#messages + 1] = err.message:match ": (.*)$"
    end
    try(function(c) return c.sessoin end)
    try(function(c) return c.add_tool end)
    try(function(c) c.id = "x" end)
    try(function(c) c:add_tools { "x" } end)
    try(function(c) c:set_system(7) end)
    try(function(c) c.resources[1] = 2 end)
    has(messages[1], "did you mean 'session'?")
    has(messages[2], "did you mean 'add_tools'?")
    has(messages[3], "cannot be set")
    has(messages[4], "made by ah.tool")
    has(messages[5], "string expected")
    has(messages[6], "bound by a name or a type")
    assert.is_false(pcall(ah.agent, { model = "demo/echo", setup = {} }))
  end)

  it("is over when it has returned", function()
    local kept
    local agent = ah.agent { model = "demo/echo", setup = function(c) kept = c end }
    assert(agent:run "x")
    assert.equal("string", type(kept.id))
    local ok, err = pcall(kept.add_tools, kept, tool "late")
    assert.is_false(ok)
    has(tostring(err), "`setup` is over")
  end)

  it("cannot run its own conversation, nor be run again meanwhile", function()
    local agent, message
    agent = ah.agent { model = "demo/echo", setup = function()
      local _, err = pcall(agent.run, agent, "inside")
      message = tostring(err)
      agent:send "and this"
    end }
    assert(agent:run "x")
    has(message, "already running")
    assert.equal("x and this", texts(agent))
  end)

  it("may add to its agent as well, also where the run is in a handler", function()
    local seen = {}
    local agent
    agent = ah.agent { model = mirror(seen), setup = function()
      agent:add_tools(tool "late")
      ah.sleep(0)
    end }
    assert.equal(1, assert(agent:run "x").iterations)
    local other
    other = ah.agent { model = mirror(seen), setup = function() other:add_tools(tool "late") end }
    local ask = tool("ask", function() return assert(other:run "y").iterations end)
    local reply = assert(ah.run { model = ah.scripted { call "ask", "ok" }, tools = { ask }, "x" })
    assert.equal("1", reply.messages[3].content)
    assert.same({ "late", "late" }, { seen[1].tools, seen[2].tools })
  end)

  it("runs again for a conversation from a file, whose tools it binds without a word", function()
    local path, n = os.tmpname(), 0
    local function fields()
      return { model = calls "own",
        system = "Base.",
        setup = function(c)
          n = n + 1
          local mine = n
          c:set_system "Mine."
          c:add_tools(tool("own", function() return mine end))
        end }
    end
    local agent = ah.agent(fields())
    assert.equal("1", assert(agent:run "x").messages[4].content)
    assert(agent:save(path))
    local loaded = assert(ah.load(path, fields()))
    local before = #ah.json.decode(loaded:transcript()).entries
    assert.equal("2", assert(loaded:run "y").messages[8].content)
    local kinds = {}
    for i, entry in ipairs(ah.json.decode(loaded:transcript()).entries) do
      kinds[#kinds + 1] = i > before and entry.type or nil
    end
    os.remove(path)
    assert.equal("user assistant tool_result assistant", table.concat(kinds, " "))
  end)

  it("is told of its tools that have changed since the conversation was written", function()
    local path, warnings = os.tmpname(), {}
    local function fields(words)
      return { model = "demo/echo", log = quiet,
        on = { warning = function(e) warnings[#warnings + 1] = e.message end },
        setup = function(c) c:add_tools(ah.tool { name = "own", description = words }) end }
    end
    local agent = ah.agent(fields "One.")
    assert(agent:run "x")
    assert(agent:save(path))
    local loaded = assert(ah.load(path, fields "Two."))
    assert(loaded:run "y")
    os.remove(path)
    assert(loaded:fork():run "z")
    assert.equal(1, #warnings)
    has(warnings[1], "The definition of tool 'own' has changed")
  end)

  it("runs for a fork, and what it adds there is the fork's", function()
    local n = 0
    local agent = ah.agent { model = calls "own",
      setup = function(c)
        n = n + 1
        local mine = n
        c:add_tools(tool("own", function() return mine end))
      end }
    assert(agent:run "x")
    local fork = agent:fork()
    assert.equal("2", assert(fork:run "y").messages[7].content)
    assert.equal("1", assert(agent:run "y").messages[7].content)
    assert.equal(2, n)
    has_not(fork:transcript(), "stale")
  end)

  it("declares tools in brief where the run does", function()
    local seen = {}
    local agent = ah.agent { model = mirror(seen), brief = true, setup = function(c)
      c:add_tools(tool "own")
    end }
    assert(agent:run "x")
    assert(agent:fork():run "y")
    assert.same({ "pick_tools own", "pick_tools own" }, { seen[1].tools, seen[2].tools })
  end)

  it("sends what the same fields without it would send", function()
    local function bytes(fields)
      local sent
      fields.model = ah.scripted(function(request)
        sent = ah.json.encode(request):gsub('"time":%d+', "")
        return "ok"
      end)
      assert(ah.agent(fields):run "x")
      return sent
    end
    local a, b = tool "a", tool "b"
    assert.equal(bytes { system = "S", tools = { a, b } },
      bytes { system = "T", tools = { a }, setup = function(c)
        c:set_system "S"
        c:add_tools(b)
      end })
  end)

  it("is a field of ah.run as well", function()
    local seen = {}
    assert(ah.run { model = mirror(seen), setup = function(c) c:set_system "once" end, "x" })
    assert.equal("once", seen[1].system)
  end)
end)

-- -- at random ------------------------------------------------------------------------------------

-- Conversations are opened, forked, run, failed and closed in any order. Each keeps its own tool,
-- system text, resource and messages, whatever happens to the others.
describe("conversations of one definition", function()
  local Note = ah.type { name = "Note", fields = { text = "string" } }

  local function definition(state)
    local session = ah.session()
    session:register(Note)
    return ah.agent { session = session, log = quiet, tools = { tool "all" },
      model = ah.scripted(function(request)
        state.request = request
        return request.entries[#request.entries].type == "user" and call "own" or "ok"
      end),
      setup = function(c)
        state.setups = state.setups + 1
        local mine = "made " .. state.setups
        c:set_system(mine)
        c.resources.box = mine
        c.session:dispatch(Note { text = mine })
        c:add_tools(ah.tool { name = "own", description = "Own.", handler = function(_, ctx)
          return mine .. "|" .. ctx.resources:get "box" .. "|" .. ctx.session.Note:latest().text
        end })
        if state.random(4) == 1 then error "unlucky" end
        state.last = mine
      end }
  end

  local function step(state, live)
    local at = state.random(#live)
    local one = live[at]
    local what = state.random(10)
    if what <= 2 and #live < 8 then
      live[#live + 1] = { agent = assert(one.agent:open()), said = "" }
    elseif what == 3 and #live < 8 then
      live[#live + 1] = { agent = one.agent:fork(), said = one.said }
    elseif what == 4 and #live > 1 then
      one.agent:close()
      table.remove(live, at)
    else
      local text = "t" .. state.random(99)
      local reply = one.agent:run(text)
      if not reply then
        assert.is_nil(one.mine)
        return
      end
      one.mine = one.mine or state.last
      one.said = one.said == "" and text or one.said .. " " .. text
      assert.equal(one.mine, state.request.system)
      assert.equal(one.mine .. "|" .. one.mine .. "|" .. one.mine,
        reply.messages[#reply.messages - 1].content)
    end
    for _, other in ipairs(live) do
      assert.equal(other.said, texts(other.agent))
    end
  end

  it("never see each other", function()
    local seed = os.time()
    local rng = seed
    local state = { setups = 0, random = function(n)
      rng = (rng * 1103515245 + 12345) % 2147483648
      return rng // 65536 % n + 1
    end }
    local live = { { agent = definition(state), said = "" } }
    for i = 1, STEPS do
      local ok, why = pcall(step, state, live)
      assert(ok, ("seed %d, step %d: %s"):format(seed, i, tostring(why)))
    end
    assert.truthy(state.setups > 0)
  end)
end)
