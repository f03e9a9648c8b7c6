--- ah.conformance: tests that an adapter does what every adapter must do.
--
--   local report = ah.conformance { serve = function(turns) return { model = ... } end,
--     capabilities = { "streaming", "usage" } }
--   print(report)      one line a case: passed, failed (and why), or skipped (and what it needs)
--
-- `serve` sets up a model that answers with these turns (in the form of ah.scripted) through the
-- adapter under test and a substitute for its server. It returns the fields for ah.run that lead to
-- it: model, base_url, api_key ... A field `close`, a function, is called after the case. Cases
-- that need a capability which is not declared are skipped; a declared capability that does not
-- work is a failure. Capabilities that ah.capabilities returns need not be declared.
local ah = ...

local read = ah._reader {
  what = "ah.conformance", type = "ah.ConformanceSpec", rows = {
    { name = "serve", kinds = "function", needed = true, type = "fun(turns: ah.Answer[]): table",
      doc = "`serve(turns)`: sets up a model that answers with these turns, as a "
        .. "[scripted model](scripted.md#turns) does, through the adapter under test" },
    { name = "capabilities", kinds = "list", is = "list of strings", type = "string[]",
      doc = "what the adapter can do beyond what all adapters can" },
    { name = "only", kinds = "string", doc = "runs only the cases whose name contains it" },
  },
}

--- The capabilities that may be declared beyond those of every adapter.
local CAPABILITIES = {
  "streaming", -- answers arrive piece by piece
  "usage", -- tokens are counted
  "refusal", -- a refusal of the model is not a text
  "length", -- an answer that a limit has cut off says so
  "errors", -- failures of the server arrive with their status, and are retried
  "images", -- users' messages may contain images
  "cut", -- an answer that breaks off is not taken for a complete one
}

local function add_tool(seen)
  return ah.tool {
    name = "add",
    description = "Adds two integers.",
    params = { a = "integer", b = "integer" },
    handler = function(args)
      seen[#seen + 1] = args.a .. "+" .. args.b
      return args.a + args.b
    end,
  }
end

local function expect(ok, text, ...)
  if not ok then
    error(text:format(...), 0)
  end
end

local function same(found, wanted, what)
  expect(found == wanted, "%s: expected %s, found %s", what, tostring(wanted), tostring(found))
end

--- Returns the fields of `serve`, and those in `more`.
local function fields(t, turns, more)
  local all = t.serve(turns)
  t.close = all.close
  all.close = nil
  for key, value in pairs(more or {}) do
    all[key] = value
  end
  return all
end

local function run(t, turns, more, text)
  local all = fields(t, turns, more)
  all[#all + 1] = text or "Go on."
  local reply, err = ah.run(all)
  expect(reply, "the run failed: %s", tostring(err))
  return reply
end

local function results(reply)
  local list = {}
  for _, message in ipairs(reply.messages) do
    if message.role == "tool" then
      list[#list + 1] = message.content
    end
  end
  return list
end

local cases = {}

local function case(name, needs, check)
  cases[#cases + 1] = { name = name, needs = needs, check = check }
end

case("an answer", nil, function(t)
  local reply = run(t, { "Hello." })
  same(reply.text, "Hello.", "text")
  same(reply.stop, "end", "stop")
  same(reply.iterations, 1, "iterations")
end)

case("a system text, and a conversation that goes on", nil, function(t)
  local agent = ah.agent(fields(t, { "One.", "Two." }, { system = "Be brief." }))
  same(tostring(assert(agent:run "First?")), "One.", "first answer")
  same(tostring(assert(agent:run "Second?")), "Two.", "second answer")
end)

case("text of all kinds of characters", nil, function(t)
  local text = 'ä€😀 "quotes" \\ back\n\ttab </script> \u{2028} é'
  same(run(t, { text }, nil, text).text, text, "text")
end)

case("a tool call and its result", nil, function(t)
  local seen = {}
  local reply = run(
    t,
    { { calls = { { name = "add", arguments = { a = 2, b = 3 } } } }, "5." },
    { tools = { add_tool(seen) } }
  )
  same(table.concat(seen, " "), "2+3", "calls")
  same(reply.text, "5.", "text")
  same(results(reply)[1], "5", "result")
  same(reply.tool_calls, 1, "tool_calls")
end)

case("words before a call", nil, function(t)
  local seen = {}
  local reply = run(t, {
    { text = "Let me see.", calls = { { name = "add", arguments = { a = 1, b = 1 } } } },
    "2.",
  }, { tools = { add_tool(seen) } })
  same(reply.messages[2].content, "Let me see.", "content of the message with the call")
  same(#seen, 1, "calls")
end)

case("two calls in one message, in their order", nil, function(t)
  local seen = {}
  local reply = run(t, {
    {
      calls = {
        { name = "add", arguments = { a = 1, b = 2 } },
        { name = "add", arguments = { a = 3, b = 4 } },
      },
    },
    "Done.",
  }, { tools = { add_tool(seen) } })
  same(table.concat(seen, " "), "1+2 3+4", "calls")
  same(table.concat(results(reply), " "), "3 7", "results")
end)

case("a call without arguments", nil, function(t)
  local got
  local now = ah.tool {
    name = "now",
    description = "Tells the time.",
    handler = function(args)
      got = next(args) == nil
      return "noon"
    end,
  }
  run(t, { { calls = { { name = "now" } } }, "It is noon." }, { tools = { now } })
  expect(got, "the handler did not get an empty table")
end)

case("arguments of all kinds", nil, function(t)
  local given = {
    text = 'a "b" \\ ä😀\n',
    list = { 1, 2, 3 },
    deep = { x = { y = true } },
    number = 2.5,
    big = 9007199254740993,
  }
  local got
  local keep = ah.tool {
    name = "keep",
    description = "Keeps things.",
    schema = { type = "object", additionalProperties = true },
    handler = function(args)
      got = args
    end,
  }
  run(t, { { calls = { { name = "keep", arguments = given } } }, "Kept." }, { tools = { keep } })
  same(ah.json.encode(got), ah.json.encode(given), "arguments")
end)

case("wrong arguments and failing tools are answers", nil, function(t)
  local boom = ah.tool {
    name = "boom",
    description = "Fails.",
    params = { n = "integer" },
    handler = function()
      return ah.fail "the store is closed"
    end,
  }
  local reply = run(t, {
    { calls = { { name = "boom", arguments = { n = "x" } } } },
    { calls = { { name = "boom", arguments = { n = 1 } } } },
    "Sorry.",
  }, { tools = { boom } })
  local list = results(reply)
  expect(list[1]:find("Tool validation failed", 1, true), "first result: %s", list[1])
  expect(list[2]:find("the store is closed", 1, true), "second result: %s", list[2])
  same(reply.text, "Sorry.", "text")
end)

case("an unknown tool is answered", nil, function(t)
  local reply = run(
    t,
    { { calls = { { name = "subtract" } } }, "I see." },
    { tools = { add_tool {} } }
  )
  expect(results(reply)[1]:find("not found", 1, true), "result: %s", results(reply)[1])
end)

case("an output schema", nil, function(t)
  local reply = run(
    t,
    { '{"city":"Paris","celsius":21}' },
    { output = ah.schema.short { city = "string", celsius = "integer" } }
  )
  same(reply.value.city, "Paris", "value.city")
  same(reply.value.celsius, 21, "value.celsius")
end)

--- Makes an agent whose tool `open` adds the tool `add`.
local function growing(t, turns, more)
  local seen = {}
  local open = ah.tool {
    name = "open",
    description = "Opens the calculator.",
    handler = function(_, ctx)
      ctx:add_tools(add_tool(seen))
      return "open"
    end,
  }
  more.tools = { open }
  local agent = ah.agent(fields(t, turns, more))
  return agent, seen
end

case("a tool that comes in mid-conversation", nil, function(t)
  local agent, seen = growing(t, {
    { calls = { { name = "open" } } },
    { calls = { { name = "add", arguments = { a = 2, b = 2 } } } },
    "4.",
    "Again 4.",
  }, {})
  local reply = assert(agent:run "2+2?")
  same(reply.text, "4.", "text")
  same(table.concat(seen, " "), "2+2", "calls")
  same(table.concat(reply.injected_tools, " "), "add", "injected_tools")
  same(tostring(assert(agent:run "Sure?")), "Again 4.", "the next answer")
end)

case("a tool that goes in mid-conversation", nil, function(t)
  local seen = {}
  local close = ah.tool {
    name = "close",
    description = "Takes the calculator away.",
    handler = function(_, ctx)
      ctx:remove_tools "add"
      return "closed"
    end,
  }
  local reply = run(t, {
    { calls = { { name = "close" } } },
    { calls = { { name = "add", arguments = { a = 1, b = 1 } } } },
    "It is gone.",
  }, { tools = { add_tool(seen), close } })
  same(#seen, 0, "calls of what is gone")
  expect(results(reply)[2]:find("no longer available", 1, true), "result: %s", results(reply)[2])
end)

case("no cache is lost where the mode keeps it", "dynamic", function(t)
  local breaks = {}
  local agent = growing(t, {
    { calls = { { name = "open" } } },
    { calls = { { name = "add", arguments = { a = 2, b = 2 } } } },
    "4.",
  }, { on = {
    cache_break = function(e)
      breaks[#breaks + 1] = e.reason
    end,
  } })
  assert(agent:run "2+2?")
  local allowed = t.told.tool_change_mode == "append" and "tools_changed" or ""
  same(table.concat(breaks, " "), allowed, "cache_break reasons")
end)

case("a conversation that is saved and loaded", nil, function(t)
  local path = os.tmpname()
  local seen = {}
  local first = fields(t, {
    { calls = { { name = "add", arguments = { a = 2, b = 3 } } } },
    "5.",
    "Still 5.",
  }, { tools = { add_tool(seen) } })
  local agent = ah.agent(first)
  assert(agent:run "2+3?")
  assert(agent:save(path))
  local again = assert(ah.load(path, first))
  os.remove(path)
  same(tostring(assert(again:run "Sure?")), "Still 5.", "the answer after loading")
end)

case("a run that is stopped, and the next one", nil, function(t)
  local agent = ah.agent(
    fields(t, { { text = "Too late.", delay = 5 }, "In time." }, { timeout = 0.2, retries = 0 })
  )
  local reply, err = agent:run "Now?"
  expect(
    not reply and err.code == "deadline_exceeded",
    "expected deadline_exceeded, found %s",
    tostring(err or reply)
  )
  same(tostring(assert(agent:run "And now?")), "In time.", "the next answer")
end)

--- Makes a tool that waits, so that a run can be stopped in it.
local function waiting_tool(seconds)
  return ah.tool {
    name = "wait",
    description = "Takes its time.",
    handler = function()
      ah.sleep(seconds)
      return "waited"
    end,
  }
end

case("a run that is stopped while a call is at work, and the next one", nil, function(t)
  local turns = { { calls = { { name = "wait" } } }, "In time." }
  local agent = ah.agent(
    fields(t, turns, { tools = { waiting_tool(5) }, timeout = 0.3, retries = 0 })
  )
  local reply, err = agent:run "Now?"
  expect(
    not reply and err.code == "deadline_exceeded",
    "expected deadline_exceeded, found %s",
    tostring(err or reply)
  )
  same(tostring(assert(agent:run "And now?")), "In time.", "the next answer")
end)

case("calls that are at work together, answered in their order", nil, function(t)
  local turns = { { calls = { { name = "slow" }, { name = "quick" } } }, "Both." }
  local reply = run(t, turns, {
    tools = {
      ah.tool { name = "slow", description = "Is slow.", parallel = true, handler = function()
        ah.sleep(0.05)
        return "slow"
      end },
      ah.tool { name = "quick", description = "Is quick.", parallel = true, handler = function()
        return "quick"
      end },
    },
  })
  same(table.concat(results(reply), " "), "slow quick", "results")
  same(reply.text, "Both.", "text")
end)

case("a call that a policy denies", nil, function(t)
  local seen = {}
  local turns = { { calls = { { name = "add", arguments = { a = 1, b = 1 } } } }, "I see." }
  local reply = run(t, turns, {
    tools = { add_tool(seen) },
    policies = { function()
      return "deny", "not today"
    end },
  })
  same(#seen, 0, "calls that were denied and made")
  expect(results(reply)[1]:find("not today", 1, true), "result: %s", results(reply)[1])
  same(reply.text, "I see.", "text")
end)

case("a result that is the answer, and the next question", nil, function(t)
  local direct = ah.tool {
    name = "direct",
    description = "Answers.",
    return_direct = true,
    handler = function()
      return "from the tool"
    end,
  }
  local agent = ah.agent(
    fields(t, { { calls = { { name = "direct" } } }, "From the model." }, { tools = { direct } })
  )
  same(tostring(assert(agent:run "First?")), "from the tool", "the tool's answer")
  same(tostring(assert(agent:run "Second?")), "From the model.", "the next answer")
end)

case("pieces of an answer as they come", "streaming", function(t)
  local pieces = {}
  local reply = run(
    t,
    { { text = { "One ", "two ", "three." } } },
    { on = {
      content = function(e)
        pieces[#pieces + 1] = e.text
      end,
    } }
  )
  same(table.concat(pieces), "One two three.", "pieces")
  same(reply.text, "One two three.", "text")
end)

case("tokens are counted", "usage", function(t)
  local reply = run(t, { { text = "Hello.", usage = { input = 11, output = 7 } } })
  expect(reply.usage.known, "usage is not known")
  same(reply.usage.output, 7, "usage.output")
  same(reply.usage.input, 11, "usage.input")
end)

case("a refusal", "refusal", function(t)
  local reply = run(t, { { refusal = "I will not." } })
  same(reply.stop, "refusal", "stop")
  same(reply.text, "I will not.", "text")
end)

case("an answer that a limit cut off", "length", function(t)
  same(run(t, { { text = "And so", stop = "length" } }).stop, "length", "stop")
end)

case("images in what the user says and in results", "images", function(t)
  local image = ah.image { data = "\x89PNG\r\n\x1a\nan image of the kit" }
  local draw = ah.tool { name = "draw", description = "Draws.", params = {},
    handler = function() return { "Drawn.", image } end }
  local all = fields(t, { { calls = { { name = "draw", arguments = {} } } }, "Nice." },
    { tools = { draw } })
  all[#all + 1] = { "Draw this again.", image }
  local reply, err = ah.run(all)
  expect(reply, "the run failed: %s", tostring(err))
  same(reply.text, "Nice.", "text")
  same(reply.messages[1].content[2].data, image.data, "the user's image")
  same(reply.messages[3].content[2].data, image.data, "the tool's image")
end)

case("a failure that passes is tried again", "errors", function(t)
  local retries = 0
  local reply = run(t, {
    { fail = { message = "busy", status = 503, retryable = true, retry_after = 0.01 } },
    "Here.",
  }, { retries = 1, on = {
    retry = function()
      retries = retries + 1
    end,
  } })
  same(reply.text, "Here.", "text")
  same(retries, 1, "retries")
end)

case("a failure that does not pass is told", "errors", function(t)
  local all = fields(t, { { fail = { message = "no such model", status = 404 } } }, { retries = 2 })
  all[#all + 1] = "Go on."
  local reply, err = ah.run(all)
  expect(not reply, "the run succeeded")
  same(err.status, 404, "status")
  same(err.retryable, false, "retryable")
  expect(err.message:find("no such model", 1, true), "message: %s", err.message)
end)

case("an answer that breaks off is none", "cut", function(t)
  local all = fields(t, { { text = "And then", cut = true } }, { retries = 0 })
  all[#all + 1] = "Go on."
  local reply, err = ah.run(all)
  expect(not reply, "the run succeeded with '%s'", tostring(reply))
  same(err.code, "http", "code")
end)

-- -- the report -----------------------------------------------------------------------------

local Report = { __name = "agenthost.conformance" }
Report.__index = Report

function Report:__tostring()
  local lines = {}
  for i, c in ipairs(self.cases) do
    lines[i] = ("%-7s %s%s"):format(c.outcome, c.name, c.message and ": " .. c.message or "")
  end
  lines[#lines + 1] = ("%d passed, %d failed, %d skipped"):format(
    self.passed,
    self.failed,
    self.skipped
  )
  return table.concat(lines, "\n")
end

local function declared(list)
  local set, known = {}, {}
  for _, name in ipairs(CAPABILITIES) do
    known[name] = true
  end
  for _, name in ipairs(list or {}) do
    if not known[name] then
      error(
        ("ah.conformance: unknown capability '%s'; known are %s"):format(
          tostring(name),
          table.concat(CAPABILITIES, ", ")
        ),
        3
      )
    end
    set[name] = true
  end
  return set
end

--- Returns the adapter's own capabilities (ah.capabilities); raises if there are none.
local function told_by(serve)
  local all = serve { "Hello." }
  local told, err = ah.capabilities(all.model, { base_url = all.base_url, api_key = all.api_key })
  if all.close then
    all.close()
  end
  return told or error(err, 0)
end

local function judge(c, t, can)
  if c.needs and not can[c.needs] then
    return "skipped", "needs " .. c.needs
  end
  local ok, err = pcall(c.check, t)
  if t.close then
    t.close()
  end
  t.close = nil
  return ok and "passed" or "failed", not ok and tostring(err) or nil
end

--- Runs all cases, or those whose name contains `only`.
return function(spec)
  spec = read(spec)
  local can = declared(spec.capabilities)
  local told = told_by(spec.serve)
  local report = setmetatable({ cases = {}, passed = 0, failed = 0, skipped = 0 }, Report)

  can.dynamic = told.supports_dynamic_tools
  for _, c in ipairs(cases) do
    if not spec.only or c.name:find(spec.only, 1, true) then
      local outcome, message = judge(c, { serve = spec.serve, told = told }, can)
      report[outcome] = report[outcome] + 1
      report.cases[#report.cases + 1] =
        { name = c.name, needs = c.needs, outcome = outcome, message = message }
    end
  end
  return report
end
