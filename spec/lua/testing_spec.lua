-- agenthost.testing and the test doubles of scripted models.
local ah = require "agenthost"
local patiently = require "support.patiently"
local testing = require "agenthost.testing"

local function tool(name, more)
  local t = { name = name, description = "A tool.", params = { q = "string" },
    handler = function() error "the real handler ran" end }
  for key, value in pairs(more or {}) do
    t[key] = value
  end
  return ah.tool(t)
end

local function call(name, q, returns)
  return { name = name, arguments = { q = q }, returns = returns }
end

local function raised(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return tostring(err)
end

-- Returns the results of the calls of one turn.
local function results(calls, fields)
  fields = fields or {}
  fields.model = testing.model { returns = fields.returns, { calls = calls }, "done" }
  fields.returns = nil
  fields[1] = "x"
  fields.tools = fields.tools or { tool "a", tool "b" }
  local out = {}
  for i, c in ipairs(testing.calls(testing.run(fields))) do
    out[i] = c.result
  end
  return out
end

describe("a double", function()
  it("takes the place of the handler for the very call it is told for", function()
    local real = tool("a", { handler = function() return "real" end })
    assert.same({ "first", "real", "second", "real" }, results({ call("a", "x", "first"),
      call("a", "y"), call("a", "x", "second"), call("a", "x") }, { tools = { real } }))
  end)

  it("of a call goes before that of its tool", function()
    assert.same({ "one", "all", "also" }, results({ call("a", "x", "one"), call("a", "x"),
      call("b", "x") }, { returns = { a = "all", b = function() return "also" end } }))
  end)

  it("is any value a tool may give, the very same for strategies", function()
    local live, seen = setmetatable({ n = 1 }, { __index = { m = 2 } }), {}
    assert.same({ '{"n":1}', "Said.", "no", "Tool 'a' execution failed: oh", "OK", "false" },
      results({
      call("a", "1", live), call("a", "2", ah.result { message = "Said.", value = live,
        exclude_value_from_context = true }), call("a", "3", ah.fail "no"),
      call("a", "4", function() error "oh" end), call("a", "5", function() end),
      call("a", "6", false) },
      { strategies = { function(m) seen[#seen + 1] = m.value == live end } }))
    assert.same({ true, true, false, false, false, false }, seen)
  end)

  it("leaves all else of the tool as it is", function()
    local strict = tool("a", { result = { type = "integer" }, timeout = 0.01 })
    local got = results({ call("a", "x", "text"), call("a", "x", 7), { name = "a", wrong = true,
      returns = 1 },
      call("a", "x", function() ah.sleep(5) end), call("a", "deny", 1) }, { tools = { strict },
      policies = { function(c) if c.arguments.q == "deny" then return "deny", "no" end end } })
    assert.matches("its result does not match its schema", got[1])
    assert.equal("7", got[2])
    assert.equal("Tool validation failed: /q: is required", got[3])
    assert.matches("did not finish within 0.01 seconds", got[4])
    assert.equal("Tool 'a' was not run: no", got[5])
  end)

  it("stands in for tools without a handler, before executors, and for no unknown tool", function()
    local got = results({ call("a", "x", "double"), call("a", "x"),
      { name = "nope", wrong = true, returns = 1 } },
      { tools = { ah.tool { name = "a", description = "A tool.", params = { q = "string" } } },
        executors = { a = function() return "executor" end } })
    assert.same({ "double", "executor", "Tool 'nope' not found. Available tools: [a]" }, got)
  end)

  it("stands in for calls at work at the same time", function()
    patiently(function(times)
      local order = {}
      local function slow(seconds, name)
        return function()
          ah.sleep(seconds * times)
          order[#order + 1] = name
          return name
        end
      end
      assert.same({ "slow", "fast" }, results({ call("a", "x", slow(0.05, "slow")),
        call("a", "x", slow(0.01, "fast")) }, { tools = { tool("a", { parallel = true }) } }))
      assert.same({ "fast", "slow" }, order)
    end)
  end)

  it("is taken back with the changes of its call", function()
    local Note = ah.type { name = "TestingNote", fields = { n = "integer" } }
    local session = ah.session()
    session:register(Note)
    results({ call("a", "x", function(_, ctx)
      ctx.session:dispatch(Note { n = 1 })
      error "after it"
    end) }, { session = session })
    assert.equal(0, #session[Note]:all())
  end)

  it("is refused where it is no table of doubles", function()
    assert.matches("field 'returns' must be a table", raised(ah.scripted, { returns = 1 }))
  end)
end)

describe("a strict model", function()
  local function fails(turn, more)
    local fields = { model = testing.model { turn, "done" }, tools = { tool "a" }, "x" }
    for key, value in pairs(more or {}) do
      fields[key] = value
    end
    return raised(testing.run, fields)
  end

  it("reports calls that no longer fit the tools", function()
    assert.matches("request 1: drift: no tool 'b' is offered", fails { calls = { call("b", "x") } })
    assert.matches("drift: the tool 'a' does not take {\"r\":1}: /r: unknown property",
      fails { calls = { { name = "a", arguments = { r = 1 } } } })
    assert.matches("drift: the tool 'a' does not take {}: /q: is required",
      fails { calls = { { name = "a" } } })
    assert.matches("drift: the tool 'a' does not take not JSON",
      fails { calls = { { name = "a", arguments = "not JSON" } } })
  end)

  it("knows tools that came and went, and nothing of tools in brief", function()
    local late = tool "late"
    local a = tool("a", { handler = function(_, ctx)
      ctx:add_tools(late)
      ctx:remove_tools "a"
    end })
    for _, mode in ipairs { "append", "inline" } do
      local model = testing.model { tool_change_mode = mode, { calls = { call("a", "x") } },
        { calls = { call("late", "x", "here") } }, { calls = { call("late", 1) } } }
      assert.matches("request 3: drift: the tool 'late' does not take {\"q\":1}",
        raised(testing.run, { model = model, tools = { a }, "x" }))
    end
    local model = testing.model { { calls = { { name = "a", arguments = { r = 1 } } } }, "done" }
    assert.equal("done", testing.run({ model = model, tools = { a }, brief = true, "x" }).text)
  end)

  it("may be told by a function, and not to be strict", function()
    local model = testing.model(function() return { calls = { call("b", "x") } } end)
    assert.matches("drift: no tool 'b'", raised(testing.run, { model = model, "x" }))
    model = testing.model { strict = false, { calls = { call("b", "x") } }, "done" }
    assert.equal("done", testing.run({ model = model, "x" }).text)
  end)
end)

describe("expected calls", function()
  local function expecting(calls)
    return pcall(testing.run, { tools = { tool "a" }, "x", model = testing.model {
      { calls = { call("a", "1", "one"), call("a", "2", ah.fail "two") } },
      { expect = { calls = calls }, text = "done" } } })
  end

  it("are those of the turn before", function()
    assert.is_true(expecting { { name = "a", arguments = { q = "1" }, result = "one",
      success = true },
      { name = "a", success = false } })
    for why, calls in pairs {
      ["expected call 2 to be none, found a {\"q\":\"2\"}"] = { { name = "a" } },
      ["expected call 3 to be b, found none"] = { { name = "a" }, { name = "a" }, { name = "b" } },
      ["expected call 1 to be b, found a"] = { { name = "b" }, { name = "a" } },
      ["expected call 2 to be a {\"q\":2}, found a {\"q\":\"2\"}"] =
        { { name = "a" }, { name = "a", arguments = { q = 2 } } },
      ["expected the success of call 2 %(a {\"q\":\"2\"}%) to be 'true', found 'false'"] =
        { { name = "a" }, { name = "a", success = true } },
    } do
      local ok, err = expecting(calls)
      assert.is_false(ok)
      assert.matches("request 2: " .. why, tostring(err))
    end
  end)

  it("are compared with those of a whole conversation, for a reply and for messages", function()
    local reply = testing.run { tools = { tool "a" }, "x",
      model = testing.model { { calls = { call("a", "1", "one") } }, "done" } }
    assert.is_true(testing.expect_calls(reply, { { name = "a", arguments = { q = "1" } } }))
    assert.is_true(testing.expect_calls(reply.messages, { { name = "a", result = "one" } }))
    assert.matches("testing_spec.lua:%d+: expected call 1 to be none, found a", raised(function()
      testing.expect_calls(reply, {})
    end))
    assert.same({ { name = "a", arguments = { q = "1" }, result = "one", success = true } },
      testing.calls(reply))
  end)
end)

describe("testing.run", function()
  it("raises what went wrong, and turns that were not taken", function()
    assert.matches("1 of 2 turns were never asked for",
      raised(testing.run, { model = testing.model { "a", "b" }, "x" }))
    local ok, err = pcall(testing.run, { model = testing.model {}, "x" })
    assert.is_false(ok)
    assert.equal("provider", err.code)
    assert.equal("x", testing.run({ model = "demo/echo", "x" }).text)
  end)

  it("changes nothing of the fields it is given", function()
    local fields = { model = "demo/echo", "x" }
    testing.run(fields)
    assert.same({ model = "demo/echo", "x" }, fields)
  end)
end)

describe("testing.turns", function()
  it("says the same again, and tells what is answered otherwise", function()
    local n = 0
    local count = tool("count", { params = {}, handler = function()
      n = n + 1
      return n
    end })
    local reply = testing.run { tools = { count }, "x", model = testing.model {
      { text = "Well.", calls = { { name = "count" }, { name = "count" } } }, "done" } }
    local turns = testing.turns(reply)
    assert.equal(2, #turns)
    n = 0
    local again = testing.run { tools = { count }, "x", model = testing.model(turns) }
    assert.equal("Well.", again.messages[2].content)
    assert.equal("done", again.text)
    assert.matches("expected the result of call 1 %(count {}%) to be '1', found '3'",
      raised(testing.run, { tools = { count }, "x", model = testing.model(turns) }))
  end)
end)

describe("a scripted model that resumes", function()
  it("answers by the number of answers in the conversation, not of its requests", function()
    local turns = { "one", "two", function(request)
      return { text = "three of " .. #request.entries }
    end, resumes = true }
    local first = ah.agent { model = ah.scripted(turns) }
    assert.equal("one", first:run("a").text)
    assert.equal("two", first:run("b").text)
    local copy = first:fork()
    copy:use(ah.scripted(turns))
    assert.matches("^three of %d+$", copy:run("c").text)
    local _, err = copy:run "d"
    assert.matches("request 4 was not expected %(turns given: 3%)", err.message)
  end)
end)

describe("agenthost.testing", function()
  it("is there in stock Lua and in the command, before and after agenthost", function()
    local build = os.getenv "AGENTHOST_BUILD" or "build"
    local path = os.tmpname()
    local f <close> = assert(io.open(path, "w"))
    f:write [[
      local testing = require "agenthost.testing"
      assert(testing == require "agenthost.testing" and require("agenthost").run)
      io.write(testing.run({ model = "demo/echo", "here" }).text)
    ]]
    f:flush()
    for _, command in ipairs {
      ("%s/agenthost %s"):format(build, path),
      ("lua5.4 -e 'package.cpath=\"%s/?.so\"' %s"):format(build, path),
    } do
      local pipe <close> = assert(io.popen("unset AGENTHOST_MODEL; " .. command .. " 2>&1"))
      assert.equal("here", pipe:read "a")
    end
    os.remove(path)
  end)
end)

describe("a demo model", function()
  it("keeps no requests, however long its conversation is", function()
    local agent <close> = ah.agent { model = "demo/echo" }
    local text = ("word "):rep(20000)
    assert(agent:run "Go.")
    collectgarbage()
    local before = collectgarbage "count"
    for _ = 1, 10 do
      assert(agent:run(text))
    end
    collectgarbage()
    assert.is_true(collectgarbage "count" - before < 1000, "KiB that the texts of requests take")
  end)
end)
