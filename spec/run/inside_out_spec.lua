-- A call that is stopped while runs within it are at work: the innermost is settled first. When the
-- end of the outermost call is reported, objects, entities and resources are as before it, and the
-- next call can use them. Each way to wait is tried with each way to stop, and with nesting.
local ah = require "agenthost"
local patiently = require "support.patiently"

local LONG = 30 -- seconds: a wait that must not end by itself

-- -- participants -----------------------------------------------------------------------------

local function new_object(log)
  local object = { n = 0 }
  function object:snapshot() return self.n end
  function object:restore(n)
    self.n = n
    log[#log + 1] = "restore " .. n
  end
  return object
end

local Account = ah.entity { name = "Account", fields = { "id", "n" } }
Account:tool { name = "add", description = "Adds.",
  handler = function(self) self.n = self.n + 1 end }

local Item = ah.type { name = "Item", fields = { n = "integer" } }

local function new_world()
  local log = {}
  return { log = log, object = new_object(log), account = Account { id = "a", n = 0 },
    session = ah.session { types = { Item } }, fs = ah.filesystem { files = { f = "old" } } }
end

local function state_of(w)
  return ah.json.encode { object = w.object.n, account = w.account.n, items = #w.session[Item],
    file = (w.fs:read "f"), exists = w.fs:exists "g" }
end

local function change(w, ctx, n)
  ctx:enlist(w.object)
  ctx:enlist(w.account)
  w.object.n = w.object.n + n
  w.account.n = w.account.n + n
  w.session:dispatch(Item { n = n })
  assert(w.fs:append("f", tostring(n)))
  assert(w.fs:write("g", tostring(n)))
end

-- -- ways to wait for a run in a handler ----------------------------------------------------------

local waits = {
  plain = function(run) return run() end,
  coroutine = function(run) return coroutine.wrap(run)() end,
  sort = function(run)
    local once = false
    table.sort({ 1, 2 }, function(a, b)
      if not once then
        once = true
        run()
      end
      return a < b
    end)
  end,
}

-- -- runs ------------------------------------------------------------------------------------

local function calls_of(names)
  local calls = {}
  for i, name in ipairs(names) do
    calls[i] = { name = name }
  end
  return ah.scripted { { calls = calls }, "done" }
end

--- Makes tools "t1" (which runs "t2", which runs ...) down to the one that waits; each makes
-- changes first.
local function new_tools(w, o, depth)
  local function inner()
    return assert(ah.run { model = calls_of(o.parallel and { "t" .. depth + 1, "t" .. depth + 1 }
      or { "t" .. depth + 1 }), tools = new_tools(w, o, depth + 1), session = w.session,
      log = function() end, "go",
      on = { tool_invoked = function(e)
        w.log[#w.log + 1] = e.name .. " " .. tostring(e.success)
      end } })
  end
  return { ah.tool { name = "t" .. depth, description = "Works.", parallel = true,
    timeout = o.timeouts and o.timeouts[depth], handler = function(_, ctx)
      if not o.parallel or depth == 1 then
        change(w, ctx, depth)
      end
      if depth == o.depth then
        o.reached = true
        if o.at_bottom then o.at_bottom(ctx) end
        waits[o.wait](function() ah.sleep(LONG) end)
      else
        waits[o.wait](inner)
      end
      error "nothing ended it"
    end } }
end

local function stop_run(o)
  local w = new_world()
  local before, told = state_of(w), nil
  w.object.n, w.account.n = 0, 0
  local agent = assert(ah.agent { model = ah.scripted { { calls = { { name = "t1" } } }, "done",
      { calls = { { name = "t1" } } }, "done" },
    tools = new_tools(w, o, 1), session = w.session, timeout = o.run_timeout, log = function() end,
    on = { tool_invoked = function(e)
      told = told or { success = e.success, state = state_of(w) }
      w.log[#w.log + 1] = "t1 " .. tostring(e.success)
    end } })
  w.agent = agent
  o.world = w
  local started = ah.now()
  local reply, err = agent:run "go"
  assert.is_true(ah.now() - started < LONG / 2)
  assert.is_false(told.success)
  assert.equal(before, told.state)
  assert.equal(before, state_of(w))
  if reply then
    assert.is_nil(err)
  end
  return w, err
end

--- Asserts that a later call can use the objects.
local function assert_free(w)
  local reply = assert(ah.run { model = ah.scripted { { calls = { { name = "t" } } }, "done" },
    session = w.session, log = function() end, "go", tools = { ah.tool { name = "t",
      description = "Works.", handler = function(_, ctx) change(w, ctx, 5) end } } })
  assert.equal("OK", reply.messages[3].content)
  assert.same({ 5, 5, 1, "old5" }, { w.object.n, w.account.n, #w.session[Item], (w.fs:read "f") })
end

local function last_told(w)
  local seen = {}
  for _, line in ipairs(w.log) do
    seen[#seen + 1] = line:match "^t%d" or nil
  end
  return seen
end

for wait in pairs(waits) do
  describe("a call that waits (" .. wait .. ") for a run within it", function()
    for _, depth in ipairs { 2, 3, 4 } do
      local function both(what, o)
        for _, parallel in ipairs { false, true } do
          it(("is set back when %s, %d deep%s"):format(what, depth,
            parallel and ", with two calls at work in each" or ""), function()
            patiently(function(times)
              local this = { wait = wait, depth = depth, parallel = parallel }
              if o.timeouts then
                this.timeouts = { table.unpack(o.timeouts) }
                for i, seconds in ipairs(o.timeouts) do
                  this.timeouts[i] = seconds * times
                end
              end
              this.run_timeout = o.run_timeout and o.run_timeout * times
              local w = stop_run(this)
              local told = last_told(w)
              assert.equal("t1", told[#told])
              assert.equal(this.reached and depth, this.reached and tonumber(told[1]:sub(2)))
              assert_free(w)
            end)
          end)
        end
      end

      both("its own timeout ends it", { timeouts = { 0.03 } })
      both("the run's timeout does", { run_timeout = 0.03 })
      both("the call within it is out of time as well", { timeouts = { 0.03, 0.03 } })

      it("is set back when its agent is cancelled from " .. depth .. " deep", function()
        local o = { wait = wait, depth = depth }
        o.at_bottom = function() o.world.agent:cancel() end
        local w, err = stop_run(o)
        assert.equal("cancelled", err.code)
        assert_free(w)
      end)
    end
  end)
end

describe("a call in which a call was stopped", function()
  it("goes on with what it had, if only that one is out of time", function()
    local w = new_world()
    local inner = ah.tool { name = "inner", description = "Works.", timeout = 0.02,
      handler = function(_, ctx)
        change(w, ctx, 7)
        ah.sleep(LONG)
      end }
    local outer = ah.tool { name = "outer", description = "Works.", handler = function(_, ctx)
      change(w, ctx, 1)
      local reply = assert(ah.run { model = calls_of { "inner" }, tools = { inner }, "go",
        session = w.session, log = function() end })
      assert(reply.messages[3].content:find("did not finish within 0.02 seconds", 1, true))
      assert(w.object.n == 1 and w.account.n == 1 and #w.session[Item] == 1)
      ctx:enlist(w.object)
      w.object.n = w.object.n + 1
    end }
    local reply = assert(ah.run { model = calls_of { "outer" }, tools = { outer }, "go",
      session = w.session, log = function() end })
    assert.equal("OK", reply.messages[3].content)
    assert.same({ 2, 1, 1, "old1" }, { w.object.n, w.account.n, #w.session[Item], (w.fs:read "f") })
  end)

  it("closes its resources after those within it", function()
    local log = {}
    local function resource(name)
      return ah.resource { provide = function() return { name = name } end,
        close = function() log[#log + 1] = name end, scope = "tool_call" }
    end
    local inner = ah.tool { name = "inner", description = "Works.", handler = function(_, ctx)
      ctx.resources:get "r"
      ah.sleep(LONG)
    end }
    local outer = ah.tool { name = "outer", description = "Works.", timeout = 0.5,
      handler = function(_, ctx)
        ctx.resources:get "r"
        local closing <close> = setmetatable({}, { __close = function()
          log[#log + 1] = "close"
        end })
        ah.run { model = calls_of { "inner" }, tools = { inner }, log = function() end, "go",
          resources = { r = resource "inner" } }
        return closing
      end }
    assert(ah.run { model = calls_of { "outer" }, tools = { outer }, log = function() end, "go",
      resources = { r = resource "outer" } })
    assert.same({ "inner", "close", "outer" }, log)
  end)

  it("tells of a call only when it is settled, as the run itself fails", function()
    local object, seen = new_object {}, {}
    local tool = ah.tool { name = "t", description = "Works.", handler = function(_, ctx)
      ctx:enlist(object)
      object.n = 1
      ah.sleep(LONG)
    end }
    local _, err = ah.run { model = calls_of { "t" }, tools = { tool }, timeout = 0.02, "go",
      log = function() end, on = function(e)
        if e.type == "tool_invoked" or e.type == "done" then
          seen[#seen + 1] = e.type .. " " .. object.n
        end
      end }
    assert.equal("deadline_exceeded", err.code)
    assert.same({ "tool_invoked 0", "done 0" }, seen)
  end)
end)

describe("objects of one call that share a table", function()
  it("are set back the last one first", function()
    local shared = { n = 0 }
    local function object()
      return { snapshot = function() return shared.n end,
        restore = function(_, n) shared.n = n end }
    end
    local one, two = object(), object()
    local tool = ah.tool { name = "t", description = "Works.", handler = function(_, ctx)
      ctx:enlist(one)
      shared.n = 1
      ctx:enlist(two)
      shared.n = 2
      error "no"
    end }
    assert(ah.run { model = calls_of { "t" }, tools = { tool }, log = function() end, "go" })
    assert.equal(0, shared.n)
  end)
end)
