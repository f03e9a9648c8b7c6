-- Tools whose definition differs from the one in the conversation that continues: what is reported,
-- declared and run. docs/reference/agent.md, "Conversations that last".
local ah = require "agenthost"
local told = require "support.told"
local sound = require "support.sound"

local MODES = { "append", "inline", "additional_tools", "search_pair", "list_changed", "reference",
  "dispatcher", "restart" }

local function call(name, arguments)
  return { calls = { { name = name, arguments = arguments or ah.object {} } } }
end

-- Makes the tool `pay` with some other fields; `ran` counts its calls.
local ran
local function pay(fields)
  local t = { name = "pay", description = "Pays.", params = { sum = "integer" },
    annotations = { destructive = true }, version = "1",
    handler = function(args) ran = ran + 1 return "paid " .. args.sum end }
  for key, value in pairs(fields or {}) do
    t[key] = value
  end
  return ah.tool(t)
end

local path

before_each(function()
  path, ran = os.tmpname(), 0
end)
after_each(function()
  os.remove(path)
end)

-- Saves a conversation in which `pay` was declared.
local function write(fields)
  local agent = ah.agent { model = ah.scripted { call("pay", { sum = 1 }), "ok" },
    tools = { pay() } }
  for key, value in pairs(fields or {}) do
    agent[key] = value
  end
  assert(agent:run "x")
  assert(agent:save(path))
end

-- Continues the conversation: returns { results, events, log, requests, agent } of a run in which
-- `pay` is called.
local function go_on(fields)
  local seen = { events = {}, log = {}, requests = {} }
  local turns = { call("pay", { sum = 2 }), "ok", "more" }
  local all = {
    model = ah.scripted { tool_change_mode = fields.mode or "append", answer = function(request)
      seen.requests[#seen.requests + 1] = request
      return table.remove(turns, 1)
    end },
    log = function(level, line) seen.log[#seen.log + 1] = level .. " " .. line end,
    on = { warning = function(e) seen.events[#seen.events + 1] = e end },
  }
  for key, value in pairs(fields) do
    if key ~= "mode" then
      all[key] = value
    end
  end
  seen.agent = assert(ah.load(path, all))
  local reply = assert(seen.agent:run "again")
  seen.results = {}
  for _, m in ipairs(reply.messages) do
    seen.results[#seen.results + 1] = m.role == "tool" and m.content or nil
  end
  sound.check(seen.agent:transcript())
  return seen
end

describe("a tool that is defined as it was", function()
  it("is no drift", function()
    write()
    local seen = go_on { tools = { pay() }, on_drift = "refuse" }
    assert.same({ "paid 1", "paid 2" }, seen.results)
    assert.same({}, seen.events)
  end)

  it("may have another handler", function()
    write()
    local seen = go_on { tools = { pay { handler = function() return "new" end, timeout = 3,
      parallel = true } } }
    assert.equal("new", seen.results[2])
    assert.same({}, seen.events)
  end)
end)

describe("a tool that is defined otherwise", function()
  local CHANGES = {
    description = { description = "Pays more." },
    parameters = { params = { sum = "number" } },
    examples = { examples = { { input = { sum = 3 } } } },
    annotations = { annotations = { destructive = false } },
    version = { version = "2" },
    strict = { strict = true },
  }

  for what, fields in pairs(CHANGES) do
    it("is told by what is another: " .. what, function()
      write()
      local seen = go_on { tools = { pay(fields) } }
      assert.equal("paid 2", seen.results[2])
      assert.equal(1, #seen.events)
      assert.same({ "pay", { what } }, { seen.events[1].tool_name, seen.events[1].changed })
      assert.matches("The definition of tool 'pay' has changed .* %(" .. what .. "%)",
        seen.events[1].message)
      assert.truthy(seen.log[1]:find("^warning The definition of tool 'pay' has changed"))
      assert.same(pay(fields).spec, told(seen.requests[1], "pay"))
    end)
  end

  it("is told once: what was told is the definition from then on", function()
    write()
    local seen = go_on { tools = { pay { version = "2" } } }
    assert(seen.agent:save(path))
    assert.same({}, go_on({ tools = { pay { version = "2" } } }).events)
    assert.same({ "version" }, go_on({ tools = { pay() } }).events[1].changed)
  end)

  it("is told with all that is another, in one warning", function()
    write()
    local seen = go_on { tools = { pay { description = "Else.", params = { sum = "string?" },
      version = "9" } } }
    assert.equal(1, #seen.events)
    assert.same({ "description", "parameters", "version" }, seen.events[1].changed)
  end)

  it("is declared anew at the end of what the model was told, on each wire", function()
    for _, mode in ipairs(MODES) do
      write()
      local seen = go_on { mode = mode, tools = { pay { description = "Pays more." } } }
      assert.equal("Pays more.", told(seen.requests[1], "pay").description, mode)
      assert.equal("paid 2", seen.results[2], mode)
      assert.same({ "description" }, seen.events[1].changed, mode)
    end
  end)

  it("stays as it was and is not run where that is refused, on each wire", function()
    for _, mode in ipairs(MODES) do
      ran = 0
      write()
      local before = ran
      local seen = go_on { mode = mode, on_drift = "refuse",
        tools = { pay { description = "Pays more." } } }
      assert.equal("Pays.", told(seen.requests[1], "pay").description, mode)
      assert.equal("Tool 'pay' was not run: its definition has changed since it was declared here "
        .. "(description), so it may not do what its description here says. Nothing was run.",
        seen.results[2], mode)
      assert.equal(before, ran, mode)
      assert.same({ "description" }, seen.events[1].changed, mode)
      assert.matches("the old one stays declared", seen.events[1].message)
    end
  end)

  it("is refused in forks and after saving, too, until it is as it was", function()
    write()
    local other = pay { description = "Pays more." }
    local seen = go_on { tools = { other }, on_drift = "refuse" }
    local fork = seen.agent:fork() -- the warning was emitted already
    fork:use(ah.scripted { call("pay", { sum = 3 }), "ok" })
    local reply = assert(fork:run "in the fork")
    assert.matches("its definition has changed", reply.messages[#reply.messages - 1].content)
    assert(seen.agent:save(path))
    seen = go_on { tools = { other }, on_drift = "refuse" }
    assert.matches("its definition has changed", seen.results[#seen.results])
    assert(seen.agent:save(path))
    seen = go_on { tools = { pay() }, on_drift = "refuse" }
    assert.equal("paid 2", seen.results[#seen.results])
  end)

  it("is told by a fork that runs before it, too", function()
    write()
    local n = 0
    local agent = assert(ah.load(path, { tools = { pay { version = "2" } }, log = function() end,
      model = ah.scripted { "ok", "ok", "ok" }, on = { warning = function() n = n + 1 end } }))
    local fork = agent:fork()
    assert(fork:run "y" and agent:run "y" and fork:run "z")
    assert.equal(2, n)
  end)

  it("is refused without a word about it where it comes from outside", function()
    write()
    local outside = pay { annotations = { destructive = true, untrusted = true } }
    assert.matches("its definition has changed", go_on({ tools = { outside } }).results[2])
    assert.equal("paid 2", go_on({ tools = { outside }, on_drift = "tell" }).results[2])
  end)

  it("is refused where it came from outside, whatever it says of itself now", function()
    local agent = ah.agent { model = ah.scripted { "ok" },
      tools = { pay { annotations = { untrusted = true } } } }
    assert(agent:run "x")
    assert(agent:save(path))
    assert.matches("its definition has changed", go_on({ tools = { pay() } }).results[1])
  end)

  it("is seen behind its brief description", function()
    local agent = ah.agent { brief = true, model = ah.scripted { "ok" }, tools = { pay() } }
    assert(agent:run "x")
    assert(agent:save(path))
    assert.same({}, go_on({ brief = true, tools = { pay() } }).events)
    local seen = go_on { brief = true, on_drift = "refuse",
      tools = { pay { params = { sum = "integer", to = "string?" } } } }
    assert.same({ "parameters" }, seen.events[1].changed)
    assert.matches("its definition has changed", seen.results[1])
    assert.same({}, go_on({ tools = { pay() } }).events) -- no longer in brief
  end)

  it("breaks no cache and is not told again where the model is told the same", function()
    for _, mode in ipairs(MODES) do
      write()
      local seen = go_on { mode = mode, tools = { pay { version = "2" } } }
      local n = 0
      for _, e in ipairs(seen.requests[1].entries) do
        n = n + (e.type == "tools_added" and 1 or 0)
      end
      assert.equal(0, n, mode)
    end
  end)
end)

-- DRIFT_CASES=100000 sets the number of cases (default 300).
describe("any two definitions of a tool", function()
  local FIELDS = {
    description = { "Pays.", "Pays more.", "Pays!" },
    full_description = { false, "Pays at length.", "Pays, é." },
    params = { { sum = "integer" }, { sum = "integer", to = "string?" },
      { sum = "integer 1.." } },
    examples = { false, { { input = { sum = 1 } } },
      { { input = { sum = 2 }, description = "x" } } },
    annotations = { false, { destructive = true }, { destructive = false, read_only = true },
      { untrusted = true } },
    version = { false, "1", "2" },
    strict = { false, true },
    parallel = { false, true }, -- not part of what a conversation keeps
  }
  local TOLD = { description = "description", full_description = "description",
    params = "parameters", examples = "examples", annotations = "annotations",
    version = "version", strict = "strict" }

  local function draw(random)
    local choice, t = {}, { name = "pay", handler = function() ran = ran + 1 return "paid" end }
    for field, values in pairs(FIELDS) do
      choice[field] = random(#values)
      t[field] = values[choice[field]] or nil
    end
    return choice, ah.tool(t), t
  end

  -- Returns the set of the fields in which two choices differ, by their names in the event.
  local function changed(a, b)
    local set = {}
    for field, name in pairs(TOLD) do
      set[name] = set[name] or a[field] ~= b[field] or nil
    end
    -- the full description replaces the brief one
    if a.full_description > 1 and a.full_description == b.full_description then
      set.description = nil
    end
    return set
  end

  it("are told by what they differ in, and run or refused as the script says", function()
    local seed = 4711
    local function random(n)
      seed = (seed * 1103515245 + 12345) % 2147483648
      return seed // 65536 % n + 1
    end
    for case = 1, tonumber(os.getenv "DRIFT_CASES") or 300 do
      local before, tool, was = draw(random)
      local after, other, is = draw(random)
      if random(4) == 1 then
        after, other, is = before, tool, was
      end
      local brief, rule = random(2) == 1, ({ nil, "tell", "refuse" })[random(3)]
      local agent = ah.agent { brief = brief, model = ah.scripted { "ok" }, tools = { tool } }
      assert(agent:run "x")
      assert(agent:save(path))
      local warned = {}
      ran = 0
      agent = assert(ah.load(path, { brief = brief, tools = { other }, on_drift = rule,
        log = function() end, on = { warning = function(e) warned[#warned + 1] = e end },
        model = ah.scripted { call("pay", { sum = 1 }), "ok" } }))
      local reply = assert(agent:run "y")
      local text = reply.messages[#reply.messages - 1].content
      local set, names = changed(before, after), {}
      for _, name in ipairs(warned[1] and warned[1].changed or {}) do
        names[name] = true
      end
      if brief and before.description ~= after.description then
        set.description = true -- the brief description is declared in this mode
      end
      assert.same(set, names, "case " .. case)
      assert.equal(next(set) and 1 or 0, #warned)
      local outside = rule == nil and ((was.annotations or {}).untrusted
        or (is.annotations or {}).untrusted)
      local refused = next(set) ~= nil and (rule == "refuse" or outside or false)
      assert.equal(refused and 0 or 1, ran, "case " .. case)
      assert.equal(refused, text:find("its definition has changed", 1, true) ~= nil)
    end
  end)
end)

describe("what is no drift", function()
  it("is another definition that the script gives an open conversation", function()
    local warned = 0
    local registry = ah.registry { pay() }
    local agent = ah.agent { registry = registry, on_drift = "refuse", on_conflict = "replace",
      on = { warning = function() warned = warned + 1 end },
      model = ah.scripted { "one", call("pay", { sum = 5 }), "two", call("pay", { sum = 6 }),
        "three" } }
    assert(agent:run "x")
    registry:replace(pay { description = "Otherwise." })
    local second = assert(agent:run "y").messages
    assert.equal("paid 5", second[#second - 1].content)
    agent:add_tools(pay { description = "Again otherwise." })
    local reply = assert(agent:run "z")
    assert.equal("paid 6", reply.messages[#reply.messages - 1].content)
    assert.equal(0, warned)
  end)

  it("is one of agenthost's own tools", function()
    local function section()
      return ah.section { key = "s", title = "S", template = "Long.", summary = "Short.",
        visibility = "summary", tools = { pay() } }
    end
    local agent = ah.agent { model = ah.scripted { "ok" }, section() }
    assert(agent:run "x")
    assert(agent:save(path))
    local f = assert(io.open(path, "rb"))
    local text = f:read "a"
    f:close()
    text = text:gsub('("description":")([^"]*)(","name":"read_section")', "%1Of another day.%3")
    assert.truthy(text:find("Of another day.", 1, true))
    f = assert(io.open(path, "wb"))
    f:write(text)
    f:close()
    local seen = {}
    agent = assert(ah.load(path, { on_drift = "refuse", on = { warning = function(e)
      seen[#seen + 1] = e.message
    end }, prompt = ah.prompt { section() }, log = function() end,
      model = ah.scripted { call("read_section", { section_key = "s" }), "ok" } }))
    local reply = assert(agent:run "y")
    assert.same({}, seen)
    assert.matches("Long%.", reply.messages[#reply.messages - 1].content)
  end)
end)

describe("a tool that comes again later", function()
  it("takes the place of the one that it was", function()
    write()
    local agent = assert(ah.load(path, { log = function() end,
      model = ah.scripted { call("pay", { sum = 2 }), call("pay", { sum = 3 }), "ok" } }))
    agent:add_tools(pay())
    local reply = assert(agent:run "again")
    assert.equal("paid 3", reply.messages[#reply.messages - 1].content)
  end)

  it("is looked at then", function()
    write()
    local seen = {}
    local agent = assert(ah.load(path, { log = function() end, on_drift = "refuse",
      on = { warning = function(e) seen[#seen + 1] = e end },
      model = ah.scripted { call "bring", call("pay", { sum = 2 }), "ok" },
      tools = { ah.tool { name = "bring", description = "Brings it.",
        handler = function(_, ctx) ctx:add_tools(pay { version = "2" }) end } } }))
    local reply = assert(agent:run "again")
    assert.equal(1, #seen)
    assert.same({ "pay", { "version" } }, { seen[1].tool_name, seen[1].changed })
    assert.matches("its definition has changed", reply.messages[#reply.messages - 1].content)
  end)
end)

describe("the tools of an entity", function()
  local n = 0

  -- Makes a class with a new name and a tool with the description `words`.
  local function class(name, words)
    local C
    C = ah.entity { name = name, prefix = "cust", id = "id",
      find = function(id) return C { id = id } end }
    C:tool { name = "orders", description = words, handler = function(self) return self.id end }
    return C
  end

  local function finder(C)
    return ah.tool { name = "find", description = "Finds.",
      handler = function() return C { id = "c1" } end }
  end

  local function saved()
    n = n + 1
    local name = "Drifting" .. n
    local agent = ah.agent { model = ah.scripted { call "find", "ok" }, discover = true,
      tools = { finder(class(name, "Lists orders.")) } }
    assert(agent:run "x")
    assert(agent:save(path))
    return name
  end

  local function call_orders(C, fields)
    local seen = {}
    fields.model = ah.scripted { call "cust_c1_orders", "ok" }
    fields.tools, fields.discover = { finder(C) }, true
    fields.log = function() end
    fields.on = { warning = function(e) seen[#seen + 1] = e end }
    local reply = assert(assert(ah.load(path, fields)):run "again")
    return reply.messages[#reply.messages - 1].content, seen
  end

  it("are the same where the class is", function()
    local text, seen = call_orders(class(saved(), "Lists orders."), { on_drift = "refuse" })
    assert.same({ "c1", {} }, { text, seen })
  end)

  it("are told and go on where the class is defined otherwise", function()
    local text, seen = call_orders(class(saved(), "Lists all."), {})
    assert.equal("c1", text)
    assert.same({ "cust_c1_orders", { "description" } }, { seen[1].tool_name, seen[1].changed })
  end)

  it("are not run where that is refused", function()
    local text, seen = call_orders(class(saved(), "Lists all."), { on_drift = "refuse" })
    assert.matches("its definition has changed", text)
    assert.equal(1, #seen)
  end)
end)

it("on_drift is tell or refuse", function()
  local ok, err = pcall(ah.run, { model = "demo/echo", on_drift = "ask", "x" })
  assert.is_false(ok)
  assert.matches([[drift_spec.lua:%d+: ah.run: field 'on_drift' must be "tell" or "refuse"]],
    err.message)
end)
