-- ah.registry, ah.tool_group, executors, and brief declarations with pick_tools (seed 004).
local ah = require "agenthost"
local told = require "support.told"
local sound = require "support.sound"

local function tool(name, handler, more)
  local t = { name = name, description = "Brief of " .. name .. ".",
    full_description = "All there is to say of " .. name .. ".", params = { text = "string" },
    handler = handler == nil and function(args) return name .. ": " .. args.text end
      or handler or nil }
  for key, value in pairs(more or {}) do
    t[key] = value
  end
  return ah.tool(t)
end

local function names(list)
  local out = {}
  for i, t in ipairs(list) do
    out[i] = t.name
  end
  return table.concat(out, " ")
end

local function call(name, arguments)
  return { name = name, arguments = arguments }
end

local function pick(...)
  return call("pick_tools", { tools = ah.array { ... } })
end

-- Returns the results of a run's calls, in order.
local function results(reply)
  local out = {}
  for _, message in ipairs(reply.messages) do
    if message.role == "tool" then
      out[#out + 1] = message.content
    end
  end
  return out
end

local function quiet(fields)
  fields.log = function() end
  return fields
end

local function raised(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return tostring(err)
end

local EMPTY = { type = "object", properties = ah.object {} }

describe("a registry", function()
  it("keeps tools in the order in which they were registered", function()
    local a, b, c = tool "a", tool "b", tool "c"
    local registry = ah.registry { c }
    assert.equal(registry, registry:register(a):register_all { b })
    assert.same({ "c", "a", "b" }, registry:names())
    assert.equal(3, #registry)
    assert.equal("registry, 3 tools", tostring(registry))
    assert.is_true(registry:has "a")
    assert.is_false(registry:has "d")
    assert.equal(a, registry:get "a")
    assert.is_nil(registry:get "d")
  end)

  it("refuses a second tool of a name, and takes it with replace, in the same place", function()
    local registry = ah.registry { tool "a", tool "b" }
    local second = tool("a", function() return "second" end)
    assert.matches("prompt_validation: .*_spec.lua:%d+: registry: tool 'a' is declared twice",
      raised(registry.register, registry, second))
    assert.equal(registry, registry:replace(second))
    assert.same({ "a", "b" }, registry:names())
    assert.equal(second, registry:get "a")
    assert.is_true(registry:remove "a")
    assert.is_false(registry:remove "a")
    assert.same({ "b" }, registry:names())
    assert.same({ "a", "b" }, registry:register(second):names())
  end)

  it("says what it takes", function()
    local registry = ah.registry()
    assert.matches("expected a tool made by ah.tool, found table",
      raised(registry.register, registry, {}))
    assert.matches("registry:register_all: tools%[1%] must be made by ah.tool, found number",
      raised(registry.register_all, registry, { 1 }))
    assert.matches("field 'registry' must be made by ah.registry, found a table",
      raised(ah.run, { model = "demo/echo", registry = {}, "x" }))
  end)

  it("gives what a model is told: in brief until it is picked", function()
    local registry = ah.registry { tool "a", tool "b" }
    assert.same({ name = "a", description = "Brief of a.", parameters = EMPTY },
      registry:tools_for_llm()[1])
    assert.equal(registry, registry:pick { "a" })
    assert.same(tool("a").spec, registry:tools_for_llm()[1])
    assert.equal("Brief of b.", registry:tools_for_llm()[2].description)
    registry:pick("b"):pick("b")
    assert.same(tool("b").spec, registry:tools_for_llm()[2])
    registry:replace(tool "b")
    assert.equal("Brief of b.", registry:tools_for_llm()[2].description)
    registry:clear_picked()
    assert.equal("Brief of a.", registry:tools_for_llm()[1].description)
    assert.matches("tool_not_found: .*no tool 'c'", raised(registry.pick, registry, "c"))
  end)

  it("takes the built-in tools, and tells why there is one that cannot be made", function()
    local registry = ah.registry()
    assert.same({ "list_files", "grep" },
      registry:register_all_builtin({ "grep", "list_files" }):names())
    local all = ah.registry():register_all_builtin():names()
    for i, built in ipairs(ah.builtin()) do
      assert.equal(built.name, all[i])
    end
    assert.equal(#ah.builtin(), #all)
    assert.matches("did you mean 'grep'",
      raised(registry.register_all_builtin, registry, { "grpe" }))
    assert.matches("'grep' is declared twice",
      raised(registry.register_all_builtin, registry, { "grep" }))
    local before = rawget(ah, "builtin")
    rawset(ah, "builtin", function() return nil, "no such sandbox here" end)
    local got, err = registry:register_all_builtin { bash = { sandbox = "landlock" } }
    rawset(ah, "builtin", before)
    assert.is_nil(got)
    assert.equal("no such sandbox here", err)
    assert.equal(2, #registry)
  end)
end)

describe("registry:execute", function()
  it("gives the reply of the call, with the very value", function()
    local made = setmetatable({ n = 1 }, {})
    local registry = ah.registry { tool("a", function() return ah.ok(made, "Here.") end),
      tool("none", function() end) }
    local reply = assert(registry:execute("a", { text = "x" }))
    assert.same({ success = true, content = 'Here.\n\n{"n":1}', value = made }, reply)
    assert.equal(made, reply.value)
    assert.equal(getmetatable(made), getmetatable(reply.value))
    assert.same("OK", registry:execute("none", '{"text":"x"}').content)
  end)

  it("tells failures as answers, and what is no answer as an error", function()
    local registry = ah.registry {
      tool("raises", function() error "broken" end),
      tool("slow", function() ah.sleep(10) end, { timeout = 0.01 }),
      tool("leaves", function() error(ah.error { code = "budget_exceeded",
        message = "no more" }) end),
      tool("declared", false),
    }
    assert.same({ success = false, code = "tool_validation",
      content = "Tool validation failed: /text: is required" }, registry:execute("raises"))
    assert.same({ success = false, code = "internal",
      content = "Tool 'raises' execution failed: broken" }, registry:execute("raises",
        { text = "x" }))
    local late = registry:execute("slow", { text = "x" })
    assert.equal("deadline_exceeded", late.code)
    assert.matches("did not finish within 0.01 seconds", late.content)
    assert.matches("it has no handler", registry:execute("declared", { text = "x" }).content)
    local reply, err = registry:execute("leaves", { text = "x" })
    assert.is_nil(reply)
    assert.equal("budget_exceeded", err.code)
    reply, err = registry:execute("raise", {})
    assert.is_nil(reply)
    assert.equal("tool_not_found: the registry has no tool 'raise'; did you mean 'raises'?",
      tostring(err))
    assert.matches("usage: .*registry:execute: arguments", raised(registry.execute, registry,
      "raises", "{"))
  end)

  it("is part of the call whose handler makes it", function()
    local Note = ah.type { name = "RegistryNote", fields = { text = "string" } }
    local session = ah.session()
    session:register(Note)
    local registry = ah.registry { tool("note", function(args, ctx)
      ctx.session:dispatch(Note { text = args.text })
      return args.text
    end) }
    local outer = tool("outer", function(args)
      assert(registry:execute("note", args).success)
      if args.text == "lost" then
        error "after it"
      end
    end)
    local reply = assert(ah.run(quiet { model = ah.scripted { { calls = { call("outer",
      { text = "lost" }),
      call("outer", { text = "kept" }) } }, "ok" }, tools = { outer }, session = session, "x" }))
    assert.same({ "Tool 'outer' execution failed: after it", "OK" }, results(reply))
    local all = session[Note]:all()
    assert.equal(1, #all)
    assert.equal("kept", all[1].text)
  end)

  it("waits with the task that calls it", function()
    local order = {}
    local registry = ah.registry { tool("wait", function(args)
      ah.sleep(tonumber(args.text))
      order[#order + 1] = args.text
      return args.text
    end) }
    local function waits(name, seconds)
      return tool(name, function() return registry:execute("wait", { text = seconds }).value end,
        { parallel = true })
    end
    local reply = assert(ah.run { model = ah.scripted { { calls = { call("b", { text = "" }),
      call("c", { text = "" }) } }, "ok" }, tools = { waits("b", "0.05"), waits("c", "0.01") },
        "x" })
    assert.same({ "0.05", "0.01" }, results(reply))
    assert.same({ "0.01", "0.05" }, order)
  end)
end)

describe("a run with a registry", function()
  it("declares its tools behind its own, one that is in both once", function()
    local a, b, c = tool "a", tool "b", tool "c"
    local model = ah.scripted { { check = function(r) assert.equal("b a c", names(r.tools)) end,
      calls = { call("c", { text = "x" }) } }, "ok" }
    local reply = assert(ah.run { model = model, tools = { b }, registry = ah.registry { a, b, c },
      "x" })
    assert.same({ "c: x" }, results(reply))
    assert.matches("tool 'b' is declared twice",
      raised(ah.run, { model = "demo/echo", tools = { tool "b" }, registry = ah.registry { b },
        "x" }))
  end)

  it("gets what is registered, replaced and removed while it is at work", function()
    local registry = ah.registry()
    registry:register(tool("grow", function(args)
      if args.text == "more" then
        registry:register(tool "new"):replace(tool("old", function() return "another" end))
      else
        registry:remove "new"
      end
    end))
    registry:register(tool "old")
    local events = {}
    local reply = assert(ah.run(quiet { registry = registry, on = function(e)
      events[#events + 1] = e.tool_names and e.type .. " " .. table.concat(e.tool_names, " ") or nil
    end, model = ah.scripted {
      { calls = { call("grow", { text = "more" }), call("new", { text = "1" }), call("old",
        { text = "1" }) } },
      { expect = { tools = { "new" } }, calls = { call("grow", { text = "less" }), call("new",
        { text = "2" }) } },
      "ok" }, "x" }))
    assert.same({ "OK", "new: 1", "another", "OK",
      "Tool 'new' is no longer available. Available tools: [grow, old]" }, results(reply))
    assert.same({ "tools_injected new", "tools_injected old", "tools_removed new" }, events)
    sound.check(reply:transcript())
  end)

  it("tells all agents that use it, forks included, and no run that is over", function()
    local registry = ah.registry { tool "a" }
    local done = assert(ah.run { model = "demo/echo", registry = registry, "x" })
    local before = done:transcript()
    local one = ah.agent { model = "demo/echo", registry = registry }
    local two = one:fork()
    local three = ah.agent { model = "demo/echo" }
    registry:register(tool "b")
    assert.equal(before, done:transcript())
    assert.matches("2 tools", tostring(one))
    assert.matches("2 tools", tostring(two))
    assert.matches("0 tools", tostring(three))
  end)

  it("lets go of agents nobody holds", function()
    local registry = ah.registry { tool "a" }
    local agent = ah.agent { model = "demo/echo", registry = registry }
    local weak = setmetatable({ agent }, { __mode = "v" })
    agent = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    assert.is_nil(weak[1])
    registry:register(tool "b")
    assert.equal(2, #registry)
  end)
end)

describe("executors", function()
  it("come after tools and registry, and have what a declared tool says checked", function()
    local model = ah.scripted { { calls = { call("own", { text = "1" }), call("held",
      { text = "2" }),
      call("declared", { text = "3" }), call("declared", {}), call("free", { any = { 1 } }) } },
        "ok" }
    local ran = {}
    local function executor(args, ctx)
      ran[#ran + 1] = ctx.tool_name
      return args.any or args.text
    end
    local reply = assert(ah.run { model = model, tools = { tool "own", tool("declared", false) },
      registry = ah.registry { tool "held" },
      executors = { own = executor, held = executor, declared = executor, free = executor }, "x" })
    assert.same({ "own: 1", "held: 2", "3", "Tool validation failed: /text: is required", "[1]" },
      results(reply))
    assert.same({ "declared", "free" }, ran)
  end)

  it("do not bring back what was removed, and are not offered", function()
    local gone = tool "gone"
    local agent = ah.agent { tools = { gone }, executors = { gone = function() return "back" end },
      model = ah.scripted { { check = function(r) assert.equal("", names(r.tools)) end,
        calls = { call("gone", { text = "x" }) } }, "ok" } }
    agent:remove_tools "gone"
    assert.same({ "Tool 'gone' is no longer available. Available tools: []" },
      results(assert(agent:fork():run "x")))
  end)

  it("are functions by the names of tools", function()
    assert.matches("'executors' must be { name = function.*, found a number under a string",
      raised(ah.run, { model = "demo/echo", executors = { a = 1 }, "x" }))
    assert.matches("name 'A b' must be 1 to 64 of",
      raised(ah.run, { model = "demo/echo", executors = { ["A b"] = print }, "x" }))
  end)

  it("run calls of tools in brief, and in forks", function()
    local agent = ah.agent { brief = true, tools = { tool("declared", false) },
      executors = { declared = function(args) return "did " .. args.text end },
      model = ah.scripted { { calls = { call("declared", {}), call("declared",
        { text = "it" }) } }, "ok" } }
    assert.same({ "Tool validation failed: /text: is required. "
      .. 'Call pick_tools with {"tools":["declared"]}'
      .. " for its full specification.", "did it" }, results(assert(agent:fork():run "x")))
  end)
end)

describe("a tool group", function()
  it("stands for its tools in any list of tools", function()
    local a, b, c = tool "a", tool "b", tool "c"
    local group = ah.tool_group { name = "spec-group", tools = { a, b } }
    assert.equal("tool group spec-group, 2 tools", tostring(group))
    assert.equal("a b", names(group.tools))
    ah.tool_group { name = "spec-outer", tools = { "spec-group", c } }
    assert.same({ "a", "b", "c" }, ah.registry({ "spec-outer" }):names())
    assert.same({ "a", "b" }, ah.registry({ group, b, a }):names())
    local agent = ah.agent { model = "demo/echo", tools = { "spec-group" } }
    agent:add_tools "spec-outer"
    assert.matches("3 tools", tostring(agent))
    local section = ah.section { key = "s", title = "S", template = "T", tools = { "spec-outer" } }
    local seen
    assert(ah.run { model = ah.scripted(function(r) seen = names(r.tools) return "ok" end),
      section, "x" })
    assert.equal("a b c", seen)
  end)

  it("is found by its name, the latest of it; another name gets a suggestion", function()
    ah.tool_group { name = "spec-latest", tools = { tool "a" } }
    ah.tool_group { name = "spec-latest", tools = { tool "b" } }
    assert.same({ "b" }, ah.registry({ "spec-latest" }):names())
    assert.matches("ah.run: tools%[2%] .* no tool group of that name %(did you mean 'spec%-latest'",
      raised(ah.run, { model = "demo/echo", tools = { tool "x", "spec_latst" }, "x" }))
    assert.matches("no tool group of that name$", raised(ah.registry, { "qqqqqqqqqqqqqqqqqqqqqq" }))
    assert.matches('group of that name; require also returns a path: write %(require "..."%)$',
      raised(ah.run, { model = "demo/echo", tools = { tool "x", "./stock.lua" }, "x" }))
  end)

  it("refuses what is no group", function()
    assert.matches("ah.tool_group: field 'name' is missing", raised(ah.tool_group, { tools = {} }))
    assert.matches("ah.tool_group: field 'tools' is missing", raised(ah.tool_group, { name = "g" }))
    assert.matches("name 'Ä b' must be", raised(ah.tool_group, { name = "Ä b", tools = {} }))
    assert.matches("unknown field 'tool'", raised(ah.tool_group, { name = "g", tool = {} }))
    assert.matches("tools%[1%] must be made by ah.tool, found table",
      raised(ah.registry, { { name = "g", tools = {} } }))
    local group = ah.tool_group { name = "spec-changed", tools = { tool "a" } }
    group.tools[1] = 7
    assert.matches("must be made by ah.tool, found number", raised(ah.registry, { group }))
  end)
end)

-- -- brief ------------------------------------------------------------------------------------

local FREE = { inline = true, additional_tools = true, search_pair = true, list_changed = true }
local MODES = { "append", "inline", "additional_tools", "search_pair", "list_changed", "reference",
  "dispatcher", "restart" }

-- Makes a model that plays turns and keeps its requests.
local function player(mode, turns)
  local requests, n = {}, 0
  return ah.scripted { tool_change_mode = mode, answer = function(request)
    n = n + 1
    requests[n] = request
    return turns[n] or "done"
  end }, requests
end

describe("a run with brief", function()
  for _, mode in ipairs(MODES) do
    it("shows a picked tool in full without a break of the cache: " .. mode, function()
      local breaks = 0
      local model, requests = player(mode, {
        { calls = { pick("a", "b") } }, { calls = { call("a", { text = "1" }) } }, "one", "two" })
      local agent = ah.agent(quiet { model = model, tools = { tool "a", tool "b", tool "c" },
        brief = true,
        on = { cache_break = function() breaks = breaks + 1 end } })
      local reply = assert(agent:run "x")
      assert.same({ name = "a", description = "Brief of a.", parameters = EMPTY },
        told(requests[1], "a"))
      assert.matches("^a b c pick_tools", names(requests[1].tools))
      local answer = results(reply)[1]
      assert.truthy(answer:find("^Selected a, b%. Full specs available next turn%."))
      if FREE[mode] then
        assert.same(tool("a").spec, told(requests[2], "a"))
        assert.equal("Selected a, b. Full specs available next turn.", answer)
      else
        assert.same(requests[1].tools, requests[2].tools)
        assert.same({ tool("a").spec, tool("b").spec }, ah.json.decode(answer:match("\n\n(.*)")))
      end
      assert.equal("a: 1", results(reply)[2])
      assert.same({}, reply.injected_tools)
      assert(agent:run "y")
      assert.equal("Brief of a.", told(requests[4], "a").description)
      assert.equal(0, breaks)
      sound.check(agent:transcript())
    end)
  end

  it("answers every way of picking", function()
    local model = player("inline", { { calls = { pick(), pick("a", "a", "nope"), pick("a"),
      pick("b", "a"),
      pick("pick_tools"), pick("cc", "nope"), call("pick_tools", { tools = "a" }),
        call("pick_tools", {}) } } })
    local reply = assert(ah.run { model = model, tools = { tool "a", tool "b", tool "ccc" },
      brief = true, "x" })
    assert.same({
      'No tools named: give the names of the tools to select, as {"tools":[...]}.',
      "Selected a. Full specs available next turn. Unknown tools: nope.",
      "Already selected: a.",
      "Selected b. Full specs available next turn. Already selected: a.",
      "Already selected: pick_tools.",
      "Unknown tools: cc (did you mean 'ccc'?), nope.",
      "Tool validation failed: /tools: must be an array, found \"a\"",
      "Tool validation failed: /tools: is required",
    }, results(reply))
    local ok = {}
    for _, m in ipairs(reply.messages) do
      ok[#ok + 1] = m.role == "tool" and (m.success == false and "-" or "+") or nil
    end
    assert.equal("-++++---", table.concat(ok))
  end)

  it("checks a call of what is not picked by its real schema; success picks it", function()
    local asked = 0
    local model = player("append", { { calls = { call("a", { txt = 1 }), call("a", { text = "1" }),
      call("a", { text = "2" }), call("a", {}), pick("a") } } })
    local reply = assert(ah.run { model = model, brief = true, tools = { tool("a", function(args)
      asked = asked + 1
      if asked == 1 then
        return nil, "failed"
      end
      return args.text
    end) }, "x" })
    local got = results(reply)
    assert.matches('pick_tools with {"tools":%["a"%]} for its full specification%.$', got[1])
    assert.equal("failed", got[2])
    assert.equal("2", got[3])
    assert.equal("Tool validation failed: /text: is required", got[4])
    assert.matches("^Already selected: a%.\n\n", got[5])
  end)

  it("takes back the pick of a call that is turned down, and of no other", function()
    local model = player("list_changed", { { calls = { pick("a"), pick("b") } } })
    local agent = ah.agent { model = model, brief = true, keep_picked = true, tools = { tool "a",
      tool "b" },
      policies = { function(c) if c.arguments.tools[1] == "a" then return "deny", "no" end end } }
    assert(agent:run "x")
    local picked = {}
    for _, e in ipairs(sound.of(sound.check(agent:transcript()), "tools_added")) do
      picked[#picked + 1] = e.by and e.by.picked and e.tools[1].name or nil
    end
    assert.same({ "b" }, picked)
  end)

  it("declares in brief what comes later, and in full what the registry has picked", function()
    local model, requests = player("inline", { { calls = { call("add", { text = "" }) } },
      { calls = { call("late", { text = "x" }) } } })
    local registry = ah.registry { tool "a", tool("add", function(_,
      ctx) ctx:add_tools(tool "late") end) }
    registry:pick "add"
    local reply = assert(ah.run { model = model, brief = true, registry = registry, "x" })
    assert.same(tool("add").spec, told(requests[1], "add"))
    assert.equal("Brief of a.", told(requests[1], "a").description)
    assert.equal("Brief of late.", told(requests[2], "late").description)
    assert.same(tool("late").spec, told(requests[3], "late"))
    assert.same({ "late" }, reply.injected_tools)
    assert.same({ "OK\n\nNew tools: late.", "late: x" }, results(reply))
  end)

  it("keeps sections readable", function()
    local section = ah.section { key = "s", title = "S", template = "Long.", summary = "Short.",
      visibility = "summary", tools = { tool "inner" } }
    local model, requests = player("append", { { calls = { call("read_section",
      { section_key = "s" }) } } })
    assert(ah.run { model = model, brief = true, section, "x" })
    assert.truthy(told(requests[1], "read_section").parameters.properties.section_key)
    assert.equal("Brief of inner.", told(requests[2], "inner").description)
  end)

  it("lets parallel calls of one tool pick it once", function()
    local model = player("inline", { { calls = { call("a", { text = "1" }), call("a",
      { text = "2" }) } } })
    local reply = assert(ah.run { model = model, brief = true, tools = { tool("a", nil,
      { parallel = true }) }, "x" })
    local entries = sound.of(sound.check(reply:transcript()), "tools_added")
    assert.equal(3, #entries) -- at the start, picked, no longer picked
    assert.same({ { picked = true }, { picked = false } }, { entries[2].by, entries[3].by })
  end)

  it("keeps the pick of a call that was done when its run was cancelled", function()
    local model = player("inline", { { calls = { call("a", { text = "1" }), call("b",
      { text = "2" }) } } })
    local agent
    agent = ah.agent(quiet { model = model, brief = true, keep_picked = true, tools = {
      tool("a", nil, { parallel = true }), tool("b", function()
        agent:cancel()
        ah.sleep(0.001)
      end, { parallel = true }) } })
    local _, err = agent:run "x"
    assert.equal("cancelled", err.code)
    local picked = {}
    for _, e in ipairs(sound.of(sound.check(agent:transcript()), "tools_added")) do
      picked[#picked + 1] = e.by and e.by.picked and e.tools[1].name or nil
    end
    assert.same({ "a" }, picked)
  end)
end)

describe("entities in brief", function()
  local Cup
  Cup = ah.entity { name = "BriefCup", prefix = "cup", id = "id",
    find = function(id) return Cup { id = id } end }
  Cup:tool { name = "fill", description = "Fills it.", full_description = "Fills it to the brim.",
    params = { with = "string" },
    handler = function(self, args) return self.id .. " full of " .. args.with end }

  local function fields(model)
    return quiet { model = model, brief = true, keep_picked = true, discover = { keep = true },
      tools = { ah.tool { name = "cup", description = "Gives a cup.", params = { id = "string" },
        handler = function(args) return Cup { id = args.id } end } } }
  end

  local BRIEF = { name = "cup_a_fill", description = "Fills it. (BriefCup a)", parameters = EMPTY }
  local found = { calls = { call("cup", { id = "a" }) } }
  local fill = call("cup_a_fill", { with = "tea" })

  for _, mode in ipairs(MODES) do
    it("are declared, checked and picked like others: " .. mode, function()
      local model, requests = player(mode, { found, { calls = { call "cup_a_fill",
        pick "cup_a_fill", fill } } })
      local reply = assert(ah.agent(fields(model)):run "x")
      local got = results(reply)
      assert.same(BRIEF, told(requests[2], "cup_a_fill"))
      assert.matches("/with: is required%. Call pick_tools", got[2])
      assert.matches("^Selected cup_a_fill", got[3])
      assert.equal("a full of tea", got[4])
      if FREE[mode] then
        local full = told(requests[3], "cup_a_fill")
        assert.equal("Fills it to the brim. (BriefCup a)", full.description)
        assert.truthy(full.parameters.properties.with)
      end
      assert.same({ "cup_a_fill" }, reply.injected_tools)
    end)
  end

  for _, picked in ipairs { false, true } do
    it("are bound again when loaded and forked, picked: " .. tostring(picked), function()
      local path = os.tmpname()
      local first = ah.agent(fields(player("append", { found,
        { calls = { picked and pick "cup_a_fill" or pick() } } })))
      assert(first:run "x")
      assert(first:save(path))
      local again = picked and "^Already selected: cup_a_fill" or "^Selected cup_a_fill"
      local function go_on(agent)
        agent:use(player("append", { { calls = { pick "cup_a_fill", fill } } }))
        local n = #sound.of(sound.check(agent:transcript()), "tools_added")
        local got = results(assert(agent:run "y"))
        assert.equal("a full of tea", got[#got])
        assert.matches(again, got[#got - 1])
        assert.equal(n + (picked and 0 or 1),
          #sound.of(sound.check(agent:transcript()), "tools_added"))
      end
      local loaded = assert(ah.load(path, fields(player("append", {}))))
      os.remove(path)
      go_on(loaded:fork())
      go_on(loaded)
      go_on(first:fork())
    end)
  end

  it("are not picked in a fork made in the turn that picks them", function()
    local forked, agent
    local model = player("append", { found, { calls = { pick "cup_a_fill", call "fork" } } })
    local t = fields(model)
    t.tools[2] = ah.tool { name = "fork", description = "Forks.", handler = function()
      forked = agent:fork()
    end }
    agent = ah.agent(t)
    assert(agent:run "x")
    for own, words in pairs { [agent] = "^Already selected", [forked] = "^Selected" } do
      own:use(player("append", { { calls = { pick "cup_a_fill", fill } } }))
      local got = results(assert(own:run "y"))
      assert.matches(words, got[#got - 1])
      assert.equal("a full of tea", got[#got])
    end
  end)

  it("come again in place, and go with their entity", function()
    local t = fields(player("list_changed", { found, { calls = { pick "cup_a_fill" } },
      { calls = { call("cup", { id = "a" }), fill, call "drop", fill } } }))
    t.tools[2] = ah.tool { name = "drop", description = "Drops.",
      handler = function() return ah.retract(Cup { id = "a" }) end }
    t[1] = "x"
    local reply = assert(ah.run(t))
    local got = results(reply)
    assert.equal("a full of tea", got[4])
    assert.matches("no longer available", got[6])
    assert.same({ "cup_a_fill" }, reply.removed_tools)
  end)
end)

describe("what is picked", function()
  local function agent(mode, turns, path)
    local model, requests = player(mode, turns)
    local fields = quiet { model = model, brief = true, keep_picked = true, tools = { tool "a",
      tool "b" } }
    return path and assert(ah.load(path, fields)) or assert(ah.agent(fields)), requests
  end

  for _, mode in ipairs { "append", "list_changed", "inline" } do
    it("is known to a loaded and a forked conversation: " .. mode, function()
      local path = os.tmpname()
      local one = agent(mode, { { calls = { pick "a" } } })
      assert(one:run "x")
      assert(one:save(path))
      local two, requests = agent(mode, { { calls = { pick("a", "b"), call("b",
        { text = "1" }) } } }, path)
      local before = #sound.of(sound.check(two:transcript()), "tools_added")
      local forked = two:fork()
      local got = results(assert(two:run "y"))
      assert.matches("^Selected b%. Full specs available next turn%. Already selected: a%.", got[2])
      assert.equal("b: 1", got[3])
      if mode ~= "append" then
        assert.same(tool("a").spec, told(requests[1], "a"))
      end
      assert.equal(before + 1, #sound.of(sound.check(two:transcript()), "tools_added"))
      assert.equal(before, #sound.of(sound.check(forked:transcript()), "tools_added"))
      os.remove(path)
    end)
  end

  it("is declared in full to a loaded conversation without brief", function()
    local path = os.tmpname()
    local one = agent("append", {})
    assert(one:run "x")
    assert(one:save(path))
    local model, requests = player("append", { { calls = { call("a", { text = "1" }),
      pick "a" } } })
    local two = assert(ah.load(path, quiet { model = model, tools = { tool "a", tool "b" } }))
    local got = results(assert(two:run "y"))
    os.remove(path)
    assert.same(tool("a").spec, told(requests[1], "a"))
    assert.equal("a: 1", got[1])
    assert.matches("is stale", got[2])
  end)

  it("is not any more after the run, unless it is kept; also when the run fails", function()
    for _, fails in ipairs { false, true } do
      local model = player("list_changed", { { calls = { pick "a" } },
        fails and { fail = { message = "broken" } } or "ok", { calls = { pick "a" } } })
      local one = ah.agent(quiet { model = model, brief = true, tools = { tool "a" } })
      one:run "x"
      local got = results(assert(one:run "y"))
      assert.equal("Selected a. Full specs available next turn.", got[#got])
    end
  end)

  -- Random picks, calls, replacements, removals, forks and ends of runs: the picked tools equal
  -- those of a replay of the transcript.
  it("is what the transcript says, whatever happened", function()
    math.randomseed(7)
    local function random_calls()
      local calls = {}
      for i = 1, math.random(4) do
        local name = "t" .. math.random(6)
        local n = math.random(5)
        calls[i] = n == 1 and call(name, { text = "x" }) or n == 2 and call(name, {})
          or n == 3 and call("change", { text = name }) or pick(name, "t" .. math.random(7))
      end
      return { calls = calls }
    end
    for round = 1, 40 do
      local mode = MODES[round % #MODES + 1]
      local version = 1
      local function made(name)
        return tool(name, nil, { full_description = name .. " of version " .. version })
      end
      local tools = { tool("change", function(args, ctx)
        version = version + 1
        if math.random(2) == 1 then
          ctx:remove_tools(args.text)
        end
        ctx:add_tools(made(args.text))
      end) }
      for i = 1, 6 do
        tools[i + 1] = made("t" .. i)
      end
      local model = ah.scripted { tool_change_mode = mode, answer = function()
        return math.random(3) == 1 and "done" or random_calls()
      end }
      local fields = quiet { model = model, brief = true, keep_picked = round % 2 == 0,
        tools = tools,
        on_conflict = "replace", loop_detector = false, max_restarts = 100 }
      local one = ah.agent(fields)
      for _ = 1, 4 do
        one:run "go"
        one = math.random(3) == 1 and one:fork() or one
      end
      -- the replay: the latest definition of each tool, and whether it is picked
      local full, entries = {}, sound.check(one:transcript())
      for _, e in ipairs(entries) do
        for _, t in ipairs(e.type == "tools_added" and e.tools or {}) do
          full[t.name] = t.description:find("of version", 1, true) ~= nil
        end
        for _, name in ipairs(e.type == "tools_removed" and e.names or {}) do
          full[name] = nil
        end
      end
      local answer
      one:use(ah.scripted { tool_change_mode = "list_changed", { calls = { pick("t1", "t2", "t3",
        "t4", "t5", "t6") } },
        "done" })
      answer = results(assert(one:fork():run "which?"))
      answer = answer[#answer]
      for i = 1, 6 do
        local name = "t" .. i
        local selected = answer:match("Selected ([^.]*)") or ""
        local already = answer:match("Already selected: ([^.]*)") or ""
        assert.equal(full[name] == false, selected:find(name, 1, true) ~= nil,
          name .. ": " .. answer)
        assert.equal(full[name] == true, already:find(name, 1, true) ~= nil, name .. ": " .. answer)
      end
    end
  end)
end)
