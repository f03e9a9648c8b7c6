-- Tools that are added and removed in mid-conversation by handlers, by scripts and by strategies;
-- and the cost of this on wires of every kind. docs/reference/changing_tools.md, "Tools that come
-- and go".
local ah = require "agenthost"
local sound = require "support.sound"

local function quiet() end

local function tool(name, handler)
  return ah.tool {
    name = name,
    description = "The tool " .. name .. ".",
    params = { n = "integer?" },
    parallel = false,
    handler = handler or function()
      return name
    end,
  }
end

local function call(name, arguments)
  return { calls = { { name = name, arguments = arguments } } }
end

-- Runs and collects its events of some types.
local function run(fields, ...)
  local events = {}
  fields.log = fields.log or quiet
  fields.on = {}
  for _, kind in ipairs { ... } do
    fields.on[kind] = function(e)
      events[#events + 1] = e
    end
  end
  local reply, err = ah.run(fields)
  return reply, err, events
end

local function names(request)
  local list = {}
  for _, t in ipairs(request.tools) do
    list[#list + 1] = t.name
  end
  return table.concat(list, " ")
end

describe("a handler that adds tools", function()
  it("offers them from the next answer on, and to a later call of the same one", function()
    local late = tool "late"
    local model = ah.scripted {
      { calls = { { name = "first" }, { name = "late" } } },
      { expect = { tools = { "first", "late" }, result = "late" }, text = "ok" },
    }
    local first = tool("first", function(_, ctx)
      ctx:add_tools(late)
    end)
    local reply = assert(run { model = model, tools = { first }, "x" })

    assert.equal("OK\n\nNew tools: late.", reply.messages[3].content)
    assert.same({ "late" }, reply.injected_tools)
    assert.same({}, reply.removed_tools)
    sound.check(reply:transcript())
  end)

  it("leaves out the hint where it is not wanted", function()
    local late = tool "late"
    local first = tool("first", function(_, ctx)
      ctx:add_tools { late }
    end)
    local reply = assert(
      run { model = ah.scripted { call "first", "ok" }, tools = { first }, hint = false, "x" }
    )

    assert.equal("OK", reply.messages[3].content)
  end)

  it("adds nothing when it fails, nor when a list holds something else", function()
    local late = tool "late"
    local fails = tool("fails", function(_, ctx)
      ctx:add_tools(late)
      error "no"
    end)
    local wrong = tool("wrong", function(_, ctx)
      local ok, err = pcall(ctx.add_tools, ctx, { late, "late" })
      return ok and "?" or tostring(err)
    end)
    local reply = assert(
      run {
        model = ah.scripted { call "fails", call "wrong", call "late", "ok" },
        tools = { fails, wrong },
        "x",
      }
    )

    assert.same({}, reply.injected_tools)
    assert.matches("tools%[2%] must be made by ah.tool, found string", reply.messages[5].content)
    assert.matches("^Tool 'late' not found", reply.messages[7].content)
  end)

  it("removes tools, and a call to one of them is told so", function()
    local first = tool("first", function(_, ctx)
      ctx:remove_tools { "second" }
    end)
    local reply, _, events = run(
      {
        model = ah.scripted { call "first", call "second", "ok" },
        tools = { first, tool "second" },
        "x",
      },
      "tools_removed",
      "cache_break"
    )

    assert.equal(
      "Tool 'second' is no longer available. Available tools: [first]",
      reply.messages[5].content
    )
    assert.same({ "second" }, reply.removed_tools)
    assert.equal(1, #events)
    assert.same({ "second" }, events[1].tool_names)
  end)

  it("tells observers and the counters", function()
    local before = ah.metrics()
    local late, later = tool "late", tool "later"
    local first = tool("first", function(_, ctx)
      ctx:add_tools { late, later }
    end)
    local _, _, events = run(
      { model = ah.scripted { call "first", "ok" }, tools = { first }, "x" },
      "tools_injected",
      "tool_invoked"
    )
    local now = ah.metrics()

    assert.same({ "tools_injected", "tool_invoked" }, { events[1].type, events[2].type })
    assert.same({ "late", "later" }, events[1].tool_names)
    assert.equal("tool", events[1].strategy)
    assert.is_true(math.abs(events[1].timestamp - events[1].time) < 0.01)
    assert.equal(2, now["agenthost.tools.injected"] - before["agenthost.tools.injected"])
    assert.equal(1, now["agenthost.runs"] - before["agenthost.runs"])
    assert.equal(2, now["agenthost.requests"] - before["agenthost.requests"])
    assert.equal(1, now["agenthost.cache.breaks"] - before["agenthost.cache.breaks"])
  end)
end)

describe("a taken name", function()
  local function conflict(on_conflict)
    local other = tool("late", function()
      return "other"
    end)
    local first = tool("first", function(_, ctx)
      ctx:add_tools(other)
    end)
    return run(
      {
        model = ah.scripted { call "first", call "late", "ok" },
        tools = { first, tool "late" },
        on_conflict = on_conflict,
        "x",
      },
      "warning"
    )
  end

  it("is skipped with the warning of the seed", function()
    local reply, _, events = conflict(nil)

    assert.equal("Skipping duplicate tool during injection", events[1].message)
    assert.equal("late", events[1].tool_name)
    assert.equal("late", reply.messages[5].content)
    assert.same({}, reply.injected_tools)
  end)

  it("is replaced where that is said", function()
    local reply, _, events = conflict "replace"

    assert.equal(0, #events)
    assert.equal("other", reply.messages[5].content)
    assert.same({ "late" }, reply.injected_tools)
  end)

  it("ends the run where that is said, with a sound conversation", function()
    local reply, err = conflict "error"

    assert.is_nil(reply)
    assert.equal("prompt_validation", err.code)
    assert.matches("tool 'late' is declared twice", err.message)
    sound.check(err.reply:transcript())
  end)

  it("costs nothing when it is the very same tool", function()
    local late = tool "late"
    local first = tool("first", function(_, ctx)
      ctx:add_tools(late)
    end)
    local reply, _, events = run(
      { model = ah.scripted { call "first", call "first", "ok" }, tools = { first }, "x" },
      "warning",
      "cache_break"
    )

    assert.same({ "late" }, reply.injected_tools)
    assert.equal(1, #events)
    assert.equal("cache_break", events[1].type)
  end)

  it("refuses a word that is none of the three", function()
    local ok, err = pcall(ah.run, { model = "demo/echo", on_conflict = "merge", "x" })
    assert.is_false(ok)
    assert.matches('must be "skip", "replace" or "error", found "merge"', tostring(err))
  end)
end)

describe("the number of tools", function()
  it("is warned of once at 64 and held at max_tools", function()
    local many = {}
    for i = 1, 80 do
      many[i] = tool("t" .. i)
    end
    local first = tool("first", function(_, ctx)
      ctx:add_tools(many)
    end)
    local reply, _, events = run(
      { model = ah.scripted { call "first", "ok" }, tools = { first }, max_tools = 70, "x" },
      "warning"
    )

    assert.equal(69, #reply.injected_tools)
    assert.equal(2, #events)
    assert.matches("^64 tools are declared", events[1].message)
    assert.matches("max_tools", events[2].message)
    assert.equal("t70", events[2].tool_name)
  end)
end)

describe("agent:add_tools", function()
  it("works before, between and during runs", function()
    local agent
    local model = ah.scripted {
      { expect = { tools = { "early" } }, text = "1" },
      { expect = { tools = { "early", "middle" } }, calls = { { name = "middle" } } },
      { expect = { tools = { "early", "middle", "late" } }, text = "2" },
    }
    local late = tool "late"
    local middle = tool("middle", function()
      agent:add_tools(late)
    end)
    agent = ah.agent { model = model, log = quiet }
    agent:add_tools(tool "early")
    assert(agent:run "x")
    agent:add_tools { middle }
    local reply = assert(agent:run "y")

    assert.same({ "late" }, reply.injected_tools)
    model.done()
    sound.check(agent:transcript())
  end)

  it("may be called by an observer while a handler's tools come in", function()
    for _, more in ipairs { 1, 7, 60 } do
      local agent, warned
      local given, others, all = { tool "dup" }, {}, {}
      for i = 1, 30 do
        given[i + 1] = tool("given" .. i)
        all[#all + 1] = { name = "given" .. i }
      end
      for i = 1, more do
        others[i] = tool("other" .. i)
        all[#all + 1] = { name = "other" .. i }
      end
      agent = ah.agent {
        model = ah.scripted { call "go", "done", { calls = all }, "again" },
        tools = { tool "dup", tool("go", function(_, ctx) ctx:add_tools(given) end) },
        log = quiet,
        on = { warning = function()
          if not warned then
            warned = true
            agent:add_tools(others)
          end
        end },
      }
      assert(agent:run "Go.")
      assert(agent:run "Again.")
      local results = sound.of(sound.check(agent:transcript()), "tool_result")
      assert.equal(#all + 1, #results)
      for i, c in ipairs(all) do
        assert.equal(c.name, results[i + 1].content)
      end
    end
  end)

  it("withdraws, and takes back what it withdrew", function()
    local a = tool "a"
    local agent = ah.agent {
      tools = { a },
      log = quiet,
      model = ah.scripted { "1", call "a", "2", call "a", "3" },
    }
    assert(agent:run "x")
    agent:remove_tools(a)
    assert.matches("no longer available", assert(agent:run "y").messages[5].content)
    agent:add_tools(a)
    assert.equal("a", assert(agent:run "z").messages[9].content)
  end)

  it("raises for what is no tool, at the script's line", function()
    local agent = ah.agent { model = "demo/echo" }
    local ok, err = pcall(agent.add_tools, agent, { tool "a", 7 })
    assert.is_false(ok)
    assert.matches(
      "agent:add_tools: tools%[2%] must be made by ah.tool, found number",
      tostring(err)
    )
    ok, err = pcall(agent.remove_tools, agent, { {} })
    assert.is_false(ok)
    assert.matches("names%[1%] must be a tool or a tool's name, found table", tostring(err))
  end)
end)

describe("a strategy", function()
  it("sees each call as seed 001 says, live value included", function()
    local customer = setmetatable({ id = "c1" }, { __name = "Customer" })
    local seen
    local find = tool("find", function()
      return customer
    end)
    assert(
      run {
        model = ah.scripted {
          { text = "hm", calls = { { name = "find", id = "c9", arguments = { n = 4 } } } },
          "ok",
        },
        tools = { find, tool "other" },
        strategies = {
          function(m)
            seen = {
              name = m.name,
              n = m.arguments.n,
              result = m.result,
              value = m.value,
              success = m.success,
              tools = m.tools,
              iteration = m.iteration,
              id = m.id,
              history = m.history,
              run = math.type(m.run),
            }
          end,
        },
        "hello",
      }
    )

    assert.equal("find", seen.name)
    assert.equal("c9", seen.id)
    assert.equal(4, seen.n)
    assert.equal('{"id":"c1"}', seen.result)
    assert.is_true(rawequal(customer, seen.value))
    assert.is_true(seen.success)
    assert.same({ "find", "other" }, { seen.tools[1].name, seen.tools[2].name })
    assert.equal(find, seen.tools[1])
    assert.equal(1, seen.iteration)
    assert.equal("integer", seen.run)
    assert.equal(1, #seen.history)
    assert.equal("hello", seen.history[1].content)
  end)

  it("sees failed and refused calls, too", function()
    local seen = {}
    local fails = tool("fails", function()
      return nil, "sorry"
    end)
    assert(
      run {
        model = ah.scripted {
          {
            calls = {
              { name = "fails" },
              { name = "fails", arguments = { n = "x" } },
              { name = "none" },
            },
          },
          "ok",
        },
        tools = { fails },
        strategies = {
          function(m)
            seen[#seen + 1] = ("%s %s %s %s"):format(m.name, m.success, m.value, m.arguments ~= nil)
          end,
        },
        "x",
      }
    )
    assert.same({ "fails false nil true", "fails false nil false", "none false nil false" }, seen)
  end)

  it("adds, replaces, removes, notes and sets the prompt", function()
    local model = ah.scripted {
      call "first",
      {
        check = function(r)
          assert.equal("first added", names(r))
          assert.equal("Be brief.", r.system)
          assert.equal("Mind the gap.", r.entries[#r.entries].text)
        end,
        calls = { { name = "first" } },
      },
      "ok",
    }
    local strategy = { name = "all", turn = 0 }
    function strategy:after(m)
      self.turn = self.turn + 1
      if self.turn == 2 then
        return
      end
      m:remove "second"
      m:replace { tool("first", function()
        return "new"
      end) }
      m:note "Mind the gap."
      m:prompt "Be brief."
      return tool "added"
    end
    local reply, _, events = run(
      { model = model, tools = { tool "first", tool "second" }, strategies = { strategy }, "x" },
      "tools_injected",
      "tools_removed",
      "cache_break"
    )

    assert.equal("new", reply.messages[#reply.messages - 1].content)
    assert.same({ "first", "added" }, events[1].tool_names)
    assert.equal("all", events[1].strategy)
    assert.same({ "second" }, events[2].tool_names)
    sound.check(reply:transcript())
  end)

  it("chains: a later one finds what an earlier one did", function()
    local seen
    assert(
      run {
        model = ah.scripted { call "first", "ok" },
        tools = { tool "first" },
        strategies = {
          function()
            return { tool "a" }
          end,
          function(m)
            seen = m.tools[1].name .. " " .. m.tools[2].name
          end,
        },
        "x",
      }
    )
    assert.equal("first a", seen)
  end)

  it("that fails loses its own changes only", function()
    local reply, _, events = run(
      {
        model = ah.scripted { call "first", "ok" },
        tools = { tool "first" },
        strategies = {
          function()
            return tool "a"
          end,
          function(m)
            m:add(tool "b")
            error "oh"
          end,
          function()
            return 7
          end,
          function()
            return tool "c"
          end,
        },
        "x",
      },
      "warning"
    )

    assert.same({ "a", "c" }, reply.injected_tools)
    assert.matches("strategy 'strategy_2' failed: .*oh", events[1].message)
    assert.matches("must be made by ah.tool, found number", events[2].message)
  end)

  it("cannot use what it saw once it has returned, nor wait", function()
    local kept
    local _, _, events = run(
      {
        model = ah.scripted { call "first", "ok" },
        tools = { tool "first" },
        strategies = {
          function(m)
            kept = m
          end,
          function(m)
            kept = m
            error "oh"
          end,
          function()
            ah.sleep(0.01)
          end,
        },
        "x",
      },
      "warning"
    )
    for _, use in ipairs {
      function()
        return kept.tool
      end,
      function()
        kept:add(tool "a")
      end,
    } do
      local ok, err = pcall(use)
      assert.is_false(ok)
      assert.matches("is over", tostring(err))
    end
    assert.is_true(#events >= 1)
  end)

  it("is refused where it is none", function()
    for _, wrong in ipairs { 7, { after = 3 }, {} } do
      local ok, err = pcall(ah.run, { model = "demo/echo", strategies = { wrong }, "x" })
      assert.is_false(ok)
      assert.matches("strategies%[1%] must be a function", tostring(err))
    end
  end)

  it("sees results of parallel calls in request order, on a fixed set of tools", function()
    local order = {}
    local function slow(name, seconds)
      return ah.tool {
        name = name,
        description = "Slow.",
        parallel = true,
        handler = function()
          ah.sleep(seconds)
          return name
        end,
      }
    end
    local reply = assert(run {
      model = ah.scripted {
        { calls = { { name = "a" }, { name = "b" }, { name = "late" } } },
        "ok",
      },
      tools = { slow("a", 0.02), slow("b", 0) },
      strategies = {
        function(m)
          order[#order + 1] = m.name .. #m.tools
          return m.name == "a" and tool "late" or nil
        end,
      },
      "x",
    })
    assert.same({ "a2", "b3", "late3" }, order)
    assert.equal("late", reply.messages[5].content)
  end)
end)

-- One conversation on a wire of each kind: the model's view and the parts of the cache that are
-- lost.
describe("on a wire that takes tools", function()
  -- Returns the part of the request that is a cached prefix, as a list of texts.
  local function prefix(request, mode)
    local list = { request.system }
    if mode ~= "reference" and mode ~= "list_changed" then
      for _, t in ipairs(request.tools) do
        list[#list + 1] = ah.json.encode(t)
      end
    end
    for _, e in ipairs(request.entries) do
      list[#list + 1] = ah.json.encode(e)
    end
    return list
  end

  local function extends(long, short)
    for i, text in ipairs(short) do
      if long[i] ~= text then
        return false
      end
    end
    return true
  end

  local function converse(mode)
    local late, later = tool "late", tool "later"
    local other = ah.tool {
      name = "late",
      description = "Another definition.",
      handler = function()
        return "late again"
      end,
    }
    local through = mode == "dispatcher"
    local turns = {
      call "first",
      through and call("call_tool", { name = "late", arguments = { n = 1 } })
        or call("late", { n = 1 }),
      call "drop",
      through and call("call_tool", { name = "late" }) or call "late",
      call "back",
      through and call("call_tool", { name = "late" }) or call "late",
      "done",
    }
    local n = 0
    local model = ah.scripted {
      tool_change_mode = mode,
      answer = function()
        n = n + 1
        return turns[n]
      end,
    }
    local reply, err, events = run(
      {
        model = model,
        system = "S",
        tools = {
          tool("first", function(_, ctx)
            ctx:add_tools { late, later }
          end),
          tool("drop", function(_, ctx)
            ctx:remove_tools "late"
          end),
          tool("back", function(_, ctx)
            ctx:add_tools(other)
          end),
        },
        "x",
      },
      "cache_break"
    )
    return assert(reply, err), model.requests(), events
  end

  for mode, breaks in pairs {
    append = { "tools_changed", "tools_changed" },
    inline = {},
    reference = {},
    additional_tools = {},
    search_pair = {},
    list_changed = {},
    dispatcher = {},
    restart = { "restart", "restart" },
  } do
    it(mode .. ": the same answers, and every broken prefix is told", function()
      local reply, requests, events = converse(mode)
      local results, told = {}, {}
      for _, m in ipairs(reply.messages) do
        results[#results + 1] = m.role == "tool" and m.content or nil
      end
      for _, e in ipairs(events) do
        told[#told + 1] = e.reason
      end

      assert.same(
        {
          "OK\n\nNew tools: late, later.",
          "late",
          "OK",
          "Tool 'late' is no longer available. Available tools: [first, drop, back, later]",
          "OK\n\nNew tools: late.",
          "late again",
        },
        results
      )
      assert.same(breaks, told)
      local broken = 0
      for i = 2, #requests do
        broken = broken
          + (extends(prefix(requests[i], mode), prefix(requests[i - 1], mode)) and 0 or 1)
      end
      assert.equal(#breaks, broken)
      assert.same({ "late", "later", "late" }, reply.injected_tools)
      sound.check(reply:transcript())
    end)
  end

  it("dispatcher: the head holds one fixed tool, and calls come through it", function()
    local _, requests = converse "dispatcher"
    for _, r in ipairs(requests) do
      assert.equal("first drop back call_tool", names(r))
    end
    local last = requests[#requests].entries
    assert.equal("call_tool", last[#last].name)
    assert.equal('{"name":"late","arguments":{}}', last[#last - 1].tool_calls[1].arguments)
  end)

  it("dispatcher: a call through it that names nothing is told how", function()
    local model = ah.scripted {
      tool_change_mode = "dispatcher",
      answer = function(r)
        return #r.entries == 1 and call("call_tool", { tool = "late" }) or "ok"
      end,
    }
    local reply = assert(run { model = model, tools = { tool "first" }, "x" })
    assert.equal(
      "Tool validation failed: call_tool takes the tool's name and its arguments: "
        .. '{"name": "...", "arguments": {...}}',
      reply.messages[3].content
    )
  end)

  it("restart: at most max_restarts times", function()
    local grow = tool("grow", function(_, ctx)
      ctx:add_tools(tool("t" .. math.random(1 << 40)))
    end)
    local reply, err, events = run(
      {
        tools = { grow },
        max_restarts = 3,
        "x",
        model = ah.scripted {
          tool_change_mode = "restart",
          answer = function()
            return call "grow"
          end,
        },
      },
      "cache_break"
    )

    assert.is_nil(reply)
    assert.equal("visibility_expansion_required", err.code)
    assert.equal("Adapter does not support dynamic tools", err.reason)
    assert.equal(3, #events)
    sound.check(err.reply:transcript())
  end)
end)
