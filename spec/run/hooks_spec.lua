-- Policies, approvals, feedback, completion checks and budgets. docs/reference/policies.md,
-- "Policies, approvals, feedback, checks" and "Budgets".
local ah = require "agenthost"
local patiently = require "support.patiently"
local sound = require "support.sound"

local function quiet() end

local function tool(name, handler, fields)
  local t = {
    name = name,
    description = "The tool " .. name .. ".",
    params = { n = "integer?" },
    handler = handler or function()
      return name
    end,
  }
  for k, v in pairs(fields or {}) do
    t[k] = v
  end
  return ah.tool(t)
end

local function call(name, arguments)
  return { calls = { { name = name, arguments = arguments } } }
end

local function calls(...)
  local list = {}
  for i, name in ipairs { ... } do
    list[i] = { name = name }
  end
  return { calls = list }
end

-- Runs; returns the contents of the tool results, the reply, and the error.
local function results(fields)
  fields.log = fields.log or quiet
  local reply, err = ah.run(fields)
  local list = {}
  local partial = reply or err.reply
  for _, m in ipairs(partial.messages) do
    list[#list + 1] = m.role == "tool" and m.content or nil
  end
  sound.check(partial:transcript())
  return list, reply, err
end

describe("a policy", function()
  it("sees the call with its checked arguments, and what was called before", function()
    local seen
    results {
      model = ah.scripted {
        call "a",
        { calls = { { name = "a" }, { name = "b", id = "b1", arguments = { n = 7 } } } },
        "ok",
      },
      tools = { tool "a", tool "b" },
      policies = {
        function(c)
          if c.name == "b" then
            seen = {
              c.id,
              c.arguments.n,
              #c.calls,
              c.calls[2].name,
              c.calls[2].success,
              c.iteration,
              #c.tools,
              c.result,
              c.value,
            }
          end
        end,
      },
      "x",
    }
    assert.same({ "b1", 7, 2, "a", true, 2, 2 }, seen)
  end)

  it("is not asked about calls that are refused anyway", function()
    local asked = 0
    results {
      model = ah.scripted {
        {
          calls = {
            { name = "none" },
            { name = "a", arguments = { n = "x" } },
            { name = "idle" },
          },
        },
        "ok",
      },
      tools = { tool "a", ah.tool { name = "idle", description = "No handler." } },
      policies = {
        function()
          asked = asked + 1
        end,
      },
      "x",
    }
    assert.equal(0, asked)
  end)

  it("denies with a reason, and the handler is not run", function()
    local ran = false
    local list = results {
      model = ah.scripted { call "a", "ok" },
      tools = { tool("a", function()
        ran = true
      end) },
      policies = {
        function()
          return "deny", "not today"
        end,
      },
      "x",
    }
    assert.same({ "Tool 'a' was not run: not today" }, list)
    assert.is_false(ran)
  end)

  it("denies when it fails or says what is no verdict", function()
    for words, policy in pairs {
      ["a policy failed$"] = function()
        error "oh"
      end,
      ["a policy denies it"] = function()
        return "deny"
      end,
    } do
      local list = results {
        model = ah.scripted { call "a", "ok" },
        tools = { tool "a" },
        policies = { policy },
        "x",
      }
      assert.matches("Tool 'a' was not run: .*" .. words, list[1])
    end
  end)

  it("that denies wins over one that asks, wherever it stands", function()
    local function denies()
      return "deny", "no"
    end
    local function asks()
      return "ask", "hm"
    end
    for _, policies in ipairs { { denies, asks }, { asks, denies } } do
      local list = results {
        model = ah.scripted { call "a", "ok" },
        tools = { tool "a" },
        policies = policies,
        approve = function()
          error "not asked"
        end,
        "x",
      }
      assert.same({ "Tool 'a' was not run: no" }, list)
    end
  end)

  it("is refused where it is none", function()
    local wrongs = { policies = { 7 }, checks = { {} }, feedback = { quiet }, approve = 7 }
    for field, wrong in pairs(wrongs) do
      local ok, err = pcall(ah.run, { model = "demo/echo", [field] = wrong, "x" })
      assert.is_false(ok)
      assert.matches(field, tostring(err))
    end
  end)
end)

describe("an approval", function()
  local function asking(approve, fields)
    fields = fields or {}
    fields.model = fields.model or ah.scripted { call("a", { n = 1 }), "ok" }
    fields.tools = fields.tools or { tool("a", function(args)
      return args.n
    end) }
    fields.policies = {
      function()
        return "ask", "it matters"
      end,
    }
    fields.approve = approve
    fields[1] = "x"
    return results(fields)
  end

  it("is asked with the reason and may wait", function()
    local seen
    local list = asking(function(c)
      ah.sleep(0.01)
      seen = c
      return true
    end)
    assert.same({ "1" }, list)
    assert.same(
      { "a", 1, "it matters", "string", "integer" },
      { seen.name, seen.arguments.n, seen.reason, type(seen.id), math.type(seen.run) }
    )
  end)

  it("refuses with its words, with none, and by failing", function()
    assert.same(
      { "Tool 'a' was not run: not approved: too late" },
      asking(function()
        return false, "too late"
      end)
    )
    assert.same({ "Tool 'a' was not run: not approved" }, asking(function() return false end))
    assert.same(
      { "Tool 'a' was not run: not approved: the approval function failed" },
      asking(function()
        error "oh"
      end)
    )
  end)

  it("may change the arguments, which are checked again", function()
    assert.same(
      { "5" },
      asking(function()
        return true, { n = 5 }
      end)
    )
    assert.matches(
      "^Tool validation failed: /n: ",
      asking(function()
        return true, { n = "x" }
      end)[1]
    )
    assert.matches(
      "not approved: the approval function failed",
      asking(function()
        return true, { n = print }
      end)[1]
    )
  end)

  it("is needed: without one the call is denied", function()
    assert.same(
      { "Tool 'a' was not run: not approved: it matters (it needs an approval, and this run has "
        .. "neither `approve` nor a front end of agent:on_ask; continue without this call)" },
      asking(nil)
    )
  end)

  it("is waited for by parallel calls at once, and its time is not the tool's", function()
    patiently(function(times)
      local open, most = 0, 0
      local list = asking(function()
        open = open + 1
        most = math.max(most, open)
        ah.sleep(0.06 * times)
        open = open - 1
        return true
      end, {
        model = ah.scripted { calls("a", "a", "a"), "ok" },
        tools = { tool("a", nil, { parallel = true, timeout = 0.05 * times }) },
      })
      assert.equal(3, most)
      assert.same({ "a", "a", "a" }, list)
    end)
  end)

  it("and the time-out of each of many calls at once are all told of", function()
    for _, n in ipairs { 1, 28, 29, 60 } do
      patiently(function(times)
        local list, begun = {}, 0
        for i = 1, n do
          list[i] = { name = "slow", arguments = { n = i } }
        end
        local slow = tool("slow", function()
          local t = ah.now()
          begun = begun + 1
          while ah.now() - t < 0.002 do
          end
          ah.sleep(5)
        end, { parallel = true, timeout = 0.02 * times })
        local got = results {
          model = ah.scripted { { calls = list }, "ok" },
          tools = { slow },
          loop_detector = false,
          policies = { function() return "ask", "sure?" end },
          approve = function() return true end,
          "go",
        }
        assert.equal(n, #got)
        for _, text in ipairs(got) do
          assert.matches(("did not finish within %g seconds"):format(0.02 * times), text, 1, true)
        end
        assert.is_true(begun >= 1)
      end)
    end
  end)

  it("is stopped with the run, and the call counts as not run", function()
    local list, _, err = asking(function()
      ah.sleep(60)
    end, { timeout = 0.05 })
    assert.equal("deadline_exceeded", err.code)
    assert.matches("^Not run:", list[1])
  end)
end)

-- A reason may have 16 KiB; a longer one is cut, with the number of missing bytes.
describe("a reason", function()
  local MOST = 16384

  --- Returns true if `said` is the reason, whole or cut at a character with the right number.
  local function tells(reason, said)
    if #reason <= MOST then
      return said == reason
    end
    local kept, left = said:match "^(.*) %[%.%.%. (%d+) bytes left out%]$"
    return kept and #kept > MOST - 4 and #kept <= MOST and kept == reason:sub(1, #kept)
      and #kept + tonumber(left) == #reason and utf8.len(kept) ~= nil
  end

  local lengths = { 1, 900, 1023, 1024, 1025, 3000, 4095, 4096, 4097, 6000, MOST - 1, MOST,
    MOST + 1, MOST + 2, MOST + 3, 70000, 300000 }
  local words = { "why ", "warum? \u{fc}ber ", "\u{4e3a}\u{4ec0}\u{4e48}", "\u{1f914}" }

  -- Returns n bytes of whole characters, filled up with dots.
  local function reason_of(n, word)
    local s = (word):rep(n // #word + 1):sub(1, n)
    while not utf8.len(s) do
      s = s:sub(1, -2)
    end
    return s .. ("."):rep(n - #s)
  end

  local function each(fn)
    for _, n in ipairs(lengths) do
      for _, word in ipairs(words) do
        local reason = reason_of(n, word)
        local said = fn(reason)
        assert.is_true(tells(reason, said), ("%d bytes of %q: %q"):format(n, word, said:sub(-60)))
      end
    end
  end

  -- The limit is larger than any reason, so that the result is not cut a second time.
  local function t(handler)
    return tool("t", handler, { max_result = 1 << 20 })
  end

  it("of a denial reaches the model", function()
    each(function(reason)
      local got = results { model = ah.scripted { call "t", "ok" }, tools = { t() },
        policies = { function() return "deny", reason end }, "go" }
      return (got[1]:gsub("^Tool 't' was not run: ", ""))
    end)
  end)

  it("of a question reaches who approves, and that of a refusal the model", function()
    each(function(reason)
      local asked
      local got = results { model = ah.scripted { call "t", "ok" }, tools = { t() },
        policies = { function() return "ask", reason end },
        approve = function(c)
          asked = c.reason
          return false, reason
        end, "go" }
      assert.is_true(tells(reason, asked), asked:sub(-60))
      return (got[1]:gsub("^Tool 't' was not run: not approved: ", ""))
    end)
  end)

  it("of several policies is told of each", function()
    local long = ("long "):rep(10000)
    local asked
    results { model = ah.scripted { call "t", "ok" }, tools = { t() },
      policies = { function() return "ask", long end, function() return "ask", "short" end,
        function() return "ask", long end },
      approve = function(c)
        asked = c.reason
        return true
      end, "go" }
    local first, last = asked:match "^(.*); short; (.*)$"
    assert.is_true(tells(long, first))
    assert.is_true(tells(long, last))
  end)

  it("is held to max_result as any answer is, with head and tail", function()
    local got = results { model = ah.scripted { call "t", "ok" },
      tools = { tool("t", nil, { max_result = 1024 }) },
      policies = { function() return "deny", ("no "):rep(2000) .. "end" end }, "go" }
    assert.is_true(#got[1] <= 1024)
    assert.matches("^Tool 't' was not run: no .*bytes left out.*no end$", got[1])
  end)

  it("may be anything that prints, and bytes are no reason to lose it", function()
    local object = setmetatable({}, { __tostring = function() return "printed" end })
    for _, case in ipairs {
      { 42, "42" }, { object, "printed" }, { "bad \xff byte", "bad \u{fffd} byte" },
      { ah.error { code = "usage", message = "an error" }, "an error" }, { false, "false" } } do
      local got = results { model = ah.scripted { calls "t", calls "t", "ok" }, tools = { t() },
        policies = { function(c) return #c.calls == 0 and "deny" or "ask", case[1] end },
        approve = function() return false, case[1] end, "go" }
      assert.matches("was not run: .*" .. case[2], got[1])
      assert.matches("not approved: .*" .. case[2], got[2])
    end
    local got = results { model = ah.scripted { call "t", "ok" }, tools = { t() }, policies = {
      function() return "deny", setmetatable({}, { __tostring = error }) end }, "go" }
    assert.equal("Tool 't' was not run: a policy failed", got[1])
  end)

  it("of an error is cut with a mark, too", function()
    local got, _, err = results { model = ah.scripted { calls("t", "t", "t", "t"), "ok" },
      tools = { tool("t", function() error(("\u{fc}"):rep(3000), 0) end) }, "go" }
    local said = got[1]:gsub("^Tool 't' execution failed: ", "")
    local kept, left = said:match "^(.*) %[%.%.%. (%d+) bytes left out%]$"
    assert.is_truthy(kept)
    assert.equal(6000, #kept + tonumber(left))
    assert.is_truthy(utf8.len(kept))
    assert.is_nil(err)
  end)
end)

describe("the ready-made policies", function()
  it("requires: only after the others have succeeded, also in a loaded conversation", function()
    local path = os.tmpname()
    local fails = true
    local policies = { ah.policies.requires { tool = "deploy", after = { "test", "build" } } }
    local tools = {
      tool "deploy",
      tool "build",
      tool("test", function()
        return not fails and "green" or nil, "red"
      end),
    }
    local function handler_results(agent)
      local list = {}
      for _, m in ipairs(assert(agent:run "x").messages) do
        list[#list + 1] = m.role == "tool" and m.content or nil
      end
      return list
    end
    local agent = ah.agent {
      model = ah.scripted { calls("build", "test", "deploy"), "ok" },
      tools = tools,
      policies = policies,
      log = quiet,
    }
    assert.equal("Tool 'deploy' was not run: call test first", handler_results(agent)[3])
    fails = false
    assert(agent:save(path))
    local again = assert(ah.load(path, {
      model = ah.scripted { calls("test", "deploy"), "ok" },
      tools = tools,
      policies = policies,
      log = quiet,
    }))
    os.remove(path)
    assert.equal("deploy", handler_results(again)[5])
  end)

  it("read_before_write: what is not known is not overwritten", function()
    local function file(name)
      return ah.tool {
        name = name,
        description = "Files.",
        params = { path = "string" },
        handler = function()
          return name
        end,
      }
    end
    local function on(name, path)
      return { name = name, arguments = { path = path } }
    end
    local list = results {
      model = ah.scripted {
        {
          calls = {
            on("write", "a"),
            on("read", "a"),
            on("write", "a"),
            on("write", "b"),
            on("write", "new"),
            on("write", "new"),
          },
        },
        "ok",
      },
      tools = { file "read", file "write" },
      policies = {
        ah.policies.read_before_write {
          read = "read",
          write = { "write" },
          creates = function(path)
            return path == "new"
          end,
        },
      },
      "x",
    }
    assert.same({
      "Tool 'write' was not run: read a with read first",
      "read",
      "write",
      "Tool 'write' was not run: read b with read first",
      "write",
      "write",
    }, list)
  end)

  it("say what is wrong with their fields", function()
    for _, wrong in ipairs {
      {},
      { tool = "a" },
      { tool = "a", after = {} },
      { tool = 1, after = "b" },
      { tool = "a", after = "b", before = "c" },
    } do
      local ok, err = pcall(function()
        ah.policies.requires(wrong)
      end)
      assert.is_false(ok)
      assert.matches("hooks_spec.lua:%d+: ah.policies.requires: ", err)
    end
  end)
end)

describe("feedback", function()
  it("speaks every so many calls and is a note to the model", function()
    local seen = {}
    local model = ah.scripted {
      calls("a", "a"),
      calls "a",
      {
        check = function(r)
          return r.entries[#r.entries].text == "3 calls"
        end,
        calls = { { name = "a" } },
      },
      "ok",
    }
    local provider = {
      every = 3,
      text = function(f)
        seen[#seen + 1] = f.calls
        return f.calls .. " calls"
      end,
    }
    results { model = model, tools = { tool "a" }, feedback = { provider }, "x" }
    assert.same({ 3 }, seen)
    assert.is_nil(provider.last_calls)
  end)

  it("speaks after so many seconds, and its failure is a warning", function()
    local warnings = {}
    local slow = tool("a", function()
      ah.sleep(0.02)
    end)
    results {
      model = ah.scripted { calls "a", calls "a", "ok" },
      tools = { slow },
      "x",
      on = {
        warning = function(e)
          warnings[#warnings + 1] = e.message
        end,
      },
      feedback = {
        {
          seconds = 0.01,
          text = function()
            error "oh"
          end,
        },
      },
    }
    assert.equal(2, #warnings)
    assert.matches("oh", warnings[1])
  end)
end)

describe("completion checks", function()
  it("let the model go on until they are content", function()
    local seen = {}
    local reply = select(
      2,
      results {
        model = ah.scripted {
          "one",
          { expect = { user = "more" }, text = "two" },
          { expect = { user = "more" }, text = "three" },
        },
        "x",
        checks = {
          function(a)
            ah.sleep(0)
            seen[#seen + 1] = a.text .. a.iteration
          end,
          function(a)
            return a.text ~= "three" and "more" or nil
          end,
        },
      }
    )
    assert.equal("three", reply.text)
    assert.same({ "one1", "two2", "three3" }, seen)
  end)

  it("do so ten times at most; then the answer stands, with a warning", function()
    local warned
    local n = 0
    local _, reply = results {
      model = ah.scripted(function()
        n = n + 1
        return tostring(n)
      end),
      on = {
        warning = function(e)
          warned = e.message
        end,
      },
      "x",
      checks = {
        function()
          return "again"
        end,
      },
    }
    assert.equal("11", reply.text)
    assert.matches("after 10 rounds", warned)
  end)

  it("that fail keep the answer back, and end with the run", function()
    local warned
    local _, nothing, failed = results { model = ah.scripted { "one" }, "x",
      on = { warning = function(e) warned = e.message end },
      checks = { function() error "oh" end } }
    assert.is_nil(nothing)
    assert.same({ "internal", "response" }, { failed.code, failed.phase })
    assert.matches("^a check of the answer %(.*hooks_spec.lua:%d+%) failed: oh$", failed.message)
    assert.equal(failed.message, warned)
    local _, none, err = results {
      model = ah.scripted { "one" },
      "x",
      timeout = 0.05,
      checks = {
        function()
          ah.sleep(60)
        end,
      },
    }
    assert.is_nil(none)
    assert.equal("deadline_exceeded", err.code)
    assert.equal("one", err.reply.text)
  end)
end)

describe("a budget", function()
  local function spent(budget, fields)
    fields.budget = budget
    fields.tools = fields.tools or { tool "a" }
    fields[1] = "x"
    return results(fields)
  end

  it("of requests is exact, retries included", function()
    local fail = { message = "busy", status = 429, retryable = true, retry_after = 0.001 }
    local budget = ah.budget { requests = 3 }
    local _, _, err =
      spent(budget, { model = ah.scripted { { fail = fail }, call "a", call "a", "ok" } })
    assert.equal("budget_exceeded", err.code)
    assert.is_true(err:is "prompt_evaluation")
    assert.equal("request", err.phase)
    assert.same({ "requests", 3, 3 }, { err.budget, err.limit, err.used })
    assert.equal(3, budget:used().requests)
    assert.same({ requests = 0 }, budget:remaining())
  end)

  it("lets a run end that needed just as much as there was", function()
    local usage = { input = 60, output = 40 }
    local _, reply = spent(
      { requests = 1, total_tokens = 100, input_tokens = 60, output_tokens = 40 },
      { model = ah.scripted { { text = "ok", usage = usage } } }
    )
    assert.equal("ok", reply.text)
  end)

  it("of tool calls is exact: the one too many is not run, and the batch is settled", function()
    local ran = 0
    local list, _, err = spent({ tool_calls = 2 }, {
      model = ah.scripted { calls("a", "a", "a", "a"), "ok" },
      tools = { tool("a", function()
        ran = ran + 1
      end) },
    })
    assert.same({ "budget_exceeded", "tool", "a" }, { err.code, err.phase, err.tool })
    assert.same({ "tool_calls", 2, 2 }, { err.budget, err.limit, err.used })
    assert.equal(2, ran)
    assert.matches("Tool 'a' was not run: the budget's tool_calls are used up: 2 of 2", list[3])
    assert.matches("^Not run:", list[4])
  end)

  it("of tokens or money that an answer has exceeded lets none of its calls run", function()
    local usage = { input = 90, output = 20 }
    for field, limits in pairs {
      total_tokens = { total_tokens = 109 },
      input_tokens = { input_tokens = 89 },
      output_tokens = { output_tokens = 19 },
      cost = { cost = 0.001, prices = { ["scripted/script"] = { input = 10, output = 10 } } },
    } do
      for _, parallel in ipairs { false, true } do
        local ran = 0
        local budget = ah.budget(limits)
        local list, _, err = spent(budget, {
          model = ah.scripted { { calls = { { name = "a" }, { name = "a", arguments = { n = 1 } } },
            usage = usage }, "ok" },
          tools = { tool("a", function() ran = ran + 1 end, { parallel = parallel }) },
        })
        assert.same({ "budget_exceeded", "tool", "a", field, limits[field] },
          { err.code, err.phase, err.tool, err.budget, err.limit })
        assert.is_true(err.used > err.limit)
        assert.same({ 0, 0, 1 }, { ran, budget:used().tool_calls, budget:used().requests })
        assert.matches("^Tool 'a' was not run: the budget's " .. field, list[1])
        assert.matches("^Not run: ", list[2])
      end
    end
  end)

  it("of a run inside a call stops the calls of the one around it, too", function()
    local ran = {}
    local inner = tool("inner", function()
      ah.run { model = ah.scripted { { text = "ok", usage = { input = 10, output = 2 } } },
        log = quiet, "x" } -- fails, but the handler ignores the error
    end)
    local list, _, err = spent({ output_tokens = 1 }, {
      model = ah.scripted { { calls = { { name = "inner" }, { name = "a" } },
        usage = { input = 1, output = 0 } }, "ok" },
      tools = { inner, tool("a", function() ran[#ran + 1] = "a" end) },
    })
    assert.same({ "budget_exceeded", "a", 0 }, { err.code, err.tool, #ran })
    assert.same({ 2, "OK" }, { #list, list[1] })
  end)

  it("of tokens is looked at before the next request, and at the end", function()
    local big = { input = 90, output = 20 }
    local list, _, err = spent(
      { total_tokens = 110 },
      { model = ah.scripted { { calls = { { name = "a" } }, usage = big }, "ok" } }
    )
    assert.same({ "budget_exceeded", "request", "a" }, { err.code, err.phase, list[1] })
    _, _, err = spent(
      { output_tokens = 10 },
      { model = ah.scripted { { text = "ok", usage = big } } }
    )
    assert.same({ "budget_exceeded", "response", "ok" }, { err.code, err.phase, err.reply.text })
  end)

  it("of money follows the prices, cached tokens included", function()
    local budget = ah.budget {
      cost = 1,
      prices = { ["scripted/script"] = { input = 2, cached_read = 0.5, output = 10 } },
    }
    spent(budget, {
      model = ah.scripted {
        { text = "ok", usage = { input = 100000, cached_read = 60000, output = 30000 } },
      },
    })
    assert.is_true(math.abs(budget:used().cost - (0.08 + 0.03 + 0.3)) < 1e-9)
    assert.is_true(math.abs(budget:remaining().cost - 0.59) < 1e-9)
    local reply, err = ah.run { model = "demo/echo", budget = budget, "x" }
    assert.is_nil(reply)
    assert.matches('prices has no "demo/echo"', err.message)
  end)

  it("estimates what a provider does not say", function()
    local budget = ah.budget {}
    spent(budget, { model = ah.scripted { ("word "):rep(40) } })
    local used = budget:used()
    assert.is_true(used.estimated)
    assert.equal(50, used.output_tokens)
    assert.is_true(used.input_tokens > 10)
  end)

  it("is drawn on by the runs that tools start, at any depth", function()
    local usage = { input = 10, output = 1 }
    local function inner(depth)
      return tool("a", function()
        local nested = { call "a", { text = "ok", usage = usage } }
        return assert(ah.run {
          model = ah.scripted(nested),
          log = quiet,
          "x",
          tools = { depth > 1 and inner(depth - 1) or tool "a" },
        }).text
      end)
    end
    local budget = ah.budget { requests = 100 }
    local own = ah.budget {}
    spent(budget, { model = ah.scripted { call "a", "ok" }, tools = { inner(2) } })
    assert.equal(6, budget:used().requests)
    assert.equal(3, budget:used().tool_calls)
    spent(budget, {
      model = ah.scripted { call "a", "ok" },
      tools = {
        tool("a", function()
          return assert(ah.run { model = "demo/echo", budget = own, "x" }).text
        end),
      },
    })
    assert.equal(9, budget:used().requests)
    assert.equal(1, own:used().requests)
  end)

  it("is shared by runs at the same time, which reserve what they may use", function()
    local budget = ah.budget { requests = 3 }
    local codes = {}
    local fan = ah.tool {
      name = "fan",
      description = "A run.",
      parallel = true,
      handler = function()
        local reply, err = ah.run {
          model = ah.scripted { { text = "ok", delay = 0.01 } },
          budget = budget,
          log = quiet,
          "x",
        }
        codes[#codes + 1] = reply and "ok" or err.code
      end,
    }
    local turns = { calls("fan", "fan", "fan", "fan"), "ok" }
    results { model = ah.scripted(turns), tools = { fan }, "x" }
    table.sort(codes)
    assert.same({ "budget_exceeded", "ok", "ok", "ok" }, codes)
  end)

  it("prints, and says what is wrong with its fields", function()
    assert.equal("budget: 0 requests, 0 tool calls, 0 tokens used", tostring(ah.budget {}))
    for _, wrong in ipairs {
      { request = 1 },
      { requests = -1 },
      { cost = 1e300 },
      { prices = { 1 } },
      { prices = { ["a/b"] = { inputs = 1 } } },
      { requests = 0 / 0 },
    } do
      assert.is_false((pcall(ah.budget, wrong)))
    end
    assert.is_false((pcall(ah.run, { model = "demo/echo", budget = 7, "x" })))
  end)
end)
