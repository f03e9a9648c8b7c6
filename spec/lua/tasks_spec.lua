-- Tasks of scripts: how they end, what their end does to those around them, and what is kept when
-- a task is cancelled. docs/reference has the functions.
local ah = require "agenthost"
local closing = require "support.closing"
local command = require "support.command"

local function cancel_in_wait(wait)
  local seen = {}
  local task = ah.spawn(function()
    local _ <close> = closing(seen)
    wait()
    seen.went_on = true
  end)
  ah.sleep(0.005)
  task:cancel()
  assert.equal("cancelled", task:status())
  assert.equal(1, seen.closed)
  assert.is_nil(seen.went_on)
  local ok, err = pcall(task.await, task)
  assert.is_false(ok)
  assert.equal("cancelled", err.code)
end

describe("a task", function()
  after_each(command.tidy)

  it("returns all its values to each that awaits it", function()
    local task = ah.spawn(function(...) ah.yield() return ... end, 1, nil, 3, nil)
    assert.same({ n = 4, 1, nil, 3 }, table.pack(task:await()))
    assert.equal(4, select("#", task:await()))
    assert.equal("done", task:status())
  end)

  it("raises what its function has raised, as it is, where it is awaited", function()
    local raised = {}
    local task = ah.spawn(function() error(raised) end)
    local ok, err = pcall(task.await, task)
    assert.is_false(ok)
    assert.equal(raised, err)
    assert.equal("failed", task:status())
  end)

  it("is cancelled in each kind of wait, and closes its variables once", function()
    local channel, full = ah.channel(), ah.channel(1)
    local semaphore = ah.semaphore(1)
    local permit <close> = semaphore:acquire()
    local other <close> = ah.spawn(ah.sleep, 60)
    full:send(1)
    for _, wait in ipairs {
      function() ah.sleep(60) end,
      function() channel:receive() end,
      function() full:send(2) end,
      function() semaphore:acquire() end,
      function() other:await() end,
      function() ah.scope(function() ah.sleep(60) end) end,
      function() ah.all { function() ah.sleep(60) end } end,
      function() ah.spawn(ah.sleep, 60) ah.sleep(60) end,
      function() ah.run { model = ah.scripted(function() return { calls = { { name = "wait",
        arguments = {} } } } end), tools = { ah.tool { name = "wait", description = "Waits.",
        handler = function() ah.sleep(60) end } }, "hi" } end,
    } do
      cancel_in_wait(wait)
    end
    assert.equal("running", other:status())
    assert.equal("function", type(permit.release))
  end)

  it("ends once, though what it closes cancels it again", function()
    local seen, ends, task = {}, 0, nil
    local group = ah.spawn(function()
      task = ah.spawn(function()
        local _ <close> = closing(seen, function() task:cancel() end)
        ah.sleep(60)
      end)
      ah.sleep(0.005)
      task:cancel()
      ends = ends + 1
    end)
    group:await()
    assert.same({ 1, 1, "cancelled", "done" }, { seen.closed, ends, task:status(), group:status() })
  end)

  it("starts no task while it is being closed", function()
    local seen, ok, err = {}, nil, nil
    local task = ah.spawn(function()
      local _ <close> = closing(seen, function()
        ok, err = pcall(ah.spawn, function() seen.orphan = true end)
      end)
      ah.sleep(60)
    end)
    ah.sleep(0.005)
    task:cancel()
    ah.sleep(0.01)
    assert.is_false(ok)
    assert.matches("it can start no other", err.message)
    assert.is_nil(seen.orphan)
  end)

  it("that works long without a wait beside others is warned of once, with its line", function()
    local code = [[
ah.all { function() for _ = 1, 3 do ah.sleep(0.01) end end,
function()
  for _ = 1, 2 do
    local from = os.clock()
    while os.clock() - from < 1.2 do end
    ah.yield()
  end
end }]]
    local r = command.agenthost("-e", code)
    local _, count = r.err:gsub("worked for over 100 ms without a wait", "")
    assert.equal(1, count, r.err)
    assert.truthy(r.err:find("-e:5: the code", 1, true), r.err)
  end)

  it("that cancels thousands beside itself ends each of them", function()
    local tasks = {}
    local ok, err = pcall(ah.with_timeout, 20, ah.scope, function(scope)
      for i = 1, 3000 do
        tasks[i] = scope:spawn(function()
          if i == 1500 then
            ah.yield()
            scope:cancel()
          end
          ah.sleep(60)
        end)
      end
      ah.sleep(60)
    end)
    assert.is_false(ok)
    assert.equal("cancelled", err.code)
    for _, task in ipairs(tasks) do
      assert.equal("cancelled", task:status())
    end
  end)

  it("that cancels itself is ended at its next wait, with those that it has started", function()
    local seen, task = {}, nil
    task = ah.spawn(function()
      ah.spawn(function()
        local _ <close> = closing(seen)
        ah.sleep(60)
      end)
      ah.sleep(0.005)
      task:cancel()
      seen.went_on = true
      ah.yield()
      seen.too_far = true
    end)
    pcall(task.await, task)
    assert.equal("cancelled", task:status())
    assert.same({ closed = 1, went_on = true }, seen)
  end)

  it("ends once, though what it closes cancels it again", function()
    local seen, task = {}, nil
    task = ah.spawn(function()
      local _ <close> = closing(seen, function() task:cancel() end)
      ah.sleep(60)
    end)
    ah.sleep(0.005)
    task:cancel()
    task:cancel()
    assert.equal(1, seen.closed)
    assert.equal("cancelled", task:status())
  end)

  it("that fails is not cancelled by what its tasks close", function()
    local seen, task = {}, nil
    task = ah.spawn(function()
      ah.spawn(function()
        local _ <close> = closing(seen, function() task:cancel() end)
        ah.sleep(60)
      end)
      ah.sleep(0.005)
      error("no luck", 0)
    end)
    local ok, err = pcall(task.await, task)
    assert.is_false(ok)
    assert.equal("no luck", err)
    assert.equal("failed", task:status())
    assert.equal(1, seen.closed)
  end)

  it("has failed when its variables are closed", function()
    local seen, task = {}, nil
    task = ah.spawn(function()
      local _ <close> = closing(seen, function() seen.status = task:status() end)
      error("no luck", 0)
    end)
    assert.is_false(pcall(task.await, task))
    assert.same({ closed = 1, status = "running" }, seen)
    assert.equal("failed", task:status())
  end)

  it("whose failure was given to a task that was cancelled fails the code around it", function()
    local gate, seen = ah.channel(), {}
    local ok, err = pcall(ah.with_timeout, 5, function()
      local fails = ah.spawn(function()
        gate:receive()
        error("no luck", 0)
      end)
      local awaits = ah.spawn(function()
        pcall(fails.await, fails)
        seen.went_on = true
      end)
      ah.spawn(function()
        gate:receive()
        seen.status = fails:status()
        awaits:cancel()
      end)
      ah.yield()
      gate:close() -- both go on before the one that awaits
    end)
    assert.is_false(ok)
    assert.equal("no luck", err)
    assert.same({ status = "failed" }, seen)
  end)

  it("cannot await itself, nor in a circle", function()
    local task, first, second
    task = ah.spawn(function() return task:await() end)
    local _, err = pcall(task.await, task)
    assert.matches("cannot await itself", err.message)
    first = ah.spawn(function() return second:await() end)
    second = ah.spawn(function() return first:await() end)
    _, err = pcall(first.await, first)
    assert.matches("await each other", err.message)
  end)

  it("is at work beside 9,999 others", function()
    local tasks, sum = {}, 0
    for i = 1, 10000 do
      tasks[i] = ah.spawn(function() ah.sleep(0.01) return i end)
    end
    for _, task in ipairs(tasks) do
      sum = sum + task:await()
    end
    assert.equal(50005000, sum)
  end)

  it("that failed and was not awaited fails the script in the command, with its line", function()
    local done = command.agenthost("-e",
      "local ah = require 'agenthost'\nah.spawn(function() error 'no luck' end)")
    assert.equal(1, done.code)
    assert.matches(":2: no luck", done.err)
  end)

  it("that is at work when a script of the stock interpreter ends is told by a warning", function()
    local path = command.temp [[
      local ah = require "agenthost"
      ah.spawn(function() ah.sleep(60) end)
      ah.sleep(0)
    ]]
    local build = os.getenv "AGENTHOST_BUILD" or "./build"
    local done = command.shell(("LUA_CPATH='%s/?.so' lua5.4 -W %s"):format(build, path))
    assert.matches(":2 was at work when the program ended", done.err)
  end)
end)

describe("a scope", function()
  it("starts nothing after it was cancelled", function()
    local ok, err
    pcall(ah.scope, function(scope)
      scope:spawn(function() ah.sleep(60) end)
      scope:cancel()
      ok, err = pcall(scope.spawn, scope, function() end)
    end)
    assert.is_false(ok)
    assert.matches("the scope has ended", err.message)
  end)

  it("raises what the first has raised, when all others are closed", function()
    local seen = {}
    local ok, err = pcall(ah.scope, function(scope)
      scope:spawn(function()
        local _ <close> = closing(seen)
        ah.sleep(60)
      end)
      scope:spawn(function() ah.sleep(0.005) error("first", 0) end)
      local _ <close> = closing(seen)
      ah.sleep(60)
    end)
    assert.is_false(ok)
    assert.equal("first", err)
    assert.equal(2, seen.closed)
  end)
end)

describe("ah.map", function()
  it("has so many calls at work, and 8 by default", function()
    for most, options in pairs { [3] = { concurrency = 3 }, [8] = false } do
      local inside, seen, list = 0, 0, {}
      for i = 1, 20 do
        list[i] = i
      end
      ah.map(list, function()
        inside = inside + 1
        seen = math.max(seen, inside)
        ah.yield()
        inside = inside - 1
      end, options or nil)
      assert.equal(most, seen)
    end
  end)

  it("calls nothing after the first failure", function()
    local calls = 0
    local list, err = ah.map({ 1, 2, 3, 4 }, function(v)
      calls = calls + 1
      if v == 2 then
        return nil, "bad"
      end
      return v
    end, { concurrency = 1 })
    assert.is_nil(list)
    assert.equal("bad", err)
    assert.equal(2, calls)
  end)
end)

describe("a channel", function()
  it("keeps the values of receivers that were cancelled before they went on, in order", function()
    local channel, receivers = ah.channel(8), {}
    for i = 1, 3 do
      receivers[i] = ah.spawn(channel.receive, channel)
    end
    ah.sleep(0.005)
    for i = 1, 5 do
      channel:send(i)
    end
    for i = 1, 3 do
      receivers[i]:cancel()
    end
    channel:close()
    local got = {}
    for v in channel do
      got[#got + 1] = v
    end
    assert.same({ 1, 2, 3, 4, 5 }, got)
  end)
end)

describe("a channel without room", function()
  it("takes a value when a receiver waits, and keeps it if that one is cancelled", function()
    local channel = ah.channel()
    local receiver = ah.spawn(channel.receive, channel)
    ah.sleep(0.005)
    assert.is_true(channel:send "one")
    assert.equal(0, #channel)
    receiver:cancel()
    assert.equal(1, #channel)
    local sender = ah.spawn(channel.send, channel, "two")
    ah.sleep(0.005)
    assert.equal("running", sender:status())
    assert.equal("one", channel:receive())
    assert.equal("two", channel:receive())
    assert.is_true(sender:await())
  end)

  it("gives the value to the next receiver that waits, if the first is cancelled", function()
    local channel = ah.channel()
    local first = ah.spawn(channel.receive, channel)
    local second = ah.spawn(channel.receive, channel)
    ah.sleep(0.005)
    channel:send "one"
    first:cancel()
    assert.equal("one", second:await())
  end)

  it("that is closed ends the waits, and drops what waits to be sent", function()
    local channel = ah.channel()
    local sender = ah.spawn(channel.send, channel, "one")
    ah.sleep(0.005)
    channel:close()
    assert.is_false(sender:await())
    assert.is_nil(channel:receive())
    assert.is_false(channel:send "two")
  end)
end)

describe("ah.race", function()
  it("cancels the others when the first has ended", function()
    local seen, began = {}, ah.now()
    assert.equal("first", ah.race { function()
      local _ <close> = closing(seen)
      ah.sleep(60)
    end, function()
      ah.sleep(0.005)
      return "first"
    end })
    assert.equal(1, seen.closed)
    assert.truthy(ah.now() - began < 30)
  end)
end)

describe("ah.every", function()
  it("leaves out the times that a long call has missed", function()
    local times, enough = {}, ah.channel(10)
    local every <close> = ah.every(0.02, function()
      times[#times + 1] = ah.now()
      if #times == 1 then
        ah.sleep(0.2)
      elseif #times == 9 then -- of the ten that it has missed, none came at once
        enough:close()
      end
    end)
    enough:receive()
    every:cancel()
    assert.truthy(times[9] - times[2] >= 0.018, times[9] - times[2])
  end)
end)

describe("a semaphore", function()
  it("gets a permit back once, however often it is released", function()
    local semaphore = ah.semaphore(1)
    do
      local permit <close> = semaphore:acquire()
      permit:release()
      permit:release()
    end
    local held <close> = semaphore:acquire()
    assert.is_nil((ah.with_timeout(0.01, semaphore.acquire, semaphore)))
    assert.is_userdata(held)
  end)

  it("gets back the permit of a task that was cancelled before it went on", function()
    local semaphore = ah.semaphore(1)
    local permit = semaphore:acquire()
    local task = ah.spawn(semaphore.acquire, semaphore)
    ah.sleep(0.005)
    permit:release()
    task:cancel()
    local again = ah.with_timeout(5, function() return semaphore:acquire() end)
    assert.is_truthy(again)
  end)
end)
