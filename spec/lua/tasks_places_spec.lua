-- Tasks in each place in which a script can start them: a task is a part of the call that started
-- it, works with its run, session and entities, and ends with it.
local ah = require "agenthost"
local contents = require "support.results"

-- Runs once, with a model that makes one call of each of these tools and then answers.
local function run(tools, fields)
  local calls, config = {}, { tools = tools, log = function() end, "hi" }
  for i, tool in ipairs(tools) do
    calls[i] = { name = tool.name, arguments = {} }
  end
  config.model = ah.scripted { { calls = calls }, "done" }
  for key, value in pairs(fields or {}) do
    config[key] = value
  end
  return ah.run(config)
end

local function tool(name, handler, fields)
  local config = { name = name, description = "Works.", handler = handler }
  for key, value in pairs(fields or {}) do
    config[key] = value
  end
  return ah.tool(config)
end

local plain = tool("plain", function() return "plain" end)

-- Returns a value that adds the word to the list when it is closed.
local function noting(list, word)
  return setmetatable({}, { __close = function() list[#list + 1] = word end })
end

-- Returns a function that starts a task; the task takes some turns and is then in `seen`.
local function starter(seen, word, value)
  return function()
    ah.spawn(function()
      for _ = 1, 5 do
        ah.sleep(0.002)
      end
      seen[#seen + 1] = word
    end)
    return value
  end
end

describe("a place that may wait", function()
  local function ends_with(word, tools, fields)
    local seen = {}
    local at_end
    local config = fields(starter(seen, word), function(value)
      return starter(seen, word, value)
    end)
    config.on = { done = function() at_end = #seen end }
    assert(run(tools, config))
    assert.same({ word }, seen)
    assert.equal(1, at_end)
  end

  it("ends after its tasks: checks", function()
    ends_with("checks", { plain }, function(start) return { checks = { start } } end)
  end)

  it("ends after its tasks: approve", function()
    ends_with("approve", { plain }, function(_, returning)
      return { policies = { function() return "ask", "why" end }, approve = returning(true) }
    end)
  end)

  it("ends after its tasks: an adapter's answer", function()
    ends_with("answer", {}, function(start)
      return { model = ah.scripted(function()
        start()
        return "done"
      end) }
    end)
  end)

  it("ends after its tasks: an executor", function()
    ends_with("executor", { tool("remote", nil) }, function(_, returning)
      return { executors = { remote = returning "done there" } }
    end)
  end)

  it("ends after its tasks: a front end", function()
    local seen, at_end = {}, nil
    local function ask(_, ctx) return ctx:ask { question = "Which?" } end
    local reply = assert(run({ tool("asks", ask) },
      { asks = starter(seen, "asks", "this"), on = { done = function() at_end = #seen end } }))
    assert.same({ "this" }, contents(reply))
    assert.same({ 1, { "asks" } }, { at_end, seen })
  end)

  it("ends after its tasks: provide of a resource, for which the call ends later", function()
    local seen, order = {}, {}
    local thing = ah.resource { scope = "tool_call", provide = starter(seen, "provide", "thing"),
      close = function() order[#order + 1] = "closed after " .. #seen end }
    local reply = assert(run({ tool("use", function(_, ctx)
      return ctx.resources:get "thing" .. #seen
    end) }, { resources = { thing = thing } }))
    assert.same({ "thing0" }, contents(reply))
    assert.same({ "closed after 1" }, order)
  end)

  it("ends after its tasks: setup of an agent, which may add what they found", function()
    local agent = ah.agent { model = ah.scripted { { calls = { { name = "found" } } }, "done" },
      setup = function(conversation)
        local task = ah.spawn(function()
          ah.sleep(0.005)
          return tool("found", function() return "found it" end)
        end)
        conversation:add_tools { task:await() }
      end }
    assert.same({ "found it" }, contents(assert(agent:run "hi")))
    local failing = ah.agent { model = "demo/echo", log = function() end, setup = function()
      ah.spawn(function() ah.sleep(0.005) error("no paper", 0) end)
    end }
    local reply, err = failing:run "hi"
    assert.is_nil(reply)
    assert.matches("no paper", err.message)
  end)
end)

describe("a place that cannot wait", function()
  it("starts tasks of the script, that go on after the run", function()
    local seen, at_end = {}, nil
    local function slow(word, value)
      return function()
        ah.spawn(function()
          while not at_end do
            ah.sleep(0.001)
          end
          seen[word] = (seen[word] or 0) + 1
        end)
        return value
      end
    end
    assert(run({ plain }, {
      policies = { { before = slow "before", after = slow "after" } },
      guards = { input = slow "input", output = slow "output" },
      feedback = { { every = 1, text = slow("feedback", "a note") } },
      strategies = { { name = "s", after = slow "strategy" } },
      on = { tool_invoked = slow "observer", done = function()
        assert(next(seen) == nil)
        at_end = true
      end },
    }))
    assert.is_true(at_end)
    ah.sleep(0.02)
    assert.same({ before = 1, after = 1, input = 1, output = 1, feedback = 1, strategy = 1,
      observer = 1 }, seen)
  end)

  it("cannot wait for them", function()
    local warned
    assert(run({ plain }, { on = {
      tool_invoked = function() ah.spawn(ah.sleep, 0.001):await() end,
      warning = function(e) warned = e.message end } }))
    assert.matches("an observer cannot wait", warned)
    for _, wait in ipairs {
      function() ah.scope(function() end) end,
      function() ah.all { function() end } end,
      function() ah.channel():receive() end,
      function() ah.yield() end,
    } do
      local reply = assert(run({ plain }, { policies = { function() wait() end } }))
      assert.same({ "Tool 'plain' was not run: a policy failed" }, contents(reply))
    end
  end)

  it("starts such tasks also in the close of a resource", function()
    local seen = {}
    local thing = ah.resource { scope = "tool_call", provide = function() return "thing" end,
      close = starter(seen, "close") }
    assert(run({ tool("use", function(_, ctx) return ctx.resources:get "thing" end) },
      { resources = { thing = thing } }))
    local waited = 0
    while #seen == 0 and waited < 1000 do
      waited = waited + 1
      ah.sleep(0.002)
    end
    assert.same({ "close" }, seen)
  end)

  it("may use what needs no wait", function()
    local channel, got = ah.channel(10), {}
    local reader <close> = ah.spawn(function()
      for word in channel do
        got[#got + 1] = word
      end
    end)
    assert(run({ plain }, { on = function(e) channel:send(e.type) end }))
    channel:close()
    reader:await()
    assert.equal("done", got[#got])
  end)

  it("that is a reducer or a finalizer starts none", function()
    local why = {}
    local Item = ah.type { name = "Item", fields = { name = "string" } }
    local session = ah.session()
    session:register(Item, { key = "name" })
    session:reduce(Item, Item, function(view)
      why.reducer = select(2, pcall(ah.spawn, print))
      return view:append()
    end)
    pcall(session.dispatch, session, Item { name = "x" })
    assert.matches("a reducer cannot start a task", why.reducer.message)
    setmetatable({}, { __gc = function() why.gc = select(2, pcall(ah.spawn, print)) end })
    collectgarbage()
    collectgarbage()
    assert.equal("usage", why.gc.code)
    assert.matches("a finalizer cannot start a task", why.gc.message)
  end)
end)

describe("the task of a handler", function()
  local Item = ah.type { name = "Item", fields = { name = "string" } }

  -- A handler whose task changes the session and a file, and that then succeeds or fails.
  local function changing(fails)
    local fs, session = assert(ah.filesystem { files = { ["a.txt"] = "before" } }), ah.session()
    session:register(Item, { key = "name" })
    local inside = {}
    local reply = assert(run({ tool("change", function()
      local task = ah.spawn(function()
        ah.sleep(0.002)
        session:dispatch(Item { name = "new" })
        assert(fs:write("a.txt", "after"))
      end)
      ah.spawn(function()
        task:await()
        inside.file, inside.items = (fs:read "a.txt"), #session[Item]:all()
      end):await()
      if fails then
        return nil, "undone"
      end
    end) }, { session = session }))
    return inside, { file = (fs:read "a.txt"), items = #session[Item]:all() }, contents(reply)[1]
  end

  it("changes sessions and files within the call, seen by its other tasks", function()
    local inside, after = changing(false)
    assert.same({ file = "after", items = 1 }, inside)
    assert.same(inside, after)
  end)

  it("has its changes undone when the call fails", function()
    local inside, after, content = changing(true)
    assert.same({ file = "after", items = 1 }, inside)
    assert.same({ file = "before", items = 0 }, after)
    assert.matches("undone", content)
  end)

  it("is a part of the call in a scope, too, whoever starts it there", function()
    local fs = assert(ah.filesystem { files = { ["a.txt"] = "before" } })
    local seen
    assert(run { tool("change", function()
      ah.scope(function(scope)
        ah.spawn(function()
          scope:spawn(function() assert(fs:write("a.txt", "after")) end):await()
        end):await()
        seen = fs:read "a.txt"
      end)
      return nil, "undone"
    end) })
    assert.equal("after", seen)
    assert.equal("before", (fs:read "a.txt"))
  end)

  it("works within its call while another call works beside it", function()
    local fs = assert(ah.filesystem { files = {} })
    local seen = {}
    local function writes(name, fails)
      return tool(name, function()
        ah.spawn(function()
          assert(fs:write(name .. ".txt", name))
          ah.sleep(0.01)
          seen[name] = fs:read("one.txt") and fs:read("two.txt") and "both" or "its own"
        end):await()
        return not fails or nil, fails and "fails" or nil
      end, { parallel = true })
    end
    local reply = assert(run({ writes "one", writes("two", true) }))
    assert.equal(2, #contents(reply))
    assert.same({ one = "its own", two = "its own" }, seen)
    assert.equal("one", (fs:read "one.txt"))
    assert.is_nil((fs:read "two.txt"))
  end)

  it("reports progress, asks, gets resources and calls tools as the handler does", function()
    local events = {}
    local registry = ah.registry { tool("inner", function() return "inside" end) }
    local thing = ah.resource { scope = "tool_call", provide = function() return "thing" end }
    local reply = assert(run({ tool("work", function(_, ctx)
      local got = {}
      ah.all {
        function() ctx:progress "half" end,
        function() got[1] = ctx:ask { question = "Which?" } end,
        function() got[2] = ctx.resources:get "thing" end,
        function() got[3] = registry:execute("inner", {}).content end,
      }
      return table.concat(got, " ")
    end) }, { asks = function() return "this" end, resources = { thing = thing },
      on = { tool_progress = function(e) events[#events + 1] = e.message end } }))
    assert.equal("this thing inside", contents(reply)[1])
    assert.same({ "half" }, events)
  end)

  it("shares semaphores and channels with the handlers of other runs", function()
    local gate, out, inside, most = ah.semaphore(2), ah.channel(100), 0, 0
    local work = tool("work", function(_, ctx)
      ah.map({ 1, 2, 3 }, function(i)
        local _ <close> = gate:acquire()
        inside = inside + 1
        most = math.max(most, inside)
        ah.sleep(0.001)
        inside = inside - 1
        out:send(ctx.run .. "/" .. i)
      end)
    end)
    ah.map({ 1, 2, 3, 4, 5 }, function() return run { work } end)
    out:close()
    local seen, n = {}, 0
    for word in out do
      assert.is_nil(seen[word])
      seen[word], n = true, n + 1
    end
    assert.same({ 2, 15, 0 }, { most, n, inside })
  end)

  it("gives back what it holds when its run is cancelled in it", function()
    local gate = ah.semaphore(1)
    local work = tool("work", function()
      ah.spawn(function()
        local _ <close> = gate:acquire()
        ah.sleep(60)
      end)
    end)
    local reply, err = run({ work }, { timeout = 0.05 })
    assert.is_nil(reply)
    assert.equal("deadline_exceeded", err.code)
    assert.is_userdata(ah.with_timeout(5, gate.acquire, gate))
  end)

  it("runs agents within the call: depth, budget, deadline and parent", function()
    local parents, outer = {}, nil
    local inner = ah.agent { name = "inner", model = ah.scripted(function() return "words" end),
      on = { start = function(e) parents[#parents + 1] = e.parent end } }
    local reply = assert(run({ tool("work", function()
      local list = ah.map({ 1, 2, 3 }, function()
        local conversation <close> = inner:open {}
        return assert(conversation:run "hi").text
      end)
      return table.concat(list, " ")
    end) }, { on = { start = function(e) outer = e.run end } }))
    assert.equal("words words words", contents(reply)[1])
    assert.same({ outer, outer, outer }, parents)
    reply = assert(run({ tool("work", function()
      local task = ah.spawn(function() return inner:run "hi" end)
      local _, err = pcall(task.await, task)
      return nil, err.message
    end) }, { max_nested = 1 }))
    assert.matches("runs inside runs are more than 1 deep", contents(reply)[1])
  end)

  it("is cancelled with the run, wherever it waits, and closes its variables first", function()
    local order, begun = {}, false
    local agent
    agent = ah.agent { log = function() end,
      model = ah.scripted { { calls = { { name = "work" } } } },
      tools = { tool("work", function()
        local _ <close> = noting(order, "handler")
        ah.spawn(function()
          local _ <close> = noting(order, "outer")
          ah.spawn(function()
            local _ <close> = noting(order, "inner")
            begun = true
            ah.sleep(60)
          end)
          ah.channel():receive()
        end)
      end) } }
    local task = ah.spawn(agent.run, agent, "hi")
    while not begun do
      ah.sleep(0.001)
    end
    agent:cancel()
    local _, err = task:await()
    assert.equal("cancelled", err.code)
    assert.same({ "handler", "inner", "outer" }, order)
  end)

  it("fails the call if nothing awaits what it raises, and the model reads it", function()
    local reply = assert(run { plain, tool("fails", function()
      ah.spawn(function() ah.sleep(0.002) error("late", 0) end)
      ah.spawn(function() ah.sleep(0.004) error("later", 0) end)
      return "would be a success"
    end) })
    assert.equal("plain", contents(reply)[1])
    assert.equal("Tool 'fails' execution failed: late", contents(reply)[2])
  end)

  it("cannot be started by a call that is over", function()
    local kept, ok, err
    assert(run { tool("work", function()
      kept = ah.spawn(function()
        local _ <close> = setmetatable({}, { __close = function()
          ok, err = pcall(ah.spawn, print)
        end })
        ah.sleep(60)
      end)
      ah.yield()
      kept:cancel()
    end) })
    assert.is_false(ok)
    assert.equal("usage", err.code)
  end)
end)

describe("the task of an entity's method", function()
  it("changes the instance within the call, which a failure restores", function()
    local Cart = ah.entity { name = "Cart" }
    Cart:tool { name = "add", description = "Adds.", params = { fails = "boolean" },
      handler = function(self, args)
        ah.map({ 1, 2, 3 }, function(n)
          ah.yield()
          self.sum = self.sum + n
        end)
        return not args.fails and self.sum or nil, args.fails and "no" or nil
      end }
    local cart = Cart { id = "1", sum = 0 }
    local reply = assert(ah.run { discover = true, log = function() end,
      tools = { tool("cart", function() return ah.spawn(function() return cart end):await() end) },
      model = ah.scripted { { calls = { { name = "cart" } } },
        { calls = { { name = "cart_1_add", arguments = { fails = false } } } },
        { calls = { { name = "cart_1_add", arguments = { fails = true } } } }, "done" }, "hi" })
    assert.equal(6, cart.sum)
    assert.equal("6", contents(reply)[2])
  end)
end)
