-- The gate: the effects of policies, approvals, guards and checks on calls, results and answers,
-- for every caller; and that all of them fail closed.
local ah = require "agenthost"
local of_type = require "support.of_type"
local sound = require "support.sound"

local OUTPUT = { type = "object", properties = { n = { type = "integer" } }, required = { "n" } }

local function tool(name, handler, fields)
  fields = fields or {}
  fields.name, fields.description = name, "A tool."
  fields.params = fields.params or { n = "integer?" }
  fields.handler = handler or function() return name end
  return ah.tool(fields)
end

local function call(name, arguments, id)
  return { calls = { { name = name, arguments = arguments, id = id } } }
end

-- Returns the results of the calls, all events, and the results of ah.run.
local function run(fields)
  local events, warnings = {}, {}
  fields.on = function(e)
    events[#events + 1] = e
    warnings[#warnings + 1] = e.type == "warning" and e.message or nil
  end
  fields[#fields + 1] = fields[#fields] == nil and "go" or nil
  local reply, err = ah.run(fields)
  local results, whole = {}, reply or err.reply
  for _, m in ipairs(whole.messages) do
    results[#results + 1] = m.role == "tool" and m.content or nil
  end
  sound.check(whole:transcript())
  return { results = results, events = events, warnings = warnings, reply = reply, err = err,
    whole = whole }
end

local function says(r, text)
  local found = r.whole:transcript():find(text, 1, true)
  for _, e in ipairs(r.events) do
    found = found or ah.json.encode(e):find(text, 1, true)
  end
  return found ~= nil
end

describe("a policy before a call", function()
  it("rewrites its arguments, which are checked, and which all policies see", function()
    local seen, got = {}, nil
    local r = run { model = ah.scripted { call("a", { n = 1 }), "ok" },
      tools = { tool("a", function(args) got = args.n return "ran" end) },
      policies = {
        function(c) seen[#seen + 1] = c.arguments.n end,
        function(c) if c.arguments.n == 1 then return "rewrite", { n = 2 } end end,
        function(c) seen[#seen + 1] = c.arguments.n end } }
    assert.same({ "ran" }, r.results)
    assert.equal(2, got)
    assert.same({ 1, 2, 2 }, seen)
    local event = of_type(r.events, "policy")[1]
    assert.same({ "a", "rewrite", false }, { event.name, event.verdict, event.shadow })
    assert.matches("gate_spec%.lua:%d+$", event.policy)
  end)

  it("may rewrite to what is there already, and is content", function()
    local r = run { model = ah.scripted { call("a", { n = 1 }), "ok" }, tools = { tool "a" },
      policies = { function() return "rewrite", { n = 7 } end,
        function(c) if c.arguments.n ~= 7 then return "deny", "no 7" end end } }
    assert.same({ "a" }, r.results)
  end)

  it("cannot rewrite to what the tool does not take, nor for ever", function()
    local r = run { model = ah.scripted { call("a", { n = 1 }), call("b", { n = 1 }), "ok" },
      tools = { tool("a", error), tool("b", error) },
      policies = { function(c)
        return "rewrite", c.name == "a" and { m = 2 } or { n = c.arguments.n + 1 }
      end } }
    assert.matches("^Tool 'a' was not run: a policy changed its arguments to invalid", r.results[1])
    assert.equal("Tool 'b' was not run: the policies do not agree on its arguments", r.results[2])
    assert.equal(2, #r.warnings)
  end)

  it("that fails denies, and tells the script where, the model nothing", function()
    for words, policy in pairs {
      ["secret at hand"] = function() error "secret at hand" end,
      ["unknown field 'nmae'"] = function(c) return c.nmae end,
      ["`name`"] = function(c) return c.tool end,
      ["`id`"] = function(c) return c.call_id end,
      ["policy: only strategies change tools"] = function(c) c:add(tool "x") end,
      ["returned \"maybe\"; it returns"] = function() return "maybe" end,
      ["returned a boolean"] = function() return true end,
      ["needs a table of arguments, found a string"] = function() return "rewrite", "x" end,
      ["cannot wait"] = function() ah.sleep(1) end,
    } do
      local r = run { model = ah.scripted { call "a", "ok" }, tools = { tool("a", error) },
        policies = { policy } }
      assert.same({ "Tool 'a' was not run: a policy failed" }, r.results)
      assert.equal(1, #r.warnings)
      assert.matches("^policy .*gate_spec%.lua:%d+ failed at a call of 'a', which was not run: ",
        r.warnings[1])
      assert.truthy(r.warnings[1]:find(words, 1, true), r.warnings[1])
    end
  end)

  it("is called by its name where it has one", function()
    local r = run { model = ah.scripted { call "a", "ok" }, tools = { tool "a" },
      policies = { { name = "sundays", before = function() return "deny", "closed" end } } }
    assert.equal("sundays", of_type(r.events, "policy")[1].policy)
  end)

  it("of a table takes the table first where it has a parameter for it", function()
    local seen = {}
    local policy = { mark = 7 }
    function policy:before(c) seen[#seen + 1] = { self.mark, c.name } end
    function policy:after(c, result) seen[#seen + 1] = { self.mark, c.name, result.content } end
    run { model = ah.scripted { call "a", "ok" }, tools = { tool "a" }, policies = { policy,
      { before = function(c) seen[#seen + 1] = { c.name } end,
        after = function(c, result) seen[#seen + 1] = { c.name, result.content } end } } }
    assert.same({ { 7, "a" }, { "a" }, { 7, "a", "a" }, { "a", "a" } }, seen)
  end)

  it("is refused where it is made wrongly", function()
    for words, policies in pairs {
      ["policies%[1%] must be a function or a table"] = { 1 },
      ["found a table with neither"] = { {} },
      ["`before` must be a function, found a string"] = { { before = "x" } },
      ["`shadow` must be a boolean, found a number"] = { { before = print, shadow = 1 } },
    } do
      local ok, err = pcall(ah.run, { model = ah.scripted { "ok" }, policies = policies, "x" })
      assert.is_false(ok)
      assert.matches(words, tostring(err))
    end
  end)
end)

describe("a policy after a call", function()
  local function after(f, handler, fields)
    return run { model = ah.scripted { call "a", "ok" }, tools = { tool("a", handler, fields) },
      policies = { { after = f } } }
  end

  it("sees the call and its result", function()
    local seen
    local r = after(function(c, result) seen = { c.name, c.arguments, result } end,
      function() return { x = 1 } end)
    assert.same({ "a", {}, { success = true, content = '{"x":1}', value = { x = 1 } } }, seen)
    assert.same({ '{"x":1}' }, r.results)
    r = after(function(_, result) seen = result end, function() return nil, "no luck" end)
    assert.same({ success = false, content = "no luck" }, seen)
    assert.same({ "no luck" }, r.results)
    after(function(_, result) seen = result end, function() error "oh" end)
    assert.is_false(seen.success)
    assert.matches("Tool 'a' execution failed: .*oh", seen.content)
  end)

  it("blocks a result: no request, event or message has it, and what the call did is undone",
    function()
    local s = ah.session()
    local fs = ah.filesystem { memory = true }
    local r = run { model = ah.scripted { call "a", "ok" }, session = s,
      resources = { filesystem = fs },
      tools = { tool("a", function(_, ctx)
        ctx.resources.filesystem:write("/f", "s3cr3t")
        return { word = "s3cr3t" }
      end) },
      policies = { { after = function() return "block", "it is private" end } } }
    assert.same({ "Tool 'a' was run, and its result was withheld: it is private" }, r.results)
    assert.is_false(says(r, "s3cr3t"))
    assert.is_nil(fs:read "/f")
    assert.is_false(of_type(r.events, "tool_invoked")[1].success)
  end)

  it("replaces a result by whatever a handler may return", function()
    for shown, result in pairs { ["a text"] = "a text", ['{"y":2}'] = { y = 2 },
      ["no"] = ah.fail "no",
      ["well\n\n3"] = ah.ok(3, "well"), ["false"] = false } do
      local r = after(function() return "replace", result end, function() return "s3cr3t" end)
      assert.same({ shown }, r.results)
      assert.is_false(says(r, "s3cr3t"))
    end
  end)

  it("redacts members by JSON pointers", function()
    local function redacted(pointers, value)
      return after(function() return "redact", pointers end, function() return value end).results[1]
    end
    assert.equal('{"a":{"b":"[redacted]","c":1}}', redacted({ "/a/b" }, { a = { b = "s", c = 1 } }))
    assert.equal('[1,"[redacted]",3]', redacted({ "/1" }, { 1, 2, 3 }))
    assert.equal('[{"n":"[redacted]"},{"n":"[redacted]"}]',
      redacted({ "/0/n", "/1/n", "/2/n" }, { { n = 1 }, { n = 2 } }))
    assert.equal('{"/":"[redacted]","~":"[redacted]"}', redacted({ "/~1", "/~0" }, { ["/"] = 1,
      ["~"] = 2 }))
    assert.equal("[redacted]", redacted({ "" }, "all of it"))
    assert.equal("as it is", redacted({ "/x" }, "as it is"))
  end)

  it("that redacts takes the words beside the value away, too", function()
    local r = after(function() return "redact", { "/name" } end, function()
      return ah.ok({ name = "Smith", id = 3 }, "Found Smith.")
    end)
    assert.same({ '{"id":3,"name":"[redacted]"}' }, r.results)
    assert.is_false(says(r, "Smith"))
    r = after(function() return "redact", { "/name" } end, function() return { name = "Smith" } end,
      { render = function(v) return "He is " .. v.name end })
    assert.is_false(says(r, "Smith"))
  end)

  it("that fails blocks, and tells the script where", function()
    for words, f in pairs {
      ["oh"] = function() error "oh" end,
      ["returned \"allow\"; it returns"] = function() return "allow" end,
      ["needs the new result"] = function() return "replace" end,
      ["needs a list of JSON pointers, found a string"] = function() return "redact", "/x" end,
      ["needs JSON pointers"] = function() return "redact", { "x" } end,
      ["pointer 1 is a number"] = function() return "redact", { 1 } end,
      ["the result of \"replace\""] = function() return "replace", print end,
    } do
      local r = after(f, function() return { s = "s3cr3t" } end)
      assert.same({ "Tool 'a' was run, and its result was withheld: a policy failed" }, r.results,
        words)
      assert.truthy(r.warnings[1]:find(words, 1, true), r.warnings[1])
      assert.matches("gate_spec%.lua:%d+ failed at a call of 'a', whose result was withheld",
        r.warnings[1])
      assert.is_false(says(r, "s3cr3t"))
    end
  end)

  it("follows another, and sees what that one left", function()
    local seen = {}
    local r = run { model = ah.scripted { call "a", "ok" }, tools = { tool "a" }, policies = {
      { after = function() return "replace", { n = 1 } end },
      { after = function(_, result) seen[1] = result.value return "replace", "two" end },
      { after = function(_, result) seen[2] = result.content end } } }
    assert.same({ { n = 1 }, "two" }, seen)
    assert.same({ "two" }, r.results)
  end)

  it("keeps the words of a result that does not match its schema back, too", function()
    local r = after(function() return "block", "no" end, function() return "s3cr3t" end,
      { result = { type = "integer" } })
    assert.is_false(says(r, "s3cr3t"))
  end)

  it("is what a strategy and the discovery of tools see", function()
    local seen
    run { model = ah.scripted { call "a", "ok" }, tools = { tool("a",
      function() return { n = 1 } end) },
      policies = { { after = function() return "replace", "two" end } },
      strategies = { function(m) seen = { m.result, m.value } end } }
    assert.equal("two", seen[1])
    assert.is_nil(seen[2])
  end)

  it("is not asked about calls that were not run", function()
    local asked = 0
    local r = run { model = ah.scripted { call "none", call("a", { n = "x" }), call "b", "ok" },
      tools = { tool "a", tool "b" }, policies = { { before = function() return "deny", "no" end,
        after = function() asked = asked + 1 end } } }
    assert.equal(3, #r.results)
    assert.equal(0, asked)
  end)
end)

describe("a shadow policy", function()
  it("only reports what it would have done", function()
    local r = run { model = ah.scripted { call("a", { n = 1 }), "ok" },
      tools = { tool("a", function(args) return { n = args.n } end) },
      policies = {
        { shadow = true, before = function() return "deny", "no" end },
        { shadow = true, before = function() return "rewrite", { n = 2 } end },
        { shadow = true, before = function() return "ask", "may it?" end },
        { shadow = true, before = function() error "oh" end },
        { shadow = true, after = function() return "block", "private" end },
        { shadow = true, after = function() return "redact", { "/n" } end } } }
    assert.same({ '{"n":1}' }, r.results)
    local told = {}
    for _, e in ipairs(of_type(r.events, "policy")) do
      told[#told + 1] = ("%s %s %s"):format(e.verdict, e.reason, e.shadow)
    end
    assert.same({ "deny no true", "rewrite  true", "ask may it? true", "deny a policy failed true",
      "block private true", "redact  true" }, told)
    assert.equal(1, #r.warnings)
  end)
end)

describe("a call that code makes", function()
  local pay = tool("pay", function(args) return "paid " .. (args.n or "") end)
  local registry = ah.registry { pay }

  local function within(fields, execute)
    fields.model = fields.model or ah.scripted { call("outer", nil, "c1"), "ok" }
    fields.tools = { tool("outer", function()
      local r, err = (execute or registry.execute)(registry, "pay", { n = 3 })
      return r and r.content or "nil, " .. err.code
    end) }
    return run(fields)
  end

  it("passes the policies of the run around it, and says which call made it", function()
    local seen = {}
    local r = within { policies = { function(c)
      seen[#seen + 1] = { c.name, c.id, c.parent_call }
      if c.name == "pay" then return "deny", "not today" end
    end } }
    assert.same({ "Tool 'pay' was not run: not today" }, r.results)
    assert.same({ { "outer", "c1" }, { "pay", "c1.1", "c1" } }, seen)
    local events = of_type(r.events, "tool_invoked")
    assert.same({ "pay", "c1.1", "c1", false },
      { events[1].name, events[1].id, events[1].parent_call, events[1].success })
    assert.same({ "outer", "c1" }, { events[2].name, events[2].id, events[2].parent_call })
  end)

  it("is rewritten, approved, redacted and blocked like the model's", function()
    assert.same({ "paid 4" }, within { policies = { function(c)
      if c.name == "pay" then return "rewrite", { n = 4 } end
    end } }.results)
    local asked
    assert.same({ "paid 5" }, within { approve = function(c) asked = c return true, { n = 5 } end,
      policies = { function(c) if c.name == "pay" then return "ask", "money" end end } }.results)
    assert.equal("pay", asked.name)
    assert.equal("c1", asked.parent_call)
    local r = within { policies = { { after = function(c)
      if c.name == "pay" then return "block", "s" end
    end } } }
    assert.same({ "Tool 'pay' was run, and its result was withheld: s" }, r.results)
    r = within { policies = { { after = function(c)
      if c.name == "pay" then return "replace", "something" end
    end } } }
    assert.same({ "something" }, r.results)
    assert.is_false(says(r, "paid"))
  end)

  it("is denied where nobody can approve it", function()
    local r = within { policies = { function(c) if c.name == "pay" then return "ask",
      "money" end end } }
    assert.matches("^Tool 'pay' was not run: ", r.results[1])
  end)

  it("counts for the budget", function()
    local budget = ah.budget { tool_calls = 2 }
    within { budget = budget }
    assert.equal(2, budget:used().tool_calls)
    local r = within { budget = { tool_calls = 1 } }
    assert.equal("budget_exceeded", r.err and r.err.code or r.results[1]:match "nil, (.*)")
  end)

  it("of a run within a call passes the policies of both", function()
    local seen = {}
    local r = run { model = ah.scripted { call("outer", nil, "c1"), "ok" },
      policies = { function(c)
        seen[#seen + 1] = "outer " .. c.name .. " " .. tostring(c.parent_call)
        if c.arguments.n == 3 then return "deny", "3" end
      end },
      tools = { tool("outer", function()
        local inner = assert(ah.run { model = ah.scripted { call("pay", { n = 3 }, "p"),
          call("pay", { n = 4 }, "q"), "done" }, tools = { pay },
          policies = { function(c) seen[#seen + 1] = "inner " .. c.name end }, "x" })
        return inner.messages[3].content .. " " .. inner.messages[5].content
      end) } }
    assert.same({ "Tool 'pay' was not run: 3 paid 4" }, r.results)
    assert.same({ "outer outer nil", "inner pay", "outer pay c1", "inner pay", "outer pay c1" },
      seen)
  end)

  it("by an entity's method and by a check passes them, too", function()
    local function denied(fields)
      fields.policies = { function(c) if c.name == "pay" then return "deny", "no" end end }
      return run(fields)
    end
    local Shop = ah.entity { name = "Shop", prefix = "shop", id = "id" }
    Shop:tool { name = "buy", description = "Buys.", handler = function()
      return registry:execute("pay", {}).content
    end }
    local r = denied { model = ah.scripted { call "find", call "shop_s1_buy", "ok" },
      discover = true,
      tools = { tool("find", function() return Shop { id = "s1" } end) } }
    assert.equal("Tool 'pay' was not run: no", r.results[2])
    local got
    denied { model = ah.scripted { "ok" }, checks = { function()
      got = registry:execute("pay", {}).content
    end } }
    assert.equal("Tool 'pay' was not run: no", got)
  end)
end)

describe("ah.gate", function()
  after_each(function() ah.gate {} end)

  it("holds for every run, and for calls outside of runs", function()
    local seen = {}
    ah.gate { policies = { function(c)
      seen[#seen + 1] = c.name
      if c.arguments.n == 1 then return "deny", "gate" end
    end } }
    local r = run { model = ah.scripted { call("a", { n = 1 }), "ok" }, tools = { tool "a" } }
    assert.same({ "Tool 'a' was not run: gate" }, r.results)
    local registry = ah.registry { tool "b" }
    assert.equal("Tool 'b' was not run: gate", registry:execute("b", { n = 1 }).content)
    assert.equal("b", registry:execute("b", { n = 2 }).content)
    assert.same({ "a", "b", "b" }, seen)
  end)

  it("approves, and is taken away", function()
    ah.gate { policies = { function() return "ask", "why" end },
      approve = function(c) return c.arguments.n == 2 end }
    local registry = ah.registry { tool "b" }
    assert.is_true(registry:execute("b", { n = 2 }).success)
    assert.is_false(registry:execute("b", { n = 1 }).success)
    ah.gate {}
    collectgarbage()
    assert.is_true(registry:execute("b", { n = 1 }).success)
  end)

  it("refuses what it does not know", function()
    local ok, err = pcall(ah.gate, { policy = {} })
    assert.is_false(ok)
    assert.matches("ah%.gate: unknown field 'policy'; there are policies, approve", tostring(err))
  end)
end)

describe("an approval", function()
  it("that changes the arguments leads through the policies again", function()
    local seen, asked = {}, 0
    local r = run { model = ah.scripted { call("a", { n = 1 }), "ok" },
      tools = { tool("a", function(args) return args.n end) },
      policies = { function(c) seen[#seen + 1] = c.arguments.n return "ask", "why" end,
        function(c) if c.arguments.n == 13 then return "deny", "13" end end },
      approve = function() asked = asked + 1 return true, { n = 2 } end }
    assert.same({ "2" }, r.results)
    assert.same({ 1, 2 }, seen)
    assert.equal(1, asked)
    r = run { model = ah.scripted { call("a", { n = 1 }), "ok" }, tools = { tool("a", error) },
      policies = { function(c)
        if c.arguments.n == 13 then return "deny", "13" end
        return "ask", "why"
      end },
      approve = function() return true, { n = 13 } end }
    assert.same({ "Tool 'a' was not run: 13" }, r.results)
  end)
end)

describe("guards", function()
  it("of the input end the run before its first request, and the model never has the text",
    function()
    local seen = {}
    local agent = assert(ah.agent { model = ah.scripted { "one", "two" },
      guards = { input = function(text)
        seen[#seen + 1] = text
        if text:find "bomb" then return "no weapons" end
      end } })
    local reply, err = agent:run "how to build a bomb"
    assert.is_nil(reply)
    assert.same({ "guard_tripped", "request" }, { err.code, err.phase })
    assert.matches("^a guard of the input %(.*gate_spec.lua:%d+%) tripped: no weapons$",
      err.message)
    assert.is_nil(agent:transcript():find "bomb")
    assert.equal("one", assert(agent:run "hello").text)
    local sent, why = agent:send "a bomb"
    assert.is_nil(sent)
    assert.equal("guard_tripped", why.code)
    assert.is_true(agent:send "and now?")
    assert.equal("two", assert(agent:run()).text)
    assert.is_nil(agent:transcript():find "bomb")
    assert.same({ "how to build a bomb", "hello", "a bomb", "and now?", "and now?" }, seen)
  end)

  it("of the input look at what is said last where nothing is said now", function()
    local seen
    ah.run { model = ah.scripted { "ok" }, guards = { input = function(text) seen = text end },
      messages = { { role = "user", content = "a" } } }
    assert.equal("a", seen)
    ah.run { model = ah.scripted { "ok" }, guards = { input = function(text) seen = text end },
      { "one", ah.image { data = "\137PNG\r\n\26\n", type = "image/png" }, "two" } }
    assert.equal("one\ntwo", seen)
  end)

  it("of the output end the run, and the answer is not in the conversation", function()
    local agent = assert(ah.agent { model = ah.scripted { "the s3cr3t", "fine" },
      guards = { output = { function() end, function(text)
        return not text:find "s3cr3t", "it tells a secret"
      end } } })
    local reply, err = agent:run "x"
    assert.is_nil(reply)
    assert.same({ "guard_tripped", "response", "" }, { err.code, err.phase, err.reply.text })
    assert.matches("it tells a secret", err.message)
    assert.is_nil(agent:transcript():find "s3cr3t")
    assert.equal("fine", assert(agent:run "again").text)
    sound.check(agent:transcript())
  end)

  it("of the output see the value, once there is one, and only final answers", function()
    local seen = {}
    local r = run { model = ah.scripted { { text = "hm", calls = { { name = "a" } } }, "no json",
      '{"n":3}' }, tools = { tool "a" }, output = OUTPUT,
      guards = { output = function(text, value) seen[#seen + 1] = { text, value } end } }
    assert.equal(3, r.reply.value.n)
    assert.same({ { '{"n":3}', { n = 3 } } }, seen)
  end)

  it("that fail trip", function()
    for _, f in ipairs { function() error "oh" end, function() return 7 end,
      function() ah.sleep(1) end } do
      for _, which in ipairs { "input", "output" } do
        local r = run { model = ah.scripted { "ok" }, guards = { [which] = f } }
        assert.equal("guard_tripped", r.err.code)
        assert.equal(1, #r.warnings)
        assert.matches("a guard of the " .. which .. " %(.*gate_spec.lua:%d+%) failed: ",
          r.warnings[1])
      end
    end
  end)

  it("are refused where they are made wrongly", function()
    for words, guards in pairs { ["unknown field 'inptu'"] = { inptu = print },
      ["field 'input' must be a list, { ... } or a function, found string"] = { input = "x" },
      ["output%[2%] must be a function, found a number"] = { output = { print, 1 } } } do
      local ok, err = pcall(ah.run, { model = ah.scripted { "ok" }, guards = guards, "x" })
      assert.is_false(ok)
      assert.matches(words, tostring(err))
    end
  end)
end)

describe("checks", function()
  it("see the text, the value and the reply so far", function()
    local seen
    run { model = ah.scripted { call "a", '{"n":1}' }, tools = { tool "a" }, output = OUTPUT,
      checks = { function(c) seen = { c.text, c.value, c.reply.text, #c.reply.messages,
        c.reply.value } end } }
    assert.same({ '{"n":1}', { n = 1 }, '{"n":1}', 5, { n = 1 } }, seen)
  end)
end)
