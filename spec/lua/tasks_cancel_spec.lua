-- The end of tasks at places where it is hard: under functions of C, in coroutines, within the
-- handlers of the run that a task waits for, and while variables are being closed. Most of these
-- programs are short forms of what spec/lua/tasks_random_spec.lua has found.
local ah = require "agenthost"
local closing = require "support.closing"
local command = require "support.command"
local patiently = require "support.patiently"

local function under_callback(f)
  string.gsub("x", "x", function() f() end)
end

local function in_coroutine(f)
  coroutine.wrap(f)()
end

-- Returns the fields of a run whose model calls each of the tools once.
local function calling(...)
  local calls = {}
  for i, tool in ipairs { ... } do
    calls[i] = { name = tool.name }
  end
  return { tools = { ... }, model = ah.scripted { { calls = calls }, "done" } }
end

local function run(...)
  local fields = calling(...)
  fields[1] = "go"
  return ah.run(fields)
end

local function tool(name, handler, fields)
  fields = fields or {}
  fields.name, fields.description, fields.handler = name, "Works.", handler
  return ah.tool(fields)
end

-- Waits until the task has ended. Returns its status.
local function status(task)
  pcall(task.await, task)
  return task:status()
end

describe("a task that is cancelled by code of its own", function()
  after_each(command.tidy)

  for name, under in pairs { ["under a function of C"] = under_callback,
    ["in a coroutine"] = in_coroutine } do
    it("closes its variables " .. name, function()
      local seen, task = {}, nil
      task = ah.spawn(function()
        local _ <close> = closing(seen)
        pcall(under, function()
          local _ <close> = closing(seen)
          task:cancel()
          ah.sleep(60)
        end)
        ah.sleep(60)
      end)
      assert.same({ "cancelled", 2 }, { status(task), seen.closed })
    end)

    it("closes variables of handlers of its run " .. name, function()
      local seen, task = {}, nil
      local work = tool("work", function()
        pcall(under, function()
          local _ <close> = closing(seen)
          task:cancel()
          ah.sleep(60)
        end)
        ah.sleep(60)
      end)
      task = ah.spawn(function() run(work) end)
      assert.same({ "cancelled", 1 }, { status(task), seen.closed })
    end)
  end

  it("leaves alone what others do in its wait", function()
    local task, other
    task = ah.spawn(function()
      under_callback(function()
        other = ah.spawn(function()
          task:cancel()
          ah.yield()
        end)
        ah.sleep(60)
      end)
    end)
    local third = ah.spawn(function()
      for _ = 1, 20 do
        ah.yield()
      end
      return "done"
    end)
    assert.equal("done", third:await())
    assert.same({ "cancelled", "cancelled" }, { task:status(), other:status() })
  end)

  it("leaves an agent that can be closed", function()
    local task
    local agent = ah.agent(calling(tool("stop", function() task:cancel() end)))
    task = ah.spawn(function() agent:run "go" end)
    assert.equal("cancelled", status(task))
    agent:close()
  end)

  it("may end the run around its handler while it is closed", function()
    local whole
    local work = tool("work", function()
      ah.with_timeout(0.005, function()
        local _ <close> = closing({}, function()
          whole:cancel()
          ah.sleep(0.001)
        end)
        ah.sleep(60)
      end)
    end)
    whole = ah.spawn(function() run(work) end)
    assert.equal("cancelled", status(whole))
  end)
end)

describe("what a cancelled task closes", function()
  after_each(command.tidy)

  it("is told of a deadlock with the code that has ended the task", function()
    patiently(function()
      local seen, whole, err = {}, nil, nil
      whole = ah.spawn(function()
        ah.race { function() ah.sleep(0.001) end, function()
          local _ <close> = closing(seen)
          local _ <close> = closing(seen, function()
            local _ <close> = closing(seen)
            whole:await()
          end)
          local _ <close> = setmetatable({}, { __close = function(_, cause) err = cause end })
          ah.sleep(60)
        end }
      end)
      local began = ah.now()
      whole:await()
      assert.same({ nil, 3 }, { err, seen.closed })
      assert.is_true(ah.now() - began < 0.9) -- the time after which it would be stopped
    end)
  end)

  it("may cancel a task that is ending", function()
    local whole, child
    whole = ah.spawn(function()
      local _ <close> = setmetatable({}, { __close = function()
        child = ah.spawn(function()
          local _ <close> = closing({}, function() whole:cancel() end)
          ah.sleep(60)
        end)
        ah.sleep(0.001)
        error("on purpose", 0)
      end })
    end)
    assert.same({ false, "on purpose" }, { pcall(whole.await, whole) })
    assert.same({ "failed", "cancelled" }, { whole:status(), child:status() })
  end)

  it("does not see the task go on that is ended with it", function()
    local whole, went_on
    local work = tool("work", function()
      ah.spawn(function()
        local _ <close> = closing({}, function() ah.sleep(0.05) end)
        ah.sleep(60)
      end)
      ah.sleep(0.03)
      went_on = true
    end)
    whole = ah.spawn(function() run(work) end)
    ah.sleep(0.01)
    whole:cancel()
    assert.same({ "cancelled" }, { whole:status(), went_on })
  end)

  it("is closed, though one of it takes too long", function()
    local seen = {}
    local task = ah.spawn(function()
      local _ <close> = closing(seen)
      local _ <close> = closing(seen, function() ah.sleep(60) end)
      ah.sleep(60)
    end)
    ah.sleep(0.001)
    task:cancel()
    assert.same({ 2, "cancelled" }, { seen.closed, task:status() })
  end)

  it("is closed with the runs around the background calls of a run", function()
    local whole
    local late = tool("late", function() error("on purpose", 0) end, { background = true })
    local stop = tool("stop", function() whole:cancel() end)
    local outer = tool("outer", function() return run(late, stop) end)
    whole = ah.spawn(function() run(outer) end)
    assert.equal("cancelled", status(whole))
  end)
end)

describe("a handler that waits under a function of C", function()
  it("does not let its run go on below it", function()
    local order = {}
    local first = tool("first", function()
      under_callback(function()
        ah.with_timeout(0.005, function() ah.sleep(60) end)
        order[#order + 1] = "first"
      end)
    end, { parallel = true })
    local second = tool("second", function() order[#order + 1] = "second" end, { parallel = true })
    local reply = assert(run(first, second))
    assert.equal("done", reply.text)
    assert.same({ "first", "second" }, order)
  end)

  it("is told of a deadlock, though other runs could go on", function()
    local agent, whole, err
    local late = tool("late", function() return "late" end, { background = true })
    local work = tool("work", function()
      err = select(2, pcall(whole.await, whole))
      error(err, 0)
    end)
    agent = ah.agent(calling(late, work))
    local run_err
    whole = ah.spawn(function()
      in_coroutine(function()
        local _
        _, run_err = agent:run "go"
      end)
    end)
    whole:await()
    assert.equal("usage", run_err.code)
    command.has(run_err.message, "deadlock")
  end)
end)

describe("the end of a program", function()
  after_each(command.tidy)

  it("ends a run within a background call", function()
    local result = command.script([[
      local ah = require "agenthost"
      local slow = ah.tool { name = "slow", description = "Asks.", background = true,
        handler = function()
          return ah.run { model = ah.scripted { { text = "late", delay = 60 } }, "go" }
        end }
      local agent = ah.agent { tools = { slow },
        model = ah.scripted { { calls = { { name = "slow" } } }, "done" } }
      print(agent:run "go")
      ah.sleep(0.01)
    ]])
    assert.same({ 0, "done\n" }, { result.code, result.out })
  end)
end)
