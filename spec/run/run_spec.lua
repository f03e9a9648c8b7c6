-- A run from the script's side: calls and their results, the values of handlers, limits,
-- cancelling, agents, runs inside runs, observers. Wires and strategies have specs of their own.
local ah = require "agenthost"
local sound = require "support.sound"

local function add_tool(handler)
  return ah.tool {
    name = "add",
    description = "Adds.",
    params = { a = "integer", b = "integer" },
    handler = handler or function(args)
      return args.a + args.b
    end,
  }
end

local function call(name, arguments, id)
  return { calls = { { name = name, arguments = arguments, id = id } } }
end

--- Runs one call of a tool with this handler; returns the result entry and the whole answer.
local function result_of(handler, more)
  local def = { name = "t", description = "Does it.", handler = handler }
  for k, v in pairs(more or {}) do
    def[k] = v
  end
  local reply, err =
    ah.run { model = ah.scripted { call("t", {}), "done" }, tools = { ah.tool(def) }, "go" }
  local entries = sound.check((reply or err.reply):transcript())
  return sound.of(entries, "tool_result")[1], reply, err
end

describe("a run", function()
  it("gives the model's text when there are no calls", function()
    local reply = assert(ah.run { model = ah.scripted { "hello" }, "hi" })
    assert.equal("hello", reply.text)
    assert.equal("hello", tostring(reply))
    assert.equal("end", reply.stop)
    assert.same({ 1, 0, 0 }, { reply.iterations, reply.rounds, reply.tool_calls })
  end)

  it("calls a tool and gives its result to the model", function()
    local model = ah.scripted {
      call("add", { a = 20, b = 22 }),
      { text = "It is 42.", expect = { result = "42", tools = { "add" } } },
    }
    local reply = assert(ah.run { model = model, tools = { add_tool() }, "20 + 22?" })
    assert.equal("It is 42.", reply.text)
    assert.same({ 2, 1, 1 }, { reply.iterations, reply.rounds, reply.tool_calls })
    assert.is_true(model:done())
    sound.check(reply:transcript())
  end)

  it("shows its messages in the shape that `messages` takes", function()
    local reply = assert(
      ah.run {
        model = ah.scripted { call("add", { a = 1, b = 2 }, "c1"), "3" },
        tools = { add_tool() },
        system = "Be brief.",
        "1 + 2?",
      }
    )
    local roles = {}
    for i, m in ipairs(reply.messages) do
      roles[i] = m.role
    end
    assert.same({ "system", "user", "assistant", "tool", "assistant" }, roles)
    assert.same(
      { id = "c1", name = "add", arguments = '{"a":1,"b":2}' },
      reply.messages[3].tool_calls[1]
    )
    assert.equal("c1", reply.messages[4].tool_call_id)
    local again = assert(ah.run {
      model = ah.scripted {
        {
          text = "yes",
          check = function(r)
            return #r.entries == 5 and r.system == "Be brief."
          end,
        },
      },
      messages = reply.messages,
      "Sure?",
    })
    assert.equal("yes", again.text)
  end)

  it("sums the usage of all its requests", function()
    local reply = assert(ah.run {
      tools = { add_tool() },
      model = ah.scripted {
        {
          calls = { { name = "add", arguments = { a = 1, b = 1 } } },
          usage = { input = 10, output = 3, cached_read = 4 },
        },
        { text = "2", usage = { input = 20, output = 5, reasoning = 2, unpriced = 0 } },
      },
      "1 + 1?",
    })
    assert.same(
      { input = 30, output = 8, cached_read = 4, cached_write = 0, reasoning = 2, known = true,
        unpriced = 0 },
      reply.usage
    )
  end)

  it("answers several calls of one message in the order of the request", function()
    local order = {}
    local slow = ah.tool {
      name = "slow",
      description = "Waits.",
      params = { n = "integer" },
      handler = function(args)
        order[#order + 1] = args.n
        ah.sleep(0.002)
        return args.n
      end,
    }
    local reply = assert(ah.run {
      tools = { slow },
      model = ah.scripted {
        {
          calls = {
            { name = "slow", arguments = { n = 1 } },
            { name = "slow", arguments = { n = 2 } },
          },
        },
        "ok",
      },
      "go",
    })
    local results = sound.of(sound.check(reply:transcript()), "tool_result")
    assert.same({ 1, 2 }, order)
    assert.same({ "1", "2" }, { results[1].content, results[2].content })
  end)

  it("runs neighbours that are marked parallel together", function()
    local at_work, most = 0, 0
    local slow = ah.tool {
      name = "slow",
      description = "Waits.",
      params = { n = "integer" },
      parallel = true,
      handler = function(args)
        at_work = at_work + 1
        most = math.max(most, at_work)
        ah.sleep(0.01 - args.n / 1000)
        at_work = at_work - 1
        return args.n
      end,
    }
    local calls = {}
    for n = 1, 5 do
      calls[n] = { name = "slow", arguments = { n = n } }
    end
    local reply =
      assert(ah.run { tools = { slow }, model = ah.scripted { { calls = calls }, "ok" }, "go" })
    local results = sound.of(sound.check(reply:transcript()), "tool_result")
    assert.equal(5, most)
    assert.equal("1", results[1].content)
    assert.equal("5", results[5].content)
  end)

  it("gives calls without an id, or with one that was used, an id of their own", function()
    local reply = assert(ah.run {
      tools = { add_tool() },
      model = ah.scripted {
        {
          calls = {
            { name = "add", arguments = { a = 1, b = 1 }, id = "x" },
            { name = "add", arguments = { a = 2, b = 2 }, id = "x" },
            { name = "add", arguments = { a = 3, b = 3 } },
            { name = "add", arguments = { a = 3, b = 3 }, id = ("y"):rep(65) },
          },
        },
        call("add", { a = 4, b = 4 }, "x"),
        "ok",
      },
      "go",
    })
    local entries = sound.check(reply:transcript())
    assert.equal("x", sound.of(entries, "assistant")[1].tool_calls[1].id)
  end)
end)

describe("arguments", function()
  local function refused(arguments, stop)
    local ran = false
    local reply = assert(ah.run {
      tools = { add_tool(function()
        ran = true
      end) },
      model = ah.scripted {
        { calls = { { name = "add", arguments = arguments } }, stop = stop },
        "ok",
      },
      "go",
    })
    local result = sound.of(sound.check(reply:transcript()), "tool_result")[1]
    assert.is_false(ran)
    assert.is_false(result.success)
    return result.content
  end

  it("that are no JSON never run the tool", function()
    assert.matches("^Tool validation failed: what was sent is not JSON", refused('{"a": 1, "b'))
  end)

  it("that break the schema never run the tool, and say how", function()
    assert.matches("/b: .*integer", refused { a = 1, b = "2" })
    assert.matches("b.*required", refused { a = 1 })
    assert.matches("/bb: unknown property; known: a, b", refused { a = 1, b = 2, bb = 3 })
  end)

  it("of a call that was cut off never run the tool", function()
    assert.matches("cut off %(length%)", refused('{"a":1,"b":2}', "length"))
  end)

  it("that are blank are no arguments", function()
    for _, blank in ipairs { "", " \n", "null", "{}" } do
      local got
      local t = ah.tool {
        name = "t",
        description = "Does it.",
        handler = function(args)
          got = args
          return 1
        end,
      }
      assert(ah.run { tools = { t }, model = ah.scripted { call("t", blank), "ok" }, "go" })
      assert.same({}, got)
    end
  end)

  it("get the defaults of the schema", function()
    local got
    local t = ah.tool {
      name = "t",
      description = "Does it.",
      params = { n = "integer = 7" },
      handler = function(args)
        got = args.n
      end,
    }
    assert(ah.run { tools = { t }, model = ah.scripted { call("t", {}), "ok" }, "go" })
    assert.equal(7, got)
  end)
end)

describe("a handler's result", function()
  it("is a string as it is, anything else as JSON", function()
    assert.equal(
      "as it is",
      result_of(function()
        return "as it is"
      end).content
    )
    assert.equal(
      '{"a":[1,2],"b":true}',
      result_of(function()
        return { b = true, a = { 1, 2 } }
      end).content
    )
    assert.equal(
      "false",
      result_of(function()
        return false
      end).content
    )
  end)

  it("may be nothing", function()
    local r = result_of(function() end)
    assert.same({ "OK", true }, { r.content, r.success })
    assert.equal("OK", result_of(function() return ah.ok() end).content)
    assert.equal("OK", result_of(function() return ah.result {} end).content)
  end)

  it("may be a nil, which is shown as null", function()
    local found = {}
    for _, handler in ipairs {
      function() return nil end,
      function() return found.nobody end,
      function() return nil, nil end,
      function() return ah.ok(nil) end,
      function() return ah.null end,
    } do
      local r = result_of(handler)
      assert.same({ "null", true }, { r.content, r.success })
    end
    assert.equal("Done.", result_of(function() return ah.ok(nil, "Done.") end).content)
  end)

  it("is null or nothing for executors and nested calls, too", function()
    local registry = ah.registry { ah.tool { name = "none", description = "None.",
      handler = function() return nil end }, ah.tool { name = "nothing", description = "Nothing.",
      handler = function() end } }
    assert.equal("null", registry:execute("none").content)
    assert.equal("OK", registry:execute("nothing").content)
    local reply = assert(ah.run { model = ah.scripted { call("a", {}), call("b", {}), "ok" },
      executors = { a = function() return nil end, b = function() end }, "go" })
    assert.same({ "null", "OK" }, { reply.messages[3].content, reply.messages[5].content })
  end)

  it("may name its value a payload", function()
    local seen
    local r = result_of(function()
      return ah.result { message = "Found.", payload = { id = 1 } }
    end,
      { render = function(value) seen = value.id return "id 1" end })
    assert.same({ "Found.\n\nid 1", 1 }, { r.content, seen })
    local ok, err = pcall(ah.result, { payload = 1, value = 1 })
    assert.is_false(ok)
    assert.matches("`payload` is another name of `value`", err.message, 1, true)
  end)

  it("may be nil and a message, or ah.fail: a failure that the model hears", function()
    for _, handler in ipairs {
      function()
        return nil, "no such moon"
      end,
      function()
        return ah.fail "no such moon"
      end,
    } do
      local r = result_of(handler)
      assert.same({ "no such moon", false }, { r.content, r.success })
    end
  end)

  it("may have a message before its value, or hide the value", function()
    assert.equal(
      "Found.\n\n7",
      result_of(function()
        return ah.ok(7, "Found.")
      end).content
    )
    assert.equal(
      "Kept.",
      result_of(function()
        return ah.result {
          message = "Kept.",
          value = { secret = 1 },
          exclude_value_from_context = true,
        }
      end).content
    )
  end)

  it("that raises is a failure without the position in the script", function()
    local r = result_of(function()
      error("boom")
    end)
    assert.same({ "Tool 't' execution failed: boom", false }, { r.content, r.success })
  end)

  it("that raises tool_validation says so", function()
    local r = result_of(function()
      error(ah.error { code = "tool_validation", message = "odd number" })
    end)
    assert.equal("Tool validation failed: odd number", r.content)
  end)

  it("that cannot be JSON is a failure with the path", function()
    local r = result_of(function()
      return { f = { print } }
    end)
    assert.is_false(r.success)
    assert.matches("%.f%[1%]", r.content)
  end)

  it("must match the declared result", function()
    local r = result_of(function()
      return "text"
    end, { result = { type = "integer" } })
    assert.is_false(r.success)
    assert.matches("its result does not match", r.content)
  end)

  it("over 64 KiB is cut between characters only", function()
    for pad = 0, 3 do
      local r = result_of(function() return ("x"):rep(pad) .. ("\u{263a}"):rep(30000) end)
      assert.is_true(#r.content <= 64 * 1024 + 64 and utf8.len(r.content) ~= nil)
      assert.matches("bytes left out", r.content)
    end
  end)

  it("over 64 KiB is cut in the middle, with the size", function()
    local r = result_of(function()
      return ("a"):rep(50000) .. ("z"):rep(50000)
    end)
    assert.is_true(#r.content < 66000)
    assert.matches("^aaa.*bytes left out.*zzz$", r.content)
    assert.matches("of 100000 bytes", r.content)
  end)

  it("of kind prompt_evaluation ends the run, after the batch was settled", function()
    local _, reply, err = result_of(function()
      error(ah.error { code = "prompt_evaluation", message = "stop here" })
    end)
    assert.is_nil(reply)
    assert.equal("prompt_evaluation", err.code)
    assert.equal("tool", err.phase)
  end)

  it("is staged: a note stays only when the call succeeds", function()
    for _, case in ipairs { { true, 1 }, { false, 0 } } do
      local _, reply = result_of(function(_, ctx)
        ctx:note("remember this")
        if not case[1] then
          error("after all not")
        end
      end)
      assert.equal(case[2], #sound.of(sound.entries(reply:transcript()), "note"))
    end
  end)
end)

describe("ctx", function()
  it("knows its call and is read-only", function()
    local seen
    result_of(function(_, ctx)
      seen = { ctx.tool_name, #ctx.call_id > 0, ctx:cancelled(), ctx.deadline }
      assert.has_error(function()
        ctx.x = 1
      end)
      assert.has_error(function()
        return ctx.nonsense
      end)
    end)
    assert.same({ "t", true, false, nil }, seen)
  end)

  it("tells what was coerced, and so does the event", function()
    local seen, told = {}, {}
    local tool = ah.tool { name = "t", description = "d", coerce = true,
      params = { n = "integer", on = "boolean?", list = "string[]?", text = "string = x" },
      handler = function(args, ctx)
        seen[#seen + 1] = { args, ctx.coerced }
      end }
    local strict = ah.tool { name = "s", description = "d", params = { n = "integer" },
      handler = function() end }
    assert(ah.run { tools = { tool, strict }, "x", on = { tool_invoked = function(e)
        told[#told + 1] = { e.success, e.coerced, e.arguments, e.content }
      end },
      model = ah.scripted { { calls = {
        { name = "t", arguments = '{"n":"3","on":"true","list":"a"}' },
        { name = "t", arguments = '{"n":4}' }, { name = "t", arguments = '{"n":"four"}' },
        { name = "s", arguments = '{"n":"3"}' },
      } }, "done" } })
    local words = '/n: took "3" as 3; /on: took "true" as true; /list: took "a" as a list of it'
    assert.same({
      { { n = 3, on = true, list = { "a" }, text = "x" }, words }, { { n = 4, text = "x" }, "" },
    }, seen)
    assert.equal("integer", math.type(seen[1][1].n))
    local refused = 'Tool validation failed: /n: must be an integer, found '
    assert.same({
      { true, words, '{"n":"3","on":"true","list":"a"}', "OK" }, { true, "", '{"n":4}', "OK" },
      { false, "", '{"n":"four"}', refused .. '"four"' },
      { false, "", '{"n":"3"}', refused .. '"3"; send it without quotes' },
    }, told)
  end)

  it("is of no use after the call", function()
    local kept
    result_of(function(_, ctx)
      kept = ctx
    end)
    assert.has_error(function()
      return kept.call_id
    end)
    assert.is_true(kept:cancelled())
  end)
end)

describe("unknown tools", function()
  it("are answered with the names there are and the nearest", function()
    local reply =
      assert(ah.run { tools = { add_tool() }, model = ah.scripted { call("Add", {}), "ok" }, "go" })
    local result = sound.of(sound.check(reply:transcript()), "tool_result")[1]
    assert.equal(
      "Tool 'Add' not found. Available tools: [add]. Did you mean 'add'?",
      result.content
    )
    assert.is_false(result.success)
  end)

  it("are told from case, separators, mistypes, prefixes and shared words", function()
    local tools, turns, meant = {}, {}, {
      searchCustomer = "search_customer", ["SEARCH-CUSTOMER"] = "search_customer",
      search_custmoer = "search_customer", search = "search_customer",
      find_customer = "search_customer", customer_search = "search_customer",
      ["functions.search_customer"] = "search_customer", mcp__crm__search_customers =
      "search_customer", weather = "weather-now", getTime = "get_time", get_stock = false,
      cat = false, [("search_"):rep(20)] = false, ["_"] = false,
    }
    for i, name in ipairs { "get_time", "search_customer", "weather-now", "a" } do
      tools[i] = ah.tool { name = name, description = "A tool.", handler = print }
    end
    for asked in pairs(meant) do
      turns[1], turns[2] = call(asked, {}), "ok"
      local reply = assert(ah.run { tools = tools, model = ah.scripted(turns), "go" })
      local told = reply.messages[3].content:match "%. Did you mean '(.-)'%?$"
      assert.equal(meant[asked] or nil, told, asked)
    end
  end)

  it("end the run at the fourth in a row", function()
    local model = ah.scripted(function()
      return call("nope", {})
    end)
    local reply, err = ah.run { tools = { add_tool() }, model = model, "go" }
    assert.is_nil(reply)
    assert.equal("tool_not_found", err.code)
    assert.equal("nope", err.requested_tool)
    assert.same({ "add" }, err.available_tools)
    assert.equal(4, err.reply.iterations)
    sound.check(err.reply:transcript())
  end)

  it("are forgiven by a hit between them", function()
    local n = 0
    local model = ah.scripted(function()
      n = n + 1
      return n > 9 and "ok" or n % 4 == 0 and call("add", { a = 1, b = 1 })
        or call("nope", { n = n })
    end)
    assert.equal("ok", assert(ah.run { tools = { add_tool() }, model = model, "go" }).text)
  end)

  it("end the run at once where that was asked for, all calls answered, what there is at hand",
    function()
      local turn = { text = "Let me see.", calls = { { name = "add", arguments = { a = 1, b = 1 } },
        { name = "nope" }, { name = "add" } } }
      local _, err = ah.run { on_unknown_tool = "throw", tools = { add_tool() },
        model = ah.scripted { turn }, "go" }
      assert.equal("tool_not_found", err.code)
      assert.equal("Let me see.", err.reply.text)
      local told = sound.of(sound.check(err.reply:transcript()), "tool_result")
      assert.equal("2", told[1].content)
      assert.matches("^Tool 'nope' not found", told[2].content)
      assert.matches("^Not run", told[3].content)
    end)

  it("include tools without handler, which are listed and refused", function()
    local r = result_of(nil)
    assert.matches("no handler", r.content)
  end)
end)

describe("limits", function()
  it("end a loop after max_iterations model calls, whose tools still ran", function()
    local ran = 0
    local model = ah.scripted(function()
      return call("add", { a = 1, b = 1 })
    end)
    local _, err = ah.run {
      max_iterations = 3,
      tools = { add_tool(function()
        ran = ran + 1
      end) },
      model = model,
      "go",
    }
    assert.equal("max_iterations_exceeded", err.code)
    assert.equal(
      "Tool loop exceeded maximum iterations (3). "
        .. "This may indicate a loop in tool calls or an overly complex task.",
      err.message
    )
    assert.same({ 3, 3 }, { ran, err.max_iterations })
    sound.check(err.reply:transcript())
  end)

  it("allow 20 model calls by default", function()
    local n = 0
    local _, err = ah.run {
      tools = { add_tool() },
      model = ah.scripted(function()
        n = n + 1
        return call("add", { a = n, b = 1 })
      end),
      "go",
    }
    assert.equal(20, err.reply.iterations)
  end)

  it("ask for an answer without tools where on_max says so, for this run only", function()
    local choices = {}
    local model = ah.scripted(function(request)
      choices[#choices + 1] = request.options.tool_choice or "auto"
      return request.options.tool_choice == "none" and "so far: 2" or call("add", { a = 1, b = 1 })
    end)
    local agent = ah.agent {
      model = model,
      max_iterations = 2,
      on_max = "answer",
      tools = { add_tool() },
      options = { temperature = 0 },
    }
    assert.equal("so far: 2", assert(agent:run("go")).text)
    assert(agent:run("again"))
    assert.same({ "auto", "auto", "none", "auto", "auto", "none" }, choices)
  end)

  it("that fail say in which phase they did", function()
    local function adding(_, ctx)
      ctx:add_tools(add_tool())
    end
    local function grow(name, handler)
      return ah.tool { name = name, description = "G.", handler = handler }
    end
    local agent
    local cases = {
      { "max_iterations_exceeded", "request", max_iterations = 1, tools = { add_tool() } },
      { "prompt_validation", "tool", on_conflict = "error", tools = { add_tool(),
        grow("grow", function(_, ctx)
          ctx:add_tools(ah.tool { name = "add", description = "Another.", handler = adding })
        end) } },
      { "tool_not_found", "tool", on_unknown_tool = "throw" },
      { "cancelled", "tool", tools = { grow("grow", function()
        agent:cancel()
        ah.sleep(0.001)
      end) } },
      { "visibility_expansion_required", "tool", max_restarts = 0, tools = {
        grow("grow", adding) }, mode = "restart" },
    }
    for _, case in ipairs(cases) do
      local name = case.tools and #case.tools == 1 and case.tools[1].name or "grow"
      local fields = { log = function() end, model = ah.scripted {
        tool_change_mode = case.mode,
        answer = function()
          return call(name, name == "add" and { a = 1, b = 1 } or nil)
        end,
      } }
      for _, k in ipairs { "max_iterations", "on_conflict", "tools", "on_unknown_tool",
        "max_restarts" } do
        fields[k] = case[k]
      end
      agent = ah.agent(fields)
      local reply, err = agent:run "go"
      assert.is_nil(reply)
      assert.same({ case[1], case[2] }, { err.code, err.phase })
    end
  end)

  describe("a forced tool_choice", function()
    local FORCED = { "required", { name = "add" } }

    -- Makes a model that calls only if it must, and records its tool_choice options.
    local function obedient(choices, mode)
      return ah.scripted {
        tool_change_mode = mode,
        answer = function(request)
          local choice = request.options.tool_choice
          choices[#choices + 1] = type(choice) == "table" and choice.name or choice or "absent"
          local free = choice == nil or choice == "auto" or choice == "none"
          return free and "done" or call("add", { a = 1, b = 1 })
        end,
      }
    end

    local function word(choice)
      return type(choice) == "table" and choice.name or choice
    end

    it("holds for the first request of each run, which then goes on", function()
      for _, mode in ipairs { "inline", "append", "reference", "dispatcher", "restart" } do
        for _, forced in ipairs(FORCED) do
          local choices = {}
          local agent = ah.agent {
            model = obedient(choices, mode),
            tools = { add_tool() },
            options = { tool_choice = forced, temperature = 0 },
          }
          assert.equal("done", tostring(assert(agent:run "go")))
          assert.equal(2, assert(agent:run "again").iterations)
          local w = word(forced)
          assert.same({ w, "auto", w, "auto" }, choices)
          sound.check(agent:transcript())
        end
      end
    end)

    it("holds for each of them where the script says so", function()
      for _, forced in ipairs(FORCED) do
        local choices = {}
        local _, err = ah.run {
          model = obedient(choices),
          tools = { add_tool() },
          max_iterations = 3,
          options = { tool_choice = forced, tool_choice_every_turn = true },
          "go",
        }
        assert.equal("max_iterations_exceeded", err.code)
        assert.same({ word(forced), word(forced), word(forced) }, choices)
      end
    end)

    it("leaves auto and none as they are", function()
      for _, choice in ipairs { "auto", "none" } do
        local choices, n = {}, 0
        local agent = ah.agent {
          model = ah.scripted {
            answer = function(request)
              choices[#choices + 1] = request.options.tool_choice
              n = n + 1
              return n == 1 and call("add", { a = 1, b = 1 }) or "done"
            end,
          },
          tools = { add_tool() },
          options = { tool_choice = choice },
        }
        assert(agent:run "go")
        assert.same({ choice, choice }, choices)
        local settings = 0
        for _, e in ipairs(sound.entries(agent:transcript())) do
          settings = settings + (e.type == "settings" and 1 or 0)
        end
        assert.equal(1, settings)
      end
    end)

    it("is for the request that is answered: not spent by one that fails", function()
      local choices, n = {}, 0
      local function model()
        return ah.scripted {
          answer = function(request)
            choices[#choices + 1] = request.options.tool_choice
            n = n + 1
            if n == 1 then
              local busy = { message = "busy", status = 503, retryable = true, retry_after = 0 }
              return { fail = busy }
            end
            return n == 2 and call("add", { a = 1, b = 1 }) or "done"
          end,
        }
      end
      for _, fields in ipairs { { retries = 1 }, { retries = 0, fallback = { model() } } } do
        choices, n = {}, 0
        fields.model, fields.tools, fields[1] = model(), { add_tool() }, "go"
        fields.options, fields.log = { tool_choice = "required" }, function() end
        assert(ah.run(fields))
        assert.same({ "required", "required", "auto" }, choices)
      end
    end)

    it("is the script's again when it is saved, forked, loaded or goes on with another", function()
      local path = os.tmpname()
      for _, on_max in ipairs { false, true } do
        local choices = {}
        local agent = ah.agent {
          model = obedient(choices),
          tools = { add_tool() },
          options = { tool_choice = "required" },
          max_iterations = on_max and 1 or nil,
          on_max = on_max and "answer" or nil,
        }
        assert(agent:run "go")
        local second = on_max and "none" or "auto"
        assert.same({ "required", second }, choices)
        assert(agent:save(path))
        local later = assert(ah.load(path, { model = obedient(choices), tools = { add_tool() } }))
        assert(later:run "b")
        assert(agent:fork():run "c")
        agent:use(obedient(choices))
        assert(agent:run "d")
        assert.same({
          "required", second, "required", "auto", "required", second, "required", second,
        }, choices)
      end
      os.remove(path)
    end)

    it("is told of in the wrong place, and refused where it is no boolean", function()
      local ok, err = pcall(ah.run, { model = "demo/echo", tool_choice_every_turn = true, "x" })
      assert.is_false(ok)
      assert.matches("options", tostring(err), 1, true)
      local options = { tool_choice_every_turn = 1 }
      ok, err = pcall(ah.run, { model = "demo/echo", options = options, "x" })
      assert.is_false(ok)
      assert.matches("tool_choice_every_turn", tostring(err), 1, true)
    end)
  end)

  it("end a run in time while a handler waits", function()
    local began = ah.now()
    local t = ah.tool {
      name = "t",
      description = "Waits.",
      handler = function()
        ah.sleep(60)
      end,
    }
    local _, err =
      ah.run { timeout = 0.05, tools = { t }, model = ah.scripted { call("t", {}) }, "go" }
    assert.equal("deadline_exceeded", err.code)
    assert.is_true(err:is("prompt_evaluation"))
    assert.is_true(ah.now() - began < 20)
    local entries = sound.check(err.reply:transcript())
    assert.matches("deadline", sound.of(entries, "tool_result")[1].content)
  end)

  it("end a run in time while the model is silent", function()
    local _, err =
      ah.run { timeout = 0.05, model = ah.scripted { { text = "late", delay = 60 } }, "go" }
    assert.same({ "deadline_exceeded", "response" }, { err.code, err.phase })
    sound.check(err.reply:transcript())
  end)

  -- Functions that use up the remaining time between an answer and the next request.
  for name, fields in pairs {
    ["an observer of a call"] = function(busy) return { on = { tool_invoked = busy } } end,
    ["an observer of the iteration"] = function(busy)
      return { on = { tool_loop_iteration = function(e) if e.iteration == 2 then busy() end end } }
    end,
    ["an observer of what was removed"] = function(busy)
      return { on = { tools_removed = busy }, strategies = { function(m) m:remove "t" end } }
    end,
    ["a strategy"] = function(busy) return { strategies = { busy } } end,
  } do
    it("end a run before its next request, which is neither counted nor told: " .. name, function()
      local function busy()
        local till = ah.now() + 10
        while ah.now() < till do end
      end
      local told, before = 0, ah.metrics()["agenthost.requests"]
      local budget = ah.budget {}
      local given = fields(busy)
      given.on = given.on or {}
      given.on.request = function() told = told + 1 end
      given.timeout, given.budget, given.log, given[1] = 0.3, budget, function() end, "go"
      given.tools = { ah.tool { name = "t", description = "T.", handler = function() end } }
      given.model = ah.scripted { call("t", {}), "ok" }
      local _, err = ah.run(given)
      assert.same({ "deadline_exceeded", "request" }, { err.code, err.phase })
      assert.same({ 1, 1, 1 },
        { told, ah.metrics()["agenthost.requests"] - before, budget:used().requests })
      assert.equal(1, err.reply.iterations)
      sound.check(err.reply:transcript())
    end)
  end

  it("end a run that an observer cancels before the request that would be next", function()
    local agent, told = nil, 0
    agent = ah.agent { model = ah.scripted { call("t", {}), "ok" },
      tools = { ah.tool { name = "t", description = "T.", handler = function() end } },
      on = { request = function() told = told + 1 end,
        tool_loop_iteration = function(e) if e.iteration == 2 then agent:cancel() end end } }
    local _, err = agent:run "go"
    assert.same({ "cancelled", 1 }, { err.code, told })
  end)

  for name, code in pairs {
    ["an endless loop"] = "while true do end",
    ["an endless loop of pcalls"] = "while true do pcall(function() while true do end end) end",
    ["a coroutine that does not end"] = "coroutine.wrap(function() while true do end end)()",
    ["a callback of sort"] = "table.sort({1,2,3}, function() while true do end end)",
  } do
    it("end a run in time in " .. name, function()
      local began = ah.now()
      local t = ah.tool { name = "t", description = "Loops.", handler = load(code) }
      local reply, err =
        ah.run { timeout = 0.1, tools = { t }, model = ah.scripted { call("t", {}), "ok" }, "go" }
      assert.is_nil(reply)
      assert.equal("deadline_exceeded", err.code)
      assert.is_true(ah.now() - began < 60)
      sound.check(err.reply:transcript())
    end)
  end

  it("stop one tool at its own timeout, and the run goes on", function()
    local closed = false
    local r, reply = result_of(function()
      local _ <close> = setmetatable({}, {
        __close = function()
          closed = true
        end,
      })
      ah.sleep(5)
    end, { timeout = 0.03 })
    assert.equal("done", reply.text)
    assert.is_false(r.success)
    assert.matches("did not finish within 0%.03 seconds", r.content)
    assert.is_true(closed)
  end)

  it("stop one tool that loops at its own timeout", function()
    local r, reply = result_of(function()
      while true do
      end
    end, { timeout = 0.05 })
    assert.equal("done", reply.text)
    assert.matches("did not finish", r.content)
  end)
end)

describe("the text of an answer that is cancelled", function()
  local CUT = { text = { "It begins, ", "and ends" }, delay = 0.001,
    calls = { { name = "t", arguments = {} } } }

  -- Returns an agent whose first answer is cancelled after its first piece, and the requests.
  local function cut(fields, turn)
    local requests, agent = {}, nil
    fields.model = ah.scripted(function(request)
      requests[#requests + 1] = request
      return #requests == 1 and (turn or CUT) or "Then."
    end)
    fields.tools = { ah.tool { name = "t", description = "Does.", handler = error } }
    fields.on = { content = function()
      if #requests == 1 then
        agent:cancel()
      end
    end }
    agent = assert(ah.agent(fields))
    local _, err = agent:run "go"
    assert.equal("cancelled", err.code)
    return agent, requests
  end

  -- Returns the types of the entries of the conversation behind its tools, and the first answer.
  local function entries_of(agent)
    local types, answer = {}, nil
    for _, entry in ipairs(ah.json.decode(agent:transcript()).entries) do
      if entry.type == "user" or entry.type == "assistant" then
        types[#types + 1] = entry.type
        answer = answer or entry.type == "assistant" and entry or nil
      end
    end
    return table.concat(types, " "), answer
  end

  it("stays, without its calls, and the model reads it", function()
    local agent, requests = cut {}
    local types, answer = entries_of(agent)
    assert.equal("user assistant", types)
    assert.same({ "cancelled", "It begins, " }, { answer.stop, answer.content[1].text })
    assert.is_nil(answer.tool_calls)
    sound.check(agent:transcript())
    assert.equal("Then.", assert(agent:run "on").text)
    local entries = requests[2].entries
    assert.equal("It begins, ", entries[#entries - 1].content[1].text)
  end)

  it("stays in a store: it can be shown, rewound and replayed", function()
    local store <close> = assert(ah.store { engine = "memory" })
    local agent = cut { store = store, id = "ann" }
    assert.is_nil(agent.unfinished)
    assert.equal("Then.", assert(agent:run "on").text)
    local outcome = assert(store:replay "ann")
    assert.same({ 2, 2 }, { outcome.requests, outcome.equal })
    assert.equal(2, agent:mark())
    agent:close()
    agent = assert(ah.agent { store = store, id = "ann", model = "demo/echo" })
    assert.equal("user assistant user assistant", (entries_of(agent)))
    assert(agent:rewind(1))
    assert.equal("user assistant", (entries_of(agent)))
    assert(agent:rewind(0))
    assert.equal("", (entries_of(agent)))
    agent:close()
  end)

  it("is dropped if it has none, or if a guard or a schema is to judge it", function()
    assert.equal("user", (entries_of((cut({}, { text = { " ", "x" }, delay = 0.001 })))))
    assert.equal("user", (entries_of((cut { guards = { output = function() return true end } }))))
    assert.equal("user", (entries_of((cut { output = { type = "string" } }))))
  end)
end)

describe("cancelling", function()
  it("from a handler settles the turn", function()
    local agent
    local t = ah.tool {
      name = "t",
      description = "Stops.",
      handler = function()
        agent:cancel()
        ah.sleep(5)
      end,
    }
    agent = ah.agent {
      tools = { t },
      model = ah.scripted { { calls = { { name = "t" }, { name = "t" } } } },
    }
    local reply, err = agent:run("go")
    assert.is_nil(reply)
    assert.equal("cancelled", err.code)
    local results = sound.of(sound.check(agent:transcript()), "tool_result")
    assert.matches("outcome is unknown", results[1].content)
    assert.matches("^Not run", results[2].content)
  end)

  it("from an observer in the middle of an answer leaves the text that has come", function()
    local agent
    agent = ah.agent {
      model = ah.scripted { { text = { "a", "b", "c" }, delay = 0.005 }, "after" },
      on = {
        content = function()
          agent:cancel()
        end,
      },
    }
    local _, err = agent:run("go")
    assert.equal("cancelled", err.code)
    local answers = sound.of(sound.check(agent:transcript()), "assistant")
    assert.same({ 1, "a" }, { #answers, answers[1].content[1].text })
    assert.equal("after", assert(agent:run("again")).text)
  end)
end)

describe("retries", function()
  it("follow failures that may pass, and tell", function()
    local told = {}
    local reply = assert(ah.run {
      model = ah.scripted {
        { fail = { message = "busy", status = 503, retryable = true, retry_after = 0.005 } },
        { cut = true },
        "there",
      },
      on = {
        retry = function(e)
          told[#told + 1] = e.message
        end,
      },
      "go",
    })
    assert.equal("there", reply.text)
    assert.same({ "busy", "the model's answer ended before it was complete" }, told)
  end)

  it("end with the last error", function()
    local _, err = ah.run {
      retries = 1,
      model = ah.scripted(function()
        return { fail = { message = "busy", status = 503, retryable = true, retry_after = 0.001 } }
      end),
      "go",
    }
    assert.same(
      { "provider", "busy", 503, true, "response" },
      { err.code, err.message, err.status, err.retryable, err.phase }
    )
  end)

  it("do not follow other failures", function()
    local model = ah.scripted { { fail = { message = "no", status = 400 } }, "never" }
    local _, err = ah.run { model = model, "go" }
    assert.equal("provider: no", tostring(err))
    assert.has_error(function()
      model:done()
    end)
  end)

  it("do not repeat what an observer was shown", function()
    local shown = {}
    local _, err = ah.run {
      on = {
        content = function(e)
          shown[#shown + 1] = e.text
        end,
      },
      model = ah.scripted { { text = "half", cut = true }, "whole" },
      "go",
    }
    assert.equal("http", err.code)
    assert.same({ "half" }, shown)
  end)
end)

describe("agents", function()
  it("continue their conversation, saying system text and tools once", function()
    local agent = ah.agent {
      model = ah.scripted {
        "one",
        {
          text = "two",
          check = function(r)
            return #r.entries == 3 and #r.tools == 1
          end,
        },
      },
      system = "Count.",
      tools = { add_tool() },
    }
    assert.equal("one", assert(agent:run("a")).text)
    assert.equal("two", assert(agent:run("b")).text)
    local entries = sound.check(agent:transcript())
    assert.equal(1, #sound.of(entries, "prompt"))
    assert.equal(1, #sound.of(entries, "tools_added"))
  end)

  it("take messages during a run, at the next commit", function()
    local agent
    local t = ah.tool {
      name = "t",
      description = "Sends.",
      handler = function()
        agent:send("and hurry")
      end,
    }
    agent = ah.agent {
      tools = { t },
      model = ah.scripted { call("t", {}), { text = "ok", expect = { user = "and hurry" } } },
    }
    assert.equal("ok", assert(agent:run("go")).text)
    local kinds = {}
    for i, e in ipairs(sound.check(agent:transcript())) do
      kinds[i] = e.type
    end
    assert.same(
      { "settings", "tools_added", "user", "assistant", "tool_result", "user", "assistant" },
      kinds
    )
  end)

  it("go on after an answer when a message was queued during it", function()
    local agent
    agent = ah.agent {
      model = ah.scripted { "first", { text = "second", expect = { user = "wait" } } },
      on = {
        usage = function(e)
          if e.run and agent then
            agent:send("wait")
            agent = nil
          end
        end,
      },
    }
    assert.equal("second", assert(agent:run("go")).text)
  end)

  it("refuse an empty message", function()
    local agent = ah.agent { model = "demo/echo" }
    for _, text in ipairs { "", false } do
      assert.error_matches(function() agent:send(text or nil) end, "there is nothing to say")
    end
    assert.error_matches(function() agent:run { "", "" } end, "there is nothing to say")
    for _, f in ipairs { function() return agent:run "" end,
      function() return ah.run { model = "demo/echo", "" } end } do
      local reply, err = f()
      assert.is_nil(reply)
      assert.same({ "usage", "ah.run: there is nothing to say: give a text" },
        { err.code, err.message })
    end
    assert(agent:send("not empty"))
    assert.equal("not empty", assert(agent:run()).text)
    assert(agent:run { "", "some" })
  end)

  it("refuse a second run at the same time", function()
    local agent, message
    local t = ah.tool {
      name = "t",
      description = "Runs.",
      handler = function()
        local _, err = pcall(agent.run, agent, "again")
        message = tostring(err)
      end,
    }
    agent = ah.agent { tools = { t }, model = ah.scripted { call("t", {}), "ok" } }
    assert(agent:run("go"))
    assert.matches("already running", message)
  end)
end)

describe("runs inside runs", function()
  local function inner(n)
    local model = ah.scripted { { text = "inner " .. n, delay = 0.002 } }
    return assert(ah.run { model = model, "go" }).text
  end

  it("yield in a handler", function()
    local t = ah.tool {
      name = "t",
      description = "Asks.",
      params = { n = "integer" },
      parallel = true,
      handler = function(args)
        return inner(args.n)
      end,
    }
    local calls = {}
    for n = 1, 20 do
      calls[n] = { name = "t", arguments = { n = n } }
    end
    local reply =
      assert(ah.run { tools = { t }, model = ah.scripted { { calls = calls }, "ok" }, "go" })
    local results = sound.of(sound.check(reply:transcript()), "tool_result")
    assert.equal("inner 20", results[20].content)
  end)

  it(
    "drive where they cannot yield: in a callback of sort, in a coroutine of the script",
    function()
      local r = result_of(function()
        local texts = {}
        table.sort({ 1, 2 }, function()
          texts[1] = inner(1)
          return false
        end)
        texts[2] = coroutine.wrap(function()
          return inner(2)
        end)()
        return table.concat(texts, ", ")
      end)
      assert.equal("inner 1, inner 2", r.content)
    end
  )

  it("tell their parent in events", function()
    local parents = {}
    local t = ah.tool {
      name = "t",
      description = "Asks.",
      handler = function()
        return assert(ah.run {
          model = ah.scripted { "in" },
          on = {
            done = function(e)
              parents[1] = e.parent
            end,
          },
          "go",
        }).text
      end,
    }
    assert(ah.run {
      tools = { t },
      model = ah.scripted { call("t", {}), "ok" },
      on = {
        done = function(e)
          parents[2] = e.run
        end,
      },
      "go",
    })
    assert.equal(parents[2], parents[1])
  end)

  it("end with the run around them", function()
    local t = ah.tool {
      name = "t",
      description = "Asks.",
      handler = function()
        ah.run { model = ah.scripted { { text = "late", delay = 60 } }, "go" }
      end,
    }
    local began = ah.now()
    local _, err =
      ah.run { timeout = 0.05, tools = { t }, model = ah.scripted { call("t", {}) }, "go" }
    assert.equal("deadline_exceeded", err.code)
    assert.is_true(ah.now() - began < 20)
  end)

  it("are at most 8 deep where they drive", function()
    local function deeper(n)
      local co = coroutine.wrap(function()
        return ah.run { model = ah.scripted(function()
          return deeper(n + 1)
        end), "go" }
      end)
      local reply, err = co()
      return reply and reply.text or tostring(err)
    end
    assert.matches("more than 8 deep", deeper(1))
  end)
end)

describe("observers", function()
  it("see the events in order", function()
    local types = {}
    assert(ah.run {
      tools = { add_tool() },
      model = ah.scripted { call("add", { a = 1, b = 2 }), { text = { "th", "ree" } } },
      on = function(e)
        types[#types + 1] = e.type
      end,
      "go",
    })
    assert.same(
      {
        "start",
        "tool_loop_iteration",
        "request",
        "usage",
        "tool_calls",
        "tool_started",
        "tool_invoked",
        "tool_loop_iteration",
        "request",
        "content",
        "content",
        "usage",
        "done",
      },
      types
    )
  end)

  it("get tool_invoked exactly once for every call, whatever became of it", function()
    local seen = {}
    local t = ah.tool {
      name = "t",
      description = "Fails.",
      handler = function()
        error("x")
      end,
    }
    local slow = ah.tool {
      name = "slow",
      description = "Waits.",
      handler = function()
        ah.sleep(5)
      end,
    }
    local _, err = ah.run {
      timeout = 0.05,
      tools = { t, slow },
      model = ah.scripted {
        {
          calls = {
            { name = "t", id = "a" },
            { name = "nope", id = "b" },
            { name = "t", id = "c", arguments = "{" },
            { name = "slow", id = "d" },
            { name = "t", id = "e" },
          },
        },
      },
      on = {
        tool_invoked = function(e)
          seen[#seen + 1] = e.id .. tostring(e.success)
        end,
      },
      "go",
    }
    assert.equal("deadline_exceeded", err.code)
    assert.same({ "afalse", "bfalse", "cfalse", "dfalse", "efalse" }, seen)
  end)

  it("get the value of a result with tool_invoked, be it shown to the model or not", function()
    local values = {}
    local Thing = ah.entity { name = "Thing" }
    local given = {
      function() return { list = { 1, 2.5 }, text = "x" } end,
      function() return "text" end,
      function()
        return ah.result { message = "m", value = 7, exclude_value_from_context = true }
      end,
      function() return ah.result { message = "m", value = { why = "full" }, success = false } end,
      function() return Thing { id = 1, own = print } end,
      function() end,
      function() return nil end,
      function() return nil, "no" end,
      function() error "no" end,
      function() return print end,
    }
    for _, handler in ipairs(given) do
      assert(ah.run { model = ah.scripted { call("t", {}), "ok" }, log = function() end, "go",
        tools = { ah.tool { name = "t", description = "T.", handler = handler } },
        on = { tool_invoked = function(e)
          values[#values + 1] = e.value == nil and "none" or ah.json.encode(e.value)
        end } })
    end
    assert.same({ '{"list":[1,2.5],"text":"x"}', '"text"', "7", '{"why":"full"}', '{"id":1}',
      "none", "none", "none", "none", "none" }, values)
  end)

  it("get that value with its defaults, and none of a call that was undone", function()
    local values = {}
    local on = { tool_invoked = function(e) values[#values + 1] = e.value or "none" end }
    local function value_of(handler, result)
      assert(ah.run { model = ah.scripted { call("t", {}), "ok" }, log = function() end, "go",
        tools = { ah.tool { name = "t", description = "T.", handler = handler,
          result = result } }, on = on })
    end
    value_of(function() return {} end, { type = "object", properties = { n = { default = 3 } } })
    value_of(function() return "text" end, { type = "integer" })
    local fs = ah.filesystem { files = { a = "0" } }
    local write = ah.tool { name = "t", description = "T.", params = { n = "integer" },
      parallel = true, handler = function(args)
        assert(fs:read "a" and fs:write("a", tostring(args.n)))
        ah.sleep(0.01)
        return "written " .. args.n
      end }
    assert(ah.run { tools = { write }, log = function() end, on = on, "go", model = ah.scripted {
      { calls = { { name = "t", arguments = { n = 1 } }, { name = "t", arguments = { n = 2 } } } },
      "ok" } })
    assert.same({ { n = 3 }, "none", "written 1", "none" }, values)
  end)

  it("get what a handler raised, with the traceback, and so does the run's log", function()
    local index = "attempt to index a nil value"
    local Thing = ah.entity { name = "Thing" }
      :tool { name = "break", description = "B.", handler = function(self) return self.a.b end }
    local nested = ah.registry { ah.tool { name = "inner", description = "Inner.",
      handler = function(args) return args.none.deeper end } }
    for handler, want in pairs {
      [function(args) return args.nothing.there end] = { index, index },
      [function() error("boom \xff") end] = { "boom \u{fffd}", "boom" },
      [function() error(ah.error { code = "tool_validation", message = "odd" }) end] =
        { "odd", "odd" },
      [function() error { message = "plain" } end] = { "plain", "plain" },
      [function() error(("x"):rep(100000)) end] = { ("x"):rep(900), ("x"):rep(500) },
      [function() assert(nil, "wanted") end] = { "wanted", "wanted" },
      [function() Thing { id = 1 }["break"](Thing { id = 1 }) end] = { index, index },
    } do
      local records, seen = {}, nil
      local reply = ah.run { model = ah.scripted { call("t", {}), "ok" }, "go",
        tools = { ah.tool { name = "t", description = "T.", handler = handler } },
        log = function(_, line) records[#records + 1] = line end,
        on = { tool_invoked = function(e) seen = e end } }
      assert.matches(want[1], seen.error, 1, true)
      assert.matches("\nstack traceback:\n", seen.error, 1, true)
      assert.matches("run_spec.lua:%d+: in ", seen.error)
      assert.is_true(utf8.len(seen.error) ~= nil and #seen.error < 20000)
      local text = table.concat(records, "\n")
      assert.matches(want[2] .. ".*stack traceback:", text)
      assert.matches(want[2], seen.content, 1, true)
      assert.is_nil(seen.content:find("traceback", 1, true))
      assert.is_nil(reply:transcript():find("traceback", 1, true))
    end
    local records = {}
    assert(ah.run { model = ah.scripted { call("t", {}), "ok" }, "go",
      log = function(_, line) records[#records + 1] = line end,
      tools = { ah.tool { name = "t", description = "T.", handler = function()
        return nested:execute("inner").content
      end } } })
    assert.matches(index .. ".*stack traceback:", table.concat(records, "\n"))
  end)

  it("get neither a value nor what was raised where a policy keeps the result back", function()
    for _, after in ipairs {
      function() return "block", "no" end,
      function() return "replace", "other" end,
      function() error "broken" end,
    } do
      for _, handler in ipairs {
        function() return { k = "canary" } end,
        function() error "canary" end,
        function(args) return args.canary.canary end,
        function() return ("canary "):rep(20000) end,
      } do
        local told, fs = {}, ah.filesystem { memory = true }
        local function keep(...) told[#told + 1] = table.concat({ ... }, " ") end
        local reply = assert(ah.run { model = ah.scripted { call("t", {}), "ok" }, "go",
          tools = { ah.tool { name = "t", description = "T.", handler = handler } },
          policies = { { after = after } }, log = keep, resources = { filesystem = fs },
          on = function(e) keep(ah.json.encode(e)) end })
        keep(reply:transcript())
        assert.is_nil(table.concat(told, "\n"):find("canary", 1, true))
        assert.is_false(fs:exists "tool-output")
      end
    end
  end)

  it("never change an outcome: their error is one warning", function()
    local warnings = {}
    local reply = assert(ah.run {
      model = ah.scripted { "fine" },
      on = {
        request = function()
          error("observer broke")
        end,
        warning = function(e)
          warnings[#warnings + 1] = e.message
        end,
      },
      "go",
    })
    assert.equal("fine", reply.text)
    assert.equal(1, #warnings)
    assert.matches("observer of 'request' failed: observer broke", warnings[1])
  end)

  it("may be called `log`, and get records", function()
    local lines = {}
    assert(ah.run {
      model = ah.scripted { "fine" },
      log = function(level, line)
        lines[#lines + 1] = level .. " " .. line
      end,
      "go",
    })
    local text = table.concat(lines, "\n")
    assert.matches("info run %d+ done after 1 model calls", text)
    assert.matches('debug event {"type":"start","run":%d+,', text)
  end)

  it("may be called `log`, and get each record as one line of 4 KiB at most", function()
    local longest = ""
    assert.is_nil(ah.run {
      model = ah.scripted { { fail = { message = ("\u{263a}\n"):rep(3000) } } },
      log = function(_, line)
        assert.is_nil(line:find "\n")
        longest = #line > #longest and line or longest
      end,
      "go",
    })
    assert.is_true(#longest > 900 and #longest < 4096 and utf8.len(longest) ~= nil)
  end)
end)

describe("declarations", function()
  local function message(f, ...)
    local ok, err = pcall(f, ...)
    assert.is_false(ok)
    return tostring(err)
  end

  it("refuse unknown fields at the script's line, with the nearest", function()
    assert.matches(
      "run_spec%.lua:%d+: ah%.tool: unknown field 'desription' %(did you mean 'description'%?%)",
      message(ah.tool, { name = "t", desription = "x" })
    )
    assert.matches(
      "unknown field 'tool' %(did you mean 'tools'%?%)",
      message(ah.run, { tool = {}, "x" })
    )
    assert.matches(
      "options: unknown field 'temprature'",
      message(ah.run, { options = { temprature = 1 }, model = "demo/echo", "x" })
    )
  end)

  it("refuse bad tools", function()
    local function bad(def)
      def.name = def.name or "t"
      def.description = def.description or "Does it."
      return message(ah.tool, def)
    end
    assert.matches("1 to 64 of a%-z", bad { name = "Has Space" })
    assert.matches("1 to 64 of a%-z", bad { name = ("x"):rep(65) })
    assert.matches("1 to 200 characters", bad { description = "  " })
    assert.matches("1 to 200 characters", bad { description = ("x"):rep(201) })
    assert.matches("printable ASCII", bad { description = "caf\u{e9}" })
    assert.matches("give one of them", bad { params = {}, schema = {} })
    assert.matches("must have type object", bad { schema = { type = "string" } })
    assert.matches(
      "keyword",
      bad { schema = { type = "object", properties = { a = { patern = "x" } } } }
    )
    assert.matches("has 3 parameters", bad { handler = function(_, _, _) end })
    assert.matches("no type", bad { params = { a = "strng" } })
  end)

  it("refuse the same tool twice, wrong models, and nothing to say", function()
    local t = add_tool()
    assert.matches(
      "'add' is declared twice",
      message(ah.run, { model = "demo/echo", tools = { t, t }, "x" })
    )
    assert.matches("not of the form provider/model", message(ah.run, { model = "gpt", "x" }))
    assert.matches("unknown provider 'nobody'", message(ah.run, { model = "nobody/x", "x" }))
    assert.matches("there is no demo/nothing", message(ah.run, { model = "demo/nothing", "x" }))
    assert.matches("nothing to say", message(ah.run, { model = "demo/echo" }))
  end)

  it("refuse messages whose calls and results do not pair", function()
    local m =
      { { role = "user", content = "a" }, { role = "tool", tool_call_id = "x", content = "1" } }
    assert.matches(
      "tool result without its call",
      message(ah.run, { model = "demo/echo", messages = m, "x" })
    )
    m = {
      { role = "assistant", tool_calls = { { id = "x", name = "t" } } },
      { role = "user", content = "b" },
    }
    assert.matches("has no answer", message(ah.run, { model = "demo/echo", messages = m, "x" }))
    assert.matches(
      "messages%[1%]: field 'role' is missing",
      message(ah.run, { model = "demo/echo", messages = { {} }, "x" })
    )
  end)
end)

describe("demo models", function()
  it("echo", function()
    assert.equal("hello there", assert(ah.run { model = "demo/echo", "hello there" }).text)
  end)

  it("try every tool of a script", function()
    local reply = assert(ah.run {
      model = "demo/tools",
      tools = {
        add_tool(),
        ah.tool {
          name = "shout",
          description = "Shouts.",
          params = { word = "string", times = "integer?" },
          handler = function(args)
            return args.word:upper()
          end,
        },
      },
      'Shout "hey" 3',
    })
    assert.equal("The tools said:\n- add: 6\n- shout: HEY", reply.text)
  end)
end)

describe("scripted models", function()
  it("refuse requests they did not expect", function()
    local _, err =
      ah.run { model = ah.scripted { { text = "x", expect = { user = "other" } } }, "go" }
    assert.matches("expected user 'other', found 'go'", err.message)
    _, err = ah.run { model = ah.scripted {}, "go" }
    assert.matches("request 1 was not expected", err.message)
  end)

  it("can be cut at any byte", function()
    local whole =
      '{"text":"h\u{e9}"}\n{"call":{"index":0,"id":"i","name":"add",'
      .. '"arguments":"{\\"a\\":1,\\"b\\":2}"}}\n{"stop":"tool_calls"}\n'
    for n = 0, #whole - 3 do
      local _, err = ah.run {
        retries = 0,
        tools = { add_tool() },
        model = ah.scripted { { raw = whole:sub(1, n) } },
        "go",
      }
      assert.is_true(err.code == "http" or err.code == "provider", tostring(err))
    end
  end)
end)
