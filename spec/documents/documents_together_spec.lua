-- The documents' features combined: sections, entities, picks, registries, plans and strategies in
-- one conversation, nested, parallel, failing, saved, loaded.
local ah = require "agenthost"
local D = require "support.documents"
local sound = require "support.sound"

local tool, read, call, calls, turn = D.tool, D.read, D.call, D.calls, D.turn

local function summarized(key, tools, more)
  local fields = { key = key, template = "All of " .. key, summary = "Sum of " .. key,
    visibility = "summary", tools = tools }
  for k, v in pairs(more or {}) do
    fields[k] = v
  end
  return ah.section(fields)
end

local function customer(more)
  local C = ah.entity { name = "Customer", fields = { "id" }, find = more and more.find }
  C:tool { name = "spend", description = "Spend.", handler = function(self) return self.spend end }
  return C
end

local function pick(...)
  return call("pick_tools", { tools = ah.array { ... } })
end

local MODES = { "append", "inline", "reference", "additional_tools", "search_pair",
  "list_changed", "restart" }

describe("sections and entities in one conversation", function()
  for _, mode in ipairs(MODES) do
    it("work in one answer and in the next, by " .. mode, function()
      local C = customer()
      local find = tool("find", { handler = function() return C { id = "c-1", spend = 7 } end })
      local s = D.run({
        turn(call("read_section", { section_key = "crm" })),
        turn(call "find", call "customer_c1_spend"),
        turn(call "customer_c1_spend", call("read_section", { section_key = "crm" })),
        "done",
      }, { mode = mode, discover = true, prompt = ah.prompt { summarized("crm", { find }) } })
      assert.equal("done", s.reply and s.reply.text or tostring(s.err))
      assert.same({ "find", "customer_c1_spend" }, s.reply.injected_tools)
      assert.same({ "7", "7" }, { s:results(3), s:results(4) })
      assert.matches("^Section is already expanded%.", s:results(5))
      sound.check(s.reply:transcript())
    end)
  end

  it("have a tool of each under one name kept apart: the first stays", function()
    local C = customer()
    local find = tool("find", { handler = function() return C { id = "1", spend = 7 } end })
    local shut = summarized("a", { tool "customer_1_spend" })
    local s = D.run({ turn(call "find"), read "a", calls "customer_1_spend", "done" },
      { discover = true, tools = { find }, prompt = ah.prompt { shut } })
    assert.equal("7", s:results(3))
    assert.equal("Skipping duplicate tool during injection", s:of("warning")[1].message)
    s = D.run({ read "a", turn(call "find"), calls "customer_1_spend", "done" },
      { discover = true, tools = { find }, prompt = ah.prompt { shut } })
    assert.equal("customer_1_spend", s:results(3))
  end)

  it("give an error in place of the first where on_conflict says so", function()
    local shut = summarized("a", { tool "t", tool "u" })
    local go = tool("go", { handler = function(_, ctx) ctx:add_tools(tool "t") end })
    local s = D.run({ calls "go", read "a" },
      { on_conflict = "error", tools = { go }, prompt = ah.prompt { shut } })
    assert.equal("prompt_validation", s.err.code)
    sound.check(s.err.reply:transcript())
  end)

  it("take the place of the first where on_conflict says so", function()
    local shut = summarized("a", { tool("t", { handler = function() return "section's" end }) })
    local go = tool("go", { handler = function(_, ctx) ctx:add_tools(tool "t") end })
    for _, mode in ipairs { "append", "inline", "restart" } do
      local s = D.run({ calls "go", read "a", calls "t", "done" },
        { mode = mode, on_conflict = "replace", tools = { go }, prompt = ah.prompt { shut } })
      assert.equal("section's", s:results(3))
    end
  end)
end)

describe("names of ours", function()
  it("cannot be replaced by an injection, whatever on_conflict says", function()
    local function injected(name, how)
      local go = tool("go", { handler = function(_, ctx) ctx:add_tools(tool(name)) end })
      return D.run({ calls "go", read "a", turn(pick "u"), "done" },
        { on_conflict = how, brief = true,
        mode = "inline", tools = { go, tool "u" },
          prompt = ah.prompt { summarized("a", { tool "t" }) } })
    end
    for _, name in ipairs { "read_section", "pick_tools" } do
      for _, how in ipairs { "skip", "replace" } do
        local s = injected(name, how)
        local told = s.reply and table.concat(s:results(), "\n") or ""
        assert.truthy(told:find("Content of section 'a':", 1, true), name .. " " .. how)
        assert.truthy(told:find("Selected u%."), name .. " " .. how)
      end
    end
  end)

  it("cannot be taken away from under the model", function()
    local go = tool("go", { handler = function(_, ctx) ctx:remove_tools "read_section" end })
    local s = D.run({ calls "go", read "a", "done" },
      { tools = { go }, prompt = ah.prompt { summarized("a", { tool "t" }) } })
    assert.equal("done", s.reply and s.reply.text or tostring(s.err))
    sound.check(s.reply:transcript())
  end)
end)

describe("a section that was opened", function()
  it("gives its tools again after they were taken away", function()
    for _, mode in ipairs { "append", "inline", "restart" } do
      local drop = tool("drop", { handler = function(_, ctx) ctx:remove_tools "t" end })
      local s = D.run({ read "a", calls "drop", calls "t", read "a", "done" },
        { mode = mode, tools = { drop }, prompt = ah.prompt { summarized("a", { tool "t" }) } })
      assert.matches("no longer available", s:results(3))
      assert.equal("done", s.reply.text)
      sound.check(s.reply:transcript())
    end
  end)

  it("is closed again by a handler's override, and opened by another reading", function()
    local close = tool("close", { handler = function(_, ctx)
      ctx.session:dispatch(ah.set_visibility_override { path = "a", visibility = "summary" })
    end })
    for _, mode in ipairs { "append", "restart" } do
      local turns = { read "a", calls "close", "one" }
      local agent = D.agent(turns,
        { mode = mode, tools = { close }, prompt = ah.prompt { summarized("a", { tool "t" }) } })
      assert(agent:run "First.")
      turns[1], turns[2], turns[3] = read "a", calls "t", "two"
      local reply = assert(agent:run "Again.")
      assert.equal("t", reply.messages[#reply.messages - 1].content)
      sound.check(reply:transcript())
    end
  end)

  it("says nothing of a sibling with the same beginning of its key", function()
    local s = D.run({ read "a", "done" },
      { prompt = ah.prompt { summarized("a", { tool "t" }), summarized("a-b", { tool "u" }) } })
    assert.same({ "t" }, s.reply.injected_tools)
  end)

  it("by a call whose arguments are long, odd or nested", function()
    local s = D.run({ turn(call("read_section", { section_key = ("x"):rep(20000) }),
      call("read_section", { section_key = "a\0b" }),
        call("read_section", { section_key = { "a" } }),
      call("read_section", { section_key = "a.a.a.a" }), call("read_section", "null"),
      call("read_section", '"a"')), "done" }, { prompt = ah.prompt { summarized("a",
        { tool "t" }) } })
    assert.same({ false, false, false, false, false, false }, s:successes())
    assert.equal("done", s.reply.text)
  end)

  it("32 levels deep is read by its path", function()
    local section, path = summarized("k32", { tool "t" }), "k32"
    for i = 31, 1, -1 do
      section, path = ah.section { key = "k" .. i, section }, ("k%d."):format(i) .. path
    end
    local s = D.run({ read(path), calls "t", "done" }, { prompt = ah.prompt { section } })
    assert.equal("t", s:results(2))
  end)

  it("keeps parameters given for its path", function()
    local function prompt()
      return ah.prompt { summarized("a", { tool "t" },
        { params = { x = "string" }, template = "All ${x}", summary = "Sum ${x}" }) }
    end
    for _, mode in ipairs { "append", "restart" } do
      local s = D.run({ read "a", "done" },
        { mode = mode, prompt = prompt(), params = { a = { x = "$y ${z}" } } })
      assert.truthy(s:results(1):find("All $y ${z}", 1, true))
    end
  end)
end)

describe("calls side by side", function()
  it("of a reading and of parallel tools keep the order of results", function()
    local slow = tool("slow", { parallel = true,
      handler = function() ah.sleep(0.02) return "slow" end })
    local fast = tool("fast", { parallel = true, handler = function() return "fast" end })
    local s = D.run({ turn(call "slow", call "fast", call("read_section", { section_key = "a" }),
      call "t", call "fast"), "done" }, { tools = { slow, fast },
      prompt = ah.prompt { summarized("a", { tool "t" }) } })
    assert.same({ "slow", "fast", "t", "fast" },
      { s:results(1), s:results(2), s:results(4), s:results(5) })
  end)

  it("of methods of one entity wait for each other", function()
    local C, inside = ah.entity { name = "C" }, 0
    C:tool { name = "m", description = "M.", parallel = true, handler = function(self)
      inside = inside + 1
      assert(inside == 1, "two at once")
      ah.sleep(0.01)
      self.n = self.n + 1
      inside = inside - 1
      return self.n
    end }
    local find = tool("find", { handler = function() return C { id = 1, n = 0 } end })
    local s = D.run({ calls "find", turn(call "c_1_m", call "c_1_m", call "c_1_m"), "done" },
      { discover = true, tools = { find } })
    assert.same({ "1", "2", "3" }, { s:results(2), s:results(3), s:results(4) })
  end)

  it("that find one entity in parallel bring its tools once", function()
    local C = customer()
    local find = tool("find", { parallel = true, handler = function()
      ah.sleep(0.01)
      return C { id = "x", spend = 3 }
    end })
    local s = D.run({ turn(call "find", call "find", call "find"), calls "customer_x_spend",
      "done" },
      { discover = true, tools = { find } })
    assert.same({ "customer_x_spend" }, s.reply.injected_tools)
    assert.equal("3", s:results(4))
  end)

  it("with the same id are told apart", function()
    local s = D.run({ turn(call("a", nil, "same"), call("b", nil, "same")), "done" },
      { tools = { tool "a", tool "b" } })
    if s.reply then
      sound.check(s.reply:transcript())
      assert.same({ "a", "b" }, s:results())
    else
      assert.equal("provider", s.err.code)
    end
  end)

  it("of a plan are made in their order", function()
    local session = ah.session()
    local s = D.run({ turn(call("planning_setup_plan",
      { objective = "O", initial_steps = { "a" } }),
      call("planning_add_step", { steps = { "b" } }),
      call("planning_update_step", { step_id = 2, status = "done" }), call "planning_read_plan"),
        "done" },
      { session = session, ah.planning_section { session = session } })
    assert.same({ true, true, true, true }, s:successes())
    assert.equal("done", session[ah.planning.Plan]:latest().steps[2].status)
  end)
end)

describe("a nested run", function()
  it("keeps the entities that it finds to itself", function()
    local C = customer()
    local find = tool("find", { handler = function() return C { id = "x", spend = 3 } end })
    local inner
    local nested = tool("nested", { handler = function()
      inner = D.run({ calls "find", calls "customer_x_spend", "inner" },
        { discover = true, tools = { find } })
      return inner.reply
    end })
    local s = D.run({ calls "nested", calls "customer_x_spend", "done" },
      { discover = true, tools = { nested } })
    assert.equal("3", inner:results(2))
    assert.same({}, s.reply.injected_tools)
    assert.matches("^Tool 'customer_x_spend' not found", s:results(2))
  end)

  it("that returns an entity through the outer handler brings its tools outside", function()
    local C = customer()
    local nested = tool("nested", { handler = function()
      D.run({ "inner" })
      return C { id = "x", spend = 3 }
    end })
    local s = D.run({ calls "nested", calls "customer_x_spend", "done" },
      { discover = true, tools = { nested } })
    assert.equal("3", s:results(2))
  end)

  it("whose outer call fails has its plan and its overrides dropped", function()
    local session = ah.session()
    ah.planning_section { session = session }
    local prompt = ah.prompt { summarized("a", { tool "t" }) }
    local nested = tool("nested", { handler = function(_, ctx)
      D.run({ read "a", "inner" }, { session = ctx.session, prompt = prompt })
      ctx.session:dispatch(ah.planning.SetupPlan { objective = "O" })
      error "after all"
    end })
    local s = D.run({ calls "nested", read "a", calls "t", "done" },
      { session = session, tools = { nested }, prompt = prompt })
    assert.is_false(s:successes()[1])
    assert.is_nil(session[ah.planning.Plan]:latest())
    assert.matches("^Content of section 'a':", s:results(2))
    assert.equal("t", s:results(3))
  end)

  it("that raises visibility_expansion_required opens in the run whose handler it is", function()
    local prompt = ah.prompt { summarized("a", { tool "t" }) }
    local opener = tool("opener", { handler = function()
      error(ah.error { code = "visibility_expansion_required", message = "open it",
        requested_overrides = { a = "full" }, section_keys = { "a" }, reason = "r" })
    end })
    for _, mode in ipairs { "append", "restart" } do
      local inner
      local nested = tool("nested", { handler = function()
        inner = D.run({ calls "opener", calls "t", "inner" },
          { mode = mode, tools = { opener }, prompt = prompt })
        return inner.reply
      end })
      local s = D.run({ calls "nested", "done" }, { mode = mode, tools = { nested } })
      assert.equal("inner", inner.reply and inner.reply.text or tostring(inner.err))
      assert.equal("t", inner:results(2))
      assert.equal("done", s.reply.text)
    end
  end)

  it("passes on the limit that it ran into, if its handler does", function()
    local nested = tool("nested", { handler = function()
      return ah.run { model = D.model { calls "x", calls "y", calls "z", calls "w" },
        log = D.nothing,
        tools = { tool "a" }, "Go." }
    end })
    local s = D.run({ calls "nested", "done" }, { tools = { nested } })
    assert.is_false(s:successes()[1])
    assert.equal("done", s.reply.text)
  end)
end)

describe("handlers that go wrong", function()
  it("after they had added tools, leave none", function()
    local bad = tool("bad", { handler = function(_, ctx)
      ctx:add_tools(tool "new")
      ctx:note "a note"
      error "no"
    end })
    local s = D.run({ calls "bad", calls "new", "done" }, { tools = { bad } })
    assert.same({}, s.reply.injected_tools)
    assert.matches("^Tool 'new' not found", s:results(2))
    assert.falsy(s.reply:transcript():find("a note", 1, true))
  end)

  it("with an entity at hand leave no tools of it", function()
    local C = customer()
    for _, how in ipairs {
      function() return nil, "no", C { id = 1 } end,
      function() error(C { id = 1 }) end,
      function() return ah.result { success = false, value = C { id = 1 } } end,
    } do
      local s = D.run({ calls "bad", "done" },
        { discover = true, tools = { tool("bad", { handler = how }) } })
      assert.same({ false }, s:successes())
      assert.same({}, s.reply.injected_tools)
    end
  end)

  it("by returning what is no result are failed calls", function()
    for _, bad in ipairs { print, coroutine.create(print), io.stdout } do
      local s = D.run({ calls "bad", "done" },
        { tools = { tool("bad", { handler = function() return bad end }) } })
      assert.same({ false }, s:successes())
      assert.equal("done", s.reply.text)
    end
  end)

  it("by returning an error object are failed calls", function()
    local s = D.run({ calls "bad", "done" }, { tools = { tool("bad", { handler = function()
      return nil, ah.error { code = "http", message = "the line is down" }
    end }) } })
    assert.equal("the line is down", s:results(1))
    assert.same({ false }, s:successes())
  end)

  it("by running for too long are failed calls, and nothing of them stays", function()
    local session = ah.session()
    ah.planning_section { session = session }
    local slow = tool("slow", { timeout = 0.05, handler = function(_, ctx)
      ctx.session:dispatch(ah.planning.SetupPlan { objective = "O" })
      ah.sleep(5)
    end })
    local s = D.run({ calls "slow", "done" }, { session = session, tools = { slow } })
    assert.same({ false }, s:successes())
    assert.equal("done", s.reply.text)
    assert.is_nil(session[ah.planning.Plan]:latest())
  end)

  it("raise a code that ends the run, and leave it sound", function()
    for _, code in ipairs { "prompt_evaluation", "deadline_exceeded", "budget_exceeded",
      "cancelled" } do
      local s = D.run({ turn(call "bad", call "t") },
        { tools = { tool "t", tool("bad", { handler = function()
        error(ah.error { code = code, message = "over" })
      end }) } })
      assert.equal(code, s.err.code)
      sound.check(s.err.reply:transcript())
      assert.equal(2, #s:results())
    end
  end)

  it("raise tool_validation with a table, a number or nothing as words", function()
    for _, message in ipairs { "", "plain", ("é"):rep(10) } do
      local s = D.run({ calls "bad", "done" }, { tools = { tool("bad", { handler = function()
        error(ah.error { code = "tool_validation", message = message })
      end }) } })
      assert.equal("Tool validation failed: " .. message, s:results(1))
    end
  end)
end)

describe("what a model may say wrongly", function()
  it("is answered, and the run goes on", function()
    local t = tool("t", { params = { n = "integer", s = "string?" } })
    for _, arguments in ipairs { "", "{", "[]", "null", "7", '{"n":1', '{"n":1}}', '{"n":1,"n":2}',
      '{"n":"1"}', '{"n":1.5}', '{"n":1e400}', '{"n":99999999999999999999}', '{"N":1}',
        '{"n":null}',
      '{"n":1,"s":"\\ud800"}', ("["):rep(600), '{"n":1,"s":null}' } do
      local s = D.run({ { calls = { { name = "t", arguments = arguments } } }, "done" },
        { tools = { t } })
      assert.equal("done", s.reply and s.reply.text or tostring(s.err), arguments)
      assert.same({ false }, s:successes(), arguments)
      sound.check(s.reply:transcript())
    end
  end)

  it("as the name of a tool is told back", function()
    for _, name in ipairs { "T", "t ", "t.t", "tt", "größe", ("t"):rep(200) } do
      local s = D.run({ calls(name), "done" }, { tools = { tool "t" } })
      assert.equal("done", s.reply and s.reply.text or tostring(s.err), name)
      assert.same({ false }, s:successes(), name)
    end
  end)

  it("with whole floats, unicode and long texts is taken", function()
    local t = tool("t", { params = { n = "integer", s = "string" },
      handler = function(args) return math.type(args.n) .. #args.s end })
    local s = D.run({ turn(call("t", '{"n":3.0,"s":"\\u00e9"}'),
      call("t", { n = math.mininteger, s = ("x"):rep(100000) })), "done" }, { tools = { t } })
    assert.same({ "integer2", "integer100000" }, s:results())
  end)
end)

describe("brief descriptions with the rest", function()
  it("pick tools of a section that was opened", function()
    local t = tool("t", { params = { n = "integer" }, full_description = "All of t." })
    for _, mode in ipairs(MODES) do
      local s = D.run({ read "a", turn(pick "t"), calls("t", { n = 1 }), "done" },
        { mode = mode, brief = true, prompt = ah.prompt { summarized("a", { t }) } })
      assert.matches("^Selected t%.", s:results(2))
      assert.equal("t", s:results(3))
    end
  end)

  it("pick tools of entities", function()
    local C = customer()
    local find = tool("find", { handler = function() return C { id = "x", spend = 3 } end })
    local s = D.run({ calls "find", turn(pick "customer_x_spend"), calls "customer_x_spend",
      "done" },
      { mode = "inline", brief = true, discover = true, tools = { find } })
    assert.matches("^Selected customer_x_spend%.", s:results(2))
    assert.equal("3", s:results(3))
  end)

  it("do not pick what was removed, nor what is hidden in a summary", function()
    local drop = tool("drop", { handler = function(_, ctx) ctx:remove_tools "t" end })
    local s = D.run({ calls "drop", turn(pick("t", "hidden")), "done" },
      { mode = "inline", brief = true,
      tools = { tool "t", drop }, prompt = ah.prompt { summarized("a", { tool "hidden" }) } })
    assert.is_false(s:successes()[2])
    assert.matches("^Unknown tools: t, hidden", s:results(2))
  end)

  it("forget nothing in a restart", function()
    local t = tool("t", { params = { n = "integer" }, full_description = "All of t." })
    local s = D.run({ turn(pick "t"), read "a", calls("t", { n = 1 }), turn(pick "t"), "done" },
      { mode = "restart", brief = true, tools = { t },
        prompt = ah.prompt { summarized("a", { tool "u" }) } })
    assert.equal("done", s.reply.text)
    assert.matches("^Already selected: t", s:results(4))
  end)
end)

describe("a registry at work", function()
  it("that loses a tool answers for it", function()
    local registry = ah.registry { tool "t" }
    registry:register(tool("drop", { handler = function() registry:remove "t" end }))
    for _, mode in ipairs { "append", "inline", "restart" } do
      local r = ah.registry { tool "t" }
      r:register(tool("drop", { handler = function() r:remove "t" end }))
      local s = D.run({ calls "t", calls "drop", calls "t", "done" }, { mode = mode, registry = r })
      assert.equal("t", s:results(1))
      assert.matches("^Tool 't' is no longer available", s:results(3))
      assert.same({ "t" }, s.reply.removed_tools)
      sound.check(s.reply:transcript())
    end
    assert.equal(2, #registry)
  end)

  it("that has a tool replaced runs the new one", function()
    for _, mode in ipairs { "append", "inline", "restart" } do
      local r = ah.registry { tool "t" }
      r:register(tool("swap", { handler = function()
        r:replace(tool("t", { params = { n = "integer" }, handler = function(a) return "new "
          .. a.n end }))
      end }))
      local s = D.run({ calls "t", calls "swap", turn(call "t", call("t", { n = 1 })), "done" },
        { mode = mode, registry = r })
      assert.is_false(s:successes()[3])
      assert.equal("new 1", s:results(4))
      sound.check(s.reply:transcript())
    end
  end)

  it("drops what a failed call registered", function()
    local r = ah.registry {}
    r:register(tool("bad", { handler = function()
      r:register(tool "new")
      error "no"
    end }))
    local s = D.run({ calls "bad", calls "new", "done" }, { registry = r })
    assert.matches("^Tool 'new' not found", s:results(2))
    assert.is_false(r:has "new")
  end)

  it("executes in a handler, within its transaction", function()
    local session = ah.session()
    ah.planning_section { session = session }
    local r = ah.registry { tool("plan", { handler = function(_, ctx)
      ctx.session:dispatch(ah.planning.SetupPlan { objective = "O" })
      return "planned"
    end }) }
    local outer = tool("outer", { params = { fail = "boolean" }, handler = function(args)
      local reply = assert(r:execute "plan")
      assert(reply.content == "planned")
      assert(not args.fail, "after all")
      return reply.value
    end })
    D.run({ calls("outer", { fail = true }), "done" }, { session = session, tools = { outer } })
    assert.is_nil(session[ah.planning.Plan]:latest())
    local s = D.run({ calls("outer", { fail = false }), "done" },
      { session = session, tools = { outer } })
    assert.equal("planned", s:results(1))
    assert.equal("O", session[ah.planning.Plan]:latest().objective)
  end)

  it("brings entities of its tools to the run", function()
    local C = customer()
    local r = ah.registry { tool("find", { handler = function() return C { id = "x",
      spend = 3 } end }) }
    local s = D.run({ turn(call "find", call "customer_x_spend"), "done" },
      { discover = true, registry = r })
    assert.equal("3", s:results(2))
  end)

  it("serves two agents at once", function()
    local r = ah.registry { tool "t" }
    local a = { calls "t", "one" }
    local b = { calls "t", calls "later", "two" }
    local first, second = D.agent(a, { registry = r }), D.agent(b, { registry = r })
    assert(first:run "First.")
    r:register(tool "later")
    assert.equal("two", assert(second:run "Second.").text)
    a[1], a[2] = calls "later", "three"
    local reply = assert(first:run "Again.")
    assert.equal("later", reply.messages[#reply.messages - 1].content)
  end)
end)

describe("strategies with the rest", function()
  it("take away a tool that discovery has brought, and the answer says how to find it", function()
    local C = customer()
    local find = tool("find", { handler = function() return C { id = "x", spend = 3 } end })
    local s = D.run({ calls "find", calls "customer_x_spend", calls "customer_x_spend", "done" },
      { discover = true, tools = { find }, strategies = { function(m)
        if m.iteration == 2 then
          m:remove "customer_x_spend"
        end
      end } })
    assert.equal("3", s:results(2))
    assert.is_false(s:successes()[3])
    assert.same({ "customer_x_spend" }, s.reply.removed_tools)
  end)

  it("that add and remove a tool in one answer never offer it", function()
    for _, order in ipairs { "add first", "remove first" } do
      for _, mode in ipairs { "append", "inline", "restart" } do
        local s = D.run({ calls "go", "done" }, { mode = mode, tools = { tool "go", tool "old" },
          strategies = { function(m)
            if order == "add first" then
              m:add(tool "new")
              m:remove "old"
            else
              m:remove "old"
              m:add(tool "new")
            end
          end } })
        assert.same({ "new" }, s.reply.injected_tools)
        assert.same({ "old" }, s.reply.removed_tools)
        if mode == "append" or mode == "restart" then
          assert.equal("go new", s:offered(2), order .. " " .. mode)
        end
      end
    end
  end)

  it("see the readings of sections and may add to them", function()
    local s = D.run({ read "a", calls "extra", "done" },
      { prompt = ah.prompt { summarized("a", { tool "t" }) },
      strategies = { function(m)
        if m.value and m.value.expanded_tools and #m.value.expanded_tools > 0 then
          return tool "extra"
        end
      end } })
    assert.same({ "t", "extra" }, s.reply.injected_tools)
    assert.equal("extra", s:results(2))
  end)

  it("lock a tool of a section until another was called", function()
    local s = D.run({ turn(call("read_section", { section_key = "a" }), call "t", call "key",
      call "t"), "done" },
      { tools = { tool "key" }, strategies = { ah.unlock { tools = "t", after = "key" } },
        prompt = ah.prompt { summarized("a", { tool "t" }) } })
    assert.matches("^This tool is not yet available%.", s:results(2))
    assert.equal("t", s:results(4))
  end)
end)

describe("a conversation with everything in it", function()
  local function everything()
    local C
    C = ah.entity { name = "Thing", fields = { "id" },
      find = function(id) return C { id = id, n = 1 } end }
    C:tool { name = "look", description = "Looks.", handler = function(self) return self.n end }
    local find = tool("find", { handler = function() return C { id = "x", n = 1 } end })
    return { discover = true, tools = { find }, registry = ah.registry { tool "reg" },
      prompt = ah.prompt { summarized("a", { tool "t" }), summarized("b", { tool "u" }) } }
  end

  for _, mode in ipairs(MODES) do
    it("is saved, loaded and forked as it is, by " .. mode, function()
      local turns = { turn(call("read_section", { section_key = "a" }), call "find"),
        calls "thing_x_look", "one" }
      local fields = everything()
      fields.mode = mode
      local agent, _, used = D.agent(turns, fields)
      assert(agent:run "First.")
      local path = os.tmpname()
      assert(agent:save(path))
      local again = everything()
      again.model, again.log = used.model, D.nothing
      local loaded = assert(ah.load(path, again))
      os.remove(path)
      for _, a in ipairs { loaded, agent:fork(), agent } do
        turns[1] = turn(call "t", call "thing_x_look", call "reg",
          call("read_section", { section_key = "b" }))
        turns[2], turns[3] = calls "u", "two"
        local reply = assert(a:run "Again.")
        local results = {}
        for _, m in ipairs(reply.messages) do
          results[#results + 1] = m.role == "tool" and m.content or nil
        end
        local n = #results
        assert.same({ "t", "1", "reg" }, { results[n - 4], results[n - 3], results[n - 2] })
        assert.matches("^Content of section 'b':", results[n - 1])
        assert.equal("u", results[n])
        sound.check(a:transcript())
      end
    end)
  end

  it("tells events that are JSON, in an order that makes sense", function()
    local fields = everything()
    local s = D.run({ turn(call("read_section", { section_key = "a" }), call "find"),
      calls "thing_x_look", "done" },
      fields)
    assert.equal("start", s.events[1].type)
    assert.equal("done", s.events[#s.events].type)
    local pending = {}
    for _, e in ipairs(s.events) do
      local plain = {}
      for k, v in pairs(e) do
        plain[k] = v
      end
      assert.truthy(ah.json.encode(plain))
      if e.type == "tool_calls" then
        for _, c in ipairs(e.calls) do
          pending[#pending + 1] = c.id
        end
      elseif e.type == "tool_invoked" then
        assert.equal(table.remove(pending, 1), e.id)
      end
    end
    assert.same({}, pending)
  end)

  it("is not harmed by observers, logs and strategies that raise", function()
    local fields = everything()
    fields.strategies = { function() error "strategy" end }
    fields.model = D.model { turn(call("read_section", { section_key = "a" }), call "find"),
      turn(call "thing_x_look", call "t"), "done" }
    fields.on = function() error "observer" end
    fields.log = function() error "log" end
    fields[1] = "Go."
    local reply = assert(ah.run(fields))
    assert.equal("done", reply.text)
    assert.equal(4, reply.tool_calls)
    sound.check(reply:transcript())
  end)
end)

describe("limits with the rest", function()
  it("an expansion beyond max_tools is told, and the run goes on", function()
    local tools = {}
    for i = 1, 10 do
      tools[i] = tool("t" .. i)
    end
    for _, mode in ipairs { "append", "restart" } do
      local s = D.run({ read "a", calls "t1", "done" },
        { mode = mode, max_tools = 4, prompt = ah.prompt { summarized("a", tools) } })
      assert.equal("done", s.reply and s.reply.text or tostring(s.err))
      assert.same({ "t1", "t2", "t3" }, s.reply.injected_tools)
      assert.is_true(#s:of "warning" >= 1)
      sound.check(s.reply:transcript())
    end
  end)

  it("a conversation that met max_tools can be saved and loaded", function()
    local turns = { read "a", "one" }
    local function prompt()
      return ah.prompt { summarized("a", { tool "t1", tool "t2", tool "t3" }) }
    end
    for _, mode in ipairs { "append", "restart" } do
      turns[1], turns[2] = read "a", "one"
      local agent, _, fields = D.agent(turns, { mode = mode, max_tools = 3, prompt = prompt() })
      assert(agent:run "First.")
      local path = os.tmpname()
      assert(agent:save(path))
      local loaded = assert(ah.load(path,
        { model = fields.model, max_tools = 3, prompt = prompt(), log = D.nothing }))
      os.remove(path)
      turns[1], turns[2] = calls "t1", "two"
      local reply = assert(loaded:run "Again.")
      assert.equal("t1", reply.messages[#reply.messages - 1].content)
    end
  end)

  it("a forced choice of tools holds for the first request", function()
    for _, choice in ipairs { "required", { name = "t" } } do
      local chosen = {}
      local function note(r)
        chosen[#chosen + 1] = r.options.tool_choice == nil and "auto" or r.options.tool_choice
      end
      local s = D.run({ function(r) note(r) return calls "t" end,
        function(r) note(r) return "done" end },
        { tools = { tool "t" }, options = { tool_choice = choice } })
      assert.equal("done", s.reply.text)
      assert.same(choice, chosen[1])
      assert.equal("auto", chosen[2])
    end
  end)

  it("eleven restarts in two runs are no failure: each run counts anew", function()
    local sections = {}
    for i = 1, 12 do
      sections[i] = summarized("s" .. i, { tool("t" .. i) })
    end
    local turns = {}
    local agent = D.agent(turns, { mode = "restart", prompt = ah.prompt(sections) })
    for half = 0, 1 do
      for i = 1, 6 do
        turns[i] = read("s" .. (half * 6 + i))
      end
      turns[7] = "ok"
      assert.equal("ok", assert(agent:run "Go.").text)
    end
  end)

  it("sections opened in one answer are one restart", function()
    local sections, keys = {}, {}
    for i = 1, 12 do
      sections[i], keys[i] = summarized("s" .. i, { tool("t" .. i) }), "s" .. i
    end
    local s = D.run({ read(table.unpack(keys)), "done" },
      { mode = "restart", max_restarts = 1, loop_detector = false, prompt = ah.prompt(sections) })
    assert.equal("done", s.reply and s.reply.text or tostring(s.err))
  end)
end)

describe("an empty answer", function()
  it("is an answer, by default, and no harm to the next request", function()
    local turns = { "", "two" }
    local agent, seen = D.agent(turns, {})
    assert.equal("", assert(agent:run "First.").text)
    assert.equal("two", assert(agent:run "Again.").text)
    assert.equal(2, #seen.requests)
  end)

  it("may be asked for again, or be an error", function()
    local s = D.run({ "", "now" }, { on_empty = "retry" })
    assert.equal("now", s.reply.text)
    s = D.run({ "" }, { on_empty = "error" })
    assert.truthy(s.err)
  end)
end)

describe("loading", function()
  it("takes sections in the array part, as ah.agent does", function()
    local turns = { read "a", "one" }
    local agent, _, fields = D.agent(turns, { summarized("a", { tool "t" }) })
    assert(agent:run "First.")
    local path = os.tmpname()
    assert(agent:save(path))
    local loaded = assert(ah.load(path, { model = fields.model, log = D.nothing,
      summarized("a", { tool "t" }) }))
    os.remove(path)
    turns[1], turns[2] = calls "t", "two"
    assert.equal("two", assert(loaded:run "Again.").text)
  end)

  it("of a scripted conversation says that a model is to be given", function()
    local turns = { "one" }
    local agent = D.agent(turns, {})
    assert(agent:run "First.")
    local path = os.tmpname()
    assert(agent:save(path))
    local none, err = ah.load(path)
    local loaded = assert(ah.load(path, { model = D.model { "two" }, log = D.nothing }))
    os.remove(path)
    assert.is_nil(none)
    assert.equal("provider", err.code)
    assert.matches("give model = ", err.message)
    assert.equal("two", assert(loaded:run "Again.").text)
  end)

  it("of what is no conversation gives nil and an error", function()
    local path = os.tmpname()
    for _, text in ipairs { "", "{", "[]", "{}", '{"agenthost_transcript":99}', "\xff" } do
      local f = assert(io.open(path, "w"))
      f:write(text)
      f:close()
      local ok, loaded, err = pcall(ah.load, path, { model = D.model {} })
      assert.is_true(ok, tostring(loaded))
      assert.is_nil(loaded)
      assert.equal("usage", err.code)
    end
    os.remove(path)
    local loaded, err = ah.load("/nonexistent/file", { model = D.model {} })
    assert.is_nil(loaded)
    assert.equal("usage", err.code)
  end)
end)

describe("a system text that a strategy has set", function()
  it("stays when a section is opened, on both kinds of adapters", function()
    for _, mode in ipairs { "append", "inline", "restart" } do
      local s = D.run({ calls "go", read "a", "done" }, { mode = mode, tools = { tool "go" },
        prompt = ah.prompt { summarized("a", { tool "t" }) }, strategies = { function(m)
          if m.iteration == 1 then
            m:prompt "Set by the strategy."
          end
        end } })
      assert.equal("done", s.reply.text)
      assert.truthy(ah.json.encode(s.requests[3]):find("Set by the strategy.", 1, true), mode)
    end
  end)
end)

describe("long results", function()
  it("are told by head and tail, and kept in a file where there is a file system", function()
    local fs = ah.filesystem { memory = true }
    local long = ("line\n"):rep(20000)
    local s = D.run({ calls "t", "done" }, { resources = { filesystem = fs },
      tools = { tool("t", { handler = function() return long end }) } })
    assert.is_true(#s:results(1) <= 66000)
    local path = s:results(1):match "([%w%./_%-]+%.txt)"
    assert.truthy(path, s:results(1):match "%[[^\n]*%]")
    assert.equal(long, (fs:read(path)))
  end)
end)

describe("a tool whose result is the answer", function()
  local function direct(name, handler)
    return tool(name, { return_direct = true, handler = handler })
  end

  it("ends the run with its own text", function()
    local t = direct("t", function() return "the answer" end)
    local s = D.run({ calls "t", "never" }, { tools = { t } })
    assert.equal("the answer", s.reply and s.reply.text or tostring(s.err))
    assert.equal(1, s.reply.iterations)
    sound.check(s.reply:transcript())
  end)

  it("lets the model go on where it fails, or stands beside another call", function()
    local fails = direct("fails", function() return nil, "not now" end)
    local t = direct("t", function() return "the answer" end)
    local s = D.run({ calls "fails", "done" }, { tools = { fails } })
    assert.equal("done", s.reply.text)
    s = D.run({ turn(call "t", call "other"), "done" }, { tools = { t, tool "other" } })
    assert.equal("done", s.reply.text)
  end)
end)
