-- Handoffs: another agent goes on with a conversation, by its system text, tools, model and
-- policies; kept by forks and files.
local ah = require "agenthost"
local results = require "support.results"
local sound = require "support.sound"

local function call(name, arguments)
  return { calls = { { name = name, arguments = arguments } } }
end

local function tool(name, handler, more)
  local def = { name = name, description = "Does it.", handler = handler or function()
    return "did " .. name
  end }
  for k, v in pairs(more or {}) do
    def[k] = v
  end
  return ah.tool(def)
end

--- Returns "system|tools" of a request.
local function seen(request)
  local names = {}
  for i, t in ipairs(request.tools) do
    names[i] = t.name
  end
  return (request.system or "-") .. "|" .. table.concat(names, " ")
end

--- An adapter that answers with the turns, in order, and notes what it sees.
local function model(log, turns, more)
  local n = 0
  local def = { answer = function(request)
    n = n + 1
    log[#log + 1] = seen(request)
    local turn = turns[n] or "done"
    return type(turn) == "function" and turn(request) or turn
  end }
  for k, v in pairs(more or {}) do
    def[k] = v
  end
  return ah.scripted(def)
end

--- Two agents, front and back, of which each hands over to the other.
local function pair(log, front_turns, back_turns, more)
  local front
  local back = ah.agent { name = "back", system = "Back.", model = model(log, back_turns or {}),
    tools = { tool "look", ah.handoff { to = function() return front end, name = "return",
      when = "Nothing is left to do." } } }
  local def = { name = "front", system = "Front.", model = model(log, front_turns),
    tools = { tool "ask", ah.handoff { to = back, when = "Something is to be looked at." } } }
  for k, v in pairs(more or {}) do
    def[k] = v
  end
  front = assert(ah.agent(def))
  return front, back
end

local FRONT, BACK = "Front.|ask handoff_to_back", "Back.|look return"

describe("ah.handoff", function()
  it("lets another agent go on with the conversation in the same run", function()
    local log, events = {}, {}
    local front = pair(log, { call "handoff_to_back" }, { call "look", "looked" }, {
      on = function(e) events[#events + 1] = e.type == "handoff" and e or nil end })
    local reply = assert(front:run "go")
    assert.equal("looked", reply.text)
    assert.equal("back", reply.agent)
    assert.same({ FRONT, BACK, BACK }, log)
    assert.equal(1, #events)
    assert.same({ "front", "back", "handoff_to_back" },
      { events[1].from, events[1].to, events[1].name })
    assert.matches("handed over to back", results(reply)[1], 1, true)
    sound.check(reply:transcript())
  end)

  it("holds for the runs after it, until it is handed back", function()
    local log = {}
    local front = pair(log, { call "handoff_to_back", "front again", call "handoff_to_back" },
      { "one", "two", call "return", "three" })
    for i, expected in ipairs { "one back", "two back", "front again front", "three back" } do
      local reply = assert(front:run("go " .. i))
      assert.equal(expected, reply.text .. " " .. reply.agent)
      sound.check(reply:transcript())
    end
    assert.same({ FRONT, BACK, BACK, BACK, FRONT, FRONT, BACK }, log)
  end)

  it("says what it costs of the cache, and nothing where nothing changes", function()
    local function reasons(text, other)
      local list = {}
      local back = ah.agent { name = "back", model = other, system = text }
      assert(ah.run { system = "Same.", tools = { ah.handoff { to = back, when = "Now." } },
        model = ah.scripted { call "handoff_to_back", "x" },
        on = { cache_break = function(e) list[#list + 1] = e.reason end }, "go" })
      return list
    end
    assert.equal(1, #reasons("Other.", ah.scripted { "done" }))
    assert.same({ "model_changed" }, reasons("Same.", "demo/echo"))
  end)

  it("runs the tools of the active agent where names are equal", function()
    local back = ah.agent { name = "back", model = ah.scripted { call "look", "done" },
      tools = { tool("look", function() return "back looked" end) } }
    local reply = assert(ah.run { model = ah.scripted { call "look", call "handoff_to_back" },
      tools = { tool("look", function() return "front looked" end),
        ah.handoff { to = back, when = "Now." } }, "go" })
    local list = results(reply)
    assert.equal("front looked", list[1])
    assert.equal("back looked", list[3])
  end)

  it("leaves a tool that both have where it is", function()
    local shared, removed = tool "shared", {}
    local back = ah.agent { name = "back", model = ah.scripted { call "shared" , "done" },
      tools = { shared } }
    local reply = assert(ah.run { model = ah.scripted { call "handoff_to_back" },
      on = { tools_removed = function(e) removed = e.tool_names end },
      tools = { shared, ah.handoff { to = back, when = "Now." } }, "go" })
    assert.equal("did shared", results(reply)[2])
    assert.same({ "handoff_to_back" }, removed)
  end)

  it("does not run the calls behind it in the same answer", function()
    local back = ah.agent { name = "back", model = "demo/echo" }
    local other = ah.agent { name = "other", model = "demo/echo" }
    local reply = assert(ah.run { model = ah.scripted { { calls = { { name = "ask" },
      { name = "handoff_to_back" }, { name = "ask" }, { name = "handoff_to_other" } } } },
      tools = { tool("ask", nil, { parallel = true }), ah.handoff { to = back, when = "Now." },
        ah.handoff { to = other, when = "Then." } }, "go" })
    local list = results(reply)
    assert.equal("did ask", list[1])
    for i = 3, 4 do
      assert.matches("was not run: a call before it has handed", list[i], 1, true)
    end
    assert.equal("back", reply.agent)
    sound.check(reply:transcript())
  end)

  it("goes on with a model of another provider", function()
    local server = require "support.server"
    local s <close> = server.start { responses = { server.chat_text "from the wire" } }
    local back = ah.agent { name = "back", model = "openai/m", base_url = s.url, api_key = "k",
      system = "Wire." }
    local reply = assert(ah.run { model = ah.scripted { call "handoff_to_back" }, system = "Front.",
      tools = { ah.handoff { to = back, when = "Now." } }, "go" })
    assert.equal("from the wire", reply.text)
    sound.check(reply:transcript())
  end)

  it("is an error for the model to the active agent itself", function()
    local self
    self = ah.agent { name = "self", model = ah.scripted { call "again", "stays" },
      tools = { ah.handoff { to = function() return self end, name = "again", when = "Now." } } }
    local reply = assert(self:run "go")
    assert.matches("active already", results(reply)[1], 1, true)
    assert.equal("stays", reply.text)
    assert.equal("self", reply.agent)
  end)

  it("ends after 10 in a run, with an error for the model", function()
    local front, said
    local function again(name)
      return function(request)
        local last = request.entries[#request.entries]
        if last.type == "tool_result" and not last.success then
          said = last.content
          return "enough"
        end
        return call(name)
      end
    end
    local back = ah.agent { name = "back", model = ah.scripted(again "return"),
      tools = { ah.handoff { to = function() return front end, name = "return", when = "R." } } }
    local n = 0
    front = ah.agent { name = "front", model = ah.scripted(again "handoff_to_back"),
      on = { handoff = function() n = n + 1 end }, max_iterations = 50, loop_detector = false,
      tools = { ah.handoff { to = back, when = "H." } } }
    local reply = assert(front:run "go")
    assert.equal("enough", reply.text)
    assert.equal(10, n)
    assert.matches("most handoffs (10)", said, 1, true)
    assert.equal("front", reply.agent)
    n = 0
    assert(front:run "again")
    assert.equal(10, n)
  end)

  it("obeys the policies of both agents", function()
    local asked = {}
    local function policy(who, denied)
      return function(c)
        asked[#asked + 1] = who .. " " .. c.name
        return c.name == denied and "deny" or "allow", who .. " says no"
      end
    end
    local back = ah.agent { name = "back", policies = { policy("back", "rm") },
      tools = { tool "rm", tool "ls" }, model = ah.scripted { call "rm", call "ls", "done" } }
    local front = ah.agent { name = "front", policies = { policy("front", "ls") },
      tools = { ah.handoff { to = back, when = "Now." } },
      model = ah.scripted { call "handoff_to_back" } }
    local list = results(assert(front:run "go"))
    assert.matches("back says no", list[2], 1, true)
    assert.matches("front says no", list[3], 1, true)
    assert.same({ "front handoff_to_back", "back rm", "back ls", "front ls" }, asked)
  end)

  it("obeys the guards of both agents", function()
    local function guard(word)
      return { output = function(text)
        return not text:find(word), "no " .. word
      end }
    end
    for _, word in ipairs { "front", "back" } do
      local back = ah.agent { name = "b", guards = guard "back", model = ah.scripted { word } }
      local _, err = ah.run { guards = guard "front", model = ah.scripted { call "handoff_to_b" },
        tools = { ah.handoff { to = back, when = "Now." } }, "go" }
      assert.equal("guard_tripped", err and err.code)
    end
  end)

  it("is not made where a policy denies it or blocks its result", function()
    local log = {}
    for _, policy in ipairs { function(c) return c.name == "handoff_to_back" and "deny", "no" end,
      { after = function() return "block", "no" end } } do
      local front = pair(log, { call "handoff_to_back", "stays" }, {}, { policies = { policy } })
      local reply = assert(front:run "go")
      assert.equal("stays", reply.text)
      assert.equal("front", reply.agent)
    end
    assert.same({ FRONT, FRONT, FRONT, FRONT }, log)
  end)

  it("keeps the schema of the answer that the conversation has", function()
    local function schema(name)
      return { type = "object", required = { name },
        properties = { [name] = { type = "integer" } } }
    end
    local back = ah.agent { name = "back", model = ah.scripted { '{"b":1}', '{"a":1}' },
      output = schema "b" }
    local front = { model = ah.scripted { call "handoff_to_back" }, output = schema "a",
      tools = { ah.handoff { to = back, when = "Now." } }, "go" }
    assert.same({ a = 1 }, assert(ah.run(front)).value)
    back = ah.agent { name = "back", model = ah.scripted { '{"b":1}' }, output = schema "b" }
    assert.same({ b = 1 }, assert(ah.run { model = ah.scripted { call "handoff_to_back" },
      tools = { ah.handoff { to = back, when = "Now." } }, "go" }).value)
  end)

  it("works with every mode of tool changes", function()
    for _, mode in ipairs { "append", "inline", "additional_tools", "search_pair", "reference",
      "list_changed", "dispatcher", "restart" } do
      local log = {}
      local back = ah.agent { name = "back", system = "Back.", tools = { tool "look" },
        model = model(log, { call "look", "looked" }, { tool_change_mode = mode }) }
      local agent = ah.agent { system = "Front.", tools = { ah.handoff { to = back, when = "N." } },
        model = model(log, { call "handoff_to_back" }, { tool_change_mode = mode }) }
      local reply = assert(agent:run "go", mode)
      assert.equal("looked", reply.text)
      assert.equal("did look", results(reply)[2], mode)
      sound.check(reply:transcript())
    end
  end)

  it("takes sections away and gives them back", function()
    local log, front = {}, nil
    local back = ah.agent { name = "back", system = "Back.", model = model(log, { call "return" }),
      tools = { ah.handoff { to = function() return front end, name = "return", when = "R." } } }
    front = ah.agent { name = "front", model = model(log, {
      call("read_section", { section_key = "more" }), call "handoff_to_back",
      call "deep", "done", "still" }), tools = { ah.handoff { to = back, when = "H." } },
      ah.section { key = "more", title = "More", template = "All of it.", summary = "Some.",
        visibility = "summary", tools = { tool "deep" } } }
    local reply = assert(front:run "go")
    assert.equal("done", reply.text)
    assert.equal("Back.|return", log[3])
    assert.equal("did deep", results(reply)[#results(reply)])
    assert.equal("still", assert(front:run "go").text)
    sound.check(front:transcript())
    local summarised = ah.agent { name = "s", model = "demo/echo", ah.section { key = "more",
      title = "More", template = "All.", summary = "Some.", visibility = "summary" } }
    reply = assert(ah.run { model = ah.scripted { call "handoff_to_s", "stays" },
      tools = { ah.handoff { to = summarised, when = "Now." } }, "go" })
    assert.matches("summarised sections", results(reply)[1], 1, true)
    assert.equal("stays", reply.text)
  end)

  it("is an error for the model to an agent that is closed", function()
    local closed = ah.agent { name = "closed", model = "demo/echo" }
    local to_closed = ah.handoff { to = closed, when = "Now." }
    closed:close()
    local nothing = ah.handoff { to = function() end, name = "nothing", when = "Now." }
    for handoff, why in pairs { [to_closed] = "is closed", [nothing] = "must lead to an agent" } do
      local reply = assert(ah.run { model = ah.scripted { call(handoff.name), "stays" },
        tools = { handoff }, "go" })
      assert.matches(why, results(reply)[1], 1, true)
      assert.equal("stays", reply.text)
    end
  end)

  it("sets an agent up before it takes over", function()
    local log, seen_by_setup = {}, nil
    local back = ah.agent { name = "back", system = "Not this.", params = { who = "Ann" },
      model = model(log, { call "put", call "look", "done", "again" }), tools = { tool "look" },
      setup = function(conversation)
        ah.sleep(0.001)
        local helper = assert(ah.run { model = "demo/echo", "Help." })
        local basket = {}
        seen_by_setup = { #conversation.id > 0, conversation.params.who, helper.text,
          conversation.session ~= nil, conversation.resources ~= nil }
        conversation:set_system("Back, for " .. conversation.params.who .. ".")
        conversation:add_tools(tool("put", function()
          basket[#basket + 1] = "thing"
          return #basket
        end))
      end }
    local front = assert(ah.agent { name = "front", model = model(log, { call "handoff_to_back" }),
      tools = { ah.handoff { to = back, when = "Now." } } })
    local reply = assert(front:run "go")
    assert.same({ true, "Ann", "Help.", true, true }, seen_by_setup)
    assert.same({ "done", "back" }, { reply.text, reply.agent })
    assert.same({ "1", "did look" }, { results(reply)[2], results(reply)[3] })
    assert.equal("again", assert(front:run "more").text)
    assert.equal("Back, for Ann.|look put", log[2])
    assert.equal(log[2], log[#log])
    sound.check(front:transcript())
  end)

  it("stays with the first agent where the setup of the other one fails", function()
    local faults = {
      ["no database"] = function() error("no database", 0) end,
      ["not today"] = function() return nil, "not today" end,
      ["declared twice"] = function(conversation)
        conversation:add_tools { tool "put", tool "put" }
      end,
      ["must be a string"] = function(conversation) conversation:set_system(7) end,
      ["there is no 'tools'"] = function(conversation) return conversation.tools end,
      ["cannot be set"] = function(conversation) conversation.tools = {} end,
    }
    for why, setup in pairs(faults) do
      local back = ah.agent { name = "back", model = "demo/echo", setup = setup }
      local front = assert(ah.agent { name = "front", tools = { ah.handoff { to = back,
        when = "Now." } }, model = ah.scripted { call "handoff_to_back", "stays" } })
      local reply = assert(front:run "go")
      assert.matches(why, results(reply)[1], 1, true)
      assert.same({ "stays", "front" }, { reply.text, reply.agent })
      sound.check(front:transcript())
    end
  end)

  it("ends the setup of the other agent with the run", function()
    local closed = false
    local back = ah.agent { name = "back", model = "demo/echo", setup = function()
      local _ <close> = setmetatable({}, { __close = function() closed = true end })
      ah.sleep(60)
    end }
    local front = assert(ah.agent { name = "front", timeout = 0.3, tools = { ah.handoff { to = back,
      when = "Now." } }, model = ah.scripted { call "handoff_to_back", "stays" } })
    local _, err = front:run "go"
    assert.equal("deadline_exceeded", err.code)
    assert.is_true(closed)
    sound.check(front:transcript())
    assert.equal("front", assert(front:run "go").agent)
  end)

  it("undoes what a failed setup did to the session", function()
    local Count = ah.type { name = "Count", fields = { n = "integer" } }
    local session = ah.session()
    session:register(Count)
    local back = ah.agent { name = "back", model = "demo/echo", setup = function(conversation)
      conversation.session:dispatch(Count { n = 1 })
      return nil, "no"
    end }
    assert(ah.run { session = session, model = ah.scripted { call "handoff_to_back", "stays" },
      tools = { ah.handoff { to = back, when = "Now." } }, "go" })
    assert.same({}, session[Count]:all())
  end)

  it("sets the active agent up again for a loaded conversation", function()
    local path, n = os.tmpname(), 0
    local function agents()
      local back = ah.agent { name = "back", model = ah.scripted { call "put", "done" },
        setup = function(conversation)
          n = n + 1
          local of = n
          conversation:add_tools(tool("put", function() return of end))
        end }
      return { name = "front", model = ah.scripted { call "handoff_to_back" },
        tools = { ah.handoff { to = back, when = "Now." } } }
    end
    local front = assert(ah.agent(agents()))
    assert.equal("1", results(assert(front:run "go"))[2])
    assert(front:save(path))
    local later = assert(ah.load(path, agents()))
    assert.equal("2", results(assert(later:run "more"))[3])
    sound.check(later:transcript())
    os.remove(path)
  end)

  it("is kept by forks, which go on by themselves", function()
    local log = {}
    local front = pair(log, { call "handoff_to_back", "front" }, { "one", "fork", call "return" })
    assert(front:run "go")
    local fork = front:fork()
    local reply = assert(fork:run "go")
    assert.same({ "fork", "back" }, { reply.text, reply.agent })
    assert.equal("front", assert(front:run "go").agent)
    assert.equal("back", assert(fork:run "go").agent)
    front:close()
    collectgarbage()
    assert.equal("back", assert(fork:run "go").agent)
    assert.same({ FRONT, BACK, BACK, BACK, FRONT, BACK, BACK }, log)
  end)

  it("is not half in a fork that is made meanwhile", function()
    local function agent_of_fork(place)
      local front, fork, said
      local function take(at)
        if at == place and not fork then
          said = select(2, pcall(function() fork = front:fork() end))
        end
      end
      local log = {}
      local back = ah.agent { name = "back", system = "Back.", model = model(log, {}),
        setup = function() take "setup" end }
      front = ah.agent { name = "front", system = "Front.",
        model = model(log, { call "handoff_to_back" }),
        tools = { ah.handoff { to = back, when = "Now." } },
        policies = { { after = function() take "after" end } },
        on = function(e) take(e.type) end }
      assert.equal("back", assert(front:run "go").agent)
      if fork then
        local reply = assert(fork:run "and?")
        sound.check(reply:transcript())
        return reply.agent .. " " .. log[#log]
      end
      return said.message
    end
    for _, place in ipairs { "tool_started", "setup", "after", "tools_removed" } do
      assert.equal("front Front.|handoff_to_back", agent_of_fork(place))
    end
    assert.equal("back Back.|", agent_of_fork "done")
    for _, place in ipairs { "handoff", "tool_invoked" } do
      assert.matches("not complete before the end of the turn", agent_of_fork(place), 1, true)
    end
  end)

  it("is kept by files, with the tools and the policies of the active agent", function()
    local path, log, denied = os.tmpname(), {}, 0
    local function agents()
      local back = ah.agent { name = "back", system = "Back.", tools = { tool "look" },
        policies = { function() denied = denied + 1 return "deny", "no" end },
        model = model(log, { call "look", "done" }) }
      return { name = "front", system = "Front.", model = model(log, { call "handoff_to_back" }),
        tools = { tool("look", function() error "not reached" end),
          { ah.handoff { to = back, when = "Now." } } } }
    end
    local front = assert(ah.agent(agents()))
    assert(front:run "go")
    assert(front:save(path))
    local later = assert(ah.load(path, agents()))
    local reply = assert(later:run "more")
    assert.equal("back", reply.agent)
    assert.equal(2, denied)
    assert.same({ "Front.|look handoff_to_back", "Back.|look", "Back.|look", "Back.|look",
      "Back.|look" }, log)
    sound.check(reply:transcript())
    local _, err = ah.load(path, { model = "demo/echo" })
    assert.equal("usage", err.code)
    assert.matches("handoff_to_back", err.message, 1, true)
    os.remove(path)
  end)

  it("settles where the run ends with it", function()
    local log, front = {}, nil
    front = pair(log, { call "handoff_to_back", "not reached" }, { "back" }, {
      on = { handoff = function() front:cancel() end } })
    local _, err = front:run "go"
    assert.equal("cancelled", err.code)
    sound.check(front:transcript())
    assert.equal("back", assert(front:run "go").agent)
  end)

  it("cannot be called by a program", function()
    local back = ah.agent { name = "back", model = "demo/echo" }
    local registry = ah.registry { ah.handoff { to = back, when = "Now." } }
    local said
    local reply = assert(ah.run { model = ah.scripted { call "outer", "done" }, tools = {
      tool("outer", function() said = registry:execute("handoff_to_back").content end) }, "go" })
    assert.matches("only a model", said, 1, true)
    assert.is_nil(reply.agent)
  end)

  it("refuses wrong fields at once", function()
    local nameless = ah.agent { model = "demo/echo" }
    for fields, why in pairs {
      [{ when = "Now." }] = "to", [{ to = nameless }] = "when", [{ to = 3, when = "N." }] = "agent",
      [{ to = nameless, when = "Now." }] = "field 'name' is missing",
      [{ to = function() end, when = "Now." }] = "field 'name' is missing",
      [{ to = nameless, when = "Now.", name = "A B" }] = "name",
      [{ to = nameless, wen = "Now." }] = "did you mean 'when'",
    } do
      local ok, err = pcall(ah.handoff, fields)
      assert.is_false(ok)
      assert.matches(why, tostring(err), 1, true)
    end
  end)
end)
