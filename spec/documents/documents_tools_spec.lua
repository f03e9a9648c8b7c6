-- The document on the runtime of tools (seed 002), statement by statement: tools, results,
-- contexts, examples, dispatch, failures, sessions, and the planning tools.
local ah = require "agenthost"
local D = require "support.documents"
local sound = require "support.sound"

local tool, call, calls, turn = D.tool, D.call, D.calls, D.turn

local function declared(fields)
  local t = { name = "t", description = "The tool t.", handler = D.nothing }
  for k, v in pairs(fields or {}) do
    t[k] = v
  end
  return t
end

local function refused(fields)
  local err = D.raised(ah.tool, declared(fields))
  assert.equal("prompt_validation", err.code, tostring(err))
  return err
end

-- Runs one call whose handler is f. Returns the result that the model gets, and the run.
local function answer(f, fields)
  fields = fields or {}
  local t = tool("t", { handler = f, params = fields.params, result = fields.result,
    render = fields.render })
  fields.params, fields.result, fields.render = nil, nil, nil
  fields.tools = { t }
  local s = D.run({ calls("t", fields.arguments), "done" }, (function()
    fields.arguments = nil
    return fields
  end)())
  return s:results(1), s
end

-- The document's example registration.
local function lookup_tool(fields)
  local t = {
    name = "lookup_entity",
    description = "Fetch information for an entity ID.",
    params = { entity_id = "string: ID to fetch" },
    result = ah.schema.short { entity_id = "string", url = "string" },
    handler = function(params, context)
      assert(context.session)
      local result = { entity_id = params.entity_id, url = "https://..." }
      return ah.result { message = ("Fetched %s"):format(result.entity_id), value = result }
    end,
    examples = { { description = "Basic lookup", input = { entity_id = "abc-123" },
      output = { entity_id = "abc-123", url = "https://..." } } },
  }
  for k, v in pairs(fields or {}) do
    t[k] = v
  end
  return ah.tool(t)
end

describe("a tool's declaration", function()
  it("takes names of ^[a-z0-9_-]{1,64}$ and no others", function()
    for _, name in ipairs { "a", "lookup_entity", "look-up", "0", "_", "-", ("x"):rep(64) } do
      assert.equal(name, ah.tool(declared { name = name }).name)
    end
    for _, name in ipairs { "", "Lookup", "searchCustomer", "look up", "é", "a.b", "a/b",
      ("x"):rep(65), "a\n", "a\0" } do
      assert.equal("prompt_validation", refused({ name = name }).code)
    end
    assert.equal("prompt_validation", D.raised(ah.tool, { description = "D." }).code)
  end)

  it("takes descriptions of 1 to 200 characters", function()
    assert.equal(200, #ah.tool(declared { description = ("x"):rep(200) }).spec.description)
    refused { description = ("x"):rep(201) }
    refused { description = "" }
    refused { description = "   " }
    assert.equal("prompt_validation", D.raised(ah.tool, { name = "t" }).code)
  end)

  it("needs no handler: a call is answered with an error", function()
    local t = ah.tool { name = "t", description = "T." }
    local s = D.run({ calls "t", "done" }, { tools = { t } })
    assert.same({ false }, s:successes())
    assert.equal("done", s.reply.text)
  end)

  it("accepts overrides and has no examples unless it says so", function()
    local t = ah.tool(declared())
    assert.is_true(t.accepts_overrides)
    assert.same({}, t.examples)
    assert.is_false(ah.tool(declared { accepts_overrides = false }).accepts_overrides)
  end)

  it("can be asked for what it was made of", function()
    local Params = ah.type { name = "LookupParams", fields = { entity_id = "string: ID to fetch" } }
    local Result = ah.type { name = "LookupResult",
      fields = { entity_id = "string", url = "string" } }
    local t = lookup_tool { params = Params, result = Result, examples = {} }
    assert.equal("function", type(t.handler))
    local params = t.params == Params and Params.schema or t.params
    local result = t.result == Result and Result.schema or t.result
    assert.truthy(ah.schema(params):text():find('"entity_id"', 1, true))
    assert.truthy(ah.schema(result):text():find('"url"', 1, true))
    assert.equal("Fetch information for an entity ID.", t.description)
  end)

  it("knows the document's words, or names ours", function()
    for word, ours in pairs { params_type = "params", paramsType = "params", result_type = "result",
      input_schema = "schema", acceptsOverrides = "accepts_overrides", example = "examples" } do
      local err = D.raised(ah.tool, declared { [word] = {} })
      assert.truthy(err.message:find("'" .. ours .. "'", 1, true), err.message)
    end
  end)
end)

describe("a tool's result", function()
  it("is text for the model, with a value for everybody else", function()
    local value
    local text = answer(function() return ah.result { message = "Done", value = { a = 1 } } end,
      { strategies = { function(m) value = m.value end } })
    assert.equal('Done\n\n{"a":1}', text)
    assert.same({ a = 1 }, value)
  end)

  it("has the convenience constructors", function()
    assert.equal('Done\n\n{"n":1}', (answer(function() return ah.ok({ n = 1 }, "Done") end)))
    assert.equal('{"n":1}', (answer(function() return ah.ok { n = 1 } end)))
    local text, s = answer(function() return ah.fail "Something went wrong" end)
    assert.equal("Something went wrong", text)
    assert.same({ false }, s:successes())
  end)

  it("is a success unless it says otherwise", function()
    local _, s = answer(function() return ah.result { message = "m" } end)
    assert.same({ true }, s:successes())
    _, s = answer(function() return ah.result { message = "m", success = false } end)
    assert.same({ false }, s:successes())
  end)

  it("may be without a value", function()
    assert.equal("Only words", (answer(function() return ah.result { message = "Only words" } end)))
    local text, s = answer(function() return ah.result {} end)
    assert.same({ true }, s:successes())
    assert.equal("OK", text)
  end)

  it("hides its value from the provider where exclude_value_from_context says so", function()
    local value
    local text, s = answer(function()
      return ah.result { message = "Kept.", value = { secret = "s3cret" },
        exclude_value_from_context = true }
    end, { strategies = { function(m) value = m.value end } })
    assert.equal("Kept.", text)
    assert.same({ secret = "s3cret" }, value)
    assert.falsy(ah.json.encode(s.requests[2].entries):find("s3cret", 1, true))
  end)

  it("that failed without a word does not read as if it had succeeded", function()
    for _, f in ipairs { function() return ah.result { success = false } end,
      function() return nil, "" end, function() return ah.fail "" end,
      function() return ah.result { success = false, message = "" } end } do
      local text, s = answer(f)
      assert.equal("Tool 't' failed and did not say why.", text)
      assert.same({ false }, s:successes())
    end
    assert.equal("", (answer(function() return "" end)))
    assert.equal('{"why":1}', (answer(function()
      return ah.result { success = false, value = { why = 1 } }
    end)))
  end)

  it("is refused with fields that it does not have", function()
    for word, ours in pairs { mesage = "message", is_error = "success", isError = "success",
      excludeValueFromContext = "exclude_value_from_context" } do
      local err = D.raised(ah.result, { [word] = "x" })
      assert.truthy(err.message:find("'" .. ours .. "'", 1, true), err.message)
    end
  end)

  it("renders its value by the type, else as JSON", function()
    local Money = ah.type { name = "Money", fields = { amount = "integer" },
      render = function(v) return ("$%d"):format(v.amount) end }
    assert.equal("$450", (answer(function() return Money { amount = 450 } end)))
    assert.equal("$450", (answer(function() return { amount = 450 } end, { result = Money })))
    assert.equal("M\n\n$450", (answer(function() return ah.ok(Money { amount = 450 }, "M") end)))
    assert.equal("*5*", (answer(function() return 5 end,
      { render = function(v) return "*" .. v .. "*" end })))
  end)

  it("whose render fails is shown as JSON, with a warning", function()
    for _, render in ipairs { function() error "no" end, function() return {} end,
      function() end } do
      local text, s = answer(function() return { a = 1 } end, { render = render })
      assert.equal('{"a":1}', text)
      assert.is_true(#s:of "warning" >= 1)
    end
  end)

  it("is of the declared type, or the call has failed", function()
    local text, s = answer(function() return { entity_id = 5 } end,
      { result = ah.schema.short { entity_id = "string" } })
    assert.same({ false }, s:successes())
    assert.matches("entity_id", text)
  end)

  it("keeps unicode, integers of 64 bits, null and empty lists", function()
    assert.equal("héé ✓", (answer(function() return "héé ✓" end)))
    assert.equal("9223372036854775807", (answer(function() return math.maxinteger end)))
    assert.equal('{"a":null,"l":[]}', (answer(function() return { a = ah.null,
      l = ah.array {} } end)))
    assert.equal("null", (answer(function() return ah.null end)))
  end)

  it("that cannot be said is a failed call", function()
    local cycle = {}
    cycle.me = cycle
    for _, bad in ipairs { cycle, { print }, { 0 / 0 }, { "\xff" }, { [1] = 1, [5] = 2 } } do
      local _, s = answer(function() return bad end)
      assert.same({ false }, s:successes())
      assert.equal("done", s.reply.text)
    end
  end)

  it("that is nil by name says null, and nothing says OK", function()
    assert.equal("OK", (answer(function() end)))
    assert.equal("null", (answer(function() return nil end)))
  end)
end)

describe("the context of a tool", function()
  local function context(fields, f)
    local found
    fields.tools = { tool("look", { handler = function(_, ctx) found = f(ctx) end }) }
    local s = D.run({ calls "look", "done" }, fields)
    assert.equal("done", s.reply and s.reply.text or tostring(s.err))
    return found
  end

  it("has the prompt and the rendered prompt", function()
    local prompt = ah.prompt { key = "p", ah.section { key = "a", template = "Hello ${name}.",
      params = { name = "string" } } }
    local found = context({ prompt = prompt, params = { name = "Ann" } }, function(ctx)
      return { ctx.prompt, tostring(ctx.rendered_prompt) }
    end)
    assert.equal(prompt, found[1])
    assert.equal("Hello Ann.", found[2])
  end)

  it("has the adapter and the session", function()
    local session = ah.session()
    local found = context({ session = session }, function(ctx)
      return { ctx.adapter.provider, ctx.session == session }
    end)
    assert.same({ "scripted", true }, found)
  end)

  it("has deadline and budget tracker, nil where there is none", function()
    assert.same({ "nil", "nil" }, context({}, function(ctx)
      return { type(ctx.deadline), type(ctx.budget_tracker) }
    end))
    local budget = ah.budget { requests = 9 }
    local found = context({ budget = budget, timeout = 60 }, function(ctx)
      return { ctx.deadline > 0 and ctx.deadline <= 60, ctx.budget_tracker == budget }
    end)
    assert.same({ true, true }, found)
  end)

  it("cannot be changed", function()
    assert.is_false(context({}, function(ctx)
      return (pcall(function() ctx.session = 1 end))
    end))
    assert.is_false(context({}, function(ctx)
      return (pcall(function() ctx.mine = 1 end))
    end))
  end)

  it("is of no use when the call is over", function()
    local kept
    context({}, function(ctx) kept = ctx end)
    assert.is_false(pcall(function() return kept:note "late" end))
  end)

  it("gives resources by name: get and get_optional", function()
    local http = {}
    local found = context({ resources = { http = http } }, function(ctx)
      return { ctx.resources:get "http" == http, ctx.resources:get_optional "db" == nil,
        (pcall(function() return ctx.resources:get "db" end)) }
    end)
    assert.same({ true, true, false }, found)
  end)

  it("takes them from the prompt, which owns them", function()
    local log = {}
    local prompt = ah.prompt { ah.section { key = "a", template = "A" }, resources = {
      db = ah.resource { provide = function()
        log[#log + 1] = "open"
        return {}
      end, close = function() log[#log + 1] = "close" end } } }
    context({ prompt = prompt }, function(ctx)
      assert(ctx.resources:get "db" == ctx.resources:get "db")
      log[#log + 1] = "used"
    end)
    assert.same({ "open", "used", "close" }, log)
  end)

  it("has the file system as a shorthand", function()
    local fs = ah.filesystem { memory = true }
    assert(fs:write("config.yaml", "a: 1"))
    assert.equal("a: 1", context({ resources = { filesystem = fs } }, function(ctx)
      return (ctx.filesystem:read "config.yaml")
    end))
    assert.is_nil(context({}, function(ctx) return ctx.filesystem end))
  end)

  it("lets a handler fail for want of one, as the document's does", function()
    local text, s = answer(function(_, ctx)
      local fs = ctx.filesystem
      if fs == nil then
        return ah.result { message = "No filesystem available", value = nil, success = false }
      end
    end)
    assert.equal("No filesystem available", text)
    assert.same({ false }, s:successes())
  end)

  it("publishes on the session's dispatcher", function()
    local session, seen = ah.session(), {}
    session.dispatcher:subscribe("note", function(value) seen[#seen + 1] = value.text end)
    context({ session = session }, function(ctx)
      ctx.session.dispatcher:publish { type = "note", text = "hello" }
      ctx:publish { type = "note", text = "again" }
    end)
    assert.same({ "hello", "again" }, seen)
  end)
end)

describe("an example", function()
  it("is kept with its tool", function()
    local t = lookup_tool()
    assert.equal(1, #t.examples)
    assert.equal("Basic lookup", t.examples[1].description)
    assert.same({ entity_id = "abc-123" }, t.examples[1].input)
    assert.same({ entity_id = "abc-123", url = "https://..." }, t.examples[1].output)
  end)

  it("must be what params and result say", function()
    refused { params = { id = "string" }, examples = { { description = "D", input = { id = 5 } } } }
    refused { params = { id = "string" }, examples = { { description = "D", input = {} } } }
    refused { params = { id = "string" }, examples = { { description = "D",
      input = { id = "a", more = 1 } } } }
    refused { result = ah.schema.short { id = "string" },
      examples = { { description = "D", input = {}, output = { id = 5 } } } }
  end)

  it("has a description of at most 200 characters", function()
    assert.truthy(ah.tool(declared { examples = { { description = ("x"):rep(200), input = {} } } }))
    refused { examples = { { description = ("x"):rep(201), input = {} } } }
  end)

  it("is told to the model with its tool", function()
    local s = D.run({ "done" }, { tools = { lookup_tool() } })
    local told = D.declared(s.requests[1], "lookup_entity").description
    assert.truthy(told:find("Fetch information for an entity ID.", 1, true))
    assert.truthy(told:find("Basic lookup", 1, true), told)
    assert.truthy(told:find("abc-123", 1, true))
  end)

  it("is refused with other members, or as something else", function()
    for _, bad in ipairs { { { description = "D", inputs = {} } }, { "x" }, { 1 } } do
      assert.is_false(pcall(ah.tool, declared { examples = bad }))
    end
  end)
end)

describe("registration", function()
  it("runs the document's example", function()
    local template = ah.prompt {
      ns = "examples/tooling",
      key = "demo",
      sections = {
        ah.section { title = "Guidance", key = "guidance", template = "Use tools for context.",
          tools = { lookup_tool() } },
      },
    }
    assert.equal("examples/tooling/demo", template.id)
    assert.equal("## Guidance\n\nUse tools for context.", tostring(template:render()))
    local s = D.run({ calls("lookup_entity", { entity_id = "abc-123" }), "done" },
      { prompt = template })
    assert.equal('Fetched abc-123\n\n{"entity_id":"abc-123","url":"https://..."}', s:results(1))
  end)

  it("takes tools of a section", function()
    local section = ah.section { title = "Guidance", template = "Use tools when needed.",
      key = "guidance",
      tools = { tool "lookup", tool "search" } }
    assert.equal(2, #section.tools)
    assert.equal("guidance", section.key)
  end)

  it("refuses a name twice, anywhere in the tree", function()
    local function two(a, b)
      return D.raised(ah.prompt, { ah.section { key = "one", tools = { tool "lookup" },
        table.unpack(a) },
        ah.section { key = "two", tools = { tool "lookup" }, enabled = b.enabled,
          visibility = b.visibility,
          summary = b.summary } })
    end
    for _, b in ipairs { {}, { enabled = false }, { visibility = "summary", summary = "S" } } do
      local err = two({}, b)
      assert.equal("prompt_validation", err.code)
      assert.equal("lookup", err.tool)
      assert.equal("two", err.section_path)
    end
    local err = D.raised(ah.prompt, { ah.section { key = "one",
      tools = { tool "lookup", tool "lookup" } } })
    assert.equal("prompt_validation", err.code)
  end)

  it("refuses the same tool twice", function()
    local t = tool "lookup"
    assert.equal("prompt_validation",
      D.raised(ah.prompt, { ah.section { key = "a", tools = { t } },
        ah.section { key = "b", tools = { t } } }).code)
  end)

  it("lists the tools depth-first, in order, of enabled sections", function()
    local prompt = ah.prompt {
      ah.section { key = "a", tools = { tool "a1" },
        ah.section { key = "b", tools = { tool "b1", tool "b2" } } },
      ah.section { key = "off", tools = { tool "x" }, enabled = false,
        ah.section { key = "y", tools = { tool "y1" } } },
      ah.section { key = "c", tools = { tool "c1" } },
    }
    for _ = 1, 3 do
      local names = {}
      for i, t in ipairs(prompt:render().tools) do
        names[i] = t.name
      end
      assert.same({ "a1", "b1", "b2", "c1" }, names)
    end
  end)
end)

describe("dispatch", function()
  it("refuses arguments that are not the tool's: extra = forbid", function()
    local ran = 0
    local t = tool("t", { params = { id = "string", n = "integer = 3" },
      handler = function() ran = ran + 1 end })
    local s = D.run({ turn(call "t", call("t", { id = 1 }), call("t", { id = "a", more = true }),
      call("t", { id = ah.null }), call("t", "[]"), call("t", "{"),
        call("t", '{"id":"a","id":"b"}'),
      call("t", { id = "a", n = "x" })), "done" }, { tools = { t }, loop_detector = false })
    assert.same({ false, false, false, false, false, false, false, false }, s:successes())
    for i = 1, 8 do
      assert.matches("^Tool validation failed: ", s:results(i))
    end
    assert.equal(0, ran)
    assert.equal("done", s.reply.text)
  end)

  it("fills defaults in", function()
    local got
    local t = tool("t", { params = { id = "string", n = "integer = 3" },
      handler = function(args) got = args end })
    D.run({ calls("t", { id = "a" }), "done" }, { tools = { t } })
    assert.same({ id = "a", n = 3 }, got)
  end)

  it("makes typed params an instance", function()
    local Params = ah.type { name = "P", fields = { id = "string" } }
    local session = ah.session { types = { Params } }
    local _, s = answer(function(params, ctx) ctx.session:dispatch(params) end,
      { params = Params, arguments = { id = "a" }, session = session })
    assert.same({ true }, s:successes())
    assert.equal("a", session[Params]:latest().id)
  end)

  it("refuses to begin when the deadline has passed", function()
    local ran = false
    local slow = tool("slow", { handler = function() ah.sleep(0.3) end })
    local late = tool("late", { handler = function() ran = true end })
    local s = D.run({ turn(call "slow", call "late"), "done" },
      { tools = { slow, late }, timeout = 0.1 })
    assert.equal("deadline_exceeded", s.err.code)
    assert.is_true(s.err:is "prompt_evaluation")
    assert.is_false(ran)
    sound.check(s.err.reply:transcript())
  end)

  it("takes a session back when a handler fails or raises", function()
    local Item = ah.type { name = "Item", fields = { n = "integer" } }
    local session = ah.session { types = { Item } }
    local fs = ah.filesystem { memory = true }
    local function acts(how)
      return function(_, ctx)
        ctx.session:dispatch(Item { n = 1 })
        ctx.filesystem:write("a", "x")
        return how()
      end
    end
    for i, how in ipairs { function() error "no" end, function() return nil, "no" end,
      function() return ah.fail "no" end, function() return ah.result { success = false } end,
      function() error(ah.error { code = "tool_validation", message = "no" }) end,
        function() return print end } do
      local _, s = answer(acts(how), { session = session, resources = { filesystem = fs } })
      assert.same({ false }, s:successes(), tostring(i))
      assert.equal(0, #session[Item])
      assert.is_nil((fs:read "a"))
    end
    answer(acts(function() end), { session = session, resources = { filesystem = fs } })
    assert.equal(1, #session[Item])
    assert.equal("x", (fs:read "a"))
  end)

  it("tells of every call exactly once: tool_invoked for all outcomes", function()
    local fails = tool("fails", { handler = function() error "no" end })
    local s = D.run({ turn(call "t", call "fails", call "nobody", call("t", { x = 1 })), "done" },
      { tools = { tool "t", fails } })
    local seen = {}
    for i, e in ipairs(s:of "tool_invoked") do
      seen[i] = e.name .. " " .. tostring(e.success)
    end
    assert.same({ "t true", "fails false", "nobody false", "t false" }, seen)
  end)

  it("tells subscribers of the session, too", function()
    local session, seen = ah.session(), {}
    session.dispatcher:subscribe("tool_invoked", function(e) seen[#seen + 1] = e.name end)
    D.run({ turn(call "t", call "t"), "done" }, { tools = { tool "t" }, session = session })
    assert.same({ "t", "t" }, seen)
  end)

  it("gives observers the value with the event", function()
    local value
    D.run({ calls "t", "done" }, { tools = { tool("t",
      { handler = function() return { n = 1 } end }) },
      strategies = {} })
    local model = D.model { calls "t", "done" }
    ah.run { model = model, log = D.nothing, tools = { tool("t",
      { handler = function() return { n = 1 } end }) },
      on = { tool_invoked = function(e) value = e.value end }, "Go." }
    assert.same({ n = 1 }, value)
  end)

  it("routes a value to its slice on success alone, and tolerates none", function()
    local Item = ah.type { name = "Item", fields = { n = "integer" } }
    local session, events = ah.session { types = { Item } }, {}
    session:reduce(Item, Item, function(view, event)
      events[#events + 1] = event.value and event.value.n or "none"
      if event.value then
        view:append(event.value)
      end
    end)
    local returns = { Item { n = 1 }, ah.result { success = false, value = Item { n = 2 } },
      ah.ok() }
    local n = 0
    local t = tool("t", { result = Item, handler = function()
      n = n + 1
      return returns[n]
    end })
    D.run({ turn(call "t", call "t", call "t"), "done" }, { tools = { t }, session = session })
    assert.same({ 1, "none" }, events)
    assert.equal(1, session[Item]:latest().n)
  end)
end)

describe("failures", function()
  it("never end the run: any exception is a result that guides the model", function()
    for _, raise in ipairs { function() error "plain" end, function() error("no place", 0) end,
      function() error { message = "table" } end, function() error() end, function() error(42) end,
      function() local t = nil; return t.x end, function() return #nil end, -- luacheck: ignore
      function() error(setmetatable({}, { __tostring = function() return "printed" end })) end,
      function() assert(false, "asserted") end,
        function() assert(io.open "/nonexistent/file") end } do
      local text, s = answer(raise)
      assert.same({ false }, s:successes())
      assert.equal("done", s.reply.text)
      assert.matches("^Tool 't' execution failed: ", text)
    end
  end)

  it("of code tool_validation are told as such", function()
    local text, s = answer(function() error(ah.error { code = "tool_validation",
      message = "n must be even" }) end)
    assert.equal("Tool validation failed: n must be even", text)
    assert.equal("done", s.reply.text)
  end)

  it("of code prompt_evaluation end the run with it", function()
    local _, s = (function()
      local s = D.run({ calls "t" }, { tools = { tool("t", { handler = function()
        error(ah.error { code = "prompt_evaluation", message = "no way on" })
      end }) } })
      return nil, s
    end)()
    assert.equal("prompt_evaluation", s.err.code)
    assert.matches("no way on", s.err.message)
    sound.check(s.err.reply:transcript())
  end)

  it("of code deadline_exceeded end it as a kind of prompt_evaluation", function()
    local s = D.run({ calls "t" }, { tools = { tool("t", { handler = function()
      error(ah.error { code = "deadline_exceeded", message = "late" })
    end }) } })
    assert.equal("deadline_exceeded", s.err.code)
    assert.is_true(s.err:is "prompt_evaluation")
    assert.equal("tool", s.err.phase)
  end)

  it("by a wrong type are descriptive", function()
    local text = answer(function(args) return args.n .. {} end,
      { params = { n = "integer" }, arguments = { n = 1 } })
    assert.matches("attempt to concatenate a table value", text)
  end)

  it("are logged with where they were raised, and the model is told without", function()
    local text, s = answer(function() error "the place is known" end)
    assert.equal("Tool 't' execution failed: the place is known", text)
    assert.matches("documents_tools_spec%.lua:%d+: the place is known", s:log())
    assert.matches("stack traceback", s:log())
  end)

  it("reach the model as the tool's answer", function()
    local _, s = answer(function() return nil, "not today" end)
    local entry = s.requests[2].entries[#s.requests[2].entries]
    assert.equal("not today", entry.content)
    assert.is_false(entry.success)
  end)

  it("of a handler's signature: more than it will be given is refused at once", function()
    refused { handler = function(a, b, c) return a, b, c end }
    assert.truthy(ah.tool(declared { handler = function() end }))
    assert.truthy(ah.tool(declared { handler = function(...) return ... end }))
    assert.truthy(ah.tool(declared { handler = print }))
    assert.is_false(pcall(ah.tool, declared { handler = "lookup" }))
    assert.is_false(pcall(ah.tool, declared { handler = {} }))
  end)

  it("in parallel leave the others their results", function()
    local good = tool("good", { parallel = true,
      handler = function() ah.sleep(0.01) return "good" end })
    local bad = tool("bad", { parallel = true, handler = function() error "bad" end })
    local s = D.run({ turn(call "good", call "bad", call "good"), "done" },
      { tools = { good, bad } })
    assert.same({ true, false, true }, s:successes())
  end)
end)

describe("planning", function()
  local function plan_of(turns, fields, n)
    local session = ah.session()
    local section = ah.planning_section { session = session, accepts_overrides = false }
    local s = D.run(turns, { session = session, section, table.unpack(fields or {}) })
    return session[ah.planning.Plan]:latest(), s, n
  end

  local function p(name, arguments) return call("planning_" .. name, arguments) end

  local SETUP = p("setup_plan", { objective = "Tea", initial_steps = { "Boil", "Pour" } })

  it("has the four tools of the document", function()
    local _, s = plan_of { "done" }
    assert.equal("planning_setup_plan planning_add_step planning_update_step planning_read_plan",
      s:offered(1))
  end)

  it("has the data of the document, in the session", function()
    local plan = plan_of { turn(SETUP), "done" }
    assert.equal("Tea", plan.objective)
    assert.equal("active", plan.status)
    assert.equal(2, #plan.steps)
    assert.same({ 1, "Boil", "pending" }, { plan.steps[1].step_id, plan.steps[1].title,
      plan.steps[1].status })
  end)

  it("takes a plan without steps, which stays active", function()
    local plan = plan_of { turn(p("setup_plan", { objective = "Tea" })), "done" }
    assert.equal("active", plan.status)
    assert.same(0, #plan.steps)
  end)

  it("needs a plan for all but the set-up", function()
    local plan, s = plan_of { turn(p("add_step", { steps = { "x" } }),
      p("update_step", { step_id = 1, status = "done" }),
      p "read_plan"), "done" }
    assert.same({ false, false, false }, s:successes())
    assert.is_nil(plan)
  end)

  it("replaces the plan at another set-up", function()
    local plan = plan_of { turn(SETUP, p("setup_plan", { objective = "Coffee" })), "done" }
    assert.equal("Coffee", plan.objective)
    assert.equal(0, #plan.steps)
  end)

  it("appends steps, numbered on and never used again", function()
    local plan = plan_of { turn(SETUP, p("add_step", { steps = { "Drink", "Wash" } })), "done" }
    local ids = {}
    for i, step in ipairs(plan.steps) do
      ids[i] = step.step_id
    end
    assert.same({ 1, 2, 3, 4 }, ids)
  end)

  it("changes title or status, or both", function()
    local plan = plan_of { turn(SETUP, p("update_step", { step_id = 1, status = "in_progress" }),
      p("update_step", { step_id = 2, title = "Pour slowly", status = "done" })), "done" }
    assert.same({ "in_progress", "Pour slowly", "done", "active" },
      { plan.steps[1].status, plan.steps[2].title, plan.steps[2].status, plan.status })
  end)

  it("completes when all steps are done", function()
    local plan = plan_of { turn(SETUP, p("update_step", { step_id = 1, status = "done" }),
      p("update_step", { step_id = 2, status = "done" })), "done" }
    assert.equal("completed", plan.status)
  end)

  it("refuses what is no step, no status, no title; nothing is changed", function()
    local plan, s = plan_of { turn(SETUP, p("update_step", { step_id = 3, status = "done" }),
      p("update_step", { step_id = 0, status = "done" }),
        p("update_step", { step_id = 1, status = "finished" }),
      p("update_step", { step_id = 1 }), p("update_step", { step_id = 1, title = "" }),
      p("update_step", { step_id = 1, title = ("x"):rep(501) }),
        p("add_step", { steps = { "ok", "  " } }),
      p("setup_plan", { objective = "" })), "done" }
    assert.same({ true, false, false, false, false, false, false, false, false }, s:successes())
    assert.equal("Boil", plan.steps[1].title)
    assert.equal(2, #plan.steps)
  end)

  it("takes titles of 500 characters, unicode included", function()
    local plan = plan_of { turn(SETUP, p("update_step", { step_id = 1, title = ("é"):rep(500) })),
      "done" }
    assert.equal(("é"):rep(500), plan.steps[1].title)
  end)

  it("gives the plan itself when it is read", function()
    local value
    local session = ah.session()
    D.run({ turn(SETUP, p "read_plan"), "done" },
      { session = session, strategies = { function(m) value = m.value end },
      ah.planning_section { session = session } })
    assert.equal("Tea", value.objective)
    assert.equal(2, #value.steps)
  end)

  it("registers its types on the session, whose events a script may dispatch", function()
    local session = ah.session()
    ah.planning_section { session = session }
    session:dispatch(ah.planning.SetupPlan { objective = "Tea", initial_steps = { "Boil" } })
    session:dispatch(ah.planning.AddStep { steps = { "Pour" } })
    session:dispatch(ah.planning.UpdateStep { step_id = 1, status = "done" })
    local plan = session[ah.planning.Plan]:latest()
    assert.same({ "done", "pending" }, { plan.steps[1].status, plan.steps[2].status })
  end)

  it("has three strategies, which vary the mindset and nothing else", function()
    local texts, tools = {}, {}
    for i, strategy in ipairs { "react", "plan_act_reflect", "goal_decompose_route_synthesise" } do
      local section = ah.planning_section { session = ah.session(), strategy = strategy }
      local rendered = ah.prompt { section }:render()
      texts[i], tools[i] = rendered.text, #rendered.tools
      for _, name in ipairs { "planning_setup_plan", "planning_add_step", "planning_update_step",
        "planning_read_plan" } do
        assert.truthy(rendered.text:find(name, 1, true), strategy .. " " .. name)
      end
    end
    assert.same({ 4, 4, 4 }, tools)
    assert.are_not.equal(texts[1], texts[2])
    assert.are_not.equal(texts[2], texts[3])
    assert.equal(texts[1],
      ah.prompt { ah.planning_section { session = ah.session() } }:render().text)
    assert.is_false(pcall(ah.planning_section, { session = ah.session(), strategy = "REACT" }))
    assert.is_false(pcall(ah.planning_section, {}))
  end)

  it("speaks of each strategy as the document does", function()
    local function text(strategy)
      return ah.prompt { ah.planning_section { session = ah.session(),
        strategy = strategy } }:render().text:lower()
    end
    assert.matches("observe", text "react")
    assert.matches("reflect", text "plan_act_reflect")
    assert.matches("goal", text "goal_decompose_route_synthesise")
    assert.matches("sub%-?problem", text "goal_decompose_route_synthesise")
  end)

  it("keeps notes, of which the strategies speak", function()
    local plan = plan_of { turn(SETUP, p("update_step",
      { step_id = 1, note = "The kettle is slow." })), "done" }
    assert.same({ "The kettle is slow." }, plan.steps[1].notes)
  end)

  it("says one step of one", function()
    local _, s = plan_of { turn(p("setup_plan", { objective = "Tea", initial_steps = { "Boil" } }),
      p("update_step", { step_id = 2, status = "done" }),
      p("update_step", { step_id = 1, status = "done" })), "done" }
    assert.equal("The plan has 1 step, numbered from 1.", s:results(1))
    assert.matches("the plan has 1 step$", s:results(2))
    assert.equal("Step 1 is updated. The plan is completed: 1 of 1 step done.", s:results(3))
    _, s = plan_of { turn(p("setup_plan", { objective = "Tea" }), p "read_plan"), "done" }
    assert.equal("The plan has 0 steps, numbered from 1.", s:results(1))
    assert.matches("^0 of 0 steps done", s:results(2))
  end)

  it("lasts from run to run and through a snapshot", function()
    local session = ah.session()
    local section = ah.planning_section { session = session }
    D.run({ turn(SETUP), "done" }, { session = session, section })
    local s = D.run({ turn(p "read_plan"), "done" }, { session = session, section })
    assert.same({ true }, s:successes())
    local other = ah.session()
    ah.planning_section { session = other }
    assert(other:restore(session:snapshot()))
    assert.equal("Tea", other[ah.planning.Plan]:latest().objective)
  end)

  it("drops what a failed call around it had planned", function()
    local session = ah.session()
    ah.planning_section { session = session }
    local fails = tool("fails", { handler = function(_, ctx)
      ctx.session:dispatch(ah.planning.SetupPlan { objective = "Tea" })
      error "no"
    end })
    D.run({ calls "fails", "done" }, { session = session, tools = { fails } })
    assert.is_nil(session[ah.planning.Plan]:latest())
  end)
end)

describe("a budget", function()
  it("is looked at before each handler", function()
    local ran = 0
    local t = tool("t", { handler = function() ran = ran + 1 end })
    local s = D.run({ { calls = { call "t", call "t" }, usage = { input = 90, output = 20 } },
      "done" },
      { tools = { t }, budget = { total_tokens = 100 } })
    assert.equal("budget_exceeded", s.err.code)
    assert.is_true(s.err:is "prompt_evaluation")
    assert.equal("tool", s.err.phase)
    assert.equal(0, ran)
    sound.check(s.err.reply:transcript())
  end)

  it("ends the run before the request that is too much", function()
    local s = D.run({ calls "t", "done" }, { tools = { tool "t" }, budget = { requests = 1 } })
    assert.equal("budget_exceeded", s.err.code)
    assert.equal("request", s.err.phase)
    assert.equal(1, #s.requests)
  end)

  it("counts handlers exactly", function()
    local ran = 0
    local t = tool("t", { handler = function() ran = ran + 1 end })
    local s = D.run({ turn(call "t", call "t", call "t"), "done" },
      { tools = { t }, budget = { tool_calls = 2 } })
    assert.equal("budget_exceeded", s.err.code)
    assert.equal(2, ran)
  end)
end)
