-- The document on a registry of tools (seed 004), statement by statement: the registry, brief
-- descriptions and pick_tools, executors, and the loop detector.
local ah = require "agenthost"
local D = require "support.documents"
local sound = require "support.sound"

local tool, call, calls, turn = D.tool, D.call, D.calls, D.turn

local FULL = "Runs a command with bash and gives stdout and stderr, until it ends."

local function bash()
  return tool("bash", { description = "Run a command.", full_description = FULL,
    params = { command = "string" },
    handler = function(args) return "ran " .. args.command end })
end

local function read_file()
  return tool("read_file", { description = "Read a file.",
    params = { path = "string", first = "integer = 1" },
    handler = function(args) return ("%s from %d"):format(args.path, args.first) end })
end

local function pick(...)
  return call("pick_tools", { tools = ah.array { ... } })
end

local BASH, READ = { command = "ls" }, { path = "notes" }

local function names(list)
  local out = {}
  for i, t in ipairs(list) do
    out[i] = t.name
  end
  return out
end

describe("a registry", function()
  it("registers tools, one after the other", function()
    local registry = ah.registry():register(bash()):register(read_file())
    assert.same({ "bash", "read_file" }, registry:names())
    assert.equal(2, #registry)
    assert.is_true(registry:has "bash")
    assert.is_false(registry:has "sh")
    assert.equal("bash", registry:get("bash").name)
    assert.is_nil(registry:get "sh")
  end)

  it("registers all built-in tools", function()
    local registry = assert(ah.registry():register_all_builtin())
    assert.is_true(#registry > 3)
    assert.is_true(registry:has "bash")
    assert.is_true(registry:has "read_file")
  end)

  it("refuses a name twice, and what is no tool", function()
    local registry = ah.registry { bash() }
    assert.equal("prompt_validation", D.raised(registry.register, registry, bash()).code)
    assert.equal(1, #registry)
    for _, bad in ipairs { { name = "x" }, 7, "nobody-knows", print } do
      assert.is_false(pcall(registry.register, registry, bad))
    end
    assert.equal(1, #registry)
  end)

  it("executes a tool", function()
    local reply = ah.registry({ bash() }):execute("bash", BASH)
    assert.is_true(reply.success)
    assert.equal("ran ls", reply.content)
    assert.equal("ran ls", reply.value)
    assert.equal("ran ls", ah.registry({ bash() }):execute("bash", '{"command":"ls"}').content)
  end)

  it("executes a call as the model made it: registry.execute(call)", function()
    local registry = ah.registry { bash() }
    for _, given in ipairs { { name = "bash", arguments = BASH },
      { id = "c", name = "bash", arguments = '{"command":"ls"}' } } do
      assert.equal("ran ls", registry:execute(given).content)
    end
  end)

  it("says that it has no such tool, so that another may take the call", function()
    local reply, err = ah.registry({ bash() }):execute("bsh", {})
    assert.is_nil(reply)
    assert.equal("tool_not_found", err.code)
    assert.matches("did you mean 'bash'", err.message)
    assert.equal("bsh", err.requested_tool)
    assert.same({ "bash" }, err.available_tools)
  end)

  it("gives errors as results", function()
    local registry = ah.registry { bash(), tool("fails",
      { handler = function() error("broken", 0) end }) }
    local reply = registry:execute("bash", {})
    assert.is_false(reply.success)
    assert.equal("Tool validation failed: /command: is required", reply.content)
    assert.equal("tool_validation", reply.code)
    reply = registry:execute "fails"
    assert.equal("Tool 'fails' execution failed: broken", reply.content)
    assert.equal("internal", reply.code)
  end)

  it("serves a run: with_registry", function()
    local s = D.run({ calls("bash", BASH), "done" }, { registry = ah.registry { bash() } })
    assert.equal("bash", s:offered(1))
    assert.equal("ran ls", s:results(1))
  end)

  it("comes behind the tools of the run, a tool of both declared once", function()
    local b = bash()
    local s = D.run({ "done" }, { tools = { tool "first", b },
      registry = ah.registry { b, read_file() } })
    assert.equal("first bash read_file", s:offered(1))
    local err = D.raised(ah.run, { model = D.model {}, tools = { bash() },
      registry = ah.registry { bash() }, "Go." })
    assert.equal("prompt_validation", err.code)
  end)

  it("reaches a run that is at work: tools change in mid-conversation", function()
    for _, mode in ipairs { "append", "inline", "restart" } do
      local registry = ah.registry { bash() }
      registry:register(tool("grow", { handler = function() registry:register(read_file()) end }))
      local s = D.run({ calls "grow", calls("read_file", READ), "done" },
        { mode = mode, registry = registry })
      assert.equal("notes from 1", s:results(2))
      assert.same({ "read_file" }, s.reply.injected_tools)
      sound.check(s.reply:transcript())
    end
  end)

  it("gives what the model is told, brief until it is picked", function()
    local registry = ah.registry { bash(), read_file() }
    local function told()
      local by = {}
      for _, t in ipairs(registry:tools_for_llm()) do
        by[t.name] = { t.description, next(t.parameters.properties) ~= nil }
      end
      return by
    end
    assert.same({ bash = { "Run a command.", false }, read_file = { "Read a file.", false } },
      told())
    assert.equal(registry, registry:pick "bash")
    assert.same({ bash = { FULL, true }, read_file = { "Read a file.", false } }, told())
    registry:pick { "bash", "read_file" }
    assert.same({ bash = { FULL, true }, read_file = { "Read a file.", true } }, told())
    assert.equal(registry, registry:clear_picked())
    assert.same({ bash = { "Run a command.", false }, read_file = { "Read a file.", false } },
      told())
    assert.equal("tool_not_found", D.raised(registry.pick, registry, "bsh").code)
  end)

  it("names the methods of the document where ours are called otherwise", function()
    local registry = ah.registry { bash() }
    local err = D.raised(function() return registry:get_tools_for_llm() end)
    assert.truthy(tostring(err):find("tools_for_llm", 1, true), tostring(err))
    assert.is_false(pcall(function() return registry:no_such_method() end))
  end)

  it("takes its tools in the order of their names' first coming", function()
    local registry = ah.registry { bash(), read_file() }
    registry:replace(tool("bash", { description = "Another." }))
    assert.same({ "bash", "read_file" }, names(registry:tools_for_llm()))
    assert.equal("Another.", registry:tools_for_llm()[1].description)
    assert.is_true(registry:remove "bash")
    assert.is_false(registry:remove "bash")
  end)
end)

describe("executors", function()
  it("take the calls that the registry does not", function()
    local s = D.run({ turn(call("bash", BASH), call("other", { n = 1 })), "done" }, {
      registry = ah.registry { bash() },
      executors = { other = function(args) return "other " .. args.n end,
        bash = function() return "never" end },
    })
    assert.same({ "ran ls", "other 1" }, s:results())
  end)

  it("take those of a tool without a handler, checked as it says", function()
    local weather = ah.tool { name = "weather", description = "W.", params = { city = "string" } }
    local s = D.run({ turn(call("weather", { city = "Paris" }), call "weather"), "done" },
      { tools = { weather }, executors = { weather = function(args) return args.city end } })
    assert.same({ "Paris", "Tool validation failed: /city: is required" }, s:results())
  end)

  it("that fail are results", function()
    local s = D.run({ turn(call "a", call "b"), "done" }, { executors = {
      a = function() error("broken", 0) end, b = function() return nil, "not today" end } })
    assert.same({ "Tool 'a' execution failed: broken", "not today" }, s:results())
    assert.equal("done", s.reply.text)
  end)

  it("must be functions by the names of tools", function()
    for _, bad in ipairs { { x = 1 }, { ["no name"] = print }, { print } } do
      assert.is_false(pcall(ah.run, { model = D.model {}, executors = bad, "Go." }))
    end
    local err = D.raised(ah.run, { model = D.model {}, tool_executors = {}, "Go." })
    assert.truthy(err.message:find("'executors'", 1, true), err.message)
  end)
end)

describe("the desired flow", function()
  it("is the document's: brief, pick, full, call", function()
    local s = D.run({ turn(pick("bash", "read_file")),
      turn(call("bash", BASH), call("read_file", READ)), "done" },
      { mode = "inline", brief = true, tools = { bash(), read_file() } })
    assert.equal("bash read_file pick_tools", s:offered(1))
    for _, t in ipairs(s.requests[1].tools) do
      if t.name ~= "pick_tools" then
        assert.same({ type = "object", properties = {} }, { type = t.parameters.type,
          properties = t.parameters.properties })
      end
    end
    assert.equal("Run a command.", D.declared(s.requests[1], "bash").description)
    assert.equal("Selected bash, read_file. Full specs available next turn.", s:results(1))
    local all = ah.json.encode(s.requests[2])
    assert.truthy(all:find(FULL, 1, true))
    assert.truthy(all:find('"command"', 1, true))
    assert.same({ "ran ls", "notes from 1" }, { s:results(2), s:results(3) })
    assert.equal("done", s.reply.text)
  end)

  it("gives the model the full specification in every mode", function()
    for _, mode in ipairs { "append", "inline", "reference", "additional_tools", "search_pair",
      "list_changed", "restart" } do
      local s = D.run({ turn(pick "bash"), calls("bash", BASH), "done" },
        { mode = mode, brief = true, tools = { bash(), read_file() } })
      local all = ah.json.encode(s.requests[2])
      assert.truthy(all:find(FULL, 1, true), mode)
      assert.equal("ran ls", s:results(2))
      assert.matches("^Selected bash%. Full specs available next turn%.", s:results(1))
    end
  end)

  it("keeps pick_tools to the end", function()
    local s = D.run({ turn(pick "bash"), turn(pick "read_file"), "done" },
      { mode = "inline", brief = true, tools = { bash(), read_file() } })
    assert.truthy(s:offered(3):find "pick_tools")
    assert.same({ "Selected bash. Full specs available next turn.",
      "Selected read_file. Full specs available next turn." },
      s:results())
  end)

  it("works with a registry, and with sections", function()
    local s = D.run({ turn(pick("bash", "read_file")), turn(call("bash", BASH)), "done" },
      { mode = "inline", brief = true,
      registry = ah.registry { bash() }, ah.section { key = "files", template = "F.",
        tools = { read_file() } } })
    assert.equal("Selected bash, read_file. Full specs available next turn.", s:results(1))
    assert.equal("ran ls", s:results(2))
  end)

  it("keeps all messages and needs no call of the model of its own", function()
    local s = D.run({ turn(pick "bash"), calls("bash", BASH), "done" },
      { mode = "restart", brief = true, tools = { bash() } })
    assert.equal(3, s.reply.iterations)
    assert.equal(6, #s.reply.messages - (s.reply.messages[1].role == "system" and 1 or 0))
    sound.check(s.reply:transcript())
  end)
end)

describe("pick_tools", function()
  it("is declared as the document has it", function()
    local s = D.run({ "done" }, { brief = true, tools = { bash() } })
    local declared = D.declared(s.requests[1], "pick_tools")
    assert.equal("Select tools to get their full specifications",
      (declared.description:gsub("%.$", "")))
    local tools = declared.parameters.properties.tools
    assert.equal("array", tools.type)
    assert.equal("string", tools.items.type)
    assert.is_nil(tools.items.enum)
    assert.equal("Tool names to select", (tools.description:gsub("%.$", "")))
    assert.same({ "tools" }, declared.parameters.required)
  end)

  it("is not there without brief", function()
    local s = D.run({ turn(pick "bash"), "done" }, { tools = { bash() } })
    assert.equal("bash", s:offered(1))
    assert.is_false(s:successes()[1])
  end)

  it("says what is selected already, unknown, or nothing", function()
    local s = D.run({ turn(pick "bash"), turn(pick "bash", pick("read_file", "foo"), pick "bsh",
      pick()), "done" },
      { mode = "inline", brief = true, tools = { bash(), read_file() } })
    assert.equal("Already selected: bash.", s:results(2))
    assert.equal("Selected read_file. Full specs available next turn. Unknown tools: foo.",
      s:results(3))
    assert.equal("Unknown tools: bsh (did you mean 'bash'?).", s:results(4))
    assert.same({ true, true, true, false, false }, s:successes())
  end)

  it("takes a name twice as one", function()
    local s = D.run({ turn(pick("bash", "bash")), "done" },
      { mode = "inline", brief = true, tools = { bash() } })
    assert.equal("Selected bash. Full specs available next turn.", s:results(1))
  end)

  it("refuses arguments that are none", function()
    local s = D.run({ turn(call "pick_tools", call("pick_tools", { tools = "bash" }),
      call("pick_tools", { tools = { 7 } }),
      call("pick_tools", { tools = ah.null }), call("pick_tools", { names = { "bash" } }),
        call("pick_tools", "x")), "done" },
      { brief = true, tools = { bash() } })
    assert.same({ false, false, false, false, false, false }, s:successes())
    assert.equal("done", s.reply.text)
  end)

  it("cannot be declared by anybody else", function()
    local err = D.raised(function()
      return ah.run { model = D.model {}, brief = true, tools = { tool "pick_tools" }, "Go." }
    end)
    assert.equal("prompt_validation", err.code)
  end)

  it("leaves a call that is right to run without a pick, and helps with one that is not", function()
    local s = D.run({ turn(call("bash", BASH), call "read_file"), "done" },
      { mode = "inline", brief = true, tools = { bash(), read_file() } })
    assert.equal("ran ls", s:results(1))
    assert.equal('Tool validation failed: /path: is required. '
      .. 'Call pick_tools with {"tools":["read_file"]} for its full specification.', s:results(2))
  end)

  it("has its picks cleared at the end of the run, unless they are kept", function()
    for keep, said in pairs { [false] = "^Selected bash", [true] = "^Already selected: bash" } do
      local turns = { turn(pick "bash"), "one" }
      local agent = D.agent(turns, { mode = "inline", brief = true, keep_picked = keep,
        tools = { bash() } })
      assert(agent:run "First.")
      turns[1], turns[2] = turn(pick "bash"), "two"
      local reply = assert(agent:run "Again.")
      assert.matches(said, reply.messages[#reply.messages - 1].content)
    end
  end)

  it("begins in full with what the registry has picked", function()
    local registry = ah.registry { bash(), read_file() }
    registry:pick "bash"
    local s = D.run({ "done" }, { brief = true, registry = registry })
    assert.equal(FULL, D.declared(s.requests[1], "bash").description)
    assert.equal("Read a file.", D.declared(s.requests[1], "read_file").description)
  end)

  it("is known to a fork and after a file", function()
    local turns = { turn(pick "bash"), "one" }
    local agent, _, fields = D.agent(turns, { mode = "inline", brief = true, keep_picked = true,
      tools = { bash() } })
    assert(agent:run "First.")
    local path = os.tmpname()
    assert(agent:save(path))
    local loaded = assert(ah.load(path,
      { model = fields.model, brief = true, keep_picked = true, tools = { bash() },
        log = D.nothing }))
    os.remove(path)
    for _, a in ipairs { agent:fork(), loaded } do
      turns[1], turns[2] = turn(pick "bash"), "two"
      local reply = assert(a:run "Again.")
      assert.equal("Already selected: bash.", reply.messages[#reply.messages - 1].content)
    end
  end)

  it("picks what came in mid-conversation", function()
    local s = D.run({ calls "grow", turn(pick "bash"), calls("bash", BASH), "done" },
      { mode = "inline", brief = true,
      tools = { tool("grow", { handler = function(_, ctx) ctx:add_tools(bash()) end }) } })
    assert.equal("Selected bash. Full specs available next turn.", s:results(2))
    assert.equal("ran ls", s:results(3))
  end)

  it("in the same answer as the call it is for", function()
    local s = D.run({ turn(pick "bash", call("bash", BASH)), "done" },
      { mode = "restart", brief = true, tools = { bash() } })
    assert.equal("ran ls", s:results(2))
  end)

  it("goes by the full description, of which the brief one is 200 characters at most", function()
    assert.equal("prompt_validation", D.raised(tool, "t",
      { full_description = ("x"):rep(16385) }).code)
    assert.truthy(tool("t", { full_description = ("é"):rep(8192) }))
    local s = D.run({ "done" }, { tools = { bash() } })
    assert.equal(FULL, D.declared(s.requests[1], "bash").description)
  end)
end)

describe("the detector of loops", function()
  local function same(n, fields, more)
    local turns = {}
    for i = 1, n do
      turns[i] = more and more(i) or calls("t", { n = 1, m = 2 })
    end
    turns[n + 1] = "done"
    fields = fields or {}
    fields.tools = { tool("t", { params = { n = "integer?", m = "integer?" } }) }
    return D.run(turns, fields)
  end

  it("warns of the fourth and fifth same call, and ends at the sixth", function()
    local s = same(3)
    assert.equal("done", s.reply.text)
    assert.same({}, s:of "warning")
    s = same(5)
    assert.equal("done", s.reply.text)
    assert.equal(2, #s:of "warning")
    assert.equal("t", s:results(3))
    assert.are_not.equal("t", s:results(4))
    s = same(6)
    assert.equal("loop_detected", s.err.code)
    sound.check(s.err.reply:transcript())
  end)

  it("does not mind the order of the arguments' members", function()
    local s = same(6, nil, function(i)
      return calls("t", i % 2 == 0 and '{"n":1,"m":2}' or '{ "m": 2, "n": 1 }')
    end)
    assert.equal("loop_detected", s.err.code)
  end)

  it("tells other arguments apart", function()
    local s = same(9, nil, function(i) return calls("t", { n = i }) end)
    assert.equal("done", s.reply.text)
    assert.same({}, s:of "warning")
  end)

  it("sees patterns of two and three", function()
    for _, length in ipairs { 2, 3 } do
      local s = same(18, nil, function(i) return calls("t", { n = i % length }) end)
      assert.equal("loop_detected", s.err.code)
    end
  end)

  it("can be told of exempt tools, other numbers, or none", function()
    assert.equal("done", same(9, { loop_detector = false }).reply.text)
    assert.equal("done", same(9, { loop_detector = { exempt = { "t" } } }).reply.text)
    assert.equal("loop_detected", same(3, { loop_detector = { warn = 2, stop = 3 } }).err.code)
  end)

  it("sees the calls of one answer as well", function()
    local c = call("t", { n = 1 })
    local s = same(1, nil, function() return turn(c, c, c, c, c, c) end)
    assert.equal("loop_detected", s.err.code)
  end)

  it("counts anew in each run", function()
    local turns = {}
    local agent = D.agent(turns, { tools = { tool "t" } })
    for _ = 1, 3 do
      for i = 1, 3 do
        turns[i] = calls "t"
      end
      turns[4] = "done"
      assert.equal("done", assert(agent:run "Go.").text)
    end
  end)
end)

describe("the example usage", function()
  it("has content and calls told as they come", function()
    local said, called = {}, {}
    local reply = assert(ah.run {
      model = D.model { calls("bash", BASH), { text = { "Two ", "files." } } },
      registry = ah.registry { bash() },
      log = D.nothing,
      on = {
        content = function(e) said[#said + 1] = e.text end,
        tool_calls = function(e)
          for _, c in ipairs(e.calls) do
            called[#called + 1] = ("Calling: %s with %s"):format(c.name, c.arguments)
          end
        end,
      },
      "List files in current directory",
    })
    assert.same({ "Two ", "files." }, said)
    assert.same({ 'Calling: bash with {"command":"ls"}' }, called)
    assert.equal("Two files.", reply.text)
  end)

  it("gives content, usage, all calls and rounds", function()
    local s = D.run({ { calls = { call("bash", BASH, "c1"), call("read_file", READ, "c2") },
      usage = { input = 10, output = 2 } }, { text = "done", usage = { input = 20, output = 3 } } },
      { tools = { bash(), read_file() } })
    assert.equal("done", s.reply.text)
    assert.equal(1, s.reply.rounds)
    assert.equal(30, s.reply.usage.input)
    assert.equal(5, s.reply.usage.output)
    assert.equal(2, s.reply.tool_calls)
    local all = s.reply.all_tool_calls
    assert.same({ "bash", "read_file" }, names(all))
    assert.same({ '{"command":"ls"}', '{"path":"notes"}' }, { all[1].arguments, all[2].arguments })
    assert.equal(s.reply.messages[2].tool_calls[1].id, all[1].id)
  end)

  it("lists the calls of this run alone, those that were refused included", function()
    local turns = { turn(call "t", call "nobody"), "one" }
    local agent = D.agent(turns, { tools = { tool "t" } })
    assert.same({ "t", "nobody" }, names(assert(agent:run "First.").all_tool_calls))
    turns[1] = "two"
    assert.same({}, assert(agent:run "Again.").all_tool_calls)
    turns[1], turns[2] = calls "t", "three"
    assert.same({ "t" }, names(assert(agent:run "Again.").all_tool_calls))
  end)

  it("has hints for the document's words", function()
    for word, ours in pairs { with_registry = "registry", withRegistry = "registry",
      tool_executors = "executors",
      on_content = "on", onContent = "on", on_tool_calls = "on", onToolCalls = "on",
        brief_descriptions = "brief" } do
      local err = D.raised(ah.run, { model = D.model {}, [word] = true, "Go." })
      assert.truthy(err.message:find("'" .. ours .. "'", 1, true), err.message)
    end
    for word, ours in pairs { brief = "description", full = "full_description",
      fullDescription = "full_description" } do
      local err = D.raised(tool, "t", { [word] = "x" })
      assert.truthy(err.message:find("'" .. ours .. "'", 1, true), err.message)
    end
  end)
end)
