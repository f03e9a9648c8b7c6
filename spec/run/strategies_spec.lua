-- Strategies: the interface for scripts that write their own (before, state, tools, later), and the
-- ready-made ones: unlock, phases, unfold. docs/reference/strategies.md.
local ah = require "agenthost"
local markdown = require "support.markdown"
local sound = require "support.sound"

local function quiet() end

local function tool(name, handler)
  return ah.tool {
    name = name,
    description = "The tool " .. name .. ".",
    params = { n = "integer?" },
    handler = handler or function()
      return name
    end,
  }
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

-- Returns the contents of a conversation's tool results.
local function results(messages)
  local list = {}
  for _, m in ipairs(messages) do
    list[#list + 1] = m.role == "tool" and m.content or nil
  end
  return list
end

-- Runs; returns the contents of the tool results, the reply and the error.
local function run(fields)
  fields.log = fields.log or quiet
  fields[1] = "x"
  local reply, err = ah.run(fields)
  local partial = reply or err.reply
  sound.check(partial:transcript())
  return results(partial.messages), reply, err
end

-- Returns a strategy that adds the name of each call to `seen`.
local function watcher(seen)
  return function(m)
    seen[#seen + 1] = m.name
  end
end

describe("a strategy's `before`", function()
  local function refusing(name, text)
    return {
      name = "gate",
      before = function(_, m)
        return m.name == name and text or nil
      end,
    }
  end

  it("answers in the handler's place, with exactly its text", function()
    local ran, seen = 0, {}
    local shut = tool("shut", function()
      ran = ran + 1
    end)
    local told, reply = run {
      model = ah.scripted { calls("shut", "open"), "ok" },
      tools = { shut, tool "open" },
      strategies = { refusing("shut", "Not \u{263a} yet."), watcher(seen) },
    }
    assert.same({ "Not \u{263a} yet.", "open" }, told)
    assert.equal(0, ran)
    assert.same({ "open" }, seen)
    local entries = sound.of(sound.check(reply:transcript()), "tool_result")
    assert.is_false(entries[1].success)
    assert.is_true(entries[1].refused)
    assert.is_nil(entries[2].refused)
  end)

  it("counts neither for the loop detector, nor for budgets, nor as a call", function()
    local turns, calls_seen = {}, nil
    for i = 1, 9 do
      turns[i] = call "shut"
    end
    turns[10] = calls("open", "open")
    turns[11] = "done"
    local budget = ah.budget { tool_calls = 2 }
    local told, reply = run {
      model = ah.scripted(turns),
      tools = { tool "shut", tool "open" },
      budget = budget,
      strategies = {
        refusing("shut", "No."),
        function(m)
          calls_seen = m.calls
        end,
      },
    }
    assert.equal("done", reply.text)
    assert.equal("No.", told[9])
    assert.equal(2, budget:used().tool_calls)
    assert.same({ { name = "open", arguments = {}, success = true } }, calls_seen)
  end)

  it("sees the call before anything else: arguments that will not do, names of nothing", function()
    local seen = {}
    local spy = {
      before = function(_, m)
        local n = m.arguments and m.arguments.n
        seen[#seen + 1] = ("%s %s %s %s"):format(m.name, n, m.result, m.success)
      end,
    }
    run {
      model = ah.scripted {
        { calls = { { name = "a", arguments = { n = "x" } }, { name = "none" },
          { name = "a", arguments = "{" }, { name = "a", arguments = { n = 2 } } } },
        "ok",
      },
      tools = { tool "a" },
      strategies = { spy },
    }
    assert.same({ "a x nil false", "none nil nil false", "a nil nil false", "a 2 nil false" }, seen)
  end)

  it("is asked of each in turn until one answers", function()
    local asked = {}
    local function gate(name, text)
      return { before = function()
        asked[#asked + 1] = name
        return text
      end }
    end
    local told = run {
      model = ah.scripted { call "a", "ok" },
      tools = { tool "a" },
      strategies = { gate("1"), gate("2", "Two."), gate("3", "Three.") },
    }
    assert.same({ "Two." }, told)
    assert.same({ "1", "2" }, asked)
  end)

  it("that fails lets nothing pass, and its words stay with the script", function()
    for words, before in pairs {
      ["strategy 'gate' failed: .*the key is 42"] = function()
        error "the key is 42"
      end,
      ["returns nothing or a text for the model, not number"] = function()
        return 7
      end,
      ["returns nothing or a text for the model, not an empty one"] = function()
        return ""
      end,
      ["the answer of a strategy is larger than 65536 bytes"] = function()
        return ("x"):rep(70000)
      end,
      ["nothing can be changed before a call"] = function(_, m)
        m.state = 1
      end,
      ["unknown field 'stat'"] = function(_, m)
        return m.stat
      end,
    } do
      local warned
      local told = run {
        model = ah.scripted { call "a", "ok" },
        tools = { tool "a" },
        strategies = { { name = "gate", before = before } },
        on = { warning = function(e)
          warned = e.message
        end },
      }
      assert.same({ "The call was not run: strategy 'gate' failed." }, told)
      assert.matches(words, warned)
    end
  end)

  it("comes before policies and approvals, which are not asked about what it answers", function()
    local told = run {
      model = ah.scripted { call "shut", "ok" },
      tools = { tool "shut" },
      strategies = { refusing("shut", "Not yet.") },
      policies = { function()
        return "deny", "never"
      end },
    }
    assert.same({ "Not yet." }, told)
  end)
end)

describe("a strategy's state", function()
  local function counting(name)
    return {
      name = name,
      after = function(_, m)
        m.state = { n = (m.state and m.state.n or 0) + 1 }
        m:note(("%s %d"):format(name or "it", m.state.n))
      end,
    }
  end

  local function notes(agent)
    local list = {}
    for _, e in ipairs(sound.of(sound.check(agent:transcript()), "note")) do
      list[#list + 1] = e.text
    end
    return table.concat(list, ", ")
  end

  local function model()
    return ah.scripted(function(request)
      return request.entries[#request.entries].type == "user" and calls("a", "a") or "ok"
    end)
  end

  it("is kept from call to call, each strategy having its own", function()
    local agent = ah.agent {
      model = model(), tools = { tool "a" }, log = quiet,
      strategies = { counting "one", counting "one", counting(nil) },
    }
    assert(agent:run "x")
    assert(agent:run "y")
    local states = sound.of(sound.check(agent:transcript()), "strategy")
    assert.equal(12, #states)
    assert.same({ name = "one_2", state = { n = 4 }, type = "strategy" }, states[11])
    assert.equal("strategy_3", states[12].name)
    assert.matches("one 4, one 4, it 4$", notes(agent))
  end)

  it("goes with a conversation that is saved, loaded and forked", function()
    local path = os.tmpname()
    local fields = { model = model(), tools = { tool "a" }, log = quiet,
      strategies = { counting "c" } }
    local agent = ah.agent(fields)
    assert(agent:run "x")
    assert(agent:save(path))
    local fork = agent:fork()
    local loaded = assert(ah.load(path, fields))
    os.remove(path)
    for _, each in ipairs { agent, fork, loaded } do
      assert(each:run "y")
      assert.equal("c 1, c 2, c 3, c 4", notes(each))
    end
  end)

  it("changes with the other changes of the strategy, or not at all", function()
    local seen = {}
    local agent = ah.agent {
      model = model(), tools = { tool "a" }, log = quiet,
      strategies = { function(m)
        seen[#seen + 1] = tostring(m.state)
        m.state = "kept"
        if #seen == 1 then
          error "oh"
        end
      end },
    }
    assert(agent:run "x")
    assert(agent:run "y")
    assert.same({ "nil", "nil", "kept", "kept" }, seen)
  end)

  it("is any JSON, a copy, and nil again after nil", function()
    local seen = {}
    local values = { { 1, 2, { a = ah.null } }, "text", 2.5, false }
    local agent = ah.agent {
      model = ah.scripted { calls("a", "a", "a", "a", "a", "a"), "ok" },
      tools = { tool "a" }, log = quiet, loop_detector = false,
      strategies = { function(m)
        local now = m.state
        seen[#seen + 1] = ah.json.encode(now == nil and ah.null or now)
        if type(now) == "table" then
          now[1] = "changed"
          assert(m.state[1] == 1)
        end
        m.state = values[#seen]
      end },
    }
    assert(agent:run "x")
    assert.same({ "null", '[1,2,{"a":null}]', '"text"', "2.5", "false", "null" }, seen)
  end)

  it("refuses what is no JSON, is too much, or is another field", function()
    local warned, wrong = {}, {
      function(m)
        m.state = print
      end,
      function(m)
        m.state = ("x"):rep(1 << 20)
      end,
      function(m)
        m.sate = 1
      end,
    }
    run {
      model = ah.scripted { call "a", "ok" }, tools = { tool "a" }, strategies = wrong,
      on = { warning = function(e)
        warned[#warned + 1] = e.message
      end },
    }
    assert.matches("state: .*function", warned[1])
    assert.matches("state: .* larger than 1048576 bytes", warned[2])
    assert.matches("only the field 'state' can be set, not 'sate'", warned[3])
  end)

  it("is not a policy's", function()
    local warned
    run {
      model = ah.scripted { call "a", "ok" }, tools = { tool "a" },
      policies = { function(m)
        return m.state
      end },
      on = { warning = function(e) warned = e.message end },
    }
    assert.matches("only strategies have a state", warned)
  end)

  it("stands in the middle of a turn, and is saved with it", function()
    local path, seen = os.tmpname(), {}
    local agent
    local save = tool("save", function()
      assert(agent:save(path))
    end)
    local function strategy()
      return { name = "s", after = function(_, m)
        seen[#seen + 1] = m.state or "nothing"
        m.state = m.name
      end }
    end
    agent = ah.agent { model = ah.scripted { calls("a", "save"), "ok" }, log = quiet,
      tools = { tool "a", save }, strategies = { strategy() } }
    assert(agent:run "x")
    local loaded = assert(ah.load(path, { model = ah.scripted { calls "a", "ok" }, log = quiet,
      tools = { tool "a", save }, strategies = { strategy() } }))
    os.remove(path)
    assert(loaded:run "y")
    assert.same({ "nothing", "a", "a" }, seen)
    sound.check(loaded:transcript())
  end)
end)

describe("the tools of a strategy", function()
  it("are declared with the others, in their place", function()
    local model = ah.scripted { { expect = { tools = { "a", "b", "c" } }, text = "ok" } }
    run { model = model, tools = { tool "a" }, strategies = {
      { tools = { tool "b" }, after = quiet }, { tools = tool "c", after = quiet } } }
    model.done()
  end)

  it("are an error under a taken name, over max_tools, and where they are none", function()
    for words, fields in pairs {
      ["tool 'a' is declared twice"] = { tools = { tool "a" } },
      ["2 tools are more than max_tools %(1%)"] = { tools = { tool "b" }, max_tools = 1 },
    } do
      fields.model, fields[1] = "demo/echo", "x"
      fields.strategies = { { tools = { tool "a" }, after = quiet } }
      local ok, err = pcall(ah.run, fields)
      assert.is_false(ok)
      assert.matches(words, tostring(err))
      assert.is_true(err:is "prompt_validation")
    end
    local ok, err = pcall(ah.run, { model = "demo/echo", "x",
      strategies = { { name = "mine", tools = { "a" }, after = quiet } } })
    assert.is_false(ok)
    assert.matches("strategy 'mine': tools%[1%] must be made by ah.tool", tostring(err))
  end)

  -- Makes a strategy that replaces a start tool by another one after its call.
  local function swapping(ran)
    local start, come = tool "start", tool("come", function()
      ran.come = (ran.come or 0) + 1
      return "came"
    end)
    return { name = "swap", tools = { start }, later = { come }, after = function(_, m)
      if m.name == "start" and m.success then
        m:remove(start)
        return come
      end
    end }
  end

  it("are those of a loaded conversation, with their handlers; what is gone stays gone", function()
    local ran, path = {}, os.tmpname()
    local agent = ah.agent { model = ah.scripted { call "start", "ok" }, log = quiet,
      strategies = { swapping(ran) } }
    assert(agent:run "x")
    assert(agent:save(path))
    local model = ah.scripted {
      { expect = { tools = { "come" } }, calls = { { name = "come" }, { name = "start" } } },
      "done",
    }
    local loaded = assert(ah.load(path,
      { model = model, log = quiet, strategies = { swapping(ran) } }))
    local reply = assert(loaded:run "y")
    local told = results(reply.messages)
    assert.equal("came", told[2])
    assert.equal("Tool 'start' is no longer available. Available tools: [come]", told[3])
    assert.equal(1, ran.come)

    local bare = assert(ah.load(path, { model = ah.scripted { call "come", "ok" }, log = quiet }))
    assert.matches("^Tool 'come' is stale", results(assert(bare:run "z").messages)[2])
    os.remove(path)
  end)
end)

describe("the record of an injection", function()
  it("is that of the seed", function()
    local lines = {}
    run {
      model = ah.scripted { call "a", "ok" }, tools = { tool "a" },
      strategies = { function()
        return { tool "b", tool "c" }
      end },
      log = function(_, line)
        lines[#lines + 1] = line
      end,
    }
    local record = "Strategy injected 2 tools after a: [b, c]"
    assert.truthy(table.concat(lines, "\n"):find(record, 1, true))
  end)
end)

-- -- ready-made strategies ------------------------------------------------------------------

local NOT_YET = "This tool is not yet available. "

-- Makes a tool that returns its argument `n`, or its name.
local function giving(name)
  return tool(name, function(args)
    return args.n or name
  end)
end

describe("what a strategy says of tools", function()
  it("is a table of words by tool; those that are not there do not matter", function()
    local seen
    run { model = ah.scripted(function(request)
      seen = request.tools[1].description
      return "done"
    end), tools = { tool "a" }, strategies = { { name = "s", before = function() end,
      describe = { a = "More of it.", b = "Nothing." } } } }
    assert.equal(tool("a").spec.description .. "\n\nMore of it.", seen)
    local _, err = pcall(ah.run, { model = "demo/echo", strategies = { { name = "s",
      before = function() end, describe = "words" } }, "x" })
    assert.equal("usage", err.code)
    assert.matches("strategy 's': field 'describe' must be { tool = words }", err.message, 1, true)
  end)
end)

describe("ah.unlock", function()
  it("answers until the tools it waits for have succeeded", function()
    local fails = true
    local search = tool("search", function()
      return not fails and "found" or nil, fails and "nothing" or nil
    end)
    local told, reply = run {
      model = ah.scripted {
        { expect = { tools = { "search", "read", "buy" } }, calls = { { name = "buy" } } },
        calls("search", "buy"),
        function()
          fails = false
          return calls("search", "buy", "read", "buy")
        end,
        { expect = { tools = { "search", "read", "buy" } }, text = "done" },
      },
      tools = { search, tool "read" },
      strategies = { ah.unlock { tools = { tool "buy" }, after = { "search", "read" } } },
    }
    assert.same({
      NOT_YET .. "Call `search` and `read` first.",
      "nothing", NOT_YET .. "Call `search` and `read` first.",
      "found", NOT_YET .. "Call `read` first.", "read", "buy",
    }, told)
    assert.equal("done", reply.text)
    assert.same({}, reply.injected_tools)
  end)

  it("is content with any of them, where that is said", function()
    local told = run {
      model = ah.scripted { calls("buy", "b", "buy"), "done" },
      tools = { tool "a", tool "b", tool "buy" },
      strategies = { ah.unlock { tools = "buy", after = { "a", "b" }, any = true } },
    }
    assert.same({ NOT_YET .. "Call `a` or `b` first.", "b", "buy" }, told)
  end)

  it("looks at the value of a call", function()
    local buy = { name = "buy" }
    local function search(n)
      return { name = "search", arguments = { n = n } }
    end
    for words, after in pairs {
      ["Call `search` first; its result must allow this."] = "search",
      ["The result of an earlier call must allow it."] = false,
    } do
      local told = run {
        model = ah.scripted { { calls = { search(1), buy, search(3), search(0), buy } }, "done" },
        tools = { giving "search", tool "buy" },
        strategies = { ah.unlock { tools = "buy", after = after or nil, on = function(value)
          return value > 2
        end } },
      }
      assert.same({ "1", NOT_YET .. words, "3", "0", "buy" }, told)
    end
  end)

  it("asks a predicate at each call of a locked tool", function()
    local stock = 0
    local told = run {
      model = ah.scripted { calls("buy", "fill", "buy", "empty", "buy"), "done" },
      tools = {
        tool("fill", function() stock = 1 end), tool("empty", function() stock = 0 end), tool "buy",
      },
      strategies = { ah.unlock { tools = "buy", when = function(m)
        assert(m.name == "buy")
        return stock > 0
      end } },
    }
    local shut = NOT_YET .. "Its condition does not hold."
    assert.same({ shut, "OK", "buy", "OK", shut }, told)
  end)

  it("joins calls and predicate by all, or by any", function()
    for any, expected in pairs {
      [false] = { NOT_YET .. "Call `a` first. Its condition does not hold.", "a",
        NOT_YET .. "Its condition does not hold.", "OK", "buy" },
      [true] = { NOT_YET .. "Call `a` first. Or its condition must hold.", "a", "buy", "OK",
        "buy" },
    } do
      local ready = false
      local told = run {
        model = ah.scripted { calls("buy", "a", "buy", "set", "buy"), "done" },
        tools = { tool "a", tool "buy", tool("set", function() ready = true end) },
        strategies = { ah.unlock { tools = "buy", after = "a", any = any, when = function()
          return ready
        end } },
      }
      assert.same(expected, told)
    end
  end)

  it("says what it was given to say", function()
    local told = run {
      model = ah.scripted { calls "buy", "done" },
      tools = { tool "buy" },
      strategies = { ah.unlock { tools = "buy", after = "a", missing = "Ask the owner." } },
    }
    assert.same({ NOT_YET .. "Ask the owner." }, told)
  end)

  it("says in the description what is missing, from the first request to the last", function()
    local at_once = "\n\nNot available at once. "
    for words, fields in pairs {
      ["Call `a` first."] = { after = "a" },
      ["Call `a` and `b` first."] = { after = { "a", "b" } },
      ["Call `a` or `b` first."] = { after = { "a", "b" }, any = true },
      ["Call `a` first; its result must allow this."] = { after = "a", on = function() end },
      ["The result of an earlier call must allow it."] = { on = function() end },
      ["Its condition must hold."] = { when = function() end },
      ["Call `a` first. Or its condition must hold."] = { after = "a", any = true,
        when = function() end },
      ["Ask the owner."] = { after = "a", missing = "Ask the owner." },
    } do
      for _, by_name in ipairs { true, false } do
        fields.tools = by_name and "buy" or tool "buy"
        local seen, breaks = {}, 0
        local function look(request)
          for _, t in ipairs(request.tools) do
            if t.name == "buy" then
              seen[#seen + 1] = t.description
            end
          end
          return #seen == 1 and calls "a" or "done"
        end
        run { model = ah.scripted(look), strategies = { ah.unlock(fields) },
          tools = { tool "a", tool "b", by_name and tool "buy" or nil },
          on = { cache_break = function() breaks = breaks + 1 end } }
        local want = tool("buy").spec.description .. at_once .. words
        assert.same({ want, want, 0 }, { seen[1], seen[2], breaks })
      end
    end
  end)

  it("says so behind a full description, in sections, and for each lock", function()
    local full = ah.tool { name = "buy", description = "Buys.", handler = function() end,
      full_description = "Buys it, \u{2713}." }
    local model = ah.scripted { { expect = { tools = { "buy" } }, text = "done" } }
    local agent = ah.agent { model = model, log = function() end,
      prompt = ah.prompt { ah.section { key = "s", template = "T", tools = { full } } },
      strategies = { ah.unlock { tools = "buy", after = "a" },
        ah.unlock { tools = "buy", after = "b", name = "second" } } }
    assert(agent:run "go")
    local said = agent:transcript()
    assert.truthy(said:find("Buys it, \u{2713}.\\n\\nNot available at once. Call `a` first.\\n\\n"
      .. "Not available at once. Call `b` first.", 1, true))
    local path = os.tmpname()
    assert(agent:save(path))
    local loaded = assert(ah.load(path, { model = ah.scripted { calls "buy", "done" },
      tools = { full }, log = function() end, strategies = { ah.unlock { tools = "buy",
        after = "a" }, ah.unlock { tools = "buy", after = "b", name = "second" } } }))
    assert.matches("^" .. NOT_YET .. "Call `a` first", loaded:run("go").messages[6].content)
    assert.equal(select(2, said:gsub("tools_added", "")),
      select(2, loaded:transcript():gsub("tools_added", "")))
    os.remove(path)
  end)

  it("leaves a description as it is that would be too long", function()
    local long = ("x"):rep(16 * 1024 - 10)
    local seen
    run { model = ah.scripted(function(request)
      seen = request.tools[1].description
      return "done"
    end), strategies = { ah.unlock { after = "a", tools = ah.tool { name = "buy",
      description = "Buys.", full_description = long, handler = function() end } } } }
    assert.equal(long, seen)
  end)

  it("stands beside others for the same tool: all of them must be content", function()
    local told = run {
      model = ah.scripted { calls("buy", "a", "buy", "b", "buy"), "done" },
      tools = { tool "a", tool "b", tool "buy" },
      strategies = { ah.unlock { tools = "buy", after = "a" },
        ah.unlock { tools = "buy", after = "b" } },
    }
    assert.same({ NOT_YET .. "Call `a` first.", "a", NOT_YET .. "Call `b` first.", "b", "buy" },
      told)
  end)
end)

describe("tools that come and go in one turn", function()
  local function names(request)
    local list = {}
    for i, t in ipairs(request.tools) do
      list[i] = t.name
    end
    return table.concat(list, " ")
  end

  local old, new = tool "old", tool "new"
  local ORDERS = {
    ["add, then remove"] = { function(m) m:add(new) m:remove "old" end },
    ["remove, then add"] = { function(m) m:remove "old" m:add(new) end },
    ["two strategies"] = { function(m) m:add(new) end, function(m) m:remove "old" end },
    ["of two calls"] = { function(m)
      if m.name == "keep" then m:remove "old" else m:add(new) end
    end },
  }

  -- Makes a conversation whose first two calls add and remove tools.
  local function converse(mode, strategies, turns, more)
    local requests, breaks, done = {}, {}, 0
    local list = {}
    for i, f in ipairs(strategies) do
      list[i] = function(m)
        done = done + 1
        if done <= 2 * #strategies then
          f(m)
        end
      end
    end
    local fields = { model = ah.scripted { tool_change_mode = mode, answer = function(r)
      requests[#requests + 1] = r
      local turn = table.remove(turns, 1) or "done"
      return turn
    end }, tools = { old, tool "go", tool "keep" }, strategies = list, retries = 0,
      log = function() end,
      on = { cache_break = function(e) breaks[#breaks + 1] = e.reason end } }
    for k, v in pairs(more or {}) do
      fields[k] = v
    end
    return fields, requests, breaks
  end

  it("are declared as they are then, by the very request that breaks the cache", function()
    for what, strategies in pairs(ORDERS) do
      for mode, reason in pairs { append = "tools_changed", restart = "restart" } do
        local fields, requests, breaks = converse(mode, strategies, { calls("go", "keep") })
        local agent = ah.agent(fields)
        assert(agent:run "x")
        assert.equal("old go keep", names(requests[1]))
        assert.equal("go keep new", names(requests[2]), what .. " " .. mode)
        assert.same({ reason }, breaks)
        assert(agent:run "y")
        assert.same(requests[2].tools, requests[3].tools)
        assert.same({ reason }, breaks)
        sound.check(agent:transcript())
      end
    end
  end)

  it("are declared so by a conversation that is loaded, which sends the same bytes", function()
    local path = os.tmpname()
    for what, strategies in pairs(ORDERS) do
      for _, mode in ipairs { "append", "restart", "inline", "dispatcher", "list_changed" } do
        local fields, requests = converse(mode, strategies, { calls("go", "keep") })
        local agent = ah.agent(fields)
        assert(agent:run "x")
        assert(agent:save(path))
        local again, later = converse(mode, {}, {})
        again.tools = { tool "go", tool "keep", new }
        assert(assert(ah.load(path, again)):run "y")
        local n = #requests
        assert.same(requests[n].tools, later[1].tools, what .. " " .. mode)
        for i, e in ipairs(requests[n].entries) do
          assert.same(e, later[1].entries[i])
        end
      end
    end
    os.remove(path)
  end)

  it("leave a tombstone where no request breaks the cache for them", function()
    local fields, requests, breaks = converse("append", { function(m) m:remove "old" end },
      { calls "go" })
    local agent = ah.agent(fields)
    assert(agent:run "x")
    assert.equal("old go keep", names(requests[2]))
    assert.same({}, breaks)
    agent:add_tools(new)
    assert(agent:run "y")
    assert.equal("go keep new", names(requests[3]))
    assert.same({ "tools_changed" }, breaks)
  end)

  it("are told of as a break where the request that broke the cache has failed", function()
    local fields, requests, breaks = converse("append", { function(m) m:add(new) end },
      { calls "go", { fail = { message = "no", status = 400 } } })
    local agent = ah.agent(fields)
    assert.is_nil((agent:run "x"))
    assert.equal("old go keep new", names(requests[2]))
    agent:remove_tools "old"
    assert(agent:run "y")
    assert.equal("go keep new", names(requests[3]))
    assert.same({ "tools_changed", "tools_changed" }, breaks)
  end)
end)

describe("what a strategy sees", function()
  it("is the text of the arguments, as the model wrote it, whatever became of them", function()
    local add = ah.tool { name = "add", description = "Adds.", params = { n = "integer" },
      handler = function(args) return args.n end }
    local refused = ah.tool { name = "refused", description = "R.", handler = function() end }
    local texts = { '{"n": 1}', '{"n":"one"}', "{n=1}", "", '{"x":1}', '{ "n" : 2 }' }
    local raw, early, tables, turns = {}, {}, {}, {}
    for i, text in ipairs(texts) do
      turns[i] = { calls = { { name = i == 6 and "refused" or "add", arguments = text } } }
    end
    turns[#turns + 1] = { calls = { { name = "nobody", arguments = "{]" } } }
    turns[#turns + 1] = "done"
    run { model = ah.scripted(turns), tools = { add, refused },
      policies = { function(c) return c.name == "refused" and "deny" or nil, "no" end },
      strategies = { { before = function(_, m) early[#early + 1] = m.raw_arguments end,
        after = function(_, m)
          raw[#raw + 1] = m.raw_arguments
          tables[#raw] = m.arguments and ah.json.encode(m.arguments) or "none"
        end } } }
    texts[#texts + 1] = "{]"
    assert.same(texts, raw)
    assert.same(texts, early)
    assert.equal('{"n":1}', tables[1])
    assert.equal("none", tables[2])
    assert.equal("none", tables[3])
  end)

  it("are the tools there are, with their specifications, to take and to put back", function()
    local away, seen
    local deep = ah.tool { name = "deep", description = "Deep.", params = { where = "string" },
      handler = function() return "deep" end }
    local _, reply = run { model = ah.scripted { calls "go", calls "go", calls "deep", "done" },
      tools = { tool "go", deep }, strategies = { function(m)
        if m.name == "go" and not away then
          seen = m.tools[2]
          away = { m.tools[2] }
          m:remove(away)
        elseif m.name == "go" then
          m:add(away)
        end
      end } }
    assert.equal("deep", seen.name)
    assert.equal("Deep.", seen.description)
    assert.equal("string", seen.parameters.properties.where.type)
    assert.same(seen.spec, { name = seen.name, description = seen.description,
      parameters = seen.parameters })
    assert.equal(deep, seen)
    assert.same({ "deep" }, reply.injected_tools)
    assert.same({ "deep" }, reply.removed_tools)
  end)

  it("are tools of entities, of sections and of the library, too, in every mode", function()
    for _, mode in ipairs { "inline", "append", "dispatcher", "restart" } do
      local Thing = ah.entity { name = "Thing" }
      Thing:tool { name = "look", description = "Looks.", handler = function() return "seen" end }
      local last
      assert(ah.run { model = ah.scripted { tool_change_mode = mode, calls "find",
        { calls = { { name = "read_section", arguments = { section_key = "more" } } } }, "done" },
        discover = true, log = function() end,
        ah.section { key = "more", template = "M.", summary = "S.", visibility = "summary",
          tools = { tool "inside" } },
        tools = { ah.tool { name = "find", description = "F.", handler = function()
          return Thing { id = 1 }
        end } },
        strategies = { function(m) last = m.tools end }, "x" })
      local names = {}
      for i, t in ipairs(last) do
        names[i] = t.name
        assert.equal("object", t.parameters.type, mode)
        assert.equal("string", type(t.description))
      end
      assert.equal("find read_section thing_1_look inside", table.concat(names, " "))
    end
  end)
end)

describe("ah.phases", function()
  local function phases(fields)
    fields.phases = {
      { name = "planning", tools = { tool "note", tool "plan_done" },
        next = { plan_done = "doing" } },
      { name = "doing", tools = { tool "write", giving "check" }, next = function(m)
        return m.name == "check" and (m.value == 1 and "planning" or m.value == 2 and "moon") or nil
      end },
    }
    return ah.phases(fields)
  end
  local SCRIPT = { calls("write", "note", "plan_done", "note", "write"),
    call("check", { n = 0 }), call("check", { n = 1 }), calls("write"), "done" }

  it("answers calls of other phases with the current and the required one", function()
    local told, reply = run { model = ah.scripted(SCRIPT), tools = { tool "always" },
      strategies = { phases {} } }
    local early = "Tool 'write' belongs to phase 'doing'; the current phase is 'planning'."
      .. " `plan_done` leads to 'doing'."
    assert.same({ early, "note", "plan_done",
      "Tool 'note' belongs to phase 'planning'; the current phase is 'doing'.", "write", "0", "1",
      early }, told)
    local notes = {}
    for _, e in ipairs(sound.of(sound.check(reply:transcript()), "note")) do
      notes[#notes + 1] = e.text
    end
    assert.same({ "The current phase is now 'doing'.", "The current phase is now 'planning'." },
      notes)
    assert.same({}, reply.injected_tools)
  end)

  it("adds and removes the tools where they are to be hidden", function()
    local seen = {}
    local model = ah.scripted(SCRIPT)
    local told, reply = run { model = model, tools = { tool "always" },
      strategies = { phases { hide = true }, function(m)
        local names = {}
        for i, t in ipairs(m.tools) do
          names[i] = t.name
        end
        seen[#seen + 1] = table.concat(names, " ")
      end } }
    assert.equal("always note plan_done", seen[1])
    assert.equal("always write check", seen[2])
    assert.equal("always note plan_done", seen[#seen])
    assert.equal("plan_done\n\nNew tools: write, check.", told[3])
    assert.matches("^Tool 'note' belongs to phase 'planning'", told[4])
    assert.same({ "write", "check", "note", "plan_done" }, reply.injected_tools)
    assert.same({ "note", "plan_done", "write", "check" }, reply.removed_tools)
  end)

  it("keeps a tool that is in both phases", function()
    local shared, other = tool "shared", tool "other"
    local _, reply = run { model = ah.scripted { calls("shared", "other"), "done" },
      strategies = { ah.phases { hide = true, phases = {
        { name = "a", tools = { shared }, next = { shared = "b" } },
        { name = "b", tools = { other, shared } } } } } }
    assert.same({ "other" }, reply.injected_tools)
    assert.same({}, reply.removed_tools)
  end)

  it("begins where it is told, and warns of a phase that is none", function()
    local warned
    local told = run { model = ah.scripted { calls "write", call("check", { n = 2 }), "done" },
      strategies = { phases { start = "doing" } },
      on = { warning = function(e)
        warned = e.message
      end } }
    assert.same({ "write", "2" }, told)
    assert.matches("next of phase 'doing' gave 'moon', which is no phase", warned)
  end)

  it("lets nothing of it be called in a conversation of other phases", function()
    local path, warned = os.tmpname(), nil
    local agent = ah.agent { model = ah.scripted { calls "plan_done", "done" }, log = quiet,
      strategies = { phases {} } }
    assert(agent:run "x")
    assert(agent:save(path))
    local loaded = assert(ah.load(path, { model = ah.scripted { calls "note", "done" }, log = quiet,
      on = { warning = function(e) warned = e.message end },
      strategies = { ah.phases { phases = { { name = "planning", tools = { tool "note" } } } } } }))
    os.remove(path)
    local told = results(assert(loaded:run "y").messages)
    assert.equal("The call was not run: strategy 'phases' failed.", told[2])
    assert.matches("the conversation is in phase 'doing', which does not exist", warned)
  end)
end)

describe("ah.unfold", function()
  local function opening(name, category)
    return { name = name, arguments = category and { category = category } or nil }
  end
  local function simple()
    return ah.unfold { name = "db", description = "The database.",
      tools = { tool "query", tool "insert" } }
  end

  it("is replaced by its tools, which a later call of the same answer may use", function()
    local model = ah.scripted {
      { expect = { tools = { "a", "db" } }, calls = { { name = "db" }, { name = "query" },
        { name = "db" } } },
      { expect = { tools = { "a", "query", "insert" } }, text = "done" },
    }
    local told, reply = run { model = model, tools = { tool "a" }, strategies = { simple() } }
    assert.same({ "`db` is open.\n\nNew tools: query, insert.", "query",
      "`db` is open already. Its tools: [query, insert]" }, told)
    assert.same({ "query", "insert" }, reply.injected_tools)
    assert.same({ "db" }, reply.removed_tools)
    model.done()
  end)

  local function by_category(exclusive)
    return ah.unfold { name = "db", description = "The database.", exclusive = exclusive,
      categories = { read = { tool "query", tool "count" },
        write = { tool "insert", tool "drop" } } }
  end

  it("opens one category after the other, and goes when all are open", function()
    local model = ah.scripted {
      { check = function(r)
        assert.same({ "read", "write" }, r.tools[1].parameters.properties.category.enum)
      end, calls = { opening("db", "read") } },
      { expect = { tools = { "db", "query", "count" } },
        calls = { opening("db", "read"), opening("db", "none"), opening "db",
          { name = "query" } } },
      { calls = { opening("db", "write") } },
      { expect = { tools = { "query", "count", "insert", "drop" } },
        calls = { opening("db", "x") } },
      "done",
    }
    local told = run { model = model, strategies = { by_category(false) } }
    assert.equal("Category 'read' of `db` is open.\n\nNew tools: query, count.", told[1])
    assert.equal("Category 'read' of `db` is open already. Its tools: [query, count]", told[2])
    assert.matches("^Tool validation failed", told[3])
    assert.matches("^Tool validation failed", told[4])
    assert.equal("query", told[5])
    assert.equal("`db` is open already. Its tools: [query, count, insert, drop]", told[7])
    model.done()
  end)

  it("shuts the one before where that is said", function()
    local model = ah.scripted {
      { calls = { opening("db", "read"), opening("db", "write"), { name = "query" } } },
      { expect = { tools = { "db", "insert", "drop" } }, calls = { opening("db", "read") } },
      { expect = { tools = { "db", "query", "count" } }, calls = { { name = "query" } } },
      "done",
    }
    local told = run { model = model, strategies = { by_category(true) } }
    assert.matches("^Tool 'query' is no longer available", told[3])
    assert.equal("query", told[5])
    model.done()
  end)

  it("may be among the tools of another", function()
    local inner = ah.unfold { name = "admin", description = "For admins.", tools = { tool "wipe" } }
    local outer = ah.unfold { name = "all", description = "All.", exclusive = true,
      categories = { a = { tool "x", inner }, b = { tool "y" } } }
    local model = ah.scripted {
      calls "admin",
      { calls = { opening("all", "a"), { name = "admin" }, { name = "wipe" } } },
      { expect = { tools = { "all", "x", "wipe" } }, calls = { opening("all", "b") } },
      { expect = { tools = { "all", "y" } }, calls = { { name = "admin" }, { name = "wipe" } } },
      { calls = { opening("all", "a") } },
      { expect = { tools = { "all", "x", "admin" } }, text = "done" },
    }
    local told = run { model = model, strategies = { outer } }
    assert.matches("^Tool 'admin' not found", told[1])
    assert.equal("`admin` is open.\n\nNew tools: wipe.", told[3])
    assert.matches("^Tool 'admin' is no longer available", told[6])
    assert.matches("^Tool 'wipe' is no longer available", told[7])
    model.done()
  end)

  it("is as it was before the turn in a conversation that is forked within it", function()
    local agent, fork
    local late = tool "late"
    local function turns(last)
      return ah.scripted(function(request)
        local n = request.entries[#request.entries].type
        return n == "user" and calls(table.unpack(last)) or "ok"
      end)
    end
    local fields = { tools = { tool "a", tool("fork", function(_, ctx)
      ctx:remove_tools "a"
      ctx:add_tools(late)
    end), tool("then", function()
      fork = agent:fork()
    end) }, strategies = { simple() }, log = quiet, model = turns { "db", "fork", "then" } }
    agent = ah.agent(fields)
    assert(agent:run "x")
    assert(fork:use(turns { "query", "late", "a", "db", "query" }))
    local told = results(assert(fork:run "y").messages)
    assert.same({ "Tool 'query' not found. Available tools: [a, fork, then, db]",
      "Tool 'late' not found. Available tools: [a, fork, then, db]", "a",
      "`db` is open.\n\nNew tools: query, insert.", "query" }, told)
    assert(agent:use(turns { "query", "late", "a" }))
    told = results(assert(agent:run "z").messages)
    assert.same({ "query", "late",
      "Tool 'a' is no longer available. Available tools: [fork, then, query, insert, late]" },
      { told[4], told[5], told[6] })
  end)

  it("names only what is really there", function()
    local told = run { model = ah.scripted { calls("db", "db"), "done" }, max_tools = 1,
      strategies = { simple() } }
    assert.equal("`db` is open already. Its tools: [query]", told[2])
  end)
end)

describe("what is given to a strategy", function()
  it("is what docs/reference/strategies.md says", function()
    local page = markdown.read "docs/reference/strategies.md"
    for name, make in pairs { unlock = ah.unlock, phases = ah.phases, unfold = ah.unfold } do
      local listed, known = {}, {}
      for _, row in ipairs(markdown.tables(markdown.section(page, "## ah." .. name))[1]) do
        listed[#listed + 1] = markdown.names(row[1])[1]
      end
      local _, err = pcall(make, { x = 1 })
      for field in err.message:match("there are (.*)"):gmatch "[%a_]+" do
        known[#known + 1] = field
      end
      table.sort(listed)
      table.sort(known)
      assert.same(known, listed)
    end
  end)

  local a, other = tool "a", tool "a"
  for words, make in pairs {
    ["ah.unlock: unknown field 'tols' %(did you mean 'tools'%?%)"] = function()
      ah.unlock { tols = {} }
    end,
    ["ah.unlock: one of 'after', 'on' and 'when' must say"] = function()
      ah.unlock { tools = "a" }
    end,
    ["ah.unlock: field 'tools' is missing"] = function()
      ah.unlock { after = "a" }
    end,
    ["ah.unlock: tools%[2%] must be a tool or a tool's name, found a number"] = function()
      ah.unlock { tools = { a, 3 }, after = "b" }
    end,
    ["ah.unlock: 'a' would have to be called before it is unlocked"] = function()
      ah.unlock { tools = a, after = "a" }
    end,
    ["ah.unlock: field 'on' must be a function, found string"] = function()
      ah.unlock { tools = a, on = "x" }
    end,
    ["ah.unlock: expected a table of fields, found number"] = function()
      ah.unlock(3)
    end,
    ["ah.phases: field 'phases' must be a list"] = function()
      ah.phases { phases = {} }
    end,
    ["ah.phases: phases%[2%]: field 'name' must be a string that no other"] = function()
      ah.phases { phases = { { name = "p", tools = a }, { name = "p", tools = a } } }
    end,
    ["next maps names of tools to phases, and 'q' is none"] = function()
      ah.phases { phases = { { name = "p", tools = a, next = { a = "q" } } } }
    end,
    ["with hide, phase 'p' needs the tools themselves"] = function()
      ah.phases { hide = true, phases = { { name = "p", tools = "a" } } }
    end,
    ["ah.phases: there are two tools named 'a'"] = function()
      ah.phases { phases = { { name = "p", tools = a }, { name = "q", tools = other } } }
    end,
    ["ah.phases: start: there is no phase 'z'"] = function()
      ah.phases { start = "z", phases = { { name = "p", tools = a } } }
    end,
    ["ah.unfold: field 'name' is missing"] = function()
      ah.unfold { description = "x", tools = { a } }
    end,
    ["ah.unfold: d: one of 'tools' and 'categories' says"] = function()
      ah.unfold { name = "d", description = "x" }
    end,
    ["ah.unfold: d: 'exclusive' is for categories"] = function()
      ah.unfold { name = "d", description = "x", exclusive = true, tools = { a } }
    end,
    ["ah.unfold: d: tools%[1%] must be made by ah.tool or ah.unfold, found a string"] = function()
      ah.unfold { name = "d", description = "x", tools = { "a" } }
    end,
    ["ah.unfold: d: category 'c' must be a list of tools"] = function()
      ah.unfold { name = "d", description = "x", categories = { c = {} } }
    end,
    ["ah.unfold: there are two tools named 'a'"] = function()
      ah.unfold { name = "d", description = "x", categories = { b = { a }, c = { other } } }
    end,
    ["ah.unfold: field 'description' is missing"] = function()
      ah.unfold { name = "d", tools = { a } }
    end,
    ["more than 16 facades inside one another"] = function()
      local item = a
      for i = 1, 20 do
        item = ah.unfold { name = "f" .. i, description = "x", tools = { item } }
      end
    end,
  } do
    it("is refused at the script's line: " .. words, function()
      local ok, err = pcall(make)
      assert.is_false(ok)
      assert.matches("strategies_spec.lua:%d+: ", tostring(err))
      assert.matches(words, tostring(err))
    end)
  end
end)

describe("examples/unfold.lua", function()
  it("shows what comes, goes and is refused, and the answer", function()
    local binary = (os.getenv "AGENTHOST_BUILD" or "build") .. "/agenthost"
    local pipe <close> =
      assert(io.popen(("unset AGENTHOST_MODEL; %s examples/unfold.lua 2>&1"):format(binary)))
    local text = pipe:read "a"
    for _, line in ipairs {
      "check_out  no This tool is not yet available. The cart is empty.",
      "+ find, review", "- catalog",
      "pay        no Tool 'pay' belongs to phase 'payment'; the current phase is 'shopping'.",
      'check_out     Now it can be paid. {"to_pay":14}',
      "pay           Paid. It is on its way.",
      "you paid 14.",
    } do
      assert.truthy(text:find(line, 1, true), line)
    end
  end)
end)
