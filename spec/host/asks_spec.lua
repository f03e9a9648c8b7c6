-- Asks to a person: ctx:ask, approvals as asks, front ends, and the ways in which an ask ends.
-- docs/reference/asks.md.
local ah = require "agenthost"
local sound = require "support.sound"

local function quiet() end

-- Makes a tool that asks; the results of ctx:ask go to `got`, by the call's id.
local function asker(got, ask, fields)
  local t = { name = "wonder", description = "Asks.", params = { n = "integer?" },
    handler = function(args, ctx)
      local fields_of_ask = type(ask) == "function" and ask(args, ctx) or ask
      local value, err = ctx:ask(fields_of_ask)
      got[ctx.call_id] = { value = value, err = err }
      if err then
        return nil, err
      end
      return { said = value }
    end }
  for k, v in pairs(fields or {}) do
    t[k] = v
  end
  return ah.tool(t)
end

local function calls(...)
  local list = {}
  for i, c in ipairs { ... } do
    list[i] = { name = c[1], id = c[2], arguments = c[3] }
  end
  return { calls = list }
end

-- Makes a tool that needs approvals; `ran` counts its calls and keeps the last arguments.
local function risky(ran)
  return ah.tool { name = "risky", description = "Does it.", params = { n = "integer?" },
    handler = function(args)
      ran.n, ran.args = (ran.n or 0) + 1, args
      return "did " .. tostring(args.n)
    end }
end

local function ask_for_risky(call)
  if call.arguments and call.arguments.n then
    return "ask", "it is risky"
  end
end

-- Runs; returns the results of tools, the events of asks and warnings, and the reply or error.
local function go(fields)
  local told = {}
  local on = fields.on or quiet
  fields.log = quiet
  fields.on = function(e)
    if e.type == "ask" or e.type == "ask_closed" or e.type == "warning" then
      told[#told + 1] = e
    end
    on(e)
  end
  fields[1] = fields[1] or "x"
  local reply, err = ah.run(fields)
  local list = {}
  for _, m in ipairs((reply or err.reply).messages) do
    list[#list + 1] = m.role == "tool" and m.content or nil
  end
  sound.check((reply or err.reply):transcript())
  return list, told, reply, err
end

-- Returns events as "ask approval", "answered by script", ...
local function tale(told)
  local list = {}
  for i, e in ipairs(told) do
    list[i] = e.type == "ask" and "ask " .. e.kind
      or e.type == "ask_closed" and e.how .. (e.by and " by " .. e.by or "") or "warning"
  end
  return list
end

local function wonder(ask, fields)
  local got = {}
  fields = fields or {}
  fields.model = fields.model or ah.scripted { calls { "wonder", "c1" }, "done" }
  fields.tools = fields.tools or { asker(got, ask, fields.tool) }
  fields.tool = nil
  local list, told, reply, err = go(fields)
  return got.c1 or {}, told, list, reply, err
end

local function approve(fields)
  local ran = {}
  fields.model = fields.model or ah.scripted { calls { "risky", "r1", { n = 1 } }, "done" }
  fields.tools = fields.tools or { risky(ran) }
  fields.policies = { ask_for_risky }
  local list, told, reply, err = go(fields)
  return list[1], told, ran, reply, err
end

describe("ctx:ask", function()
  it("returns what a front end responds, as the schema has it", function()
    local seen
    local got, told, list = wonder({ question = "How many?", schema = { type = "integer" } }, {
      asks = function(ask)
        seen = ask
        ah.sleep(0.005)
        return "3" -- coerced, as the meaning is clear
      end,
    })
    assert.equal(3, got.value)
    assert.equal("integer", math.type(got.value))
    assert.same({ '{"said":3}' }, list)
    assert.matches("^ask_%d+$", seen.id)
    assert.same({ "question", "How many?", "integer", "c1", "wonder" },
      { seen.kind, seen.question, seen.schema.type, seen.call.id, seen.call.name })
    assert.same({}, seen.call.arguments)
    assert.same({ "ask question", "answered by front end" }, tale(told))
    assert.equal(seen.id, told[1].id)
    assert.equal("{}", told[1].call.arguments)
    assert.equal(3, told[2].value)
  end)

  it("asks for a string unless it says otherwise, and for several values shortly", function()
    assert.equal("Ann", wonder({ question = "Who?" }, { asks = function() return "Ann" end }).value)
    local got = wonder({ question = "Who?", params = { name = "string", age = "integer?" } },
      { asks = function() return { name = "Ann", age = "7" } end })
    assert.same({ name = "Ann", age = 7 }, got.value)
    local empty = wonder({ question = "Which?", schema = { type = "array" } },
      { asks = function() return {} end })
    assert.same({}, empty.value)
    local no = wonder({ question = "So?", schema = { type = "boolean" } },
      { asks = function() return false end })
    assert.is_false(no.value)
  end)

  it("fails with `waiting` where nobody is there, and takes the default there", function()
    local got, told = wonder { question = "Who?" }
    assert.is_nil(got.value)
    assert.is_true(got.err:is "waiting")
    assert.matches("agent:on_ask", got.err.message)
    assert.same({ told[1].id }, got.err.asks)
    assert.same({ "ask question", "denied" }, tale(told))
    got, told = wonder { question = "Who?", default = "Bob", timeout = 60 }
    assert.equal("Bob", got.value)
    assert.same({ "Bob", 60 }, { told[1].default, told[1].timeout })
    assert.same({ "ask question", "default" }, tale(told))
    assert.equal("Bob", told[2].value)
    assert.is_false(wonder { question = "?", schema = { type = "boolean" }, default = false }.value)
  end)

  it("ends with its time, with the default or deadline_exceeded", function()
    local function slow() ah.sleep(30) end
    local got, told = wonder({ question = "Who?", timeout = 0.02 }, { asks = slow })
    assert.is_true(got.err:is "deadline_exceeded")
    assert.matches("within 0.02 seconds", got.err.message)
    assert.same({ "ask question", "timeout" }, tale(told))
    got, told = wonder({ question = "Who?", timeout = 0.02, default = "Bob" }, { asks = slow })
    assert.equal("Bob", got.value)
    assert.same({ "ask question", "default" }, tale(told))
    got = wonder({ question = "Who?", timeout = 0.02 }, { asks = quiet })
    assert.is_true(got.err:is "deadline_exceeded")
  end)

  it("raises at the script's line for what is wrong", function()
    for words, wrong in pairs {
      ["field 'question' is missing"] = {},
      ["did you mean 'question'"] = { questoin = "?" },
      ["params .* and schema"] = { question = "?", params = {}, schema = {} },
      ["default does not match the schema: must be an integer"] = {
        question = "?", schema = { type = "integer" }, default = "x" },
      ["default: .* function cannot be JSON"] = { question = "?", default = print },
      ["schema"] = { question = "?", schema = { type = "integr" } },
      ["timeout"] = { question = "?", timeout = -1 },
      ["from 0.001 to 1000000000"] = { question = "?", timeout = 1e10 },
      ["not UTF%-8"] = { question = "\xff" },
    } do
      local said
      local tool = ah.tool { name = "wonder", description = "Asks.", handler = function(_, ctx)
        local ok, err = pcall(ctx.ask, ctx, wrong)
        assert.is_false(ok)
        said = tostring(err)
      end }
      local list, told = go { model = ah.scripted { calls { "wonder", "c1" }, "done" },
        tools = { tool }, asks = function() error "not asked" end }
      assert.same({ "OK" }, list)
      assert.matches(words, said)
      assert.same({}, told)
    end
  end)

  it("is over with its call: cancelled, out of time, run over", function()
    local function slow() ah.sleep(30) end
    local _, told, list = wonder({ question = "?" }, { asks = slow, tool = { timeout = 0.03 } })
    assert.matches("did not finish within 0.03 seconds", list[1])
    assert.same({ "ask question", "cancelled" }, tale(told))
    local _, told2, _, _, err = wonder({ question = "?" }, { asks = slow, timeout = 0.03 })
    assert.equal("deadline_exceeded", err.code)
    assert.same({ "ask question", "cancelled" }, tale(told2))
    local agent, closed, late
    agent = assert(ah.agent { model = ah.scripted { calls { "wonder", "c1" }, "done" },
      tools = { asker({}, { question = "?" }) }, log = quiet,
      on = { ask_closed = function(e) closed = e.how end },
      asks = function(ask)
        late = ask
        agent:cancel()
      end })
    local _, cancelled = agent:run "x"
    assert.equal("cancelled", cancelled.code)
    assert.equal("cancelled", closed)
    local ok, why = late:respond "x"
    assert.is_nil(ok)
    assert.matches("the call that asked is over", why.message)
    agent:close()
  end)

  it("serves parallel handlers at once, each with its own response", function()
    local got, open, most = {}, 0, 0
    local three = calls({ "wonder", "c1", { n = 1 } }, { "wonder", "c2", { n = 2 } },
      { "wonder", "c3", { n = 3 } })
    local list, told = go {
      model = ah.scripted { three, "done" },
      tools = { asker(got, function(args) return { question = "n" .. args.n } end,
        { parallel = true }) },
      asks = function(ask)
        open = open + 1
        most = math.max(most, open)
        ah.sleep(0.01 * (4 - ask.call.arguments.n)) -- the last is answered first
        open = open - 1
        return ask.question
      end,
    }
    assert.equal(3, most)
    assert.same({ '{"said":"n1"}', '{"said":"n2"}', '{"said":"n3"}' }, list)
    assert.equal(6, #told)
    local ids = {}
    for _, e in ipairs(told) do
      ids[e.id] = (ids[e.id] or 0) + 1
    end
    for _, n in pairs(ids) do
      assert.equal(2, n)
    end
  end)

  it("is there in methods of entities and in executors", function()
    local Thing = ah.entity { name = "Thing" }
    Thing:tool { name = "wonder", description = "Asks.", handler = function(self, _, ctx)
      return self.id .. ctx:ask { question = "?" }
    end }
    local function hi() return "hi" end
    local list = go { model = ah.scripted { calls { "find", "f" }, calls { "thing_1_wonder", "c" },
      "done" }, discover = true, asks = hi, tools = { ah.tool { name = "find",
        description = "Finds.",
        handler = function() return Thing { id = 1 } end } } }
    assert.equal("1hi", list[2])
    list = go { model = ah.scripted { calls { "later", "c" }, "done" }, asks = hi,
      tools = { ah.tool { name = "later", description = "By an executor." } },
      executors = { later = function(_, ctx) return ctx:ask { question = "?" } end } }
    assert.same({ "hi" }, list)
  end)

  it("is waited for by what can only drive, and in runs that are driven inside", function()
    local inner_got = {}
    local function inner(ctx)
      local value
      ("x"):gsub(".", function() value = ctx:ask { question = "driven" } end)
      return value
    end
    local drives = ah.tool { name = "drives", description = "Drives.", handler = function(_, ctx)
      return inner(ctx)
    end }
    local nests = ah.tool { name = "nests", description = "Nests.", handler = function()
      local reply
      ("x"):gsub(".", function()
        reply = assert(ah.run { model = ah.scripted { calls { "wonder", "c1" }, "inner" }, "y",
          log = quiet, tools = { asker(inner_got, { question = "nested" }) } })
      end)
      return reply.text
    end }
    local list = go { model = ah.scripted { calls({ "drives", "d" }, { "nests", "n" }), "done" },
      tools = { drives, nests }, asks = function(ask)
        ah.sleep(0.001)
        return "to " .. ask.question
      end }
    assert.same({ "to driven", "inner" }, list)
    assert.equal("to nested", inner_got.c1.value)
  end)
end)

describe("a front end", function()
  it("of an agent gets the asks of runs within its own that have none", function()
    local seen, got, own = {}, {}, {}
    local function within(asks)
      local name = asks and "own" or "passes"
      return ah.tool { name = name, description = "Nests.", handler = function()
        return assert(ah.run { log = quiet, "y",
          model = ah.scripted { calls { "wonder", "c1" }, "in" },
          tools = { asker(asks and own or got, { question = "inner" }) }, asks = asks }).text
      end }
    end
    go { model = ah.scripted { calls({ "passes", "p" }, { "own", "o" }), "done" },
      tools = { within(), within(function() return "mine" end) },
      asks = function(ask)
        seen[#seen + 1] = ask
        return "outer"
      end }
    assert.equal("outer", got.c1.value)
    assert.equal("mine", own.c1.value)
    assert.equal(1, #seen)
    assert.equal("p", seen[1].call.parent_call)
  end)

  it("that responds first counts; a later response is told that it comes late", function()
    local first, second, late
    local agent = assert(ah.agent { log = quiet,
      model = ah.scripted { calls { "wonder", "c1" }, "done" },
      tools = { asker({}, { question = "?" }) } })
    agent:on_ask(function(ask)
      first = ask
      ah.sleep(0.03)
      return "slow"
    end)
    agent:on_ask(function(ask)
      second = ask
      return "quick"
    end)
    local reply = assert(agent:run "x")
    assert.matches("quick", reply.messages[3].content)
    assert.equal(first.id, second.id)
    local ok, err = first:respond "again"
    assert.is_nil(ok)
    assert.equal("usage", err.code)
    assert.matches("already answered", err.message)
    ok, late = agent:respond(first.id, "again")
    assert.is_nil(ok)
    assert.matches("already answered", late.message)
    agent:close()
  end)

  it("that is still at work when it is closed is stopped, and closes what it opened", function()
    local went_on, closed = false, false
    local agent = assert(ah.agent { log = quiet,
      model = ah.scripted { calls { "wonder", "c1" }, "done" },
      tools = { asker({}, { question = "?" }) } })
    agent:on_ask(function()
      local terminal <close> = setmetatable({}, { __close = function() closed = true end })
      ah.sleep(30)
      went_on = terminal ~= nil
    end)
    agent:on_ask(function() return "quick" end)
    assert(agent:run "x")
    assert.is_true(closed)
    assert.is_false(went_on)
  end)

  it("that returns nothing leaves it open, for ask:respond and agent:respond", function()
    local kept
    local agent = assert(ah.agent {
      model = ah.scripted { calls { "wonder", "c1" }, calls { "wonder", "c2" }, "done" },
      log = quiet, tools = { asker({}, { question = "?", schema = { type = "integer" } }) },
      asks = function(ask) kept = ask end })
    local poked = 0
    agent:on_ask(function(ask)
      poked = poked + 1
      ah.sleep(0.005)
      local wrong, err = kept:respond "many"
      assert.is_nil(wrong)
      assert.equal("tool_validation", err.code)
      assert.matches("must be an integer", err.message)
      if poked == 1 then
        assert.is_true(kept:respond(5))
      else
        local no, why = agent:respond("ask_0", 5)
        assert.is_nil(no)
        assert.matches("there is no ask 'ask_0'", why.message)
        assert.is_true(agent:respond(ask.id, 6))
      end
    end)
    local reply = assert(agent:run "x")
    assert.equal('{"said":5}', reply.messages[3].content)
    assert.equal('{"said":6}', reply.messages[5].content)
    assert.equal(2, poked)
  end)

  it("responds for its own agent only", function()
    local other = assert(ah.agent { model = "demo/echo" })
    local got = wonder({ question = "?" }, { asks = function(ask)
      local ok, err = other:respond(ask.id, "mine")
      assert.is_nil(ok)
      assert.matches("not asked in a run of this agent", err.message)
      return "right"
    end })
    assert.equal("right", got.value)
  end)

  it("that fails or responds wrongly is a warning with its line, and others are asked", function()
    for words, front in pairs {
      ["asks_spec.lua:%d+: a front end did not respond: oh"] = function() error "oh" end,
      ["asks_spec.lua:%d+: .*does not match its schema: must be an integer"] = function()
        return "many"
      end,
      ["asks_spec.lua:%d+: .*function cannot be JSON"] = function() return print end,
    } do
      local got = {}
      local told = {}
      local agent = assert(ah.agent { model = ah.scripted { calls { "wonder", "c1" }, "done" },
        tools = { asker(got, { question = "?", schema = { type = "integer" } }) }, log = quiet,
        asks = front, on = { warning = function(e) told[#told + 1] = e.message end } })
      local line = debug.getinfo(front, "S").linedefined
      assert(agent:run "x")
      assert.is_true(got.c1.err:is "waiting")
      assert.equal(1, #told)
      assert.matches(words, told[1])
      local at = tonumber(told[1]:match ":(%d+):")
      assert.is_true(at >= line and at <= line + 2, told[1])
      agent = assert(ah.agent { model = ah.scripted { calls { "wonder", "c1" }, "done" },
        tools = { asker(got, { question = "?", schema = { type = "integer" } }) }, log = quiet,
        asks = front })
      agent:on_ask(function() return 8 end)
      assert(agent:run "x")
      assert.equal(8, got.c1.value)
    end
  end)

  it("outside is asked when those inside have all passed", function()
    local got, order = {}, {}
    go { model = ah.scripted { calls { "nests", "n" }, "done" },
      tools = { ah.tool { name = "nests", description = "Nests.", handler = function()
        return assert(ah.run { log = quiet, "y",
          model = ah.scripted { calls { "wonder", "c1" }, "in" },
          tools = { asker(got, { question = "?" }) },
          asks = function() order[#order + 1] = "in" end }).text
      end } },
      asks = function()
        order[#order + 1] = "out"
        return "yes"
      end }
    assert.equal("yes", got.c1.value)
    assert.same({ "in", "out" }, order)
  end)

  it("goes with a fork, is refused where it is none, and may run an agent itself", function()
    local got = {}
    local agent = assert(ah.agent { log = quiet, tools = { asker(got, { question = "Why?" }) },
      model = ah.scripted { calls { "wonder", "c1" }, "done" },
      asks = function(ask) return assert(ah.run { model = "demo/echo", ask.question }).text end })
    local fork = agent:fork()
    assert(fork:run "x")
    assert.equal("Why?", got.c1.value)
    assert.is_false(pcall(agent.on_ask, agent, "no function"))
    for _, wrong in ipairs { 7, "decline", {} } do
      local ok, err = pcall(ah.run, { model = "demo/echo", asks = wrong, "x" })
      assert.is_false(ok)
      assert.matches("asks", tostring(err))
    end
  end)

  it("must give ask:respond a value, as a method", function()
    local got = wonder({ question = "?", schema = true }, { asks = function(ask)
      assert.is_false(pcall(ask.respond, ask))
      assert.is_false(pcall(ask.respond, "x"))
      assert.is_true(ask:respond(ah.null))
    end })
    assert.equal(ah.null, got.value)
  end)
end)

describe("an approval", function()
  it("is an ask: approve of the script has the first word", function()
    local seen
    local said, told, ran = approve { approve = function(call)
      seen = call
      return true
    end, asks = function() error "not asked" end }
    assert.equal("did 1", said)
    assert.equal(1, ran.n)
    assert.same({ "r1", "risky", 1, "it is risky" },
      { seen.id, seen.name, seen.arguments.n, seen.reason })
    assert.same({ "ask approval", "answered by script" }, tale(told))
    assert.same({ approved = true }, told[2].value)
    assert.equal("it is risky", told[1].question)
    assert.equal("boolean", told[1].schema.properties.approved.type)
    assert.equal('{"n":1}', told[1].call.arguments)
  end)

  it("with words is approved, with a table it has other arguments, with no never", function()
    local said, told, ran = approve { approve = function() return true, "go on" end }
    assert.equal("did 1", said)
    assert.same({ approved = true, why = "go on" }, told[2].value)
    assert.same({ n = 1 }, ran.args)
    said, told, ran = approve { approve = function() return true, { n = 4 } end }
    assert.same({ n = 4 }, told[2].value.arguments)
    assert.equal("did 4", said)
    assert.same({ n = 4 }, ran.args)
    said = approve { approve = function() return true, {} end }
    assert.equal("did nil", said)
    for _, front in ipairs { "approve", "asks" } do
      said, told, ran = approve { [front] = function() return false, "no way" end }
      assert.equal("Tool 'risky' was not run: not approved: no way", said)
      assert.is_nil(ran.n)
      assert.same({ approved = false, why = "no way" }, told[2].value)
      said, told, ran = approve { [front] = function() return false, { n = 4 } end }
      assert.matches("^Tool 'risky' was not run: not approved: table", said)
      assert.is_nil(told[2].value.arguments)
      assert.is_nil(ran.n)
    end
  end)

  it("passes on with nil: to front ends, then to nobody", function()
    local said, told, ran = approve { approve = quiet, asks = function(ask)
      assert.equal("approval", ask.kind)
      return true, { n = 9 }
    end }
    assert.equal("did 9", said)
    assert.equal(1, ran.n)
    assert.same({ "ask approval", "answered by front end" }, tale(told))
    for _, fields in ipairs { { approve = quiet }, {} } do
      said, told, ran = approve(fields)
      assert.matches("^Tool 'risky' was not run: not approved: it is risky", said)
      assert.matches("this run has neither `approve` nor", said)
      assert.matches("agent:on_ask", said)
      assert.is_nil(ran.n)
      assert.same({ "ask approval", "denied" }, tale(told))
    end
  end)

  it("fails closed: whatever approve raises or returns, with script and line", function()
    for i, wrong in ipairs {
      function() error "oh" end,
      function() error { } end,
      function() error(ah.error { code = "waiting", message = "x" }) end,
      function(call) return call.tool end,
      function(call) return call.call_id end,
      function() return "yes" end,
      function() return 1 end,
      function() return { approved = true } end,
      function() return true, 5 end,
      function() return true, { 1, 2 } end,
      function() return true, { n = print } end,
      function() return false, setmetatable({}, { __tostring = function() error "no" end }) end,
    } do
      local said, told, ran = approve { approve = wrong, asks = function() return true end }
      assert.is_nil(ran.n, i)
      assert.equal("Tool 'risky' was not run: not approved: the approval function failed", said)
      assert.same({ "ask approval", "warning", "denied by script" }, tale(told))
      local line = debug.getinfo(wrong, "S").linedefined
      assert.matches("asks_spec.lua:" .. line .. ": `approve` failed", told[2].message)
    end
  end)

  it("says what the old names of a call are now", function()
    local words = {}
    for _, name in ipairs { "tool", "call_id" } do
      local _, told = approve { approve = function(call) return call[name] end }
      words[#words + 1] = told[2].message
    end
    assert.matches("a call's tool is call.name", words[1])
    assert.matches("a call's id is call.id", words[2])
  end)

  it("takes a table of its schema from front ends, and refuses what is none", function()
    local said, _, ran = approve { asks = function()
      return { approved = true, arguments = { n = 2 } }
    end }
    assert.equal("did 2", said)
    assert.equal(1, ran.n)
    for _, wrong in ipairs { "yes", 1, { aproved = true }, { approved = "maybe" }, { why = "x" },
      { approved = true, arguments = 7 }, { approved = true, more = 1 } } do
      local told
      said, told, ran = approve { asks = function(ask)
        local ok, err = ask:respond(wrong)
        assert.is_nil(ok)
        assert.truthy(err.message)
        return wrong
      end }
      assert.matches("neither `approve` nor", said)
      assert.is_nil(ran.n)
      assert.same({ "ask approval", "warning", "denied" }, tale(told))
    end
    local _, tells = approve { asks = function(ask)
      local _, err = ask:respond { approved = "maybe" }
      assert.matches("/approved", err.message)
      return true
    end }
    assert.same({ "ask approval", "answered by front end" }, tale(tells))
  end)

  it("is settled when its run ends, with nothing run and nobody at work", function()
    local went_on = false
    for _, who in ipairs { "approve", "asks" } do
      local said, told, ran, _, err = approve { [who] = function()
        ah.sleep(30)
        went_on = true
      end, timeout = 0.03 }
      assert.equal("deadline_exceeded", err.code)
      assert.matches("^Not run:", said)
      assert.is_nil(ran.n)
      assert.same({ "ask approval", "cancelled" }, tale(told))
    end
    assert.is_false(went_on)
  end)

  it("may be given by an observer's script through agent:respond, once", function()
    local agent, oks = nil, {}
    local ran = {}
    agent = assert(ah.agent { model = ah.scripted { calls { "risky", "r1", { n = 1 } }, "done" },
      tools = { risky(ran) }, policies = { ask_for_risky }, log = quiet,
      approve = function() ah.sleep(30) end,
      on = { ask = function(e)
        oks[1] = agent:respond(e.id, true)
        local _, err = agent:respond(e.id, false)
        oks[2] = err.message
      end } })
    assert(agent:run "x")
    assert.is_true(oks[1])
    assert.matches("already answered", oks[2])
    assert.equal(1, ran.n)
  end)
end)

-- Code that runs while an ask is shown, answered or given up may close the ask.
describe("an ask that is closed in the midst of something", function()
  local function with(fields, respond)
    local agent, kept, ran = nil, nil, {}
    fields.model = ah.scripted { calls { "risky", "r1", { n = 1 } }, "done" }
    fields.tools, fields.policies, fields.log = { risky(ran) }, { ask_for_risky }, quiet
    local on = fields.on or {}
    on.ask = on.ask or function(e) kept = e.id end
    fields.on = on
    function respond.now(value)
      collectgarbage()
      return agent:respond(kept, value)
    end
    agent = assert(ah.agent(fields))
    local reply = assert(agent:run "x")
    return reply.messages[3].content, ran.n
  end

  it("by a metamethod of a response has the first one", function()
    for _, who in ipairs { "approve", "asks" } do
      for _, fails in ipairs { false, true } do
        local r = {}
        local why = setmetatable({}, { __tostring = function()
          assert.is_true(r.now(true))
          if fails then
            error "oh"
          end
          return "no"
        end })
        local said, ran = with({ [who] = function() return false, why end }, r)
        assert.equal("did 1", said)
        assert.equal(1, ran)
      end
    end
    local r = {}
    local said = with({ asks = function(ask)
      local ok, err = ask:respond(false, setmetatable({}, { __tostring = function()
        return tostring(r.now(true))
      end }))
      assert.is_nil(ok)
      assert.matches("already answered", err.message)
      ah.sleep(30)
    end }, r)
    assert.equal("did 1", said)
  end)

  it("by an observer of the warning about a front end", function()
    local r = {}
    local said, ran = with({ asks = function() error "oh" end,
      on = { warning = function() assert.is_true(r.now(true)) end } }, r)
    assert.equal("did 1", said)
    assert.equal(1, ran)
    r = {}
    said = with({ approve = function() error "oh" end,
      on = { warning = function() assert.is_true(r.now(false)) end } }, r)
    assert.equal("Tool 'risky' was not run: not approved", said)
  end)

  it("by approve itself, a front end's last words, and what both close", function()
    local r = {}
    assert.equal("did 1", (with({ approve = function()
      assert.is_true(r.now(true))
      return false
    end }, r)))
    r = {}
    local late
    local closing = setmetatable({}, { __close = function()
      local ok, err = r.now(false)
      late = ok == nil and err.message
    end })
    assert.equal("did 1", (with({ asks = function(ask)
      local me <close> = closing
      assert.is_true(ask:respond(true) and me ~= nil)
      ah.sleep(30)
    end }, r)))
    assert.matches("already answered", late)
  end)
end)

describe("what is told of an ask", function()
  local KEY = "sk-very-secret-key-0123456789"

  it("has no key in it, and no response to one that is secret", function()
    local lines, got = {}, {}
    local function asks(ask)
      assert.equal(ask.call.arguments.n == 2 or nil, ask.secret)
      return "pass-word-9"
    end
    local reply = ah.run { model = ah.scripted { calls({ "wonder", "c1", { n = 1 } },
      { "wonder", "c2", { n = 2 } }), "done" },
      tools = { asker(got, function(args)
        return { question = "?", secret = args.n == 2, default = "pass-word-9" }
      end) },
      asks = asks, log = function(_, line) lines[#lines + 1] = line end, "x",
      on = function(e)
        if e.type:match "^ask" then
          lines[#lines + 1] = ah.json.encode(e)
        end
      end }
    assert.truthy(reply)
    assert.equal("pass-word-9", got.c2.value)
    local shown = 0
    for _, line in ipairs(lines) do
      shown = shown + (line:find("pass-word-9", 1, true) and 1 or 0)
    end
    assert.is_true(shown > 0) -- the ask that is not secret
    local of_secret = {}
    for _, line in ipairs(lines) do
      local id = line:match '"id":"(ask_%d+)"'
      if line:find('"c2"', 1, true) then
        of_secret.id = id
      end
      if id and id == of_secret.id then
        assert.is_nil(line:find("pass-word-9", 1, true), line)
        of_secret.n = (of_secret.n or 0) + 1
      end
    end
    assert.is_true(of_secret.n >= 2)
  end)

  it("has keys of the host taken out", function()
    assert(ah.agent { model = "openai/m", api_key = KEY }):close()
    local lines, got, seen = {}, {}, nil
    ah.run { model = ah.scripted { calls { "wonder", "c1" }, "done" }, log = quiet, "x",
      tools = { asker(got, { question = "Is it " .. KEY .. "?", default = KEY }) },
      asks = function(ask)
        seen = ask.question
        return KEY
      end,
      on = function(e)
        if e.type:match "^ask" then
          lines[#lines + 1] = ah.json.encode(e)
        end
      end }
    assert.equal(KEY, got.c1.value) -- the asking handler gets it unchanged
    assert.equal(2, #lines)
    for _, line in ipairs(lines) do
      assert.is_nil(line:find(KEY, 1, true))
      assert.truthy(line:find("[secret]", 1, true))
    end
    assert.equal("Is it [secret]?", seen)
  end)
end)
