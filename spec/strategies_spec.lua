-- Strategies: the contract for scripts that write their own (before, state, tools, later), and
-- those that are there: unlock, phases, unfold. docs/strategies.md.
local ah = require "agenthost"
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

-- The contents of a conversation's tool results.
local function results(messages)
  local list = {}
  for _, m in ipairs(messages) do
    list[#list + 1] = m.role == "tool" and m.content or nil
  end
  return list
end

-- Runs; gives the contents of the tool results, the reply and the error.
local function run(fields)
  fields.log = fields.log or quiet
  fields[1] = "x"
  local reply, err = ah.run(fields)
  local partial = reply or err.reply
  sound.check(partial:transcript())
  return results(partial.messages), reply, err
end

-- What a strategy was told, one entry a call.
local function watcher(seen)
  return function(m)
    seen[#seen + 1] = m.tool
  end
end

describe("a strategy's `before`", function()
  local function refusing(name, text)
    return {
      name = "gate",
      before = function(_, m)
        return m.tool == name and text or nil
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
    assert.same({ { tool = "open", arguments = {}, success = true } }, calls_seen)
  end)

  it("sees the call before anything else: arguments that will not do, names of nothing", function()
    local seen = {}
    local spy = {
      before = function(_, m)
        local n = m.arguments and m.arguments.n
        seen[#seen + 1] = ("%s %s %s %s"):format(m.tool, n, m.result, m.success)
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
    local told = run {
      model = ah.scripted { call "a", "ok" }, tools = { tool "a" },
      policies = { function(m)
        return m.state
      end },
    }
    assert.matches("only strategies have a state", told[1])
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
        m.state = m.tool
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

  -- A start tool that is gone once it was called, for one that comes.
  local function swapping(ran)
    local start, come = tool "start", tool("come", function()
      ran.come = (ran.come or 0) + 1
      return "came"
    end)
    return { name = "swap", tools = { start }, later = { come }, after = function(_, m)
      if m.tool == "start" and m.success then
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
